//! Descriptions of machines: those in this program, those with matrices beside it, and files.

use crate::error::CliError;
use flate2::read::GzDecoder;
use lineweave_core::machine::{self, Machine};
use lineweave_core::topology::Topology;
use lineweave_core::units::Nanos;
use lineweave_lab::matrix::{self, Readout};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

const DESCRIPTION: &str = "machine description";
/// Name of this kind of file in errors.
pub const MATRIX: &str = "matrix of core-to-core latencies";
/// First bytes of a file compressed by gzip.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Loads a machine's description from a file, or one that comes with lineweave. If it names a matrix, the matrix is read too.
pub fn load(name: &str) -> Result<Machine, CliError> {
    if let Some(found) = machine::shipped().iter().find(|m| m.name == name) {
        return Ok(found.clone());
    }
    let path = Path::new(name);
    let is_path = name.contains('/') || name.ends_with(".toml") || path.exists();
    let path = match folder().map(|folder| folder.join(format!("{name}.toml"))) {
        Some(shipped) if !is_path && shipped.exists() => shipped,
        _ if name.ends_with(".csv") || name.ends_with(".csv.gz") => {
            return Err(CliError::MatrixAlone { path: name.to_owned() });
        }
        _ if is_path => path.to_owned(),
        _ => {
            return Err(CliError::UnknownMachine { name: name.to_owned(), known: names() });
        }
    };
    with_matrix(&path, described(&path)?)
}

/// Returns the CPUs of a described machine.
pub fn topology(machine: &Machine) -> Result<Topology, CliError> {
    machine.topology().ok_or_else(|| CliError::NoTopology { name: machine.name.clone() })
}

/// Returns the names of all descriptions that come with lineweave.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = machine::shipped().iter().map(|m| m.name.clone()).collect();
    names.extend(beside().unwrap_or_default().into_iter().map(|(_, m)| m.name));
    names
}

/// Returns the descriptions with matrices that lie beside this program, by name, without reading the matrices.
pub fn beside() -> Result<Vec<(PathBuf, Machine)>, CliError> {
    let Some(folder) = folder() else { return Ok(Vec::new()) };
    let entries = std::fs::read_dir(&folder).map_err(|e| CliError::read(&folder, DESCRIPTION, e))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    files.into_iter().map(|path| described(&path).map(|machine| (path, machine))).collect()
}

/// Returns the machine with the costs from its matrix, if it names one that was not read yet.
pub fn with_matrix(description: &Path, machine: Machine) -> Result<Machine, CliError> {
    let Some(file) = machine.matrix.as_ref().map(|m| description.with_file_name(&m.file)) else {
        return Ok(machine);
    };
    matrix::describe(machine, read_matrix(&file)?).map_err(|e| CliError::malformed(&file, MATRIX, e))
}

/// Reads a matrix from CSV, compressed by gzip or not.
pub fn read_matrix(file: &Path) -> Result<Readout, CliError> {
    let text = || {
        let mut reader = BufReader::new(std::fs::File::open(file)?);
        match reader.fill_buf()?.starts_with(&GZIP) {
            true => lineweave::sysfile::text_of(GzDecoder::new(reader)),
            false => lineweave::sysfile::text_of(reader),
        }
    };
    let text = text().map_err(|e| CliError::read(file, MATRIX, e))?;
    matrix::read(&text).map_err(|e| CliError::malformed(file, MATRIX, e))
}

/// Returns sentences that say which of a machine's costs come from its matrix, and which were assumed.
pub fn told(machine: &Machine) -> Vec<String> {
    let (Some(measured), Some(file)) = (&machine.measured, &machine.matrix) else { return Vec::new() };
    let levels = matrix::costs(&measured.matrix, &measured.topology);
    let level = |cost: &matrix::LevelCost| {
        let away = cost.away.map(|ns| format!(" ({} away from the line's home)", Nanos(ns)));
        format!("{} {}{}", cost.level, Nanos(cost.median), away.unwrap_or_default())
    };
    let lines: Vec<String> = levels.iter().map(level).collect();
    let mut said = vec![
        format!("of its matrix ({}): a line from the same {}", file.source, lines.join(", ")),
        format!("assumed, since no matrix tells: {}", measured.assumed.join("; ")),
    ];
    said.extend(measured.remarks.iter().map(|remark| format!("remarked of its matrix: {remark}")));
    said
}

fn described(path: &Path) -> Result<Machine, CliError> {
    let text = lineweave::sysfile::text(path).map_err(|e| CliError::read(path, DESCRIPTION, e))?;
    text.parse().map_err(|e| CliError::malformed(path, DESCRIPTION, e))
}

/// Returns the folder of the matrices: installed, `share/lineweave/machines` beside the program's `bin`; otherwise
/// `machines/matrices` of the sources that the program was built in, or of those in the current directory.
fn folder() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let installed = program.parent()?.with_file_name("share").join("lineweave/machines");
    let here = std::env::current_dir().ok();
    let sources = program.ancestors().chain(here.as_deref().into_iter().flat_map(Path::ancestors));
    let sources = sources.map(|above| above.join("machines/matrices"));
    std::iter::once(installed).chain(sources).find(|folder| folder.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::model::Model;
    use lineweave_core::topology::Level;
    use lineweave_lab::matrix::{costs, csv, describe, read, shape};

    fn all() -> Vec<Machine> {
        let list = beside().unwrap();
        list.into_iter().map(|(path, machine)| with_matrix(&path, machine).unwrap()).collect()
    }

    #[test]
    fn all_34_matrices_are_described_with_who_measured_them() {
        let all = all();
        assert_eq!(all.len(), 34);
        for machine in &all {
            let measured = machine.measured.as_ref().unwrap();
            let cpus = measured.matrix.cpus().len();
            assert_eq!(measured.topology.cpus.len(), cpus, "{}", machine.name);
            assert!(machine.matrix.as_ref().unwrap().source.starts_with("KCORES/"), "{}", machine.name);
            let model = Model::from_machine(machine);
            assert!(model.levels.windows(2).all(|w| w[0].read.value <= w[1].read.value), "{}", machine.name);
            assert!(machine::shipped().iter().all(|m| m.name != machine.name), "{}", machine.name);
            assert!(told(machine)[1].contains("copy_bytes_per_ns"), "{:?}", told(machine));
        }
    }

    /// Checks that the known topology of each product equals the one that follows from its matrix, except for those that the
    /// README of the matrices names.
    #[test]
    fn topologies_of_products_are_those_of_their_matrices() {
        let mut differ = Vec::new();
        for (path, machine) in beside().unwrap() {
            let Some(form) = machine.topology.value.clone() else { continue };
            let measured = with_matrix(&path, machine.clone()).unwrap().measured.unwrap();
            let alone = lineweave_lab::matrix::synthetic(&shape(&measured.matrix).unwrap().topology);
            if alone.as_deref() != Some(&form.replace("l2:", "l3:")) {
                differ.push((machine.name, alone.unwrap_or_default()));
            }
        }
        let expected = [
            // The first pairs were timed so badly that two caches look like one.
            ("dual-epyc-7601", ""),
            // Eight threads of two cores differ by less than a step of the clock.
            ("dual-power9-8335-gth", "pack:2 numa:1 l3:1 core:8 pu:8"),
            // Two dies are named packages where nothing else is known.
            ("kunpeng-920-6426", "pack:2 numa:1 l3:1 core:32 pu:1"),
        ];
        assert_eq!(differ, expected.map(|(name, form)| (name.to_owned(), form.to_owned())));
    }

    #[test]
    fn classes_are_the_same_after_export_and_import() {
        for machine in all() {
            let matrix = &machine.measured.as_ref().unwrap().matrix;
            let again = read(&csv(matrix)).unwrap();
            assert_eq!(again.remarks, [""; 0], "{}", machine.name);
            assert_eq!(&again.matrix, matrix, "{}", machine.name);
            let (one, two) = (shape(matrix).unwrap(), shape(&again.matrix).unwrap());
            assert_eq!((one.classes, one.topology), (two.classes, two.topology), "{}", machine.name);
            let described = describe(machine.clone(), again).unwrap();
            assert_eq!(described.transfer, machine.transfer, "{}", machine.name);
        }
    }

    /// Checks descriptions of the same machine from prose: their values are the matrix's, and where a flag's home matters, both
    /// are there.
    #[test]
    fn descriptions_of_the_same_machines_agree_with_their_matrices() {
        for (described, measured) in [
            ("altra-q80-30", "ampere-altra-q80-30"),
            ("broadwell-e5-2680v4-2s", "dual-xeon-e5-2680-v4"),
            ("cascade-lake-6242-2s", "dual-xeon-6242"),
            ("epyc-genoa-9654-2s", "dual-epyc-9654"),
            ("epyc-milan-7763-2s", "dual-epyc-7763"),
            ("epyc-rome-7742-2s", "dual-epyc-7742"),
            ("graviton2", "aws-graviton2"),
            ("graviton3", "aws-graviton3"),
            ("ice-lake-8375c-2s", "dual-xeon-8375c"),
            ("knights-landing-7210", "xeon-phi-7210"),
            ("power9-2s", "dual-power9-8335-gth"),
        ] {
            let (described, measured) = (load(described).unwrap(), load(measured).unwrap());
            let found = measured.measured.as_ref().unwrap();
            for cost in costs(&found.matrix, &found.topology) {
                let said = described.transfer(cost.level);
                let Some(value) = said.value else { continue };
                let (low, high) = (said.low.unwrap_or(value), said.high.unwrap_or(value));
                let within = |ns: f64| 0.95 * low <= ns && ns <= 1.05 * high;
                assert!(within(cost.median), "{} {}: {}", described.name, cost.level, cost.median);
                assert!(cost.away.is_none_or(within), "{} {}: {:?}", described.name, cost.level, cost.away);
            }
        }
    }

    #[test]
    fn homes_are_worth_a_factor_on_the_dual_epycs_that_show_it() {
        let mut away: Vec<String> = Vec::new();
        for machine in all() {
            let measured = machine.measured.as_ref().unwrap();
            let numa =
                costs(&measured.matrix, &measured.topology).into_iter().find(|c| c.level == Level::Numa);
            if let Some((near, far)) = numa.and_then(|c| Some((c.median, c.away?))) {
                assert!(far > 1.5 * near, "{}", machine.name);
                away.push(machine.name);
            }
        }
        let known =
            ["7302", "7601", "7702", "7742", "7r13", "9454", "9754"].map(|n| format!("dual-epyc-{n}"));
        assert_eq!(away, known);
    }
}

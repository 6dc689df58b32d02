//! `lineweave profile export`: a matrix of latencies in formats that other tools read.

use crate::error::CliError;
use crate::files::{replace, to_write};
use crate::session::{load_profile, Session};
use lineweave::topology::{Hardware, Source};
use lineweave_core::machine::Matrix;
use lineweave_core::profile::Profile;
use lineweave_core::topology::Topology;
use lineweave_lab::matrix::{csv, hwloc, placed, shape};
use lineweave_lab::models::classes::LatenciesError;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Arguments of `lineweave profile export`.
#[derive(clap::Args, Debug)]
#[group(id = "form", required = true)]
pub(super) struct Export {
    /// As CSV: the lower triangle in ns, as core-to-core-latency prints it
    #[arg(long, group = "form")]
    csv: bool,
    /// As hwloc's XML with distances between CPUs, in whole ns, for `lstopo --distances -i FILE.xml`
    #[arg(long, group = "form")]
    hwloc: bool,
    /// Where to [default: standard output]
    #[arg(long, short, value_name = "FILE", value_parser = to_write)]
    output: Option<PathBuf>,
}

/// The matrix of latencies. Printed as `profile-export` by `lineweave profile export`.
#[derive(Serialize)]
struct Exported {
    file: Option<String>,
    cpus: usize,
    text: Option<String>,
}

/// Writes the matrix of `--machine`, else of `--profile`, else of this machine's profile.
pub(super) fn run(arguments: &Export, session: &mut Session) -> Result<(), CliError> {
    let (matrix, topology) = subject(session)?;
    let text = if arguments.csv { csv(&matrix) } else { hwloc(&matrix, &topology) };
    if let Some(file) = &arguments.output {
        replace(file, &text, "-o")?;
    }
    let file = arguments.output.as_ref().map(|f| f.display().to_string());
    let cpus = matrix.cpus().len();
    match &file {
        Some(file) => session.out.line(&format!("{file}: latencies among {cpus} CPUs"))?,
        None => session.out.text(&text)?,
    }
    let text = file.is_none().then_some(text);
    session.out.object("profile-export", &Exported { file, cpus, text })
}

fn subject(session: &mut Session) -> Result<(Matrix, Topology), CliError> {
    if let Some(machine) = session.machine()? {
        let measured = machine.measured.ok_or(CliError::NoMatrix { name: machine.name })?;
        // Assumed latencies go into the file too, in place of zeros.
        measured.remarks.iter().for_each(|remark| session.out.warn(remark));
        return Ok((measured.matrix, measured.topology));
    }
    let file = match session.profile_option().map(Path::to_owned) {
        Some(file) => file,
        None => session.cached_profile()?.1,
    };
    let (profile, _) = load_profile(&file)?;
    let bad = |e: LatenciesError| CliError::malformed(&file, "profile with the latencies of all pairs", e);
    let matrix = pairs(&profile).map_err(bad)?;
    let found = shape(&matrix).map_err(bad)?.topology;
    let known = Hardware::load(&Source::Synthetic(profile.machine.topology.clone())).map(|h| h.topology);
    let topology = match known {
        Ok(known) if known.cpus.len() == found.cpus.len() => placed(&found, &known),
        _ => found,
    };
    Ok((matrix, topology))
}

/// Returns the cells of probe `pair`; if a pair has several, the last one counts.
fn pairs(profile: &Profile) -> Result<Matrix, LatenciesError> {
    let mut known: BTreeMap<(usize, usize), f64> = BTreeMap::new();
    for cell in profile.probe("pair") {
        let cpu = |name: &str| cell.factors.get(name).and_then(|t| t.parse::<usize>().ok());
        let (Some(a), Some(b)) = (cpu("a"), cpu("b")) else { return Err(LatenciesError::None) };
        known.insert((a.max(b), a.min(b)), cell.stats.median);
    }
    let mut cpus: Vec<usize> = known.keys().flat_map(|&(a, b)| [a, b]).collect();
    cpus.sort_unstable();
    cpus.dedup();
    for (i, &a) in cpus.iter().enumerate() {
        if let Some(&b) = cpus[..i].iter().find(|&&b| !known.contains_key(&(a, b))) {
            return Err(LatenciesError::Missing { a: b, b: a, cpus: cpus.len() });
        }
    }
    match cpus.is_empty() {
        true => Err(LatenciesError::None),
        false => Ok(Matrix::new(&cpus, |i, j| known[&(cpus[i], cpus[j])])),
    }
}

//! Subject of a report: the machine's costs, its CPUs, and its measurements.

use crate::bench::record::KEPT_FILE;
use crate::error::CliError;
use crate::machines;
use crate::session::{choices_beside, load_adopted, load_machine, load_profile, tuning_of, Session};
use lineweave::segment::MAX_RANKS;
use lineweave::settings::Settings;
use lineweave::topology::{Hardware, Source};
use lineweave::tuning::{Origin, Tuning};
use lineweave_core::collective::Collective;
use lineweave_core::machine::{nearest, Machine, Matrix};
use lineweave_core::model::Model;
use lineweave_core::profile::{Fingerprint, Profile};
use lineweave_core::topology::{Level, Topology};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// One measured call of a bench record.
#[derive(Deserialize, Debug)]
pub struct Measured {
    pub collective: Collective,
    pub ranks: usize,
    pub bytes: usize,
    pub team: String,
    pub median_ns: f64,
    pub ci_low_ns: Option<f64>,
    pub ci_high_ns: Option<f64>,
    /// How many times the floor of such calls it takes: an exchange by hand, or copies of memory.
    pub ratio_to_floor: Option<f64>,
    pub algorithm: String,
    pub window_bytes: usize,
}

/// The head of a bench record.
#[derive(Deserialize, Debug)]
pub struct Head {
    pub cpu: String,
    pub fingerprint: String,
    pub topology: String,
    pub measured_at: String,
}

/// A bench record.
#[derive(Debug)]
pub struct Record {
    pub file: PathBuf,
    /// The file's name, as a report may show it.
    pub name: String,
    pub head: Head,
    pub rows: Vec<Measured>,
    /// Calls of other programs that were timed beside it.
    pub others: Vec<Other>,
}

/// A call that another program carried out.
#[derive(Debug)]
pub struct Other {
    /// Name of an MPI or an OpenMP, `pthread`, or `floor` or `hand-floor`: a minimal hand-written exchange.
    pub name: String,
    pub team: Option<String>,
    pub collective: Collective,
    pub ranks: usize,
    pub bytes: usize,
    pub ns: f64,
}

/// The fields of a record's line that describe another program's call.
#[derive(Deserialize)]
struct OtherLine {
    subject: Option<String>,
    mpi: Option<String>,
    team: Option<String>,
    #[serde(default)]
    lineweave: bool,
    collective: Collective,
    ranks: usize,
    #[serde(default)]
    bytes: usize,
    median_ns: f64,
}

/// Subjects of a record that are parts of a call, and not a whole call.
const PIECES: [&str; 2] = ["memcpy", "byte-floor"];

impl Other {
    /// Returns whether the call is the same, in the same kind of team where both have one.
    pub fn is_of(&self, team: Option<&str>, collective: Collective, ranks: usize, bytes: usize) -> bool {
        let alike = self.team.is_none() || team.is_none() || self.team.as_deref() == team;
        alike && (self.collective, self.ranks, self.bytes) == (collective, ranks, bytes)
    }

    /// Returns whether it is no library's, but a minimal exchange by hand.
    pub fn is_floor(&self) -> bool {
        self.name.ends_with("floor")
    }

    /// Adds a line of a record that is of another program; the fastest of its settings counts.
    fn read(value: serde_json::Value, all: &mut Vec<Other>) {
        // Lines without a collective, such as copies of memory, are of no call.
        let Ok(line) = serde_json::from_value::<OtherLine>(value) else { return };
        let calls = |name: &String| {
            !line.lineweave && !name.starts_with("lineweave") && !PIECES.contains(&name.as_str())
        };
        let Some(name) = line.mpi.or(line.subject).filter(calls) else { return };
        let OtherLine { team, collective, ranks, bytes, .. } = line;
        let other = Other { name, team, collective, ranks, bytes, ns: line.median_ns };
        let same =
            |o: &&mut Other| o.name == other.name && o.is_of(other.team.as_deref(), collective, ranks, bytes);
        match all.iter_mut().find(same) {
            Some(there) => there.ns = there.ns.min(other.ns),
            None => all.push(other),
        }
    }
}

/// One call as it was predicted and timed.
#[derive(Debug)]
pub struct Timed {
    pub collective: String,
    pub ranks: usize,
    pub bytes: usize,
    pub team: String,
    /// The algorithm with its parameters.
    pub algorithm: String,
    pub predicted_ns: f64,
    pub measured_ns: f64,
}

/// The subject of a report: a machine with its costs.
#[derive(Debug)]
pub struct Subject {
    /// Name of the machine.
    pub title: String,
    /// Source of the costs.
    pub origin: String,
    /// The tuning by which programs choose there.
    pub tuning: Tuning,
    pub settings: Settings,
    /// True if the subject is the machine that the command runs on.
    pub here: bool,
    pub topology: Topology,
    /// The fingerprint of the machine, if it has a profile.
    pub fingerprint: Option<Fingerprint>,
    /// The profile, with the place and time of its measurement.
    pub profile: Option<Profile>,
    /// The source of a description's topology, and the parameters that its matrix gives.
    pub source: Vec<String>,
    /// The machine, where it is a described one.
    pub machine: Option<Machine>,
    pub record: Option<Record>,
    /// Calls that were played on a simulated machine.
    pub timed: Vec<Timed>,
    /// A sentence about the simulation that played them.
    pub timed_by: Option<String>,
}

impl Subject {
    /// Returns the costs of the machine.
    pub fn model(&self) -> &Model {
        &self.tuning.model
    }

    /// Returns the latencies between each two CPUs, where a description has them.
    pub fn matrix(&self) -> Option<&Matrix> {
        self.machine.as_ref()?.measured.as_ref().map(|measured| &measured.matrix)
    }

    /// Returns the distances that CPUs have from each other, nearest first.
    pub fn levels(&self) -> Vec<Level> {
        let cpus = &self.topology.cpus;
        let at = |level: &Level| {
            // Only pairs with one of the first few CPUs are examined: machines are regular enough.
            cpus.iter().take(8).any(|a| cpus.iter().any(|b| a.os != b.os && a.common(b) == *level))
        };
        Level::ALL.into_iter().filter(at).collect()
    }
}

/// Returns the subject by `--machine`, else `--profile`, else the record's machine, else what this machine's programs
/// use.
pub fn load(record: Option<&Path>, session: &mut Session) -> Result<Subject, CliError> {
    let (settings, _) = session.settings()?;
    let named = session.machine_option().is_some()
        || session.profile_option().is_some()
        || settings.profile.is_some();
    let record = match record {
        Some(file) => Some(read_record(file)?),
        None if !named && settings.topology == Source::Machine => kept_record(session),
        None => None,
    };
    let given = match settings.topology {
        Source::Machine => None,
        Source::Xml(_) | Source::Synthetic(_) => Some(Hardware::load(&settings.topology)?.topology),
    };
    let placed = match &record {
        Some(record) => Some(synthetic(&record.head.topology, &record.file, "bench record with a topology")?),
        None => None,
    };
    let given = given.or(placed);
    if let Some(name) = session.machine_option().map(str::to_owned) {
        return described(&name, given, record, "", settings);
    }
    let asked = session.profile_option().map(Path::to_owned).or(settings.profile.clone());
    let (here, cached) = match session.cached_profile() {
        Ok((fingerprint, file)) => (Some(fingerprint), file.exists().then_some(file)),
        Err(CliError::NoCache) => (None, None),
        Err(other) => return Err(other),
    };
    let elsewhere = |r: &Record| here.as_ref().is_some_and(|f| f.id() != r.head.fingerprint);
    let file = match (asked, &record) {
        (Some(file), _) => Some(file),
        (None, Some(r)) if elsewhere(r) => None,
        (None, _) => cached,
    };
    // Adopted costs are no profile: they stand in for one.
    let adopted = match &file {
        Some(file) => load_adopted(file)?.is_some(),
        None => false,
    };
    if let Some(file) = file.filter(|_| !adopted) {
        let (profile, model) = load_profile(&file)?;
        let topology = match given {
            Some(topology) => topology,
            None => synthetic(&profile.machine.topology, &file, "profile with a topology")?,
        };
        let choices = choices_beside(&file, &profile.machine)?;
        let is_here = here.as_ref().is_some_and(|here| here.id() == profile.machine.id());
        let used = session.profile_option().is_none() && is_here;
        let tuning = match used.then(|| session.costs()) {
            Some(Ok(costs)) => costs.tuning,
            _ => {
                let mut tuning = Tuning::of_model(model, Origin::Profile { file: file.clone() });
                tuning.choices = choices;
                tuning
            }
        };
        return Ok(Subject {
            title: profile.machine.cpu.clone(),
            origin: public(
                &format!("profile {}, measured at {}", file.display(), profile.measured_at),
                std::env::var("HOME").ok(),
            ),
            tuning,
            settings,
            here: is_here,
            topology,
            fingerprint: Some(profile.machine.clone()),
            profile: Some(profile),
            source: Vec::new(),
            machine: None,
            record,
            timed: Vec::new(),
            timed_by: None,
        });
    }
    if let Some(r) = &record {
        let (machine, why) = nearest(&r.head.cpu, std::env::consts::ARCH);
        let name = machine.name.clone();
        return described(
            &name,
            given,
            record,
            &format!(" ({why}; no profile of {name})", name = "the record's machine"),
            settings,
        );
    }
    // Without measurements here, the substitute costs are used on this machine's CPUs.
    let costs = session.costs()?;
    Ok(Subject {
        title: here.as_ref().map_or_else(|| "this machine".to_owned(), |f| f.cpu.clone()),
        origin: public(&costs.origin, std::env::var("HOME").ok()),
        tuning: costs.tuning,
        settings,
        here: true,
        topology: costs.topology,
        fingerprint: here,
        profile: None,
        source: Vec::new(),
        machine: None,
        record: None,
        timed: Vec::new(),
        timed_by: None,
    })
}

/// Returns the subject for the machine that is described by this name, with its costs as described.
pub fn described(
    name: &str,
    given: Option<Topology>,
    record: Option<Record>,
    why: &str,
    settings: Settings,
) -> Result<Subject, CliError> {
    let machine = load_machine(name)?;
    let topology = given.or_else(|| machine.topology());
    let topology = topology.ok_or_else(|| CliError::NoTopology { name: machine.name.clone() })?;
    let status = machine.topology.status.name();
    let form = machine.topology.value.as_deref().unwrap_or("as given");
    let mut source = vec![format!("Topology {form} ({status}: {})", machine.topology.source)];
    source.extend(machines::told(&machine).into_iter().map(|note| format!("Costs {note}")));
    Ok(Subject {
        title: machine.title.clone(),
        origin: format!("machine description {}{why}", machine.name),
        tuning: tuning_of(&machine),
        settings,
        here: false,
        topology,
        fingerprint: None,
        profile: None,
        source,
        machine: Some(machine),
        record,
        timed: Vec::new(),
        timed_by: None,
    })
}

/// Replaces the home directory by `~`: reports are shown to others and must not tell whose home a file is in.
fn public(origin: &str, home: Option<String>) -> String {
    match home.filter(|home| home.len() > 1) {
        Some(home) => origin.replace(&format!("{}/", home.trim_end_matches('/')), "~/"),
        None => origin.to_owned(),
    }
}

fn synthetic(text: &str, file: &Path, what: &'static str) -> Result<Topology, CliError> {
    let hardware = Hardware::load(&Source::Synthetic(text.to_owned()));
    Ok(hardware.map_err(|e| CliError::malformed(file, what, e))?.topology)
}

/// Returns the times that `lineweave bench` kept of this machine. A file that cannot be used is said, and left alone.
fn kept_record(session: &mut Session) -> Option<Record> {
    let (_, profile) = session.cached_profile().ok()?;
    let file = profile.with_file_name(KEPT_FILE);
    let read = match lineweave::cache::text(&file) {
        Ok(text) => text.map(|text| record_of(&text, &file)),
        Err(why) => Some(Err(CliError::malformed(&file, WHAT, why))),
    };
    match read? {
        Ok(record) => Some(record),
        Err(why) => {
            session.out.warn(&format!("{why}; it is set aside"));
            None
        }
    }
}

/// The name of records in messages.
const WHAT: &str = "bench record";

fn read_record(file: &Path) -> Result<Record, CliError> {
    record_of(&lineweave::sysfile::text(file).map_err(|e| CliError::read(file, WHAT, e))?, file)
}

fn record_of(text: &str, file: &Path) -> Result<Record, CliError> {
    let (mut head, mut rows, mut others) = (None, Vec::new(), Vec::new());
    for (i, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
        let bad = |e: serde_json::Error| CliError::malformed(file, WHAT, format!("line {}: {e}", i + 1));
        let value: serde_json::Value = serde_json::from_str(line).map_err(bad)?;
        match (value["kind"].as_str(), value["subject"].as_str()) {
            (Some("record"), _) => head = Some(serde_json::from_value(value).map_err(bad)?),
            (Some("bench"), Some("lineweave")) => {
                let row: Measured = serde_json::from_value(value).map_err(bad)?;
                if !(1..=MAX_RANKS).contains(&row.ranks) {
                    let found =
                        format!("line {}: {} ranks, and a team has 1 to {MAX_RANKS}", i + 1, row.ranks);
                    return Err(CliError::malformed(file, WHAT, found));
                }
                rows.push(row);
            }
            (Some("bench" | "mpi-time"), _) => Other::read(value, &mut others),
            _ => {}
        }
    }
    let head = head.ok_or_else(|| CliError::malformed(file, WHAT, "no line of kind `record`"))?;
    let name = public(&file.display().to_string(), std::env::var("HOME").ok());
    Ok(Record { name, file: file.to_owned(), head, rows, others })
}

/// Returns the question that such a call poses.
pub fn question(
    collective: Collective,
    shape: lineweave_core::topology::Shape,
    bytes: usize,
    direct: bool,
) -> lineweave_core::select::Question {
    lineweave_core::select::Question {
        collective,
        root: 0,
        bytes,
        grain: match collective.folds() {
            true => [8, 4, 2].into_iter().find(|g| bytes.is_multiple_of(*g)).unwrap_or(1),
            false => 1,
        },
        association: lineweave_core::collective::Association::Free,
        direct: direct && collective.moves_data(),
        attach: false,
        box_bytes: Settings::default().box_bytes,
        counter_bytes: usize::MAX,
        acc_bytes: None,
        uneven: None,
        shape,
    }
}

#[cfg(test)]
mod tests {
    use super::public;

    #[test]
    fn a_report_does_not_say_whose_home_a_profile_is_in() {
        let origin = "profile /home/ada/.cache/lineweave/p.toml, measured";
        let home = |path: &str| public(origin, Some(path.to_owned()));
        assert_eq!(home("/home/ada"), "profile ~/.cache/lineweave/p.toml, measured");
        assert_eq!(home("/home/ada/"), home("/home/ada"));
        assert_eq!([home("/home/ad"), home("/"), public(origin, None)], [origin; 3]);
    }
}

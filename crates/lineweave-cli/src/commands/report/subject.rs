//! Subject of a report: the machine's costs, its CPUs, and its measurements.

use super::record::{self, public, Record};
use crate::error::CliError;
use crate::machines;
use crate::question::grain;
use crate::session::{choices_beside, load_adopted, load_profile, tuning_of, Session};
use lineweave::settings::Settings;
use lineweave::topology::{Hardware, Source};
use lineweave::tuning::{Origin, Tuning};
use lineweave_core::collective::Collective;
use lineweave_core::machine::{nearest, Machine, Matrix};
use lineweave_core::model::Model;
use lineweave_core::profile::{Fingerprint, Profile};
use lineweave_core::select::Question;
use lineweave_core::topology::{Level, Shape, Topology};
use std::path::Path;

/// One call as it was predicted and timed.
#[derive(Clone, Debug)]
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
    /// Returns a nameless machine elsewhere that chooses so, without measurements or description.
    fn of(tuning: Tuning, topology: Topology, settings: Settings) -> Subject {
        Subject {
            title: String::new(),
            origin: String::new(),
            tuning,
            settings,
            here: false,
            topology,
            fingerprint: None,
            profile: None,
            source: Vec::new(),
            machine: None,
            record: None,
            timed: Vec::new(),
            timed_by: None,
        }
    }

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
        Some(file) => Some(record::read(file)?),
        None if !named && settings.topology == Source::Machine => record::kept(session),
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
    if let Some(machine) = session.machine()? {
        return described(machine, given, record, "", settings);
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
            here: is_here,
            fingerprint: Some(profile.machine.clone()),
            profile: Some(profile),
            record,
            ..Subject::of(tuning, topology, settings)
        });
    }
    if let Some(r) = &record {
        let (machine, why) = nearest(&r.head.cpu, std::env::consts::ARCH);
        let why = format!(" ({why}; no profile of the record's machine)");
        return described(machine.clone(), given, record, &why, settings);
    }
    // Without measurements here, the substitute costs are used on this machine's CPUs.
    let costs = session.costs()?;
    Ok(Subject {
        title: here.as_ref().map_or_else(|| "this machine".to_owned(), |f| f.cpu.clone()),
        origin: public(&costs.origin, std::env::var("HOME").ok()),
        here: true,
        fingerprint: here,
        ..Subject::of(costs.tuning, costs.topology, settings)
    })
}

/// Returns the subject for a described machine, with its costs as described.
pub fn described(
    machine: Machine,
    given: Option<Topology>,
    record: Option<Record>,
    why: &str,
    settings: Settings,
) -> Result<Subject, CliError> {
    let topology = given.map_or_else(|| machines::topology(&machine), Ok)?;
    let tuning = tuning_of(&machine);
    let status = machine.topology.status.name();
    let form = machine.topology.value.as_deref().unwrap_or("as given");
    let mut source = vec![format!("Topology {form} ({status}: {})", machine.topology.source)];
    source.extend(machines::told(&machine).into_iter().map(|note| format!("Costs {note}")));
    Ok(Subject {
        title: machine.title.clone(),
        origin: format!("machine description {}{why}", machine.name),
        source,
        machine: Some(machine),
        record,
        ..Subject::of(tuning, topology, settings)
    })
}

fn synthetic(text: &str, file: &Path, what: &'static str) -> Result<Topology, CliError> {
    let hardware = Hardware::load(&Source::Synthetic(text.to_owned()));
    Ok(hardware.map_err(|e| CliError::malformed(file, what, e))?.topology)
}

/// Returns the question that such a call poses.
pub fn question(collective: Collective, shape: Shape, bytes: usize, direct: bool) -> Question {
    let ranks = shape.ranks();
    Question {
        shape,
        direct: direct && collective.moves_data(),
        box_bytes: Settings::default().box_bytes,
        ..Question::flat(collective, ranks, bytes, grain(collective, &[bytes]))
    }
}

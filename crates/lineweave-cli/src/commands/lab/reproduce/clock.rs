//! The clock that times the points of a study: this machine, or a described one in virtual time.

use super::others::Others;
use crate::commands::lab::teams::{self, question};
use crate::commands::measure::{probed, probes};
use crate::error::CliError;
use crate::node;
use crate::session::Session;
use lineweave::settings::Settings;
use lineweave_core::algorithm::find;
use lineweave_core::collective::Collective;
use lineweave_core::machine::Machine;
use lineweave_core::model::Values;
use lineweave_core::profile::{Fingerprint, Profile, Stats};
use lineweave_core::select::Question;
use lineweave_core::topology::{Placement, Shape};
use lineweave_core::units::Nanos;
use lineweave_lab::closed_form::window;
use lineweave_lab::reproduce::{put_get, By, Point, Task};
use lineweave_lab::simulate::measuring::{self, recovered, Recovered};
use lineweave_lab::simulate::mesh::{FlagCost, Settings as MeshSettings};
use lineweave_lab::simulate::{coherent, simulate, Fidelity, Options, SimulateError};
use lineweave_tune::trial::{Trial, TrialTeam, TrialTeamError, Way};
use std::time::Duration;

/// Fewest windows of each point; a point with a wide interval gets more.
pub const ROUNDS: usize = 3;
const MOST_ROUNDS: usize = 24;
/// Time for which programs wait for a CPU in a round of some 10 ms, from which on it is set aside as disturbed.
const WAITED: Duration = Duration::from_micros(500);
/// Runs in virtual time: a first one by itself, and one that follows it.
const RUNS: usize = 2;

/// Longest message in bytes that is simulated line by line.
const LINE_BY_LINE: usize = 16 << 10;

/// The machine that points are timed on.
pub enum Clock {
    /// This machine; the team of the last point is kept for the next.
    Here {
        settings: Box<Settings>,
        fingerprint: Box<Fingerprint>,
        team: Option<((usize, bool, Placement), TrialTeam)>,
        others: Box<Others>,
    },
    /// A described machine, in virtual time.
    Described(Box<Machine>),
}

impl Clock {
    /// Returns the profile that the probes measure.
    pub fn profile(&self, quick: bool, session: &mut Session) -> Result<Profile, CliError> {
        let settings = match self {
            Clock::Described(machine) => return Ok(measuring::measure(machine)?),
            Clock::Here { settings, .. } => settings,
        };
        probed(&probes(settings, quick)?, session, |progress| format!("probes: {}", progress.cell))
    }

    /// Returns whether a profile is of this machine.
    pub fn owns(&self, profile: &Profile) -> bool {
        match self {
            Clock::Here { fingerprint, .. } => profile.machine == **fingerprint,
            Clock::Described(machine) => profile.machine.cpu == format!("simulated {}", machine.name),
        }
    }

    /// Returns the parameters of a description as a fit recovers them; `None` on this machine, whose true parameters
    /// are unknown.
    pub fn recovered(&self, profile: &Profile) -> Option<String> {
        let Clock::Described(machine) = self else { return None };
        let model = lineweave_core::model::fit(profile).ok()?;
        said(&recovered(machine, &model))
    }

    /// Returns the points that puts and gets of a described mesh are, and its parameters as these give them back.
    pub fn mesh(&self) -> Result<(Option<String>, Vec<Point>), SimulateError> {
        let Clock::Described(machine) = self else { return Ok((None, Vec::new())) };
        let (recovered, points) = put_get(machine)?;
        Ok((said(&recovered), points))
    }

    /// Measures one point, or returns `None` where its plan is refused.
    pub fn point(&mut self, task: &Task, session: &mut Session) -> Result<Option<Point>, CliError> {
        match self {
            Clock::Described(machine) => Ok(in_virtual_time(machine, task)),
            Clock::Here { others, .. } if matches!(task.by, By::Peer | By::Mpi) => Ok(others.point(task)),
            Clock::Here { settings, team, .. } => {
                let wanted = (task.ranks, task.by == By::Processes, task.place);
                if team.as_ref().is_none_or(|(kind, _)| *kind != wanted) {
                    *team = None;
                }
                let (_, crew) = match team {
                    Some(team) => team,
                    None => team.insert((wanted, teams::team(wanted.0, wanted.1, wanted.2, session)?)),
                };
                on(crew, task, settings)
            }
        }
    }
}

fn said(list: &[Recovered]) -> Option<String> {
    let each = |r: &Recovered| format!("{} {} ({:+.1} %)", r.name, Nanos(r.found), 100.0 * r.off());
    let list: Vec<String> = list.iter().map(each).collect();
    (!list.is_empty()).then(|| format!("fitted, and how far off the description: {}", list.join(", ")))
}

/// Times one point with a team on this machine.
fn on(crew: &mut TrialTeam, task: &Task, settings: &Settings) -> Result<Option<Point>, CliError> {
    let lengths = task.lengths();
    let bytes = lengths.iter().copied().max().unwrap_or(task.bytes);
    let question =
        Question { root: task.root, ..question(task.collective, &Shape::flat(task.ranks), bytes, settings) };
    let algorithm = find(task.collective, &task.spec.name)?;
    let model = Values::default().model();
    let Ok((window, _)) = window(&model, &question, algorithm, &task.spec.params) else { return Ok(None) };
    let way = Way { algorithm: task.spec.name.clone(), params: task.spec.params.clone(), window };
    let (mut quiet, mut busy) = (Rounds::default(), Rounds::default());
    // Barriers cannot overlap.
    let apart = task.alone && task.collective != Collective::Barrier;
    let mut found = None;
    for round in 0..MOST_ROUNDS {
        let (way, root, lengths, check) = (Some(way.clone()), task.root, lengths.clone(), round == 0);
        let asked = Trial { way, check, apart, root, lengths, ..Trial::new(task.collective, bytes) };
        let mut this = Rounds::default();
        let waited = node::waited();
        match crew.run(&asked) {
            Ok(outcome) => (this.calls, this.disturbed) = (outcome.batches_ns, outcome.disturbed),
            Err(TrialTeamError::Refused { .. }) => return Ok(None),
            Err(broken) => return Err(broken.into()),
        }
        if apart {
            this.barriers = crew.run(&Trial::new(Collective::Barrier, 0))?.batches_ns;
        }
        match waited.is_some_and(|before| node::waited().is_some_and(|now| now - before > WAITED)) {
            true => busy.add(this),
            false => quiet.add(this),
        }
        if round + 1 < ROUNDS {
            continue;
        }
        found = match quiet.calls.is_empty() {
            true => busy.point(task, 0).map(|point| Point { busy: true, ..point }),
            false => quiet.point(task, busy.calls.len() + busy.disturbed),
        };
        if found.as_ref().is_some_and(Point::is_steady) {
            break;
        }
    }
    Ok(found)
}

/// Samples of some rounds.
#[derive(Default)]
struct Rounds {
    calls: Vec<f64>,
    barriers: Vec<f64>,
    disturbed: usize,
}

impl Rounds {
    fn add(&mut self, other: Rounds) {
        self.calls.extend(other.calls);
        self.barriers.extend(other.barriers);
        self.disturbed += other.disturbed;
    }

    /// The point of these rounds, less barriers where these follow calls; `aside` samples are of other rounds.
    fn point(&self, task: &Task, aside: usize) -> Option<Point> {
        let barrier = Stats::of(&self.barriers, 0).map_or(0.0, |s| s.median);
        let alone: Vec<f64> = self.calls.iter().map(|ns| (ns - barrier).max(0.0)).collect();
        Point::of(task, &alone, self.disturbed + aside)
    }
}

/// Simulates one point on a described machine; returns `None` where the plan does not fit the machine.
fn in_virtual_time(machine: &Machine, task: &Task) -> Option<Point> {
    let shape = match machine.coherent {
        Some(_) => coherent::placed_by(machine, task.ranks, task.place).ok()?,
        None => Shape::flat(task.ranks),
    };
    let mut task = task.clone();
    if let Some(columns) = machine.mesh.as_ref().and_then(|m| m.network.columns.value) {
        if task.spec.name == "noc-msg" {
            task.spec.params = task.spec.params.with("columns", columns as usize);
        }
    }
    let plan = task.plan(shape, if task.collective.folds() { 8 } else { 1 }).ok()?;
    let fidelity = if plan.bytes > LINE_BY_LINE { Fidelity::Chunk } else { Fidelity::Line };
    // Flags of a byte leave room for the papers' chunks in the buffers of a mesh.
    let mesh = MeshSettings { flags: FlagCost::Byte, ..MeshSettings::default() };
    let options = Options { runs: RUNS, fidelity, mesh, ..Options::default() };
    let outcome = simulate(machine, &plan, &options).ok()?;
    let time = if task.alone { outcome.first } else { outcome.each };
    Point::of(&task, &[time.nanos()], 0)
}

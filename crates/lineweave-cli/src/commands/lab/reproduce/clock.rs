//! The clock that times the points of a study: this machine, or a described one in virtual time.

use crate::commands::lab::teams::{self, question};
use crate::commands::measure::{probed, probes};
use crate::error::CliError;
use crate::session::Session;
use lineweave::settings::Settings;
use lineweave_core::algorithm::{find, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::machine::Machine;
use lineweave_core::model::Values;
use lineweave_core::profile::{Profile, Stats};
use lineweave_core::topology::{Placement, Shape};
use lineweave_core::units::Nanos;
use lineweave_lab::closed_form::window;
use lineweave_lab::reproduce::{Point, Task};
use lineweave_lab::simulate::measuring::{self, recovered, Recovered};
use lineweave_lab::simulate::{coherent, simulate, Options};
use lineweave_tune::trial::{Trial, TrialTeam, TrialTeamError, Way};

/// Fewest windows of each point; a point with a wide interval gets more.
pub const ROUNDS: usize = 3;
const MOST_ROUNDS: usize = 24;
/// Runs in virtual time: a first one by itself, and one that follows it.
const RUNS: usize = 2;

/// The machine that points are timed on.
pub enum Clock {
    /// This machine; the team of the last point is kept for the next.
    Here { settings: Box<Settings>, team: Option<((usize, bool), TrialTeam)> },
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

    /// Returns the parameters of a description as a fit recovers them; `None` on this machine, whose true parameters
    /// are unknown.
    pub fn recovered(&self, profile: &Profile) -> Option<String> {
        let Clock::Described(machine) = self else { return None };
        let model = lineweave_core::model::fit(profile).ok()?;
        let each = |r: &Recovered| {
            format!("{} {} ({:+.1} %)", r.name, Nanos(r.found), 100.0 * (r.found / r.described - 1.0))
        };
        let list: Vec<String> = recovered(machine, &model).iter().map(each).collect();
        (!list.is_empty()).then(|| format!("fitted, and how far off the description: {}", list.join(", ")))
    }

    /// Measures one point, or returns `None` where its plan is refused.
    pub fn point(&mut self, task: &Task, session: &mut Session) -> Result<Option<Point>, CliError> {
        match self {
            Clock::Described(machine) => Ok(in_virtual_time(machine, task)),
            Clock::Here { settings, team } => {
                let wanted = (task.ranks, task.processes);
                if team.as_ref().is_none_or(|(kind, _)| *kind != wanted) {
                    *team = None;
                }
                let (_, crew) = match team {
                    Some(team) => team,
                    None => team.insert((wanted, teams::team(task.ranks, task.processes, session)?)),
                };
                on(crew, task, settings)
            }
        }
    }
}

/// Times one point with a team on this machine.
fn on(crew: &mut TrialTeam, task: &Task, settings: &Settings) -> Result<Option<Point>, CliError> {
    let question = question(task.collective, &Shape::flat(task.ranks), task.bytes, settings);
    let algorithm = find(task.collective, &task.spec.name)?;
    let model = Values::default().model();
    let Ok((window, _)) = window(&model, &question, algorithm, &task.spec.params) else { return Ok(None) };
    let way = Way { algorithm: task.spec.name.clone(), params: task.spec.params.clone(), window };
    let (mut times, mut barriers, mut disturbed) = (Vec::new(), Vec::new(), 0);
    let mut found = None;
    for round in 0..MOST_ROUNDS {
        let (check, apart) = (round == 0, task.alone());
        let asked = Trial { way: Some(way.clone()), check, apart, ..Trial::new(task.collective, task.bytes) };
        match crew.run(&asked) {
            Ok(outcome) => {
                times.extend(outcome.batches_ns);
                disturbed += outcome.disturbed;
            }
            Err(TrialTeamError::Refused { .. }) => return Ok(None),
            Err(broken) => return Err(broken.into()),
        }
        if apart {
            barriers.extend(crew.run(&Trial::new(Collective::Barrier, 0))?.batches_ns);
        }
        if round + 1 < ROUNDS {
            continue;
        }
        let barrier = Stats::of(&barriers, 0).map_or(0.0, |s| s.median);
        let alone: Vec<f64> = times.iter().map(|ns| (ns - barrier).max(0.0)).collect();
        found = Stats::of(&alone, disturbed).map(|stats| Point::of(task, &stats));
        if found.as_ref().is_some_and(Point::is_steady) {
            break;
        }
    }
    Ok(found)
}

/// Simulates one point on a described machine, with a rank on each core; returns `None` where the plan does not fit the
/// machine.
fn in_virtual_time(machine: &Machine, task: &Task) -> Option<Point> {
    let shape = match machine.coherent {
        Some(_) => coherent::placed_by(machine, task.ranks, Placement::Core).ok()?,
        None => Shape::flat(task.ranks),
    };
    let mut problem = Problem::flat(task.collective, task.ranks, task.bytes);
    problem.shape = shape;
    problem.grain = if task.collective.folds() { 8 } else { 1 };
    let plan = find(task.collective, &task.spec.name).ok()?.plan(&problem, &task.spec.params).ok()?;
    let outcome = simulate(machine, &plan, &Options { runs: RUNS, ..Options::default() }).ok()?;
    let time = if task.alone() { outcome.first } else { outcome.each };
    Stats::of(&[time.nanos()], 0).map(|stats| Point::of(task, &stats))
}

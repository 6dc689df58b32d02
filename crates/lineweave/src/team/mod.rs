//! Teams: the ranks that share a segment, as threads of this process or as processes.
//!
//! The creator decides once, for all ranks, where they sit, how they wait and by which model plans are
//! chosen, and writes that into the segment as the team's [`TeamConfig`]. Ranks that decide alike cannot choose
//! different plans.

mod rendezvous;
mod host;
mod launch;
mod local;
mod meeting;
mod members;
mod processes;

pub use crate::config::TeamConfig;
pub use host::{connect, connect_while, Host};
pub use launch::Failed;
pub use meeting::{meet, Meeting};
pub use members::Members;
pub use processes::{from_environment, members_from_environment, RANK_VARIABLE, TEAM_VARIABLE};

use crate::affinity;
use crate::choose::PlanSelector;
use crate::communicator::Communicator;
use crate::engine::{Options, ProcessGroup};
use crate::error::{Error, Loss};
use crate::kernel::panic_text;
use crate::segment::{Geometry, Segment};
use crate::settings::Settings;
use std::sync::Arc;
use std::time::Duration;

/// Longest wait of a rank for the others to join.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Returns a patience with others that are to come: this one, or what `LINEWEAVE_TIMEOUT` says where that is shorter.
pub fn bounded(patience: Duration) -> Duration {
    let timeout = Settings::from_environment().ok().and_then(|(settings, _)| settings.timeout);
    timeout.map_or(patience, |timeout| timeout.min(patience))
}

/// A team that its ranks have not joined yet. They are threads that it starts ([`Team::threads`]) or that the program has
/// ([`Team::members`]), processes that it starts ([`Team::launch`], [`Team::spawn`]), or processes that come to it ([`Host`]).
///
/// ```
/// use lineweave::settings::{Settings, Wait};
/// use lineweave::team::{TeamConfig, Team};
/// // As `Team::new(3)`, with a setting of the program's own.
/// let settings = Settings { wait: Wait::Sleep, ..Settings::default() };
/// let team = Team::with(TeamConfig::new(3, &settings)?)?;
/// let ranks = team.threads(|mut comm| {
///     comm.barrier()?;
///     Ok(comm.rank())
/// })?;
/// assert_eq!(ranks, [0, 1, 2]);
/// # Ok::<(), lineweave::Error>(())
/// ```
#[derive(Debug)]
pub struct Team {
    segment: Arc<Segment>,
    config: TeamConfig,
}

/// Runs `f` on `ranks` threads that form a team, with the settings of the environment, and returns what each
/// returned, by rank.
///
/// # Errors
/// The errors of [`Team::new`] and [`Team::threads`].
///
/// ```
/// let sums = lineweave::team::threads(4, |mut comm| {
///     let mut sum = [comm.rank() as u64];
///     comm.allreduce_in_place(&mut sum, lineweave::Operator::Sum)?;
///     Ok(sum[0])
/// })?;
/// assert_eq!(sums, [6; 4]);
/// # Ok::<(), lineweave::Error>(())
/// ```
pub fn threads<T: Send>(
    ranks: usize,
    f: impl Fn(Communicator) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    Team::new(ranks)?.threads(f)
}

impl Team {
    /// A team of `ranks` ranks on this machine, with the settings of the environment.
    ///
    /// # Errors
    /// [`Error::TeamSize`], [`Error::Memory`], and what reading settings and topology can end with.
    pub fn new(ranks: usize) -> Result<Team, Error> {
        Team::with(TeamConfig::from_environment(ranks)?)
    }

    /// A team by a configuration.
    ///
    /// # Errors
    /// [`Error::TeamSize`], [`Error::Memory`], [`Error::System`].
    pub fn with(config: TeamConfig) -> Result<Team, Error> {
        let blob = config.to_bytes();
        let geometry = Geometry::new(config.ranks(), config.box_bytes, blob.len());
        let segment = Segment::of_geometry(geometry.with_late_banks(config.late_banks), &blob)?;
        Ok(Team { segment: Arc::new(segment), config })
    }

    /// The configuration.
    pub fn config(&self) -> &TeamConfig {
        &self.config
    }

    /// Runs `f` on one thread a rank and returns what each returned, by rank. Threads reach each other's
    /// buffers, so plans may be `direct`.
    ///
    /// # Errors
    /// The error of the first rank that failed by itself: [`Error::Panicked`], or what `f` returned; the
    /// consequence for others ([`Error::PeerLost`], [`Error::NotMade`]) only when there is no such rank.
    pub fn threads<T: Send>(
        self,
        f: impl Fn(Communicator) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let Team { segment, mut config } = self;
        config.direct = true;
        let group = Arc::new(ProcessGroup::default());
        let (f, config, segment, group) = (&f, &config, &segment, &group);
        let results: Vec<Result<T, Error>> = std::thread::scope(|scope| {
            let handles: Vec<_> = (0..config.ranks())
                .map(|rank| {
                    let run = move || f(join(Arc::clone(segment), config, rank, Arc::clone(group))?);
                    std::thread::Builder::new().spawn_scoped(scope, run).map_err(|e| {
                        // Those that were started do not wait for it.
                        segment.set_failed(rank, Loss::Failed);
                        let what = format!("starting the thread of rank {rank} (clone)");
                        Error::system(
                            what,
                            e,
                            "; use fewer ranks, or raise `ulimit -u` or the container's limit",
                        )
                    })
                })
                .collect();
            type Handle<'a, T> = Result<std::thread::ScopedJoinHandle<'a, Result<T, Error>>, Error>;
            let outcome = |(rank, handle): (usize, Handle<'_, T>)| {
                handle?.join().unwrap_or_else(|panic| {
                    Err(Error::Panicked { rank, message: panic_text(panic.as_ref()) })
                })
            };
            handles.into_iter().enumerate().map(outcome).collect()
        });
        first_cause(results)
    }
}

/// All results, or the error that caused the others.
fn first_cause<T>(results: Vec<Result<T, Error>>) -> Result<Vec<T>, Error> {
    let mut values = Vec::with_capacity(results.len());
    let mut consequence = None;
    for result in results {
        match result {
            Ok(value) => values.push(value),
            Err(e @ (Error::PeerLost { .. } | Error::NotMade { .. } | Error::Failed(_))) => {
                consequence = consequence.or(Some(e))
            }
            Err(cause) => return Err(cause),
        }
    }
    consequence.map_or(Ok(values), Err)
}

/// Joins as `rank`: binds this thread, if the configuration says so and the system lets it, and waits for the others.
fn join(
    segment: Arc<Segment>,
    config: &TeamConfig,
    rank: usize,
    group: Arc<ProcessGroup>,
) -> Result<Communicator, Error> {
    if config.bind {
        // Refusal is no failure: ranks then run where the system puts them, and `lineweave info` says so.
        let _ = affinity::bind(config.cpus[rank].os);
    }
    let held = affinity::is_held_on(config.cpus[rank].os);
    let budget = config.tuning.wait_budget(config.wait, config.ranks(), config.usable);
    let options = Options {
        budget: if held { budget } else { budget.on_any_cpu(config.wait) },
        limits: config.limits(),
        copy: config.tuning.copy_policy(),
        progress_thread: config.threads.progress,
    };
    let selector = PlanSelector::new(config, held);
    Communicator::join(segment, rank, options, selector, group, PATIENCE)
}

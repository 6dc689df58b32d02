//! The teams that run on this machine, seen from outside: which rank is in which call, since when, and for whom it
//! waits. Teams are found by the descriptors of their memory in `/proc`, so a hung one is found like any other.

use crate::error::{Error, Loss};
use crate::process;
pub use crate::process::ThreadState;
pub use crate::segment::{Awaited, ObservedRank, RankState, WaitNote};
use crate::segment::{Observed, MEMFD_NAME};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

/// A team, or a communicator made from one, as it was at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct TeamView {
    /// The number of its memory's file, the same for all of its processes.
    pub id: u64,
    /// Offset of the team or communicator in that memory: 0 for a team; of a communicator, the same as long as it exists.
    pub at: u64,
    /// Processes that hold its memory; of a communicator made from a team those of its ranks.
    pub pids: Vec<u32>,
    /// Bytes of memory in use by the team and all communicators made from it.
    pub memory_bytes: u64,
    /// Those of them that freed communicators took, kept for others; told of the team alone.
    pub idle_bytes: u64,
    /// The rank whose loss ended it.
    pub failed: Option<(usize, Loss)>,
    /// Every rank.
    pub ranks: Vec<RankView>,
}

/// A rank as it was at one moment.
#[derive(Clone, PartialEq, Debug)]
pub struct RankView {
    /// State that the rank itself reports.
    pub says: ObservedRank,
    /// State of the rank's thread as the kernel reports it, unless the thread is gone.
    pub thread: Option<ThreadState>,
    /// Time that the rank has been waiting, if it waits.
    pub waiting: Option<Duration>,
    /// For whom: the ranks that have not begun the call that it is in, and none when all have; or the other end of a
    /// message. None for a window's flag, which any rank may set.
    pub waits_for: Vec<usize>,
}

/// Ranks that keep a team from going on, by reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Missing {
    /// Ranks that have not joined.
    NotJoined(Vec<usize>),
    /// Ranks whose process has ended.
    Gone(Vec<usize>),
    /// Ranks whose process is stopped.
    Stopped(Vec<usize>),
    /// Ranks for which others wait, and which are at work outside of lineweave.
    Elsewhere(Vec<usize>),
}

/// The teams of a process, or of all processes that this one may look at, each followed by the communicators made from it
/// that exist now.
///
/// # Errors
/// [`Error::System`] when the process does not exist or belongs to somebody else. Processes that cannot be looked at
/// are passed over when none is named.
///
/// ```
/// let seen = lineweave::team::threads(2, |mut comm| {
///     let teams = lineweave::who::teams(Some(std::process::id()))?;
///     comm.barrier()?; // The team lasts until both have looked.
///     Ok(teams[0].ranks.len())
/// })?;
/// assert_eq!(seen, [2, 2]);
/// # Ok::<(), lineweave::Error>(())
/// ```
pub fn teams(pid: Option<u32>) -> Result<Vec<TeamView>, Error> {
    let pids = match pid {
        Some(pid) => vec![pid],
        None => crate::sysfile::Root::live().numbered("/proc", "").into_iter().map(|p| p as u32).collect(),
    };
    let mut files: BTreeMap<(u64, u64), (PathBuf, Vec<u32>)> = BTreeMap::new();
    for of in pids {
        match memories(of) {
            Ok(found) => {
                for (key, path) in found {
                    let (_, holders) = files.entry(key).or_insert_with(|| (path, Vec::new()));
                    holders.push(of);
                }
            }
            Err(e) if pid.is_some() => {
                let advice = "; give the number of a running process of your own";
                return Err(Error::system(format!("looking at process {of}"), e, advice));
            }
            Err(_) => {}
        }
    }
    let now = process::monotonic_ns();
    let mut teams = Vec::new();
    for ((_, id), (path, mut pids)) in files {
        // It may have ended meanwhile, or be of another version: then it is not among what can be shown.
        let Ok(file) = File::open(path) else { continue };
        let Ok(seen) = Observed::read(&file) else { continue };
        pids.sort_unstable();
        pids.dedup();
        // A team that all ranks have left is only the place where its communicators live on.
        let there = seen.into_iter().filter(|seen| !seen.over);
        teams.extend(there.map(|seen| TeamView::of(id, pids.clone(), seen, now)));
    }
    Ok(teams)
}

/// The team memories that a process has open: device and number of the file, and a path to it.
fn memories(pid: u32) -> std::io::Result<Vec<((u64, u64), PathBuf)>> {
    let wanted = format!("/memfd:{MEMFD_NAME} (deleted)");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(format!("/proc/{pid}/fd"))? {
        // Descriptors come and go while they are listed.
        let Ok(entry) = entry else { continue };
        let Ok(target) = std::fs::read_link(entry.path()) else { continue };
        if target.as_os_str() == wanted.as_str() {
            if let Ok(meta) = std::fs::metadata(entry.path()) {
                found.push(((meta.dev(), meta.ino()), entry.path()));
            }
        }
    }
    Ok(found)
}

impl TeamView {
    fn of(id: u64, mut pids: Vec<u32>, seen: Observed, now_ns: u64) -> TeamView {
        if seen.at > 0 {
            pids = seen.ranks.iter().map(|r| r.pid).filter(|&pid| pid != 0).collect();
            pids.sort_unstable();
            pids.dedup();
        }
        let sequences: Vec<u64> = seen.ranks.iter().map(|r| r.sequence).collect();
        let view = |says: ObservedRank| {
            let waits_for = match says.waiting.as_ref().map(|note| (note.awaited, note.sequence)) {
                Some((Awaited::Call, call)) => {
                    (0..sequences.len()).filter(|&q| sequences[q] < call).collect()
                }
                Some((Awaited::Rank(rank), _)) => vec![rank],
                Some((Awaited::Flag, _)) | None => Vec::new(),
            };
            RankView {
                thread: process::thread(says.pid, says.thread),
                waiting: says
                    .waiting
                    .as_ref()
                    .map(|n| Duration::from_nanos(now_ns.saturating_sub(n.since_ns))),
                waits_for,
                says,
            }
        };
        let ranks = seen.ranks.into_iter().map(view).collect();
        let Observed { at, memory_bytes, idle_bytes, failed, .. } = seen;
        TeamView { id, at, pids, memory_bytes, idle_bytes, failed, ranks }
    }

    /// Returns the ranks that keep the team from going on, the plainest reason first. Ranks at work elsewhere count only if others wait for
    /// them.
    pub fn missing(&self) -> Vec<Missing> {
        let active = |r: &RankView| r.says.state == RankState::Active;
        let ranks = |is: &dyn Fn(&RankView) -> bool| -> Vec<usize> {
            (0..self.ranks.len()).filter(|&q| is(&self.ranks[q])).collect()
        };
        let awaited = |q: usize| self.ranks.iter().any(|r| r.waits_for.contains(&q));
        let gone = ranks(&|r| active(r) && process::state(r.says.pid).is_none_or(|s| s == 'Z'));
        let stopped = ranks(&|r| active(r) && process::state(r.says.pid) == Some('T'));
        let elsewhere = (0..self.ranks.len())
            .filter(|&q| {
                awaited(q)
                    && active(&self.ranks[q])
                    && self.ranks[q].waiting.is_none()
                    && !gone.contains(&q)
                    && !stopped.contains(&q)
            })
            .collect();
        [
            Missing::NotJoined(ranks(&|r| r.says.state == RankState::Absent)),
            Missing::Gone(gone),
            Missing::Stopped(stopped),
            Missing::Elsewhere(elsewhere),
        ]
        .into_iter()
        .filter(|m| !m.ranks().is_empty())
        .collect()
    }
}

impl Missing {
    /// The ranks.
    pub fn ranks(&self) -> &[usize] {
        match self {
            Missing::NotJoined(r) | Missing::Gone(r) | Missing::Stopped(r) | Missing::Elsewhere(r) => r,
        }
    }

    /// Returns the reason in words, to follow "rank 3" or "ranks 3,4".
    pub fn about(&self) -> &'static str {
        match self {
            Missing::NotJoined(_) => "not joined yet",
            Missing::Gone(_) => "gone: the process has ended",
            Missing::Stopped(_) => "stopped: `kill -CONT` lets the process go on",
            Missing::Elsewhere(_) => "awaited by others, and not in a call",
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn a_rank_that_stays_away_is_named_with_what_the_others_wait_in() {
        let (go, stay_away) = mpsc::channel::<()>();
        let stay_away = std::sync::Mutex::new(stay_away);
        let view = std::thread::scope(|scope| {
            let team = scope.spawn(|| {
                crate::team::threads(3, |mut comm| {
                    comm.barrier()?;
                    if comm.rank() == 1 {
                        let _ = stay_away.lock().unwrap().recv();
                    }
                    comm.barrier()?;
                    Ok(comm.rank())
                })
            });
            // Teams of other tests run in this process, too, and ranks can wait for each other's first call.
            let second = |r: &RankView| r.says.waiting.as_ref().is_some_and(|note| note.sequence == 2);
            let hung = |t: &TeamView| {
                let waiting: Vec<usize> = (0..t.ranks.len()).filter(|&q| second(&t.ranks[q])).collect();
                t.ranks.len() == 3 && waiting == [0, 2] && t.ranks[1].says.sequence == 1
            };
            let view = std::iter::repeat_with(|| {
                std::thread::sleep(Duration::from_millis(10));
                teams(Some(std::process::id())).unwrap().into_iter().find(hung)
            })
            .take(1000)
            .flatten()
            .next();
            go.send(()).unwrap();
            assert_eq!(team.join().unwrap().unwrap(), [0, 1, 2]);
            view.expect("two ranks that wait")
        });
        assert_eq!(view.pids, [std::process::id()]);
        assert_eq!(view.missing(), [Missing::Elsewhere(vec![1])]);
        for r in [&view.ranks[0], &view.ranks[2]] {
            assert_eq!((r.says.sequence, r.waits_for.as_slice()), (2, [1].as_slice()));
            assert_eq!(r.says.waiting.as_ref().map(|w| w.operation.as_str()), Some("barrier"));
            assert!(r.waiting.unwrap() < Duration::from_secs(60) && r.thread.is_some());
        }
        assert_eq!(view.ranks[1].says.sequence, 1);
    }

    /// Returns the view of a team of this process's threads for which `waits` holds; the threads are let go then.
    fn seen(
        ranks: usize,
        job: impl Fn(&mut crate::Communicator, &dyn Fn()) -> Result<(), Error> + Sync,
        waits: impl Fn(&TeamView) -> bool,
    ) -> TeamView {
        let (go, stay) = mpsc::channel::<()>();
        let stay = std::sync::Mutex::new(stay);
        let view = std::thread::scope(|scope| {
            let team = scope.spawn(|| {
                let stay_away = || stay.lock().unwrap().recv().unwrap_or(());
                crate::team::threads(ranks, |mut comm| job(&mut comm, &stay_away))
            });
            let view = std::iter::repeat_with(|| {
                std::thread::sleep(Duration::from_millis(10));
                teams(Some(std::process::id())).unwrap().into_iter().find(&waits)
            })
            .take(1000)
            .flatten()
            .next();
            go.send(()).unwrap();
            team.join().unwrap().unwrap();
            view
        });
        view.expect("a team that waits")
    }

    fn waits_in(view: &TeamView, rank: usize, operation: &str) -> bool {
        view.ranks
            .get(rank)
            .is_some_and(|r| r.says.waiting.as_ref().is_some_and(|w| w.operation == operation))
    }

    #[test]
    fn a_communicator_made_from_a_team_is_seen_beside_it() {
        let view = seen(
            5,
            |comm, stay_away| {
                // Ranks 3 and 4, the other way round: rank 1 of the part is 3.
                let colour = (comm.rank() > 2).then_some(4);
                let Some(mut part) = comm.split(colour, -(comm.rank() as i64))? else { return Ok(()) };
                if part.rank() == 1 {
                    stay_away();
                }
                let mut words = [1u64, 2];
                part.start(vec![1u64], |b| crate::Operation::bcast(b, 1))?.wait()?;
                part.allgather_in_place(&mut words)
            },
            |t| t.at > 0 && t.ranks.len() == 2 && waits_in(t, 0, "bcast"),
        );
        assert_eq!(
            (view.pids.as_slice(), view.missing()),
            ([std::process::id()].as_slice(), vec![Missing::Elsewhere(vec![1])])
        );
        assert_eq!(view.ranks[0].waits_for, [1]);
    }

    #[test]
    fn a_wait_for_a_message_names_the_other_rank_also_beside_started_calls() {
        for started in [false, true] {
            let view = seen(
                3,
                |comm, stay_away| match comm.rank() {
                    0 => {
                        let call = match started {
                            true => Some(comm.start((), |()| crate::Operation::barrier())?),
                            false => None,
                        };
                        comm.recv(&mut [0u8], 2, 7)?;
                        call.map_or_else(|| comm.barrier(), |call| call.wait())
                    }
                    1 => comm.barrier(),
                    _ => {
                        stay_away();
                        comm.send(&[1u8], 0, 7)?;
                        comm.barrier()
                    }
                },
                |t| t.ranks.len() == 3 && waits_in(t, 0, "recv"),
            );
            assert_eq!(view.ranks[0].waits_for, [2], "beside started calls: {started}");
            assert!(view.missing().contains(&Missing::Elsewhere(vec![2])), "{:?}", view.missing());
        }
    }

    #[test]
    fn a_wait_for_a_flag_names_nobody() {
        let view = seen(
            2,
            |comm, stay_away| {
                comm.window_create(64)?;
                if comm.rank() == 1 {
                    stay_away();
                    return comm.flag_set(0, 3, 1);
                }
                comm.flag_wait(3, 1)
            },
            |t| t.ranks.len() == 2 && waits_in(t, 0, "flag_wait"),
        );
        assert_eq!(view.ranks[0].waits_for, [0usize; 0]);
        assert_eq!(view.missing(), []);
    }

    #[test]
    fn a_process_that_is_not_there_is_an_error() {
        let error = teams(Some(u32::MAX)).unwrap_err().to_string();
        assert!(error.contains("looking at process 4294967295"), "{error}");
    }
}

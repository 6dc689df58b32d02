//! A trial team: it stays alive from trial to trial, so that windows of different subjects can alternate.
//!
//! 1. Every rank sleeps on a line of its own (a channel, or a pipe where ranks are processes) until a trial comes.
//!    While others are measured it costs nothing.
//! 2. All ranks carry out the trial, or read the gauge, and answer, each on its own line.

use super::request::{Outcome, Trial};
use super::window::{Bench, Refused};
use crate::measure::StateSample;
use lineweave::team::{Team, TeamConfig};
use lineweave::Communicator;
use lineweave::Error;
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;

/// A trial that hangs is an error after this long, unless the configuration says otherwise.
const LONGEST_WAIT_MS: u64 = 60_000;

/// Why a crew has no outcome.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum TrialTeamError {
    /// The team could not be set up, or broke.
    #[error(transparent)]
    Team(#[from] Error),
    /// A rank could not do it; the crew is sound.
    #[error("rank {rank}: {why}")]
    Refused {
        /// The rank.
        rank: usize,
        /// In its words.
        why: String,
    },
    /// A rank failed; the crew cannot be used any more.
    #[error("rank {rank} failed: {why}; start a new team")]
    Broken {
        /// The rank.
        rank: usize,
        /// In its words.
        why: String,
    },
}

/// Request to a rank.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum Asked {
    Trial(Trial),
    State,
}

/// Answer of a rank.
#[derive(Debug, Serialize, Deserialize)]
enum Reply {
    Done(Outcome),
    State(StateSample),
    Refused(String),
    Failed(String),
}

/// A rank as its crew sees it.
#[derive(Debug)]
enum Member {
    Thread { trials: Sender<Asked>, replies: Receiver<Reply> },
    Process { child: Child, trials: Option<ChildStdin>, replies: BufReader<ChildStdout> },
}

/// A team that waits for trials.
#[derive(Debug)]
pub struct TrialTeam {
    members: Vec<Member>,
    threads: Option<JoinHandle<Result<Vec<()>, Error>>>,
}

impl TrialTeam {
    /// A crew of threads.
    pub fn threads(config: TeamConfig) -> Result<TrialTeam, TrialTeamError> {
        let team = Team::with(patient(config))?;
        let (mut members, mut ends) = (Vec::new(), Vec::new());
        for _ in 0..team.config().ranks() {
            let (trials, next) = channel::<Asked>();
            let (answer, replies) = channel();
            members.push(Member::Thread { trials, replies });
            ends.push(Mutex::new(Some((next, answer))));
        }
        let threads = std::thread::spawn(move || {
            team.threads(|mut comm| {
                let ends = ends[comm.rank()].lock().unwrap_or_else(PoisonError::into_inner).take();
                let Some((next, answer)) = ends else { return Ok(()) };
                let mut bench = Bench::default();
                for trial in next {
                    let (reply, over) = reply(&mut bench, &mut comm, &trial);
                    if answer.send(reply).is_err() || over {
                        break;
                    }
                }
                Ok(())
            })
        });
        Ok(TrialTeam { members, threads: Some(threads) })
    }

    /// A crew of processes; `command` makes each, which must join by
    /// [`team::from_environment`](lineweave::team::from_environment) and [`serve`] its standard input and output.
    pub fn processes(
        config: TeamConfig,
        mut command: impl FnMut(usize) -> Command,
    ) -> Result<TrialTeam, TrialTeamError> {
        let team = Team::with(patient(config))?;
        let children = team.spawn(|rank| {
            let mut command = command(rank);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            command
        })?;
        let mut members = Vec::new();
        for mut child in children {
            let (Some(trials), Some(replies)) = (child.stdin.take(), child.stdout.take()) else { continue };
            members.push(Member::Process { child, trials: Some(trials), replies: BufReader::new(replies) });
        }
        Ok(TrialTeam { members, threads: None })
    }

    /// Returns whether its ranks reach each other's memory by cross-memory attach.
    pub fn cross_memory(&mut self) -> Result<bool, TrialTeamError> {
        Ok(self.run(&Trial::barriers())?.cross_memory)
    }

    /// Has every rank carry out a trial. The caller sleeps meanwhile.
    pub fn run(&mut self, trial: &Trial) -> Result<Outcome, TrialTeamError> {
        match self.ask(&Asked::Trial(trial.clone()))? {
            Reply::Done(outcome) => Ok(outcome),
            other => {
                Err(TrialTeamError::Broken { rank: 0, why: format!("it answered a trial by {other:?}") })
            }
        }
    }

    /// Has every rank read the gauge.
    pub fn gauge(&mut self) -> Result<StateSample, TrialTeamError> {
        match self.ask(&Asked::State)? {
            Reply::State(reading) => Ok(reading),
            other => {
                Err(TrialTeamError::Broken { rank: 0, why: format!("it answered the gauge by {other:?}") })
            }
        }
    }

    /// The first rank's answer, when all have answered well.
    fn ask(&mut self, asked: &Asked) -> Result<Reply, TrialTeamError> {
        for (rank, member) in self.members.iter_mut().enumerate() {
            member.send(asked).map_err(|why| TrialTeamError::Broken { rank, why })?;
        }
        let replies: Vec<Result<Reply, String>> = self.members.iter_mut().map(Member::receive).collect();
        let mut answer = None;
        let mut trouble = None;
        for (rank, reply) in replies.into_iter().enumerate() {
            match reply {
                Ok(Reply::Refused(why)) => trouble = trouble.or(Some(TrialTeamError::Refused { rank, why })),
                Ok(Reply::Failed(why)) | Err(why) => return Err(TrialTeamError::Broken { rank, why }),
                Ok(well) => answer = answer.or(Some(well)),
            }
        }
        match (trouble, answer) {
            (Some(trouble), _) => Err(trouble),
            (None, Some(answer)) => Ok(answer),
            (None, None) => Err(TrialTeamError::Broken { rank: 0, why: "the crew has no rank".into() }),
        }
    }
}

fn patient(mut config: TeamConfig) -> TeamConfig {
    config.timeout_ms.get_or_insert(LONGEST_WAIT_MS);
    // Trials are of chosen plans.
    config.threads.choose = false;
    config
}

impl Member {
    fn send(&mut self, asked: &Asked) -> Result<(), String> {
        match self {
            Member::Thread { trials, .. } => trials.send(asked.clone()).map_err(|_| ended()),
            Member::Process { trials, .. } => {
                let mut line = serde_json::to_string(asked).map_err(|e| e.to_string())?;
                line.push('\n');
                let pipe = trials.as_mut().ok_or_else(ended)?;
                pipe.write_all(line.as_bytes()).and_then(|()| pipe.flush()).map_err(|e| e.to_string())
            }
        }
    }

    fn receive(&mut self) -> Result<Reply, String> {
        match self {
            Member::Thread { replies, .. } => replies.recv().map_err(|_| ended()),
            Member::Process { child, replies, .. } => {
                let mut line = String::new();
                let read = replies.read_line(&mut line).map_err(|e| e.to_string())?;
                if read > 0 {
                    return serde_json::from_str(&line).map_err(|e| format!("unreadable answer: {e}"));
                }
                Err(child.wait().map_or_else(|e| e.to_string(), |status| format!("it ended ({status})")))
            }
        }
    }
}

fn ended() -> String {
    "it ended".to_owned()
}

impl Drop for TrialTeam {
    /// Closes every line, upon which ranks end, and waits for them.
    fn drop(&mut self) {
        for member in std::mem::take(&mut self.members) {
            if let Member::Process { mut child, trials, .. } = member {
                drop(trials);
                // Fails only when it was waited for before.
                let _ = child.wait();
            }
        }
        if let Some(threads) = self.threads.take() {
            // What a rank failed of was its answer to a trial.
            let _ = threads.join();
        }
    }
}

/// Carries out the trials that come line by line, each answered by a line, until there are no more.
pub fn serve(
    mut comm: Communicator,
    trials: impl BufRead,
    mut replies: impl Write,
) -> Result<(), TrialTeamError> {
    let broken = |what: &str, e: &dyn std::fmt::Display| {
        let advice = "; `lineweave` starts this itself";
        TrialTeamError::Team(Error::System { what: what.to_owned(), reason: e.to_string(), advice })
    };
    let mut bench = Bench::default();
    for line in trials.lines() {
        let line = line.map_err(|e| broken("reading a trial", &e))?;
        let trial: Asked = serde_json::from_str(&line).map_err(|e| broken("reading a trial", &e))?;
        let (reply, over) = reply(&mut bench, &mut comm, &trial);
        let mut text = serde_json::to_string(&reply).map_err(|e| broken("answering a trial", &e))?;
        text.push('\n');
        replies
            .write_all(text.as_bytes())
            .and_then(|()| replies.flush())
            .map_err(|e| broken("answering a trial", &e))?;
        if over {
            break;
        }
    }
    Ok(())
}

/// A rank's answer, and whether it is its last.
fn reply(bench: &mut Bench, comm: &mut Communicator, asked: &Asked) -> (Reply, bool) {
    let reply = match asked {
        Asked::Trial(trial) => bench.run(comm, trial).map(Reply::Done),
        Asked::State => bench.gauge(comm).map(Reply::State),
    };
    match reply {
        Ok(reply) => (reply, false),
        Err(Refused::Trial(why)) => (Reply::Refused(why), false),
        Err(Refused::Team(error)) => (Reply::Failed(error.to_string()), true),
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::{Buffers, DataPath, Way};
    use super::*;
    use lineweave_core::collective::Collective;
    use lineweave_core::plan::Params;

    fn trial(collective: Collective, bytes: usize) -> Trial {
        let asked = Trial::new(collective, bytes);
        Trial { check: true, window_ns: 2_000_000, least: 2, most: 50, precision: 0.1, ..asked }
    }

    fn crew(ranks: usize) -> TrialTeam {
        TrialTeam::threads(TeamConfig::from_environment(ranks).expect("a configuration")).expect("a crew")
    }

    #[test]
    fn a_crew_does_one_trial_after_another() {
        let mut crew = crew(3);
        assert_eq!(crew.members.len(), 3);
        for collective in Collective::ALL {
            let bytes = if collective.moves_data() { 4096 } else { 0 };
            for buffers in [Buffers::Reuse, Buffers::Fresh] {
                let asked = Trial { buffers, ..trial(collective, bytes) };
                let outcome = crew.run(&asked).expect("an outcome");
                assert!(!outcome.batches_ns.is_empty(), "{collective}");
                assert!(outcome.batches_ns.iter().all(|ns| *ns > 0.0), "{collective}: {outcome:?}");
            }
        }
    }

    #[test]
    fn roots_and_blocks_that_differ_are_answered_right() {
        let mut crew = crew(3);
        let way = Some(Way { algorithm: "noc-msg".to_owned(), params: Params::new(), window: 64 });
        for collective in [Collective::Bcast, Collective::Reduce] {
            for root in 0..3 {
                let asked = Trial { root, way: way.clone(), ..trial(collective, 64) };
                assert!(!crew.run(&asked).expect("an outcome").batches_ns.is_empty(), "{collective} {root}");
            }
        }
        let lengths: Vec<usize> = (0..9).map(|i| 8 * ((i / 3 + i % 3) % 3)).collect();
        let asked = Trial { lengths, way, ..trial(Collective::Alltoall, 16) };
        for _ in 0..2 {
            assert!(!crew.run(&asked).expect("an outcome").batches_ns.is_empty());
        }
    }

    #[test]
    fn shared_buffers_are_given_on_request_and_attach_is_refused_where_it_cannot_be() {
        let mut crew = crew(2);
        for buffers in [Buffers::Reuse, Buffers::Fresh] {
            let shared =
                Trial { path: Some(DataPath::Shared), buffers, ..trial(Collective::Allreduce, 40_000) };
            assert!(!crew.run(&shared).expect("an outcome").batches_ns.is_empty());
        }
        let private = crew.run(&trial(Collective::Allreduce, 40_000)).expect("private buffers again");
        assert!(!private.cross_memory && !crew.cross_memory().expect("an answer"));
        let attach = Trial { path: Some(DataPath::Attach), ..trial(Collective::Bcast, 1 << 16) };
        let error = crew.run(&attach).expect_err("threads need no attach").to_string();
        assert!(error.contains("each other's memory"), "{error}");
        let boxes = Trial { path: Some(DataPath::Boxes), ..trial(Collective::Bcast, 1 << 16) };
        assert!(!crew.run(&boxes).expect("an outcome").batches_ns.is_empty());
    }

    #[test]
    fn a_way_is_taken_and_one_that_does_not_apply_is_refused_by_a_crew_that_goes_on() {
        let mut crew = crew(2);
        let way = |algorithm: &str, window| {
            Some(Way { algorithm: algorithm.to_owned(), params: Params::new(), window })
        };
        let binomial = Trial { way: way("binomial", 1024), ..trial(Collective::Bcast, 4096 + 512) };
        for _ in 0..2 {
            let outcome = crew.run(&binomial).expect("an outcome");
            assert_eq!((outcome.way.algorithm.as_str(), outcome.because.as_str()), ("binomial", "forced"));
        }
        let unknown = Trial { way: way("no-such", 64), ..trial(Collective::Bcast, 64) };
        let error = crew.run(&unknown).expect_err("no such algorithm").to_string();
        assert!(error.contains("rank 0") && error.contains("no-such"), "{error}");
        let own = crew.run(&trial(Collective::Bcast, 4096 + 512)).expect("its own choice again");
        assert_ne!(own.because, "forced");
    }
}

//! Measured times of algorithms.

use crate::commands::lab::teams::team;
use crate::error::CliError;
use crate::session::Session;
use lineweave_core::collective::Collective;
use lineweave_core::profile::Stats;
use lineweave_core::select::{Candidate, Choices, Question};
use lineweave_core::topology::Placement;
use lineweave_lab::closed_form::Row;
use lineweave_tune::trial::{Trial, TrialTeam, TrialTeamError, Way};
use std::collections::BTreeMap;

/// Windows of each algorithm, in turn, so that drift affects all alike.
const ROUNDS: usize = 3;
/// Fewest calls that a window has room for, by prediction.
const FEWEST_CALLS: f64 = 8.0;

/// Times by algorithm, in ns.
#[derive(Default)]
pub struct Times {
    /// Times from call to call, when calls follow each other.
    period: BTreeMap<String, f64>,
    /// Times of a call alone, until every rank has left it; the time of the barrier after it is subtracted.
    alone: BTreeMap<String, f64>,
}

impl Times {
    /// Returns the time from call to call of an algorithm with its default parameters.
    pub fn get(&self, algorithm: &str) -> Option<f64> {
        self.period.get(algorithm).copied()
    }

    /// Returns the time of a single call of an algorithm with its default parameters.
    pub fn alone(&self, algorithm: &str) -> Option<f64> {
        self.alone.get(algorithm).copied()
    }

    /// Returns all times: from call to call, or of single calls.
    pub fn all(&self, periods: bool) -> Vec<f64> {
        let times = if periods { &self.period } else { &self.alone };
        times.values().copied().collect()
    }

    /// Returns the times that `tune` measured: the fastest algorithm of this very case, where it is one of these rows.
    pub fn of_choices(choices: Option<&Choices>, question: &Question, rows: &[Row]) -> Times {
        let mut times = Times::default();
        let ranks = question.shape.ranks();
        for team in ["processes", "threads"] {
            let found = choices.and_then(|c| c.lookup(question.collective, ranks, question.bytes, team));
            let Some(found) = found.filter(|f| f.exact) else { continue };
            let mine = |r: &&Row| r.algorithm.name == found.tuned.algorithm && r.params == found.tuned.params;
            if rows.iter().any(|r| mine(&r)) {
                times.period.insert(found.tuned.algorithm.clone(), found.tuned.measured_ns);
            }
        }
        times
    }
}

/// A team of threads of this machine that times algorithms.
pub struct Timer {
    crew: TrialTeam,
}

impl Timer {
    /// Starts `ranks` threads.
    pub fn new(ranks: usize, session: &mut Session) -> Result<Timer, CliError> {
        Ok(Timer { crew: team(ranks, false, Placement::Thread, session)? })
    }

    /// Times every row whose plan can be made, back to back and alone. A plan that the team refuses has no time.
    pub fn time(&mut self, question: &Question, rows: &[Row]) -> Result<Times, CliError> {
        let mut batches: BTreeMap<(&str, bool), Vec<f64>> = BTreeMap::new();
        let mut barriers = Vec::new();
        // A call that no rank leaves before all have entered does not overlap with the next call.
        let meets = question.collective == Collective::Barrier;
        for round in 0..ROUNDS {
            for apart in if meets { &[false][..] } else { &[false, true] } {
                for row in rows {
                    let Ok(played) = &row.played else { continue };
                    let trial = trial(question, row, played, *apart, round == 0);
                    match self.crew.run(&trial) {
                        Ok(outcome) => {
                            let of = batches.entry((row.algorithm.name, *apart)).or_default();
                            of.extend(outcome.batches_ns);
                        }
                        Err(TrialTeamError::Refused { .. }) => {}
                        Err(broken) => return Err(broken.into()),
                    }
                }
            }
            let empty = Trial::new(Collective::Barrier, 0);
            barriers.extend(self.crew.run(&empty)?.batches_ns);
        }
        let median = |b: &Vec<f64>| Stats::of(b, 0).map(|s| s.median);
        let mut times = Times::default();
        for ((name, apart), batches) in &batches {
            let Some(ns) = median(batches) else { continue };
            if *apart {
                // Other work may hold the barriers up longer than the calls: then the time is not known.
                let alone = ns - median(&barriers).unwrap_or(0.0);
                if alone > 0.0 {
                    times.alone.insert((*name).to_owned(), alone);
                }
            } else {
                times.period.insert((*name).to_owned(), ns);
            }
        }
        if meets {
            times.alone = times.period.clone();
        }
        Ok(times)
    }
}

/// Returns the trial of one algorithm.
fn trial(question: &Question, row: &Row, played: &Candidate, apart: bool, check: bool) -> Trial {
    let asked = Trial::new(question.collective, question.bytes);
    let window_ns = asked.window_ns.max((FEWEST_CALLS * played.predicted.0) as u64);
    Trial {
        way: Some(Way {
            algorithm: row.algorithm.name.to_owned(),
            params: row.params.clone(),
            window: played.window,
        }),
        apart,
        check,
        window_ns,
        ..asked
    }
}

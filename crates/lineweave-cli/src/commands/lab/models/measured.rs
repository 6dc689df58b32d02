//! What algorithms were measured to take.

use crate::error::CliError;
use crate::node::NodeInfo;
use crate::session::Session;
use lineweave::team::Charter;
use lineweave::tuning::{Origin, Tuning};
use lineweave_core::model::Values;
use lineweave_core::profile::Stats;
use lineweave_core::select::{Choices, Question};
use lineweave_lab::closed_form::Row;
use lineweave_tune::trial::{Crew, CrewError, Rested, Trial, Way};
use std::collections::BTreeMap;

/// Windows of each algorithm, in turn, so that drift meets all alike.
const ROUNDS: usize = 3;
/// How long a window lasts, in ns.
const WINDOW_NS: f64 = 8e6;
/// Calls that a window has room for, by prediction.
const FEWEST_CALLS: f64 = 8.0;

/// Times by algorithm, in ns a call.
#[derive(Default)]
pub struct Times(BTreeMap<String, f64>);

impl Times {
    /// The time of an algorithm with its default parameters.
    pub fn get(&self, algorithm: &str) -> Option<f64> {
        self.0.get(algorithm).copied()
    }

    /// All of them.
    pub fn all(&self) -> Vec<f64> {
        self.0.values().copied().collect()
    }

    /// What `tune` measured: the fastest algorithm of this very case, where it is one of these rows.
    pub fn of_choices(choices: Option<&Choices>, question: &Question, rows: &[Row]) -> Times {
        let mut times = Times::default();
        let ranks = question.shape.ranks();
        for team in ["processes", "threads"] {
            let found = choices.and_then(|c| c.lookup(question.collective, ranks, question.bytes, team));
            let Some(found) = found.filter(|f| f.exact) else { continue };
            let mine = |r: &&Row| r.algorithm.name == found.tuned.algorithm && r.params == found.tuned.params;
            if rows.iter().any(|r| mine(&r)) {
                times.0.insert(found.tuned.algorithm.clone(), found.tuned.measured_ns);
            }
        }
        times
    }
}

/// A team of threads of this machine that times algorithms.
pub struct Timer {
    crew: Crew,
}

impl Timer {
    /// Starts `ranks` threads.
    ///
    /// # Errors
    /// A [`CliError`] when this machine has not the means.
    pub fn new(ranks: usize, session: &mut Session) -> Result<Timer, CliError> {
        let settings = session.settings_of_this_machine()?;
        let node = NodeInfo::gather(&settings, &[])?;
        // Every trial names its algorithm: by what would be chosen makes no difference.
        let origin = Origin::Machine { name: "none".to_owned(), why: "every algorithm is named".to_owned() };
        let tuning = Tuning::of_model(Values::default().model(), origin);
        let charter = Charter::with(ranks, &settings, &node.placement(), node.usable.effective, tuning);
        Ok(Timer { crew: Crew::threads(charter)? })
    }

    /// Times every row whose plan can be made. What the team refuses has no time.
    ///
    /// # Errors
    /// [`CliError::Crew`] when a rank fails.
    pub fn time(&mut self, question: &Question, rows: &[Row]) -> Result<Times, CliError> {
        let mut batches: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for round in 0..ROUNDS {
            for row in rows {
                let Ok(played) = &row.played else { continue };
                let window = WINDOW_NS.max(FEWEST_CALLS * played.predicted.0);
                let trial = Trial {
                    collective: question.collective,
                    bytes: question.bytes,
                    buffers: Rested::Reuse,
                    way: Some(Way {
                        algorithm: row.algorithm.name.to_owned(),
                        params: row.params.clone(),
                        window: played.window,
                    }),
                    path: None,
                    wait: None,
                    check: round == 0,
                    window_ns: window as u64,
                    least: 16,
                    most: 300,
                    precision: 0.01,
                };
                match self.crew.run(&trial) {
                    Ok(outcome) => {
                        batches.entry(row.algorithm.name).or_default().extend(outcome.batches_ns);
                    }
                    Err(CrewError::Refused { .. }) => {}
                    Err(broken) => return Err(broken.into()),
                }
            }
        }
        let median = |b: &Vec<f64>| Stats::of(b, 0).map(|s| s.median);
        let times = batches.iter().filter_map(|(name, b)| Some(((*name).to_owned(), median(b)?)));
        Ok(Times(times.collect()))
    }
}

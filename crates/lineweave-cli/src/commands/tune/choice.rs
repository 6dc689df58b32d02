//! The form in which `lineweave tune` shows a choice.

use super::programme::Case;
use crate::bench::Team;
use lineweave_core::collective::Collective;
use lineweave_core::plan::Params;
use lineweave_core::select::Question;
use lineweave_tune::trial::{Race, Runner};
use serde::Serialize;

/// A choice of the model beside what was measured: root 0, f64 elements, sum. Printed as `choice` by `lineweave tune`, one object a case.
#[derive(Serialize)]
pub struct ChoiceObject {
    pub(super) collective: Collective,
    pub(super) ranks: usize,
    pub(super) bytes: usize,
    pub(super) team: Team,
    /// True if long messages went from process to process by cross-memory attach.
    pub(super) cross_memory: bool,
    pub(super) algorithm: &'static str,
    pub(super) params: Params,
    pub(super) window_bytes: usize,
    pub(super) predicted_ns: f64,
    #[serde(flatten)]
    pub(super) measured: Measurement,
    /// Measured time divided by predicted time.
    pub(super) measured_to_predicted: f64,
    /// True if the measurement repeats a probe.
    pub(super) calibrated: bool,
    /// Share by which the choice is slower than the fastest measured candidate.
    pub(super) regret: f64,
    #[serde(flatten)]
    pub(super) ran: Ran,
    #[serde(flatten)]
    pub(super) best: Best,
}

/// The candidates that ran.
#[derive(Serialize)]
pub(super) struct Ran {
    /// Number of them without the choice: measured window by window in turn, and no more once clearly slower or in the slower half of a round; with
    /// `--exhaustive` every plan.
    rivals: usize,
    /// All of them, the choice first.
    runners: Vec<RunnerObject>,
}

/// The measured time of the choice.
#[derive(Serialize)]
pub(super) struct Measurement {
    pub(super) measured_ns: f64,
    pub(super) ci_low_ns: f64,
    pub(super) ci_high_ns: f64,
    pub(super) samples: usize,
}

/// The fastest algorithm that was measured.
#[derive(Serialize)]
pub(super) struct Best {
    /// The algorithm that programs use from then on.
    pub(super) best_algorithm: &'static str,
    pub(super) best_params: Params,
    pub(super) best_window_bytes: usize,
    pub(super) best_measured_ns: f64,
}

/// A candidate that ran.
#[derive(Serialize)]
pub(super) struct RunnerObject {
    algorithm: &'static str,
    params: Params,
    window_bytes: usize,
    /// `None` where costing was given up, since others are clearly faster by the model.
    predicted_ns: Option<f64>,
    measured_ns: f64,
    /// Its time by that of the model's choice.
    relative: f64,
}

impl RunnerObject {
    fn of(Runner { candidate, stats, relative }: &Runner) -> RunnerObject {
        RunnerObject {
            algorithm: candidate.name,
            params: candidate.params.clone(),
            window_bytes: candidate.window,
            predicted_ns: (!candidate.given_up).then_some(candidate.predicted.0),
            measured_ns: stats.median,
            relative: *relative,
        }
    }
}

impl ChoiceObject {
    /// Returns the choice of a race.
    pub fn of(
        (collective, bytes): Case,
        ranks: usize,
        team: Team,
        question: &Question,
        race: &Race,
    ) -> ChoiceObject {
        let (chosen, best) = (race.chosen(), race.best());
        ChoiceObject {
            collective,
            ranks,
            bytes,
            team,
            cross_memory: question.attach,
            algorithm: chosen.candidate.name,
            params: chosen.candidate.params.clone(),
            window_bytes: chosen.candidate.window,
            predicted_ns: chosen.candidate.predicted.0,
            measured: Measurement {
                measured_ns: chosen.stats.median,
                ci_low_ns: chosen.stats.ci_low,
                ci_high_ns: chosen.stats.ci_high,
                samples: chosen.stats.samples,
            },
            measured_to_predicted: chosen.stats.median / chosen.candidate.predicted.0,
            calibrated: chosen.candidate.calibrated(question),
            regret: race.regret(),
            ran: Ran {
                rivals: race.runners.len() - 1,
                runners: race.runners.iter().map(RunnerObject::of).collect(),
            },
            best: Best {
                best_algorithm: best.candidate.name,
                best_params: best.candidate.params.clone(),
                best_window_bytes: best.candidate.window,
                best_measured_ns: best.stats.median,
            },
        }
    }

    /// Returns the case of the choice.
    pub fn case(&self) -> Case {
        (self.collective, self.bytes)
    }

    /// Returns the wider half of the 95 % interval of the median, as a share of the median.
    pub(super) fn spread(&self) -> String {
        let Measurement { measured_ns, ci_low_ns, ci_high_ns, samples } = self.measured;
        let half = (ci_high_ns - measured_ns).max(measured_ns - ci_low_ns);
        match samples {
            // So few samples have no interval.
            0..6 => format!("n={samples}"),
            _ => format!("{:.0} %", half / measured_ns * 100.0),
        }
    }

    pub(super) fn is_best(&self) -> bool {
        let Best { best_algorithm, best_params, best_window_bytes, .. } = &self.best;
        (self.algorithm, &self.params, self.window_bytes)
            == (*best_algorithm, best_params, *best_window_bytes)
    }
}

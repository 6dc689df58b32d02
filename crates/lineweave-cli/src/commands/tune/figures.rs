//! Figures over all races of `lineweave tune`: the model's errors, regrets, and the reasons for which races are not kept.

use super::programme::Case;
use crate::bench::Team;
use lineweave_core::collective::Collective;
use lineweave_core::profile::Stats;
use lineweave_core::select::Question;
use lineweave_core::units::Bytes;
use lineweave_tune::measure::Figure;
use lineweave_tune::trial::{Race, Runner};
use serde::Serialize;
use std::collections::BTreeMap;

/// The figures of the summary, while races go on.
#[derive(Default)]
pub struct Figures {
    /// Measured and predicted times of every candidate that was run, on teams within the CPUs and beyond them.
    pub pairs: [Vec<(f64, f64)>; 2],
    /// By race, the factor by which the model's choice is slower than the fastest measured algorithm.
    pub regrets: Vec<f64>,
    /// Number of candidates that ran; each rank proved their plans before.
    pub plans: usize,
    /// Number of these whose measurement repeats a probe.
    pub calibrated: usize,
    /// Number of sizes between two that the same plan won.
    pub interpolated: usize,
    /// Number of rivals that did not run because the time of their race was over.
    pub untimed: usize,
    families: BTreeMap<(Collective, &'static str), Vec<Factor>>,
    causes: BTreeMap<Cause, Vec<f64>>,
    /// Number of refusals to run, by their message.
    refused: BTreeMap<String, usize>,
    remarks: Vec<String>,
}

/// Reason why a race has no choice.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// The machine was in another state at the time, as this figure showed.
    Moved(Figure),
    /// All candidates were refused.
    NobodyRan,
    /// The time was over before the race began.
    TimeOver,
}

/// One candidate's predicted time beside the measured one, within the CPUs.
#[derive(Clone, Debug)]
struct Factor {
    /// Predicted time divided by measured time.
    factor: f64,
    of: String,
}

/// Errors of a model over some candidates; without any, all means are `None`.
#[derive(Serialize)]
pub struct Errors {
    pub candidates: usize,
    /// Mean of max(measured, predicted) / min(measured, predicted).
    mean_proportional: Option<f64>,
    median_proportional: Option<f64>,
    /// Mean of abs(measured - predicted) / measured.
    mean_relative: Option<f64>,
    #[serde(skip)]
    worst_proportional: f64,
}

/// Error of the model for one algorithm, on teams within the CPUs.
#[derive(Serialize)]
pub struct Family {
    pub collective: Collective,
    pub algorithm: &'static str,
    pub candidates: usize,
    /// Geometric mean of predicted over measured time: below 1 the model takes the algorithm to be faster than it is.
    pub mean_factor: f64,
    /// The factor that is farthest from 1.
    pub worst_factor: f64,
    /// The candidate with that factor.
    pub worst: String,
}

/// A reason for which races are not kept, and the number of these races: the gauge read another state than usual, or the time was over.
#[derive(Serialize)]
pub struct NotKept {
    pub races: usize,
    pub because: String,
}

impl Errors {
    pub fn of(pairs: &[(f64, f64)]) -> Errors {
        let proportional = |&(m, p): &(f64, f64)| m.max(p) / m.min(p);
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| {
            (!pairs.is_empty()).then(|| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64)
        };
        let all: Vec<f64> = pairs.iter().map(proportional).collect();
        Errors {
            candidates: pairs.len(),
            mean_proportional: mean(&proportional),
            median_proportional: Stats::of(&all, 0).map(|s| s.median),
            mean_relative: mean(&|&(m, p)| (m - p).abs() / m),
            worst_proportional: all.iter().copied().fold(1.0, f64::max),
        }
    }

    /// Returns the mean of the larger over the smaller time, and the mean relative error.
    pub fn means(&self) -> [Option<f64>; 2] {
        [self.mean_proportional, self.mean_relative]
    }

    pub fn text(&self, on: &str) -> Option<String> {
        Some(format!(
            "predictions are off by a factor of {:.2} in the median {on}, {:.2} at worst",
            self.median_proportional?, self.worst_proportional
        ))
    }
}

impl Figures {
    /// Counts a race; `beyond` is true if it has more ranks than CPUs.
    pub fn take(&mut self, race: &Race, question: &Question, beyond: bool) {
        self.plans += race.runners.len();
        self.untimed += race.untimed;
        self.regrets.push(race.regret());
        for why in &race.refused {
            *self.refused.entry(why.clone()).or_default() += 1;
        }
        // Where costing was given up, the predicted time is only a bound; and a candidate that repeats a probe tells nothing of
        // the model.
        let (calibrated, told): (Vec<&Runner>, Vec<&Runner>) = race
            .runners
            .iter()
            .filter(|r| !r.candidate.given_up)
            .partition(|r| r.candidate.calibrated(question));
        self.calibrated += calibrated.len();
        for Runner { candidate, stats, .. } in told {
            self.pairs[usize::from(beyond)].push((stats.median, candidate.predicted.0));
            if !beyond {
                let bytes = Bytes(question.bytes as u64);
                let of =
                    format!("{}, {bytes} among {}", candidate.named(question.bytes), question.shape.ranks());
                let factor = Factor { factor: candidate.predicted.0 / stats.median, of };
                self.families.entry((question.collective, candidate.name)).or_default().push(factor);
            }
        }
    }

    /// Counts a race without a choice; `times` is the factor by which the machine's state differed from the usual one.
    pub fn not_kept(&mut self, cause: Cause, times: f64) {
        self.causes.entry(cause).or_default().push(times);
    }

    /// Adds a finding about one case.
    pub fn remark(&mut self, case: Case, ranks: usize, team: Team, why: &dyn std::fmt::Display) {
        self.remarks.push(format!("{} of {} among {ranks} {team}: {why}", case.0, Bytes(case.1 as u64)));
    }

    /// Returns the errors by algorithm, the largest first.
    pub fn families(&self) -> Vec<Family> {
        let far = |factor: f64| factor.ln().abs();
        let of = |(&(collective, algorithm), all): (&(Collective, &'static str), &Vec<Factor>)| {
            let mean = all.iter().map(|f| f.factor.ln()).sum::<f64>() / all.len() as f64;
            let worst = all.iter().max_by(|a, b| far(a.factor).total_cmp(&far(b.factor)))?;
            Some(Family {
                collective,
                algorithm,
                candidates: all.len(),
                mean_factor: mean.exp(),
                worst_factor: worst.factor,
                worst: worst.of.clone(),
            })
        };
        let mut families: Vec<Family> = self.families.iter().filter_map(of).collect();
        families.sort_by(|a, b| far(b.mean_factor).total_cmp(&far(a.mean_factor)));
        families
    }

    /// Returns one line for each cause.
    pub fn not_kept_because(&self) -> Vec<NotKept> {
        let line = |(cause, times): (&Cause, &Vec<f64>)| {
            let of = |pick: fn(f64, f64) -> f64| times.iter().copied().reduce(pick).unwrap_or(1.0);
            let because = match cause {
                Cause::Moved(figure) => format!(
                    "{} beside them took {:.2} to {:.2} times as long as otherwise: CPUs moved or slowed down; tune again later",
                    figure.noun(),
                    of(f64::min),
                    of(f64::max)
                ),
                Cause::NobodyRan => "no candidate could be run".to_owned(),
                Cause::TimeOver => "the time was over; --seconds gives more".to_owned(),
            };
            NotKept { races: times.len(), because }
        };
        self.causes.iter().map(line).collect()
    }

    /// Returns a sentence about work that was left out to keep the time, or `None`.
    pub fn given_up(&self) -> Option<String> {
        let n = self.untimed;
        (n > 0).then(|| {
            format!("{n} rivals did not run, because the time of their races was over; --seconds gives more")
        })
    }

    /// Returns the other findings, each once.
    pub fn remarks(&self) -> Vec<String> {
        let refused = self.refused.iter().map(|(why, n)| match n {
            1 => format!("not run: {why}"),
            _ => format!("not run, {n} times: {why}"),
        });
        refused.chain(self.remarks.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_one_line_however_many_races_it_spoiled() {
        let mut figures = Figures::default();
        assert!(figures.not_kept_because().is_empty() && figures.given_up().is_none());
        for times in [3.2, 7.0, 0.2] {
            figures.not_kept(Cause::Moved(Figure::Handshake), times);
        }
        let lines = figures.not_kept_because();
        assert_eq!((lines.len(), lines[0].races), (1, 3));
        assert!(
            lines[0].because.contains("a handshake beside them took 0.20 to 7.00"),
            "{}",
            lines[0].because
        );
        figures.untimed = 2;
        assert!(figures.given_up().is_some_and(|why| why.starts_with("2 rivals")));
    }

    #[test]
    fn the_family_that_is_farthest_off_comes_first() {
        let mut figures = Figures::default();
        for (name, factor) in [("exchange", 0.25), ("exchange", 0.5), ("tree", 1.1), ("tree", 0.9)] {
            let all = figures.families.entry((Collective::Barrier, name)).or_default();
            all.push(Factor { factor, of: format!("{name} at {factor}") });
        }
        let families = figures.families();
        assert_eq!(families.iter().map(|f| f.algorithm).collect::<Vec<_>>(), ["exchange", "tree"]);
        assert!((families[0].mean_factor - 0.125f64.sqrt()).abs() < 1e-12);
        assert_eq!((families[0].worst_factor, families[0].worst.as_str()), (0.25, "exchange at 0.25"));
    }
}

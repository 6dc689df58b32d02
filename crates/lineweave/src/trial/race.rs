//! Measuring a choice against its rivals.
//!
//! 1. Who runs: the shortlist (`shortlist.rs`).
//! 2. Rounds: one window of every runner, one after another, so that drift meets all alike. Whoever is far behind
//!    after a round is out.
//! 3. Runners are compared within rounds: the median over rounds of the ratio to the model's choice. Where ranks
//!    outnumber CPUs the scheduler sways a window more than the machine drifts: then by all windows together.
//! 4. Of many runners the luckiest looks fastest. So the fastest, when it is not the choice, runs against the
//!    choice once more, and only these windows say by how much it is faster, if at all.

use super::crew::{Crew, CrewError};
use super::shortlist::shortlist;
use super::window::{Rested, Trial, Way};
use crate::segment::{BankClass, Geometry, COUNTER_BYTES};
use crate::team::Charter;
use lineweave_core::collective::{Association, Collective};
use lineweave_core::plan::Plan;
use lineweave_core::profile::Stats;
use lineweave_core::select::{Candidate, Choice, Question};
use lineweave_core::{algorithm, verify};
use std::time::{Duration, Instant};

/// Calls that a window has room for, by prediction.
const FEWEST_CALLS: f64 = 8.0;

/// How thoroughly a choice is measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rules {
    /// Candidates by prediction.
    pub top: usize,
    /// The best of so many other algorithms, twice as many where ranks share CPUs ...
    pub families: usize,
    /// ... unless it is predicted to take longer than this many times the best; twice as many where ranks share CPUs.
    pub factor: f64,
    /// Windows of each.
    pub rounds: usize,
    /// How long a window lasts.
    pub window: Duration,
    /// Whoever takes longer than this many times the fastest of a round is out.
    pub drop: f64,
    /// No further round begins after this time.
    pub limit: Duration,
}

/// A candidate that was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Runner {
    /// What the model said.
    pub candidate: Candidate,
    /// ns a call, over all its windows.
    pub stats: Stats,
    /// Median over rounds of its time by that of the model's choice.
    pub relative: f64,
}

/// A choice and what measuring said of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Race {
    /// The model's choice, first, then its rivals as they were shortlisted.
    pub runners: Vec<Runner>,
    /// Plans proved beforehand.
    pub proved: usize,
    /// Candidates that were not run: a refuted plan, or one that the team refuses; in words.
    pub refused: Vec<String>,
}

impl Race {
    /// The model's choice.
    pub fn chosen(&self) -> &Runner {
        &self.runners[0]
    }

    /// The fastest when measured.
    pub fn best(&self) -> &Runner {
        let fastest = self.runners.iter().min_by(|a, b| a.relative.total_cmp(&b.relative));
        fastest.unwrap_or(&self.runners[0])
    }

    /// How much slower the model's choice is than the best measured candidate, as a share: 0 is no regret.
    pub fn regret(&self) -> f64 {
        (1.0 / self.best().relative - 1.0).max(0.0)
    }
}

impl Charter {
    /// The question that a call of `bytes` bytes of f64 elements (root 0, summed) poses to a team of this charter.
    pub fn question(&self, collective: Collective, bytes: usize, direct: bool) -> Question {
        let geometry = Geometry::new(self.ranks(), self.box_bytes, 0);
        Question {
            collective,
            shape: self.shape(),
            root: 0,
            bytes,
            uneven: None,
            grain: if collective.folds() { size_of::<f64>() } else { 1 },
            association: Association::wanted(true, self.reproducible),
            direct,
            attach: false,
            box_bytes: geometry.zones(BankClass::Large).slots,
            counter_bytes: COUNTER_BYTES,
            acc_bytes: None,
        }
    }
}

/// Steps 2 and 3. Nothing is left to race when every candidate is refused.
///
/// # Errors
/// [`CrewError::Broken`] when a rank failed.
pub fn race(
    crew: &mut Crew,
    question: &Question,
    choice: &Choice,
    rules: &Rules,
) -> Result<Option<Race>, CrewError> {
    let start = Instant::now();
    let (mut proved, mut refused) = (0, Vec::new());
    let mut field: Vec<(Candidate, Laps)> = Vec::new();
    for candidate in shortlist(question, choice, rules) {
        match prove(question, &candidate) {
            Ok(plans) => {
                proved += plans;
                field.push((candidate, Laps::default()));
            }
            Err(why) => refused.push(why),
        }
    }
    for round in 0..rules.rounds.max(1) {
        for (candidate, laps) in field.iter_mut().filter(|(_, laps)| !laps.out) {
            if let Some(why) = laps.run(crew, &trial(question, candidate, rules, round == 0))? {
                refused.push(format!("{} {}: {why}", candidate.name, candidate.params));
            }
        }
        let now = |laps: &Laps| laps.medians.get(round).copied();
        let fastest = field.iter().filter_map(|(_, l)| now(l)).fold(f64::INFINITY, f64::min);
        for (_, laps) in field.iter_mut().skip(1) {
            laps.out |= now(laps).is_none_or(|m| m > fastest * rules.drop);
        }
        if start.elapsed() > rules.limit {
            break;
        }
    }
    field.retain(|(_, laps)| !laps.medians.is_empty());
    if field.is_empty() {
        return Ok(None);
    }
    let crowded = question.shape.oversubscription() > 1;
    let mut relative: Vec<f64> = field
        .iter()
        .map(|(_, laps)| laps.relative(&field[0].1, 0, crowded).unwrap_or(f64::INFINITY))
        .collect();
    let fastest = (0..field.len()).min_by(|&a, &b| relative[a].total_cmp(&relative[b])).unwrap_or(0);
    if fastest > 0 {
        let confirmed = confirm(crew, question, rules, &mut field, fastest, crowded)?;
        // What was not confirmed does not beat what was.
        for (i, relative) in relative.iter_mut().enumerate().skip(1) {
            *relative = if i == fastest { confirmed } else { relative.max(confirmed.min(1.0)) };
        }
    }
    let runners = field
        .into_iter()
        .zip(relative)
        .filter_map(|((candidate, laps), relative)| {
            Some(Runner { candidate, stats: Stats::of(&laps.batches_ns(0), laps.disturbed)?, relative })
        })
        .collect();
    Ok(Some(Race { runners, proved, refused }))
}

/// Step 4: the ratio of one runner to the first.
fn confirm(
    crew: &mut Crew,
    question: &Question,
    rules: &Rules,
    field: &mut [(Candidate, Laps)],
    other: usize,
    crowded: bool,
) -> Result<f64, CrewError> {
    let from = field[0].1.medians.len().max(field[other].1.medians.len());
    // Whoever ran fewer rounds starts level.
    for i in [0, other] {
        field[i].1.level(from);
    }
    for _ in 0..rules.rounds.max(1) {
        for i in [0, other] {
            let (candidate, laps) = &mut field[i];
            laps.run(crew, &trial(question, candidate, rules, false))?;
        }
    }
    Ok(field[other].1.relative(&field[0].1, from, crowded).unwrap_or(f64::INFINITY))
}

/// One candidate's windows.
#[derive(Default)]
struct Laps {
    windows: Vec<Vec<f64>>,
    medians: Vec<f64>,
    disturbed: usize,
    out: bool,
}

impl Laps {
    /// One window; the reason when the crew refuses, upon which there are no more.
    fn run(&mut self, crew: &mut Crew, trial: &Trial) -> Result<Option<String>, CrewError> {
        match crew.run(trial) {
            Ok(outcome) => {
                self.medians.push(Stats::of(&outcome.batches_ns, 0).map_or(f64::NAN, |s| s.median));
                self.windows.push(outcome.batches_ns);
                self.disturbed += outcome.disturbed;
                Ok(None)
            }
            Err(CrewError::Refused { rank, why }) => {
                self.out = true;
                Ok(Some(format!("rank {rank}: {why}")))
            }
            Err(broken) => Err(broken),
        }
    }

    /// As many windows as the other; those it did not run are empty.
    fn level(&mut self, windows: usize) {
        self.medians.resize(windows, f64::NAN);
        self.windows.resize(windows, Vec::new());
    }

    fn batches_ns(&self, from: usize) -> Vec<f64> {
        self.windows.get(from..).unwrap_or_default().concat()
    }

    /// How its windows from one on compare with another's.
    fn relative(&self, other: &Laps, from: usize, crowded: bool) -> Option<f64> {
        if crowded {
            let of = |laps: &Laps| Some(Stats::of(&laps.batches_ns(from), 0)?.median);
            return Some(of(self)? / of(other)?);
        }
        let pairs = self.medians.iter().zip(&other.medians).skip(from);
        let ratios: Vec<f64> = pairs.map(|(a, b)| a / b).filter(|r| r.is_finite()).collect();
        Some(Stats::of(&ratios, 0)?.median)
    }
}

fn trial(question: &Question, candidate: &Candidate, rules: &Rules, check: bool) -> Trial {
    Trial {
        collective: question.collective,
        bytes: question.bytes,
        buffers: Rested::Reuse,
        way: Some(Way {
            algorithm: candidate.name.to_owned(),
            params: candidate.params.clone(),
            window: candidate.window,
        }),
        path: None,
        wait: None,
        check,
        // A few calls at least, also of a message that takes longer than a window.
        window_ns: (rules.window.as_nanos() as f64).max(FEWEST_CALLS * candidate.predicted.0) as u64,
        least: 24,
        most: 400,
        precision: 0.01,
    }
}

/// Proves the plans of a candidate: its window's, and that of what is left of the message.
fn prove(question: &Question, candidate: &Candidate) -> Result<usize, String> {
    let name = |e: &dyn std::fmt::Display| format!("{} {}: {e}", candidate.name, candidate.params);
    let algorithm = algorithm::find(question.collective, candidate.name).map_err(|e| name(&e))?;
    let left = question.bytes.checked_rem(candidate.window).unwrap_or(0);
    let mut proved = 0;
    for bytes in [Some(candidate.window), (left > 0).then_some(left)].into_iter().flatten() {
        let plan: Plan = algorithm.plan(&question.window(bytes), &candidate.params).map_err(|e| name(&e))?;
        verify::verify(&plan).map_err(|violation| name(&violation))?;
        proved += 1;
    }
    Ok(proved)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::settings::Settings;
    use lineweave_core::model::Values;
    use lineweave_core::select::select;

    pub(in crate::trial) fn rules() -> Rules {
        Rules {
            top: 2,
            families: 2,
            factor: 100.0,
            rounds: 2,
            window: Duration::from_millis(2),
            drop: 1e9,
            limit: Duration::from_secs(60),
        }
    }

    #[test]
    fn a_race_measures_proved_candidates_and_compares_them_with_the_choice() {
        let charter = Charter::new(2, &Settings::default()).expect("a charter");
        let model = Values::default().model();
        let mut crew = Crew::threads(charter.clone()).expect("a crew");
        for (collective, bytes) in [(Collective::Barrier, 0), (Collective::Allreduce, 4096)] {
            let question = charter.question(collective, bytes, true);
            let choice = select(&model, &question).expect("a choice");
            let race = race(&mut crew, &question, &choice, &rules()).expect("a race").expect("a runner");
            assert_eq!(race.refused, [] as [String; 0]);
            assert!(race.runners.len() >= 2 && race.proved >= race.runners.len());
            assert_eq!(race.chosen().candidate.name, choice.algorithm);
            assert_eq!(race.chosen().relative, 1.0);
            assert!(race.best().relative <= 1.0 && race.regret() >= 0.0);
        }
    }
}

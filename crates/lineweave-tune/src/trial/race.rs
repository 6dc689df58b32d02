//! Measuring a choice against its rivals, by successive halving.
//!
//! 1. Who runs: the shortlist (`shortlist.rs`), the model's choice first.
//! 2. Rounds: one window of every runner that is left, one after another, so that drift meets all alike. Whoever is clearly slower than
//!    the fastest of a round is out, and so is the slower half of the others; the windows of those that are left are twice as long.
//! 3. Runners are compared within the rounds that both ran: the median of the ratios. Where ranks outnumber CPUs the scheduler sways a
//!    window more than the machine drifts: then by all windows together.
//! 4. Of many runners the luckiest looks fastest. So the fastest, when it is not the choice and the choice is not clearly slower, runs
//!    against the choice once more, and only these windows say by how much it is faster, if at all.
//!
//! A race keeps its time: all windows that may still come share what is left, and none but the first two begins when nothing is.

use super::request::{Trial, Way};
use super::shortlist::shortlist;
use super::team::{TrialTeam, TrialTeamError};
use lineweave::segment::{BankClass, Geometry, COUNTER_BYTES};
use lineweave::team::TeamConfig;
use lineweave_core::collective::{Association, Collective};
use lineweave_core::profile::Stats;
use lineweave_core::select::{Candidate, Choice, Question};
use std::time::{Duration, Instant};

/// Windows of either in the last comparison.
const LAST: usize = 3;
/// The shortest window that tells anything, and what a window takes besides: ranks are woken, warmed up and answer.
const SHORTEST: Duration = Duration::from_micros(500);
/// A longer one tells no more.
const LONGEST: Duration = Duration::from_millis(20);

/// Effort with which a choice is measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rules {
    /// Candidates by prediction; `usize::MAX` for all, also those whose costing was given up.
    pub top: usize,
    /// The best of so many other algorithms, twice as many where ranks share CPUs ...
    pub families: usize,
    /// ... unless it is predicted to take longer than this many times the best; twice as many where ranks share CPUs.
    pub factor: f64,
    /// Whoever takes longer than this many times the fastest of a round is clearly slower.
    pub drop: f64,
    /// Time that the race takes.
    pub limit: Duration,
}

/// A candidate that was measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Runner {
    /// Candidate with the model's prediction.
    pub candidate: Candidate,
    /// ns a call, over all its windows.
    pub stats: Stats,
    /// Its time by that of the model's choice.
    pub relative: f64,
}

/// A choice and what measuring said of it.
#[derive(Clone, PartialEq, Debug)]
pub struct Race {
    /// The model's choice, first, then its rivals as they were shortlisted.
    pub runners: Vec<Runner>,
    /// Candidates that were not run, because the time was over.
    pub untimed: usize,
    /// Candidates that the team refused: their plans are refuted or do not fit; in words.
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

    /// Returns the share by which the model's choice is slower than the best measured candidate: 0 is no regret.
    pub fn regret(&self) -> f64 {
        (1.0 / self.best().relative - 1.0).max(0.0)
    }
}

/// The question that a call of `bytes` bytes of f64 elements (root 0, summed) poses to a team of this configuration.
pub fn question(config: &TeamConfig, collective: Collective, bytes: usize, direct: bool) -> Question {
    let geometry = Geometry::new(config.ranks(), config.box_bytes, 0);
    let grain = if collective.folds() { size_of::<f64>() } else { 1 };
    Question {
        shape: config.shape(),
        association: Association::wanted(true, config.reproducible),
        direct,
        box_bytes: geometry.zones(BankClass::Large).slots,
        counter_bytes: COUNTER_BYTES,
        ..Question::flat(collective, config.ranks(), bytes, grain)
    }
}

/// Candidates of a race. Finding them is pure, and for long messages the most of the work.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    question: Question,
    /// The model's choice first.
    candidates: Vec<Candidate>,
}

impl Field {
    /// Step 1.
    pub fn of(question: &Question, choice: &Choice, rules: &Rules) -> Field {
        Field { question: question.clone(), candidates: shortlist(question, choice, rules) }
    }

    /// The model's choice, and what won at other sizes, with the same parameters if they were costed for this one.
    pub fn between(question: &Question, choice: &Choice, winners: &[&Candidate]) -> Field {
        let sound = |c: &&Candidate| c.predicted.0.is_finite() && c.predicted.0 > 0.0;
        let costed: Vec<&Candidate> = choice.considered.iter().filter(sound).collect();
        let mut candidates: Vec<Candidate> = costed.first().map(|c| (*c).clone()).into_iter().collect();
        for winner in winners {
            let named = || costed.iter().filter(|c| c.name == winner.name);
            let found = named().find(|c| c.params == winner.params).or_else(|| named().next());
            if let Some(found) = found.filter(|found| !candidates.contains(found)) {
                candidates.push((*found).clone());
            }
        }
        Field { question: question.clone(), candidates }
    }

    /// Returns the question that is asked.
    pub fn question(&self) -> &Question {
        &self.question
    }
}

/// Steps 2 to 4. Nothing is left to race when every candidate is refused.
pub fn race(crew: &mut TrialTeam, field: &Field, rules: &Rules) -> Result<Option<Race>, TrialTeamError> {
    let start = Instant::now();
    let question = &field.question;
    let crowded = question.shape.oversubscription() > 1;
    let left = || rules.limit.saturating_sub(start.elapsed());
    let (mut refused, mut untimed) = (Vec::new(), 0);
    let mut runners: Vec<(Candidate, Laps)> =
        field.candidates.iter().map(|c| (c.clone(), Laps::default())).collect();
    let mut alive: Vec<usize> = (0..runners.len()).collect();
    for round in 0.. {
        // Each later round takes as long as this one: half as many windows, twice as long. The last comparison is one more.
        let rounds = alive.len().max(2).ilog2() + 1;
        let window = (left() / (rounds * alive.len().max(1) as u32)).clamp(SHORTEST, LONGEST);
        let mut ran = Vec::new();
        for (place, &i) in alive.iter().enumerate() {
            if (round > 0 || place > 1) && left().is_zero() {
                untimed += if round == 0 { alive.len() - place } else { 0 };
                break;
            }
            let (candidate, laps) = &mut runners[i];
            if crowded && round == 0 && place == 0 && !left().is_zero() {
                // Ranks that have slept are not yet spread over the CPUs: whoever ran first would seem to be slow.
                Laps::default().run(crew, 0, &trial(question, candidate, window, false))?;
            }
            match laps.run(crew, round, &trial(question, candidate, window, round == 0))? {
                None => ran.push(i),
                Some(why) => refused.push(format!("{}: {why}", candidate.named(question.bytes))),
            }
        }
        // A round that was broken off compares nobody, unless it is the first.
        if round > 0 && ran.len() < alive.len() {
            break;
        }
        let now = |i: usize| runners[i].1.median(round).unwrap_or(f64::INFINITY);
        alive = faster_half(ran.into_iter().map(|i| (i, now(i))).collect(), rules.drop);
        if alive.len() < 2 || (round > 0 && alive.len() == 2) || left().is_zero() {
            break;
        }
    }
    let Some(best) = fastest(&runners, &alive, crowded) else { return Ok(None) };
    // The choice itself may have been refused: then the next is compared with.
    let first = runners.iter().position(|(_, laps)| laps.ran()).unwrap_or(best);
    let versus_first = |i: usize, from: usize| runners[i].1.relative(&runners[first].1, from, crowded);
    let mut relative: Vec<f64> =
        (0..runners.len()).map(|i| versus_first(i, 0).unwrap_or(f64::INFINITY)).collect();
    let near = relative[best] * rules.drop >= 1.0;
    if best != first && near && !left().is_zero() {
        let from = runners.iter().map(|(_, laps)| laps.windows.len()).max().unwrap_or(0);
        for lap in 0..LAST {
            let window = (left() / (2 * (LAST - lap)) as u32).clamp(SHORTEST, LONGEST);
            for i in [first, best] {
                let (candidate, laps) = &mut runners[i];
                laps.run(crew, from + lap, &trial(question, candidate, window, false))?;
            }
        }
        relative[best] = runners[best].1.relative(&runners[first].1, from, crowded).unwrap_or(f64::INFINITY);
    }
    // What did not come that far does not beat what did.
    for (i, other) in relative.clone().into_iter().enumerate() {
        if i != first && i != best {
            relative[i] = other.max(relative[best].min(1.0));
        }
    }
    let runners = runners
        .into_iter()
        .zip(relative)
        .skip(first)
        .filter_map(|((candidate, laps), relative)| {
            Some(Runner { candidate, stats: Stats::of(&laps.batches_ns(0), laps.disturbed)?, relative })
        })
        .collect();
    Ok(Some(Race { runners, untimed, refused }))
}

/// Returns the candidates that go on after a round: the faster half, two at the least, without those that are clearly slower than the
/// fastest.
fn faster_half(mut ran: Vec<(usize, f64)>, drop: f64) -> Vec<usize> {
    ran.sort_by(|a, b| a.1.total_cmp(&b.1));
    let fastest = ran.first().map_or(f64::INFINITY, |r| r.1);
    ran.truncate(ran.len().div_ceil(2).max(2));
    ran.into_iter().filter(|r| r.1 <= fastest * drop).map(|r| r.0).collect()
}

/// Of those that are left, who is faster than the first of them in the rounds that both ran.
fn fastest(runners: &[(Candidate, Laps)], alive: &[usize], crowded: bool) -> Option<usize> {
    let &first = alive.first()?;
    let ratio = |&i: &usize| runners[i].1.relative(&runners[first].1, 0, crowded).unwrap_or(f64::INFINITY);
    alive.iter().copied().min_by(|a, b| ratio(a).total_cmp(&ratio(b)))
}

/// One candidate's windows, by round; empty where it did not run.
#[derive(Default)]
struct Laps {
    windows: Vec<Vec<f64>>,
    disturbed: usize,
}

impl Laps {
    /// One window; the reason when the crew refuses.
    fn run(
        &mut self,
        crew: &mut TrialTeam,
        round: usize,
        trial: &Trial,
    ) -> Result<Option<String>, TrialTeamError> {
        match crew.run(trial) {
            Ok(outcome) => {
                self.windows.resize(round, Vec::new());
                self.windows.push(outcome.batches_ns);
                self.disturbed += outcome.disturbed;
                Ok(None)
            }
            Err(TrialTeamError::Refused { rank, why }) => Ok(Some(format!("rank {rank}: {why}"))),
            Err(broken) => Err(broken),
        }
    }

    fn ran(&self) -> bool {
        self.windows.iter().any(|w| !w.is_empty())
    }

    /// Of one round.
    fn median(&self, round: usize) -> Option<f64> {
        Some(Stats::of(self.windows.get(round)?, 0)?.median)
    }

    fn batches_ns(&self, from: usize) -> Vec<f64> {
        self.windows.get(from..).unwrap_or_default().concat()
    }

    /// Returns the time of these windows from round `from` on, by that of another's, in the rounds that both ran.
    fn relative(&self, other: &Laps, from: usize, crowded: bool) -> Option<f64> {
        let rounds = from..self.windows.len().min(other.windows.len());
        let both = |round: &usize| !self.windows[*round].is_empty() && !other.windows[*round].is_empty();
        if crowded {
            let of = |laps: &Laps| {
                let all: Vec<f64> =
                    rounds.clone().filter(both).flat_map(|round| laps.windows[round].clone()).collect();
                Some(Stats::of(&all, 0)?.median)
            };
            return Some(of(self)? / of(other)?);
        }
        let ratios: Vec<f64> =
            rounds.filter_map(|round| Some(self.median(round)? / other.median(round)?)).collect();
        Some(Stats::of(&ratios, 0)?.median)
    }
}

fn trial(question: &Question, candidate: &Candidate, window: Duration, check: bool) -> Trial {
    Trial {
        way: Some(Way {
            algorithm: candidate.name.to_owned(),
            params: candidate.params.clone(),
            window: candidate.window,
        }),
        check,
        window_ns: window.as_nanos() as u64,
        least: 24,
        most: 400,
        ..Trial::new(question.collective, question.bytes)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use lineweave::settings::Settings;
    use lineweave_core::model::Values;
    use lineweave_core::select::select;

    pub(in crate::trial) fn rules() -> Rules {
        Rules { top: 2, families: 2, factor: 100.0, drop: 1e9, limit: Duration::from_secs(60) }
    }

    fn raced(collective: Collective, bytes: usize, rules: &Rules) -> (Choice, Field, Race) {
        let config = TeamConfig::new(2, &Settings::default()).expect("a configuration");
        let mut crew = TrialTeam::threads(config.clone()).expect("a crew");
        let question = question(&config, collective, bytes, true);
        let choice = select(&Values::default().model(), &question).expect("a choice");
        let field = Field::of(&question, &choice, rules);
        let race = race(&mut crew, &field, rules).expect("a race").expect("a runner");
        (choice, field, race)
    }

    #[test]
    fn a_race_measures_candidates_and_compares_them_with_the_choice() {
        for (collective, bytes) in [(Collective::Barrier, 0), (Collective::Allreduce, 4096)] {
            let (choice, field, race) = raced(collective, bytes, &rules());
            assert_eq!(race.refused, [] as [String; 0]);
            assert!(
                race.runners.len() >= 2 && race.runners.len() == field.candidates.len() && race.untimed == 0
            );
            assert_eq!(race.chosen().candidate.name, choice.algorithm);
            assert_eq!(race.chosen().relative, 1.0);
            assert!(race.best().relative <= 1.0 && race.regret() >= 0.0);
        }
    }

    #[test]
    fn a_race_without_time_runs_the_choice_and_one_rival_and_says_what_did_not_run() {
        let (_, field, race) =
            raced(Collective::Allreduce, 4096, &Rules { families: 6, limit: Duration::ZERO, ..rules() });
        assert!(field.candidates.len() > 2, "{field:?}");
        assert_eq!((race.runners.len(), race.untimed), (2, field.candidates.len() - 2));
    }

    #[test]
    fn what_is_clearly_slower_runs_once_and_rounds_compare_those_that_both_ran() {
        let laps = |windows: &[f64]| Laps {
            windows: windows.iter().map(|&w| if w > 0.0 { vec![w] } else { Vec::new() }).collect(),
            disturbed: 0,
        };
        // The second is faster where both ran; the first alone met a fast third round.
        let (first, second) = (laps(&[100.0, 300.0, 50.0]), laps(&[80.0, 240.0, 0.0]));
        assert_eq!(second.relative(&first, 0, false), Some(0.8));
        assert_eq!(second.relative(&first, 2, false), None, "a round that one of them missed");
        assert_eq!(laps(&[0.0]).relative(&first, 0, true), None);
        let times = [100.0, 104.0, 110.0, 160.0, 90.0, 500.0];
        let ran = |times: &[f64]| times.iter().copied().enumerate().collect::<Vec<_>>();
        assert_eq!(faster_half(ran(&times), 1.5), [4, 0, 1]);
        assert_eq!(faster_half(ran(&times), 1.1), [4]);
        assert_eq!(faster_half(ran(&[100.0, 151.0]), 1.5), [0], "clearly slower");
        assert_eq!(faster_half(ran(&[100.0, 149.0]), 1.5), [0, 1]);
        assert!(faster_half(Vec::new(), 1.5).is_empty());
    }

    #[test]
    fn winners_of_other_sizes_run_beside_the_choice() {
        let config = TeamConfig::new(2, &Settings::default()).expect("a configuration");
        let question = question(&config, Collective::Bcast, 4096, true);
        let choice = select(&Values::default().model(), &question).expect("a choice");
        let other = choice.runner_up.clone().expect("a runner-up");
        let field = Field::between(&question, &choice, &[&choice.considered[0], &other, &other]);
        assert_eq!(field.candidates.len(), 2, "each once: {field:?}");
        assert_eq!(field.candidates[0].name, choice.algorithm);
        assert_eq!(field.candidates[1].name, other.name);
    }
}

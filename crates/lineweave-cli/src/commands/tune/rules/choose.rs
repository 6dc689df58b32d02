//! The choice of an algorithm for each length.

use crate::mpi::rules::Rule;
use crate::mpi::{lengths, Algorithm, Curves, Effort, Models, Runs, Setting};
use lineweave_core::collective::Collective;
use std::collections::BTreeSet;

/// Ratio to the best time: an algorithm within it at some length in the first round is a finalist.
const NEAR: f64 = 1.2;
/// A rule is written where the algorithm's median is at most this share of the default's, and it was faster in each round: of 5 rounds, that happens
/// by chance once in 32 times.
const BEATS: f64 = 0.95;
/// Ratio to the best time: within it, the algorithm of the previous length is kept, which makes fewer rules.
const KEEPS: f64 = 1.03;

/// Ratio to the best time within which the model's own choice counts as right.
const RIGHT: f64 = 1.05;

/// An algorithm and its time.
#[derive(Clone, PartialEq, Debug)]
pub struct Best {
    pub algorithm: Algorithm,
    /// The median of its times in ns.
    pub nanos: f64,
    /// The time that tau-Lop predicts, where the algorithm has a closed form.
    pub predicted_ns: Option<f64>,
    /// The next best algorithm that was timed and its time; no name for the default.
    pub next: (Option<String>, f64),
}

/// The choice for one collective and length.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    pub collective: Collective,
    pub bytes: u64,
    pub default_ns: f64,
    /// The algorithm that beats the default, if there is one.
    pub best: Option<Best>,
}

/// Returns the algorithms that come near the best at some length.
pub fn finalists(effort: &Effort, runs: &Runs) -> Vec<Algorithm> {
    let near = |setting: &&Setting| {
        let Ok(times) = &setting.times else { return false };
        let collective = setting.algorithm.collective;
        lengths(collective, &effort.bytes).into_iter().any(|bytes| {
            let least = of(runs, collective)
                .filter_map(|(_, curves)| curves.at(collective.name(), bytes))
                .chain(runs.default.at(collective.name(), bytes))
                .fold(f64::INFINITY, f64::min);
            times.at(collective.name(), bytes).is_some_and(|t| t <= NEAR * least)
        })
    };
    runs.settings.iter().filter(near).map(|s| s.algorithm.clone()).collect()
}

fn of(runs: &Runs, collective: Collective) -> impl Iterator<Item = (&Algorithm, &Curves)> {
    let wanted = move |s: &&Setting| s.algorithm.collective == collective;
    runs.settings.iter().filter(wanted).filter_map(|s| Some((&s.algorithm, s.times.as_ref().ok()?)))
}

/// Returns the choice for every collective and length at which the default was timed, for so many ranks, by [levelled](Runs::levelled) times.
pub fn choose(effort: &Effort, runs: &Runs, models: Option<&Models>, ranks: usize) -> Vec<Choice> {
    let mut choices: Vec<Choice> = Vec::new();
    for &collective in &effort.collectives {
        let mut before: Option<Algorithm> = None;
        for bytes in lengths(collective, &effort.bytes) {
            let name = collective.name();
            let Some(default_ns) = runs.default.at(name, bytes) else { continue };
            let beats = |(algorithm, curves): (&Algorithm, &Curves)| {
                let launches = curves.launches(name, bytes)?;
                let sure = launches.iter().all(|nanos| *nanos < default_ns);
                let best = best(runs, (algorithm, curves), bytes, default_ns, models, ranks)?;
                (sure && best.nanos <= BEATS * default_ns).then_some(best)
            };
            let all: Vec<Best> = of(runs, collective).filter_map(beats).collect();
            let fastest = all.iter().min_by(|a, b| a.nanos.total_cmp(&b.nanos));
            let kept = fastest.and_then(|fastest| {
                all.iter().find(|b| before.as_ref() == Some(&b.algorithm) && b.nanos <= KEEPS * fastest.nanos)
            });
            let best = kept.or(fastest).cloned();
            before = best.as_ref().map(|b| b.algorithm.clone());
            choices.push(Choice { collective, bytes, default_ns, best });
        }
    }
    choices
}

/// Returns an algorithm with its time and what explains it.
fn best(
    runs: &Runs,
    (algorithm, curves): (&Algorithm, &Curves),
    bytes: u64,
    default_ns: f64,
    models: Option<&Models>,
    ranks: usize,
) -> Option<Best> {
    Some(Best {
        algorithm: algorithm.clone(),
        nanos: curves.at(algorithm.collective.name(), bytes)?,
        predicted_ns: predicted(models, algorithm, ranks, bytes),
        next: next(runs, algorithm, bytes, default_ns),
    })
}

/// Completes the choices of collectives that have rules by the fastest algorithm for each length without one, where it is not slower than the default:
/// a library's own choice takes longer once it has looked for a rule. In a library that chooses otherwise than by default where others have
/// rules, `all` lengths get an algorithm.
pub fn complete(choices: &mut [Choice], runs: &Runs, models: Option<&Models>, ranks: usize, all: bool) {
    let ruled: BTreeSet<Collective> =
        choices.iter().filter(|c| c.best.is_some()).map(|c| c.collective).collect();
    for choice in choices.iter_mut().filter(|c| c.best.is_none() && ruled.contains(&c.collective)) {
        let (bytes, default_ns) = (choice.bytes, choice.default_ns);
        let known =
            of(runs, choice.collective).filter_map(|each| best(runs, each, bytes, default_ns, models, ranks));
        let fastest = known.min_by(|a, b| a.nanos.total_cmp(&b.nanos));
        choice.best = fastest.filter(|best| all || best.nanos <= default_ns);
    }
}

/// Returns the time that tau-Lop predicts for an algorithm.
fn predicted(models: Option<&Models>, algorithm: &Algorithm, ranks: usize, bytes: u64) -> Option<f64> {
    models?.predict(algorithm, ranks, bytes)[0]
}

/// Returns the fastest but this algorithm, and its time.
fn next(runs: &Runs, but: &Algorithm, bytes: u64, default_ns: f64) -> (Option<String>, f64) {
    let others = of(runs, but.collective).filter(|(algorithm, _)| *algorithm != but);
    let times = others.filter_map(|(algorithm, curves)| {
        Some((Some(&algorithm.name), curves.at(but.collective.name(), bytes)?))
    });
    let all = times.chain([(None, default_ns)]).min_by(|a, b| a.1.total_cmp(&b.1));
    all.map_or((None, default_ns), |(name, nanos)| (name.cloned(), nanos))
}

/// The share of cells in which the model alone would have chosen well.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByModel {
    /// Cells in which the algorithm with the least predicted time takes at most 1.05 of the best time.
    pub right: usize,
    /// Cells in which at least two algorithms have predictions.
    pub cells: usize,
}

/// Returns in how many cells tau-Lop's choice is near the best, by times of all algorithms.
pub fn by_model(effort: &Effort, runs: &Runs, models: &Models, ranks: usize) -> ByModel {
    let mut found = ByModel { right: 0, cells: 0 };
    for &collective in &effort.collectives {
        for bytes in lengths(collective, &effort.bytes) {
            let timed = of(runs, collective).filter_map(|(algorithm, curves)| {
                let predicted = predicted(Some(models), algorithm, ranks, bytes)?;
                Some((predicted, curves.at(collective.name(), bytes)?))
            });
            let timed: Vec<(f64, f64)> = timed.collect();
            let chosen = timed.iter().min_by(|a, b| a.0.total_cmp(&b.0));
            if let (Some(chosen), true) = (chosen, timed.len() > 1) {
                let best = timed.iter().map(|t| t.1).fold(f64::INFINITY, f64::min);
                found.cells += 1;
                found.right += usize::from(chosen.1 <= RIGHT * best);
            }
        }
    }
    found
}

/// Returns the geometric mean, over all choices, of the default's time divided by the chosen algorithm's.
pub fn gain(choices: &[Choice]) -> f64 {
    let each = choices.iter().map(|c| c.best.as_ref().map_or(0.0, |b| (c.default_ns / b.nanos).ln()));
    (each.sum::<f64>() / choices.len().max(1) as f64).exp()
}

/// Returns the choices of a collective as rules. Two lengths with different choices are separated at their geometric mean. The first rule
/// begins at 0, and the last one ends at the longest measured length.
pub fn rules(choices: &[Choice], collective: Collective) -> Vec<Rule> {
    let here: Vec<&Choice> = choices.iter().filter(|c| c.collective == collective).collect();
    let mut rules: Vec<Rule> = Vec::new();
    for (i, choice) in here.iter().enumerate() {
        let to = here.get(i + 1).map_or(choice.bytes, |next| choice.bytes.saturating_mul(next.bytes).isqrt());
        let chosen = choice.best.as_ref().map(|b| b.algorithm.clone());
        match rules.last_mut() {
            Some(last) if last.choice == chosen => last.to = to,
            last => {
                let from = last.map_or(0, |last| last.to + 1);
                rules.push(Rule { from, to, choice: chosen });
            }
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::Cell;

    fn algorithm(name: &str) -> Algorithm {
        let collective = Collective::Bcast;
        Algorithm {
            collective,
            name: name.into(),
            value: name.into(),
            form: None,
            calls: &[],
            copies: None,
            least: 0,
        }
    }

    fn curves(times: &[(u64, &[f64])]) -> Curves {
        let mut curves = Curves::default();
        for (bytes, launches) in times {
            launches.iter().for_each(|t| curves.push(Cell::new("bcast", *bytes), *t));
        }
        curves
    }

    fn runs() -> (Effort, Runs) {
        let effort = Effort {
            bytes: vec![8, 64, 4096, 65536],
            collectives: vec![Collective::Bcast],
            rounds: 2,
            window_ms: 1,
            channel: false,
            code: false,
            ruled_by: None,
        };
        let setting = |name: &str, times| Setting { algorithm: algorithm(name), times };
        let fast = curves(&[(8, &[50.0, 55.0]), (64, &[70.0]), (4096, &[99.0]), (65536, &[2000.0])]);
        let other = curves(&[(8, &[60.0]), (64, &[69.0]), (4096, &[300.0]), (65536, &[500.0, 990.0])]);
        let far = curves(&[(8, &[900.0]), (64, &[900.0]), (4096, &[900.0]), (65536, &[9000.0])]);
        let settings = vec![
            setting("fast", Ok(fast)),
            setting("other", Ok(other)),
            setting("far", Ok(far)),
            setting("none", Err("it ended".into())),
        ];
        let default = curves(&[
            (8, &[100.0, 110.0, 105.0]),
            (64, &[100.0, 100.0]),
            (4096, &[100.0, 101.0]),
            (65536, &[1000.0, 980.0]),
        ]);
        (effort, Runs { default, settings, ..Runs::default() })
    }

    #[test]
    fn only_what_beats_the_default_is_chosen_and_neighbours_agree() {
        let (effort, runs) = runs();
        let found = choose(&effort, &runs, None, 4);
        let names = |found: &[Choice]| -> Vec<Option<String>> {
            found.iter().map(|c| c.best.as_ref().map(|b| b.algorithm.name.clone())).collect()
        };
        let fast = Some("fast".to_owned());
        // At 64 bytes the other algorithm is faster by 1; at 4 KiB the gain is too small; at 64 KiB one launch was as slow as the
        // default.
        assert_eq!(names(&found), [fast.clone(), fast.clone(), None, None]);
        let next = found[0].best.as_ref().map(|b| b.next.clone());
        assert_eq!(next, Some((Some("other".into()), 60.0)));
        let expected = ((105.0f64 / 52.5).ln() + (100.0f64 / 70.0).ln()) / 4.0;
        assert!((gain(&found) - expected.exp()).abs() < 1e-9);
        // All lengths get a rule.
        let ruled = [fast.clone(), fast.clone(), fast.clone(), Some("other".into())];
        let mut whole = found.clone();
        complete(&mut whole, &runs, None, 4, true);
        assert_eq!(names(&whole), ruled);
        // A library that keeps its default elsewhere gets no slower algorithm.
        let kept = [fast.clone(), fast.clone(), None, Some("other".into())];
        let mut some = found.clone();
        some[2].default_ns = 90.0;
        complete(&mut some, &runs, None, 4, false);
        assert_eq!(names(&some), kept);
        let names: Vec<String> = finalists(&effort, &runs).into_iter().map(|a| a.name).collect();
        assert_eq!(names, ["fast", "other"]);
    }

    #[test]
    fn rules_have_no_gap_and_end_where_it_was_measured() {
        let (effort, runs) = runs();
        let rules: Vec<(u64, u64, Option<String>)> =
            rules(&choose(&effort, &runs, None, 4), Collective::Bcast)
                .into_iter()
                .map(|r| (r.from, r.to, r.choice.map(|c| c.name)))
                .collect();
        assert_eq!(rules, [(0, 512, Some("fast".into())), (513, 65536, None)]);
    }
}

//! Finds which algorithm a library uses at which lengths, from its times alone.
//!
//! The library's curve is cut into stretches, each of which is given to one candidate: the cut of least sum of squared
//! ratios (in logarithms, in units of `NOISE`, at most `FAR` a length), with `SWITCH` for each change of algorithm. That
//! is BIC with one parameter a switch. Exact, by dynamic programming over lengths and candidates.
//!
//! Two candidates whose curves are alike cannot be told apart; the second is named beside the first.

/// The standard error of the ratio of two times of one algorithm, in logarithms: two runs of one setting differ by this much.
const NOISE: f64 = 0.07;
/// The greatest cost of a length, so that one disturbed time does not decide.
const FAR: f64 = 16.0;
/// The cost of a change of algorithm.
const SWITCH: f64 = 8.0;
/// A stretch whose squared ratios exceed those of the best by less than this a length may be either.
const ALIKE: f64 = 1.0;

/// A candidate's times in ns at the lengths of the curve; nothing where it has none.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// The name of the algorithm.
    pub name: String,
    /// The times of the algorithm, by length.
    pub times: Vec<Option<f64>>,
}

/// Lengths for which one algorithm fits best.
#[derive(Clone, PartialEq, Debug)]
pub struct Stretch {
    /// Index of the first length.
    pub from: usize,
    /// Index of the last.
    pub to: usize,
    /// Index of the candidate that fits best.
    pub candidate: usize,
    /// Others whose times do not differ from it there, nearest first.
    pub alike: Vec<usize>,
    /// Mean of |curve - candidate| / curve.
    pub error: f64,
}

/// Returns the stretches of a curve, whose times are positive; nothing where no candidate has a time.
pub fn name(curve: &[f64], candidates: &[Candidate]) -> Vec<Stretch> {
    let cost = |c: usize, i: usize| match candidates[c].times.get(i).copied().flatten() {
        Some(time) if time > 0.0 => ((curve[i] / time).ln() / NOISE).powi(2).min(FAR),
        _ => 2.0 * FAR,
    };
    if curve.is_empty() || !candidates.iter().any(|c| c.times.iter().any(Option::is_some)) {
        return Vec::new();
    }
    let n = candidates.len();
    // The least cost up to a length that ends with a candidate, and the candidate before it.
    let mut best: Vec<Vec<(f64, usize)>> = vec![(0..n).map(|c| (cost(c, 0), c)).collect()];
    for i in 1..curve.len() {
        let last = &best[i - 1];
        let cheapest = least(last);
        let step = |c: usize| match last[c].0 <= last[cheapest].0 + SWITCH {
            true => (last[c].0 + cost(c, i), c),
            false => (last[cheapest].0 + SWITCH + cost(c, i), cheapest),
        };
        best.push((0..n).map(step).collect());
    }
    let mut chosen = vec![least(&best[curve.len() - 1])];
    for i in (1..curve.len()).rev() {
        chosen.push(best[i][chosen[chosen.len() - 1]].1);
    }
    chosen.reverse();
    let mut stretches: Vec<Stretch> = Vec::new();
    for (i, &candidate) in chosen.iter().enumerate() {
        match stretches.last_mut() {
            Some(last) if last.candidate == candidate => last.to = i,
            _ => stretches.push(Stretch { from: i, to: i, candidate, alike: Vec::new(), error: 0.0 }),
        }
    }
    for stretch in &mut stretches {
        let lengths = || stretch.from..=stretch.to;
        let sum = |c: usize| lengths().map(|i| cost(c, i)).sum::<f64>();
        let limit = sum(stretch.candidate) + ALIKE * lengths().count() as f64;
        let mut alike: Vec<usize> = (0..n).filter(|&c| c != stretch.candidate && sum(c) <= limit).collect();
        alike.sort_by(|&a, &b| sum(a).total_cmp(&sum(b)));
        let off = |i: usize| candidates[stretch.candidate].times[i].map(|t| (curve[i] - t).abs() / curve[i]);
        let errors: Vec<f64> = lengths().filter_map(off).collect();
        stretch.error = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        stretch.alike = alike;
    }
    stretches
}

fn least(costs: &[(f64, usize)]) -> usize {
    (0..costs.len()).min_by(|&a, &b| costs[a].0.total_cmp(&costs[b].0)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LENGTHS: usize = 10;

    fn candidate(name: &str, of: impl Fn(f64) -> f64) -> Candidate {
        let times = (0..LENGTHS).map(|i| Some(of(f64::from(8 << (2 * i))))).collect();
        Candidate { name: name.to_owned(), times }
    }

    fn three() -> Vec<Candidate> {
        vec![
            candidate("binomial", |m| 1000.0 + 1.0 * m),
            candidate("ring", |m| 4000.0 + 0.4 * m),
            candidate("chain", |m| 8000.0 + 0.9 * m),
        ]
    }

    #[test]
    fn switches_are_found_and_a_disturbed_time_is_none() {
        let all = three();
        let mut curve: Vec<f64> =
            (0..LENGTHS).map(|i| all[usize::from(i >= 6)].times[i].unwrap() * 1.03).collect();
        curve[2] *= 5.0;
        let found = name(&curve, &all);
        assert_eq!(
            found.iter().map(|s| (s.from, s.to, s.candidate)).collect::<Vec<_>>(),
            [(0, 5, 0), (6, 9, 1)]
        );
        assert!(found[1].error < 0.05 && found[1].alike.is_empty());
    }

    #[test]
    fn what_is_alike_is_said_and_what_has_no_time_is_not_chosen() {
        let mut all = three();
        all.push(candidate("binomial by another name", |m| 1010.0 + 1.0 * m));
        all.push(Candidate { name: "none".into(), times: vec![None; LENGTHS] });
        let curve: Vec<f64> = all[0].times.iter().map(|t| t.unwrap()).collect();
        let found = name(&curve, &all);
        assert_eq!((found.len(), found[0].candidate, &found[0].alike), (1, 0, &vec![3]));
        assert!(name(&curve, &[]).is_empty() && name(&[], &all).is_empty());
    }

    proptest! {
        /// Noise of two runs gives at most a length beside the switch to the wrong one of two candidates that differ.
        #[test]
        fn a_noisy_curve_is_named(at in 1usize..LENGTHS, noise in proptest::collection::vec(-0.06f64..0.06, LENGTHS)) {
            let all = vec![candidate("a", |m| 1000.0 + m), candidate("b", |m| 2000.0 + 2.0 * m)];
            let truth = |i: usize| usize::from(i >= at);
            let curve: Vec<f64> = (0..LENGTHS).map(|i| all[truth(i)].times[i].unwrap() * noise[i].exp()).collect();
            let found = name(&curve, &all);
            let given = |i: usize| found.iter().find(|s| (s.from..=s.to).contains(&i)).map(|s| s.candidate);
            prop_assert!((0..LENGTHS).filter(|&i| given(i) != Some(truth(i))).count() <= 1);
        }
    }
}

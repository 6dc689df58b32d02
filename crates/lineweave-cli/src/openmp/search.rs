//! The search for the settings that make a runtime's constructs fastest with a number of threads.
//!
//! 1. One round launches all settings for waiting and binding.
//! 2. Another one adds the shapes of barriers to the best of these; the best shape of each kind of barrier is combined.
//! 3. Further rounds launch the settings near the best, and the default. Only their times decide, since the earlier rounds selected them.
//! 4. A setting is chosen where it is 5 % faster on average, and no construct is slower in most of the launches or far slower
//!    in one.

use super::settings::{bindings, distributed, shapes, waits, Barrier, Shape};
use super::{Host, OpenmpError, Trial, CONSTRUCTS};
use crate::script::Variables;
use serde::Serialize;

/// Ratio to the best score: within it, a setting is a finalist.
const NEAR: f64 = 1.15;
/// Number of finalists at most.
const FINALISTS: usize = 4;
/// Score below which a setting is chosen.
const BEATS: f64 = 0.95;
/// Ratio to the best score: within it, the setting that comes first is chosen, which spins least and binds least.
const KEEPS: f64 = 1.05;
/// Ratio to the default shape's time below which a kind of barrier gets another shape.
const SHAPED: f64 = 0.97;

/// The effort of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effort {
    /// The time that a construct is timed for in a launch, in ms.
    pub window_ms: u32,
    /// Number of rounds that decide.
    pub rounds: usize,
    pub cpus: usize,
}

/// The times of a construct in ns.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cell {
    /// `barrier`, `for`, `reduction`, `taskwait`, `region` or `region-after-work`.
    pub construct: &'static str,
    pub default_ns: f64,
    /// With the chosen settings: the default's time where none are chosen.
    pub time_ns: f64,
    /// The least of all settings', each launched once.
    pub least_ns: f64,
}

/// The outcome for a number of threads.
#[derive(Clone, PartialEq, Debug)]
pub struct Tuned {
    pub threads: usize,
    /// The chosen settings; `None` for the default.
    pub chosen: Option<Variables>,
    pub cells: Vec<Cell>,
    pub tried: usize,
    pub refused: usize,
    pub launches: usize,
}

impl Tuned {
    /// Returns the geometric mean, over all constructs, of the default's time divided by the time with the chosen settings.
    pub fn gain(&self) -> f64 {
        let each = self.cells.iter().map(|c| (c.default_ns / c.time_ns).ln());
        (each.sum::<f64>() / self.cells.len().max(1) as f64).exp()
    }
}

/// Searches; `step` is called before each launch.
pub fn search(
    host: &Host,
    threads: usize,
    effort: &Effort,
    step: &mut dyn FnMut(&str),
) -> Result<Tuned, OpenmpError> {
    let mut sweep = Trial::new(threads);
    for wait in std::iter::once(Variables::new()).chain(waits(host.runtime)) {
        for binding in bindings(effort.cpus) {
            sweep.add(joined(&wait, &binding));
        }
    }
    sweep.round(host, effort.window_ms, 1, false, step)?;
    let shapes = shapes(host.runtime, threads);
    if !shapes.is_empty() {
        let best = sweep.ranking().first().filter(|best| best.1 < 1.0).map_or(0, |best| best.0);
        let waiting = sweep.settings[best].variables.clone();
        let from = sweep.settings.len();
        let shaped = shapes.iter().map(|shape| shape.of_all());
        let shaped = shaped.chain(distributed(host.runtime, threads, effort.cpus));
        shaped.for_each(|shape| sweep.add(joined(&waiting, &shape)));
        sweep.round(host, effort.window_ms, from, false, step)?;
        let mixed = mixed(&sweep, best, from, &shapes);
        let from = sweep.settings.len();
        sweep.add(joined(&waiting, &mixed));
        if sweep.settings.len() > from {
            sweep.round(host, effort.window_ms, from, false, step)?;
        }
    }
    let mut last = Trial::new(threads);
    finalists(&sweep).into_iter().for_each(|i| last.add(sweep.settings[i].variables.clone()));
    for round in 0..effort.rounds {
        last.round(host, effort.window_ms, 1, round % 2 == 1, step)?;
    }
    Ok(outcome(&sweep, &last))
}

/// Returns how many launches a search makes at most.
pub fn steps(host: &Host, threads: usize, effort: &Effort) -> usize {
    let waits = (1 + waits(host.runtime).len()) * bindings(effort.cpus).len() + 1;
    let shapes = shapes(host.runtime, threads).len();
    waits + if shapes > 0 { shapes + 6 } else { 0 } + effort.rounds * (FINALISTS + 2)
}

fn joined(a: &Variables, b: &Variables) -> Variables {
    a.iter().chain(b).cloned().collect()
}

/// Returns, as settings, the best shape of each kind of barrier that is clearly faster with another than the default. Setting `default`
/// has the default shapes, and those with these shapes for all kinds begin at `from`.
fn mixed(sweep: &Trial, default: usize, from: usize, shapes: &[Shape]) -> Variables {
    let best = |kind: Barrier| -> Option<Variables> {
        let score = |setting| sweep.score(setting, kind.constructs());
        let scores = shapes.iter().enumerate().filter_map(|(i, shape)| Some((shape, score(from + i)?)));
        let (shape, least) = scores.min_by(|a, b| a.1.total_cmp(&b.1))?;
        (least < SHAPED * score(default)?).then(|| shape.of(kind))
    };
    Barrier::ALL.into_iter().filter_map(best).flatten().collect()
}

/// Returns the settings near the best, in the order in which they were added.
fn finalists(sweep: &Trial) -> Vec<usize> {
    let ranking = sweep.ranking();
    let Some(&(_, least)) = ranking.first() else { return Vec::new() };
    let near = ranking.iter().take_while(|(_, score)| *score <= NEAR * least && *score < 1.0);
    let mut found: Vec<usize> = near.map(|r| r.0).take(FINALISTS).collect();
    found.sort_unstable();
    found
}

fn outcome(sweep: &Trial, last: &Trial) -> Tuned {
    let fit: Vec<(usize, f64)> =
        last.ranking().into_iter().filter(|(i, score)| *score <= BEATS && !last.is_slower(*i)).collect();
    let near = |&&(_, score): &&(usize, f64)| score <= KEEPS * fit[0].1;
    let chosen = fit.iter().filter(near).map(|r| r.0).min();
    let cell = |construct: &&'static str| {
        let default_ns = last.at(0, construct).or_else(|| sweep.at(0, construct))?;
        let all = (0..sweep.settings.len()).filter_map(|i| sweep.at(i, construct));
        let least_ns = all.fold(f64::INFINITY, f64::min);
        let time_ns = chosen.and_then(|i| last.at(i, construct)).unwrap_or(default_ns);
        Some(Cell { construct, default_ns, time_ns, least_ns })
    };
    Tuned {
        threads: sweep.threads,
        chosen: chosen.map(|i| last.settings[i].variables.clone()),
        cells: CONSTRUCTS.iter().filter_map(cell).collect(),
        tried: sweep.settings.len(),
        refused: sweep.settings.iter().filter(|s| s.times.is_err()).count(),
        launches: sweep.launches + last.launches,
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::tests::trial;
    use super::*;
    use crate::openmp::Runtime;

    #[test]
    fn the_first_of_those_that_are_equally_fast_is_chosen() {
        let sweep = trial(&[&[100.0], &[52.0], &[50.0], &[90.0]]);
        assert_eq!(finalists(&sweep), [1, 2]);
        let found = outcome(&sweep, &trial(&[&[100.0, 100.0], &[50.5], &[50.0]]));
        assert_eq!(found.chosen, Some(vec![("A".into(), "1".into())]));
        assert!((found.gain() - 100.0 / 50.5).abs() < 1e-9);
        assert_eq!((found.tried, found.cells.len(), found.cells[0].least_ns), (4, 6, 50.0));
    }

    #[test]
    fn the_default_stays_where_nothing_is_clearly_faster() {
        let sweep = trial(&[&[100.0], &[97.0], &[110.0]]);
        let found = outcome(&sweep, &trial(&[&[100.0], &[97.0]]));
        assert_eq!((found.chosen.clone(), found.gain()), (None, 1.0));
        let slower = trial(&[&[100.0], &[120.0]]);
        assert!(finalists(&slower).is_empty());
        assert_eq!(outcome(&slower, &Trial::new(4)).cells[0].time_ns, 100.0);
    }

    #[test]
    fn each_kind_of_barrier_gets_its_best_shape() {
        let shapes = shapes(Runtime::Libomp, 2);
        let mut sweep = trial(&[&[100.0], &[50.0], &[49.0], &[60.0]]);
        assert_eq!(mixed(&sweep, 1, 2, &shapes[..2]), Variables::new(), "nothing is clearly faster");
        let Ok(times) = &mut sweep.settings[3].times else { unreachable!() };
        (0..2).for_each(|_| times.push(crate::mpi::Cell::new("reduction", 4), 10.0));
        assert_eq!(mixed(&sweep, 1, 2, &shapes[..2]), shapes[1].of(Barrier::Reduction));
        assert_eq!(mixed(&sweep, 0, 2, &shapes[..1]), shapes[0].of_all());
    }
}

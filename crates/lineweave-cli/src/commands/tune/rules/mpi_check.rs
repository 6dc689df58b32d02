//! Comparison of an MPI with a file's rules and by default.
//!
//! Rules are read when an MPI starts, and launches differ by more than algorithms do. Where algorithms can be forced while the MPI runs, they are timed in
//! both launches, and tell how these differ.

use super::check::{self, Kind};
use super::mpi::{hosts, launchers, order};
use crate::commands::tune::Arguments as Tune;
use crate::error::CliError;
use crate::mpi::{lengths, Algorithm, Cell, Curves, Effort, Flavour, Host, Runs, Setting};
use crate::script::{exports, fact, Variables, WHAT};
use crate::session::Session;
use lineweave_core::collective::Collective;
use std::collections::BTreeMap;
use std::path::Path;

/// Compares an MPI by default and with the rules of a file, for each number of ranks.
pub fn run(tune: &Tune, file: &Path, text: &str, session: &mut Session) -> Result<(), CliError> {
    let ruled_by = exports(text).and_then(|exported| match exported.is_empty() {
        true => Err("nothing is exported".to_owned()),
        false => Ok(exported),
    });
    let ruled_by = ruled_by.map_err(|why| CliError::malformed(file, WHAT, why))?;
    let launchers = launchers(tune)?;
    let hosts = hosts(tune, &launchers, session)?;
    let effort = order(tune, &[]).effort();
    let lengths =
        |&c: &Collective| lengths(c, &effort.bytes).into_iter().map(move |b| Cell::new(c.name(), b));
    let cells: Vec<Cell> = effort.collectives.iter().flat_map(lengths).collect();
    let (mut slower, mut all) = (0, 0);
    for (host, flavour) in &hosts {
        let ranks = host.facts.ranks;
        if let Some(of) = fact(text, "ranks").filter(|of| !of.split(',').any(|of| of == ranks.to_string())) {
            session
                .out
                .warn(&format!("the file's rules are for {of} ranks, and the launcher starts {ranks}"));
        }
        let timed = match flavour.switches() {
            true => by_pairs(tune, (host, *flavour), &cells, &ruled_by, session)?,
            false => by_turns(tune, (host, *flavour), &ruled_by, session)?,
        };
        if hosts.len() > 1 {
            session.out.line(&format!("{ranks} ranks:"))?;
        }
        let mut compared = check::compared(&cells, &timed.default, &timed.ruled);
        if tune.rules.exhaustive {
            compared.iter_mut().for_each(|cell| cell.beside(&timed.own));
        }
        let kind = Kind {
            json: "tune-mpi-check",
            task: "collective",
            at: "bytes",
            with: "with rules",
            ranks: Some(ranks),
        };
        slower += check::show(&compared, &kind, session)?;
        all += compared.len();
    }
    check::verdict(file, slower, all)
}

/// Times of a check: by default, with the file's rules, and of each algorithm forced.
#[derive(Default)]
struct Timed {
    default: Curves,
    ruled: Curves,
    own: BTreeMap<String, Curves>,
}

/// Compares an MPI with the rules and by default by means of controls, which do the same in launches with and without the rules: the default itself
/// where it can be forced beside rules, or forced algorithms. Times with the rules are scaled so that these take the same in both.
fn by_pairs(
    tune: &Tune,
    (host, flavour): (&Host, Flavour),
    cells: &[Cell],
    ruled_by: &Variables,
    session: &Session,
) -> Result<Timed, CliError> {
    let order = order(tune, &[]);
    let without = Effort { rounds: 1, ..order.effort() };
    let with = Effort { environment: ruled_by.clone(), ..without.clone() };
    let every = flavour.algorithms(&host.mpi, host.facts.ranks, &with.collectives);
    let first = |&c: &Collective| every.iter().find(|a| a.collective == c).cloned();
    let (all, controls) = match (flavour.forced_defaults(&with.collectives), tune.rules.exhaustive) {
        (Some(defaults), true) => (every, defaults),
        (Some(defaults), false) => (Vec::new(), defaults),
        (None, true) => (every.clone(), every),
        (None, false) => {
            let controls: Vec<Algorithm> = with.collectives.iter().filter_map(first).collect();
            (controls.clone(), controls)
        }
    };
    let mut timed = Timed::default();
    for round in 0..order.effort().rounds {
        let measure = |of: &Effort, algorithms: &[Algorithm]| {
            order.measure(host, flavour, of, algorithms.to_vec(), session)
        };
        let (plain, ruled) = if round % 2 == 0 {
            let plain = measure(&without, &all)?;
            (plain, measure(&with, &controls)?)
        } else {
            let ruled = measure(&with, &controls)?;
            (measure(&without, &all)?, ruled)
        };
        for cell in cells {
            timed.add(cell, &plain, &ruled);
        }
    }
    timed.own.values_mut().for_each(|times| times.level(&timed.ruled));
    timed.default.level(&timed.ruled);
    timed.ruled.level(&timed.ruled.clone());
    Ok(timed)
}

impl Timed {
    /// Adds a round's times of a cell.
    fn add(&mut self, cell: &Cell, plain: &Runs, ruled: &Runs) {
        let at = |curves: &Curves| curves.at(&cell.task, cell.bytes);
        let (Some(default), Some(with)) = (at(&plain.default), at(&ruled.default)) else { return };
        let of = |runs: &Runs, algorithm: &Algorithm| {
            let setting = runs.settings.iter().find(|s| s.algorithm == *algorithm)?;
            at(setting.times.as_ref().ok()?)
        };
        let control = |setting: &Setting| {
            let with = of(ruled, &setting.algorithm)?;
            let without =
                if setting.algorithm.is_default() { default } else { of(plain, &setting.algorithm)? };
            Some((without / with).ln())
        };
        let controls: Vec<f64> = ruled.settings.iter().filter_map(control).collect();
        let scale = (controls.iter().sum::<f64>() / controls.len().max(1) as f64).exp();
        self.default.push(cell.clone(), default);
        self.ruled.push(cell.clone(), with * scale);
        for setting in &plain.settings {
            // Where it was timed beside the rules, that counts.
            let beside = of(ruled, &setting.algorithm).map(|time| time * scale);
            if let Some(time) = beside.or(of(plain, &setting.algorithm)) {
                self.own.entry(setting.algorithm.name.clone()).or_default().push(cell.clone(), time);
            }
        }
    }
}

/// Compares an MPI with the rules and by default, as jobs that take turns.
fn by_turns(
    tune: &Tune,
    (host, flavour): (&Host, Flavour),
    ruled_by: &Variables,
    session: &Session,
) -> Result<Timed, CliError> {
    let order = order(tune, &[]);
    let effort = Effort { beside: Some(ruled_by.clone()), ..order.effort() };
    let all = match tune.rules.exhaustive {
        true => flavour.algorithms(&host.mpi, host.facts.ranks, &effort.collectives),
        false => Vec::new(),
    };
    let runs = order.measure(host, flavour, &effort, all, session)?.levelled();
    let own = runs.settings.into_iter().filter_map(|s| Some((s.algorithm.name, s.times.ok()?)));
    let mut timed = Timed { default: runs.default, ruled: runs.beside, own: BTreeMap::new() };
    own.for_each(|(name, times)| timed.own.entry(name).or_default().extend(&times));
    Ok(timed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn algorithm(value: &str) -> Algorithm {
        let (name, value) = (format!("name {value}"), value.to_owned());
        Algorithm {
            collective: Collective::Bcast,
            name,
            value,
            form: None,
            calls: &[],
            copies: None,
            least: 0,
        }
    }

    /// Returns the runs of a launch: the default's time, and those of algorithms by their values.
    fn runs(default_ns: f64, algorithms: &[(&str, f64)]) -> Runs {
        let curves = |nanos: f64| {
            let mut curves = Curves::default();
            curves.push(Cell::new("bcast", 8), nanos);
            curves
        };
        let setting =
            |(value, nanos): &(&str, f64)| Setting { algorithm: algorithm(value), times: Ok(curves(*nanos)) };
        let settings = algorithms.iter().map(setting).collect();
        Runs { default: curves(default_ns), settings, launches: 1, ..Runs::default() }
    }

    fn times(timed: &Timed) -> (f64, f64) {
        let at = |curves: &Curves| curves.at("bcast", 8).unwrap();
        (at(&timed.default), at(&timed.ruled))
    }

    #[test]
    fn a_launch_with_rules_that_is_slow_altogether_is_not_slower_by_its_rules() {
        let cell = Cell::new("bcast", 8);
        // Forced algorithms take twice and eight times as long there: four times on the geometric mean.
        let mut timed = Timed::default();
        timed.add(
            &cell,
            &runs(100.0, &[("1", 80.0), ("2", 50.0)]),
            &runs(200.0, &[("1", 160.0), ("2", 400.0)]),
        );
        let (default, ruled) = times(&timed);
        assert!(default == 100.0 && (ruled - 50.0).abs() < 1e-9, "{ruled}");
        // What was timed beside the rules counts beside them.
        assert!((timed.own["name 2"].at("bcast", 8).unwrap() - 100.0).abs() < 1e-9);
        // A default that is forced beside the rules is compared with the default.
        let mut timed = Timed::default();
        timed.add(&cell, &runs(100.0, &[("1", 80.0)]), &runs(150.0, &[("", 300.0)]));
        let (default, ruled) = times(&timed);
        assert!(default == 100.0 && (ruled - 50.0).abs() < 1e-9, "{ruled}");
        assert_eq!(timed.own["name 1"].at("bcast", 8), Some(80.0));
    }
}

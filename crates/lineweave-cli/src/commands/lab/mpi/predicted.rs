//! The models' predictions for each algorithm beside its times, and the algorithm that the default is.

use super::errors::{errors, Wrong};
use super::predictors::{Predictors, Row};
use crate::mpi::code::same;
use crate::mpi::{lengths, whole, Algorithm, Cell, Curves, Effort, Facts, Runs, Setting, CODE, MODELS};
use lineweave_core::collective::Collective;
use lineweave_lab::models::error::mean_relative;
use lineweave_lab::models::named::{name, Candidate, Stretch};
use serde::Serialize;

/// A range of lengths at which the default is one algorithm. Printed as `lab-mpi-named` by `lineweave lab mpi`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Named {
    pub collective: Collective,
    /// `code` where the library's own algorithms, forced, run the same code; `measured` where they take the same time; else the model that
    /// predicts their times.
    pub by: &'static str,
    pub from_bytes: u64,
    pub to_bytes: u64,
    /// The library's name of the algorithm.
    pub algorithm: String,
    /// Other algorithms whose times, or code, do not differ.
    pub alike: Vec<String>,
    /// Mean of |default - candidate| / default.
    pub error: f64,
}

impl Named {
    fn covers(&self, collective: Collective, bytes: u64) -> bool {
        self.collective == collective && (self.from_bytes..=self.to_bytes).contains(&bytes)
    }
}

/// Names by times beside those by code, counted over collectives and lengths. Printed as `lab-mpi-checked` by `lineweave lab mpi`, for `measured` and
/// for `tau-Lop`.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Checked {
    /// The times by which the default is named.
    pub by: &'static str,
    /// Cases in which the name, or one that does the same among so many ranks, is the code's.
    pub right: usize,
    pub wrong: usize,
    /// Cases in which no forced algorithm runs the default's code, or none is named.
    pub undecided: usize,
    /// The wrong ones: the name, and those by code.
    pub mistaken: Vec<(Collective, u64, String, Vec<String>)>,
}

/// The time of the default algorithm. Printed as `lab-mpi-default` by `lineweave lab mpi`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Default {
    pub collective: Collective,
    pub bytes: u64,
    pub measured_ns: f64,
}

/// All results that are shown.
#[derive(Clone, PartialEq, Debug)]
pub struct Study {
    /// Algorithms by length.
    pub rows: Vec<Row>,
    pub defaults: Vec<Default>,
    /// Errors of the models: over all lengths, then over messages alone, then by collective.
    pub errors: Vec<Wrong>,
    /// The algorithm that each default was found to be.
    pub named: Vec<Named>,
    /// The names by times, beside those by code.
    pub checked: Vec<Checked>,
    /// Algorithms without a time, and the reason.
    pub absent: Vec<(Collective, String, String)>,
}

impl Study {
    /// Compares the measured times with the predicted ones; of `unforced` there are predictions alone.
    pub fn of(
        facts: &Facts,
        effort: &Effort,
        runs: &Runs,
        models: &Predictors,
        unforced: &[Algorithm],
    ) -> Study {
        let (mut rows, mut absent, mut defaults) = (Vec::new(), Vec::new(), Vec::new());
        let row = |algorithm: &Algorithm, bytes: u64, measured_ns: Option<f64>| Row {
            collective: algorithm.collective,
            algorithm: algorithm.name.clone(),
            value: algorithm.value.clone(),
            form: algorithm.form.map(|form| form.to_string()),
            bytes,
            measured_ns,
            predicted_ns: models.predict(algorithm, facts.ranks, bytes, measured_ns),
        };
        for Setting { algorithm, times } in &runs.settings {
            let collective = algorithm.collective;
            match times {
                Ok(times) => {
                    rows.extend(lengths(collective, &effort.bytes).into_iter().filter_map(|bytes| {
                        let measured_ns = times.at(collective.name(), bytes)?;
                        Some(row(algorithm, bytes, Some(measured_ns)))
                    }))
                }
                Err(why) => absent.push((collective, algorithm.name.clone(), why.clone())),
            }
        }
        for algorithm in unforced {
            let all = lengths(algorithm.collective, &effort.bytes).into_iter();
            rows.extend(all.map(|bytes| row(algorithm, bytes, None)));
        }
        for &collective in &effort.collectives {
            for bytes in lengths(collective, &effort.bytes) {
                if let Some(measured_ns) = runs.default.at(collective.name(), bytes) {
                    defaults.push(Default { collective, bytes, measured_ns });
                }
            }
        }
        let errors = errors(&rows, &effort.collectives);
        let mut all: Vec<Named> = Vec::new();
        for &collective in &effort.collectives {
            all.extend(by_code(collective, &defaults, runs));
            all.extend(named(collective, &defaults, &rows));
        }
        let checked = checked(&all, &defaults, runs, facts.ranks);
        Study { rows, defaults, errors, named: all, checked, absent }
    }

    /// Returns the time of the default algorithm.
    pub fn default_of(&self, collective: Collective, bytes: u64) -> Option<f64> {
        let of = |d: &&Default| d.collective == collective && d.bytes == bytes;
        self.defaults.iter().find(of).map(|d| d.measured_ns)
    }
}

/// Returns the algorithm that a collective's default is: once by the times of forced algorithms, once by tau-Lop's.
fn named(collective: Collective, defaults: &[Default], rows: &[Row]) -> Vec<Named> {
    let curve: Vec<&Default> = defaults.iter().filter(|d| d.collective == collective).collect();
    let times: Vec<f64> = curve.iter().map(|d| d.measured_ns).collect();
    let mut names: Vec<&str> = Vec::new();
    for row in rows.iter().filter(|r| r.collective == collective) {
        if !names.contains(&row.algorithm.as_str()) {
            names.push(&row.algorithm);
        }
    }
    let candidates = |of: fn(&Row) -> Option<f64>| -> Vec<Candidate> {
        let at = |name: &str, bytes: u64| {
            let here = |r: &&Row| r.collective == collective && r.algorithm == name && r.bytes == bytes;
            rows.iter().find(here).and_then(of)
        };
        let one = |name: &&str| Candidate {
            name: (*name).to_owned(),
            times: curve.iter().map(|d| at(name, d.bytes)).collect(),
        };
        names.iter().map(one).filter(|c| c.times.iter().any(Option::is_some)).collect()
    };
    let measured = candidates(|row| row.measured_ns);
    let predicted = candidates(|row| row.predicted_ns[0]);
    let mut list = Vec::new();
    for (by, all) in [("measured", measured), (MODELS[0], predicted)] {
        let stretch = |s: Stretch| Named {
            collective,
            by,
            from_bytes: curve[s.from].bytes,
            to_bytes: curve[s.to].bytes,
            algorithm: all[s.candidate].name.clone(),
            alike: s.alike.iter().map(|&c| all[c].name.clone()).collect(),
            error: s.error,
        };
        list.extend(name(&times, &all).into_iter().map(stretch));
    }
    list
}

/// Returns the algorithms whose code a collective's default runs, by stretch.
fn by_code(collective: Collective, defaults: &[Default], runs: &Runs) -> Vec<Named> {
    let task = format!("{CODE}{}", collective.name());
    let forced: Vec<&Setting> =
        runs.settings.iter().filter(|s| s.algorithm.collective == collective).collect();
    let elsewhere = |cell: &Cell| cell.task.starts_with(CODE) && cell.task != task;
    let noise: Vec<Vec<f64>> =
        runs.default.all().filter(|(cell, _)| elsewhere(cell)).map(|(_, code)| code.to_vec()).collect();
    let mut list: Vec<Named> = Vec::new();
    for d in defaults.iter().filter(|d| d.collective == collective) {
        let of = |times: &Curves| times.launches(&task, d.bytes).map(<[f64]>::to_vec);
        let candidates: Vec<_> = forced.iter().map(|s| of(s.times.as_ref().ok()?)).collect();
        let found = of(&runs.default).map_or(Vec::new(), |default| same(&default, &candidates, &noise));
        let mut names = found.into_iter().map(|i| forced[i].algorithm.name.clone());
        let Some(algorithm) = names.next() else { continue };
        let (alike, bytes): (Vec<String>, u64) = (names.collect(), d.bytes);
        match list.last_mut() {
            Some(last) if last.algorithm == algorithm && last.alike == alike => last.to_bytes = bytes,
            _ => list.push(Named {
                collective,
                by: "code",
                from_bytes: bytes,
                to_bytes: bytes,
                algorithm,
                alike,
                error: 0.0,
            }),
        }
    }
    for named in &mut list {
        let times =
            forced.iter().find(|s| s.algorithm.name == named.algorithm).and_then(|s| s.times.as_ref().ok());
        let pair = |d: &Default| Some((d.measured_ns, times?.at(collective.name(), d.bytes)?));
        let pairs: Vec<(f64, f64)> =
            defaults.iter().filter(|d| named.covers(d.collective, d.bytes)).filter_map(pair).collect();
        named.error = mean_relative(&pairs).unwrap_or(0.0);
    }
    list
}

/// Counts the names by times that are those by code.
fn checked(named: &[Named], defaults: &[Default], runs: &Runs, ranks: usize) -> Vec<Checked> {
    let one = |by: &'static str| {
        let mut checked = Checked { by, right: 0, wrong: 0, undecided: 0, mistaken: Vec::new() };
        for d in defaults {
            let find = |by: &str| named.iter().find(|n| n.by == by && n.covers(d.collective, d.bytes));
            let (Some(name), Some(truth)) = (find(by), find("code")) else {
                checked.undecided += 1;
                continue;
            };
            let does = |name: &String| {
                let of = |s: &&Setting| s.algorithm.collective == d.collective && s.algorithm.name == *name;
                let form = runs.settings.iter().find(of)?.algorithm.form?;
                form.stages(ranks, whole(d.collective, ranks, d.bytes)).ok()
            };
            let same = |other: &String| {
                *other == name.algorithm || does(other).is_some_and(|d| Some(d) == does(&name.algorithm))
            };
            let truths: Vec<String> =
                std::iter::once(&truth.algorithm).chain(&truth.alike).cloned().collect();
            match truths.iter().filter(|t| same(t)).count() {
                0 => {
                    checked.wrong += 1;
                    checked.mistaken.push((d.collective, d.bytes, name.algorithm.clone(), truths));
                }
                n if n == truths.len() => checked.right += 1,
                // The code of some algorithms is the same, and not what they do.
                _ => checked.undecided += 1,
            }
        }
        checked
    };
    ["measured", MODELS[0]].map(one).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::Models;
    use lineweave_lab::models::Form;

    fn algorithm(name: &str, form: Form) -> Algorithm {
        let (collective, name, value) = (Collective::Bcast, name.to_owned(), "1".to_owned());
        Algorithm { collective, name, value, form: Some(form), calls: &[], copies: None, least: 0 }
    }

    /// Checks a library whose messages take 500 ns and 0.1 ns a byte, and whose default is binomial up to 4 KiB and a scatter and a ring
    /// beyond.
    #[test]
    fn a_library_of_known_parameters_is_predicted_and_named() {
        let transfer = |bytes: u64, tau: u64| (500.0 + 0.1 * bytes as f64) * (1.0 + 0.02 * (tau - 1) as f64);
        let mut timed = Curves::default();
        for bytes in std::iter::once(0).chain((3..=22).map(|i| 1u64 << i)) {
            timed.push(Cell::new("pingpong", bytes), transfer(bytes, 1));
            timed.push(Cell::new("passing", bytes), 1.2 * transfer(bytes, 1));
            for tau in [2, 4] {
                timed.push(Cell::new(&format!("ring{tau}"), bytes), transfer(bytes, tau));
                timed.push(Cell::new(&format!("turn{tau}"), bytes), 1.2 * transfer(bytes, tau));
            }
        }
        timed.push(Cell::new("copy4", 8), 1.0);
        timed.push(Cell::new("send", 8), 60.0);
        timed.push(Cell::new("stream", 0), 100.0);
        let models = Models::fit(&timed).unwrap();
        let effort = Effort {
            bytes: vec![8, 512, 4096, 1 << 18, 1 << 20, 1 << 22],
            collectives: vec![Collective::Bcast],
            rounds: 1,
            window_ms: 1,
            channel: false,
            code: false,
            ruled_by: None,
        };
        let forms = [("binomial", Form::BinomialBcast), ("ring", Form::ScatterRingBcast)];
        let time = |form: Form, bytes| models.predict(&algorithm("", form), 4, bytes)[0].unwrap();
        let mut default = Curves::default();
        // Waits in the code of each, at the lengths at which it is the default.
        let code = |curves: &mut Curves, bytes, algorithm: f64| {
            [0.0, algorithm, 9.0]
                .iter()
                .for_each(|&frame| curves.push(Cell::new("code-bcast", bytes), frame));
        };
        let setting = |(name, form): (&str, Form)| {
            let mut times = Curves::default();
            effort.bytes.iter().for_each(|&b| code(&mut times, b, if name == "ring" { 3.0 } else { 2.0 }));
            effort.bytes.iter().for_each(|&b| times.push(Cell::new("bcast", b), 1.02 * time(form, b)));
            Setting { algorithm: algorithm(name, form), times: Ok(times) }
        };
        let settings: Vec<Setting> = forms.map(setting).into();
        for &bytes in &effort.bytes {
            default.push(Cell::new("bcast", bytes), time(forms[usize::from(bytes > 4096)].1, bytes));
            code(&mut default, bytes, if bytes > 4096 { 3.0 } else { 2.0 });
        }
        let runs = Runs { channel: timed, default, settings, ..Runs::default() };
        let facts = Facts { ranks: 4, nodes: 1, cpus: 4, version: String::new() };
        let predictors = Predictors::fit(runs.clone()).unwrap();
        let study = Study::of(&facts, &effort, &runs, &predictors, &[]);
        let all = study.errors.iter().find(|e| e.model == "tau-Lop" && e.collective.is_none()).unwrap();
        assert!((all.mean_relative - 0.02 / 1.02).abs() < 1e-6 && all.pairs == 12, "{all:?}");
        // The same library, if nothing were known of its settings: tau-Lop's predictions name its default all the same.
        let unforced: Vec<Algorithm> = runs.settings.iter().map(|s| s.algorithm.clone()).collect();
        let unknown = Runs { settings: Vec::new(), ..runs.clone() };
        let unknown = Study::of(&facts, &effort, &unknown, &predictors, &unforced);
        assert!(unknown.rows.iter().all(|r| r.measured_ns.is_none()) && unknown.errors.is_empty());
        let names: Vec<(&str, &str)> = unknown.named.iter().map(|n| (n.by, n.algorithm.as_str())).collect();
        assert_eq!(names, [("tau-Lop", "binomial"), ("tau-Lop", "ring")]);
        // In a tree the root sends what the caller gave; after a scatter all have been written.
        let written = study.rows.iter().all(|r| {
            let ratio = r.predicted_ns[1].unwrap() / r.predicted_ns[0].unwrap();
            if r.algorithm == "ring" {
                (ratio - 1.0).abs() < 1e-9
            } else {
                (1.05..1.2).contains(&ratio)
            }
        });
        assert!(written);
        assert!(
            study.checked.iter().all(|c| (c.right, c.wrong, c.undecided) == (6, 0, 0)),
            "{:?}",
            study.checked
        );
        for by in ["code", "measured", "tau-Lop"] {
            let found: Vec<(&str, u64)> = study
                .named
                .iter()
                .filter(|n| n.by == by)
                .map(|n| (n.algorithm.as_str(), n.to_bytes))
                .collect();
            assert_eq!(found, [("binomial", 4096), ("ring", 1 << 22)], "{by}");
        }
        // The error of a name by code is of its own collective, whatever another one takes at these lengths.
        let mut other = runs.clone();
        effort.bytes.iter().for_each(|&bytes| other.default.push(Cell::new("reduce", bytes), 1.0));
        let both = Effort { collectives: vec![Collective::Bcast, Collective::Reduce], ..effort.clone() };
        let study = Study::of(&facts, &both, &other, &predictors, &[]);
        for named in study.named.iter().filter(|n| n.by == "code") {
            assert!((named.error - 0.02).abs() < 1e-9, "{named:?}");
        }
    }
}

//! Comparison of a library as it is and with a file's settings, launched in turns.
//!
//! The ranks of an MPI check each answer before it is timed, so a launch that ends well had correct results.

use crate::bench::mpi::{median, ratio};
use crate::error::CliError;
use crate::mpi::{Cell, Curves, Line};
use crate::output::table;
use crate::script::Variables;
use crate::session::Session;
use indicatif::ProgressBar;
use lineweave_core::units::{Bytes, Nanos};
use serde_json::{json, Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// Ratio beyond which a cell counts as slower.
const SLOWER: f64 = 1.03;
/// Ratio to the library's fastest algorithm within which a cell counts as near.
const NEAR: f64 = 1.05;

/// The names of a comparison.
pub struct Kind {
    /// The kind of its JSON objects.
    pub json: &'static str,
    /// The name of what is timed.
    pub task: &'static str,
    /// The name of what it depends on: bytes or threads.
    pub at: &'static str,
    /// The heading of the times with the file's settings.
    pub with: &'static str,
    /// Number of ranks of an MPI, which checks its answers.
    pub ranks: Option<usize>,
}

/// Launches the library with these variables, which the words name in errors.
pub type Launch<'a> = dyn FnMut(&Variables, &str) -> Result<Vec<Line>, CliError> + 'a;

/// A cell without the rules or settings of a file, and with them. Printed as `tune-mpi-check` and `tune-openmp-check` by `lineweave tune --check`:
/// `ranks`, `collective` and `bytes`, or `construct` and `threads`, `default_ns` and `ruled_ns`, their `ratio` with its `interval`, `slower`, true if
/// slower by more than 3 % in all rounds, and with `--exhaustive` the library's fastest algorithm, `best`, or `default`, and its time, `best_ns`. An MPI's times are
/// scaled so that the default took the same in all rounds.
#[derive(Clone, PartialEq, Debug)]
pub struct Compared {
    cell: Cell,
    default_ns: f64,
    ruled_ns: f64,
    /// Time with the settings divided by the time without: the median of the rounds' ratios.
    ratio: f64,
    /// The ratio's 95 % interval by ranks, or the extremes of fewer than 6 rounds.
    interval: [f64; 2],
    slower: bool,
    /// The library's fastest algorithm and its time, where all were timed.
    best: Option<(String, f64)>,
}

impl Compared {
    /// Returns the time with the settings divided by that of the library's fastest algorithm.
    fn over_best(&self) -> Option<f64> {
        self.best.as_ref().map(|(_, best)| self.ruled_ns / best)
    }

    /// Notes the times of the library's algorithms, or of its default, in this cell.
    pub fn beside(&mut self, algorithms: &BTreeMap<String, Curves>) {
        let at = |curves: &Curves| curves.at(&self.cell.task, self.cell.bytes);
        let timed = algorithms.iter().filter_map(|(name, curves)| Some((name.clone(), at(curves)?)));
        let default = ("default".to_owned(), self.default_ns);
        self.best = timed.chain([default]).min_by(|a, b| a.1.total_cmp(&b.1));
    }
}

/// Launches without and with these variables in turns.
pub fn alternate(
    rounds: usize,
    variables: &Variables,
    bar: &ProgressBar,
    launch: &mut Launch<'_>,
) -> Result<(Curves, Curves), CliError> {
    let (mut default, mut ruled) = (Curves::default(), Curves::default());
    let none = Variables::new();
    for round in 0..rounds {
        let mut sides =
            [(&none, &mut default, "default"), (variables, &mut ruled, "with the file's settings")];
        if round % 2 == 1 {
            sides.reverse();
        }
        for (variables, curves, side) in sides {
            bar.set_message(format!("round {}: {side}", round + 1));
            curves.add(&launch(variables, side)?);
            bar.inc(1);
        }
    }
    Ok((default, ruled))
}

/// Returns the comparison of each cell that both have times of.
pub fn compared(cells: &[Cell], default: &Curves, ruled: &Curves) -> Vec<Compared> {
    let compare = |cell: &Cell| {
        let (name, at) = (cell.task.as_str(), cell.bytes);
        let (ratio, interval) = ratio(ruled.launches(name, at)?, default.launches(name, at)?);
        Some(Compared {
            cell: cell.clone(),
            default_ns: default.at(name, at)?,
            ruled_ns: ruled.at(name, at)?,
            ratio,
            interval,
            // A cell does not count where the rounds themselves differ by more than that.
            slower: ratio > SLOWER && interval[0] > 1.0,
            best: None,
        })
    };
    cells.iter().filter_map(compare).collect()
}

/// Returns the number of slower cells.
pub fn slower(cells: &[Compared]) -> usize {
    cells.iter().filter(|c| c.slower).count()
}

/// Returns the geometric mean of the ratios.
pub fn mean(cells: &[Compared]) -> f64 {
    (cells.iter().map(|c| c.ratio.ln()).sum::<f64>() / cells.len().max(1) as f64).exp()
}

/// Shows the comparison, and returns the number of slower cells.
pub fn show(cells: &[Compared], kind: &Kind, session: &mut Session) -> Result<usize, CliError> {
    let slower = slower(cells);
    let out = &mut session.out;
    cells.iter().try_for_each(|cell| out.object(kind.json, &cell.object(kind)))?;
    let exhaustive = cells.iter().any(|c| c.best.is_some());
    let mut headings = vec![kind.task, kind.at, "default", kind.with, "ratio", "interval"];
    headings.extend(if exhaustive { &["best of all", "", "over it", ""][..] } else { &[""] });
    let mut lines = table(&headings, &[1, 2, 3, 4, 5, 7, 8]);
    for c in cells {
        let at = if kind.at == "bytes" { Bytes(c.cell.bytes).to_string() } else { c.cell.bytes.to_string() };
        let mut row = vec![
            c.cell.task.clone(),
            at,
            Nanos(c.default_ns).to_string(),
            Nanos(c.ruled_ns).to_string(),
            format!("{:.2}", c.ratio),
            format!("{:.2} to {:.2}", c.interval[0], c.interval[1]),
        ];
        if let (Some((name, best)), Some(over)) = (&c.best, c.over_best()) {
            row.extend([name.clone(), Nanos(*best).to_string(), format!("{over:.2}")]);
        }
        row.push(if c.slower { "slower".to_owned() } else { String::new() });
        lines.add_row(row);
    }
    out.table(&lines)?;
    let equal = if kind.ranks.is_some() { "all results equal; " } else { "" };
    out.line(&format!("{equal}geometric mean of the ratios {:.2}", mean(cells)))?;
    let over: Vec<f64> = cells.iter().filter_map(Compared::over_best).collect();
    if !over.is_empty() {
        let near = over.iter().filter(|over| **over <= NEAR).count();
        let (cells, median) = (over.len(), median(&over));
        out.line(&format!(
            "within 5 % of the library's best in {near} of {cells} cells; median over the best {median:.2}"
        ))?;
    }
    Ok(slower)
}

/// Ends a check.
pub fn verdict(file: &Path, slower: usize, cells: usize) -> Result<(), CliError> {
    match slower {
        0 => Ok(()),
        slower => Err(CliError::Slower { path: file.to_owned(), slower, cells }),
    }
}

impl Compared {
    fn object(&self, kind: &Kind) -> Map<String, Value> {
        let fields = [
            (kind.task, json!(self.cell.task)),
            (kind.at, json!(self.cell.bytes)),
            ("default_ns", json!(self.default_ns)),
            ("ruled_ns", json!(self.ruled_ns)),
            ("ratio", json!(self.ratio)),
            ("interval", json!(self.interval)),
            ("slower", json!(self.slower)),
        ];
        let ranks = kind.ranks.map(|ranks| ("ranks", json!(ranks)));
        let best = self.best.iter().flat_map(|(name, ns)| [("best", json!(name)), ("best_ns", json!(ns))]);
        fields.into_iter().chain(ranks).chain(best).map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slower_is_what_is_slower_in_all_rounds() {
        let cells = [8, 64, 512].map(|bytes| Cell::new("bcast", bytes));
        let curves = |times: [[f64; 3]; 3]| {
            let mut curves = Curves::default();
            for (bytes, launches) in [8, 64, 512].into_iter().zip(times) {
                launches.iter().for_each(|t| curves.push(Cell::new("bcast", bytes), *t));
            }
            curves
        };
        let default = curves([[100.0, 200.0, 100.0]; 3]);
        let ruled = curves([[50.0, 100.0, 50.0], [110.0, 190.0, 120.0], [110.0, 230.0, 105.0]]);
        let mut found = compared(&cells, &default, &ruled);
        assert_eq!(found.iter().map(|c| c.slower).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!((found[0].ratio, found[0].default_ns, found[0].ruled_ns), (0.5, 100.0, 50.0));
        found[0].beside(&BTreeMap::from([("a".to_owned(), curves([[40.0; 3]; 3]))]));
        assert_eq!((found[0].best.clone(), found[0].over_best()), (Some(("a".to_owned(), 40.0)), Some(1.25)));
        found[1].beside(&BTreeMap::new());
        assert_eq!(found[1].best, Some(("default".to_owned(), 100.0)));
    }
}

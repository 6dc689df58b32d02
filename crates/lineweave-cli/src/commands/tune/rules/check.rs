//! Comparison of a library as it is and with a file's settings, launched in turns.
//!
//! The ranks of an MPI check each answer before it is timed, so a launch that ends well had correct results.

use crate::bench::mpi::ratio;
use crate::error::CliError;
use crate::mpi::{Cell, Curves, Line};
use crate::output::table;
use crate::script::Variables;
use crate::session::Session;
use indicatif::ProgressBar;
use lineweave_core::units::{Bytes, Nanos};
use serde_json::{json, Map, Value};
use std::path::Path;

/// The kind of file, for errors.
pub const WHAT: &str = "file of export lines";
/// Ratio beyond which a cell counts as slower.
const SLOWER: f64 = 1.03;

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
    /// Number of ranks, where it is the same for all cells.
    pub ranks: Option<usize>,
}

/// Launches the library with these variables, which the words name in errors.
pub type Launch<'a> = dyn FnMut(&Variables, &str) -> Result<Vec<Line>, CliError> + 'a;

/// The times of a cell without and with the settings.
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
}

/// Launches without and with these variables in turns.
///
/// # Errors
/// [`CliError::Malformed`] where there are no variables; the error of a launch.
pub fn alternate(
    rounds: usize,
    variables: &Variables,
    bar: &ProgressBar,
    file: &Path,
    launch: &mut Launch<'_>,
) -> Result<(Curves, Curves), CliError> {
    if variables.is_empty() {
        return Err(CliError::malformed(file, WHAT, "nothing is exported"));
    }
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
        })
    };
    cells.iter().filter_map(compare).collect()
}

/// Shows the comparison, and returns the number of slower cells.
///
/// # Errors
/// [`CliError::Output`].
pub fn show(cells: &[Compared], kind: &Kind, session: &mut Session) -> Result<usize, CliError> {
    let slower = cells.iter().filter(|c| c.slower).count();
    let out = &mut session.out;
    if out.is_json() {
        cells.iter().try_for_each(|cell| out.object(kind.json, &cell.object(kind)))?;
        return Ok(slower);
    }
    let headings = [kind.task, kind.at, "default", kind.with, "ratio", "interval", ""];
    let mut lines = table(&headings, &[1, 2, 3, 4, 5]);
    for c in cells {
        let at = if kind.at == "bytes" { Bytes(c.cell.bytes).to_string() } else { c.cell.bytes.to_string() };
        lines.add_row([
            c.cell.task.clone(),
            at,
            Nanos(c.default_ns).to_string(),
            Nanos(c.ruled_ns).to_string(),
            format!("{:.2}", c.ratio),
            format!("{:.2} to {:.2}", c.interval[0], c.interval[1]),
            if c.slower { "slower".to_owned() } else { String::new() },
        ]);
    }
    out.table(&lines)?;
    let mean = (cells.iter().map(|c| c.ratio.ln()).sum::<f64>() / cells.len().max(1) as f64).exp();
    out.line(&format!("geometric mean of the ratios {mean:.2}"))?;
    Ok(slower)
}

/// Ends a check.
///
/// # Errors
/// [`CliError::Slower`] where cells are slower.
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
        fields.into_iter().chain(ranks).map(|(name, value)| (name.to_owned(), value)).collect()
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
        let found = compared(&cells, &default, &ruled);
        assert_eq!(found.iter().map(|c| c.slower).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!((found[0].ratio, found[0].default_ns, found[0].ruled_ns), (0.5, 100.0, 50.0));
    }
}

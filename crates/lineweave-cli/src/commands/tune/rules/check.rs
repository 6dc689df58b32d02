//! Comparison of an MPI as it is and with a file's `export` lines, launched in turns.
//!
//! The ranks check each answer before it is timed, so a launch that ends well had correct results.

use crate::bench::mpi::ratio;
use crate::error::CliError;
use crate::mpi::rules::{exports, ranks};
use crate::mpi::{lengths, task, with_reference, Curves, Effort, Host, HostError, Variables};
use crate::output::table;
use crate::session::Session;
use lineweave_core::collective::Collective;
use lineweave_core::units::{Bytes, Nanos};
use serde::Serialize;
use std::path::Path;

/// Ratio beyond which a cell counts as slower.
const SLOWER: f64 = 1.03;

#[derive(Clone, PartialEq, Debug, Serialize)]
struct Compared {
    collective: Collective,
    bytes: u64,
    default_ns: f64,
    ruled_ns: f64,
    /// Time with the rules divided by the time without: the median of the rounds' ratios.
    ratio: f64,
    /// The ratio's 95 % interval by ranks, or the extremes of fewer than 6 rounds.
    interval: [f64; 2],
    slower: bool,
}

/// Compares both and shows the result.
///
/// # Errors
/// [`CliError::Malformed`] for a file without `export` lines; [`CliError::Host`] when a launch fails, also by a wrong result;
/// [`CliError::Slower`].
pub fn run(file: &Path, host: &Host, effort: &Effort, session: &mut Session) -> Result<(), CliError> {
    const WHAT: &str = "file of export lines";
    let text = std::fs::read_to_string(file).map_err(|e| CliError::read(file, WHAT, e))?;
    let variables = exports(&text).map_err(|why| CliError::malformed(file, WHAT, why))?;
    if variables.is_empty() {
        return Err(CliError::malformed(file, WHAT, "nothing is exported"));
    }
    if let Some(of) = ranks(&text).filter(|of| *of != host.facts.ranks) {
        session.out.warn(&format!(
            "the file's rules are for {of} ranks, and the launcher starts {}",
            host.facts.ranks
        ));
    }
    let tasks = with_reference(effort.collectives.iter().map(|c| task(*c, &effort.bytes)).collect());
    let (mut default, mut ruled) = (Curves::default(), Curves::default());
    let none = Variables::new();
    let bar = session.out.progress(2 * effort.rounds as u64);
    for round in 0..effort.rounds {
        let mut sides = [(&none, &mut default, "default"), (&variables, &mut ruled, "with the rules")];
        if round % 2 == 1 {
            sides.reverse();
        }
        for (variables, curves, name) in sides {
            bar.set_message(format!("round {}: {name}", round + 1));
            let lines = host.launch(&tasks, effort.window_ms, variables).map_err(|failed| {
                HostError::Broken { command: format!("{}, {name}", host.command), how: failed.how }
            })?;
            curves.add(&lines);
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let cells = compared(effort, &default, &ruled);
    show(&cells, session)?;
    match cells.iter().filter(|c| c.slower).count() {
        0 => Ok(()),
        slower => Err(CliError::Slower { path: file.to_owned(), slower, cells: cells.len() }),
    }
}

fn compared(effort: &Effort, default: &Curves, ruled: &Curves) -> Vec<Compared> {
    let cell = |(collective, bytes): (Collective, u64)| {
        let name = collective.name();
        let (ours, theirs) = (ruled.launches(name, bytes)?, default.launches(name, bytes)?);
        let (ratio, interval) = ratio(ours, theirs);
        Some(Compared {
            collective,
            bytes,
            default_ns: default.at(name, bytes)?,
            ruled_ns: ruled.at(name, bytes)?,
            ratio,
            interval,
            // A cell does not count where the rounds themselves differ by more than that.
            slower: ratio > SLOWER && interval[0] > 1.0,
        })
    };
    let all =
        effort.collectives.iter().flat_map(|&c| lengths(c, &effort.bytes).into_iter().map(move |b| (c, b)));
    all.filter_map(cell).collect()
}

fn show(cells: &[Compared], session: &mut Session) -> Result<(), CliError> {
    let out = &mut session.out;
    if out.is_json() {
        return cells.iter().try_for_each(|cell| out.object("tune-mpi-check", cell));
    }
    let mut lines =
        table(&["collective", "bytes", "default", "with rules", "ratio", "interval", ""], &[1, 2, 3, 4, 5]);
    for c in cells {
        lines.add_row([
            c.collective.to_string(),
            Bytes(c.bytes).to_string(),
            Nanos(c.default_ns).to_string(),
            Nanos(c.ruled_ns).to_string(),
            format!("{:.2}", c.ratio),
            format!("{:.2} to {:.2}", c.interval[0], c.interval[1]),
            if c.slower { "slower".to_owned() } else { String::new() },
        ]);
    }
    out.table(&lines)?;
    let mean = (cells.iter().map(|c| c.ratio.ln()).sum::<f64>() / cells.len().max(1) as f64).exp();
    out.line(&format!("all results equal; geometric mean of the ratios {mean:.2}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mpi::Cell;

    #[test]
    fn slower_is_what_is_slower_in_all_rounds() {
        let effort = Effort {
            bytes: vec![8, 64, 512],
            collectives: vec![Collective::Bcast],
            rounds: 3,
            window_ms: 1,
            channel: false,
        };
        let curves = |times: [[f64; 3]; 3]| {
            let mut curves = Curves::default();
            for (bytes, launches) in [8, 64, 512].into_iter().zip(times) {
                launches.iter().for_each(|t| curves.push(Cell::new("bcast", bytes), *t));
            }
            curves
        };
        let default = curves([[100.0, 200.0, 100.0]; 3]);
        let ruled = curves([[50.0, 100.0, 50.0], [110.0, 190.0, 120.0], [110.0, 230.0, 105.0]]);
        let found = compared(&effort, &default, &ruled);
        assert_eq!(found.iter().map(|c| c.slower).collect::<Vec<_>>(), [false, false, true]);
        assert_eq!((found[0].ratio, found[0].default_ns, found[0].ruled_ns), (0.5, 100.0, 50.0));
    }
}

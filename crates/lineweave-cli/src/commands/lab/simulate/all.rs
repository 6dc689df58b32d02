//! Every algorithm of a collective on one machine, fastest first.

use super::report::Row;
use super::{one, Arguments, Case};
use crate::error::CliError;
use lineweave_core::algorithm;
use lineweave_core::machine::Machine;
use lineweave_lab::simulate::SimulateError;

/// The name that stands for all algorithms.
pub const NAME: &str = "all";

/// Windows shorter than this are not tried.
const SHORTEST: usize = 64;

/// Returns one row for each algorithm of the table that fits the machine, fastest first. If the message is too long for a
/// box, the algorithm is simulated in the longest windows that fit, among halves of the message.
pub fn rows(arguments: &Arguments, machine: &Machine, case: &Case) -> Result<Vec<Row>, CliError> {
    let mut rows = Vec::new();
    let mut last = None;
    for algorithm in algorithm::table(arguments.collective) {
        let name = format!("{}/{}", arguments.collective, algorithm.name);
        let mut window = arguments.window.map(|w| w.0);
        loop {
            match one(arguments, machine, case, &name, window, false) {
                Ok(row) => rows.push(row),
                Err(CliError::Simulate(SimulateError::BoxFull { .. })) => {
                    let half = window.unwrap_or(case.bytes) / 2;
                    let half = half - half % SHORTEST;
                    if half >= SHORTEST && arguments.window.is_none() {
                        window = Some(half);
                        continue;
                    }
                }
                // The algorithm is not for this machine or these ranks, or lacks a parameter that was given.
                Err(error) => last = Some(error),
            }
            break;
        }
    }
    rows.sort_by(|a, b| a.times.time_ns.total_cmp(&b.times.time_ns));
    match (rows.is_empty(), last) {
        (true, Some(error)) => Err(error),
        _ => Ok(rows),
    }
}

//! `--bounds`: the least and the greatest time of each plan, beside the min-max models and the simulated time.

use crate::commands::lab::subject::Subject;
use crate::commands::lab::LabError;
use crate::error::CliError;
use crate::output::{table, Output};
use crate::question::Place;
use lineweave_core::collective::Collective;
use lineweave_core::machine::Machine;
use lineweave_core::plan::Params;
use lineweave_core::select::Question;
use lineweave_core::topology::Placement;
use lineweave_core::units::{Bytes, Nanos};
use lineweave_lab::closed_form::{self, window};
use lineweave_lab::models::cache_line::{BEST, WORST};
use lineweave_lab::simulate::bounds::{bounds, STATES};
use lineweave_lab::simulate::coherent::Settings;
use serde::Serialize;

/// The bounds of one algorithm: of one call from memory, over all orders in which ranks may meet at cache lines. Printed as `bounds` by `lineweave
/// lab models --bounds`, one object an algorithm and message that goes in one window.
#[derive(Serialize, Debug)]
pub struct Row {
    collective: Collective,
    algorithm: &'static str,
    params: Params,
    ranks: usize,
    bytes: usize,
    /// The time by `min-max, best`.
    best_ns: Option<f64>,
    /// The time by `min-max, worst`.
    worst_ns: Option<f64>,
    /// The time in the order in which `lineweave lab simulate` serves requests.
    simulated_ns: f64,
    /// The least time that was found.
    least_ns: f64,
    /// A time that the least is not below.
    floor_ns: f64,
    greatest_ns: f64,
    /// True if all orders were looked at, so that both are exact; else the least may be down to `floor_ns`, and the greatest above `greatest_ns`.
    complete: bool,
    states: usize,
    /// Said where the best case is above the least, or the worst case below the greatest.
    remark: Option<String>,
}

/// Returns the machine that is simulated and the limit of states, if bounds are asked for.
pub fn machine(
    asked: Option<Option<usize>>,
    subject: &Subject,
) -> Result<Option<(&Machine, usize)>, CliError> {
    let Some(states) = asked else { return Ok(None) };
    match subject.machine.as_ref().filter(|m| m.coherent.is_some()) {
        Some(machine) => Ok(Some((machine, states.unwrap_or(STATES)))),
        None => Err(LabError::NoBounds { costs: subject.origin.clone() }.into()),
    }
}

/// Returns the bounds of every row whose plan takes the message in one window.
pub fn rows(
    machine: &Machine,
    subject: &Subject,
    question: &Question,
    rows: &[closed_form::Row],
    (place, states): (Place, usize),
) -> Result<Vec<Row>, CliError> {
    let mut list = Vec::new();
    let settings = Settings { threads_first: place.place == Placement::Thread, ..Settings::default() };
    for row in rows {
        let Ok((whole, plan)) = window(&subject.model, question, row.algorithm, &row.params) else {
            continue;
        };
        if whole < question.bytes {
            continue;
        }
        let found = bounds(machine, &question.shape, &plan, &settings, states)?;
        let of = |name| row.predictions.iter().find(|p| p.model == name)?.time.as_ref().ok().map(|t| t.nanos);
        let (best_ns, worst_ns) = (of(BEST), of(WORST));
        // What was found is at least the least and at most the greatest.
        let above = best_ns.is_some_and(|ns| ns > found.least.nanos());
        let below = worst_ns.is_some_and(|ns| ns < found.greatest.nanos());
        let remark = match (above, below) {
            (true, true) => Some("best above the least, worst below the greatest"),
            (true, false) => Some("best above the least"),
            (false, true) => Some("worst below the greatest"),
            (false, false) => None,
        };
        list.push(Row {
            collective: question.collective,
            algorithm: row.algorithm.name,
            params: row.params.clone(),
            ranks: question.shape.ranks(),
            bytes: question.bytes,
            best_ns,
            worst_ns,
            simulated_ns: found.simulated.nanos(),
            least_ns: found.least.nanos(),
            floor_ns: found.floor.nanos(),
            greatest_ns: found.greatest.nanos(),
            complete: found.complete,
            states: found.states,
            remark: remark.map(str::to_owned),
        });
    }
    Ok(list)
}

/// Prints the bounds of one size.
pub fn text(question: &Question, rows: &[Row], out: &mut Output) -> Result<(), CliError> {
    if rows.is_empty() {
        return Ok(());
    }
    out.line(&format!(
        "\n{} of {} among {} ranks, one call from memory, over all orders at cache lines",
        question.collective,
        Bytes(question.bytes as u64),
        question.shape.ranks()
    ))?;
    let mut found = table(
        &["algorithm", BEST, "least", "simulated", "greatest", WORST, "states", ""],
        &[1, 2, 3, 4, 5, 6],
    );
    let time = |ns: f64| Nanos(ns).to_string();
    let or_dash = |ns: Option<f64>| ns.map_or("-".to_owned(), time);
    for row in rows {
        let (least, greatest) = match row.complete {
            true => (time(row.least_ns), time(row.greatest_ns)),
            false => (
                format!("{} to {}", time(row.floor_ns), time(row.least_ns)),
                format!("{} or more", time(row.greatest_ns)),
            ),
        };
        found.add_row([
            row.algorithm.to_owned(),
            or_dash(row.best_ns),
            least,
            time(row.simulated_ns),
            greatest,
            or_dash(row.worst_ns),
            row.states.to_string(),
            row.remark.clone().unwrap_or_default(),
        ]);
    }
    out.table(&found)?;
    match rows.iter().filter(|row| !row.complete).count() {
        0 => Ok(()),
        some => out.line(&format!(
            "{some} of {} searches were bounded: the least is between the two times, the greatest at least what was found; --bounds=N looks at N states",
            rows.len()
        )),
    }
}

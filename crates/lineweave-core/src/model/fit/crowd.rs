//! Parameters that more than two ranks tell: probes `star` and `partners`, folds out of several peers' buffers at once, and copies
//! by the kernel out of one.
//!
//! - A rank that sets flags in a row while others poll them: each further one takes the time between two such stores.
//! - A flag that more and more ranks poll and answer, each on a line of its own: each further answer is one more load of a row.
//! - A line with more and more writers: each further one takes it from the one before, who has modified it.
//! - Copies by the kernel of the same pages by several at once: each page takes what they take beyond one copy.
//! - Rounds whose partners change: each is an ownership and a read. How far that is from what was measured is a residual.

use super::super::cells::{sigma, Cells};
use super::super::least_squares::{weighted, Observation};
use super::super::{Fitted, LevelCosts, Point, Residual, Surface, PAGE};
use super::{FitError, Notes};
use crate::profile::Cell;
use crate::topology::Level;
use std::collections::BTreeMap;

/// Returns the time that each further rank adds to a star, if several numbers of ranks were measured.
fn each_further(
    cells: &Cells,
    level: Level,
    (call, answers): (&str, &str),
    notes: &mut Notes,
) -> Result<Option<Fitted>, FitError> {
    let mut found = Vec::new();
    for cell in cells.at("star", level, &[("call", call), ("answers", answers)]) {
        found.push((f64::from(cells.factor::<u32>(cell, "others")?), cell));
    }
    let fit = notes.fit(format!("star[{call}, {answers}]@{level}"), &found, |others| vec![others, 1.0]);
    Ok(fit.map(|fit| fit.coefficients[0].at_least(0.0)))
}

/// Between stores to lines that others poll.
pub(super) fn stores(cells: &Cells, level: Level, notes: &mut Notes) -> Result<Option<Fitted>, FitError> {
    let found = each_further(cells, level, ("each", "apart"), notes)?;
    if found.is_none() {
        notes.missing(
            "stores",
            "no cell sets flags in a row that several others poll; half of an ownership transfer stands in",
        );
    }
    Ok(found)
}

/// Between loads of flags in a row.
pub(super) fn row(cells: &Cells, level: Level, notes: &mut Notes) -> Result<Option<Fitted>, FitError> {
    each_further(cells, level, ("one", "apart"), notes)
}

/// Taking a line from another who has just written it.
pub(super) fn writers(cells: &Cells, level: Level, notes: &mut Notes) -> Result<Option<Fitted>, FitError> {
    each_further(cells, level, ("one", "line"), notes)
}

/// Notes the residual of rounds whose partners change, against an ownership and a read each.
pub(super) fn partners(cells: &Cells, near: &LevelCosts, notes: &mut Notes) -> Result<(), FitError> {
    let transfers = near.own.value + near.read.value;
    let mut rows = Vec::new();
    for cell in cells.at("partners", near.level, &[("layout", "alone")]) {
        let rounds = f64::from(cells.factor::<u32>(cell, "rounds")?);
        rows.push((rounds, 1.0 - transfers / cell.stats.median.max(1e-9)));
    }
    rows.retain(|row| row.0 > 1.0);
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    if let (Some(first), Some(last)) = (rows.first(), rows.last()) {
        notes.residuals.push(Residual {
            of: format!("own + R_R of partners@{}", near.level),
            from: first.0,
            to: last.0,
            bias: rows.iter().map(|r| r.1).sum::<f64>() / rows.len() as f64,
            worst: rows.iter().map(|r| r.1.abs()).fold(0.0, f64::max),
        });
    }
    Ok(())
}

/// Folds of bytes that a peer has just written: out of one box, and out of as many buffers at once.
pub(super) fn folds(
    cells: &Cells,
    (element, op): (&str, &str),
    notes: &mut Notes,
) -> Result<Option<Surface>, FitError> {
    let of = |source| cells.with("fold", &[("type", element), ("op", op), ("source", source)]);
    let (slot, peers) = (of("slot"), of("peers"));
    if peers.is_empty() && !slot.is_empty() {
        notes.missing(
            "fold[tau > 1]",
            "no cell folds out of several peers' buffers at once; out of one box, slowed as copies are, stands in",
        );
    }
    cells.surface(&slot.into_iter().chain(peers).collect::<Vec<_>>())
}

/// Fits the extra cost of a page that several ranks copy at once by the kernel, by their number: the time of those copies beyond
/// one that is `alone`.
pub(super) fn pinning(
    cells: &Cells,
    shared: &[&Cell],
    alone: &Surface,
    notes: &mut Notes,
) -> Result<Option<Surface>, FitError> {
    let mut by_readers: BTreeMap<u32, Vec<&Cell>> = BTreeMap::new();
    for cell in shared {
        by_readers.entry(cells.factor(cell, "readers")?).or_default().push(cell);
    }
    let mut pages = Vec::new();
    for (readers, found) in by_readers {
        let (mut points, mut observations) = (Vec::new(), Vec::new());
        for cell in found {
            let bytes = cells.factor::<u32>(cell, "bytes")?;
            let one = alone.reported(bytes as usize);
            points.push((f64::from(bytes), cell.stats.median));
            observations.push(Observation {
                basis: vec![f64::from(bytes) / PAGE as f64],
                value: cell.stats.median - one.value,
                sigma: sigma(cell).hypot(one.sigma()),
            });
        }
        let Some(fit) = weighted(&observations) else { continue };
        notes.segments(format!("attach[{readers} readers]"), &points, &fit);
        let page = fit.coefficients[0];
        let (cost, weight) = (page.at_least(0.0), page.sigma().max(1e-3).powi(-2));
        pages.push(Point { bytes: PAGE as u64, tau: readers, cost, weight });
    }
    if pages.is_empty() {
        notes.missing(
            "attach[readers > 1]",
            "no cell copies the same pages by several ranks at once; two ownership transfers a page stand in",
        );
    }
    Ok(Surface::from_points(&pages))
}

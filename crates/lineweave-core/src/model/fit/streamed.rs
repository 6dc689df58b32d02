//! Copies past the caches: from which size on they win, and what they cost.

use super::{FitError, Notes};
use crate::model::cells::Cells;
use crate::model::{Point, Surface};
use crate::profile::Cell;
use std::collections::BTreeMap;

/// Non-temporal stores must take at most this share of a plain copy's time: whoever reads the destination next
/// pays for it not being in a cache, which the probe does not see.
const NT_GAIN: f64 = 0.8;

/// The size from which on non-temporal stores win (docs/explanation/measuring.md: a trick is used only where it wins): midway between the largest probed
/// size at which they do not and the next one.
pub(super) fn from(cells: &Cells) -> Result<Option<u64>, FitError> {
    let mut wins: Option<BTreeMap<u64, bool>> = None;
    for pattern in ["local", "get"] {
        let of = |kind| cells.with("copy", &[("pattern", pattern), ("kind", kind), ("tau", "1")]);
        let plain = of("plain");
        let mut here = BTreeMap::new();
        for nt in of("nt") {
            let bytes: u64 = cells.factor(nt, "bytes")?;
            let same = |c: &&&Cell| c.factors.get("bytes") == nt.factors.get("bytes");
            let won = plain.iter().filter(same).all(|c| nt.stats.ci_high < NT_GAIN * c.stats.ci_low);
            let before = wins.as_ref().is_none_or(|w| w.get(&bytes).copied().unwrap_or(false));
            let so_far = here.get(&bytes).copied().unwrap_or(true);
            here.insert(bytes, won && before && so_far);
        }
        wins = Some(here);
    }
    let wins = wins.unwrap_or_default();
    let Some((&least, _)) = wins.iter().rev().take_while(|(_, &won)| won).last() else { return Ok(None) };
    let lost = wins.range(..least).next_back();
    Ok(Some(lost.map_or(least, |(&below, _)| below.midpoint(least))))
}

/// Fits the cost of copies past the caches within private memory. Where nobody measured several at once, they slow each other as those
/// through the caches do.
pub(super) fn surface(cells: &Cells, copy: &Surface, notes: &mut Notes) -> Result<Option<Surface>, FitError> {
    let mut points = cells.points(&cells.with("copy", &[("pattern", "local"), ("kind", "nt")]))?;
    let alone: Vec<Point> = points.iter().filter(|p| p.tau == 1).copied().collect();
    let measured = points.len();
    for &tau in copy.taus.iter().filter(|&&tau| tau > 1) {
        for one in &alone {
            if points.iter().any(|p| (p.bytes, p.tau) == (one.bytes, tau)) {
                continue;
            }
            let [beside, alone] = [tau, 1].map(|tau| copy.at(one.bytes as usize, tau as usize).nanos);
            points.push(Point { tau, cost: one.cost.inferred(beside / alone.max(1e-9)), ..*one });
        }
    }
    if measured > 0 && measured == alone.len() && points.len() > measured {
        let because = "no cell has several copies past the caches at once: they slow each other as those through the caches do";
        notes.missing("copy[nt, tau > 1]", because);
    }
    Ok(Surface::from_points(&points))
}

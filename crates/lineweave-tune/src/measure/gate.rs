//! The plausibility gate (docs/explanation/measuring.md, rule 10): nothing is dropped, what is odd is said.

use super::clock::Clock;
use lineweave_core::profile::Cell;
use lineweave_core::topology::Level;

/// An interval wider than this part of the median is no basis for a choice.
const WIDE: f64 = 0.25;

/// Flags what is odd about cells by themselves and beside each other.
pub fn examine(cells: &mut [Cell]) {
    for cell in cells.iter_mut() {
        let s = cell.stats;
        if s.median <= 0.0 && cell.probe != "overhead" {
            cell.flagged.push("the median is zero: below what the clock can tell".to_owned());
        }
        if s.ci_high - s.ci_low > 2.0 * WIDE * s.median && s.median > Clock::get().tick_ns() {
            cell.flagged.push(format!("the interval is wider than {:.0} % of the median", 200.0 * WIDE));
        }
        if s.disturbed > s.samples {
            cell.flagged.push("more samples were disturbed than not".to_owned());
        }
    }
    for i in 0..cells.len() {
        let Some(near) = nearer(cells, i) else { continue };
        let (here, there) = (&cells[i].stats, &cells[near].stats);
        if here.ci_high < there.ci_low {
            let remark = format!(
                "{:.1} ns is less than the {:.1} ns of {}, which is nearer",
                here.median,
                there.median,
                cells[near].factors.get("level").map_or("", String::as_str)
            );
            cells[i].flagged.push(remark);
        }
    }
}

/// The cell of the same name at the next nearer distance.
fn nearer(cells: &[Cell], i: usize) -> Option<usize> {
    // Latencies only: a copy between sockets may well be faster than one between siblings.
    if !["line", "signal", "exchange", "pingpong", "states"].contains(&cells[i].probe.as_str()) {
        return None;
    }
    let level = level(&cells[i])?;
    let same = |other: &Cell| {
        other.probe == cells[i].probe
            && other.factors.iter().all(|(k, v)| k == "level" || cells[i].factors.get(k) == Some(v))
    };
    let nearer = cells.iter().enumerate().filter(|(_, c)| same(c));
    nearer
        .filter_map(|(j, c)| Some((j, self::level(c)?)))
        .filter(|(_, l)| *l < level)
        .max_by_key(|(_, l)| *l)
        .map(|(j, _)| j)
}

fn level(cell: &Cell) -> Option<Level> {
    cell.factors.get("level")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::profile::Stats;

    fn cell(level: &str, values: &[f64]) -> Cell {
        Cell {
            probe: "line".to_owned(),
            factors: [("level".to_owned(), level.to_owned())].into(),
            unit: "ns".to_owned(),
            stats: Stats::of(values, 0).expect("samples"),
            flagged: Vec::new(),
        }
    }

    #[test]
    fn a_far_line_that_is_faster_than_a_near_one_is_odd() {
        let mut cells = [cell("l3", &[50.0, 51.0]), cell("machine", &[30.0, 31.0]), cell("core", &[10.0])];
        examine(&mut cells);
        assert!(cells[0].flagged.is_empty() && cells[2].flagged.is_empty(), "{cells:?}");
        assert!(cells[1].flagged[0].contains("of l3, which is nearer"), "{cells:?}");
    }

    #[test]
    fn nothing_costs_nothing() {
        let mut cells = [cell("l3", &[0.0, 0.0, 0.0])];
        examine(&mut cells);
        assert_eq!(cells[0].flagged.len(), 1);
    }
}

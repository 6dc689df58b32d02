//! L(m, tau) as tables of shades: a column a length, a row a number of transfers at a time.

use super::colours::{self, SHADES};
use super::svg::{Anchor, Svg};
use super::{INK, INK_ON_PALE, PAPER, SOFT};
use lineweave_core::units::{Bytes, Nanos};

const LEFT: f64 = 64.0;
const TOP: f64 = 84.0;
const CELL: (f64, f64) = (66.0, 26.0);

/// One surface.
#[derive(Clone, PartialEq, Debug)]
pub struct Sampled {
    /// Title: the operation that the surface is the cost of.
    pub title: String,
    /// Numbers of transfers at a time.
    pub taus: Vec<u32>,
    /// Cost in ns at each tau, for each length that [`surfaces`] is given, and whether it was measured there rather than
    /// continued.
    pub cost: Vec<Vec<(f64, bool)>>,
}

/// Draws `tables` one below the other, at the lengths `bytes`. Shades are by ns a byte, over all tables and by logarithm;
/// values that continue what was measured are in brackets.
pub fn surfaces(title: &str, detail: &str, bytes: &[usize], tables: &[Sampled]) -> String {
    let rate = |i: usize, ns: f64| {
        let rate = ns / bytes[i].max(1) as f64;
        (rate > 0.0 && rate.is_finite()).then_some(rate)
    };
    let cells = tables.iter().flat_map(|t| t.cost.iter().enumerate());
    let rates: Vec<f64> = cells.flat_map(|(i, row)| row.iter().filter_map(move |c| rate(i, c.0))).collect();
    let low = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let high = rates.iter().copied().fold(0.0, f64::max);
    let shade = |rate: Option<f64>| match rate {
        Some(_) if high <= low => SHADES[2],
        rate => colours::shade(rate, low, high),
    };
    let mut svg = Svg::default();
    svg.heading(title, detail);
    let mut y = TOP;
    for table in tables {
        svg.text((LEFT, y - 4.0), 12.0, INK, Anchor::Start, true, &table.title);
        for (i, length) in bytes.iter().enumerate() {
            let middle = LEFT + (i as f64 + 0.5) * CELL.0;
            let text = Bytes(*length as u64).to_string();
            svg.text((middle, y + 12.0), 10.0, SOFT, Anchor::Middle, false, &text);
        }
        y += 18.0;
        for (j, tau) in table.taus.iter().enumerate() {
            let row = y + j as f64 * CELL.1;
            let name = format!("\u{3c4} = {tau}");
            svg.text((LEFT - 8.0, row + CELL.1 / 2.0 + 4.0), 11.0, SOFT, Anchor::End, false, &name);
            for (i, costs) in table.cost.iter().enumerate() {
                let Some(&(ns, measured)) = costs.get(j) else { continue };
                let (length, time) = (Bytes(bytes[i] as u64), Nanos(ns).to_string());
                let each = rate(i, ns).map_or_else(String::new, |r| format!(", {r:.3} ns a byte"));
                svg.open(&format!("{}: {length}, tau {tau}: {time}{each}", table.title));
                let fill = shade(rate(i, ns));
                let x = LEFT + i as f64 * CELL.0;
                svg.rect((x, row), (CELL.0 - 1.5, CELL.1 - 1.5), fill, 3.0);
                let ink = if SHADES[5..].contains(&fill) { PAPER } else { INK_ON_PALE };
                let text = if measured { time } else { format!("({time})") };
                let middle = (x + CELL.0 / 2.0, row + CELL.1 / 2.0 + 4.0);
                svg.text(middle, 10.0, ink, Anchor::Middle, false, &text);
                svg.close();
            }
        }
        y += table.taus.len() as f64 * CELL.1 + 30.0;
    }
    let width = LEFT + bytes.len() as f64 * CELL.0 + 16.0;
    svg.finish(width.max(Svg::heading_width(title, detail)), y, title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_is_drawn_with_its_time() {
        let table = Sampled {
            title: "get & put".to_owned(),
            taus: vec![1, 2],
            cost: vec![vec![(10.0, true), (20.0, true)], vec![(400.0, false), (f64::NAN, false)]],
        };
        let svg = surfaces("t", "d", &[64, 4096], &[table]);
        assert_eq!(svg.matches("<title>get &amp; put: ").count(), 4);
        assert!(svg.contains(">10.0 ns<") && svg.contains(">(400 ns)<"), "{svg}");
        assert!(surfaces("t", "d", &[], &[]).ends_with("</svg>\n"));
    }
}

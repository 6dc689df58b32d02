//! Load of a simulated mesh: a square a tile for its port, two bars between neighbours for their links.

use super::colours::SHADES;
use super::svg::{Anchor, Stroke, Svg};
use super::{INK_ON_PALE, PAPER, RULE, SOFT};
use crate::simulate::mesh::Load;
use lineweave_core::trace::Picos;
use lineweave_core::units::Nanos;

const TOP: f64 = 96.0;
const LEFT: f64 = 24.0;

/// The shade of a share of the busiest's time.
fn shade(busy: Picos, most: Picos) -> &'static str {
    match busy.0 {
        0 => SHADES[0],
        busy => {
            let steps = SHADES.len() as u64 - 1;
            SHADES[(busy * steps).div_ceil(most.0.max(1)).clamp(1, steps) as usize]
        }
    }
}

/// Draws `load`, under `title`. Shades are shares of the busiest port and of the busiest link, each of its own.
pub fn heat(load: &Load, title: &str) -> String {
    let (columns, rows) = (load.columns as usize, load.rows as usize);
    let cell = (1_400.0 / columns.max(rows) as f64).clamp(6.0, 120.0);
    let (tile, bar) = (cell * 0.6, (cell * 0.09).max(0.8));
    let width = (LEFT * 2.0 + columns as f64 * cell).max(420.0);
    let height = TOP + rows as f64 * cell + 24.0;
    let most_port = load.ports.iter().map(|p| p.busy).max().unwrap_or_default();
    let most_link = load.links.iter().flatten().copied().max().unwrap_or_default();
    let share = |busy: Picos| 100.0 * busy.0 as f64 / load.time.0.max(1) as f64;

    let mut svg = Svg::default();
    let dot = "  \u{b7}  ";
    let detail = format!(
        "{}{dot}busiest port {:.1} %{dot}busiest link {:.1} %",
        Nanos(load.time.nanos()),
        share(most_port),
        share(most_link)
    );
    svg.heading(title, &detail);
    for (i, colour) in SHADES.iter().enumerate() {
        svg.rect((LEFT + i as f64 * 22.0, 62.0), (22.0, 10.0), colour, 0.0);
    }
    let end = LEFT + SHADES.len() as f64 * 22.0;
    svg.text((LEFT, 86.0), 10.0, SOFT, Anchor::Start, false, "idle");
    svg.text((end, 86.0), 10.0, SOFT, Anchor::End, false, "as the busiest");

    let corner = |i: usize| {
        let (x, y) = ((i % columns) as f64, (i / columns) as f64);
        (LEFT + x * cell + (cell - tile) / 2.0, TOP + y * cell + (cell - tile) / 2.0)
    };
    let gap = cell - tile;
    // To the neighbour, or out of the picture where a torus goes round.
    let reach = |within: bool| if within { gap } else { gap / 2.0 };
    for (i, links) in load.links.iter().enumerate() {
        let (x, y) = corner(i);
        let (right, below) = (x + tile, y + tile);
        // East and west, south and north: the way out is nearer to the top or left.
        let places = [
            ((right, y + tile * 0.3), (reach(i % columns + 1 < columns), bar)),
            (
                (x - reach(!i.is_multiple_of(columns)), y + tile * 0.6),
                (reach(!i.is_multiple_of(columns)), bar),
            ),
            ((x + tile * 0.3, below), (bar, reach(i / columns + 1 < rows))),
            ((x + tile * 0.6, y - reach(i >= columns)), (bar, reach(i >= columns))),
        ];
        for ((at, size), busy) in places.into_iter().zip(links) {
            if busy.0 > 0 {
                svg.rect(at, size, shade(*busy, most_link), 0.0);
            }
        }
    }
    for (i, port) in load.ports.iter().enumerate() {
        let at = corner(i);
        let (x, y) = (i % columns, i / columns);
        let most = load.links[i].iter().copied().max().unwrap_or_default();
        svg.open(&format!(
            "tile {x},{y}: port {:.1} % of the time, at most {} waiting; links at most {:.1} %",
            share(port.busy),
            port.longest,
            share(most)
        ));
        svg.rect(at, (tile, tile), shade(port.busy, most_port), 1.0);
        svg.outline(at, (tile, tile), Stroke { colour: RULE, width: 0.6, dashed: false });
        if tile >= 34.0 {
            let middle = (at.0 + tile / 2.0, at.1 + tile / 2.0 + 4.0);
            let fill = shade(port.busy, most_port);
            // The two darkest shades need pale numbers.
            let ink = if SHADES[6..].contains(&fill) { PAPER } else { INK_ON_PALE };
            svg.text(middle, 11.0, ink, Anchor::Middle, false, &format!("{:.0} %", share(port.busy)));
        }
        svg.close();
    }
    svg.finish(width, height, title)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::mesh::PortLoad;

    #[test]
    fn shades_grow_with_the_load() {
        let most = Picos(100);
        assert_eq!(shade(Picos(0), most), SHADES[0]);
        assert_eq!(shade(Picos(1), most), SHADES[1]);
        assert_eq!(shade(Picos(100), most), SHADES[7]);
    }

    #[test]
    fn every_tile_and_busy_link_is_drawn() {
        let port = PortLoad { busy: Picos(50), longest: 2 };
        let load = Load {
            columns: 2,
            rows: 1,
            time: Picos(100),
            ports: vec![port; 2],
            links: vec![[Picos(25), Picos(0), Picos(0), Picos(0)], [Picos(0); 4]],
            controllers: vec![Picos(0)],
        };
        let svg = heat(&load, "a < b");
        assert_eq!(svg.matches("<g><title>tile").count(), 2);
        assert!(svg.contains("a &lt; b") && svg.contains("50 %") && svg.contains("busiest link 25.0 %"));
    }
}

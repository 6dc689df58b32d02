//! The marks of a plan's ops, and their legend.

use super::legend::Legend;
use super::svg::{Point, Stroke, Svg};
use super::{FOLD, IDLE, PAPER, SYNC, TRANSFER, WRONG};
use std::collections::BTreeSet;

/// The mark of an add.
pub(super) fn plus(svg: &mut Svg, (x, y): Point) {
    let thick = plain(SYNC, 2.5);
    svg.line((x - 5.0, y), (x + 5.0, y), thick);
    svg.line((x, y - 5.0), (x, y + 5.0), thick);
}

/// Draws a mark at a point.
type Glyph = fn(&mut Svg, Point);

/// Every entry of a legend, with its mark.
const ENTRIES: [(&str, Glyph); 11] = [
    ("transfer", |svg, (x, y)| svg.arrow((x, y), (x + 24.0, y), plain(TRANSFER, 2.0))),
    ("who moves it", |svg, (x, y)| svg.circle((x + 12.0, y), 3.5, TRANSFER, plain(PAPER, 1.0))),
    ("copy within a rank", |svg, (x, y)| svg.rect((x, y - 6.0), (24.0, 12.0), TRANSFER, 3.0)),
    ("fold", |svg, (x, y)| svg.rect((x, y - 6.0), (24.0, 12.0), FOLD, 3.0)),
    ("set a flag", |svg, (x, y)| {
        svg.polygon(&[(x + 8.0, y - 5.0), (x + 18.0, y), (x + 8.0, y + 5.0)], SYNC);
    }),
    ("add to a counter", |svg, (x, y)| plus(svg, (x + 12.0, y))),
    ("wait", |svg, (x, y)| svg.circle((x + 12.0, y), 4.5, PAPER, plain(SYNC, 1.8))),
    ("nothing to do meanwhile", |svg, (x, y)| svg.line((x, y), (x + 24.0, y), plain(IDLE, 3.0))),
    ("ends a wait", |svg, (x, y)| {
        svg.arrow((x, y), (x + 24.0, y), Stroke { colour: SYNC, width: 1.1, dashed: true });
    }),
    ("ends a wait and carries data", |svg, (x, y)| svg.arrow((x, y), (x + 24.0, y), plain(SYNC, 1.8))),
    ("never goes on", |svg, (x, y)| svg.circle((x + 12.0, y), 6.0, WRONG, plain(PAPER, 1.0))),
];

fn plain(colour: &'static str, width: f64) -> Stroke {
    Stroke { colour, width, dashed: false }
}

/// Returns the legend of what is drawn.
pub(super) fn legend(drawn: &BTreeSet<&'static str>) -> Legend<'static> {
    let mut legend = Legend::default();
    for (name, mark) in ENTRIES {
        legend.entry(drawn.contains(name), name, mark);
    }
    legend
}

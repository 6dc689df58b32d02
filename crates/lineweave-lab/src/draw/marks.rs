//! The marks of a plan's ops, and their legend.

use super::legend::Legend;
use super::svg::{Point, Stroke, Svg};
use super::{FOLD, IDLE, PAPER, SYNC, TRANSFER, WRONG};

/// Marks that a picture contains, of which its legend is made.
#[derive(Default)]
pub(super) struct Drawn {
    pub(super) transfer: bool,
    pub(super) mover: bool,
    pub(super) chip: bool,
    pub(super) fold: bool,
    pub(super) set: bool,
    pub(super) add: bool,
    pub(super) wait: bool,
    pub(super) idle: bool,
    pub(super) bare: bool,
    pub(super) payload: bool,
    pub(super) never: bool,
}

/// The mark of an add.
pub(super) fn plus(svg: &mut Svg, (x, y): Point) {
    let thick = Stroke { colour: SYNC, width: 2.5, dashed: false };
    svg.line((x - 5.0, y), (x + 5.0, y), thick);
    svg.line((x, y - 5.0), (x, y + 5.0), thick);
}

/// Returns the legend of what is drawn.
pub(super) fn legend(drawn: &Drawn) -> Legend<'static> {
    let plain = |colour, width| Stroke { colour, width, dashed: false };
    let mut legend = Legend::default();
    legend.entry(drawn.transfer, "transfer", move |svg, (x, y)| {
        svg.arrow((x, y), (x + 24.0, y), plain(TRANSFER, 2.0));
    });
    legend.entry(drawn.mover, "who moves it", move |svg, (x, y)| {
        svg.circle((x + 12.0, y), 3.5, TRANSFER, plain(PAPER, 1.0));
    });
    legend.entry(drawn.chip, "copy within a rank", |svg, (x, y)| {
        svg.rect((x, y - 6.0), (24.0, 12.0), TRANSFER, 3.0);
    });
    legend.entry(drawn.fold, "fold", |svg, (x, y)| svg.rect((x, y - 6.0), (24.0, 12.0), FOLD, 3.0));
    legend.entry(drawn.set, "set a flag", |svg, (x, y)| {
        svg.polygon(&[(x + 8.0, y - 5.0), (x + 18.0, y), (x + 8.0, y + 5.0)], SYNC);
    });
    legend.entry(drawn.add, "add to a counter", |svg, (x, y)| plus(svg, (x + 12.0, y)));
    legend.entry(drawn.wait, "wait", move |svg, (x, y)| {
        svg.circle((x + 12.0, y), 4.5, PAPER, plain(SYNC, 1.8));
    });
    legend.entry(drawn.idle, "nothing to do meanwhile", move |svg, (x, y)| {
        svg.line((x, y), (x + 24.0, y), plain(IDLE, 3.0));
    });
    legend.entry(drawn.bare, "ends a wait", |svg, (x, y)| {
        svg.arrow((x, y), (x + 24.0, y), Stroke { colour: SYNC, width: 1.1, dashed: true });
    });
    legend.entry(drawn.payload, "ends a wait and carries data", move |svg, (x, y)| {
        svg.arrow((x, y), (x + 24.0, y), plain(SYNC, 1.8));
    });
    legend.entry(drawn.never, "never goes on", move |svg, (x, y)| {
        svg.circle((x + 12.0, y), 6.0, WRONG, plain(PAPER, 1.0));
    });
    legend
}

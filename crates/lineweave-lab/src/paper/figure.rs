//! Figures of the papers, drawn anew: what comes out here, with the points that the papers' texts print.

use crate::draw::{charts, Axis, Chart, Mark, Scale, Series, Spot};

/// A figure or table of a paper as a picture.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Key of the paper.
    pub paper: &'static str,
    /// Name within the paper: `fig 8a`.
    pub item: String,
    /// Subject of the figure, in one line.
    pub title: String,
    /// Origin of the figure, in one line.
    pub detail: String,
    /// Side by side.
    pub charts: Vec<Chart>,
}

impl Figure {
    /// Makes the figure of a paper's item.
    pub(super) fn new(
        paper: &'static str,
        item: &str,
        title: &str,
        detail: &str,
        charts: Vec<Chart>,
    ) -> Figure {
        Figure { paper, item: item.to_owned(), title: title.to_owned(), detail: detail.to_owned(), charts }
    }

    /// The name of its file: `fig-8a.svg`.
    pub fn file(&self) -> String {
        format!("{}.svg", self.item.replace(' ', "-"))
    }

    /// The picture.
    pub fn svg(&self) -> String {
        charts(&format!("{}: {}", self.item, self.title), &self.detail, &self.charts)
    }
}

/// An axis from 0.
pub(super) fn linear(title: &str) -> Axis {
    Axis::new(title, Scale::Linear)
}

/// An axis by powers of ten.
pub(super) fn log(title: &str) -> Axis {
    Axis::new(title, Scale::Log)
}

/// An axis by powers of two.
pub(super) fn doubling(title: &str) -> Axis {
    Axis::new(title, Scale::Doubling)
}

/// An axis of lengths.
pub(super) fn bytes(title: &str) -> Axis {
    Axis::new(title, Scale::Bytes)
}

/// An axis of names.
pub(super) fn names<'a>(title: &str, names: impl IntoIterator<Item = &'a str>) -> Axis {
    Axis::new(title, Scale::Names(names.into_iter().map(str::to_owned).collect()))
}

/// A pair of axes.
pub(super) fn chart(title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Chart {
    Chart { title: title.to_owned(), x, y, series }
}

fn series(name: &str, of: &str, mark: Mark, spots: Vec<Spot>) -> Series {
    Series { name: name.to_owned(), mark, colour_of: of.to_owned(), spots }
}

fn spots(points: impl IntoIterator<Item = (f64, f64)>) -> Vec<Spot> {
    points.into_iter().map(|(x, y)| Spot { x, low: y, high: y }).collect()
}

/// Returns a series of simulated points.
pub(super) fn simulated(name: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
    series(name, name, Mark::Simulated, spots(points))
}

/// Returns the points of a closed form for the series `of`.
pub(super) fn model(name: &str, of: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
    series(name, of, Mark::Model, spots(points))
}

/// Returns the points that the paper prints for the series `of`.
pub(super) fn published(name: &str, of: &str, points: impl IntoIterator<Item = (f64, f64)>) -> Series {
    series(name, of, Mark::Published, spots(points))
}

/// Returns the ranges that the paper prints for the series `of`.
pub(super) fn published_ranges(
    name: &str,
    of: &str,
    ranges: impl IntoIterator<Item = (f64, f64, f64)>,
) -> Series {
    let spots = ranges.into_iter().map(|(x, low, high)| Spot { x, low, high });
    series(name, of, Mark::Published, spots.collect())
}

/// Returns the band that a closed form allows.
pub(super) fn band(name: &str, ranges: impl IntoIterator<Item = (f64, f64, f64)>) -> Series {
    let spots = ranges.into_iter().map(|(x, low, high)| Spot { x, low, high });
    series(name, name, Mark::Band, spots.collect())
}

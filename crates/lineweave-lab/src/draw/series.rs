//! Series of charts: their points, and what these come from.

use lineweave_core::names::named;

/// Origin of the points of a series.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// Measured on a machine at hand: dots joined by lines, each with the interval of its median as a bar.
    Measured,
    /// Measured, beside the lines that are to meet them: dots that are not joined, with the same bars.
    Dots,
    /// Simulated: dots joined by lines.
    Simulated,
    /// Predicted by a closed form: dashed.
    Model,
    /// Predicted, or a ratio: a line, dashed where all colours are taken.
    Line,
    /// Printed in a paper: hollow diamonds.
    Published,
    /// Band between the ends of what a closed form allows.
    Band,
    /// From quartile to quartile of what was measured: a hollow box. In no legend.
    Quartiles,
    /// From percentile 5 to 95 of what was measured: a thin line with ends. In no legend.
    Whiskers,
}

named!(
    Mark,
    Measured = "measured",
    Dots = "measured",
    Simulated = "simulated",
    Model = "model",
    Line = "line",
    Published = "published",
    Band = "band",
    Quartiles = "quartiles",
    Whiskers = "percentiles 5 and 95",
);

impl Mark {
    pub(super) fn is_spread(self) -> bool {
        matches!(self, Mark::Quartiles | Mark::Whiskers)
    }

    pub(super) fn is_line(self) -> bool {
        matches!(self, Mark::Model | Mark::Line)
    }
}

/// A value, or a range of values.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spot {
    /// Value on the axis to the right.
    pub x: f64,
    /// The least.
    pub low: f64,
    /// The most: as the least, where it is one value.
    pub high: f64,
}

/// Points of one thing.
#[derive(Clone, PartialEq, Debug)]
pub struct Series {
    /// Name of the series in the legend.
    pub name: String,
    /// Origin of the points.
    pub mark: Mark,
    /// The series whose colour this one has; its own name, or that of what it is to be compared with.
    pub colour_of: String,
    /// The points.
    pub spots: Vec<Spot>,
}

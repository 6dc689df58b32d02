//! Drawings of plans, traces, machines and choices, as self-contained SVG.
//!
//! Colours are Okabe & Ito's, which stay apart for colour-blind readers; every mark also differs in shape and
//! carries its op as a tooltip.

mod axis;
mod boxes;
mod chart;
mod curves;
mod heat;
mod map;
mod pairs;
mod plan;
mod spans;
mod steps;
mod surface;
mod svg;
mod trace;
mod tree;

pub use axis::{number, Axis, Scale};
pub use boxes::machine;
pub use chart::{charts, Chart, Mark, Series, Spot};
pub use curves::{curves, curves_on, Axes, Curve, Panel};
pub use heat::heat;
pub use map::{map, Cell};
pub use pairs::pairs;
pub use plan::plan;
pub use spans::{spans, Span};
pub use steps::{steps, Step, Steps};
pub use surface::{surfaces, Sampled};
pub use svg::escape;
pub use trace::trace;
pub use tree::tree;

/// Data that moves between ranks.
const TRANSFER: &str = "#0072b2";
/// Flags.
const SYNC: &str = "#d55e00";
/// Reductions.
const FOLD: &str = "#009e73";
/// Waiting.
const IDLE: &str = "#9ca3af";
/// Text.
const INK: &str = "#1f2937";
/// Text that matters less.
const SOFT: &str = "#6b7280";
/// Lanes.
const RULE: &str = "#e5e7eb";

//! Drawings of plans, times, machines and choices, as self-contained SVG.
//!
//! Every mark differs in shape as well as in colour, and carries its op as a tooltip; `colours.rs` has what stands for what.

mod alike;
mod axis;
mod boxes;
mod chart;
mod colours;
mod group;
mod heat;
mod large_machine;
mod large_pairs;
mod legend;
mod map;
mod marks;
mod pairs;
mod path;
mod plan;
mod rows;
mod series;
mod shared;
mod spans;
mod surface;
mod svg;
mod timeline;
mod tree;

pub use crate::steps::{steps, Step, Steps};
pub use axis::{number, Axis, Scale};
pub use boxes::machine;
pub use chart::{charts, compared, Chart};
pub use colours::dark_style;
use colours::{ADD, FOLD, IDLE, INK, INK_ON_PALE, PALE, PAPER, RULE, SOFT, SYNC, TRANSFER, WRONG};
pub use heat::heat;
pub use map::{map, Cell};
pub use pairs::pairs;
pub use path::{causes, critical, Hop};
pub use plan::plan;
pub use rows::{rows, Row, Sign};
pub use series::{Mark, Series, Spot};
pub use spans::{spans, Span};
pub use surface::{surfaces, Sampled};
pub use svg::escape;
pub use timeline::timeline;
pub use tree::tree;

//! Numbers that the paper prints: `papers/chunduri-2015/tables.toml`.

use crate::paper::given;
use serde::Deserialize;
use std::sync::LazyLock;

/// A time by where the remote process sits.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ByChip {
    pub(super) remote: Chip,
    pub(super) us: f64,
}

/// A chip; the first process is on A.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Chip {
    A,
    B,
    C,
    D,
}

/// Least, greatest and average time of Table III, in us.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Six {
    pub(super) min_us: f64,
    pub(super) max_us: f64,
    pub(super) average_us: f64,
}

/// A row of Table V.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Threads {
    pub(super) smt: usize,
    pub(super) tree_us: f64,
    pub(super) posix_us: f64,
}

/// Numbers in the text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Text {
    pub(super) one_integer_a_flag_us: f64,
    pub(super) one_line_a_flag_us: f64,
    pub(super) five_lines_a_flag_us: f64,
    pub(super) best_degrees: Vec<usize>,
    pub(super) degree_chosen: usize,
    pub(super) processes_192_us: f64,
}

/// All of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Printed {
    pub(super) ping_pong: Vec<ByChip>,
    pub(super) barrier_of_two: Vec<ByChip>,
    pub(super) barrier_of_seven: Vec<ByChip>,
    pub(super) barrier_of_six: Six,
    pub(super) threads: Vec<Threads>,
    pub(super) text: Text,
}

/// Returns the printed numbers, which are read once.
pub(super) fn printed() -> &'static Printed {
    const TEXT: &str = include_str!("../../../papers/chunduri-2015/tables.toml");
    static PRINTED: LazyLock<Printed> = LazyLock::new(|| given::printed("chunduri-2015/tables.toml", TEXT));
    &PRINTED
}

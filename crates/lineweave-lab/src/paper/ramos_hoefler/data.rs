//! Numbers that the paper prints, as data.

use crate::paper::given;
use lineweave_core::machine::{Location, State};
use serde::Deserialize;

/// A printed number: its value, and how much printing rounded away.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Printed {
    pub value: f64,
    /// Half a unit of the last digit.
    pub rounding: f64,
}

impl Printed {
    /// Returns whether `computed` is what was printed, when what it was computed from is itself known to within `inputs` only.
    pub fn is(self, computed: f64, inputs: f64) -> bool {
        // Decimal fractions are not exact in binary.
        (computed - self.value).abs() <= self.rounding + inputs + 1e-9
    }
}

impl<'de> Deserialize<'de> for Printed {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Printed, D::Error> {
        let text = String::deserialize(deserializer)?;
        printed(&text).ok_or_else(|| serde::de::Error::custom(format!("`{text}` is no printed number")))
    }
}

fn printed(text: &str) -> Option<Printed> {
    let digits = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    Some(Printed { value: text.parse().ok()?, rounding: 0.5 * 10f64.powi(-(digits as i32)) })
}

/// Tables 2.1 to 2.7.
#[derive(Deserialize)]
pub(super) struct PingPong {
    pub samples: usize,
    pub table: Vec<PingPongTable>,
}

#[derive(Deserialize)]
pub(super) struct PingPongTable {
    pub name: String,
    pub machine: String,
    pub location: String,
    rows: Vec<Vec<String>>,
}

/// One row: means and deviations.
pub(super) struct Row {
    pub send: State,
    pub recv: State,
    pub estimate: [Printed; 2],
    pub measured: [Printed; 2],
    pub difference: [Printed; 2],
}

impl PingPongTable {
    pub fn location(&self) -> Location {
        location(&self.location)
    }

    pub fn rows(&self) -> Vec<Row> {
        let row = |row: &Vec<String>| {
            let number = |i: usize| row.get(i).and_then(|t| printed(t)).expect("eight columns of numbers");
            let pair = |i: usize| [number(i), number(i + 1)];
            let state = |i: usize| state(&row[i]);
            Row { send: state(0), recv: state(1), estimate: pair(2), measured: pair(4), difference: pair(6) }
        };
        self.rows.iter().map(row).collect()
    }
}

pub(super) fn location(name: &str) -> Location {
    Location::ALL.into_iter().find(|l| l.name() == name).expect("a location's name")
}

pub(super) fn state(letter: &str) -> State {
    State::ALL.into_iter().find(|s| s.name() == letter).expect("a state's letter")
}

/// Tables 1.5 and 1.8, and the overheads of Eq. 2.6 to 2.20.
#[derive(Deserialize)]
pub(super) struct States {
    pub full: Vec<Cell>,
    pub phi: Vec<Group>,
    pub bridge: Vec<Group>,
    pub overhead: Vec<Overhead>,
}

/// A printed R.
#[derive(Deserialize)]
pub(super) struct Cell {
    pub location: String,
    pub state: String,
    pub ns: Printed,
}

/// Cells that the paper takes for one.
#[derive(Deserialize)]
pub(super) struct Group {
    pub symbol: String,
    /// Cells, each as `location state`.
    pub cells: Vec<String>,
    pub printed: Vec<Cell>,
}

/// An overhead O as printed.
#[derive(Deserialize)]
pub(super) struct Overhead {
    pub equation: String,
    pub table: String,
    pub send: String,
    pub recv: String,
    pub estimated_as: Option<String>,
    pub ns: Printed,
}

/// Tables B.1 to B.3.
#[derive(Deserialize)]
pub(super) struct Parameters {
    pub broadcast_damaged: Vec<usize>,
    pub broadcast: Vec<Degrees>,
    pub barrier: Vec<Rounds>,
    pub reduction: Vec<Degrees>,
}

#[derive(Deserialize)]
pub(super) struct Degrees {
    pub threads: usize,
    pub degrees: Vec<usize>,
}

#[derive(Deserialize)]
pub(super) struct Rounds {
    pub threads: usize,
    pub radix: usize,
    pub rounds: usize,
}

pub(super) fn ping_pong() -> PingPong {
    given::printed(
        "ramos-hoefler-2013/ping-pong.toml",
        include_str!("../../../papers/ramos-hoefler-2013/ping-pong.toml"),
    )
}

pub(super) fn states() -> States {
    given::printed(
        "ramos-hoefler-2013/states.toml",
        include_str!("../../../papers/ramos-hoefler-2013/states.toml"),
    )
}

pub(super) fn parameters() -> Parameters {
    given::printed(
        "ramos-hoefler-2013/parameters.toml",
        include_str!("../../../papers/ramos-hoefler-2013/parameters.toml"),
    )
}

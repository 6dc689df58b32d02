//! Costs of moving one line, or several, by location and state: the parameters of Ramos & Hoefler 2013.

use super::{read, Value};
use crate::names::named;
use serde::Deserialize;

/// State of a line in the cache of the core that is asked for it (Ramos & Hoefler, Tables 1.1 to 1.4).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
pub enum State {
    /// Modified.
    M,
    /// Exclusive.
    E,
    /// Shared.
    S,
    /// Invalid: in no cache.
    I,
    /// Forward: shared, and the one that answers (MESIF only).
    F,
}

named!(State, M = "M", E = "E", S = "S", I = "I", F = "F");

/// Location of a line, seen from the core that reads it (Ramos & Hoefler, section 1.3.2 and Tables 1.6 and 1.7).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Location {
    /// In the cache of the reader's own core (L).
    Core,
    /// In that of the next core of the package's ring (R).
    Adjacent,
    /// In that of a core half as far as the farthest (R).
    Middle,
    /// In that of the farthest core of the package's ring (R).
    Farthest,
    /// In that of another core of the package, wherever it is (P).
    Package,
    /// In that of a core of another package (N).
    Machine,
}

named!(
    Location,
    Core = "core",
    Adjacent = "adjacent",
    Middle = "middle",
    Farthest = "farthest",
    Package = "package",
    Machine = "machine",
);

impl Location {
    /// The index in the paper's R: `L`, `R`, `P` or `N`.
    pub fn letter(self) -> char {
        match self {
            Location::Core => 'L',
            Location::Adjacent | Location::Middle | Location::Farthest => 'R',
            Location::Package => 'P',
            Location::Machine => 'N',
        }
    }
}

/// R by location and state: reading one line (Ramos & Hoefler, Tables 1.6 and 1.7).
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LineRead {
    /// Location of the line.
    pub location: Location,
    /// Its state there.
    pub state: State,
    /// Mean of the measurements.
    pub mean_ns: Value,
    /// Their standard deviation.
    #[serde(deserialize_with = "read::from_0")]
    pub stdev_ns: Value,
}

/// P and F of T_N = (2 N R_I / P + R_R,M) F, copies between buffers in memory by several pairs of threads at once
/// (Ramos & Hoefler, Eq. A.1).
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bandwidth {
    /// Location of the partner.
    pub location: Location,
    /// The fewest threads for which it was fitted.
    #[serde(deserialize_with = "read::from_1")]
    pub least_threads: usize,
    /// The most.
    #[serde(deserialize_with = "read::from_1")]
    pub most_threads: usize,
    /// P: lines that a core has on their way at once.
    pub outstanding: Value,
    /// F: how many times longer than that it takes.
    pub factor: Value,
}

/// T_N(N) = o N + q - p / N, the time to hand over N lines (Ramos & Hoefler, Eq. 3.1 and Table 3.1).
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MultiLine {
    /// State of the sender's buffer.
    pub send: State,
    /// State of the receiver's buffer.
    pub recv: State,
    /// Asymptotic cost of a line.
    #[serde(deserialize_with = "read::from_0")]
    pub o_ns: Value,
    /// Fixed start-up.
    #[serde(deserialize_with = "read::from_0")]
    pub q_ns: Value,
    /// The part of the start-up that more lines amortise.
    #[serde(deserialize_with = "read::from_0")]
    pub p_ns: Value,
}

/// T_C(n) = c n + b - a / n, the time until n threads have each copied the same line (Ramos & Hoefler, Eq. 3.2
/// and 3.3, Table 3.2).
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contention {
    /// State of the shared line in its owner's cache.
    pub send: State,
    /// State of each reader's own line.
    pub recv: State,
    /// Cost of one more reader.
    #[serde(deserialize_with = "read::from_0")]
    pub c_ns: Value,
    /// Fixed cost.
    #[serde(deserialize_with = "read::from_0")]
    pub b_ns: Value,
    /// Saving by a second reader when the line comes from memory; 0 where the model has no such term.
    #[serde(deserialize_with = "read::from_0")]
    pub a_ns: Value,
}

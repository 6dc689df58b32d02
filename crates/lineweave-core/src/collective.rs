//! The collectives a plan can implement, and what each must deliver.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A collective operation over all ranks of a communicator.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Collective {
    /// No rank leaves before every rank has entered.
    Barrier,
    /// The root's `in` arrives in every other rank's `out`.
    Bcast,
    /// The elementwise combination of every rank's `in` arrives in the root's `out`.
    Reduce,
    /// The elementwise combination of every rank's `in` arrives in every rank's `out`.
    Allreduce,
}

impl Collective {
    /// Every collective, in the order in which listings show them.
    pub const ALL: [Collective; 4] =
        [Collective::Barrier, Collective::Bcast, Collective::Reduce, Collective::Allreduce];

    /// The name used on the command line, in plans and in records.
    pub fn name(self) -> &'static str {
        match self {
            Collective::Barrier => "barrier",
            Collective::Bcast => "bcast",
            Collective::Reduce => "reduce",
            Collective::Allreduce => "allreduce",
        }
    }

    /// Whether one rank plays a part of its own.
    pub fn rooted(self) -> bool {
        match self {
            Collective::Bcast | Collective::Reduce => true,
            Collective::Barrier | Collective::Allreduce => false,
        }
    }

    /// Whether elements are combined with a reduction operator.
    pub fn folds(self) -> bool {
        match self {
            Collective::Reduce | Collective::Allreduce => true,
            Collective::Barrier | Collective::Bcast => false,
        }
    }

    /// Whether a message is moved at all.
    pub fn moves_data(self) -> bool {
        self != Collective::Barrier
    }
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is not a collective's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown collective `{0}`: expected barrier, bcast, reduce or allreduce")]
pub struct UnknownCollective(pub String);

impl FromStr for Collective {
    type Err = UnknownCollective;

    fn from_str(name: &str) -> Result<Self, UnknownCollective> {
        Collective::ALL
            .into_iter()
            .find(|c| c.name() == name)
            .ok_or_else(|| UnknownCollective(name.to_owned()))
    }
}

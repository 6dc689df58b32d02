//! Who is measured by a benchmark: the library in each of its ways, and those beside it.

use super::definition::DefinitionError;
use lineweave::settings::Wait;
use lineweave_tune::trial::DataPath;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Who is measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The library's own choice for this machine.
    Lineweave,
    /// The library's barrier, by the same team.
    #[serde(rename = "lineweave-barrier")]
    OwnBarrier,
    /// The library when ranks keep looking.
    #[serde(rename = "lineweave-spin")]
    Spin,
    /// The library when ranks hand the CPU over between looks.
    #[serde(rename = "lineweave-yield")]
    Yield,
    /// The library when ranks sleep.
    #[serde(rename = "lineweave-sleep")]
    Sleep,
    /// The library when bytes go through boxes only.
    #[serde(rename = "lineweave-boxes")]
    Boxes,
    /// The library by its best plan with cross-memory attach.
    #[serde(rename = "lineweave-attach")]
    Attach,
    /// The library when all buffers are shared memory.
    #[serde(rename = "lineweave-shared")]
    Shared,
    /// The fewest bytes that an allreduce can move, by a loop written for it.
    ByteFloor,
    /// The fastest hand-written two-rank exchange, every layout tried.
    Floor,
    /// The fastest of many hand-written barriers, broadcasts or allreduces of three and more ranks.
    HandFloor,
    /// The C library's copy of one message by one rank.
    Memcpy,
    /// `pthread_barrier_t`.
    Pthread,
    /// The OpenMP barrier of GNU's runtime.
    Libgomp,
    /// The OpenMP barrier of LLVM's runtime.
    Libomp,
    /// `std::barrier` of C++20.
    StdBarrier,
}

impl Subject {
    /// Every subject, in the order in which tables show them.
    pub const ALL: [Subject; 16] = [
        Subject::Lineweave,
        Subject::OwnBarrier,
        Subject::Spin,
        Subject::Yield,
        Subject::Sleep,
        Subject::Boxes,
        Subject::Attach,
        Subject::Shared,
        Subject::ByteFloor,
        Subject::Floor,
        Subject::HandFloor,
        Subject::Memcpy,
        Subject::Pthread,
        Subject::Libgomp,
        Subject::Libomp,
        Subject::StdBarrier,
    ];

    /// The library with each way of waiting.
    pub const WAITS: [Subject; 3] = [Subject::Spin, Subject::Yield, Subject::Sleep];

    /// The library by each way that bytes can go between processes.
    pub const PATHS: [Subject; 3] = [Subject::Boxes, Subject::Attach, Subject::Shared];

    /// Which way the bytes of the library are made to go.
    pub fn path(self) -> Option<DataPath> {
        match self {
            Subject::Boxes => Some(DataPath::Boxes),
            Subject::Attach => Some(DataPath::Attach),
            Subject::Shared => Some(DataPath::Shared),
            Subject::Lineweave
            | Subject::OwnBarrier
            | Subject::Spin
            | Subject::Yield
            | Subject::Sleep
            | Subject::ByteFloor
            | Subject::Floor
            | Subject::HandFloor
            | Subject::Memcpy
            | Subject::Pthread
            | Subject::Libgomp
            | Subject::Libomp
            | Subject::StdBarrier => None,
        }
    }

    /// Returns whether the library itself is measured, and which way of waiting is forced then.
    pub fn ours(self) -> Option<Option<Wait>> {
        match self {
            Subject::Lineweave | Subject::OwnBarrier | Subject::Boxes | Subject::Attach | Subject::Shared => {
                Some(None)
            }
            Subject::Spin => Some(Some(Wait::Spin)),
            Subject::Yield => Some(Some(Wait::Yield)),
            Subject::Sleep => Some(Some(Wait::Sleep)),
            Subject::ByteFloor
            | Subject::Floor
            | Subject::HandFloor
            | Subject::Memcpy
            | Subject::Pthread
            | Subject::Libgomp
            | Subject::Libomp
            | Subject::StdBarrier => None,
        }
    }

    /// The name used on command lines, in definitions and in records.
    pub fn name(self) -> &'static str {
        match self {
            Subject::Lineweave => "lineweave",
            Subject::OwnBarrier => "lineweave-barrier",
            Subject::Spin => "lineweave-spin",
            Subject::Yield => "lineweave-yield",
            Subject::Sleep => "lineweave-sleep",
            Subject::Boxes => "lineweave-boxes",
            Subject::Attach => "lineweave-attach",
            Subject::Shared => "lineweave-shared",
            Subject::ByteFloor => "byte-floor",
            Subject::Floor => "floor",
            Subject::HandFloor => "hand-floor",
            Subject::Memcpy => "memcpy",
            Subject::Pthread => "pthread",
            Subject::Libgomp => "libgomp",
            Subject::Libomp => "libomp",
            Subject::StdBarrier => "std-barrier",
        }
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Subject {
    type Err = DefinitionError;

    fn from_str(name: &str) -> Result<Self, DefinitionError> {
        Subject::ALL.into_iter().find(|s| s.name() == name).ok_or_else(|| DefinitionError::Invalid {
            name: "subject".to_owned(),
            reason: format!(
                "`{name}` is unknown: expected one of {}",
                Subject::ALL.map(Subject::name).join(", ")
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_agree_with_their_serialised_form() {
        for subject in Subject::ALL {
            let text = serde_json::to_string(&subject).expect("JSON");
            assert_eq!(text, format!("\"{}\"", subject.name()));
            assert_eq!(subject.name().parse(), Ok(subject));
        }
        assert!("mpi".parse::<Subject>().expect_err("unknown").to_string().contains("std-barrier"));
    }
}

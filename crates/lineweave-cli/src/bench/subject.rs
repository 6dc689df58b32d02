//! Subjects of a benchmark: the library with each way of waiting and of moving bytes, and the peers beside it.

use super::definition::DefinitionError;
use lineweave::settings::Wait;
use lineweave_tune::trial::DataPath;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A subject that is measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Subject {
    /// The library with its own choice for this machine.
    Lineweave,
    /// The library's barrier, in the same team.
    #[serde(rename = "lineweave-barrier")]
    OwnBarrier,
    /// The library with ranks that wait by spinning.
    #[serde(rename = "lineweave-spin")]
    Spin,
    /// The library with ranks that yield the CPU between two looks.
    #[serde(rename = "lineweave-yield")]
    Yield,
    /// The library with ranks that sleep while they wait.
    #[serde(rename = "lineweave-sleep")]
    Sleep,
    /// The library with all bytes going through the boxes.
    #[serde(rename = "lineweave-boxes")]
    Boxes,
    /// The library with its best plan that uses cross-memory attach.
    #[serde(rename = "lineweave-attach")]
    Attach,
    /// The library with all buffers in shared memory.
    #[serde(rename = "lineweave-shared")]
    Shared,
    /// A hand-written loop that moves the fewest bytes that an allreduce can move.
    ByteFloor,
    /// The fastest hand-written exchange between two ranks, over all layouts.
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
    /// Every subject and its name on command lines and in records, in the order in which tables show them.
    pub const ALL: [(Subject, &'static str); 16] = [
        (Subject::Lineweave, "lineweave"),
        (Subject::OwnBarrier, "lineweave-barrier"),
        (Subject::Spin, "lineweave-spin"),
        (Subject::Yield, "lineweave-yield"),
        (Subject::Sleep, "lineweave-sleep"),
        (Subject::Boxes, "lineweave-boxes"),
        (Subject::Attach, "lineweave-attach"),
        (Subject::Shared, "lineweave-shared"),
        (Subject::ByteFloor, "byte-floor"),
        (Subject::Floor, "floor"),
        (Subject::HandFloor, "hand-floor"),
        (Subject::Memcpy, "memcpy"),
        (Subject::Pthread, "pthread"),
        (Subject::Libgomp, "libgomp"),
        (Subject::Libomp, "libomp"),
        (Subject::StdBarrier, "std-barrier"),
    ];

    /// The subjects that measure the library with each way of waiting.
    pub const WAITS: [Subject; 3] = [Subject::Spin, Subject::Yield, Subject::Sleep];

    /// The subjects that measure the library with each way of moving bytes between processes.
    pub const PATHS: [Subject; 3] = [Subject::Boxes, Subject::Attach, Subject::Shared];

    /// Returns the way of moving bytes that this subject forces.
    pub fn path(self) -> Option<DataPath> {
        match self {
            Subject::Boxes => Some(DataPath::Boxes),
            Subject::Attach => Some(DataPath::Attach),
            Subject::Shared => Some(DataPath::Shared),
            _ => None,
        }
    }

    /// Returns whether the library itself is measured, and the way of waiting that is then forced.
    pub fn ours(self) -> Option<Option<Wait>> {
        match self {
            Subject::Lineweave | Subject::OwnBarrier | Subject::Boxes | Subject::Attach | Subject::Shared => {
                Some(None)
            }
            Subject::Spin => Some(Some(Wait::Spin)),
            Subject::Yield => Some(Some(Wait::Yield)),
            Subject::Sleep => Some(Some(Wait::Sleep)),
            _ => None,
        }
    }

    /// The name used on command lines, in definitions and in records.
    pub fn name(self) -> &'static str {
        Subject::ALL[self as usize].1
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
        let found = Subject::ALL.into_iter().find(|(_, known)| *known == name);
        found.map(|(subject, _)| subject).ok_or_else(|| DefinitionError::Invalid {
            name: "subject".to_owned(),
            reason: format!(
                "`{name}` is unknown: expected one of {}",
                Subject::ALL.map(|(_, name)| name).join(", ")
            ),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_agree_with_their_serialised_form() {
        for (subject, name) in Subject::ALL {
            assert_eq!(subject.name(), name);
            let text = serde_json::to_string(&subject).expect("JSON");
            assert_eq!(text, format!("\"{}\"", subject.name()));
            assert_eq!(subject.name().parse(), Ok(subject));
        }
        assert!("mpi".parse::<Subject>().expect_err("unknown").to_string().contains("std-barrier"));
    }
}

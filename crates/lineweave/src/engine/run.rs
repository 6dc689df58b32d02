//! What a run of a plan is given, and how it can stop.

use crate::error::Error;
use crate::failure_detector::Limits;
use crate::kernel::{CopyPolicy, Fold};
use crate::wait::Budget;

/// Where one call's data is. Null and 0 where a rank has none.
#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    /// Start of `in`.
    pub input: *const u8,
    /// Start of `out`.
    pub output: *mut u8,
    /// Combines elements, for plans that fold.
    pub fold: Fold,
}

impl Buffers {
    /// No data: for a barrier.
    pub const NONE: Buffers =
        Buffers { input: std::ptr::null(), output: std::ptr::null_mut(), fold: Fold::kernel(no_fold) };
}

/// For plans without folds.
///
/// # Safety
/// None: it does nothing.
unsafe fn no_fold(_: *const u8, _: *const u8, _: *mut u8, _: usize) {}

/// How a communicator is set up.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How to wait.
    pub budget: Budget,
    /// The longest wait, and the longest stop of a peer.
    pub limits: Limits,
    /// How to copy.
    pub copy: CopyPolicy,
    /// True if a helper thread carries started calls on.
    pub progress_thread: bool,
}

/// What a call does where it has to wait: wait, or come back later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Wait.
    Block,
    /// Come back.
    Poll,
}

/// Why something did not go on.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The call has to wait for another rank; never the result of [`Mode::Block`].
    NotYet,
    /// The call has failed.
    Failed(Error),
}

impl Stop {
    /// The error of what was waited for.
    pub fn into_error(self) -> Error {
        match self {
            Stop::Failed(error) => error,
            Stop::NotYet => Error::Failed("a wait ended before what it waited for".into()),
        }
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Failed(error)
    }
}

/// What a communicator takes of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Bytes that are reserved of the memory that its ranks share, by all of them together.
    pub shared_bytes: usize,
    /// Bytes of addresses for it, in each process. They cost nothing before they are used.
    pub address_bytes: usize,
    /// Bytes of this rank alone: compiled plans, and scratch for them.
    pub private_bytes: usize,
}

//! Buffers and options of a plan's runs, and the reasons for which a run stops.

use crate::error::Error;
use crate::failure_detector::Limits;
use crate::kernel::{scale_fn, CopyPolicy, ElementType, Fold, Operator, ScaleFn, Undefined};
use crate::wait::Budget;

/// Places of one call's data. Null and 0 where a rank has none.
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

/// Does nothing: the fold of plans without folds.
///
/// # Safety
/// None: it does nothing.
unsafe fn no_fold(_: *const u8, _: *const u8, _: *mut u8, _: usize) {}

/// Returns the fold of a call, and what divides the sums of an average.
///
/// # Errors
/// [`Error::Operator`] when the type has no such operator.
pub(super) fn fold_and_scale(
    operator: Option<Operator>,
    element: ElementType,
) -> Result<(Fold, Option<ScaleFn>), Error> {
    let undefined = |e: Undefined| Error::Operator(e.to_string());
    Ok(match operator {
        None => (Buffers::NONE.fold, None),
        Some(o) => (Fold::of(o, element).map_err(undefined)?, scale_fn(o, element)),
    })
}

/// Options with which a communicator is set up.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Budget of each way of waiting.
    pub budget: Budget,
    /// The longest wait, and the longest stop of a peer.
    pub limits: Limits,
    /// Policy for copies.
    pub copy: CopyPolicy,
    /// True if a helper thread carries started calls on.
    pub progress_thread: bool,
}

/// Behaviour of a call that has to wait: wait, or come back later.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// The call waits until it can go on.
    Block,
    /// The call returns, to be carried on later.
    Poll,
}

/// Reason why a call did not go on.
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

/// Memory that a communicator takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Bytes that are reserved of the memory that its ranks share, by all of them together.
    pub shared_bytes: usize,
    /// Bytes of addresses for it, in each process. They cost nothing before they are used.
    pub address_bytes: usize,
    /// Bytes of this rank alone: compiled plans, and scratch for them.
    pub private_bytes: usize,
}

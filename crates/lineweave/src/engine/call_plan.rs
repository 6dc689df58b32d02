//! Plan of a call: its windows, each with a compiled plan.

use super::banks::BankPlace;
use super::run::Buffers;
use crate::call::CallSpec;
use crate::choose::{PlanSequence, UnevenSequence};
use crate::compile::{MessageSpan, PlanId};
use crate::kernel::{Fold, ScaleFn};
use crate::signature::CallKey;
use lineweave_core::plan::Blocks;
use std::ops::Range;
use std::sync::Arc;

/// The windows of a call that are left.
#[derive(Debug)]
pub(crate) enum Windows {
    /// No window is left.
    Nothing,
    /// Over a message or over blocks of one length: from `at` on, of so many bytes.
    Even { sequence: PlanSequence, at: usize, bytes: usize },
    /// Over blocks of different lengths, the longest of so many bytes, by plans that are cut for each: from `at` on.
    TruncatedStep { sequence: PlanSequence, blocks: Blocks, at: usize, longest: usize },
    /// As `TruncatedStep`, by plans for these lengths alone: from window `turn` of a stretch on.
    Uneven { sequence: Arc<UnevenSequence>, stretch: usize, turn: usize },
}

impl Windows {
    /// Returns the next window, or `None` when no window is left.
    pub fn now(&self) -> Option<MessageWindow> {
        match self {
            Windows::Nothing => None,
            Windows::Even { sequence, at, bytes } => {
                let (plan, window) = sequence.next(bytes - at);
                Some(MessageWindow { plan, at: *at, span: MessageSpan { bytes: window, of: *bytes } })
            }
            Windows::TruncatedStep { sequence, at, longest, .. } => {
                let (plan, _) = sequence.next(longest - at);
                Some(MessageWindow { plan, at: *at, span: MessageSpan::UNEVEN })
            }
            Windows::Uneven { sequence, stretch, turn } => {
                let stretch = sequence.runs.get(*stretch)?;
                let at = stretch.from + turn * stretch.window;
                let span = MessageSpan { bytes: stretch.window, of: stretch.window };
                Some(MessageWindow { plan: stretch.plan, at, span })
            }
        }
    }

    /// The blocks that the next one's plan is to be cut for, and which bytes of them.
    pub fn blocks(&self) -> Option<(&Blocks, Range<usize>)> {
        match self {
            Windows::TruncatedStep { sequence, blocks, at, longest } => {
                Some((blocks, *at..at + sequence.next(longest - at).1))
            }
            Windows::Nothing | Windows::Even { .. } | Windows::Uneven { .. } => None,
        }
    }

    /// Ends the next window: the window after it becomes the next one.
    pub fn advance(&mut self) {
        let window = self.now().map_or(0, |window| window.span.bytes);
        match self {
            Windows::Nothing => {}
            Windows::Even { at, bytes, .. } => {
                *at += window;
                if at >= bytes {
                    *self = Windows::Nothing;
                }
            }
            Windows::TruncatedStep { sequence, at, longest, .. } => {
                *at += sequence.next(*longest - *at).1;
                if at >= longest {
                    *self = Windows::Nothing;
                }
            }
            Windows::Uneven { sequence, stretch, turn } => {
                *turn += 1;
                if *turn == sequence.runs[*stretch].times {
                    (*stretch, *turn) = (*stretch + 1, 0);
                }
            }
        }
    }
}

/// A call that is ready to be carried out.
pub(super) struct CallPlan {
    /// Call, as ranks compare it and errors name it.
    pub call: CallSpec,
    pub left: Left,
    /// Function that divides this rank's output in the end, and the number of elements that it divides.
    pub scale: Option<(ScaleFn, usize)>,
    /// Bytes of the input of which a copy must be made first.
    pub copied: Option<usize>,
    /// The lengths of uneven blocks, in bytes, until the call begins.
    pub lengths: Vec<usize>,
}

/// Properties of a call that are known before its plans are.
pub(crate) struct Preface {
    /// Call, as ranks compare it and errors name it.
    pub call: CallSpec,
    /// The lengths of blocks that differ, in bytes.
    pub lengths: Vec<usize>,
    /// Bytes of this rank's input.
    pub given: usize,
    /// Bytes of its output.
    pub taken: usize,
    /// Input and output are one buffer, as calls in place have it.
    pub in_place: bool,
}

/// Windows of a call that are left to run.
pub(super) struct Left {
    pub windows: Windows,
    pub fold: Fold,
    /// Windows run in place, with a copy of each where its plan cannot.
    pub aliased: bool,
    /// The window under way.
    pub run: Option<(Run, Buffers)>,
}

/// A window to be run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageWindow {
    pub plan: PlanId,
    /// Offset of the window in every block, in bytes.
    pub at: usize,
    pub span: MessageSpan,
}

/// A run that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    pub plan: PlanId,
    pub place: BankPlace,
    /// Runs of the plan in this bank before it.
    pub earlier: u64,
    /// The next step.
    pub step: usize,
    /// The mark of its flags.
    pub key: CallKey,
    /// True if the call has taken addresses of other ranks' buffers.
    pub visits: bool,
}

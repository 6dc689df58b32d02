//! Kernels on bytes: copies, folds, and the few words that travel beside a flag.
//!
//! Kernels are plain functions on raw memory, resolved once when a plan is compiled: the element type, the operator
//! and the CPU's vector instructions are all decided by then, and running an op is one indirect call.
//!
//! **Bits.** A fold gives the same bits on every vector width, on every CPU, and whichever operand comes first, so
//! that ranks which combine the same contributions in the same order hold the same result. Two rules make that
//! so: integers wrap, and every NaN a float fold produces is the one positive quiet NaN without payload
//! (hardware disagrees about which operand's payload survives, and about the sign of a fresh NaN). It presumes the
//! default floating-point environment: ranks that flush subnormals to zero agree only with ranks that do.
//!
//! User-defined operators (`user.rs`) promise nothing of this kind by themselves. They are always called with the left
//! operand on the left, so that ranks which combine the same contributions with the same brackets call them alike.

mod types;
mod level;
mod number;
mod operator;
mod pair;
mod complex;
mod element;
mod half;
mod half_fold;
mod bf16_sum;
mod scale;
mod fold;
mod sums;
mod user;
mod copy;
mod words;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod wide_tests;

pub use copy::CopyPolicy;
pub use element::{Block, Bool, Element};
pub use pair::{DoubleInt, FloatInt, IntInt, LongInt, ShortInt};
pub use types::{ElementType, Operator, Undefined, UnknownElementType, UnknownOperator, UserOperator};
pub(crate) use user::take_panic;
pub use user::Fold;
// For the engine, and for probes and benches of it.
#[doc(hidden)]
pub use copy::{copy, copy_nt, copy_wide, Copier, CopyFn};
#[doc(hidden)]
pub use fold::{fold_fn, fold_fn_at, word_fold, FoldFn, WordFold};
#[doc(hidden)]
pub use level::Level;
#[doc(hidden)]
pub use scale::{scale_fn, scale_fn_at, ScaleFn};
#[doc(hidden)]
pub use sums::Sums;
#[doc(hidden)]
pub use user::panic_text;
#[doc(hidden)]
pub use words::{load_words, store_words, MAX_PAYLOAD};

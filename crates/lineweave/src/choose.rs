//! From a call to plans for it: looked up when it came before, else chosen and proven. It knows calls and teams, not how plans are run.

mod adopt;
mod book;
mod classes;
mod library;
mod once;
mod prove;
mod reach;
mod ready;
mod recent;
mod record;
mod sets;
mod shelf;
mod uneven;

pub use adopt::Adoptable;
pub(crate) use book::{Book, Room};
pub(crate) use reach::Reach;
pub(crate) use ready::{Ready, Sequence};
pub(crate) use record::{Proofs, Proved};
pub(crate) use sets::{Prepared, Set, Stretch};
pub(crate) use shelf::{Key, Proven};

use lineweave_core::collective::Collective;

/// Whether some rank has an input and an output, which may be one buffer.
pub(crate) fn has_two_buffers(collective: Collective) -> bool {
    collective.folds() || collective.has_blocks()
}

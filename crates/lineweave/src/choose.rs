//! Choice of plans for a call: they are looked up when the call came before, else chosen and proven. The module knows calls and teams, not
//! how plans are run.

mod choice_override;
mod selector;
mod classes;
mod process_cache;
mod once;
mod prove;
mod peer_access;
mod resolved;
mod lru;
mod single_flight;
mod record;
mod uneven_counts;
mod proven;
mod uneven;
mod planner;
mod background;
mod provisional;

pub use choice_override::ChoiceOverride;
pub(crate) use peer_access::PeerAccess;
pub use planner::Planner;
pub(crate) use proven::{Key, Proven};
pub(crate) use record::{Proofs, Proved};
pub(crate) use resolved::{PlanSequence, ResolvedCall};
pub(crate) use selector::{PlanBudget, PlanSelector};
pub(crate) use uneven_counts::{CountVector, Prepared, WindowRun};

use lineweave_core::collective::Collective;

/// Returns whether some rank has an input and an output, which may be one buffer.
pub(crate) fn has_two_buffers(collective: Collective) -> bool {
    collective.folds() || collective.has_blocks()
}

//! Choice of plans for a call: they are looked up when the call came before, else chosen and proven. The module knows calls and teams, not
//! how plans are run.

mod choice_override;
mod selector;
mod request;
mod process_cache;
mod stores;
mod prove;
mod peer_access;
mod resolved;
mod lru;
mod plan_cache;
mod single_flight;
mod record;
mod proven;
mod planner;
mod background;
mod provisional;

pub use choice_override::ChoiceOverride;
pub(crate) use peer_access::PeerAccess;
pub use planner::Planner;
pub(crate) use proven::{Proven, WindowRun};
pub(crate) use record::{Proofs, Proved};
pub(crate) use request::{Lengths, PlanRequest};
pub(crate) use resolved::{CachedPlans, PlanSequence, ResolvedCall, UnevenSequence};
pub(crate) use selector::{PlanBudget, PlanSelector};

use lineweave_core::collective::Collective;

/// Returns whether some rank has an input and an output, which may be one buffer.
pub(crate) fn has_two_buffers(collective: Collective) -> bool {
    collective.folds() || collective.has_blocks()
}

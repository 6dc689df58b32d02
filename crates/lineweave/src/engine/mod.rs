//! Engine of a communicator: the part that one rank of a team runs.
//!
//! [`Engine`] is made of parts that do not know it: [`banks`], [`plans`], [`calls`], [`hot`], [`health`], [`transport`], [`job`], [`heaps`]. What
//! is done with several of them stands in files that each add one thing to it. A call takes this way: `course` (the call) asks
//! `choose` for plans, `compare` and `agreement` hear the other ranks where that is needed, and `windows` runs plans; `repeat` is the short
//! way of a call that was made last. `started` takes the same way in steps.

mod agreement;
mod attach;
mod banks;
mod call_plan;
mod calls;
mod child;
mod choose;
mod compare;
mod change_over;
mod course;
mod p2p_operation;
mod health;
mod heaps;
mod fast_path;
mod nonblocking;
mod join;
mod memory;
mod plan;
mod plans;
mod prepare;
mod repeat;
mod run;
mod shared;
mod started;
mod state;
mod uneven;
mod slot_rotation;
mod windows;
mod transport;

pub(crate) use child::enter;
pub use fast_path::FastPathResult;
pub(crate) use heaps::Allotted;
pub(crate) use nonblocking::{Lengths, NonblockingCall, RequestState};
pub(crate) use run::Mode;
pub use run::{Buffers, Memory, Options};
pub(crate) use state::Engine;
pub(crate) use transport::{ProcessGroup, TransportConfig};

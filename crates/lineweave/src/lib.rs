//! lineweave's runtime: teams of threads and processes whose collectives are shaped to the machine.
//!
//! ```
//! let ranks = lineweave::team::threads(4, |mut comm| {
//!     comm.barrier()?;
//!     Ok(comm.rank())
//! })?;
//! assert_eq!(ranks, [0, 1, 2, 3]);
//! # Ok::<(), lineweave::Error>(())
//! ```
//!
//! Everything that needs a clock, a core, a raw pointer or an atomic is here; plans and everything computed
//! from them are in `lineweave_core`. Modules are declared in the order in which they may use each other.
#![cfg_attr(test, allow(clippy::disallowed_methods))] // Tests sleep as programs do.

// For the crates beside this one.
#[doc(hidden)]
pub mod sync;
mod throttle;
#[doc(hidden)]
pub mod sysfile;
#[doc(hidden)]
pub mod cache;
mod cgroup;
#[doc(hidden)]
pub mod memory;
mod affinity;
#[cfg(not(loom))]
mod time_slice;
pub mod cpus;
pub mod topology;
pub mod settings;
pub mod kernel;
pub mod error;
mod scratch;
mod near;
mod signature;
// These three for tests/loom.rs: they work on words of whoever calls.
#[doc(hidden)]
pub mod flag;
#[doc(hidden)]
pub mod ring;
#[doc(hidden)]
pub mod message_ring;
// What of it is for users is exported in `who`.
#[doc(hidden)]
pub mod process;
mod backoff;
mod progress;
mod wait;
// What of it is for users is exported below and in `who`.
#[doc(hidden)]
pub mod segment;
pub(crate) mod attach;
mod compile;
mod failure_detector;
mod execute;
mod p2p;
pub mod tuning;
mod config;
mod call;
mod choose;
mod engine;
pub mod communicator;
mod calls;
pub mod requests;
pub mod team;
// For `lineweave-tune` and the command.
#[doc(hidden)]
pub mod internal;
pub mod who;

pub use call::{whole, CallSpec, Places};
pub use calls::SharedBuffer;
pub use communicator::Communicator;
#[doc(hidden)]
pub use communicator::FastPathResult;
pub use error::Error;
pub use failure_detector::WaitCallback;
pub use kernel::{Block, Element, ElementType, Operator};
pub use requests::{Blocks, Operation, Persistent, Repeated, Request, Scope};
pub use segment::MAX_RANKS;
pub use wait::ProgressHook;

// What appears in calls and errors and is of other crates.
pub use half::{bf16, f16};
pub use lineweave_core::collective::Collective;
pub use lineweave_core::plan::PlanError;
pub use lineweave_core::topology::{Level, Shape};
pub use lineweave_core::verify::Violation;
pub use num_complex::Complex;

/// The examples of the READMEs and the tutorial, as tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../../docs/tutorials/rust.md")]
pub struct WrittenExamples;

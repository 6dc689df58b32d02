//! Somebody's MPI, started by the launcher's line that they give: its channel and its collectives, each algorithm forced in turn.
//!
//! 1. [`Host`] starts `bench/mpi/channel.c` under the launcher and reads its times.
//! 2. [`Flavour`] says which algorithms a library of MPI has, how they are forced and which closed form each has.
//! 3. [`Runs`] packs the forced algorithms into launches, one of each collective, and repeats them in rounds with the default.
//! 4. [`Curves`] are the medians of the rounds.
//! 5. [`rules`] writes choices of algorithms as what the library reads.

mod algorithm;
mod curves;
mod error;
mod flavour;
mod host;
mod intel;
mod mpich;
mod openmpi;
mod order;
pub mod rules;
mod runs;

pub use algorithm::{Algorithm, Variables};
pub use curves::{Cell, Curves};
pub use error::HostError;
pub use flavour::Flavour;
pub use host::{lines, Facts, Failed, Host, Line};
pub use order::Order;
pub use runs::{lengths, task, with_reference, Effort, Runs, Setting};

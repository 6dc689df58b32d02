//! A user's MPI, started by a given command line of its launcher: its channel and its collectives, with each algorithm forced in
//! turn.
//!
//! 1. [`Host`] starts `bench/mpi/channel.c` under the launcher and reads its times.
//! 2. [`Flavour`] knows the algorithms of a library of MPI, the settings that force them and the closed form of each.
//! 3. [`Runs`] times a library's default and its algorithms in rounds. Each has a launch of its own, and the launches are there at once and measure in turns. A
//!    [`Journal`] keeps the rounds until all are done.
//! 4. [`Curves`] are the medians of the rounds.
//! 5. [`Models`] predict the time of each algorithm by those of messages.
//! 6. [`rules`] writes choices of algorithms in the form that the library reads.

mod algorithm;
pub mod code;
mod curves;
mod error;
mod flavour;
mod host;
mod intel;
mod journal;
mod models;
mod mpich;
mod openmpi;
mod order;
pub mod rules;
mod runs;
mod tasks;
mod turns;

pub use algorithm::Algorithm;
pub use curves::{Cell, Curves, CODE};
pub use error::HostError;
pub use flavour::Flavour;
pub use host::{lines, Facts, Failed, Host, Line};
pub use journal::Journal;
pub use models::{whole, Models, MODELS};
pub use order::Order;
pub use runs::{Effort, Runs, Setting};
pub use tasks::lengths;

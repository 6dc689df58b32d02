//! Benchmarks: definitions as data, and the peers that lineweave is compared with in the same run.

pub mod definition;
pub mod peers;

pub use definition::{Buffers, Definition, DefinitionError, Repeat, Subject, Team};
pub use peers::{Measurement, PeerError, Peers, Request};

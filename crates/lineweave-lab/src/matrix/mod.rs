//! Core-to-core latencies that somebody measured: read, made a machine of, and written for others.
//!
//! A matrix is a table of numbers: what it costs to move a line between each two CPUs, in ns, half of a round trip.
//! [`read`] takes it from the CSV or the print of core-to-core-latency and its kin, [`shape`] finds who shares what, [`describe`]
//! makes a machine's description of both, and [`csv`] and [`hwloc`] write it.

mod costs;
mod describe;
mod error;
mod hwloc;
mod neighbours;
mod printed;
mod read;
mod shape;

pub use costs::{costs, home, LevelCost};
pub use describe::describe;
pub use error::MatrixError;
pub use hwloc::hwloc;
pub use read::{csv, read, Readout, MOST_CPUS};
pub use shape::{placed, shape, synthetic, Shaped};

#[cfg(test)]
mod tests;

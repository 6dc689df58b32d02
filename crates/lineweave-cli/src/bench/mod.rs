//! Benchmarks: definitions as data, and the peers that lineweave is compared with in the same run.

pub mod apps;
pub mod definition;
pub mod field;
pub mod guidelines;
pub mod installed;
pub mod load;
pub mod mpi;
pub mod peers;
pub mod python;
pub mod record;
pub mod row;
pub mod runner;
pub mod subject;

pub use definition::{Definition, DefinitionError, Team};
pub use peers::{PeerError, Peers};
pub use python::PythonError;
pub use row::{Row, Skipped};
pub use runner::{Case, Runner};
pub use subject::Subject;

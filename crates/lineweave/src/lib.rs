//! lineweave runtime.

pub mod sync;
pub mod kernel;

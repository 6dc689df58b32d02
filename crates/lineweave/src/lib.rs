//! lineweave runtime.

mod cgroup;

pub mod sysfile;
pub mod memory;
pub mod affinity;
pub mod cpus;
pub mod topology;
pub mod settings;
pub mod node;

//! The node as a whole: the data of `lineweave info`, for people and for programs.

mod kernel;
mod render;

pub use kernel::{CrossMemory, Kernel};
pub use lineweave::internal::Near;

use lineweave::cpus::UsableCpus;
use lineweave::internal::AffinityError;
use lineweave::memory::{available_memory, AvailableMemory};
use lineweave::settings::{Bind, Row, Settings, Warning};
use lineweave::sysfile::{format_cpu_list, Root};
use lineweave::topology::{Hardware, TopologyError};
use lineweave_core::profile::Fingerprint;
use lineweave_core::topology::Topology;
use serde::Serialize;
use std::time::Duration;

/// All facts about the node that are known without measuring it. Printed as `info` by `lineweave info`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NodeInfo {
    /// The hardware: this machine's, or the one that replaces it.
    pub hardware: Hardware,
    /// The CPUs of *this* machine that can be used, and the reason for these.
    pub usable: UsableCpus,
    pub memory: AvailableMemory,
    pub kernel: Kernel,
    /// The fingerprint of the machine that a profile has to be of.
    pub fingerprint: Fingerprint,
    /// Short name of the fingerprint, by which profiles are filed.
    pub fingerprint_id: String,
    /// Another machine whose costs were asked for with `--machine`; all else is about this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs_of: Option<String>,
    /// The profile in use and its source, set by the command that looked for one.
    pub profile: Option<String>,
    /// The use and the speed of cross-memory attach, set by the command that looked for a profile.
    pub attach: Option<String>,
    /// The choices and proofs that are kept for later programs, set by the command that looked for a profile.
    pub kept_plans: Option<String>,
    /// Every environment variable that is read.
    pub settings: Vec<Row>,
    pub warnings: Vec<String>,
}

impl NodeInfo {
    /// Examines this node. The affinity mask is the calling thread's: call this before pinning the thread.
    pub fn gather(settings: &Settings, warnings: &[Warning]) -> Result<NodeInfo, TopologyError> {
        let hardware = Hardware::load(&settings.topology)?;
        let node = NodeInfo::of(&Root::live(), hardware, UsableCpus::of_this_thread(), settings);
        Ok(node.warn(warnings.iter().map(Warning::to_string)))
    }

    /// Describes the node below a root.
    pub fn of(root: &Root, hardware: Hardware, usable: UsableCpus, settings: &Settings) -> NodeInfo {
        let cpus = hardware.placeable(&usable.cpus);
        let fingerprint = hardware.fingerprint(&cpus);
        let fingerprint_id = fingerprint.id();
        let advice: Vec<String> = usable.advice().into_iter().chain(unusable(settings, &usable)).collect();
        NodeInfo {
            hardware,
            usable,
            memory: available_memory(root),
            kernel: Kernel::probe(root),
            fingerprint,
            fingerprint_id,
            costs_of: None,
            profile: None,
            attach: None,
            kept_plans: None,
            settings: settings.rows.clone(),
            warnings: Vec::new(),
        }
        .warn(advice)
    }

    /// Adds these warnings.
    pub fn warn(mut self, warnings: impl IntoIterator<Item = String>) -> NodeInfo {
        self.warnings.extend(warnings);
        self
    }

    /// Returns the CPUs that ranks can be placed on, neighbours first: the usable ones of this machine, or all of the
    /// machine that replaces it.
    pub fn placement(&self) -> Topology {
        self.hardware.restrict(&self.hardware.placeable(&self.usable.cpus)).topology
    }

    /// Returns a description of the node for people: a text of several lines.
    pub fn render(&self) -> String {
        render::render(self)
    }
}

/// Returns the number of programs that ran at the same time over the last minute.
pub fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// Returns the time since the machine started in which some program waited for a CPU; `None` where the kernel does not tell.
pub fn waited() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/pressure/cpu").ok()?;
    let total = text.lines().next()?.split_once("total=")?.1;
    total.parse().ok().map(Duration::from_micros)
}

/// Returns a warning if the list of CPUs to bind to names CPUs that cannot be used.
fn unusable(settings: &Settings, usable: &UsableCpus) -> Option<String> {
    let Bind::Cpus(wanted) = &settings.bind else { return None };
    let vain: Vec<usize> = wanted.iter().copied().filter(|cpu| !usable.cpus.contains(cpu)).collect();
    let cpus = format_cpu_list(&vain);
    (!vain.is_empty()).then(|| format!("LINEWEAVE_BIND: {}", AffinityError::NotUsable { cpus }))
}

#[cfg(test)]
mod tests;

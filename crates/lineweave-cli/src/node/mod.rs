//! The node as a whole: what `lineweave info` shows, for people and for programs.

mod kernel;
mod render;

pub use kernel::{CrossMemory, HugePages, Kernel};
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

/// Everything known about the node without measuring it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct NodeInfo {
    /// The shape: this machine's, or what stands in its place.
    pub hardware: Hardware,
    /// The CPUs of *this* machine that can be used, and why these.
    pub usable: UsableCpus,
    /// Memory that can be had.
    pub memory: AvailableMemory,
    /// Kernel and processor features.
    pub kernel: Kernel,
    /// Which machine a profile has to be of.
    pub fingerprint: Fingerprint,
    /// The fingerprint's short name, by which profiles are filed.
    pub fingerprint_id: String,
    /// Another machine, whose costs are asked about with `--machine`; all else is this one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs_of: Option<String>,
    /// The profile in use and where it is from, said by whoever has looked for one.
    pub profile: Option<String>,
    /// What becomes of cross-memory attach, and how fast it is; said by whoever has looked for a profile.
    pub attach: Option<String>,
    /// What of choices and proofs is kept for later programs; said by whoever has looked for a profile.
    pub kept_plans: Option<String>,
    /// Every environment variable read.
    pub settings: Vec<Row>,
    /// What a person should know.
    pub warnings: Vec<String>,
}

impl NodeInfo {
    /// Looks at this node. The affinity mask is the calling thread's: ask before pinning it.
    ///
    /// # Errors
    /// A [`TopologyError`] when what stands in place of the machine's topology cannot be read.
    pub fn gather(settings: &Settings, warnings: &[Warning]) -> Result<NodeInfo, TopologyError> {
        let hardware = Hardware::load(&settings.topology)?;
        let node = NodeInfo::of(&Root::live(), hardware, UsableCpus::of_this_thread(), settings);
        Ok(node.warn(warnings.iter().map(Warning::to_string)))
    }

    /// The node below a root.
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

    /// With these warnings added.
    pub fn warn(mut self, warnings: impl IntoIterator<Item = String>) -> NodeInfo {
        self.warnings.extend(warnings);
        self
    }

    /// With whose costs are asked about, where that is another machine.
    pub fn whose_costs(mut self, machine: String) -> NodeInfo {
        self.costs_of = Some(machine);
        self
    }

    /// With a note on the profile in use.
    pub fn with_profile(mut self, note: impl Into<String>) -> NodeInfo {
        self.profile = Some(note.into());
        self
    }

    /// With a note on cross-memory attach.
    pub fn with_attach(mut self, note: impl Into<String>) -> NodeInfo {
        self.attach = Some(note.into());
        self
    }

    /// With a note on kept choices and proofs.
    pub fn with_kept_plans(mut self, note: impl Into<String>) -> NodeInfo {
        self.kept_plans = Some(note.into());
        self
    }

    /// The CPUs that ranks can be placed on, neighbours first: the usable ones of this machine, or all of
    /// the machine that stands in its place.
    pub fn placement(&self) -> Topology {
        self.hardware.restrict(&self.hardware.placeable(&self.usable.cpus)).topology
    }

    /// The node for a person: a text of several lines.
    pub fn render(&self) -> String {
        render::render(self)
    }
}

/// What a list of CPUs to bind to asks for in vain.
fn unusable(settings: &Settings, usable: &UsableCpus) -> Option<String> {
    let Bind::Cpus(wanted) = &settings.bind else { return None };
    let vain: Vec<usize> = wanted.iter().copied().filter(|cpu| !usable.cpus.contains(cpu)).collect();
    let cpus = format_cpu_list(&vain);
    (!vain.is_empty()).then(|| format!("LINEWEAVE_BIND: {}", AffinityError::NotUsable { cpus }))
}

#[cfg(test)]
mod tests;

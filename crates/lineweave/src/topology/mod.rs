//! The machine's shape: from `/sys`, from hwloc where lineweave is built with its feature, or from an XML
//! file or a synthetic string that stands in place of the machine.
//!
//! Every reader only says which CPUs each thing covers; order and numbers are given here, so that they agree
//! and a profile measured through one is found through another.

#[cfg(feature = "hwloc")]
mod hwloc;
pub mod synthetic;
mod sysfs;
mod xml;

use crate::sysfile::Root;
use lineweave_core::names::shortened;
use lineweave_core::profile::Fingerprint;
use lineweave_core::topology::{Cpu, Topology};
use lineweave_core::units::LINE;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use thiserror::Error;

/// A topology that cannot be had.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum TopologyError {
    /// No such file, or not readable.
    #[error(
        "topology file {}: expected a readable XML file as `lstopo --of xml` writes it, found: {reason}. \
         A synthetic string such as `pack:2 numa:4 l3:2 core:8 pu:2` does without a file",
        shortened(&path.display().to_string())
    )]
    File {
        /// The file.
        path: PathBuf,
        /// The system's message.
        reason: String,
    },
    /// The file is not an hwloc topology.
    #[error(
        "topology file {}: expected a complete <topology> document, found {found}. Write one with \
         `lstopo --of xml FILE` on the machine in question",
        shortened(&path.display().to_string())
    )]
    Xml {
        /// The file.
        path: PathBuf,
        /// Fault found in the file.
        found: String,
    },
    /// The string does not describe a topology.
    #[error(
        "topology `{}`: expected levels from the outside in, each type:count, such as \
         `pack:2 numa:4 l3:2 core:8 pu:2`, or the path of an XML file; found {}",
        shortened(text),
        shortened(found)
    )]
    Synthetic {
        /// The string.
        text: String,
        /// Fault found in the string.
        found: String,
    },
    /// The machine cannot be read.
    #[error("this machine's topology cannot be read: {reason}. Give one with LINEWEAVE_TOPOLOGY")]
    Machine {
        /// Why.
        reason: String,
    },
}

/// Source of a topology.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The machine lineweave runs on.
    #[default]
    Machine,
    /// An XML file of hwloc's.
    Xml(PathBuf),
    /// A string of levels.
    Synthetic(String),
}

impl Source {
    /// Parses a value of `--topology` or `LINEWEAVE_TOPOLOGY`: `machine`, a synthetic string, or a path. Levels have
    /// a colon or are plain numbers, which a path of an XML file has no need to be; `./` in front makes a
    /// path of anything.
    pub fn parse(text: &str) -> Source {
        let text = text.trim();
        let is_path = text.ends_with(".xml") || text.contains('/');
        match text {
            "" | "machine" => Source::Machine,
            _ if is_path => Source::Xml(PathBuf::from(text)),
            _ => Source::Synthetic(text.to_owned()),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Machine => f.write_str("this machine"),
            Source::Xml(path) => write!(f, "{}", path.display()),
            Source::Synthetic(text) => write!(f, "`{text}`"),
        }
    }
}

/// Kind of contents of a cache.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    /// Data only.
    Data,
    /// Instructions only.
    Instruction,
    /// Both.
    Unified,
}

/// One cache.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Cache {
    /// 1 is nearest to the core.
    pub level: u8,
    /// Kind of contents.
    pub kind: CacheKind,
    /// The size in bytes, where known.
    pub size_bytes: Option<u64>,
    /// The line size in bytes, where known.
    pub line_bytes: Option<usize>,
    /// The CPUs above it, ascending.
    pub cpus: Vec<usize>,
}

/// One NUMA node with CPUs or without.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct MemoryNode {
    /// The operating system's number.
    pub os: usize,
    /// The memory in bytes, where known.
    pub size_bytes: Option<u64>,
    /// The CPUs near it, ascending; none for memory alone.
    pub cpus: Vec<usize>,
}

/// Cores of one kind, on machines that have several.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct CoreKind {
    /// 0 is the slowest.
    pub kind: usize,
    /// Known properties: core type, frequencies.
    pub about: String,
    /// CPUs of the kind, ascending.
    pub cpus: Vec<usize>,
}

/// A machine's shape with what belongs to it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Hardware {
    /// CPUs, neighbours first.
    pub topology: Topology,
    /// Caches, outermost first.
    pub caches: Vec<Cache>,
    /// NUMA nodes.
    pub memory: Vec<MemoryNode>,
    /// Core kinds; empty where all cores are alike or nothing is known.
    pub kinds: Vec<CoreKind>,
    /// CPU model as the machine names it; nothing for a synthetic topology.
    pub cpu_model: Option<String>,
    /// Source of this description.
    pub source: Source,
    /// Reader of the source: `hwloc`, `sysfs`, `mask` (the CPUs alone), `xml` or `synthetic`.
    pub reader: &'static str,
}

impl Hardware {
    /// The machine's shape, or that of what stands in its place.
    ///
    /// # Errors
    /// A [`TopologyError`] that names the file or string and what was expected.
    ///
    /// ```
    /// use lineweave::topology::{Hardware, Source};
    /// let hardware = Hardware::load(&Source::parse("pack:2 l3:2 core:4 pu:2"))?;
    /// assert_eq!(hardware.topology.cpus.len(), 32);
    /// # Ok::<(), lineweave::topology::TopologyError>(())
    /// ```
    pub fn load(source: &Source) -> Result<Hardware, TopologyError> {
        match source {
            Source::Machine => Hardware::machine(),
            Source::Xml(path) => xml::read(path),
            Source::Synthetic(text) => synthetic::hardware(text),
        }
    }

    #[cfg(feature = "hwloc")]
    fn machine() -> Result<Hardware, TopologyError> {
        // hwloc asks for its mask with larger and larger ones, for ever where a sandbox refuses the call.
        if crate::affinity::is_refused() {
            return Hardware::from_kernel();
        }
        // Odd kernels and sandboxes can defeat hwloc where /sys alone still does.
        hwloc::machine().or_else(|_| Hardware::from_kernel())
    }

    #[cfg(not(feature = "hwloc"))]
    fn machine() -> Result<Hardware, TopologyError> {
        Hardware::from_kernel()
    }

    /// By `/sys`; where a sandbox has none, by the mask of this thread.
    fn from_kernel() -> Result<Hardware, TopologyError> {
        let root = Root::live();
        Hardware::from_sysfs(&root)
            .or_else(|_| Ok(sysfs::by_mask(&root, crate::affinity::mask().unwrap_or_default())))
    }

    /// The shape that the kernel's own files below `root` tell.
    ///
    /// # Errors
    /// [`TopologyError::Machine`] when they list no CPU.
    pub fn from_sysfs(root: &Root) -> Result<Hardware, TopologyError> {
        sysfs::read(root)
    }

    /// Returns this machine with only these CPUs; what no CPU is left of goes, memory stays. Core kinds keep
    /// their numbers. CPUs that the machine does not have are left out.
    pub fn restrict(&self, cpus: &[usize]) -> Hardware {
        let keep = |list: &[usize]| list.iter().copied().filter(|c| cpus.contains(c)).collect::<Vec<_>>();
        let mut fewer = self.clone();
        fewer.topology.cpus.retain(|c| cpus.contains(&c.os));
        for cache in &mut fewer.caches {
            cache.cpus = keep(&cache.cpus);
        }
        fewer.caches.retain(|c| !c.cpus.is_empty());
        for node in &mut fewer.memory {
            node.cpus = keep(&node.cpus);
        }
        for kind in &mut fewer.kinds {
            kind.cpus = keep(&kind.cpus);
        }
        fewer.kinds.retain(|k| !k.cpus.is_empty());
        fewer
    }

    /// The CPUs that ranks can be placed on: the usable ones of this machine, or all of the machine that stands in its place.
    pub fn placeable(&self, usable: &[usize]) -> Vec<usize> {
        let all = || self.topology.cpus.iter().map(|c| c.os).collect();
        match self.source {
            Source::Machine => {
                // hwloc can be told by its own variables to describe another machine.
                let known = |cpu: &usize| self.topology.cpus.iter().any(|c| c.os == *cpu);
                let usable: Vec<usize> = usable.iter().copied().filter(known).collect();
                if usable.is_empty() {
                    all()
                } else {
                    usable
                }
            }
            Source::Xml(_) | Source::Synthetic(_) => all(),
        }
    }

    /// Returns the fingerprint of the machine that a profile measured on these CPUs belongs to.
    pub fn fingerprint(&self, usable: &[usize]) -> Fingerprint {
        let part = self.restrict(usable);
        Fingerprint {
            cpu: self.cpu_model.clone().unwrap_or_else(|| "unknown".to_owned()),
            cpus: part.topology.cpus.len(),
            line_bytes: self.line_bytes().unwrap_or(LINE),
            topology: part.synthetic_form(),
        }
    }

    /// Bytes of the line that coherence works on: the innermost data cache's.
    pub fn line_bytes(&self) -> Option<usize> {
        let data = self.caches.iter().filter(|c| c.kind != CacheKind::Instruction);
        data.min_by_key(|c| c.level).and_then(|c| c.line_bytes)
    }

    /// The last level of cache before memory, at most the third; any one of them.
    pub fn last_level(&self) -> Option<&Cache> {
        let data = self.caches.iter().filter(|c| c.kind != CacheKind::Instruction && c.level <= 3);
        data.max_by_key(|c| c.level)
    }

    /// The caches of one level that hold data.
    pub fn caches_at(&self, level: u8) -> impl Iterator<Item = &Cache> {
        self.caches.iter().filter(move |c| c.level == level && c.kind != CacheKind::Instruction)
    }
}

/// A CPU before it has neighbours: each set named by the least CPU in it.
#[derive(Clone, Debug)]
struct RawCpu {
    os: usize,
    core: usize,
    l3: usize,
    numa: usize,
    package: usize,
    kind: usize,
}

/// Puts CPUs in order, neighbours first, and numbers cores, caches, nodes and packages in that order.
fn arrange(mut raw: Vec<RawCpu>) -> Topology {
    raw.sort_by_key(|c| (c.package, c.numa, c.l3, c.core, c.os));
    let mut known: [BTreeMap<usize, usize>; 4] = Default::default();
    let mut number = |which: usize, name: usize| {
        let next = known[which].len();
        *known[which].entry(name).or_insert(next)
    };
    let cpus = raw
        .iter()
        .map(|c| Cpu {
            os: c.os,
            core: number(0, c.core),
            l3: number(1, c.l3),
            numa: number(2, c.numa),
            package: number(3, c.package),
            kind: c.kind,
        })
        .collect();
    Topology { cpus }
}

/// The CPU sets of caches, cores, nodes and packages that a reader has found.
#[derive(Default)]
struct Sets {
    cpus: Vec<usize>,
    cores: Vec<Vec<usize>>,
    packages: Vec<Vec<usize>>,
    caches: Vec<Cache>,
    memory: Vec<MemoryNode>,
    kinds: Vec<CoreKind>,
}

impl Sets {
    fn hardware(self, source: Source, reader: &'static str, cpu_model: Option<String>) -> Hardware {
        let topology = self.topology();
        let Sets { caches, memory, kinds, .. } = self;
        Hardware { topology, caches, memory, kinds, cpu_model, source, reader }
    }

    fn topology(&self) -> Topology {
        let least = |sets: &mut dyn Iterator<Item = &[usize]>| {
            let mut of = BTreeMap::new();
            for set in sets {
                let Some(&name) = set.iter().min() else { continue };
                for &cpu in set {
                    of.entry(cpu).or_insert(name);
                }
            }
            of
        };
        let core = least(&mut self.cores.iter().map(Vec::as_slice));
        let package = least(&mut self.packages.iter().map(Vec::as_slice));
        let numa = least(&mut self.memory.iter().map(|n| n.cpus.as_slice()));
        // The last level of cache: a fourth level lies on the memory's side, as a third beyond cores does.
        let last = self.caches.iter().filter(|c| c.kind != CacheKind::Instruction && c.level <= 3);
        let deepest = last.clone().map(|c| c.level).max().unwrap_or(0);
        let l3 = least(&mut last.filter(|c| c.level == deepest).map(|c| c.cpus.as_slice()));
        let kind = |cpu| self.kinds.iter().find(|k| k.cpus.contains(&cpu)).map_or(0, |k| k.kind);
        let raw = self.cpus.iter().map(|&os| {
            let core = core.get(&os).copied().unwrap_or(os);
            RawCpu {
                os,
                core,
                // Without a known cache beyond the core, nothing is shared before memory.
                l3: l3.get(&os).copied().unwrap_or(core),
                numa: numa.get(&os).copied().unwrap_or(0),
                package: package.get(&os).copied().unwrap_or(0),
                kind: kind(os),
            }
        });
        arrange(raw.collect())
    }
}

#[cfg(test)]
mod tests;

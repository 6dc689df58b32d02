//! Topologies through hwloc.

use super::{sysfs, Cache, CacheKind, CoreKind, Hardware, MemoryNode, Sets, Source, TopologyError};
use crate::sysfile::Root;
use hwlocality::cpu::cpuset::CpuSet;
use hwlocality::object::attributes::ObjectAttributes;
use hwlocality::object::types::{CacheType, ObjectType};
use hwlocality::object::TopologyObject;
use hwlocality::topology::builder::BuildFlags;
use hwlocality::Topology;

/// This machine, with CPUs that a cpuset withholds: which of them are usable is another question.
pub fn machine() -> Result<Hardware, TopologyError> {
    let failed = |reason: String| TopologyError::Machine { reason };
    let topology = Topology::builder()
        .with_flags(BuildFlags::INCLUDE_DISALLOWED)
        .map_err(|e| failed(e.to_string()))?
        .build()
        .map_err(|e| failed(e.to_string()))?;
    let mut hardware = convert(&topology, Source::Machine);
    if hardware.topology.cpus.is_empty() {
        return Err(failed("hwloc lists no CPU".to_owned()));
    }
    if topology.is_this_system() {
        // The kernel's name, so that a build without hwloc finds the same fingerprint.
        hardware.cpu_model = sysfs::cpu_model(&Root::live()).or(hardware.cpu_model);
    }
    Ok(hardware)
}

/// A synthetic string that ends in CPUs, as hwloc reads it: what our own reader is compared with. Sizes that the
/// string leaves open are made up.
#[cfg(test)]
pub fn synthetic(text: &str) -> Hardware {
    let topology = Topology::builder().from_synthetic(text).expect(text).build().expect(text);
    convert(&topology, Source::Synthetic(text.to_owned()))
}

fn convert(topology: &Topology, source: Source) -> Hardware {
    let of_type = |kind| topology.objects_with_type(kind).map(cpus_of).collect::<Vec<_>>();
    let cpus: Vec<usize> = of_type(ObjectType::PU).into_iter().flatten().collect();
    let (cores, packages) = (of_type(ObjectType::Core), of_type(ObjectType::Package));
    let caches = caches(topology);
    let memory: Vec<MemoryNode> = topology
        .objects_with_type(ObjectType::NUMANode)
        .map(|node| MemoryNode {
            os: node.os_index().unwrap_or_else(|| node.logical_index()),
            size_bytes: match node.attributes() {
                Some(ObjectAttributes::NUMANode(numa)) => numa.local_memory().map(u64::from),
                _ => None,
            },
            cpus: cpus_of(node),
        })
        .collect();
    let kinds = kinds(topology);
    let model = topology.objects_with_type(ObjectType::Package).chain([topology.root_object()]);
    let model = model.filter_map(|o| o.info("CPUModel")?.to_str().ok().map(str::to_owned)).next();
    Sets { cpus, cores, packages, caches, memory, kinds }.hardware(source, "hwloc", model)
}

fn cpus_of(object: &TopologyObject) -> Vec<usize> {
    object.cpuset().map(|set| list(&set)).unwrap_or_default()
}

/// A set's members; of an infinite set, none, since it names no CPU in particular.
fn list(set: &CpuSet) -> Vec<usize> {
    match set.weight() {
        Some(_) => set.iter_set().map(usize::from).collect(),
        None => Vec::new(),
    }
}

fn caches(topology: &Topology) -> Vec<Cache> {
    let levels = [
        ObjectType::L5Cache,
        ObjectType::L4Cache,
        ObjectType::L3Cache,
        ObjectType::L2Cache,
        ObjectType::L1Cache,
    ];
    let objects = levels.into_iter().flat_map(|kind| topology.objects_with_type(kind));
    objects
        .filter_map(|object| {
            let Some(ObjectAttributes::Cache(cache)) = object.attributes() else { return None };
            Some(Cache {
                level: u8::try_from(cache.depth()).ok()?,
                kind: match cache.cache_type() {
                    CacheType::Unified => CacheKind::Unified,
                    CacheType::Data => CacheKind::Data,
                    CacheType::Instruction => CacheKind::Instruction,
                    // A type that this hwlocality does not know: whatever it holds, it holds data.
                    CacheType::Unknown(_) => CacheKind::Unified,
                },
                size_bytes: cache.size().map(u64::from),
                line_bytes: cache.line_size().map(usize::from),
                cpus: cpus_of(object),
            })
        })
        .collect()
}

/// Core kinds where there are several and hwloc can rank them.
fn kinds(topology: &Topology) -> Vec<CoreKind> {
    let Ok(kinds) = topology.cpu_kinds() else { return Vec::new() };
    let kinds: Vec<CoreKind> = kinds
        .enumerate()
        .filter(|(_, kind)| kind.efficiency.is_some())
        .map(|(index, kind)| CoreKind {
            kind: kind.efficiency.unwrap_or(index),
            about: kind
                .infos
                .iter()
                .map(|i| format!("{} {}", i.name().to_string_lossy(), i.value().to_string_lossy()))
                .collect::<Vec<_>>()
                .join(", "),
            cpus: list(&kind.cpuset),
        })
        .collect();
    if kinds.len() > 1 {
        kinds
    } else {
        Vec::new()
    }
}

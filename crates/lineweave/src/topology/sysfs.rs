//! The machine's shape from `/sys/devices/system`.

use super::{Cache, CacheKind, CoreKind, Hardware, MemoryNode, Sets, Source, TopologyError};
use crate::cpus::online;
use crate::sysfile::{parse_cpu_list, Root};
use std::collections::{BTreeMap, BTreeSet};

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

/// The machine below a root.
pub fn read(root: &Root) -> Result<Hardware, TopologyError> {
    // Without the list, by their directories.
    let cpus = online(root).unwrap_or_else(|| root.numbered(CPU, "cpu"));
    if cpus.is_empty() {
        return Err(TopologyError::Machine { reason: format!("{CPU} lists no CPU") });
    }
    let sets = |names: &[&str]| -> Vec<Vec<usize>> {
        let set = |cpu: &usize| {
            let file = |name: &&str| root.read(format!("{CPU}/cpu{cpu}/topology/{name}"));
            let text = names.iter().find_map(file)?;
            parse_cpu_list(&text).ok().filter(|set| set.contains(cpu))
        };
        let sets: BTreeSet<Vec<usize>> = cpus.iter().filter_map(set).collect();
        sets.into_iter().collect()
    };
    let cores = sets(&["core_cpus_list", "thread_siblings_list"]);
    let packages = sets(&["package_cpus_list", "core_siblings_list"]);
    let caches = caches(root, &cpus);
    let memory = memory(root, &cpus);
    let kinds = kinds(root, &cpus);
    let sets = Sets { cpus, cores, packages, caches, memory, kinds };
    Ok(sets.hardware(Source::Machine, "sysfs", cpu_model(root)))
}

/// The machine of which only the CPUs are known; CPU 0 where not even those are.
pub fn by_mask(root: &Root, mut cpus: Vec<usize>) -> Hardware {
    if cpus.is_empty() {
        cpus.push(0);
    }
    let memory = memory(root, &cpus);
    Sets { cpus, memory, ..Sets::default() }.hardware(Source::Machine, "mask", cpu_model(root))
}

fn caches(root: &Root, cpus: &[usize]) -> Vec<Cache> {
    let mut found: BTreeMap<(u8, CacheKind, Vec<usize>), Cache> = BTreeMap::new();
    for &cpu in cpus {
        let directory = format!("{CPU}/cpu{cpu}/cache");
        for index in root.numbered(&directory, "index") {
            let file = |name: &str| root.read(format!("{directory}/index{index}/{name}"));
            let kind = match file("type").as_deref() {
                Some("Data") => CacheKind::Data,
                Some("Unified") => CacheKind::Unified,
                // Instruction caches play no part in moving data; hwloc leaves them out too.
                _ => continue,
            };
            let level = file("level").and_then(|l| l.parse::<u8>().ok());
            let shared = file("shared_cpu_list").and_then(|l| parse_cpu_list(&l).ok());
            let (Some(level), Some(mut shared)) = (level, shared) else { continue };
            shared.retain(|c| cpus.contains(c));
            found.entry((level, kind, shared.clone())).or_insert_with(|| Cache {
                level,
                kind,
                size_bytes: file("size").and_then(|s| size(&s)),
                line_bytes: file("coherency_line_size").and_then(|l| l.parse().ok()).filter(|&l| l > 0),
                cpus: shared,
            });
        }
    }
    let mut caches: Vec<Cache> = found.into_values().collect();
    caches.sort_by_key(|c| std::cmp::Reverse(c.level));
    caches
}

/// The kernel writes cache sizes as `32768K`.
fn size(text: &str) -> Option<u64> {
    let (digits, unit) = match text.strip_suffix('K') {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix('M').map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).filter(|&bytes| bytes > 0)
}

fn memory(root: &Root, cpus: &[usize]) -> Vec<MemoryNode> {
    let mut nodes: Vec<MemoryNode> = root
        .numbered(NODE, "node")
        .into_iter()
        .map(|os| {
            let text = root.read(format!("{NODE}/node{os}/cpulist")).unwrap_or_default();
            let mut near = parse_cpu_list(&text).unwrap_or_default();
            near.retain(|c| cpus.contains(c));
            let meminfo = root.read(format!("{NODE}/node{os}/meminfo")).unwrap_or_default();
            let total = meminfo.lines().find_map(|l| l.split_once("MemTotal:"));
            let kib = total.and_then(|(_, kib)| kib.trim().trim_end_matches(" kB").parse::<u64>().ok());
            MemoryNode { os, size_bytes: kib.and_then(|k| k.checked_mul(1024)), cpus: near }
        })
        .collect();
    if nodes.is_empty() {
        // A kernel without NUMA: one memory for all.
        nodes.push(MemoryNode { os: 0, size_bytes: None, cpus: cpus.to_vec() });
    }
    nodes
}

/// Kinds by the scheduler's capacities (Arm), by Intel's two lists of cores, or by frequencies.
fn kinds(root: &Root, cpus: &[usize]) -> Vec<CoreKind> {
    // By a number that each CPU has, ascending; a CPU belongs to a kind whose least it exceeds by so many percent.
    let by = |file: &str, what: &str, within: u64| -> Vec<(String, Vec<usize>)> {
        let number = |&cpu: &usize| Some((root.number(format!("{CPU}/cpu{cpu}/{file}"))?, cpu));
        let numbers: BTreeSet<(u64, usize)> = cpus.iter().filter_map(number).collect();
        let mut kinds: Vec<(u64, Vec<usize>)> = Vec::new();
        for (number, cpu) in numbers {
            match kinds.last_mut() {
                Some((least, cpus)) if number - *least <= *least / 100 * within => cpus.push(cpu),
                _ => kinds.push((number, vec![cpu])),
            }
        }
        kinds.into_iter().map(|(least, cpus)| (format!("{what} {least}"), cpus)).collect()
    };
    let mut kinds = by("cpu_capacity", "capacity", 0);
    if kinds.len() < 2 {
        kinds = [("IntelAtom", "cpu_atom"), ("IntelCore", "cpu_core")]
            .iter()
            .filter_map(|(about, device)| {
                let text = root.read(format!("/sys/devices/{device}/cpus"))?;
                let mut list = parse_cpu_list(&text).ok()?;
                list.retain(|c| cpus.contains(c));
                (!list.is_empty()).then(|| (format!("CoreType {about}"), list))
            })
            .collect();
    }
    // What a core always reaches, where the kernel tells; else the most, which differs a little between cores alike.
    for file in ["cpufreq/base_frequency", "cpufreq/cpuinfo_max_freq"] {
        if kinds.len() < 2 {
            kinds = by(file, "kHz", 10);
        }
    }
    if kinds.len() < 2 {
        return Vec::new();
    }
    let kind = |(kind, (about, cpus))| CoreKind { kind, about, cpus };
    kinds.into_iter().enumerate().map(kind).collect()
}

/// The CPU's name: `model name` on x86, `cpu` on POWER, and on Arm, which prints none, the implementer, part
/// and revision that stand for it, or what the firmware calls the machine.
pub fn cpu_model(root: &Root) -> Option<String> {
    let text = root.read("/proc/cpuinfo")?;
    let field = |name: &str| {
        let value = text.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == name).then(|| value.trim().to_owned())
        });
        value.filter(|v| !v.is_empty())
    };
    field("model name").or_else(|| field("cpu")).or_else(|| field("Model")).or_else(|| {
        let (implementer, part) = (field("CPU implementer")?, field("CPU part")?);
        Some(arm_name(&implementer, &part))
    })
}

/// Arm's registry of implementers and the server parts met with most; others keep their numbers.
fn arm_name(implementer: &str, part: &str) -> String {
    let known = [
        ("0x41", "0xd0c", "Arm Neoverse-N1"),
        ("0x41", "0xd40", "Arm Neoverse-V1"),
        ("0x41", "0xd49", "Arm Neoverse-N2"),
        ("0x41", "0xd4f", "Arm Neoverse-V2"),
        ("0x41", "0xd08", "Arm Cortex-A72"),
        ("0x41", "0xd0b", "Arm Cortex-A76"),
        ("0x46", "0x001", "Fujitsu A64FX"),
        ("0x48", "0xd01", "HiSilicon Kunpeng-920"),
        ("0xc0", "0xac3", "Ampere-1"),
        ("0xc0", "0xac4", "Ampere-1a"),
    ];
    let name = known.iter().find(|(i, p, _)| (*i, *p) == (implementer, part));
    name.map_or_else(|| format!("Arm implementer {implementer} part {part}"), |(_, _, n)| (*n).to_owned())
}

//! Synthetic topologies: reading hwloc's form, and writing a machine in it.
//!
//! The form is levels from the outside in, each `type:count` a parent, with attributes in parentheses and
//! memory in brackets: `pack:2 numa:4 l3:2(size=32MB) core:8 pu:2`.

use super::{Cache, CacheKind, Hardware, MemoryNode, Sets, Source, TopologyError};
use lineweave_core::topology::Cpu;
use std::collections::{BTreeMap, BTreeSet};

/// The most CPUs a string may describe; a count too many must not take all memory.
pub const MOST_CPUS: usize = 65_536;

/// A level's type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Package,
    Numa,
    /// Memory in brackets: a node for each parent, which is no level.
    Attached,
    Cache(u8),
    Core,
    Pu,
    /// Dies, groups: levels that lineweave tells nothing from.
    Other,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Level {
    kind: Kind,
    count: usize,
    size: Option<u64>,
}

/// The levels of a string, memory in brackets among them.
fn parse(text: &str) -> Result<Vec<Level>, TopologyError> {
    let wrong = |found: String| TopologyError::Synthetic { text: text.to_owned(), found };
    let mut levels: Vec<Level> = Vec::new();
    let mut cpus = 1usize;
    for word in words(text).map_err(|f| wrong(f.to_owned()))? {
        if let Some(memory) = word.strip_prefix('[') {
            let (name, attributes) = memory.trim_end_matches(']').split_once('(').unwrap_or((memory, ""));
            let name = name.trim().trim_end_matches(']');
            if kind(name) != Some(Kind::Numa) {
                return Err(wrong(format!("`{word}`, where memory in brackets is [numa]")));
            }
            levels.push(Level { kind: Kind::Attached, count: 1, size: size(attributes, "memory=") });
            continue;
        }
        let (level, attributes) = word.split_once('(').unwrap_or((&word, ""));
        let Some((name, count)) = level.split_once(':') else {
            return Err(wrong(format!("`{word}`, which has no `type:`")));
        };
        let kind = kind(name).ok_or_else(|| {
            wrong(format!("the type `{name}`, which is none of pack, die, numa, group, l1 to l5, core, pu"))
        })?;
        let count: usize =
            count.parse().ok().filter(|&c| c > 0).ok_or_else(|| {
                wrong(format!("the count `{count}` of `{name}`, which is no number from 1 on"))
            })?;
        if levels.iter().any(|l| l.kind == kind && kind != Kind::Other) {
            return Err(wrong(format!("two levels `{name}`")));
        }
        if levels.last().is_some_and(|l| l.kind == Kind::Pu) {
            return Err(wrong(format!("`{word}` below pu, the innermost level")));
        }
        cpus = cpus.saturating_mul(count);
        if cpus > MOST_CPUS {
            return Err(wrong(format!("more than {MOST_CPUS} CPUs")));
        }
        let key = if kind == Kind::Numa { "memory=" } else { "size=" };
        levels.push(Level { kind, count, size: size(attributes, key) });
    }
    if levels.iter().all(|l| l.kind == Kind::Attached) {
        return Err(wrong("no level".to_owned()));
    }
    Ok(levels)
}

/// Words separated by white space that is in neither parentheses nor brackets.
fn words(text: &str) -> Result<Vec<String>, &'static str> {
    let mut words = vec![String::new()];
    let mut open = Vec::new();
    for c in text.chars() {
        match c {
            '(' => open.push(')'),
            '[' => open.push(']'),
            ')' | ']' if open.pop() != Some(c) => return Err("a bracket that closes nothing"),
            _ => {}
        }
        if c == '\0' {
            return Err("a NUL character");
        }
        if c.is_whitespace() && open.is_empty() {
            words.push(String::new());
        } else if let Some(word) = words.last_mut() {
            word.push(c);
        }
    }
    if !open.is_empty() {
        return Err("a bracket that is never closed");
    }
    words.retain(|w| !w.is_empty());
    Ok(words)
}

/// hwloc compares types without case and accepts beginnings; these are the ones in use.
fn kind(name: &str) -> Option<Kind> {
    let name = name.to_ascii_lowercase();
    match name.as_str() {
        "pack" | "package" | "socket" => Some(Kind::Package),
        "numa" | "node" | "numanode" => Some(Kind::Numa),
        "core" => Some(Kind::Core),
        "pu" => Some(Kind::Pu),
        "die" | "group" | "cluster" => Some(Kind::Other),
        _ => {
            let rest = name.strip_prefix('l')?;
            let digit = rest.chars().next()?.to_digit(10).filter(|d| (1..=5).contains(d))?;
            match &rest[1..] {
                "i" | "icache" => Some(Kind::Other),
                "" | "cache" | "d" | "dcache" | "u" | "ucache" => {
                    Some(Kind::Cache(u8::try_from(digit).ok()?))
                }
                _ => None,
            }
        }
    }
}

/// Returns the size behind `key` (`size=`, `memory=`) among attributes, such as `size=32MB`, with hwloc's suffixes.
fn size(attributes: &str, key: &str) -> Option<u64> {
    let rest = attributes.split(key).nth(1)?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    let unit = match rest[digits.len()..].trim_end_matches(')').split_whitespace().next().unwrap_or("") {
        "kB" | "KB" | "KiB" => 1 << 10,
        "MB" | "MiB" => 1 << 20,
        "GB" | "GiB" => 1 << 30,
        _ => 1,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The machine of a string.
///
/// # Errors
/// [`TopologyError::Synthetic`] with what was found.
pub fn hardware(text: &str) -> Result<Hardware, TopologyError> {
    let levels = parse(text)?;
    let total: usize = levels.iter().map(|l| l.count).product();
    let sets = |width: usize| -> Vec<Vec<usize>> {
        (0..total / width).map(|i| (i * width..(i + 1) * width).collect()).collect()
    };
    let (mut cores, mut packages, mut caches, mut memory) = (vec![], vec![], vec![], vec![]);
    let mut width = total;
    for level in &levels {
        width /= level.count;
        match level.kind {
            Kind::Package => packages = sets(width),
            Kind::Core => cores = sets(width),
            Kind::Numa | Kind::Attached => {
                for cpus in sets(width) {
                    memory.push(MemoryNode { os: memory.len(), size_bytes: level.size, cpus });
                }
            }
            Kind::Cache(depth) => caches.extend(sets(width).into_iter().map(|cpus| Cache {
                level: depth,
                kind: CacheKind::Unified,
                size_bytes: level.size,
                line_bytes: None,
                cpus,
            })),
            Kind::Pu | Kind::Other => {}
        }
    }
    let cpus: Vec<usize> = (0..total).collect();
    if memory.is_empty() {
        memory.push(MemoryNode { os: 0, size_bytes: None, cpus: cpus.clone() });
    }
    let sets = Sets { cpus, cores, packages, caches, memory, kinds: Vec::new() };
    Ok(sets.hardware(Source::Synthetic(text.to_owned()), "synthetic", None))
}

impl Hardware {
    /// The machine in synthetic form, for people and for a profile's fingerprint: levels from the outside
    /// in, caches with their sizes, without memory sizes, which change with every boot.
    ///
    /// Where counts differ between parents they are listed in order as `core:(4x2,2)`, four children twice,
    /// then two; hwloc has no form for such machines, and does not read this one.
    pub fn synthetic_form(&self) -> String {
        let cpus = &self.topology.cpus;
        let size = self.last_level().and_then(|c| c.size_bytes);
        let size = size.map(|bytes| format!("(size={bytes})")).unwrap_or_default();
        // How many children each group of `outer` has, in the groups' order.
        let counts = |outer: &dyn Fn(&Cpu) -> usize, inner: &dyn Fn(&Cpu) -> usize| {
            let mut children: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
            for cpu in cpus {
                children.entry(outer(cpu)).or_default().insert(inner(cpu));
            }
            counts_form(&children.values().map(BTreeSet::len).collect::<Vec<_>>())
        };
        let mut words = Vec::new();
        let mut outer: Option<Tier> = None;
        for tier in self.tiers() {
            let count = counts(&|c| outer.map_or(0, |o| o.group(c)), &|c| tier.group(c));
            words.push(match tier {
                Tier::Package => format!("pack:{count}"),
                Tier::Numa => format!("numa:{count}"),
                Tier::Cache(level) => format!("l{level}:{count}{size}"),
                Tier::Core => format!("core:{count}"),
            });
            outer = Some(tier);
        }
        words.push(format!("pu:{}", counts(&|c| c.core, &|c| c.os)));
        words.join(" ")
    }
}

/// A level that a machine is grouped by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tier {
    /// The CPUs of a package.
    Package,
    /// The CPUs of a NUMA node.
    Numa,
    /// The last level of cache, with its number.
    Cache(u8),
    /// The CPUs of a core.
    Core,
}

impl Tier {
    /// The group that a CPU is in.
    pub fn group(self, cpu: &Cpu) -> usize {
        match self {
            Tier::Package => cpu.package,
            Tier::Numa => cpu.numa,
            Tier::Cache(_) => cpu.l3,
            Tier::Core => cpu.core,
        }
    }
}

impl Hardware {
    /// The levels this machine is grouped by, from the outside in.
    pub fn tiers(&self) -> Vec<Tier> {
        let groups =
            |tier: Tier| self.topology.cpus.iter().map(|c| tier.group(c)).collect::<BTreeSet<_>>().len();
        let mut tiers = vec![Tier::Package, Tier::Numa];
        if let Some(last) = self.last_level() {
            let cache = Tier::Cache(last.level);
            // A core's own second level is no level of the machine.
            if last.level == 3 || groups(cache) < groups(Tier::Core) {
                tiers.push(cache);
            }
        }
        tiers.push(Tier::Core);
        // A cache that several NUMA nodes share (sub-NUMA clusters) lies outside of them, and so does a
        // NUMA node that several packages share.
        tiers.sort_by_cached_key(|&tier| groups(tier));
        tiers
    }
}

/// One count where all are alike, a list with repetitions where not.
fn counts_form(counts: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &count in counts {
        match runs.last_mut() {
            Some((last, times)) if *last == count => *times += 1,
            _ => runs.push((count, 1)),
        }
    }
    match runs.as_slice() {
        [(count, _)] => count.to_string(),
        _ => {
            let run = |&(count, times): &(usize, usize)| match times {
                1 => count.to_string(),
                _ => format!("{count}x{times}"),
            };
            format!("({})", runs.iter().map(run).collect::<Vec<_>>().join(","))
        }
    }
}

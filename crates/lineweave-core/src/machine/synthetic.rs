//! Reading a topology from the part of hwloc's synthetic form that machine files use.

use crate::topology::{Cpu, Topology};

/// The most CPUs a description may have: enough for scale studies, few enough to hold.
const MOST_CPUS: usize = 1 << 20;

/// The CPUs of `pack:2 numa:4 l3:2 core:8 pu:2`: two packages of four NUMA nodes each of two caches each of
/// eight cores each of two hardware threads.
///
/// Levels are nested in the order given. The outermost cache is the last-level cache; without any, every core
/// has its own. A NUMA node or package that is not named is the level around it.
///
/// # Errors
/// What was expected and found, when a level is unknown, named twice or empty, or when there are more than 2^20 CPUs.
pub fn topology(text: &str) -> Result<Topology, String> {
    let error = |expected: &str, found: &str| format!("expected {expected}, found `{found}`");
    let mut levels: Vec<(&str, usize)> = Vec::new();
    let mut cpus = 1usize;
    for part in text.split_whitespace() {
        let (name, count) = part.split_once(':').ok_or_else(|| error("LEVEL:COUNT", part))?;
        let level = match name {
            "pack" | "package" | "socket" => "pack",
            "numa" | "node" => "numa",
            "l3" | "l2" | "l1" | "core" | "pu" => name,
            _ => return Err(error("a level of pack, numa, l3, l2, l1, core or pu", name)),
        };
        if levels.iter().any(|(l, _)| *l == level) {
            return Err(error("each level once", part));
        }
        let count = count.parse::<usize>().ok().filter(|&n| n > 0);
        let count = count.ok_or_else(|| error("a count of at least 1", part))?;
        cpus = cpus
            .checked_mul(count)
            .filter(|&n| n <= MOST_CPUS)
            .ok_or_else(|| error("at most 1048576 CPUs", text))?;
        levels.push((level, cpus));
    }
    if !levels.iter().any(|(l, _)| matches!(*l, "core" | "pu")) {
        return Err(error("a level `core` or `pu`", text));
    }
    // The index of the object of a level above CPU `c`, from the number of such objects.
    let object = |name: &str, c: usize| {
        levels.iter().find(|(l, _)| *l == name).map(|&(_, objects)| c / (cpus / objects))
    };
    let cpu = |c: usize| {
        let package = object("pack", c).unwrap_or(0);
        let core = object("core", c).unwrap_or(c);
        let cache = ["l3", "l2", "l1"].iter().find_map(|name| object(name, c));
        Cpu {
            os: c,
            core,
            l3: cache.unwrap_or(core),
            numa: object("numa", c).unwrap_or(package),
            package,
            kind: 0,
        }
    };
    Ok(Topology { cpus: (0..cpus).map(cpu).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Level;

    #[test]
    fn levels_nest_in_order() {
        let t = topology("pack:2 numa:2 l3:2 core:4 pu:2").unwrap();
        assert_eq!(t.cpus.len(), 64);
        let at = |a: usize, b: usize| t.cpus[a].common(&t.cpus[b]);
        assert_eq!(at(0, 1), Level::Core);
        assert_eq!(at(0, 7), Level::L3);
        assert_eq!(at(0, 8), Level::Numa);
        assert_eq!(at(0, 16), Level::Package);
        assert_eq!(at(0, 32), Level::Machine);
    }

    #[test]
    fn the_outermost_cache_is_the_last_level() {
        let tiles = topology("pack:1 numa:1 l2:32 core:2 pu:4").unwrap();
        assert_eq!(tiles.cpus[0].common(&tiles.cpus[7]), Level::L3);
        let bare = topology("numa:1 core:60 pu:4").unwrap();
        assert_eq!(bare.cpus[0].common(&bare.cpus[4]), Level::Numa);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "pack", "pack:0 core:2", "pack:x core:1", "ring:4", "core:2 core:2", "pack:2"] {
            assert!(topology(text).is_err(), "{text}");
        }
        assert!(topology("pack:99999999999 core:99999999999").is_err());
    }
}

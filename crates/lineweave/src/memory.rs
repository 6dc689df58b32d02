//! Memory that this process can still have: what the machine has left, and what its control groups
//! leave it.

use crate::cgroup::{hierarchies, Hierarchy};
use crate::sysfile::Root;
use lineweave_core::units::Bytes;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// The memory that can still be had, and what says so. Both bounds are kept: the smaller one counts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct AvailableMemory {
    /// The least of everything below; nothing where neither is known.
    pub available_bytes: Option<u64>,
    /// The machine's memory, `MemTotal`.
    pub total_bytes: Option<u64>,
    /// Bytes that the machine has left without swapping, `MemAvailable`.
    pub machine_bytes: Option<u64>,
    /// The control group that leaves least.
    pub group: Option<GroupMemory>,
}

/// A control group's limit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct GroupMemory {
    /// The file with the limit.
    pub file: PathBuf,
    /// The limit.
    pub limit_bytes: u64,
    /// Bytes that are charged to the group.
    pub used_bytes: u64,
    /// Part of the used bytes in pages of files that the kernel drops when asked for more.
    pub reclaimable_bytes: u64,
}

/// Gives the kernel back what this process has freed. An allocator keeps it for later; where every rank of a large team has just made a plan, that
/// is more than all that they use.
pub(crate) fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: malloc_trim only touches what is free, and may be called at any time from any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

impl GroupMemory {
    /// Returns the bytes that the group's limit leaves, with reclaimable pages counted as free.
    pub fn available_bytes(&self) -> u64 {
        self.limit_bytes.saturating_sub(self.used_bytes.saturating_sub(self.reclaimable_bytes))
    }
}

impl fmt::Display for AvailableMemory {
    /// The amount and its source: what an error about lack of memory quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.available_bytes, &self.group) {
            (Some(bytes), Some(group)) if group.available_bytes() == *bytes => write!(
                f,
                "{} available: {} of {} used in {}",
                approximate(*bytes),
                approximate(group.used_bytes - group.reclaimable_bytes.min(group.used_bytes)),
                approximate(group.limit_bytes),
                group.file.display()
            ),
            (Some(bytes), _) => write!(f, "{} available: MemAvailable in /proc/meminfo", approximate(*bytes)),
            (None, _) => f.write_str("available memory unknown: /proc/meminfo cannot be read"),
        }
    }
}

/// Bytes with three digits in the binary unit a person would choose.
pub fn approximate(bytes: u64) -> String {
    let units = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, _)) if bytes % unit == 0 => Bytes(bytes).to_string(),
        Some((unit, name)) => {
            let value = bytes as f64 / *unit as f64;
            let digits = usize::from(value < 100.0);
            format!("{value:.digits$} {name}")
        }
        None => format!("{bytes} B"),
    }
}

/// The memory this process can still have.
pub fn available_memory(root: &Root) -> AvailableMemory {
    let meminfo = root.read("/proc/meminfo").unwrap_or_default();
    let field = |name: &str| {
        let line = meminfo.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix(':'))?;
        line.trim().trim_end_matches(" kB").trim().parse::<u64>().ok().map(|kib| kib.saturating_mul(1024))
    };
    let total_bytes = field("MemTotal");
    let machine_bytes = field("MemAvailable");
    let group = groups(root, total_bytes).into_iter().min_by_key(GroupMemory::available_bytes);
    let of_group = group.as_ref().map(GroupMemory::available_bytes);
    let available_bytes = machine_bytes.into_iter().chain(of_group).min();
    AvailableMemory { available_bytes, total_bytes, machine_bytes, group }
}

/// Every limit on the way up that is one: version 1 writes "no limit" as the largest multiple of a page.
fn groups(root: &Root, total: Option<u64>) -> Vec<GroupMemory> {
    let total = total.unwrap_or(u64::MAX);
    let mut groups = Vec::new();
    for Hierarchy { version, directories } in hierarchies(root, "memory") {
        let (limit, used, cache) = match version {
            2 => ("memory.max", "memory.current", "inactive_file"),
            _ => ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        };
        for directory in directories {
            let file = directory.join(limit);
            let Some(limit_bytes) = root.number(&file).filter(|&l| l < total) else { continue };
            let used_bytes = root.number(directory.join(used)).unwrap_or(0);
            let reclaimable_bytes = stat(root, &directory, cache).unwrap_or(0).min(used_bytes);
            groups.push(GroupMemory { file, limit_bytes, used_bytes, reclaimable_bytes });
        }
    }
    groups
}

fn stat(root: &Root, directory: &Path, key: &str) -> Option<u64> {
    let text = root.read(directory.join("memory.stat"))?;
    text.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(' ')?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysfile::tests::FakeRoot;

    const MEMINFO: (&str, &str) =
        ("/proc/meminfo", "MemTotal:       8388608 kB\nMemFree: 1 kB\nMemAvailable:    4194304 kB\n");

    #[test]
    fn without_a_limit_the_machine_counts() {
        let memory = available_memory(&FakeRoot::new(&[MEMINFO]).root());
        assert_eq!((memory.available_bytes, memory.total_bytes), (Some(4 << 30), Some(8 << 30)));
        assert_eq!(memory.to_string(), "4 GiB available: MemAvailable in /proc/meminfo");
    }

    #[test]
    fn the_tightest_group_counts_and_its_page_cache_is_free() {
        let fake = FakeRoot::new(&[
            MEMINFO,
            ("/proc/self/cgroup", "0::/a/b\n"),
            ("/proc/self/mountinfo", "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("/sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("/sys/fs/cgroup/a/memory.max", "1073741824\n"),
            ("/sys/fs/cgroup/a/memory.current", "805306368\n"),
            ("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 268435456\n"),
        ]);
        let memory = available_memory(&fake.root());
        assert_eq!(memory.available_bytes, Some(512 << 20));
        assert_eq!(
            memory.to_string(),
            "512 MiB available: 512 MiB of 1 GiB used in /sys/fs/cgroup/a/memory.max"
        );
    }

    #[test]
    fn version_1_and_its_way_to_say_no_limit() {
        let fake = FakeRoot::new(&[
            MEMINFO,
            ("/proc/self/cgroup", "4:memory:/j\n"),
            ("/proc/self/mountinfo", "35 31 0:32 / /cg/memory rw - cgroup cgroup rw,memory\n"),
            ("/cg/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/cg/memory/j/memory.limit_in_bytes", "2097152\n"),
            ("/cg/memory/j/memory.usage_in_bytes", "4194304\n"),
        ]);
        let memory = available_memory(&fake.root());
        assert_eq!(memory.available_bytes, Some(0), "an overdrawn group leaves nothing, not a huge number");
        assert_eq!(memory.group.map(|g| g.file), Some(PathBuf::from("/cg/memory/j/memory.limit_in_bytes")));
    }

    #[test]
    fn nothing_known_is_said() {
        let memory = available_memory(&FakeRoot::new(&[]).root());
        assert_eq!(memory.available_bytes, None);
        assert!(memory.to_string().contains("unknown"));
    }

    #[test]
    fn amounts_are_rounded_for_people() {
        assert_eq!(approximate(24_684_096 * 1024), "23.5 GiB");
        assert_eq!(approximate(512 << 10), "512 KiB");
        assert_eq!(approximate(100), "100 B");
    }
}

//! Features of the kernel and the processor that lineweave uses, or has to do without.

use lineweave::internal::{memory_policy, Near};
use lineweave::sysfile::Root;
use rustix::fs::{memfd_create, MemfdFlags};
use rustix::process::{getpid, pidfd_open, PidfdFlags};
use rustix::thread::{membarrier_query, MembarrierCommand};
use serde::Serialize;

/// Kernel and processor features.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Kernel {
    pub release: Option<String>,
    /// True if there is anonymous shared memory (`memfd_create`), which teams of processes share.
    pub memfd: bool,
    /// True if there are process descriptors (`pidfd_open`), by which a rank's death is noticed.
    pub pidfd: bool,
    /// True if `membarrier` has the global expedited command, which orders other processes' stores from one side.
    pub membarrier_global: bool,
    /// True if `membarrier` has the private expedited command, which does so among threads.
    pub membarrier_private: bool,
    /// The permission to read each other's memory (`process_vm_readv`).
    pub cross_memory: CrossMemory,
    /// The means that places the memory of ranks on NUMA nodes.
    pub near: Near,
    /// True if a seccomp filter is in force, which may refuse any of these calls.
    pub seccomp_filter: bool,
    #[serde(flatten)]
    pub pages: Pages,
    /// True if the processor reports a virtual machine; steal time and migration are to be expected.
    pub hypervisor: bool,
    /// Name of the machine by its firmware.
    pub machine: Option<String>,
    /// True if the time stamp counter ticks at one rate in every power state, so that it can serve as the clock.
    pub invariant_tsc: bool,
    /// The kernel's clock; `tsc` when the kernel trusts the counter itself.
    pub clocksource: Option<String>,
    /// Frequency governor of CPU 0.
    pub governor: Option<String>,
    /// CPUs that the scheduler leaves free.
    pub isolated: Option<String>,
}

/// Pages that are larger than usual.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Pages {
    /// Huge pages set aside, by size.
    pub huge_pages: Vec<HugePages>,
    /// Transparent huge pages for private memory: `always`, `madvise` or `never`.
    pub transparent: Option<String>,
    pub transparent_shared: Option<String>,
}

/// Huge pages of one size.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HugePages {
    pub page_bytes: u64,
    /// Number of pages set aside.
    pub total: u64,
    pub free: u64,
}

/// The processes that may read another process's memory, by Yama's `ptrace_scope`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CrossMemory {
    /// Any process of the same user.
    SameUser,
    /// A process's ancestors, and the process that it names with `PR_SET_PTRACER`.
    Ancestors,
    /// Administrators only.
    Administrators,
    /// No process.
    #[default]
    Nobody,
}

impl CrossMemory {
    /// Returns the rule in words.
    pub fn about(self) -> &'static str {
        match self {
            CrossMemory::SameUser => "processes of the same user",
            CrossMemory::Ancestors => "ancestors, and whom a process allows (PR_SET_PTRACER)",
            CrossMemory::Administrators => "administrators only",
            CrossMemory::Nobody => "nobody",
        }
    }
}

impl Kernel {
    /// Returns the features of this kernel, by its files below `root` and, on the live machine, by asking the kernel.
    pub fn probe(root: &Root) -> Kernel {
        let cpuinfo = root.read("/proc/cpuinfo").unwrap_or_default();
        let flags: Vec<&str> = cpuinfo
            .lines()
            .find_map(|l| l.split_once(':').filter(|(key, _)| matches!(key.trim(), "flags" | "Features")))
            .map(|(_, flags)| flags.split_whitespace().collect())
            .unwrap_or_default();
        let clocksource = root.read("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        let has = |flag: &str| flags.contains(&flag);
        // Arm's generic timer and POWER's time base are invariant by architecture.
        let architectural = clocksource
            .as_deref()
            .is_some_and(|c| c.starts_with("arch_sys_counter") || c.starts_with("timebase"));
        let mut kernel = Kernel {
            release: root.read("/proc/sys/kernel/osrelease"),
            cross_memory: cross_memory(root),
            seccomp_filter: status(root, "Seccomp").as_deref() == Some("2"),
            pages: Pages {
                huge_pages: huge_pages(root),
                transparent: chosen(root, "/sys/kernel/mm/transparent_hugepage/enabled"),
                transparent_shared: chosen(root, "/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
            },
            hypervisor: has("hypervisor") || root.read("/sys/hypervisor/type").is_some(),
            machine: machine(root),
            invariant_tsc: (has("constant_tsc") && has("nonstop_tsc")) || architectural,
            clocksource,
            governor: root.read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            isolated: root.read("/sys/devices/system/cpu/isolated").filter(|list| !list.is_empty()),
            ..Kernel::default()
        };
        if root.is_live() {
            kernel.memfd = memfd_create("lineweave-probe", MemfdFlags::CLOEXEC).is_ok();
            kernel.pidfd = pidfd_open(getpid(), PidfdFlags::empty()).is_ok();
            kernel.near = memory_policy();
            let commands = membarrier_query();
            kernel.membarrier_global = commands.contains_command(MembarrierCommand::GlobalExpedited);
            kernel.membarrier_private = commands.contains_command(MembarrierCommand::PrivateExpedited);
        }
        kernel
    }
}

fn status(root: &Root, field: &str) -> Option<String> {
    let text = root.read("/proc/self/status")?;
    text.lines().find_map(|l| Some(l.strip_prefix(field)?.strip_prefix(':')?.trim().to_owned()))
}

/// Returns the rule by Yama; without Yama, processes of the same user may read.
fn cross_memory(root: &Root) -> CrossMemory {
    match root.number("/proc/sys/kernel/yama/ptrace_scope") {
        None | Some(0) => CrossMemory::SameUser,
        Some(1) => CrossMemory::Ancestors,
        Some(2) => CrossMemory::Administrators,
        Some(_) => CrossMemory::Nobody,
    }
}

fn huge_pages(root: &Root) -> Vec<HugePages> {
    let directory = "/sys/kernel/mm/hugepages";
    let Ok(entries) = std::fs::read_dir(root.path(directory)) else { return Vec::new() };
    let mut pages: Vec<HugePages> = entries
        .filter_map(|entry| {
            let name = entry.ok()?.file_name().to_str()?.to_owned();
            let kib: u64 = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
            Some(HugePages {
                page_bytes: kib.checked_mul(1024)?,
                total: root.number(format!("{directory}/{name}/nr_hugepages"))?,
                free: root.number(format!("{directory}/{name}/free_hugepages"))?,
            })
        })
        .collect();
    pages.sort_by_key(|p| p.page_bytes);
    pages
}

/// Returns the word in brackets: `always [madvise] never`.
fn chosen(root: &Root, file: &str) -> Option<String> {
    let text = root.read(file)?;
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| word.to_owned())
}

fn machine(root: &Root) -> Option<String> {
    let dmi = |name: &str| root.read(format!("/sys/devices/virtual/dmi/id/{name}"));
    let words: Vec<String> = ["sys_vendor", "product_name"].into_iter().filter_map(dmi).collect();
    let words = words.join(" ");
    let words = if words.is_empty() { root.read("/proc/device-tree/model")? } else { words };
    Some(words.trim_matches('\0').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::tests::imitated;

    #[test]
    fn features_are_read_from_files() {
        let huge = "/sys/kernel/mm/hugepages/hugepages-2048kB";
        let (total, free) = (format!("{huge}/nr_hugepages"), format!("{huge}/free_hugepages"));
        let files = [
            ("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu constant_tsc nonstop_tsc hypervisor\n"),
            ("/proc/sys/kernel/yama/ptrace_scope", "1\n"),
            ("/proc/self/status", "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            (total.as_str(), "8\n"),
            (free.as_str(), "3\n"),
            ("/sys/devices/virtual/dmi/id/sys_vendor", "Vendor\n"),
            ("/sys/devices/virtual/dmi/id/product_name", "Box 1\n"),
        ];
        let kernel = imitated(&files, Kernel::probe);
        assert!(kernel.invariant_tsc && kernel.hypervisor && kernel.seccomp_filter);
        assert_eq!(kernel.cross_memory, CrossMemory::Ancestors);
        assert_eq!(kernel.pages.transparent.as_deref(), Some("madvise"));
        assert_eq!(kernel.pages.huge_pages, [HugePages { page_bytes: 2 << 20, total: 8, free: 3 }]);
        assert_eq!(kernel.machine.as_deref(), Some("Vendor Box 1"));
        assert!(!kernel.memfd, "system calls speak of the live machine only");
    }

    #[test]
    fn arms_timer_is_invariant_and_an_old_counter_is_not() {
        let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        let arm = [(clock, "arch_sys_counter\n"), ("/proc/cpuinfo", "Features : fp asimd\n")];
        assert!(imitated(&arm, Kernel::probe).invariant_tsc);
        let old = [(clock, "acpi_pm\n"), ("/proc/cpuinfo", "flags : constant_tsc\n")];
        assert!(!imitated(&old, Kernel::probe).invariant_tsc);
        let none = imitated(&[("/none", "")], Kernel::probe);
        assert_eq!((none.invariant_tsc, none.cross_memory), (false, CrossMemory::SameUser));
    }

    #[test]
    fn the_live_kernel_shares_memory_between_processes() {
        let kernel = Kernel::probe(&Root::live());
        assert!(kernel.memfd, "memfd_create is in every kernel since 3.17");
        assert!(kernel.release.is_some());
    }
}

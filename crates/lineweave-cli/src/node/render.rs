//! The node as text: a heading, a compact tree, and one labelled line for each fact.

use super::NodeInfo;
use lineweave::memory::approximate;
use lineweave::sysfile::format_cpu_list;
use lineweave::topology::synthetic::Tier;
use lineweave::topology::{Hardware, Source};
use lineweave_core::topology::Cpu;
use std::collections::BTreeSet;

/// Width of the labels' column.
const LABEL: usize = 14;

pub(super) fn render(node: &NodeInfo) -> String {
    let mut text = Text::default();
    let hardware = &node.hardware;
    let model = hardware.cpu_model.as_deref().unwrap_or("a CPU without a name");
    let usable = node.placement();
    let all = &hardware.topology.cpus;
    text.line(&format!("{model}: {} of {} CPUs usable", usable.cpus.len(), all.len()));
    if let Some(other) = &node.costs_of {
        text.line(&format!("This machine is shown; --machine names whose costs are chosen by: {other}"));
    }
    text.blank();

    text.entry("topology", &format!("{}, by {}", hardware.source, hardware.reader));
    text.entry("", &hardware.synthetic_form());
    let named: BTreeSet<usize> = usable.cpus.iter().map(|c| c.os).collect();
    let all: Vec<&Cpu> = all.iter().collect();
    tree(&mut text, hardware, &hardware.tiers(), &all, &named, String::new(), 1);
    text.entry("caches", &caches(hardware));
    text.entry("SMT", &smt(hardware));
    for kind in &hardware.kinds {
        let cpus = format_cpu_list(&kind.cpus);
        text.entry("core kind", &format!("{}: CPUs {cpus} ({})", kind.kind, kind.about));
    }
    if hardware.source != Source::Machine {
        text.entry("", "what follows is about this machine, not the one above");
    }
    text.blank();

    let cpus = &node.usable;
    let mut usable = format!("{} ({} of them", format_cpu_list(&cpus.cpus), cpus.effective);
    usable += if cpus.effective == 1 { " can wait actively at a time)" } else { " can wait actively)" };
    text.entry("usable CPUs", &usable);
    for source in &cpus.sources {
        text.entry("", &source.to_string());
    }
    let quota = cpus.quota.map_or_else(|| "none".to_owned(), |q| format!("{q:.2} CPUs"));
    text.entry("CPU quota", &quota);
    let total = node.memory.total_bytes.map(|t| format!("; {} in all", approximate(t)));
    text.entry("memory", &format!("{}{}", node.memory, total.unwrap_or_default()));
    kernel(&mut text, node);
    text.blank();

    text.entry("fingerprint", &node.fingerprint_id);
    text.entry("profile", node.profile.as_deref().unwrap_or("not looked for"));
    if let Some(note) = &node.kept_plans {
        text.entry("kept plans", note);
    }
    text.blank();

    settings(&mut text, node);
    if !node.warnings.is_empty() {
        text.blank();
    }
    for warning in &node.warnings {
        text.entry("warning", warning);
    }
    text.0
}

fn kernel(text: &mut Text, node: &NodeInfo) {
    let kernel = &node.kernel;
    let yes = |has: bool, name: &str| format!("{name} {}", if has { "yes" } else { "no" });
    text.entry("cache line", &format!("{} B", node.fingerprint.line_bytes));
    text.entry("kernel", kernel.release.as_deref().unwrap_or("unknown"));
    let features = [
        yes(kernel.memfd, "memfd"),
        yes(kernel.pidfd, "pidfd"),
        yes(kernel.membarrier_global, "membarrier global"),
        yes(kernel.membarrier_private, "private"),
    ];
    text.entry("", &features.join(", "));
    let filter = if kernel.seccomp_filter { "; a seccomp filter may refuse it" } else { "" };
    let who = kernel.cross_memory.about();
    text.entry("cross memory", &format!("process_vm_readv by {who}{filter}"));
    if let Some(note) = &node.attach {
        text.entry("", note);
    }
    text.entry("rank memory", &kernel.near.to_string());
    let mut huge: Vec<String> = kernel
        .pages
        .huge_pages
        .iter()
        .map(|p| format!("{} {} free of {}", approximate(p.page_bytes), p.free, p.total))
        .collect();
    let unknown = || "unknown".to_owned();
    huge.push(format!("transparent {}", kernel.pages.transparent.clone().unwrap_or_else(unknown)));
    huge.push(format!("shared {}", kernel.pages.transparent_shared.clone().unwrap_or_else(unknown)));
    text.entry("huge pages", &huge.join(", "));
    let clock = kernel.clocksource.as_deref().unwrap_or("unknown");
    let tsc =
        if kernel.invariant_tsc { "invariant" } else { "not invariant: timings use the kernel's clock" };
    text.entry("clock", &format!("counter {tsc}; clocksource {clock}"));
    let machine = kernel.machine.as_ref().map(|m| format!(" ({m})")).unwrap_or_default();
    let kind = if kernel.hypervisor { "virtual: expect steal and migration" } else { "no hypervisor seen" };
    text.entry("machine", &format!("{kind}{machine}"));
    if let Some(governor) = &kernel.governor {
        text.entry("governor", governor);
    }
    if let Some(isolated) = &kernel.isolated {
        text.entry("isolated", &format!("CPUs {isolated}"));
    }
}

fn settings(text: &mut Text, node: &NodeInfo) {
    let widest =
        |column: fn(&lineweave::settings::Row) -> usize| node.settings.iter().map(column).max().unwrap_or(0);
    let (name, value) = (widest(|r| r.name.len()), widest(|r| r.value.chars().count()));
    for row in &node.settings {
        text.line(&format!("{:name$}  {:value$}  {:11}  {}", row.name, row.value, row.origin, row.about));
    }
}

/// Writes one line for each group; a group with a single part continues on its line.
fn tree(
    text: &mut Text,
    hardware: &Hardware,
    tiers: &[Tier],
    cpus: &[&Cpu],
    usable: &BTreeSet<usize>,
    line: String,
    depth: usize,
) {
    let join = |part: String| if line.is_empty() { part } else { format!("{line} / {part}") };
    let (tier, inner) = match tiers {
        [] | [Tier::Core] => {
            text.line(&format!("{}{}", "  ".repeat(depth), join(leaf(cpus, usable))));
            return;
        }
        [tier, inner @ ..] => (*tier, inner),
    };
    // CPUs are in order, so groups are consecutive.
    let groups: Vec<&[&Cpu]> = cpus.chunk_by(|a, b| tier.group(a) == tier.group(b)).collect();
    if let [only] = groups.as_slice() {
        tree(text, hardware, inner, only, usable, join(name(hardware, tier, only)), depth);
        return;
    }
    let mut below = depth;
    if !line.is_empty() {
        text.line(&format!("{}{line}", "  ".repeat(depth)));
        below += 1;
    }
    for group in groups {
        tree(text, hardware, inner, group, usable, name(hardware, tier, group), below);
    }
}

fn name(hardware: &Hardware, tier: Tier, cpus: &[&Cpu]) -> String {
    let Some(first) = cpus.first() else { return String::new() };
    let size = |bytes: Option<u64>| bytes.map(|b| format!(" {}", approximate(b))).unwrap_or_default();
    match tier {
        Tier::Package => format!("package {}", first.package),
        Tier::Numa => {
            let node = hardware.memory.iter().find(|n| n.cpus.contains(&first.os));
            let os = node.map_or(first.numa, |n| n.os);
            let bytes = node.and_then(|n| n.size_bytes);
            format!("numa {os}{}", bytes.map(|b| format!(" ({})", approximate(b))).unwrap_or_default())
        }
        Tier::Cache(level) => {
            let cache = hardware.caches_at(level).find(|c| c.cpus.contains(&first.os));
            format!("L{level}{}", size(cache.and_then(|c| c.size_bytes)))
        }
        Tier::Core => format!("core {}", first.core),
    }
}

fn leaf(cpus: &[&Cpu], usable: &BTreeSet<usize>) -> String {
    let cores: Vec<usize> = cpus.iter().map(|c| c.core).collect();
    let all: Vec<usize> = cpus.iter().map(|c| c.os).collect();
    let some: Vec<usize> = all.iter().copied().filter(|c| usable.contains(c)).collect();
    let plural = |list: &[usize]| if list.iter().any(|c| *c != list[0]) { "s" } else { "" };
    let mut text = format!(
        "core{} {} / CPU{} {}",
        plural(&cores),
        format_cpu_list(&cores),
        plural(&all),
        format_cpu_list(&all)
    );
    if some.len() < all.len() {
        text += &format!(" (usable: {})", format_cpu_list(&some));
    }
    text
}

/// Returns each level of cache: the sizes, and the number of CPUs that share a cache.
fn caches(hardware: &Hardware) -> String {
    let levels: BTreeSet<u8> = hardware.caches.iter().map(|c| c.level).collect();
    let mut parts = Vec::new();
    for level in levels {
        let kinds: BTreeSet<(Option<u64>, usize)> =
            hardware.caches_at(level).map(|c| (c.size_bytes, c.cpus.len())).collect();
        for (bytes, cpus) in kinds {
            let size = bytes.map_or_else(|| "of unknown size".to_owned(), approximate);
            let share = if cpus == 1 { "1 CPU".to_owned() } else { format!("{cpus} CPUs") };
            parts.push(format!("L{level} {size} for {share}"));
        }
    }
    if parts.is_empty() {
        "unknown".to_owned()
    } else {
        parts.join(", ")
    }
}

fn smt(hardware: &Hardware) -> String {
    let cpus = &hardware.topology.cpus;
    let cores: BTreeSet<usize> = cpus.iter().map(|c| c.core).collect();
    let most = cores.iter().map(|&core| cpus.iter().filter(|c| c.core == core).count()).max().unwrap_or(1);
    match most {
        0 | 1 => format!("none: {} cores of one CPU", cores.len()),
        _ => format!("up to {most} CPUs a core, {} cores", cores.len()),
    }
}

#[derive(Default)]
struct Text(String);

impl Text {
    fn line(&mut self, line: &str) {
        self.0.push_str(line.trim_end());
        self.0.push('\n');
    }

    fn blank(&mut self) {
        self.0.push('\n');
    }

    fn entry(&mut self, label: &str, value: &str) {
        self.line(&format!("{label:LABEL$}{value}"));
    }
}

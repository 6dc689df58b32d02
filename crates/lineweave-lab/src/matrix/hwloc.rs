//! A machine and its matrix in the XML of hwloc 2, which `lstopo --distances` and `hwloc-info` read.

use lineweave_core::machine::Matrix;
use lineweave_core::topology::{Cpu, Level, Topology};
use std::fmt::Write as _;

/// Kind of latencies that a user gave, as hwloc numbers it: HWLOC_DISTANCES_KIND_FROM_USER and HWLOC_DISTANCES_KIND_MEANS_LATENCY.
const KIND: u32 = 2 + 4;
/// Numbers on a line, as hwloc itself writes them.
const ON_A_LINE: usize = 10;

/// Objects in the making.
struct Tree {
    out: String,
    /// hwloc's number of an object, unique.
    next: usize,
}

/// The CPUs of `topology`, and as distances between them, initiator by target, the matrix in whole ns, at least 1.
pub fn hwloc(matrix: &Matrix, topology: &Topology) -> String {
    let mut tree = Tree { out: String::new(), next: 1 };
    let cpus: Vec<&Cpu> = topology.cpus.iter().collect();
    tree.out.push_str(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n<topology version=\"2.0\">\n",
    );
    tree.open("Machine", "os_index=\"0\"", &cpus);
    for package in split(&cpus, Level::Package) {
        tree.open("Package", &format!("os_index=\"{}\"", package[0].package), &package);
        for node in split(&package, Level::Numa) {
            let grouped = node.len() < package.len();
            if grouped {
                tree.open("Group", "kind=\"1001\" subkind=\"0\"", &node);
            }
            tree.open("NUMANode", &format!("os_index=\"{}\" local_memory=\"0\"", node[0].numa), &node);
            tree.close();
            for cache in split(&node, Level::L3) {
                let about = "cache_size=\"0\" depth=\"3\" cache_linesize=\"64\" cache_associativity=\"0\" cache_type=\"0\"";
                // A cache over several nodes, or of one core, is no group of this tree.
                let shared = split(&cache, Level::Core).len() > 1
                    && cpus.iter().filter(|c| c.l3 == cache[0].l3).count() == cache.len();
                if shared {
                    tree.open("L3Cache", about, &cache);
                }
                for core in split(&cache, Level::Core) {
                    tree.open("Core", &format!("os_index=\"{}\"", core[0].core), &core);
                    for cpu in core {
                        tree.open("PU", &format!("os_index=\"{}\"", cpu.os), &[cpu]);
                        tree.close();
                    }
                    tree.close();
                }
                if shared {
                    tree.close();
                }
            }
            if grouped {
                tree.close();
            }
        }
        tree.close();
    }
    tree.close();
    let all = matrix.cpus();
    let _ = writeln!(
        tree.out,
        "  <distances2 type=\"PU\" nbobjs=\"{}\" kind=\"{KIND}\" name=\"CoreToCoreLatency\" indexing=\"os\">",
        all.len()
    );
    tree.numbers("indexes", all.iter().copied());
    let ns = |a: usize, b: usize| matrix.between(a, b).map_or(0, |ns| ns.round().max(1.0) as usize);
    tree.numbers("u64values", all.iter().flat_map(|&a| all.iter().map(move |&b| ns(a, b))));
    tree.out.push_str("  </distances2>\n</topology>\n");
    tree.out
}

impl Tree {
    fn open(&mut self, kind: &str, about: &str, cpus: &[&Cpu]) {
        let cpuset = bits(cpus.iter().map(|c| c.os));
        let nodeset = bits(cpus.iter().map(|c| c.numa));
        let sets = format!(
            "cpuset=\"{cpuset}\" complete_cpuset=\"{cpuset}\" nodeset=\"{nodeset}\" complete_nodeset=\"{nodeset}\""
        );
        let allowed = match kind {
            "Machine" => format!(" allowed_cpuset=\"{cpuset}\" allowed_nodeset=\"{nodeset}\""),
            _ => String::new(),
        };
        let number = self.next;
        self.next += 1;
        let _ = writeln!(self.out, "<object type=\"{kind}\" {about} {sets}{allowed} gp_index=\"{number}\">");
    }

    fn close(&mut self) {
        self.out.push_str("</object>\n");
    }

    /// Lines of numbers, each with its length, which hwloc checks.
    fn numbers(&mut self, name: &str, numbers: impl Iterator<Item = usize>) {
        let all: Vec<usize> = numbers.collect();
        for some in all.chunks(ON_A_LINE) {
            let text: String = some.iter().map(|n| format!("{n} ")).collect();
            let _ = writeln!(self.out, "    <{name} length=\"{}\">{text}</{name}>", text.len());
        }
    }
}

/// The groups of these CPUs at a level, in order.
fn split<'a>(cpus: &[&'a Cpu], level: Level) -> Vec<Vec<&'a Cpu>> {
    let mut groups: Vec<Vec<&Cpu>> = Vec::new();
    for &cpu in cpus {
        match groups.iter_mut().find(|g| g[0].id(level) == cpu.id(level)) {
            Some(group) => group.push(cpu),
            None => groups.push(vec![cpu]),
        }
    }
    groups
}

/// A set as hwloc writes it: words of 32 bits, the highest first.
fn bits(set: impl Iterator<Item = usize>) -> String {
    let mut words: Vec<u32> = vec![0];
    for bit in set {
        words.resize(words.len().max(bit / 32 + 1), 0);
        words[bit / 32] |= 1 << (bit % 32);
    }
    let words: Vec<String> = words.iter().rev().map(|word| format!("0x{word:08x}")).collect();
    words.join(",")
}

//! A machine as nested boxes: packages, NUMA nodes, last-level caches, cores, threads; and a tree of ranks over them.

use super::svg::{Anchor, Point, Stroke, Svg};
use super::{INK, RULE, SOFT, TRANSFER};
use crate::topology::{Cpu, Level, Topology};

const TOP: f64 = 62.0;
const LEFT: f64 = 16.0;
/// A thread's square, and what lies between boxes.
const THREAD: f64 = 13.0;
const GAP: f64 = 5.0;
/// Height of a name.
const NAME: f64 = 13.0;

/// A box with what is in it.
struct Node {
    level: Option<Level>,
    name: String,
    /// The thread, where it is one.
    cpu: Option<usize>,
    children: Vec<Node>,
    columns: usize,
    size: Point,
}

/// Draws the CPUs of `topology`, with arrows between those that `tree` names as pairs of indices into
/// [`Topology::cpus`], giver first. Pairs that name no CPU are left out.
pub fn machine(topology: &Topology, title: &str, detail: &str, tree: &[(usize, usize)]) -> String {
    let all: Vec<usize> = (0..topology.cpus.len()).collect();
    let levels = drawn(topology);
    let root = node(topology, None, String::new(), &all, &levels);
    let mut svg = Svg::default();
    svg.heading(title, detail);
    let mut centres = vec![None; topology.cpus.len()];
    paint(&root, (LEFT, TOP), &mut svg, &mut centres);
    let arrow = Stroke { colour: TRANSFER, width: 1.4, dashed: false };
    let ring = Stroke { colour: INK, width: 1.6, dashed: false };
    for &(from, to) in tree {
        let ends = (centres.get(from).copied().flatten(), centres.get(to).copied().flatten());
        if let (Some(from), Some(to)) = ends {
            svg.arrow(from, to, arrow);
        }
    }
    let first = tree.iter().map(|t| t.0).find(|root| tree.iter().all(|t| t.1 != *root));
    if let Some(at) = first.and_then(|root| centres.get(root).copied().flatten()) {
        svg.circle(at, 5.0, "none", ring);
    }
    svg.finish((root.size.0 + 2.0 * LEFT).max(420.0), root.size.1 + TOP + 16.0, title)
}

/// The levels that have boxes: packages, cores, and those between that group anything.
fn drawn(topology: &Topology) -> Vec<Level> {
    let count = |level: Level| {
        let mut ids: Vec<usize> = topology.cpus.iter().map(|c| c.id(level)).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.len()
    };
    let groups = |level: &Level| match level {
        Level::Package | Level::Core => true,
        Level::Numa => count(Level::Numa) > count(Level::Package),
        Level::L3 => count(Level::L3) < count(Level::Core),
        Level::Machine => false,
    };
    Level::ALL.into_iter().rev().filter(groups).collect()
}

fn node(topology: &Topology, level: Option<Level>, name: String, cpus: &[usize], below: &[Level]) -> Node {
    let mut children = Vec::new();
    match below.split_first() {
        Some((&next, rest)) => {
            let mut ids: Vec<usize> = Vec::new();
            for &cpu in cpus {
                let id = topology.cpus[cpu].id(next);
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
            for id in ids {
                let members: Vec<usize> =
                    cpus.iter().copied().filter(|&c| topology.cpus[c].id(next) == id).collect();
                children.push(node(topology, Some(next), format!("{} {id}", word(next)), &members, rest));
            }
        }
        None => children.extend(cpus.iter().map(|&cpu| thread(cpu, &topology.cpus[cpu]))),
    }
    let n = children.len().max(1);
    let columns = match level {
        // Threads of a core stand side by side up to two.
        Some(Level::Core) => n.min(2),
        None => n.min(2),
        _ => ((n as f64 * 1.8).sqrt().ceil() as usize).clamp(1, n),
    };
    let widest = children.iter().map(|c| c.size.0).fold(0.0, f64::max);
    let highest = children.iter().map(|c| c.size.1).fold(0.0, f64::max);
    let rows = n.div_ceil(columns);
    let head = if named(level) { NAME } else { 0.0 };
    let width = columns as f64 * (widest + GAP) + GAP;
    let width = if named(level) { width.max(super::svg::width_of(&name, 10.0) + 2.0 * GAP) } else { width };
    let size = (width, rows as f64 * (highest + GAP) + GAP + head);
    Node { level, name, cpu: None, children, columns, size }
}

fn thread(cpu: usize, of: &Cpu) -> Node {
    let name = format!("CPU {}", of.os);
    Node { level: None, name, cpu: Some(cpu), children: Vec::new(), columns: 1, size: (THREAD, THREAD) }
}

fn named(level: Option<Level>) -> bool {
    matches!(level, Some(Level::Package | Level::Numa | Level::L3))
}

fn word(level: Level) -> &'static str {
    match level {
        Level::Core => "core",
        Level::L3 => "L3",
        Level::Numa => "NUMA",
        Level::Package => "package",
        Level::Machine => "machine",
    }
}

fn paint(node: &Node, at: Point, svg: &mut Svg, centres: &mut [Option<Point>]) {
    if let Some(cpu) = node.cpu {
        svg.open(&node.name);
        svg.rect(at, node.size, SOFT, 2.0);
        svg.rect((at.0 + 1.0, at.1 + 1.0), (THREAD - 2.0, THREAD - 2.0), "#ffffff", 1.5);
        svg.close();
        centres[cpu] = Some((at.0 + THREAD / 2.0, at.1 + THREAD / 2.0));
        return;
    }
    let fill = match node.level {
        Some(Level::Package) => "#eef2f7",
        Some(Level::Numa) => "#dfe8f3",
        Some(Level::L3) => "#cfe3d8",
        Some(Level::Core) => "#f3e3c3",
        _ => "none",
    };
    if node.level.is_some() {
        svg.open(&node.name);
        svg.rect(at, node.size, RULE, 4.0);
        svg.rect((at.0 + 0.8, at.1 + 0.8), (node.size.0 - 1.6, node.size.1 - 1.6), fill, 3.5);
        svg.close();
    }
    let mut top = at.1 + GAP;
    if named(node.level) {
        svg.text((at.0 + GAP, at.1 + NAME - 2.0), 10.0, SOFT, Anchor::Start, false, &node.name);
        top += NAME;
    }
    let widest = node.children.iter().map(|c| c.size.0).fold(0.0, f64::max);
    let highest = node.children.iter().map(|c| c.size.1).fold(0.0, f64::max);
    for (i, child) in node.children.iter().enumerate() {
        let (column, row) = ((i % node.columns) as f64, (i / node.columns) as f64);
        paint(child, (at.0 + GAP + column * (widest + GAP), top + row * (highest + GAP)), svg, centres);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_packages() -> Topology {
        let cpu = |os: usize| Cpu { os, core: os / 2, l3: os / 4, numa: os / 8, package: os / 8, kind: 0 };
        Topology { cpus: (0..16).map(cpu).collect() }
    }

    #[test]
    fn every_box_is_drawn_once_and_every_arrow_is_there() {
        let svg = machine(&two_packages(), "a < b", "d", &[(0, 8), (8, 15), (0, 99)]);
        let titled = |what: &str| svg.matches(&format!("<title>{what} ")).count();
        assert_eq!(
            (titled("package"), titled("NUMA"), titled("L3"), titled("core"), titled("CPU")),
            (2, 0, 4, 8, 16)
        );
        assert_eq!(svg.matches("<polygon").count(), 2, "no arrow to a CPU that is not there");
        assert_eq!(svg.matches("<circle").count(), 1, "the root");
        assert!(svg.contains("a &lt; b"));
    }

    #[test]
    fn a_machine_without_cpus_is_an_empty_picture() {
        let svg = machine(&Topology::default(), "t", "d", &[]);
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN"));
    }
}

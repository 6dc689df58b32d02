//! A machine as nested boxes: packages, NUMA nodes, last-level caches, cores, threads; and a tree of ranks over them.

use super::legend::in_order;
use super::shared::{leaves, root_of, LARGE};
use super::svg::{Anchor, Point, Stroke, Svg};
use super::{large_machine, PAPER, RULE, SOFT, TRANSFER};
use lineweave_core::topology::{Level, Topology};

const TOP: f64 = 62.0;
const LEFT: f64 = 16.0;
/// Height of a name.
const NAME: f64 = 15.0;
/// A thread's square: the largest with which the picture fits this width and height.
const THREADS: [f64; 8] = [46.0, 38.0, 30.0, 24.0, 20.0, 16.0, 13.0, 10.0];
const FITS: Point = (860.0, 620.0);
/// Size from which on a square has its CPU's number in it.
const NUMBERED: f64 = 16.0;

/// A box with what is in it.
struct Node {
    level: Option<Level>,
    name: String,
    /// The thread, where it is one.
    cpu: Option<usize>,
    children: Vec<Node>,
    columns: usize,
    /// Size of its largest child, and its own.
    cell: Point,
    size: Point,
}

/// Draws the CPUs of `topology`, with arrows between those that `tree` names as pairs of indices into
/// [`Topology::cpus`], giver first. Pairs that name no CPU are left out. Of more than 96 CPUs those that share a cache are one box, and
/// one of these is drawn open.
pub fn machine(topology: &Topology, title: &str, detail: &str, tree: &[(usize, usize)]) -> String {
    if topology.cpus.len() > LARGE {
        return large_machine::draw(topology, &leaves(topology), title, detail, tree);
    }
    let all: Vec<usize> = (0..topology.cpus.len()).collect();
    let levels = drawn(topology);
    let laid = |thread: f64| {
        let scale = Scale { thread, gap: (thread * 0.2).clamp(3.0, 8.0) };
        (scale, node(topology, scale, None, String::new(), &all, &levels))
    };
    let fits = |n: &Node| n.size.0 <= FITS.0 && n.size.1 <= FITS.1;
    let mut sizes = THREADS.into_iter().map(laid);
    let (scale, root) = sizes.find(|(_, n)| fits(n)).unwrap_or_else(|| laid(THREADS[THREADS.len() - 1]));
    let mut svg = Svg::default();
    svg.heading(title, detail);
    let mut centres = vec![None; topology.cpus.len()];
    paint(&root, scale, (LEFT, TOP), &mut svg, &mut centres);
    let centre = |cpu: usize| centres.get(cpu).copied().flatten();
    let arrow = Stroke { colour: TRANSFER, width: 1.5, dashed: false };
    for &(from, to) in tree {
        if let (Some(a), Some(b)) = (centre(from), centre(to)) {
            // From border to border, so that numbers can be read.
            let length = (b.0 - a.0).hypot(b.1 - a.1).max(1e-6);
            let reach = (scale.thread * 0.45).min(length / 3.0);
            let (dx, dy) = ((b.0 - a.0) / length * reach, (b.1 - a.1) / length * reach);
            svg.arc((a.0 + dx, a.1 + dy), (b.0 - dx, b.1 - dy), 0.12, arrow);
        }
    }
    if let Some(at) = root_of(tree).and_then(centre) {
        svg.circle(at, scale.thread * 0.5 + 1.0, "none", Stroke { width: 2.5, ..arrow });
    }
    let width = (root.size.0 + 2.0 * LEFT).max(Svg::heading_width(title, detail));
    svg.finish(width.max(420.0), root.size.1 + TOP + 16.0, title)
}

/// Sizes of the drawn parts, in px.
#[derive(Clone, Copy)]
struct Scale {
    /// A thread's square.
    thread: f64,
    /// Gap between boxes.
    gap: f64,
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

fn node(
    topology: &Topology,
    scale: Scale,
    level: Option<Level>,
    name: String,
    cpus: &[usize],
    below: &[Level],
) -> Node {
    let gap = scale.gap;
    let mut children = Vec::new();
    match below.split_first() {
        Some((&next, rest)) => {
            for id in in_order(cpus.iter().map(|&cpu| topology.cpus[cpu].id(next))) {
                let members: Vec<usize> =
                    cpus.iter().copied().filter(|&c| topology.cpus[c].id(next) == id).collect();
                let name = format!("{} {id}", word(next));
                children.push(node(topology, scale, Some(next), name, &members, rest));
            }
        }
        None => children.extend(cpus.iter().map(|&cpu| Node {
            level: None,
            name: topology.cpus[cpu].os.to_string(),
            cpu: Some(cpu),
            children: Vec::new(),
            columns: 1,
            cell: (0.0, 0.0),
            size: (scale.thread, scale.thread),
        })),
    }
    let n = children.len().max(1);
    let columns = match level {
        // Threads of a core stand side by side up to two.
        Some(Level::Core) => n.min(2),
        None => n.min(2),
        _ => ((n as f64 * 1.8).sqrt().ceil() as usize).clamp(1, n),
    };
    let largest = |of: fn(&Node) -> f64| children.iter().map(of).fold(0.0, f64::max);
    let cell = (largest(|c| c.size.0), largest(|c| c.size.1));
    let rows = n.div_ceil(columns);
    let head = if named(level) { NAME } else { 0.0 };
    let width = columns as f64 * (cell.0 + gap) + gap;
    let width = if named(level) { width.max(super::svg::room_of(&name, 11.0) + 2.0 * gap) } else { width };
    let size = (width, rows as f64 * (cell.1 + gap) + gap + head);
    Node { level, name, cpu: None, children, columns, cell, size }
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

fn paint(node: &Node, scale: Scale, at: Point, svg: &mut Svg, centres: &mut [Option<Point>]) {
    let gap = scale.gap;
    if let Some(cpu) = node.cpu {
        svg.open(&format!("CPU {}", node.name));
        svg.framed(at, node.size, PAPER, "#9aa5b4", 3.0);
        if scale.thread >= NUMBERED {
            let size =
                (scale.thread * 0.42).min(13.0).min(1.5 * scale.thread / node.name.len().max(1) as f64);
            let place = (at.0 + scale.thread / 2.0, at.1 + scale.thread / 2.0 + size * 0.36);
            svg.text(place, size, SOFT, Anchor::Middle, false, &node.name);
        }
        svg.close();
        centres[cpu] = Some((at.0 + scale.thread / 2.0, at.1 + scale.thread / 2.0));
        return;
    }
    let (fill, edge) = match node.level {
        Some(Level::Package) => ("#eef2f7", "#c9d3df"),
        Some(Level::Numa) => ("#e1eaf5", "#b9cbe2"),
        Some(Level::L3) => ("#d6eadf", "#abd0bd"),
        Some(Level::Core) => ("#f7ead0", "#e0c898"),
        _ => ("none", RULE),
    };
    if node.level.is_some() {
        svg.open(&node.name);
        svg.framed(at, node.size, fill, edge, 5.0);
        svg.close();
    }
    let mut top = at.1 + gap;
    if named(node.level) {
        svg.text((at.0 + gap, at.1 + NAME - 1.0), 11.0, SOFT, Anchor::Start, false, &node.name);
        top += NAME;
    }
    for (i, child) in node.children.iter().enumerate() {
        let (column, row) = ((i % node.columns) as f64, (i / node.columns) as f64);
        let corner = (at.0 + gap + column * (node.cell.0 + gap), top + row * (node.cell.1 + gap));
        paint(child, scale, corner, svg, centres);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::topology::Cpu;

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
    fn few_cpus_are_large_and_many_are_boxes_of_their_caches() {
        let cpu = |os: usize| Cpu { os, core: os, l3: os / 8, numa: os / 64, package: os / 64, kind: 0 };
        // Of 512 a name and a number for each of 64 caches; the 8 CPUs of one that is open; and those of the two packages.
        for (cpus, numbered) in [(4, 4), (512, 2 * 64 + 8)] {
            let topology = Topology { cpus: (0..cpus).map(cpu).collect() };
            let svg = machine(&topology, "t", "d", &[]);
            let width: f64 =
                svg.split_once(" width=\"").unwrap().1.split('"').next().unwrap().parse().unwrap();
            assert!((400.0..1000.0).contains(&width), "{width}");
            assert_eq!(svg.matches("text-anchor=\"middle\"").count(), numbered);
        }
    }

    #[test]
    fn a_machine_without_cpus_is_an_empty_picture() {
        let svg = machine(&Topology::default(), "t", "d", &[]);
        assert!(svg.ends_with("</svg>\n") && !svg.contains("NaN"));
    }
}

//! A large machine as boxes of its caches, one of them open, and a tree of ranks over them.

use super::shared::{joined, root_of, tells, Leaf, OPEN};
use super::svg::{room_of, Anchor, Point, Stroke, Svg};
use super::{INK, PAPER, SOFT, TRANSFER};
use lineweave_core::topology::Topology;
use std::collections::BTreeMap;

const TOP: f64 = 62.0;
const LEFT: f64 = 16.0;
const GAP: f64 = 26.0;
/// Height of a leaf's box.
const HIGH: f64 = 44.0;
/// Leaves in a row.
const ROW: usize = 8;
/// Height of a name.
const NAME: f64 = 18.0;
/// A CPU's square in the leaf that is open.
const CPU: f64 = 34.0;
/// From one CPU of an open leaf to the next.
const STEP: f64 = CPU + 18.0;

/// Draws `leaves` by packages, and the first of them open. `tree` has pairs of indices of CPUs, giver first.
pub(super) fn draw(
    topology: &Topology,
    leaves: &[Leaf],
    title: &str,
    detail: &str,
    tree: &[(usize, usize)],
) -> String {
    let cpus = topology.cpus.len();
    let numbers: Vec<String> = leaves.iter().map(|leaf| format!("{} CPUs", leaf.cpus.len())).collect();
    let texts =
        || leaves.iter().map(|l| room_of(&l.name, 11.0)).chain(numbers.iter().map(|n| room_of(n, 10.0)));
    let wide = texts().fold(60.0, f64::max) + 14.0;
    let mut svg = Svg::default();
    svg.heading(title, detail);

    // 1. Packages, and where leaves are in them.
    let mut packages: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    leaves.iter().enumerate().for_each(|(i, leaf)| packages.entry(leaf.package).or_default().push(i));
    let columns = packages.values().map(Vec::len).max().unwrap_or(1).min(ROW);
    let broad = columns as f64 * (wide + GAP) + GAP;
    let mut corners = vec![(0.0, 0.0); leaves.len()];
    let mut top = TOP;
    let mut names = Vec::new();
    for (package, members) in &packages {
        let rows = members.len().div_ceil(columns) as f64;
        let size = (broad, NAME + rows * (HIGH + GAP) + GAP * 0.5);
        svg.framed((LEFT, top), size, "#eef2f7", "#c9d3df", 5.0);
        names.push((top + NAME - 3.0, format!("package {package}")));
        for (i, &leaf) in members.iter().enumerate() {
            let (column, row) = ((i % columns) as f64, (i / columns) as f64);
            corners[leaf] = (LEFT + GAP + column * (wide + GAP), top + NAME + GAP * 0.4 + row * (HIGH + GAP));
        }
        top += size.1 + 12.0;
    }

    // 2. The tree between leaves, under the boxes: the thicker, the more CPUs hear through it.
    let joined = joined(tree, leaves, cpus);
    let centre = |leaf: usize| (corners[leaf].0 + wide / 2.0, corners[leaf].1 + HIGH / 2.0);
    for (&(a, b), &(pairs, heard)) in joined.iter().filter(|((a, b), _)| a != b) {
        svg.open(&tells(leaves, (a, b), (pairs, heard)));
        let width = (1.0 + 0.7 * (heard as f64).log2()).min(7.0);
        let (from, to) = borders(centre(a), centre(b), (wide / 2.0, HIGH / 2.0));
        svg.arc(from, to, 0.1, Stroke { colour: TRANSFER, width, dashed: false });
        svg.close();
    }
    for (y, name) in &names {
        svg.text((LEFT + 8.0, *y), 11.0, SOFT, Anchor::Start, false, name);
    }
    for (i, leaf) in leaves.iter().enumerate() {
        let (x, y) = corners[i];
        let numbers: Vec<String> = leaf.cpus.iter().map(|&cpu| topology.cpus[cpu].os.to_string()).collect();
        svg.open(&format!("{}, CPUs {}", leaf.name, numbers.join(" ")));
        svg.framed((x, y), (wide, HIGH), "#d6eadf", "#abd0bd", 4.0);
        svg.text((x + wide / 2.0, y + 18.0), 11.0, INK, Anchor::Middle, false, &leaf.name);
        svg.text(
            (x + wide / 2.0, y + 33.0),
            10.0,
            SOFT,
            Anchor::Middle,
            false,
            &format!("{} CPUs", leaf.cpus.len()),
        );
        svg.close();
    }

    // 3. One leaf, open.
    let mut width = broad + 2.0 * LEFT;
    if let Some(first) = leaves.first() {
        // As broad as the packages, and broad enough for arrows between its CPUs, which bend more the farther they go.
        let broad = broad.max(28.0 + ROW.min(first.cpus.len()) as f64 * STEP);
        let bottom = open(&mut svg, topology, first, (LEFT, top + 6.0), broad, tree);
        width = width.max(LEFT * 2.0 + broad);
        top = bottom;
    }
    if let Some(root) = root_of(tree) {
        if let Some(leaf) = leaves.iter().position(|leaf| leaf.cpus.contains(&root)) {
            svg.outline(
                (corners[leaf].0 - 2.0, corners[leaf].1 - 2.0),
                (wide + 4.0, HIGH + 4.0),
                Stroke { colour: TRANSFER, width: 2.5, dashed: false },
            );
        }
        let text = "the root is framed; the thicker an arrow, the more CPUs hear through it";
        svg.text((LEFT, top + 16.0), 11.0, SOFT, Anchor::Start, false, text);
        width = width.max(room_of(text, 11.0) + 2.0 * LEFT);
        top += 16.0;
    }
    svg.finish(width.max(Svg::heading_width(title, detail)), top + 16.0, title)
}

/// A leaf's CPUs, and the tree among them; returns where it ends.
fn open(
    svg: &mut Svg,
    topology: &Topology,
    leaf: &Leaf,
    at: Point,
    broad: f64,
    tree: &[(usize, usize)],
) -> f64 {
    let shown: Vec<usize> = leaf.cpus.iter().copied().take(OPEN).collect();
    let columns = (((broad - 28.0) / STEP).floor() as usize).clamp(1, shown.len().max(1));
    let rows = shown.len().div_ceil(columns) as f64;
    let size = (broad, NAME + rows * STEP + 12.0);
    svg.framed(at, size, "#d6eadf", "#abd0bd", 5.0);
    let more = if shown.len() < leaf.cpus.len() { ", the first of its CPUs" } else { ", CPU by CPU" };
    svg.text(
        (at.0 + 8.0, at.1 + NAME - 3.0),
        11.0,
        SOFT,
        Anchor::Start,
        false,
        &format!("{}{more}", leaf.name),
    );
    let corner = |i: usize| {
        (at.0 + 14.0 + (i % columns) as f64 * STEP, at.1 + NAME + 8.0 + (i / columns) as f64 * STEP)
    };
    let centre = |cpu: usize| {
        let i = shown.iter().position(|c| *c == cpu)?;
        Some((corner(i).0 + CPU / 2.0, corner(i).1 + CPU / 2.0))
    };
    for &(giver, taker) in tree {
        if let (Some(a), Some(b)) = (centre(giver), centre(taker)) {
            let (from, to) = borders(a, b, (CPU / 2.0, CPU / 2.0));
            svg.arc(from, to, 0.12, Stroke { colour: TRANSFER, width: 1.5, dashed: false });
        }
    }
    for (i, &cpu) in shown.iter().enumerate() {
        let (x, y) = corner(i);
        let os = topology.cpus[cpu].os;
        svg.open(&format!("CPU {os}"));
        svg.framed((x, y), (CPU, CPU), PAPER, "#9aa5b4", 3.0);
        svg.text((x + CPU / 2.0, y + CPU / 2.0 + 4.0), 11.0, SOFT, Anchor::Middle, false, &os.to_string());
        svg.close();
    }
    at.1 + size.1
}

/// Returns the ends of a line from the border of a box at `a` to that of one at `b`; `half` is half their size.
fn borders(a: Point, b: Point, half: Point) -> (Point, Point) {
    let (dx, dy) = (b.0 - a.0, b.1 - a.1);
    let part = (half.0 / dx.abs().max(1e-6)).min(half.1 / dy.abs().max(1e-6)).min(0.45);
    ((a.0 + dx * part, a.1 + dy * part), (b.0 - dx * part, b.1 - dy * part))
}

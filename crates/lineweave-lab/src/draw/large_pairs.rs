//! Costs between the caches of a large machine, and between the CPUs of one of them.

use super::colours;
use super::shared::{joined, tells, Leaf, OPEN};
use super::svg::{room_of, Anchor, Stroke, Svg};
use super::{INK, PAPER, SOFT, TRANSFER};
use lineweave_core::topology::{Cpu, Level, Topology};
use lineweave_core::units::Nanos;
use std::collections::BTreeMap;

const TOP: f64 = 84.0;
/// Room between the two tables.
const GAP: f64 = 28.0;

/// The least, the middle and the greatest of what is between CPUs; nothing where that is not known.
type Extent = Option<[f64; 3]>;

/// Draws a row and a column for each leaf, each pair once, and the CPUs of the first leaf beside it. `tree` has pairs of indices of CPUs.
pub(super) fn draw(
    topology: &Topology,
    leaves: &[Leaf],
    title: &str,
    what: &str,
    of: &dyn Fn(&Cpu, &Cpu) -> Option<f64>,
    tree: &[(usize, usize)],
) -> String {
    let cpus = &topology.cpus;
    let extent = |a: &[usize], b: &[usize]| -> Extent {
        let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (*a, *b))).filter(|(a, b)| a != b);
        let mut all: Vec<f64> = pairs.filter_map(|(a, b)| of(&cpus[a], &cpus[b])).collect();
        all.sort_by(f64::total_cmp);
        Some([*all.first()?, all[all.len() / 2], *all.last()?])
    };
    let n = leaves.len();
    let table: Vec<Vec<Extent>> =
        leaves.iter().map(|a| leaves.iter().map(|b| extent(&a.cpus, &b.cpus)).collect()).collect();
    let open: Vec<usize> =
        leaves.first().map(|l| l.cpus.iter().copied().take(OPEN).collect()).unwrap_or_default();
    let within: Vec<Vec<Extent>> =
        open.iter().map(|a| open.iter().map(|b| extent(&[*a], &[*b])).collect()).collect();
    let middles = || table.iter().chain(&within).flatten().flatten().map(|e| e[1]);
    let (low, high) = (middles().fold(f64::INFINITY, f64::min), middles().fold(0.0, f64::max));
    let shade = |extent: Extent| colours::shade(extent.map(|e| e[1]), low, high);
    let said = |extent: Extent| match extent {
        None => "not known".to_owned(),
        Some([low, _, high]) if Nanos(low).to_string() == Nanos(high).to_string() => Nanos(low).to_string(),
        Some([low, _, high]) => format!("{} to {}", Nanos(low), Nanos(high)),
    };

    let mut svg = Svg::default();
    let detail = format!("{what}, for the caches of {} CPUs; the middle of all pairs", cpus.len());
    svg.heading(title, &detail);
    // 1. Leaves.
    let left = leaves.iter().map(|l| room_of(&l.name, 9.0)).fold(30.0, f64::max) + 22.0;
    let cell = (640.0 / n as f64).clamp(10.0, 40.0);
    let side = n as f64 * cell;
    names(&mut svg, (left, TOP), cell, leaves.iter().map(|l| (l.name.clone(), l.short.clone())));
    svg.open_scaled((left, TOP), cell);
    for (row, line) in table.iter().enumerate() {
        for (column, extent) in line.iter().enumerate().take(row + 1) {
            let (a, b) = (&leaves[row].name, &leaves[column].name);
            let title = if row == column {
                format!("within {a}: {}", said(*extent))
            } else {
                format!("{a}, {b}: {}", said(*extent))
            };
            svg.square((column, row), shade(*extent), &title);
        }
    }
    svg.close();
    // 2. The first of them, CPU by CPU.
    let small = (260.0 / open.len().max(1) as f64).clamp(10.0, 22.0);
    let right = left + side + GAP + 30.0;
    if let Some(first) = leaves.first() {
        svg.text((right, TOP - 28.0), 11.0, INK, Anchor::Start, true, &format!("within {}", first.name));
        let os = |cpu: &usize| cpus[*cpu].os.to_string();
        names(&mut svg, (right, TOP), small, open.iter().map(|cpu| (os(cpu), os(cpu))));
        svg.open_scaled((right, TOP), small);
        for (row, line) in within.iter().enumerate() {
            for (column, extent) in line.iter().enumerate().take(row) {
                let title = format!("CPU {}, CPU {}: {}", os(&open[row]), os(&open[column]), said(*extent));
                svg.square((column, row), shade(*extent), &title);
            }
        }
        svg.close();
    }
    // 3. The tree.
    let edge = Stroke { colour: PAPER, width: 1.0, dashed: false };
    let joined = joined(tree, leaves, cpus.len());
    let most = joined.values().map(|(_, heard)| *heard).max().unwrap_or(1) as f64;
    for (&(a, b), &(pairs, heard)) in &joined {
        svg.open(&tells(leaves, (a, b), (pairs, heard)));
        let radius = (cell * 0.45 * (heard as f64 / most).sqrt()).clamp(2.0, cell * 0.45);
        svg.circle((left + (b as f64 + 0.5) * cell, TOP + (a as f64 + 0.5) * cell), radius, TRANSFER, edge);
        svg.close();
    }
    // 4. What shades and marks are.
    let mut below = TOP + open.len() as f64 * small + 34.0;
    let mut levels: BTreeMap<Level, (f64, f64)> = BTreeMap::new();
    for (i, a) in cpus.iter().enumerate() {
        for b in &cpus[i + 1..] {
            if let Some(ns) = of(a, b) {
                let extent = levels.entry(a.common(b)).or_insert((ns, ns));
                *extent = (extent.0.min(ns), extent.1.max(ns));
            }
        }
    }
    for (level, (low, high)) in &levels {
        let middle = (low * high).sqrt();
        svg.rect((right, below - 10.0), (14.0, 12.0), shade(Some([*low, middle, *high])), 2.0);
        let text = format!("same {level}: {}", said(Some([*low, middle, *high])));
        svg.text((right + 22.0, below), 12.0, INK, Anchor::Start, false, &text);
        below += 20.0;
    }
    if levels.is_empty() {
        svg.text((right, below), 12.0, INK, Anchor::Start, false, "not known");
        below += 20.0;
    }
    let mut width = right + (open.len() as f64 * small).max(220.0) + 24.0;
    if !joined.is_empty() {
        for text in [
            "Marks are the tree: the row gives,",
            "the column takes, and the larger,",
            "the more CPUs hear through it.",
        ] {
            svg.text((right, below + 8.0), 11.0, SOFT, Anchor::Start, false, text);
            below += 15.0;
            width = width.max(right + room_of(text, 11.0) + 16.0);
        }
    }
    let height = (TOP + side).max(below) + 16.0;
    svg.finish(width.max(Svg::heading_width(title, &detail)), height, title)
}

/// Names of rows, and short ones of columns: as many as have room.
fn names(svg: &mut Svg, at: (f64, f64), cell: f64, names: impl Iterator<Item = (String, String)>) {
    let names: Vec<(String, String)> = names.collect();
    let widest = names.iter().map(|n| room_of(&n.1, 9.0)).fold(0.0, f64::max) + 3.0;
    let (down, across) = ((11.0 / cell).ceil().max(1.0) as usize, (widest / cell).ceil().max(1.0) as usize);
    for (i, (name, short)) in names.iter().enumerate() {
        let middle = (i as f64 + 0.5) * cell;
        if i % down == 0 {
            svg.text((at.0 - 6.0, at.1 + middle + 3.0), 9.0, SOFT, Anchor::End, false, name);
        }
        if i % across == 0 {
            svg.text((at.0 + middle, at.1 - 6.0), 9.0, SOFT, Anchor::Middle, false, short);
        }
    }
}

//! Costs between CPUs, for every pair of them.

use super::colours::{self, SHADES};
use super::shared::{leaves, LARGE};
use super::svg::{room_of, Anchor, Stroke, Svg};
use super::{large_pairs, INK, INK_ON_PALE, PAPER, SOFT, TRANSFER};
use lineweave_core::topology::{Cpu, Level, Topology};
use lineweave_core::units::Nanos;
use std::collections::BTreeMap;

const TOP: f64 = 68.0;
const LEFT: f64 = 60.0;
/// Draws in ns for each two CPUs of `topology` what was `measured` for them, by their numbers in the system, and where nothing was,
/// the `cost` of their nearest common level; shades by logarithm. Costs that are not positive and finite are left white. `what` names the
/// cost. Of more than 96 CPUs those that share a cache are one row, and one of these is drawn open.
/// `tree` has pairs of indices into [`Topology::cpus`], giver first, in the order in which they are told: each is a mark in
/// the row of the giver and the column of the taker, where both are drawn.
pub fn pairs(
    topology: &Topology,
    title: &str,
    what: &str,
    cost: &dyn Fn(Level) -> f64,
    measured: &dyn Fn(usize, usize) -> Option<f64>,
    tree: &[(usize, usize)],
) -> String {
    let sound = |ns: f64| (ns > 0.0 && ns.is_finite()).then_some(ns);
    let of = |a: &Cpu, b: &Cpu| sound(measured(a.os, b.os).unwrap_or_else(|| cost(a.common(b))));
    let cpus: Vec<&Cpu> = topology.cpus.iter().collect();
    if cpus.len() > LARGE {
        return large_pairs::draw(topology, &leaves(topology), title, what, &of, tree);
    }
    let which = format!("{what}, for each two of {} CPUs", cpus.len());
    let cell = (640.0 / cpus.len().max(1) as f64).clamp(4.0, 64.0);
    let side = cpus.len() as f64 * cell;
    // By level: the least and the greatest.
    let mut levels: BTreeMap<Level, Option<(f64, f64)>> = BTreeMap::new();
    for (i, a) in cpus.iter().enumerate() {
        for b in &cpus[i + 1..] {
            let extent = levels.entry(a.common(b)).or_default();
            if let Some(ns) = of(a, b) {
                let (low, high) = extent.unwrap_or((ns, ns));
                *extent = Some((low.min(ns), high.max(ns)));
            }
        }
    }
    let low = levels.values().flatten().map(|e| e.0).fold(f64::INFINITY, f64::min);
    let high = levels.values().flatten().map(|e| e.1).fold(0.0, f64::max);
    let shade = |ns: Option<f64>| colours::shade(ns, low, high);
    let mut svg = Svg::default();
    svg.heading(title, &which);
    let name = |level: Level, extent: Option<(f64, f64)>| match extent {
        Some((low, high)) if low < high => format!("same {level}: {} to {}", Nanos(low), Nanos(high)),
        Some((ns, _)) => format!("same {level}: {}", Nanos(ns)),
        None => format!("same {level}: not known"),
    };
    for (row, a) in cpus.iter().enumerate() {
        let y = TOP + row as f64 * cell;
        let mut column = 0;
        // Neighbours of one distance and cost are one mark.
        while column < cpus.len() {
            if column == row {
                column += 1;
                continue;
            }
            let (level, ns) = (a.common(cpus[column]), of(a, cpus[column]));
            let mut end = column + 1;
            while end < cpus.len() && end != row && a.common(cpus[end]) == level && of(a, cpus[end]) == ns {
                end += 1;
            }
            let last = cpus[end - 1].os;
            let said = name(level, ns.map(|ns| (ns, ns)));
            svg.open(&format!("CPU {} with CPU {} to {last}, {said}", a.os, cpus[column].os));
            let width = (end - column) as f64 * cell;
            let x = LEFT + column as f64 * cell;
            svg.rect((x, y), (width - 0.6, cell - 0.6), shade(ns), 0.0);
            if let Some(text) = ns.map(|ns| Nanos(ns).to_string()) {
                if tree.is_empty() && cell >= 30.0 && room_of(&text, 10.0) < width - 6.0 {
                    let ink = if SHADES[5..].contains(&shade(ns)) { PAPER } else { INK_ON_PALE };
                    let middle = (x + width / 2.0, y + cell / 2.0 + 3.5);
                    svg.text(middle, 10.0, ink, Anchor::Middle, false, &text);
                }
            }
            svg.close();
            column = end;
        }
        let every = (12.0 / cell).ceil().max(1.0) as usize;
        if row.is_multiple_of(every) {
            let label = a.os.to_string();
            svg.text((LEFT - 6.0, y + cell / 2.0 + 3.0), 9.0, SOFT, Anchor::End, false, &label);
            let middle = LEFT + (row as f64 + 0.5) * cell;
            if room_of(&label, 9.0) < cell * every as f64 {
                svg.text((middle, TOP - 5.0), 9.0, SOFT, Anchor::Middle, false, &label);
            }
        }
    }
    let edge = Stroke { colour: PAPER, width: 1.0, dashed: false };
    for (i, &(from, to)) in tree.iter().enumerate() {
        let (Some(giver), Some(taker)) = (cpus.get(from), cpus.get(to)) else { continue };
        let at = (LEFT + (to as f64 + 0.5) * cell, TOP + (from as f64 + 0.5) * cell);
        svg.open(&format!("{}. CPU {} tells CPU {}", i + 1, giver.os, taker.os));
        let radius = (cell * 0.36).clamp(1.6, 13.0);
        svg.circle(at, radius, TRANSFER, edge);
        if radius >= 8.0 {
            let text = (i + 1).to_string();
            svg.text((at.0, at.1 + 3.5), 10.0, PAPER, Anchor::Middle, false, &text);
        }
        svg.close();
    }
    let legend = match tree.is_empty() {
        true => "CPUs in the order of ranks, both ways",
        false => "rows give and columns take; marks are the tree, in the order in which CPUs are told",
    };
    svg.text((LEFT, TOP + side + 14.0), 10.0, SOFT, Anchor::Start, false, legend);
    for (i, (&level, &extent)) in levels.iter().enumerate() {
        let y = TOP + side + 26.0 + i as f64 * 20.0;
        // Of several the middle of their logarithms.
        svg.rect((LEFT, y), (14.0, 12.0), shade(extent.map(|(low, high)| (low * high).sqrt())), 2.0);
        svg.text((LEFT + 22.0, y + 10.0), 12.0, INK, Anchor::Start, false, &name(level, extent));
    }
    let height = TOP + side + 36.0 + levels.len() as f64 * 20.0;
    svg.finish((LEFT + side + 24.0).max(Svg::heading_width(title, &which)).max(520.0), height, title)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topology(cores: usize) -> Topology {
        let cpu = |os: usize| Cpu { os, core: os / 2, l3: 0, numa: 0, package: os / cores, kind: 0 };
        Topology { cpus: (0..2 * cores).map(cpu).collect() }
    }

    #[test]
    fn distances_have_shades_of_their_own() {
        let svg = pairs(
            &topology(4),
            "t",
            "read",
            &|l| if l == Level::Core { 20.0 } else { 200.0 },
            &|_, _| None,
            &[],
        );
        assert!(svg.contains("same core: 20.0 ns") && svg.contains("l3: 200 ns"), "{svg}");
        assert!(svg.contains(SHADES[1]) && svg.contains(SHADES[6]) && !svg.contains("NaN"));
    }

    #[test]
    fn what_was_measured_for_two_cpus_is_drawn_for_them() {
        let measured = |a: usize, b: usize| {
            (a.min(b) == 0 && a.max(b) < 3).then_some(if a + b == 1 { 30.0 } else { 50.0 })
        };
        let svg = pairs(&topology(2), "t", "read", &|_| 100.0, &measured, &[]);
        assert!(svg.contains("<title>CPU 0 with CPU 1 to 1, same core: 30.0 ns</title>"), "{svg}");
        assert!(svg.contains("<title>CPU 0 with CPU 2 to 2, same l3: 50.0 ns</title>"), "{svg}");
        assert!(
            svg.contains("<title>CPU 0 with CPU 3 to 3, same l3: 100 ns</title>"),
            "one distance, another cost: {svg}"
        );
        assert!(svg.contains("l3: 50.0 ns to 100 ns"), "{svg}");
    }

    #[test]
    fn the_tree_is_marked_at_giver_and_taker() {
        let svg = pairs(&topology(4), "t", "read", &|_| 20.0, &|_, _| None, &[(0, 3), (3, 7), (0, 99)]);
        assert_eq!(svg.matches("<circle").count(), 2, "not for a CPU that is not there");
        assert!(svg.contains("<title>2. CPU 3 tells CPU 7</title>"), "{svg}");
    }

    #[test]
    fn the_caches_of_512_cpus_are_drawn_in_few_bytes() {
        let cpu =
            |os: usize| Cpu { os, core: os / 2, l3: os / 16, numa: os / 256, package: os / 256, kind: 0 };
        let large = Topology { cpus: (0..512).map(cpu).collect() };
        let measured =
            |a: usize, b: usize| Some(if a / 2 == b / 2 { 10.0 } else { 100.0 + ((a * b) % 7) as f64 });
        let tree: Vec<(usize, usize)> = (1..512).map(|i| (i / 2, i)).collect();
        let svg = pairs(&large, "t", "read", &|_| 1.0, &measured, &tree);
        assert!(svg.contains("512 CPUs") && !svg.contains("NaN"), "{svg}");
        assert!(svg.contains("<title>L3 31, L3 0: 100 ns to 106 ns</title>"), "{svg}");
        assert!(svg.contains("<title>CPU 15, CPU 14: 10.0 ns</title>"), "the leaf that is open: {svg}");
        assert!(svg.len() < 150_000, "{} bytes", svg.len());
    }

    #[test]
    fn machines_without_caches_and_unknown_costs_are_drawn_too() {
        let svg = pairs(&topology(1500), "t", "read", &|_| f64::NAN, &|_, _| None, &[]);
        assert!(svg.contains("3000 CPUs") && svg.contains("not known") && !svg.contains("NaN"));
        assert!(pairs(&Topology::default(), "t", "read", &|_| 1.0, &|_, _| None, &[]).ends_with("</svg>\n"));
    }
}

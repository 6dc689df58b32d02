//! What it costs to deal with one another, for every pair of CPUs.

use super::heat::SHADES;
use super::svg::{width_of, Anchor, Stroke, Svg};
use super::{INK, SOFT, TRANSFER};
use crate::topology::{Cpu, Level, Topology};
use crate::units::Nanos;

const TOP: f64 = 62.0;
const LEFT: f64 = 60.0;
/// CPUs beyond which only one a core, and then only some of them, are drawn.
const MOST: usize = 128;

/// Draws `cost` in ns for each two CPUs of `topology`; shades by logarithm. Costs that are not positive and finite
/// are left white. Of more than 128 CPUs one a core is drawn, and of more cores an even choice; the picture says so.
/// `tree` has pairs of indices into [`Topology::cpus`], giver first, in the order in which they are told: each is a mark in
/// the row of the giver and the column of the taker, where both are drawn.
pub fn pairs(
    topology: &Topology,
    title: &str,
    cost: &dyn Fn(Level) -> f64,
    tree: &[(usize, usize)],
) -> String {
    let (cpus, which) = shown(topology);
    let cell = (640.0 / cpus.len().max(1) as f64).clamp(4.0, 64.0);
    let side = cpus.len() as f64 * cell;
    let sound = |ns: f64| (ns > 0.0 && ns.is_finite()).then_some(ns);
    let mut levels: Vec<Level> = Vec::new();
    for (i, a) in cpus.iter().enumerate() {
        for level in cpus[i + 1..].iter().map(|b| a.common(b)) {
            if !levels.contains(&level) {
                levels.push(level);
            }
        }
    }
    levels.sort_unstable();
    let known: Vec<f64> = levels.iter().filter_map(|&l| sound(cost(l))).collect();
    let low = known.iter().copied().fold(f64::INFINITY, f64::min);
    let high = known.iter().copied().fold(0.0, f64::max);
    let shade = |level: Level| match sound(cost(level)) {
        None => SHADES[0],
        // Of one distance there is nothing to compare.
        Some(_) if high <= low => SHADES[3],
        Some(ns) => {
            let share = (ns / low).ln() / (high / low).ln();
            SHADES[1 + (share * (SHADES.len() - 3) as f64).round() as usize]
        }
    };
    let mut svg = Svg::default();
    svg.heading(title, &which);
    let name = |level: Level| match sound(cost(level)) {
        Some(ns) => format!("{level}: {}", Nanos(ns)),
        None => format!("{level}: not known"),
    };
    for (row, a) in cpus.iter().enumerate() {
        let y = TOP + row as f64 * cell;
        let mut column = 0;
        // Neighbours of one distance are one mark.
        while column < cpus.len() {
            if column == row {
                column += 1;
                continue;
            }
            let level = a.common(cpus[column]);
            let mut end = column + 1;
            while end < cpus.len() && end != row && a.common(cpus[end]) == level {
                end += 1;
            }
            let last = cpus[end - 1].os;
            svg.open(&format!("CPU {} with CPU {} to {last}, {}", a.os, cpus[column].os, name(level)));
            let width = (end - column) as f64 * cell;
            let x = LEFT + column as f64 * cell;
            svg.rect((x, y), (width - 0.6, cell - 0.6), shade(level), 0.0);
            if let Some(text) = sound(cost(level)).map(|ns| Nanos(ns).to_string()) {
                if tree.is_empty() && cell >= 30.0 && width_of(&text, 10.0) < width - 6.0 {
                    let ink = if SHADES[5..].contains(&shade(level)) { SHADES[0] } else { INK };
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
        }
    }
    let place = |cpu: usize| {
        let os = topology.cpus.get(cpu)?.os;
        cpus.iter().position(|c| c.os == os)
    };
    let edge = Stroke { colour: SHADES[0], width: 1.0, dashed: false };
    for (i, &(from, to)) in tree.iter().enumerate() {
        let (Some(row), Some(column)) = (place(from), place(to)) else { continue };
        let at = (LEFT + (column as f64 + 0.5) * cell, TOP + (row as f64 + 0.5) * cell);
        svg.open(&format!("{}. CPU {} tells CPU {}", i + 1, cpus[row].os, cpus[column].os));
        let radius = (cell * 0.36).clamp(2.0, 13.0);
        svg.circle(at, radius, TRANSFER, edge);
        if radius >= 8.0 {
            let text = (i + 1).to_string();
            svg.text((at.0, at.1 + 3.5), 10.0, SHADES[0], Anchor::Middle, false, &text);
        }
        svg.close();
    }
    let legend = match tree.is_empty() {
        true => "CPUs in the order of ranks, both ways",
        false => "rows give and columns take; marks are the tree, in the order in which CPUs are told",
    };
    svg.text((LEFT, TOP + side + 14.0), 10.0, SOFT, Anchor::Start, false, legend);
    for (i, &level) in levels.iter().enumerate() {
        let y = TOP + side + 26.0 + i as f64 * 20.0;
        svg.rect((LEFT, y), (14.0, 12.0), shade(level), 2.0);
        svg.text((LEFT + 22.0, y + 10.0), 12.0, INK, Anchor::Start, false, &name(level));
    }
    let height = TOP + side + 36.0 + levels.len() as f64 * 20.0;
    svg.finish((LEFT + side + 24.0).max(Svg::heading_width(title, &which)).max(520.0), height, title)
}

/// The CPUs that are drawn, and a sentence about them.
fn shown(topology: &Topology) -> (Vec<&Cpu>, String) {
    let n = topology.cpus.len();
    let mut cpus: Vec<&Cpu> = topology.cpus.iter().collect();
    if n <= MOST {
        return (cpus, format!("all {n} CPUs"));
    }
    let mut seen = std::collections::BTreeSet::new();
    cpus.retain(|c| seen.insert(c.core));
    let cores = cpus.len();
    let every = cores.div_ceil(MOST);
    let cpus: Vec<&Cpu> = cpus.into_iter().step_by(every).collect();
    let which = match every {
        1 => format!("one CPU of each of {cores} cores; {n} CPUs in all"),
        _ => format!("one core of every {every}, one CPU each; {n} CPUs in all"),
    };
    (cpus, which)
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
        let svg = pairs(&topology(4), "t", &|l| if l == Level::Core { 20.0 } else { 200.0 }, &[]);
        assert!(svg.contains("core: 20.0 ns") && svg.contains("l3: 200 ns"), "{svg}");
        assert!(svg.contains(SHADES[1]) && svg.contains(SHADES[6]) && !svg.contains("NaN"));
    }

    #[test]
    fn the_tree_is_marked_at_giver_and_taker() {
        let svg = pairs(&topology(4), "t", &|_| 20.0, &[(0, 3), (3, 7), (0, 99)]);
        assert_eq!(svg.matches("<circle").count(), 2, "not for a CPU that is not there");
        assert!(svg.contains("<title>2. CPU 3 tells CPU 7</title>"), "{svg}");
    }

    #[test]
    fn large_machines_and_unknown_costs_are_drawn_too() {
        let svg = pairs(&topology(300), "t", &|_| f64::NAN, &[]);
        assert!(svg.contains("one core of every 3") && svg.contains("not known") && !svg.contains("NaN"));
        assert!(pairs(&Topology::default(), "t", &|_| 1.0, &[]).ends_with("</svg>\n"));
    }
}

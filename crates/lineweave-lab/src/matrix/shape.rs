//! Topology of a machine, as a matrix tells it: the CPUs that share a core, a cache, a node or a package.
//!
//! The classes of [`classes`], by pairs that are [`believed`], are nested groups. They get the names of levels, with no more levels than classes:
//!
//! 1. A class within [`ALIKE`] of the next farther one is a part of that.
//! 2. The nearest class is cores, if its pairs take less than [`SAME_CORE_NS`]. A thread that noise parted from its sibling
//!    is found by the distance of the numbers of most siblings.
//! 3. Where one half of the CPUs is together and the other half is not, and crossing costs [`HOME`] times as much, the other half
//!    is too: its lines were measured away from their home.
//! 4. A class that groups no more than half of the CPUs otherwise than the nearer ones is a feature of a few, and no level.
//! 5. Of what is left, two groups that are the machine's halves are packages; other groups are caches, then nodes, then
//!    packages. The whole is whatever is next.

use super::neighbours::believed;
use crate::models::classes::{classes, Classes, Latencies, LatenciesError};
use lineweave_core::machine::{self, Matrix};
use lineweave_core::topology::{Cpu, Level, Topology};
use std::collections::BTreeMap;

/// Threads of a core exchange a line in its first cache: 7.4 to 12.8 ns on all machines here, 16.7 by the coarse clock of a
/// POWER9. The nearest cores of any machine take 19.2.
pub const SAME_CORE_NS: f64 = 17.5;

/// Classes of which the farther costs less than so many times the nearer are one: cores of an EPYC 9454's cache have 26.1 and 28.5.
const ALIKE: f64 = 1.15;
/// Packages whose lines have their home in the other one make it 1.6 to 2 times as far on dual EPYCs; halves of one package 1.2.
const HOME: f64 = 1.4;

/// A machine's CPUs, as the matrix has them.
#[derive(Clone, PartialEq, Debug)]
pub struct Shaped {
    /// Topology of the CPUs, neighbours first.
    pub topology: Topology,
    /// Classes of CPU pairs that were found.
    pub classes: Classes,
    /// Assumptions that were made.
    pub remarks: Vec<String>,
}

/// The topology of a matrix, from nothing else.
///
/// # Errors
/// [`LatenciesError`] for latencies that no measurement gives.
pub fn shape(matrix: &Matrix) -> Result<Shaped, LatenciesError> {
    let (list, wrong) = believed(matrix);
    let list: Vec<_> = list.into_iter().map(|(a, b, ns)| (a, b, ns, 0.0)).collect();
    let classes = classes(&Latencies::new(&list)?);
    let mut remarks = Vec::new();
    if let Some((a, b)) = wrong.first() {
        remarks.push(format!(
            "{} pairs would be neighbours, and their other neighbours are far apart, such as CPUs {a} and {b}: their latencies group nothing",
            wrong.len()
        ));
    }
    if !classes.odd.is_empty() {
        let share = 100.0 * classes.odd.len() as f64 / list.len() as f64;
        let (a, b) = classes.odd[0];
        let so = match classes.hierarchical {
            true => "costs are medians, which they do not move",
            false => "the machine is no hierarchy, and its levels are a rough picture",
        };
        remarks.push(format!(
            "{} pairs ({share:.1} %) are far from the others of their distance, such as CPUs {a} and {b}: {so}",
            classes.odd.len()
        ));
    }
    let index = |os: usize| matrix.cpus().partition_point(|&c| c < os);
    let n = matrix.cpus().len();
    let mut cuts: Vec<Vec<usize>> = Vec::new();
    let mut cores = None;
    for pair in classes.classes.windows(2) {
        let (class, farther) = (&pair[0], pair[1].latency.value / pair[0].latency.value);
        if farther < ALIKE {
            continue;
        }
        let mut cut = vec![0; n];
        for (name, group) in class.groups.iter().enumerate() {
            group.iter().for_each(|&os| cut[index(os)] = name);
        }
        if cores.is_none() && cuts.is_empty() && class.latency.value < SAME_CORE_NS {
            cores = Some(siblings(cut));
            continue;
        }
        let joined = if farther >= HOME { join_other_half(&mut cut) } else { None };
        if let Some(other) = joined {
            remarks.push(format!(
                "CPU {} and those like it are as far from each other as from the rest: taken for another package, measured on lines that are not its own",
                matrix.cpus()[other]
            ));
        }
        if regrouped(cuts.last().or(cores.as_ref()), &cut) {
            cuts.push(cut);
        }
    }
    let topology = build(matrix.cpus(), cores, cuts);
    Ok(Shaped { topology, classes, remarks })
}

/// Returns the topology `known` with the CPU numbers of `shaped`, which the matrix gives.
pub fn placed(shaped: &Topology, known: &Topology) -> Topology {
    let cpus = known.cpus.iter().zip(&shaped.cpus).map(|(place, cpu)| Cpu { os: cpu.os, ..place.clone() });
    Topology { cpus: cpus.collect() }
}

/// hwloc's synthetic form of a topology, if all its groups are alike.
pub fn synthetic(topology: &Topology) -> Option<String> {
    let count = |id: fn(&Cpu) -> usize| {
        let mut ids: Vec<usize> = topology.cpus.iter().map(id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids.len()
    };
    let counts =
        [count(|c| c.package), count(|c| c.numa), count(|c| c.l3), count(|c| c.core), topology.cpus.len()];
    let mut above = 1;
    let mut text = Vec::new();
    for (name, count) in ["pack", "numa", "l3", "core", "pu"].into_iter().zip(counts) {
        text.push(format!("{name}:{}", count.checked_div(above)?));
        above = count;
    }
    let text = text.join(" ");
    let same = machine::topology(&text).ok()?;
    let alike = |(a, b): (&Cpu, &Cpu)| Level::ALL.iter().all(|&level| a.id(level) == b.id(level));
    (same.cpus.len() == topology.cpus.len() && same.cpus.iter().zip(&topology.cpus).all(alike))
        .then_some(text)
}

fn groups(cut: &[usize]) -> usize {
    let mut names = cut.to_vec();
    names.sort_unstable();
    names.dedup();
    names.len()
}

/// Returns whether more than half of the CPUs are in a larger group than before.
fn regrouped(before: Option<&Vec<usize>>, after: &[usize]) -> bool {
    let size = |cut: &[usize], i: usize| cut.iter().filter(|&&name| name == cut[i]).count();
    let larger = |&i: &usize| size(after, i) > before.map_or(1, |before| size(before, i));
    2 * (0..after.len()).filter(larger).count() > after.len()
}

/// Cores, with threads together that have the numbers of siblings and are in no pair.
fn siblings(mut cut: Vec<usize>) -> Vec<usize> {
    let n = cut.len();
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    (0..n).for_each(|i| members.entry(cut[i]).or_default().push(i));
    let mut apart: BTreeMap<usize, usize> = BTreeMap::new();
    for pair in members.values().filter(|m| m.len() == 2) {
        *apart.entry(pair[1] - pair[0]).or_default() += 1;
    }
    let Some((&apart, _)) = apart.iter().max_by_key(|(_, &count)| count).filter(|(_, &count)| 4 * count > n)
    else {
        return cut;
    };
    let mut alone: Vec<bool> = (0..n).map(|i| members[&cut[i]].len() != 2).collect();
    for i in 0..n.saturating_sub(apart) {
        if alone[i] && alone[i + apart] {
            // Names beyond those of the groups.
            (cut[i], cut[i + apart]) = (n + i, n + i);
            (alone[i], alone[i + apart]) = (false, false);
        }
    }
    cut
}

/// One group of half of the CPUs, and no other of more than a quarter: the rest is a group as well. The first of it.
fn join_other_half(cut: &mut [usize]) -> Option<usize> {
    let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
    cut.iter().for_each(|&name| *sizes.entry(name).or_default() += 1);
    let (&large, &size) = sizes.iter().max_by_key(|(_, &size)| size)?;
    let next = sizes.iter().filter(|(&name, _)| name != large).map(|(_, &size)| size).max()?;
    if 2 * size != cut.len() || 4 * next > cut.len() {
        return None;
    }
    let first = cut.iter().position(|&name| name != large)?;
    let other = cut[first];
    cut.iter_mut().filter(|name| **name != large).for_each(|name| *name = other);
    Some(first)
}

/// Names for nested groups, nearest first, the whole not among them.
fn build(cpus: &[usize], cores: Option<Vec<usize>>, mut cuts: Vec<Vec<usize>>) -> Topology {
    // Four levels above a core have names, the whole included.
    while cuts.len() > 3 {
        cuts.remove(1);
    }
    let whole = vec![0; cpus.len()];
    let halves = cuts.last().is_some_and(|cut| groups(cut) == 2);
    let [l3, numa, package] = match (&cuts[..], halves) {
        ([], _) => [&whole, &whole, &whole],
        ([a], true) => [a, a, a],
        ([a], false) => [a, &whole, &whole],
        ([a, b], true) => [a, b, b],
        ([a, b], false) => [a, b, &whole],
        ([a, b, c, ..], _) => [a, b, c],
    };
    let core = cores.unwrap_or_else(|| (0..cpus.len()).collect());
    let mut order: Vec<usize> = (0..cpus.len()).collect();
    // Groups in the order of their first CPUs; a nearer group that crosses a farther one is cut by it.
    let first = |cut: &[usize], i: usize| cut.iter().position(|&name| name == cut[i]).unwrap_or(i);
    let place = |i: usize| [first(package, i), first(numa, i), first(l3, i), first(&core, i), i];
    let places: Vec<[usize; 5]> = (0..cpus.len()).map(place).collect();
    order.sort_by_key(|&i| places[i]);
    let mut ids = [0usize; 4];
    let mut last: Option<[usize; 5]> = None;
    let mut out = Vec::with_capacity(cpus.len());
    for &i in &order {
        if let Some(last) = last {
            let from = (0..4).find(|&level| last[level] != places[i][level]).unwrap_or(4);
            ids[from..].iter_mut().for_each(|id| *id += 1);
        }
        last = Some(places[i]);
        let [package, numa, l3, core] = ids;
        out.push(Cpu { os: cpus[i], core, l3, numa, package, kind: 0 });
    }
    Topology { cpus: out }
}

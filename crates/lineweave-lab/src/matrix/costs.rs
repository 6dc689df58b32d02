//! Cost of a line at each distance of a topology, by a matrix.

use lineweave_core::machine::Matrix;
use lineweave_core::profile::Stats;
use lineweave_core::topology::{Cpu, Level, Topology};
use std::collections::BTreeMap;

/// Nodes or packages whose medians differ by more than this many times differ by more than noise: the lines that were
/// measured have their home in the nearer one. Dual EPYCs have 1.9 to 2.0, all others at most 1.14.
const HOME: f64 = 1.3;

/// The pairs at one distance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LevelCost {
    /// The nearest level that they share.
    pub level: Level,
    /// Median of those at a group's own home, with its interval.
    pub median: f64,
    /// Lower end of the 95 % interval of the median.
    pub ci_low: f64,
    /// Upper end of the 95 % interval of the median.
    pub ci_high: f64,
    /// Number of pairs.
    pub pairs: usize,
    /// Median in groups that have the same pairs farther, because their lines' home is elsewhere; `None` where there
    /// are no such groups.
    pub away: Option<f64>,
}

/// The package in which the lines lay that were timed, where pairs in other packages took longer, as these costs of the same matrix say.
pub fn home(costs: &[LevelCost], matrix: &Matrix, topology: &Topology) -> Option<usize> {
    costs.iter().find(|cost| cost.away.is_some())?;
    let cpus: BTreeMap<usize, &Cpu> = topology.cpus.iter().map(|cpu| (cpu.os, cpu)).collect();
    let mut packages: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (a, b, ns) in matrix.pairs() {
        if let (Some(a), Some(b)) = (cpus.get(&a), cpus.get(&b)) {
            if matches!(a.common(b), Level::Numa | Level::Package) {
                packages.entry(a.package).or_default().push(ns);
            }
        }
    }
    let medians = packages.iter().filter_map(|(&package, ns)| Some((package, Stats::of(ns, 0)?.median)));
    medians.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(package, _)| package)
}

/// The cost at each level that occurs, nearest first.
pub fn costs(matrix: &Matrix, topology: &Topology) -> Vec<LevelCost> {
    let cpus: BTreeMap<usize, &Cpu> = topology.cpus.iter().map(|cpu| (cpu.os, cpu)).collect();
    let mut groups: BTreeMap<(Level, usize), Vec<f64>> = BTreeMap::new();
    for (a, b, ns) in matrix.pairs() {
        if let (Some(a), Some(b)) = (cpus.get(&a), cpus.get(&b)) {
            let level = a.common(b);
            groups.entry((level, a.id(level))).or_default().push(ns);
        }
    }
    let at = |level: Level| {
        let all: Vec<&Vec<f64>> = groups.iter().filter(|((l, _), _)| *l == level).map(|(_, ns)| ns).collect();
        let middles: Vec<f64> = all.iter().filter_map(|ns| Some(Stats::of(ns, 0)?.median)).collect();
        let least = middles.iter().copied().fold(f64::INFINITY, f64::min);
        let most = middles.iter().copied().fold(0.0, f64::max);
        // Within a core or a cache a line does not leave it.
        let differ = level > Level::L3 && most > HOME * least;
        let near = |middle: f64| !differ || middle * middle < least * most;
        let chosen = |want: bool| -> Vec<f64> {
            let kept = all.iter().zip(&middles).filter(|(_, &middle)| near(middle) == want);
            kept.flat_map(|(ns, _)| ns.iter().copied()).collect()
        };
        let own = Stats::of(&chosen(true), 0)?;
        let (median, ci_low, ci_high) = (own.median, own.ci_low, own.ci_high);
        let away = Stats::of(&chosen(false), 0).map(|s| s.median);
        let pairs = all.iter().map(|ns| ns.len()).sum();
        Some(LevelCost { level, median, ci_low, ci_high, pairs, away })
    };
    Level::ALL.into_iter().filter_map(at).collect()
}

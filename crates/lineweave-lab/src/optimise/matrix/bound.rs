//! What no tree over a matrix of latencies can be faster than.

use super::Latencies;
use crate::models::bounds::{spread, Sends};
use crate::ordered::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Latencies at which ranks fall apart into clusters that are farther from each other than from their own.
#[derive(Clone, Debug)]
pub(super) struct Clusters {
    /// For each threshold, nearest first: the cluster of each rank.
    of: Vec<Vec<usize>>,
}

/// The most levels of clusters that are told apart.
const LEVELS: usize = 4;
/// Latencies that differ by less than this factor are of one level.
const STEP: f64 = 1.15;

impl Clusters {
    /// Thresholds are the widest steps among the links of a minimum spanning tree.
    pub(super) fn of(l: &Latencies) -> Clusters {
        let links = spanning(l);
        let mut steps: Vec<(f64, usize)> = links
            .windows(2)
            .enumerate()
            .map(|(i, w)| (w[1].0 / w[0].0, i + 1))
            .filter(|&(factor, _)| factor > STEP)
            .collect();
        steps.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut cuts: Vec<usize> = steps.into_iter().take(LEVELS).map(|(_, i)| i).collect();
        cuts.sort_unstable();
        Clusters { of: cuts.into_iter().map(|cut| joined(l.ranks(), &links[..cut])).collect() }
    }

    pub(super) fn levels(&self) -> usize {
        self.of.len()
    }

    pub(super) fn ranks(&self) -> usize {
        self.of.first().map_or(0, Vec::len)
    }

    /// One of the ranks of a rank's cluster at a level, 0 the nearest, which stands for it.
    pub(super) fn name(&self, level: usize, rank: usize) -> usize {
        self.of[level][rank]
    }

    /// Whether two ranks are in one cluster at a level.
    pub(super) fn same(&self, level: usize, a: usize, b: usize) -> bool {
        self.name(level, a) == self.name(level, b)
    }
}

/// The links of a minimum spanning tree (a link's latency is the lesser of both ways), shortest first.
fn spanning(l: &Latencies) -> Vec<(f64, usize, usize)> {
    let n = l.ranks();
    let between = |a: usize, b: usize| l.latency(a, b).min(l.latency(b, a));
    let mut nearest: Vec<(f64, usize)> =
        (0..n).map(|b| if b == 0 { (0.0, 0) } else { (between(0, b), 0) }).collect();
    let mut inside = vec![false; n];
    if n > 0 {
        inside[0] = true;
    }
    let mut links = Vec::with_capacity(n.saturating_sub(1));
    for _ in 1..n {
        let outside = (0..n).filter(|&r| !inside[r]);
        let Some(r) = outside.min_by(|&a, &b| nearest[a].0.total_cmp(&nearest[b].0).then(a.cmp(&b))) else {
            break;
        };
        inside[r] = true;
        links.push((nearest[r].0, nearest[r].1, r));
        for other in (0..n).filter(|&o| !inside[o]) {
            if between(r, other) < nearest[other].0 {
                nearest[other] = (between(r, other), r);
            }
        }
    }
    links.sort_by(|a, b| a.0.total_cmp(&b.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    links
}

/// The cluster of each rank when these links join them.
fn joined(ranks: usize, links: &[(f64, usize, usize)]) -> Vec<usize> {
    let mut of: Vec<usize> = (0..ranks).collect();
    fn root(of: &mut [usize], mut r: usize) -> usize {
        while of[r] != r {
            of[r] = of[of[r]];
            r = of[r];
        }
        r
    }
    for &(_, a, b) in links {
        let (a, b) = (root(&mut of, a), root(&mut of, b));
        of[a.max(b)] = a.min(b);
    }
    (0..ranks).map(|r| root(&mut of, r)).collect()
}

/// The larger of what holds for every tree from `root`:
///
/// - the shortest way to the rank that is farthest, link by link;
/// - how fast word can spread level by level ([`spread`]): within the largest cluster of a level as the level below
///   allows, and among clusters by the least latency and gap between any two;
/// - where several are under way at once, how fast every cluster of a level can hear when each has a least latency of its own
///   (`into_each`).
pub fn bound(l: &Latencies, root: usize) -> f64 {
    let n = l.ranks();
    if n < 2 {
        return 0.0;
    }
    let clusters = Clusters::of(l);
    let mut inner: Vec<usize> = (0..n).collect();
    let (mut told, mut each) = (vec![0.0], 0.0f64);
    let everybody = vec![0; n];
    for outer in clusters.of.iter().chain([&everybody]) {
        let (mut latency, mut gap) = (f64::INFINITY, f64::INFINITY);
        for i in 0..n {
            for j in (0..n).filter(|&j| inner[i] != inner[j]) {
                (latency, gap) = (latency.min(l.latency(i, j)), gap.min(l.gap(i, j)));
            }
        }
        let mut size = vec![0usize; n];
        outer.iter().for_each(|&c| size[c] += 1);
        let most = size.into_iter().max().unwrap_or(1);
        // Every cluster below must hear, where all of them are in this one.
        let mut heads = inner.clone();
        heads.sort_unstable();
        heads.dedup();
        let places = if most == n { heads.len() } else { 1 };
        let sends = Sends { issue: l.issue, gap, at_once: l.at_once };
        // Plans overlap two stores where a model's closed form lets one follow the other: they would be below this closer bound.
        if l.at_once > 1 {
            each = each.max(into_each(l, root, &inner, &told, sends));
        }
        told = spread(&told, latency, sends, most, places);
        inner.clone_from(outer);
    }
    shortest(l, root).max(each).max(told.last().copied().unwrap_or(0.0))
}

/// When the last of the clusters `of` ranks hears at the earliest, where the members of one that hears know by themselves, at
/// `told` after that.
///
/// The k-th message that is the first into a cluster starts no sooner than the k-th start that is possible at all. The
/// first k clusters to hear are k different ones, so at best the latest start has the least latency, and so on: the k-th
/// hears no sooner than that.
fn into_each(l: &Latencies, root: usize, of: &[usize], told: &[f64], sends: Sends) -> f64 {
    let n = l.ranks();
    let mut least = vec![f64::INFINITY; n];
    for (from, to) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
        if of[from] != of[to] && of[to] != of[root] {
            least[of[to]] = least[of[to]].min(l.latency(from, to));
        }
    }
    least.retain(|ns| ns.is_finite());
    least.sort_by(f64::total_cmp);
    // What can start next: when, and which message it is of whom that knows since when.
    let mut next: BinaryHeap<Reverse<(Time, usize, Time)>> = BinaryHeap::new();
    let knows = |next: &mut BinaryHeap<_>, at: f64| {
        next.extend(told.iter().map(|&d| Reverse((Time(at + d), 0, Time(at + d)))));
    };
    knows(&mut next, 0.0);
    let (mut starts, mut last) = (Vec::with_capacity(least.len()), 0.0);
    for k in 0..least.len() {
        let Some(Reverse((Time(at), sent, Time(since)))) = next.pop() else { break };
        next.push(Reverse((Time(since + sends.leaves(sent + 1)), sent + 1, Time(since))));
        starts.push(at);
        last = starts.iter().zip(least[..=k].iter().rev()).map(|(s, ns)| s + ns).fold(0.0, f64::max);
        knows(&mut next, last);
    }
    last
}

/// The longest of the shortest ways from `root` (Dijkstra without a heap: the matrix is full).
fn shortest(l: &Latencies, root: usize) -> f64 {
    let n = l.ranks();
    let mut way = vec![f64::INFINITY; n];
    let mut done = vec![false; n];
    way[root] = 0.0;
    for _ in 0..n {
        let open = (0..n).filter(|&r| !done[r]);
        let Some(r) = open.min_by(|&a, &b| way[a].total_cmp(&way[b])) else { break };
        done[r] = true;
        for other in 0..n {
            if other != r {
                way[other] = way[other].min(way[r] + l.latency(r, other));
            }
        }
    }
    way.into_iter().fold(0.0, f64::max)
}

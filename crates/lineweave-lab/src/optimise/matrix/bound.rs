//! Lower bound of the time of any tree over a matrix of latencies.

use super::Latencies;
use crate::models::bounds::spread;
use crate::ordered::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Latencies at which ranks fall apart into clusters that are farther from each other than from their own.
#[derive(Clone, Debug)]
pub(super) struct Clusters {
    /// Cluster of each rank, for each threshold, nearest first.
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

    /// Returns whether two ranks are in one cluster at a level.
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
///   allows, and among clusters as a rank's messages can arrive, its n-th at its n-th nearest;
/// - where several are under way at once, how fast every cluster of a level can hear when each has a least latency of its own.
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
        let mut size = vec![0usize; n];
        outer.iter().for_each(|&c| size[c] += 1);
        let most = size.into_iter().max().unwrap_or(1);
        // Every cluster below must hear, where all of them are in this one.
        let mut heads = inner.clone();
        heads.sort_unstable();
        heads.dedup();
        let places = if most == n { heads.len() } else { 1 };
        let ranks: Vec<usize> = (0..n).collect();
        let any = reach(l, &inner, outer, &ranks);
        // Plans overlap two stores where a model's closed form lets one follow the other: they would be below this closer bound.
        if l.at_once > 1 {
            each = each.max(into_each(l, root, &inner, &told));
        }
        // Whoever knows first is the root where all are in one cluster.
        let first = if most == n { Near::of(l, &inner, outer, &ranks, root).reach(l) } else { any.clone() };
        told = spread(&told, [&first, &any], most, places);
        inner.clone_from(outer);
    }
    shortest(l, root).max(each).max(told.last().copied().unwrap_or(0.0))
}

/// Nearest ones that are told apart; others are as far as the last.
const NEAREST: usize = 32;

/// Returns the [reach](Near::reach) of any rank, between clusters `inner` of one cluster `outer`; messages to the same of `targets` count once.
fn reach(l: &Latencies, inner: &[usize], outer: &[usize], targets: &[usize]) -> Vec<f64> {
    let mut least = Near::default();
    for from in 0..l.ranks() {
        least.or_nearer(&Near::of(l, inner, outer, targets, from));
    }
    least.reach(l)
}

/// The nearest targets: how many there are, the least latencies, and the least gap.
#[derive(Clone, Debug, Default)]
struct Near {
    all: usize,
    latencies: Vec<f64>,
    gap: Option<f64>,
}

impl Near {
    fn of(l: &Latencies, inner: &[usize], outer: &[usize], targets: &[usize], from: usize) -> Near {
        let mut least = vec![f64::INFINITY; l.ranks()];
        let mut gap = f64::INFINITY;
        for to in (0..l.ranks()).filter(|&to| inner[to] != inner[from] && outer[to] == outer[from]) {
            least[targets[to]] = least[targets[to]].min(l.latency(from, to));
            gap = gap.min(l.gap(from, to));
        }
        least.retain(|ns| ns.is_finite());
        let all = least.len();
        // Where one message follows the other, plans overlap two: all are as near as the nearest.
        let kept = if l.at_once > 1 { NEAREST } else { 1 };
        if all > kept {
            least.select_nth_unstable_by(kept - 1, f64::total_cmp);
            least.truncate(kept);
        }
        least.sort_unstable_by(f64::total_cmp);
        Near { all, latencies: least, gap: gap.is_finite().then_some(gap) }
    }

    /// Merges `other` into these targets, the more favourable of each two numbers, so that they hold for either rank.
    fn or_nearer(&mut self, other: &Near) {
        for (mine, theirs) in self.latencies.iter_mut().zip(&other.latencies) {
            *mine = mine.min(*theirs);
        }
        let known = self.latencies.len().min(other.latencies.len());
        self.latencies.extend(&other.latencies[known..]);
        self.all = self.all.max(other.all);
        self.gap = [self.gap, other.gap].into_iter().flatten().min_by(f64::total_cmp);
    }

    /// Returns the earliest times at which a rank's messages to other clusters arrive, the first, second and so on, after it knows.
    ///
    /// Of the first n that arrive, at most a have left before the (a + 1)-th can leave, and at most b go to the b that are nearest.
    /// So one of more than a + b leaves no sooner than that and goes farther: the n-th arrives no sooner than the larger of
    /// both times together, for all a + b = n - 1.
    fn reach(&self, l: &Latencies) -> Vec<f64> {
        let Some(gap) = self.gap else { return Vec::new() };
        let last = self.latencies.len() - 1;
        let arrives = |n: usize| {
            let both = (0..=n.min(last)).map(|b| l.leaves(n - b, gap) + self.latencies[b]);
            both.fold(0.0, f64::max)
        };
        (0..self.all).map(arrives).collect()
    }
}

/// Returns the earliest time at which the last of the clusters `of` ranks hears, where the members of one that hears know by
/// themselves, at `told` after that. It is the later of two, for the k-th cluster that hears:
///
/// - The k-th message that is the first into a cluster starts no sooner than the k-th start that is possible at all. The
///   first k clusters to hear are k different ones, so at best the latest start has the least latency, and so on.
/// - It arrives no sooner than the k-th arrival that is possible at all, as far as a rank [reaches](Near::reach) other clusters.
fn into_each(l: &Latencies, root: usize, of: &[usize], told: &[f64]) -> f64 {
    let n = l.ranks();
    let (mut least, mut gap) = (vec![f64::INFINITY; n], f64::INFINITY);
    for (from, to) in (0..n).flat_map(|i| (0..n).map(move |j| (i, j))) {
        if of[from] != of[to] {
            gap = gap.min(l.gap(from, to));
            if of[to] != of[root] {
                least[of[to]] = least[of[to]].min(l.latency(from, to));
            }
        }
    }
    least.retain(|ns| ns.is_finite());
    least.sort_by(f64::total_cmp);
    let everybody = vec![0; n];
    let reach = [Near::of(l, of, &everybody, of, root).reach(l), reach(l, of, &everybody, of)];
    // What can start next, and what can arrive next: when, which message it is of whom that knows since when, and whether that is not
    // the root.
    let mut starts_next: BinaryHeap<Reverse<(Time, usize, Time)>> = BinaryHeap::new();
    let mut arrives_next: BinaryHeap<Reverse<(Time, usize, Time, bool)>> = BinaryHeap::new();
    let arrival = |n: usize, since: f64, other: bool| {
        Some(Reverse((Time(since + reach[usize::from(other)].get(n)?), n, Time(since), other)))
    };
    let (mut starts, mut last, mut first) = (Vec::with_capacity(least.len()), 0.0f64, true);
    for k in 0..=least.len() {
        for since in told.iter().map(|d| last + d) {
            starts_next.push(Reverse((Time(since), 0, Time(since))));
            arrives_next.extend(arrival(0, since, !std::mem::take(&mut first)));
        }
        if k == least.len() {
            break;
        }
        let Some(Reverse((Time(at), sent, Time(since)))) = starts_next.pop() else { break };
        starts_next.push(Reverse((Time(since + l.leaves(sent + 1, gap)), sent + 1, Time(since))));
        starts.push(at);
        last = starts.iter().zip(least[..=k].iter().rev()).map(|(s, ns)| s + ns).fold(last, f64::max);
        let Some(Reverse((Time(at), sent, Time(since), other))) = arrives_next.pop() else { break };
        arrives_next.extend(arrival(sent + 1, since, other));
        last = last.max(at);
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

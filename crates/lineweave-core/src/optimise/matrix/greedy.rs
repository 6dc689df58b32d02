//! Trees made rank by rank, or cluster by cluster.

use super::super::bounds::Time;
use super::bound::Clusters;
use super::{Latencies, Schedule};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Several trees, none of them the best on every matrix.
pub(super) fn trees(l: &Latencies, root: usize) -> Vec<Schedule> {
    let all: Vec<usize> = (0..l.ranks()).collect();
    let none = vec![0.0; l.ranks()];
    // How long it takes a rank to reach its nearest and its mean peer, as a look ahead.
    let ahead: Vec<f64> = all
        .iter()
        .map(|&i| all.iter().filter(|&&j| j != i).map(|&j| l.latency(i, j)).fold(f64::INFINITY, f64::min))
        .map(|nearest| if nearest.is_finite() { nearest } else { 0.0 })
        .collect();
    let mut out = vec![Schedule::alone(l.ranks(), root); 2];
    earliest(l, root, &all, &none, &mut out[0]);
    earliest(l, root, &all, &ahead, &mut out[1]);
    let clusters = Clusters::of(l);
    for told in 1..1usize << clusters.levels() {
        let mut schedule = Schedule::alone(l.ranks(), root);
        let levels: Vec<usize> = (0..clusters.levels()).filter(|i| told & 1 << i != 0).collect();
        by_cluster(l, &clusters, &levels, root, &all, &mut schedule);
        out.push(schedule);
    }
    out
}

/// Always the message that arrives (and can be passed on, by `ahead`) first, among `members`.
fn earliest(l: &Latencies, root: usize, members: &[usize], ahead: &[f64], out: &mut Schedule) {
    // Whom each member would tell, nearest first.
    let nearest = |from: usize| {
        let mut order: Vec<usize> = members.iter().copied().filter(|&m| m != from).collect();
        let key = |to: usize| l.latency(from, to) + ahead[to];
        order.sort_by(|&a, &b| key(a).total_cmp(&key(b)).then(a.cmp(&b)));
        order
    };
    let mut told = vec![false; l.ranks()];
    // For each that knows: when it can send next, and its order with how far it got.
    let mut free = vec![0.0; l.ranks()];
    let mut orders: Vec<(Vec<usize>, usize)> = vec![(Vec::new(), 0); l.ranks()];
    let mut next = BinaryHeap::new();
    told[root] = true;
    orders[root] = (nearest(root), 0);
    if let Some(&first) = orders[root].0.first() {
        next.push(Reverse((Time(l.latency(root, first) + ahead[first]), root)));
    }
    let mut missing = members.len().saturating_sub(1);
    while missing > 0 {
        let Some(Reverse((_, from))) = next.pop() else { return };
        let (order, at) = &mut orders[from];
        let stale = told[order[*at]];
        if !stale {
            let to = order[*at];
            let arrives = free[from] + l.latency(from, to);
            told[to] = true;
            missing -= 1;
            out.children[from].push(to);
            free[from] += l.gap(from, to);
            free[to] = arrives;
            orders[to] = (nearest(to), 0);
            push(&mut next, l, &told, &mut orders[to], free[to], ahead, to);
        }
        push(&mut next, l, &told, &mut orders[from], free[from], ahead, from);
    }
}

/// Queues the next message of `from`, if there is anybody left to tell.
fn push(
    next: &mut BinaryHeap<Reverse<(Time, usize)>>,
    l: &Latencies,
    told: &[bool],
    (order, at): &mut (Vec<usize>, usize),
    free: f64,
    ahead: &[f64],
    from: usize,
) {
    while order.get(*at).is_some_and(|&to| told[to]) {
        *at += 1;
    }
    if let Some(&to) = order.get(*at) {
        next.push(Reverse((Time(free + l.latency(from, to) + ahead[to]), from)));
    }
}

/// First a tree among one member of each cluster, of the farthest level in `levels`, then within each.
fn by_cluster(
    l: &Latencies,
    clusters: &Clusters,
    levels: &[usize],
    leader: usize,
    members: &[usize],
    out: &mut Schedule,
) {
    let none = vec![0.0; l.ranks()];
    let Some((&level, nearer)) = levels.split_last() else {
        earliest(l, leader, members, &none, out);
        return;
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for &m in members {
        match groups.iter_mut().find(|g| clusters.same(level, g[0], m)) {
            Some(group) => group.push(m),
            None => groups.push(vec![m]),
        }
    }
    let lead = |group: &Vec<usize>| match group.contains(&leader) {
        true => leader,
        // Whoever the leader reaches first.
        false => group.iter().copied().fold(group[0], |best, m| {
            if l.latency(leader, m) < l.latency(leader, best) {
                m
            } else {
                best
            }
        }),
    };
    let leaders: Vec<usize> = groups.iter().map(lead).collect();
    earliest(l, leader, &leaders, &none, out);
    for (group, &leader) in groups.iter().zip(&leaders) {
        by_cluster(l, clusters, nearer, leader, group, out);
    }
}

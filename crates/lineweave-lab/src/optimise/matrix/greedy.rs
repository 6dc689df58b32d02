//! Trees made rank by rank, or cluster by cluster.

use super::bound::Clusters;
use super::schedule::Sender;
use super::{Latencies, Schedule};
use crate::ordered::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Several trees, none of them the best on every matrix.
pub(super) fn trees(l: &Latencies, root: usize) -> Vec<Schedule> {
    let all: Vec<usize> = (0..l.ranks()).collect();
    let near = Near::of(l, vec![0.0; l.ranks()]);
    // How long it takes a rank to reach its nearest peer, as a look ahead.
    let nearest = |i: usize| near.order[i].first().map_or(0.0, |&j| l.latency(i, j));
    let ahead = Near::of(l, all.iter().map(|&i| nearest(i)).collect());
    let clusters = Clusters::of(l);
    let alone = || Schedule::alone(l.ranks(), root);
    let mut out = vec![alone()];
    earliest(l, root, &all, &ahead, &mut Heard::nowhere(&clusters), &mut out[0]);
    for told in 0..1usize << clusters.levels() {
        let levels: Vec<usize> = (0..clusters.levels()).filter(|i| told & 1 << i != 0).collect();
        let (mut helped, mut apart) = (alone(), alone());
        // What this gains in a model's closed form, a plan that overlaps two stores does not.
        if l.at_once > 1 || levels.is_empty() {
            earliest(l, root, &all, &near, &mut Heard::at(&clusters, &levels), &mut helped);
            out.push(helped);
        }
        if !levels.is_empty() {
            by_cluster(l, &clusters, &levels, root, &all, &near, &mut apart);
            out.push(apart);
        }
    }
    out
}

/// Ranks that each rank would tell, nearest first.
struct Near {
    order: Vec<Vec<usize>>,
    /// Look-ahead of each rank, in ns: time added to that at which it is told, such as its latency to the nearest peer.
    ahead: Vec<f64>,
}

impl Near {
    fn of(l: &Latencies, ahead: Vec<f64>) -> Near {
        let order = |from: usize| {
            let others = (0..l.ranks()).filter(|&to| to != from);
            let mut order: Vec<(f64, usize)> =
                others.map(|to| (l.latency(from, to) + ahead[to], to)).collect();
            order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            order.into_iter().map(|(_, to)| to).collect()
        };
        Near { order: (0..l.ranks()).map(order).collect(), ahead }
    }
}

/// Clusters that were told from outside: nobody outside tells them again.
struct Heard<'a> {
    clusters: &'a Clusters,
    /// Levels at which that counts, and at each which clusters were told.
    levels: Vec<(usize, Vec<bool>)>,
}

impl<'a> Heard<'a> {
    fn at(clusters: &'a Clusters, levels: &[usize]) -> Heard<'a> {
        let levels = levels.iter().map(|&level| (level, vec![false; clusters.ranks()])).collect();
        Heard { clusters, levels }
    }

    /// It counts nowhere.
    fn nowhere(clusters: &'a Clusters) -> Heard<'a> {
        Heard::at(clusters, &[])
    }

    fn tell(&mut self, rank: usize) {
        for (level, heard) in &mut self.levels {
            heard[self.clusters.name(*level, rank)] = true;
        }
    }

    /// Returns whether `from` may not tell `to` any more.
    fn bars(&self, from: usize, to: usize) -> bool {
        let name = |level: usize, rank: usize| self.clusters.name(level, rank);
        let barred = |(level, heard): &(usize, Vec<bool>)| {
            let cluster = name(*level, to);
            heard[cluster] && name(*level, from) != cluster
        };
        self.levels.iter().any(barred)
    }
}

/// Always the message that arrives (and can be passed on, by [`Near::ahead`]) first, among `members`, of those that `heard` lets pass.
fn earliest(
    l: &Latencies,
    root: usize,
    members: &[usize],
    near: &Near,
    heard: &mut Heard,
    out: &mut Schedule,
) {
    let mut member = vec![false; l.ranks()];
    members.iter().for_each(|&m| member[m] = true);
    let nearest = |from: usize| near.order[from].iter().copied().filter(|&m| member[m]).collect();
    let ahead = &near.ahead;
    let mut told = vec![false; l.ranks()];
    // For each that knows: what it has under way, and its order with how far it got.
    let mut senders = vec![Sender::at(0.0); l.ranks()];
    let mut orders: Vec<(Vec<usize>, usize)> = vec![(Vec::new(), 0); l.ranks()];
    let mut next = BinaryHeap::new();
    told[root] = true;
    heard.tell(root);
    orders[root] = (nearest(root), 0);
    if let Some(&first) = orders[root].0.first() {
        next.push(Reverse((Time(l.latency(root, first) + ahead[first]), root)));
    }
    let mut missing = members.len().saturating_sub(1);
    while missing > 0 {
        let Some(Reverse((_, from))) = next.pop() else { return };
        let (order, at) = &mut orders[from];
        let to = order[*at];
        if !told[to] && !heard.bars(from, to) {
            let arrives = senders[from].send(l, from, to);
            told[to] = true;
            heard.tell(to);
            missing -= 1;
            out.children[from].push(to);
            senders[to] = Sender::at(arrives);
            orders[to] = (nearest(to), 0);
            push(&mut next, l, (&told, heard), &mut orders[to], &senders[to], ahead, to);
        }
        push(&mut next, l, (&told, heard), &mut orders[from], &senders[from], ahead, from);
    }
}

/// Queues the next message of `from`, if there is anybody left to tell.
fn push(
    next: &mut BinaryHeap<Reverse<(Time, usize)>>,
    l: &Latencies,
    (told, heard): (&[bool], &Heard),
    (order, at): &mut (Vec<usize>, usize),
    sender: &Sender,
    ahead: &[f64],
    from: usize,
) {
    while order.get(*at).is_some_and(|&to| told[to] || heard.bars(from, to)) {
        *at += 1;
    }
    if let Some(&to) = order.get(*at) {
        next.push(Reverse((Time(sender.arrival(l, from, to) + ahead[to]), from)));
    }
}

/// First a tree among one member of each cluster, of the farthest level in `levels`, then within each.
fn by_cluster(
    l: &Latencies,
    clusters: &Clusters,
    levels: &[usize],
    leader: usize,
    members: &[usize],
    near: &Near,
    out: &mut Schedule,
) {
    let Some((&level, nearer)) = levels.split_last() else {
        earliest(l, leader, members, near, &mut Heard::nowhere(clusters), out);
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
    earliest(l, leader, &leaders, near, &mut Heard::nowhere(clusters), out);
    for (group, &leader) in groups.iter().zip(&leaders) {
        by_cluster(l, clusters, nearer, leader, group, near, out);
    }
}

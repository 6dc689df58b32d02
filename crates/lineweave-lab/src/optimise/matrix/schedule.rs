//! Schedules of trees: the senders and receivers of messages, in order.

use super::super::less;
use super::Latencies;
use std::collections::VecDeque;

/// A rank that knows, and what it has under way.
#[derive(Clone, Debug)]
pub(super) struct Sender {
    /// Earliest time of its next message, others under way not counted.
    free: f64,
    /// Times at which the messages under way land, the last at the end.
    landing: VecDeque<f64>,
}

impl Sender {
    /// One that knows from `at` on.
    pub(super) fn at(at: f64) -> Sender {
        Sender { free: at, landing: VecDeque::new() }
    }

    /// Returns the time at which the next message of `from` lands, at the latest one's heels, and the time at which `to` knows.
    fn next(&self, l: &Latencies, from: usize, to: usize) -> (f64, f64) {
        let full = self.landing.len() == l.at_once;
        let leaves = self.free.max(if full { self.landing[0] } else { 0.0 });
        let lands = (leaves + l.gap(from, to)).max(self.landing.back().copied().unwrap_or(0.0));
        (lands, lands + l.latency(from, to) - l.gap(from, to))
    }

    /// Returns the time at which `to` would know if it were told next.
    pub(super) fn arrival(&self, l: &Latencies, from: usize, to: usize) -> f64 {
        self.next(l, from, to).1
    }

    /// Sends the next message of `from` to `to`, and returns the time at which `to` knows.
    pub(super) fn send(&mut self, l: &Latencies, from: usize, to: usize) -> f64 {
        let (lands, arrives) = self.next(l, from, to);
        if self.landing.len() == l.at_once {
            self.landing.pop_front();
        }
        self.landing.push_back(lands);
        self.free += l.issue;
        arrives
    }
}

/// A tree over ranks with the order of each rank's children.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// The root.
    pub root: usize,
    /// Children of each rank, the first to be told (or to be heard) in front.
    pub children: Vec<Vec<usize>>,
}

impl Schedule {
    /// Nobody tells anybody.
    pub fn alone(ranks: usize, root: usize) -> Schedule {
        Schedule { root, children: vec![Vec::new(); ranks] }
    }

    /// Ranks with parents first.
    fn order(&self) -> Vec<usize> {
        let mut order = vec![self.root];
        let mut at = 0;
        while let Some(&rank) = order.get(at) {
            order.extend(&self.children[rank]);
            at += 1;
        }
        order
    }

    /// Parent and child, parents before their children's edges, children in order.
    pub fn edges(&self) -> Vec<(usize, usize)> {
        let order = self.order();
        order.iter().flat_map(|&r| self.children[r].iter().map(move |&c| (r, c))).collect()
    }

    /// The value of the parameter `edges`: `0-4,0-2,4-5`.
    pub fn param(&self) -> String {
        self.edges().iter().map(|(a, b)| format!("{a}-{b}")).collect::<Vec<_>>().join(",")
    }

    /// Returns the time at which each rank knows, ns.
    pub fn arrivals(&self, l: &Latencies) -> Vec<f64> {
        let mut at = vec![0.0; self.children.len()];
        for rank in self.order() {
            let mut sender = Sender::at(at[rank]);
            for &child in &self.children[rank] {
                at[child] = sender.send(l, rank, child);
            }
        }
        at
    }

    /// Returns the time at which the last rank knows, ns.
    pub fn time(&self, l: &Latencies) -> f64 {
        self.arrivals(l).into_iter().fold(0.0, f64::max)
    }

    /// Puts each rank's children in the best of some orders. Returns how long it takes from when a rank knows until all below it do.
    pub(super) fn sort(&mut self, l: &Latencies) -> Vec<f64> {
        let mut takes = vec![0.0f64; self.children.len()];
        for rank in self.order().into_iter().rev() {
            self.sort_at(l, rank, &mut takes);
        }
        takes
    }

    /// Sorts the children of one rank, whose times are known: first the one with most to come once the sender is free again, which
    /// is optimal where one message is under way at a time (Jackson's rule for one machine and delivery times). Where
    /// several are, none lands before one that left earlier, and nearest first may be better.
    fn sort_at(&mut self, l: &Latencies, rank: usize, takes: &mut [f64]) {
        let children = &mut self.children[rank];
        let ends = |children: &[usize]| {
            let mut sender = Sender::at(0.0);
            children.iter().map(|&c| sender.send(l, rank, c) + takes[c]).fold(0.0, f64::max)
        };
        let to_come = |c: usize| takes[c] + l.latency(rank, c) - l.gap(rank, c);
        children.sort_by(|&a, &b| to_come(b).total_cmp(&to_come(a)).then(a.cmp(&b)));
        let mut end = ends(&*children);
        if l.at_once > 1 && children.len() > 1 {
            let mut near = children.clone();
            near.sort_by(|&a, &b| l.gap(rank, a).total_cmp(&l.gap(rank, b)));
            let other = ends(&near);
            if less(other, end) {
                (*children, end) = (near, other);
            }
        }
        takes[rank] = end;
    }

    /// Returns this tree for the other direction: the last to be told is the first to be heard.
    #[must_use]
    pub fn backwards(mut self) -> Schedule {
        self.children.iter_mut().for_each(|c| c.reverse());
        self
    }

    /// Moves whoever ends last, or one above it with all below, to where that ends sooner, as long as that helps, and fewer times the
    /// more ranks there are.
    pub(super) fn improve(&mut self, l: &Latencies, bound: f64) {
        const MOVES: usize = 1 << 14;
        const PLACES: usize = 24;
        let rounds = (MOVES / self.children.len().max(1)).clamp(16, 256);
        let mut takes = self.sort(l);
        let mut above = vec![None; takes.len()];
        self.edges().into_iter().for_each(|(parent, child)| above[child] = Some(parent));
        for _ in 0..rounds {
            let time = takes[self.root];
            if !less(bound, time) {
                return;
            }
            let at = self.arrivals(l);
            let mut way = (0..at.len()).max_by(|&a, &b| at[a].total_cmp(&at[b]).then(b.cmp(&a)));
            let mut best: Option<(f64, usize, usize)> = None;
            while let Some((child, parent)) = way.and_then(|child| Some((child, above[child]?))) {
                way = above[child];
                // Places where it would arrive soonest, if it were told after the children that are there.
                let arrival = |r: usize| {
                    let mut sender = Sender::at(at[r]);
                    for &c in &self.children[r] {
                        sender.send(l, r, c);
                    }
                    sender.arrival(l, r, child)
                };
                let below = |r: usize| std::iter::successors(Some(r), |&r| above[r]).any(|r| r == child);
                let mut places: Vec<(f64, usize)> =
                    (0..at.len()).filter(|&r| r != parent && !below(r)).map(|r| (arrival(r), r)).collect();
                places.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                for (_, place) in places.into_iter().take(PLACES) {
                    let before = self.shift(l, &above, &mut takes, child, place);
                    let cost = takes[self.root];
                    for (rank, children, time) in before {
                        (self.children[rank], takes[rank]) = (children, time);
                    }
                    if less(cost, best.map_or(time, |b| b.0)) {
                        best = Some((cost, child, place));
                    }
                }
            }
            let Some((_, child, place)) = best else { return };
            self.shift(l, &above, &mut takes, child, place);
            above[child] = Some(place);
        }
    }

    /// Moves a rank with all below to the children of another, none of those below. It changes the ranks above both; returns what they
    /// were, their children and what these took.
    fn shift(
        &mut self,
        l: &Latencies,
        above: &[Option<usize>],
        takes: &mut [f64],
        child: usize,
        place: usize,
    ) -> Vec<(usize, Vec<usize>, f64)> {
        let way = |from: usize| std::iter::successors(Some(from), move |&r| above[r]);
        let mut changed: Vec<usize> = above[child].into_iter().flat_map(way).chain(way(place)).collect();
        // The farthest from the root first.
        changed.sort_by_key(|&r| (std::cmp::Reverse(way(r).count()), r));
        changed.dedup();
        let before = changed.iter().map(|&r| (r, self.children[r].clone(), takes[r])).collect();
        if let Some(parent) = above[child] {
            self.children[parent].retain(|&c| c != child);
        }
        self.children[place].push(child);
        changed.into_iter().for_each(|r| self.sort_at(l, r, takes));
        before
    }
}

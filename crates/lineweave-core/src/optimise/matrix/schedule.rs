//! Who tells whom, in which order.

use super::super::less;
use super::Latencies;

/// A tree over ranks with the order of each rank's children.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Schedule {
    /// The root.
    pub root: usize,
    /// For each rank its children, the first to be told (or to be heard) in front.
    pub children: Vec<Vec<usize>>,
}

impl Schedule {
    /// Nobody tells anybody.
    pub(super) fn alone(ranks: usize, root: usize) -> Schedule {
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

    /// When each rank knows, ns.
    pub fn arrivals(&self, l: &Latencies) -> Vec<f64> {
        let mut at = vec![0.0; self.children.len()];
        for rank in self.order() {
            let mut free = at[rank];
            for &child in &self.children[rank] {
                at[child] = free + l.latency(rank, child);
                free += l.gap(rank, child);
            }
        }
        at
    }

    /// When the last knows, ns.
    pub fn time(&self, l: &Latencies) -> f64 {
        self.arrivals(l).into_iter().fold(0.0, f64::max)
    }

    /// Puts each rank's children in the best order: whoever has most to come once the sender is free again goes first
    /// (Jackson's rule for one machine and delivery times, which is optimal).
    pub(super) fn sort(&mut self, l: &Latencies) {
        let mut takes = vec![0.0f64; self.children.len()];
        for rank in self.order().into_iter().rev() {
            let mut children = std::mem::take(&mut self.children[rank]);
            let to_come = |c: &usize| takes[*c] + l.latency(rank, *c) - l.gap(rank, *c);
            children.sort_by(|a, b| to_come(b).total_cmp(&to_come(a)).then(a.cmp(b)));
            let (mut free, mut end) = (0.0, 0.0f64);
            for &child in &children {
                end = end.max(free + l.latency(rank, child) + takes[child]);
                free += l.gap(rank, child);
            }
            takes[rank] = end;
            self.children[rank] = children;
        }
    }

    /// The same tree for the other direction: the last to be told is the first to be heard.
    #[must_use]
    pub(super) fn backwards(mut self) -> Schedule {
        self.children.iter_mut().for_each(|c| c.reverse());
        self
    }

    /// Moves the subtree that ends last to where it ends sooner, as long as that helps: at most 64 times.
    pub(super) fn improve(&mut self, l: &Latencies, bound: f64) {
        const ROUNDS: usize = 64;
        const PLACES: usize = 24;
        for _ in 0..ROUNDS {
            let at = self.arrivals(l);
            let time = at.iter().copied().fold(0.0, f64::max);
            if !less(bound, time) {
                return;
            }
            let Some(last) = (0..at.len()).find(|&r| at[r] == time) else { return };
            let Some((parent, child)) = self.edges().into_iter().find(|&(_, c)| c == last) else { return };
            // Places where it would arrive soonest, if it were told after the children that are there.
            let free = |r: usize| at[r] + self.children[r].iter().map(|&c| l.gap(r, c)).sum::<f64>();
            let arrival: Vec<f64> = (0..at.len()).map(|r| free(r) + l.latency(r, child)).collect();
            let mut places: Vec<usize> = (0..at.len()).filter(|&r| r != child && r != parent).collect();
            places.sort_by(|&a, &b| arrival[a].total_cmp(&arrival[b]).then(a.cmp(&b)));
            let mut best: Option<(Schedule, f64)> = None;
            for place in places.into_iter().take(PLACES) {
                let mut tried = self.clone();
                tried.children[parent].retain(|&c| c != child);
                tried.children[place].push(child);
                tried.sort(l);
                let cost = tried.time(l);
                if best.as_ref().map_or(less(cost, time), |b| less(cost, b.1)) {
                    best = Some((tried, cost));
                }
            }
            let Some((better, _)) = best else { return };
            *self = better;
        }
    }
}

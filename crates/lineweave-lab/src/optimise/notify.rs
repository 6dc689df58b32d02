//! Ways in which `k` children hear from their parent that something is ready.
//!
//! A flag for each, one that all poll (Ramos & Hoefler, section 4.1.1), or siblings who tell siblings (Petrovic et al.
//! 2012, Fig. 5, with two each).

use super::costs::Steps;
use super::{less, Optimum};
use crate::models::bounds::postal;

/// A way of notifying.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// The parent sets a flag for each child.
    Each,
    /// All children poll one flag.
    Shared,
    /// The parent and each child that knows set the flags of two children who do not.
    Siblings,
}

impl Way {
    /// The value of the parameter `notify` of the tree broadcasts.
    pub fn param(self) -> &'static str {
        match self {
            Way::Each => "each",
            Way::Shared => "shared",
            Way::Siblings => "binary",
        }
    }

    /// ns until all of `k` children know.
    pub fn cost(self, steps: &Steps, k: usize) -> f64 {
        match self {
            _ if k == 0 => 0.0,
            Way::Each => steps.each(k),
            Way::Shared => steps.shared(k),
            Way::Siblings => {
                // Child i hears from knower (i - 1) / 2, the parent being knower 0.
                let mut known = vec![0.0f64; k + 1];
                for i in 1..=k {
                    let turn = ((i - 1) % 2) as f64;
                    known[i] = known[(i - 1) / 2] + turn * steps.gap + steps.signal;
                }
                known.into_iter().fold(0.0, f64::max)
            }
        }
    }
}

/// The fastest way to tell `k` children. Equal ones in the order shared, each, siblings.
///
/// Bound: the postal model with the lesser of gap and contention.
pub fn notify(steps: &Steps, k: usize) -> Optimum<Way> {
    let mut best = (Way::Shared, Way::Shared.cost(steps, k));
    for way in [Way::Each, Way::Siblings] {
        let cost = way.cost(steps, k);
        if less(cost, best.1) {
            best = (way, cost);
        }
    }
    let gap = steps.gap.min(steps.contention);
    Optimum { choice: best.0, cost_ns: best.1, bound_ns: postal(k + 1, steps.signal, gap), exact: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(gap: f64, contention: f64) -> Steps {
        Steps { signal: 100.0, read: 50.0, contention, gap, row: 50.0, takes_over: false, fold: 0.0 }
    }

    #[test]
    fn each_way_wins_where_its_resource_is_cheap() {
        assert_eq!(notify(&steps(100.0, 1.0), 30).choice, Way::Shared);
        assert_eq!(notify(&steps(1.0, 100.0), 30).choice, Way::Each);
        assert_eq!(notify(&steps(90.0, 95.0), 47).choice, Way::Siblings);
        for k in 0..60 {
            for s in [steps(100.0, 1.0), steps(1.0, 100.0), steps(90.0, 95.0), steps(40.0, 60.0)] {
                assert!(notify(&s, k).ratio() >= 1.0 - 1e-12);
            }
        }
    }

    #[test]
    fn siblings_are_a_binary_tree() {
        // Seven children in levels of 2, 4, 1: the seventh is told second-last of level two's children.
        let s = steps(0.0, 0.0);
        assert_eq!(Way::Siblings.cost(&s, 2), 100.0);
        assert_eq!(Way::Siblings.cost(&s, 6), 200.0);
        assert_eq!(Way::Siblings.cost(&s, 7), 300.0);
    }
}

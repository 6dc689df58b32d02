//! Ways in which `k` children hear from their parent that something is ready.
//!
//! A flag for each, one that all poll (Ramos & Hoefler, section 4.1.1), or siblings who tell siblings (Petrovic et al.
//! 2012, Fig. 5, with two each).

use super::costs::Steps;
use super::{less, Optimum};
use crate::models::bounds::postal;
use lineweave_core::names::named;

/// A way of notifying; its name is the value of the parameter `notify` of the tree broadcasts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// The parent sets a flag for each child.
    Each,
    /// All children poll one flag.
    Shared,
    /// The parent and each child that knows set the flags of two children who do not.
    Siblings,
}

named!(Way, Each = "each", Shared = "shared", Siblings = "binary");

impl Way {
    /// ns until all of `k` children know.
    pub fn cost(self, steps: &Steps, k: usize) -> f64 {
        match self {
            _ if k == 0 => 0.0,
            Way::Each => steps.each(k),
            Way::Shared => steps.shared(k),
            Way::Siblings => siblings(steps.gap, steps.signal, k, 2),
        }
    }
}

/// ns until all of `k` children know who tell each other, `n` each: from one set to the next `gap`, and `signal` until a set is seen.
pub fn siblings(gap: f64, signal: f64, k: usize, n: usize) -> f64 {
    // Child i hears from knower (i - 1) / n, the parent being knower 0.
    let mut known = vec![0.0f64; k + 1];
    for i in 1..=k {
        known[i] = known[(i - 1) / n] + ((i - 1) % n) as f64 * gap + signal;
    }
    known.into_iter().fold(0.0, f64::max)
}

/// The number of children whom each should tell for all of `k` to know soonest, and the time; the least of equal ones.
pub fn best_degree(gap: f64, signal: f64, k: usize) -> (usize, f64) {
    let each = (1..=k.max(1)).map(|n| (n, siblings(gap, signal, k, n)));
    each.fold((1, f64::MAX), |best, next| if less(next.1, best.1) { next } else { best })
}

/// The best degree of a large tree, from what a set takes (s, until the next can follow) and what it takes from there until it is seen
/// (r, the read).
///
/// Derived: a level of degree n ends n s + r after it began, and k children need ln k / ln n levels. (n s + r) / ln n is least
/// where its derivative is 0: n (ln n - 1) = r / s. With a read for nothing n is e, so never less than that on average: two is the best
/// of no large tree. The left side grows with n from 1 on, so there is one such n.
pub fn ideal_degree(set: f64, read: f64) -> f64 {
    let (mut low, mut high) = (1.0f64, 3.0 + read / set);
    while high - low > 1e-9 {
        let n = f64::midpoint(low, high);
        if n * (n.ln() - 1.0) < read / set {
            low = n;
        } else {
            high = n;
        }
    }
    low
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

    /// Exhaustive search over a large tree beside the formula: its time is that of a degree within one of the formula's.
    #[test]
    fn the_best_degree_is_the_formulas() {
        assert!((ideal_degree(1.0, 0.0) - std::f64::consts::E).abs() < 1e-6);
        for read in [0.0, 1.37, 10.0, 100.0] {
            let n = ideal_degree(1.0, read);
            assert!((n * (n.ln() - 1.0) - read).abs() < 1e-6, "{read}: {n}");
            let level = |n: f64| (n + read) / n.ln();
            let best = (2..200).min_by(|&a, &b| level(f64::from(a)).total_cmp(&level(f64::from(b)))).unwrap();
            assert!((f64::from(best) - n).abs() <= 1.0, "{read}: {best}, {n}");
            // Whole levels make steps of it: no tree of 10,000 gains more than a level over the formula's degree.
            let (_, least) = best_degree(1.0, 1.0 + read, 10_000);
            let ours = siblings(1.0, 1.0 + read, 10_000, n.round() as usize);
            assert!(ours <= least + n + 1.0 + read, "{read}: {ours}, {least}");
        }
        // Petrovic et al.'s k = 7 with Table 1's flags: five, and not two.
        assert_eq!(best_degree(341.0, 341.0 + 466.0, 7).0, 5);
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

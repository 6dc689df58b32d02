//! Degrees of a tree, level by level, by exhaustive search.
//!
//! The cost is a sum over levels, so the order of the degrees does not count, and a tree holds most ranks when they
//! decrease downwards. (Ramos & Hoefler, Eq. 4.7, print the constraint the other way round.) So non-increasing
//! sequences suffice; those whose product stays below the number of ranks are few: 5,222 for 1,024 ranks.

use super::less;

/// The least sum of `level(k)` over the levels of a tree that holds `ranks` ranks, and the degrees; of equal sums the
/// degrees that are first in lexicographic order, that is the most even ones. `level` must not decrease with k.
/// A single rank needs no level.
pub fn degrees(ranks: usize, level: impl Fn(usize) -> f64) -> (Vec<usize>, f64) {
    all(ranks, level).into_iter().next().unwrap_or((Vec::new(), 0.0))
}

/// Every sequence of degrees that costs least, in lexicographic order, with the cost.
pub fn all(ranks: usize, level: impl Fn(usize) -> f64) -> Vec<(Vec<usize>, f64)> {
    // Ranks of the last level, and of all.
    let below = |(width, total): (usize, usize), k: usize| (width * k, total + width * k);
    sequences(ranks, level, (1, 1), below, |(width, total)| (ranks - total).div_ceil(width))
}

/// Every sequence of numbers that do not increase and cost least together, in lexicographic order, with the cost; of one rank the empty one. A
/// number leads from one state to the `next`; from a state the sequence is complete with one more number that is at least `rest`.
pub(super) fn sequences<S: Copy>(
    ranks: usize,
    cost: impl Fn(usize) -> f64,
    start: S,
    next: impl Fn(S, usize) -> S,
    rest: impl Fn(S) -> usize,
) -> Vec<(Vec<usize>, f64)> {
    if ranks < 2 {
        return vec![(Vec::new(), 0.0)];
    }
    let cost = (0..ranks).map(|k| if k == 0 { 0.0 } else { cost(k) }).collect();
    let mut search = Search { cost, next, rest, prefix: Vec::new(), best: Vec::new() };
    search.descend(start, 0.0);
    search.best.sort();
    search.best.dedup();
    let cost = |numbers: &[usize]| numbers.iter().map(|&k| search.cost[k]).sum();
    search.best.iter().map(|numbers| (numbers.clone(), cost(numbers))).collect()
}

struct Search<N, R> {
    cost: Vec<f64>,
    next: N,
    rest: R,
    prefix: Vec<usize>,
    /// All that cost least so far.
    best: Vec<Vec<usize>>,
}

impl<N, R> Search<N, R> {
    /// Completes the prefix, which has led to this state, in every way.
    fn descend<S: Copy>(&mut self, state: S, cost: f64)
    where
        N: Fn(S, usize) -> S,
        R: Fn(S) -> usize,
    {
        let most = self.prefix.last().copied().unwrap_or(self.cost.len() - 1);
        // One more number that completes it; higher ones only cost more.
        let last = (self.rest)(state);
        for k in last..=most {
            if k > last && self.cost[k] > self.cost[last] {
                break;
            }
            self.offer(k, cost + self.cost[k]);
        }
        for k in 1..=most.min(last.saturating_sub(1)) {
            self.prefix.push(k);
            self.descend((self.next)(state, k), cost + self.cost[k]);
            self.prefix.pop();
        }
    }

    fn offer(&mut self, last: usize, cost: f64) {
        let least = self.best.first().map_or(f64::INFINITY, |b| b.iter().map(|&k| self.cost[k]).sum());
        if less(least, cost) {
            return;
        }
        if less(cost, least) {
            self.best.clear();
        }
        self.best.push([&self.prefix[..], &[last]].concat());
    }
}

/// Returns the number of ranks that a tree of these degrees holds (Ramos & Hoefler, Eq. 4.4).
pub fn holds(degrees: &[usize]) -> usize {
    let (mut width, mut total) = (1usize, 1usize);
    for &k in degrees {
        width = width.saturating_mul(k);
        total = total.saturating_add(width);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sequence, whatever its order, up to a cost.
    fn naive(ranks: usize, level: &dyn Fn(usize) -> f64, most: f64) -> f64 {
        fn go(
            prefix: &mut Vec<usize>,
            ranks: usize,
            level: &dyn Fn(usize) -> f64,
            so_far: f64,
            best: &mut f64,
        ) {
            if holds(prefix) >= ranks {
                *best = best.min(so_far);
                return;
            }
            for k in 1..ranks {
                let cost = so_far + level(k);
                if cost < *best {
                    prefix.push(k);
                    go(prefix, ranks, level, cost, best);
                    prefix.pop();
                }
            }
        }
        let mut best = most;
        go(&mut Vec::new(), ranks, level, 0.0, &mut best);
        best
    }

    #[test]
    fn the_search_misses_nothing_that_naive_search_finds() {
        let costs: [&dyn Fn(usize) -> f64; 5] = [
            &|k| 6.0 + k as f64,
            &|k| k as f64,
            &|k| 1.0 + (k as f64).sqrt(),
            &|k| if k == 1 { 0.1 } else { 5.0 + k as f64 },
            &|k| 0.5 + (k * k) as f64,
        ];
        for cost in costs {
            for ranks in 2..24 {
                let (degrees, found) = degrees(ranks, cost);
                assert!(holds(&degrees) >= ranks);
                let least = naive(ranks, cost, cost(ranks - 1) + 1.0);
                assert!((found - least).abs() < 1e-9, "{ranks}: {degrees:?} {found} {least}");
            }
        }
    }

    #[test]
    fn of_equal_costs_the_most_even_is_taken() {
        // A level costs 2 and a child 1, so (3, 2) and (4, 1) cost the same for nine.
        let (found, cost) = degrees(9, |k| 3.0 + k as f64);
        assert_eq!((found, cost), (vec![3, 2], 11.0));
        assert!(all(9, |k| 3.0 + k as f64).iter().any(|(d, _)| *d == vec![4, 1]));
        assert_eq!(degrees(1, |k| k as f64), (Vec::new(), 0.0));
    }
}

//! Comparing two expressions for every machine at once.
//!
//! A cost with L of one size is linear in the values L(S, tau). All that a machine must obey is that L is not negative and does
//! not fall with tau (Rico-Gallego & Diaz-Martin Eq. 8, left half). Such functions are the sums, with factors that are not
//! negative, of steps [tau >= t]. So x >= q y holds on every machine exactly when it holds for each step, which is a
//! comparison of whole numbers: the occurrences at tau >= t. The step of the least ratio is a machine on which x / y is no more.
//!
//! Valid for expressions of transfers of one size.

use super::transfers::{Kind, Term, Transfers};
use std::collections::{BTreeMap, BTreeSet};

/// A ratio of whole numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ratio {
    /// Numerator.
    pub of: u128,
    /// Denominator; 0 means that there is no bound.
    pub by: u128,
}

impl Ratio {
    /// As a number; infinite without a bound.
    pub fn value(self) -> f64 {
        self.of as f64 / self.by as f64
    }

    fn less(self, other: Ratio) -> bool {
        self.of * other.by < other.of * self.by
    }
}

/// Occurrences at each tau and above, by function and size.
fn tails(x: &Transfers) -> BTreeMap<(Kind, u64), BTreeMap<u64, u128>> {
    let mut out: BTreeMap<(Kind, u64), BTreeMap<u64, u128>> = BTreeMap::new();
    for (Term { kind, bytes, tau }, count) in x.terms() {
        *out.entry((kind, bytes)).or_default().entry(tau).or_insert(0) += u128::from(count);
    }
    for counts in out.values_mut() {
        let mut above = 0;
        for count in counts.values_mut().rev() {
            above += *count;
            *count = above;
        }
    }
    out
}

fn tail(tails: Option<&BTreeMap<u64, u128>>, tau: u64) -> u128 {
    tails.and_then(|t| t.range(tau..).next()).map_or(0, |(_, &n)| n)
}

/// The least and the greatest of x / y over all machines whose L does not fall with tau and is not nought; for
/// expressions of transfers of one size. `None` for others.
pub fn range(x: &Transfers, y: &Transfers) -> Option<(Ratio, Ratio)> {
    let (xs, ys) = (tails(x), tails(y));
    let keys: BTreeSet<_> = xs.keys().chain(ys.keys()).collect();
    let key = match keys.into_iter().collect::<Vec<_>>()[..] {
        [key @ (Kind::Transfer, _)] => *key,
        _ => return None,
    };
    let (x, y) = (xs.get(&key), ys.get(&key));
    let steps: BTreeSet<u64> = [x, y].into_iter().flatten().flat_map(|t| t.keys().copied()).collect();
    let ratios = steps.into_iter().map(|t| Ratio { of: tail(x, t), by: tail(y, t) });
    let (mut least, mut most): (Option<Ratio>, Option<Ratio>) = (None, None);
    for r in ratios {
        if least.is_none_or(|l| r.less(l)) {
            least = Some(r);
        }
        if most.is_none_or(|m| m.less(r)) {
            most = Some(r);
        }
    }
    Some((least?, most?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: u64 = 8192;

    #[test]
    fn expressions_of_several_sizes_have_no_range() {
        let (a, b) = (Transfers::one(S, 2).times(3), Transfers::one(S, 4));
        assert_eq!(range(&b, &a), Some((Ratio { of: 1, by: 3 }, Ratio { of: 1, by: 0 })));
        assert_eq!(range(&b, &b.clone().then(&Transfers::one(1, 1))), None);
    }

    proptest! {
        /// The criterion against machines drawn at random.
        #[test]
        fn no_monotone_machine_leaves_the_range(
            x in proptest::collection::vec((1u64..9, 1u64..5), 1..5),
            y in proptest::collection::vec((1u64..9, 1u64..5), 1..5),
            steps in proptest::collection::vec(0.0..10.0f64, 9),
        ) {
            let sum = |list: &[(u64, u64)]| list.iter().fold(Transfers::none(), |s, &(tau, n)| s.then(&Transfers::one(S, tau).times(n)));
            let (x, y) = (sum(&x), sum(&y));
            let (least, most) = range(&x, &y).unwrap();
            let l = |t: Term| 1e-3 + steps[..=t.tau as usize].iter().sum::<f64>();
            let ratio = x.cost(l) / y.cost(l);
            prop_assert!(ratio >= least.value() * (1.0 - 1e-9), "{ratio} {least:?}");
            prop_assert!(ratio <= most.value() * (1.0 + 1e-9), "{ratio} {most:?}");
        }
    }
}

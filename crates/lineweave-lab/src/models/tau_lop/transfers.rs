//! The algebra of tau-Lop: costs as sums of L(m, tau), kept exact.
//!
//! An expression counts how often each L(m, tau) and each gamma(m, tau) occurs. Sequence is addition; A || x, A such
//! things at once, multiplies tau by A and distributes over sequence (Rico-Gallego & Diaz-Martin 2015, section 3.3 and Eq.
//! 12). Two expressions can so be compared for every machine at once ([`order`](super::order)).

use std::collections::BTreeMap;

/// Kind of work that takes time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// A transfer, L(m, tau).
    Transfer,
    /// A fold of two vectors, gamma(m, tau).
    Fold,
}

/// One term: which function, at which bytes and concurrency.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Term {
    /// Function of the term.
    pub kind: Kind,
    /// m, in bytes.
    pub bytes: u64,
    /// Concurrency tau of the transfers.
    pub tau: u64,
}

/// A sum of terms, each with how often it occurs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Transfers(BTreeMap<Term, u64>);

impl Transfers {
    /// No time at all.
    pub fn none() -> Transfers {
        Transfers::default()
    }

    /// Returns L(m, tau).
    pub fn one(bytes: u64, tau: u64) -> Transfers {
        Transfers(BTreeMap::from([(Term { kind: Kind::Transfer, bytes, tau }, 1)]))
    }

    /// gamma(m, tau); nothing for no bytes.
    pub fn fold(bytes: u64, tau: u64) -> Transfers {
        match bytes {
            0 => Transfers::none(),
            _ => Transfers(BTreeMap::from([(Term { kind: Kind::Fold, bytes, tau }, 1)])),
        }
    }

    /// This, then the other: x + y.
    #[must_use]
    pub fn then(mut self, other: &Transfers) -> Transfers {
        for (&term, &count) in &other.0 {
            *self.0.entry(term).or_insert(0) += count;
        }
        self
    }

    /// This so many times in a row: n x.
    #[must_use]
    pub fn times(mut self, n: u64) -> Transfers {
        self.0.values_mut().for_each(|count| *count *= n);
        self.0.retain(|_, count| *count > 0);
        self
    }

    /// Returns so many of these transfers at once: A || x, of which A || L(m, tau) = L(m, A tau) (section 3.3). Nothing for none.
    #[must_use]
    pub fn beside(&self, a: u64) -> Transfers {
        let mut out = Transfers::none();
        for (&term, &count) in self.0.iter().filter(|_| a > 0) {
            *out.0.entry(Term { tau: term.tau * a, ..term }).or_insert(0) += count;
        }
        out
    }

    /// The terms, each with its number.
    pub fn terms(&self) -> impl Iterator<Item = (Term, u64)> + '_ {
        self.0.iter().map(|(&term, &count)| (term, count))
    }

    /// Bytes moved by all transfers together: count x m x tau.
    pub fn moved_bytes(&self) -> u64 {
        self.terms().filter(|(t, _)| t.kind == Kind::Transfer).map(|(t, n)| n * t.bytes * t.tau).sum()
    }

    /// The time, with the time of each term given. In whatever unit that is.
    pub fn cost(&self, mut of: impl FnMut(Term) -> f64) -> f64 {
        self.terms().map(|(term, count)| count as f64 * of(term)).sum()
    }
}

impl std::fmt::Display for Transfers {
    /// `2 L(8192, 1) + 3 L(8192, 2)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("0");
        }
        for (i, (term, count)) in self.terms().enumerate() {
            let name = match term.kind {
                Kind::Transfer => "L",
                Kind::Fold => "gamma",
            };
            let plus = if i > 0 { " + " } else { "" };
            let factor = if count == 1 { String::new() } else { format!("{count} ") };
            write!(f, "{plus}{factor}{name}({}, {})", term.bytes, term.tau)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any() -> impl Strategy<Value = Transfers> {
        proptest::collection::vec((1u64..4, 1u64..5, 1u64..4), 0..5).prop_map(|list| {
            let one = |(m, tau, n): &(u64, u64, u64)| Transfers::one(*m, *tau).times(*n);
            list.iter().fold(Transfers::none(), |sum, t| sum.then(&one(t)))
        })
    }

    #[test]
    fn terms_are_counted_and_printed() {
        let x = Transfers::one(8, 1).times(2).then(&Transfers::one(8, 2)).then(&Transfers::fold(8, 1));
        assert_eq!(x.to_string(), "2 L(8, 1) + L(8, 2) + gamma(8, 1)");
        assert_eq!(Transfers::none().to_string(), "0");
        assert_eq!(x.beside(3).to_string(), "2 L(8, 3) + L(8, 6) + gamma(8, 3)");
        assert_eq!(x.moved_bytes(), 2 * 8 + 16);
        assert_eq!(Transfers::one(8, 1).beside(0), Transfers::none());
    }

    proptest! {
        /// Eq. 12, and what makes it an algebra.
        #[test]
        fn beside_distributes_over_sequence(x in any(), y in any(), a in 1u64..5, b in 1u64..5, n in 1u64..4) {
            prop_assert_eq!(x.clone().then(&y).beside(a), x.beside(a).then(&y.beside(a)));
            prop_assert_eq!(x.beside(a).beside(b), x.beside(a * b));
            prop_assert_eq!(x.clone().times(n).beside(a), x.beside(a).times(n));
            prop_assert_eq!(x.clone().then(&y), y.then(&x));
        }
    }
}

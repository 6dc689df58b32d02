//! tau-Lop (Rico-Gallego & Diaz-Martin 2015): transfers, and how many of them go on at once.
//!
//! - L(m, tau) = c(m, tau) + y(tau): the time of a transfer of m bytes while tau go on; a bare copy, with c(0, tau) = 0, and
//!   synchronisation (section 3.1);
//! - o(m): from the call to the first byte, which is O_s, software, alone: in shared memory the protocol's part is 0 (section
//!   3.1);
//! - gamma(m, tau): folding two vectors while tau folds go on;
//! - the operator ||: [`Transfers::beside`].
//!
//! Expressions are exact ([`Transfers`], [`Way`]); here they get their times. Not valid where transfers of different
//! channels are under way at once (N > 1), nor beyond the tau that was measured, which readings mark.

mod message;
pub mod order;
pub mod pipeline;
mod transfers;

pub use message::Way;
pub use transfers::{Kind, Term, Transfers};

use super::published::{Call, NoForm, NotKnown, Published, Sum};
use lineweave_core::model::{Fitted, Reading, Surface};

/// The parameters of one channel.
#[derive(Clone, PartialEq, Debug)]
pub struct TauLop {
    /// c(m, tau), bare copies, in ns.
    pub copy: Surface,
    /// y(tau) by tau, ascending, in ns; beyond the last the last holds. Empty: L(m, tau) is known as a whole only, and
    /// what has no bytes has no time.
    pub sync: Vec<(u32, Fitted)>,
    /// o(m): from the call to the beginning of the transfer (section 3.1), for all lengths alike, in ns.
    pub start: Fitted,
    /// Method by which messages are sent.
    pub way: Way,
}

impl TauLop {
    /// y(tau): of the largest measured number of transfers not above `tau`, and whether that was exceeded.
    pub fn sync(&self, tau: u64) -> Reading {
        let here = self.sync.iter().rev().find(|(t, _)| u64::from(*t) <= tau).or(self.sync.first());
        let beyond = self.sync.last().is_some_and(|(t, _)| tau > u64::from(*t));
        Reading { nanos: here.map_or(0.0, |(_, y)| y.value), extrapolated: beyond }
    }

    /// L(m, tau) = c(m, tau) + y(tau), in ns.
    pub fn transfer(&self, bytes: u64, tau: u64) -> Reading {
        let y = self.sync(tau);
        if bytes == 0 {
            return y; // c(0, tau) = 0: synchronisation alone, as in a barrier.
        }
        let c = self.copy.at(bytes as usize, tau as usize);
        Reading { nanos: c.nanos + y.nanos, extrapolated: c.extrapolated || y.extrapolated }
    }

    /// The time of an expression; gamma from the call.
    ///
    /// # Errors
    /// [`NoForm::NotKnown`] when it folds and gamma is not there, or when it has transfers without bytes, which are
    /// synchronisation alone, and y(tau) is not known apart from c(m, tau).
    pub fn cost(&self, expression: &Transfers, call: &Call<'_>) -> Result<Reading, NoForm> {
        let mut sum = Sum::default();
        for (term, count) in expression.terms() {
            let reading = match term.kind {
                Kind::Transfer if term.bytes == 0 && self.sync.is_empty() => {
                    let because = "its L(m, tau) was published as a whole, and no synchronisation apart";
                    return Err(NotKnown::new(self.name(), "y(tau)", "the machine", because).into());
                }
                Kind::Transfer => self.transfer(term.bytes, term.tau),
                Kind::Fold => call.folding(self.name(), term.bytes, term.tau)?,
            };
            sum.add(reading, count);
        }
        Ok(sum.reading())
    }
}

impl Published for TauLop {
    fn name(&self) -> &'static str {
        "tau-Lop"
    }

    /// T(m) = o(m) + sum of its transfers (Eq. 9).
    fn message(&self, bytes: u64) -> Reading {
        let mut sum = Sum::default();
        for (term, count) in self.way.message(bytes).terms() {
            sum.add(self.transfer(term.bytes, term.tau), count);
        }
        let transfers = sum.reading();
        Reading { nanos: self.start.value + transfers.nanos, ..transfers }
    }

    /// o(m) once, and the collective's transfers: "from now on o(m) will be considered negligible" (section 3.2) for
    /// all messages but the first.
    fn collective(&self, call: &Call<'_>) -> Result<Reading, NoForm> {
        if call.ranks <= 1 {
            return Ok(Reading { nanos: 0.0, extrapolated: false });
        }
        let expression = match call.form.is_of_plan() {
            true => self.way.stages(&call.stages()?),
            false => self.way.collective(call.form, call.ranks, call.bytes)?,
        };
        let transfers = self.cost(&expression, call)?;
        Ok(Reading { nanos: self.start.value + transfers.nanos, ..transfers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::Form;
    use lineweave_core::model::{Point, Provenance};

    /// c = (100 + m) (1 + (tau - 1) / 2), y = 10 tau.
    fn model() -> TauLop {
        let c = |m: u64, tau: u32| (100.0 + m as f64) * (1.0 + 0.5 * f64::from(tau - 1));
        let point = |bytes, tau| Point {
            bytes,
            tau,
            cost: Fitted::new(c(bytes, tau), Provenance::Cited),
            weight: 1.0,
        };
        let points: Vec<Point> =
            [1, 1 << 20].iter().flat_map(|&m| [1, 2, 4, 8].map(|t| point(m, t))).collect();
        TauLop {
            copy: Surface::from_points(&points).unwrap(),
            sync: vec![(1, Fitted::cited(10.0)), (2, Fitted::cited(20.0)), (4, Fitted::cited(40.0))],
            start: Fitted::cited(5.0),
            way: Way::MPICH,
        }
    }

    #[test]
    fn transfers_are_copies_and_synchronisation() {
        let m = model();
        assert_eq!(m.transfer(0, 1), Reading { nanos: 10.0, extrapolated: false });
        assert!((m.transfer(1000, 2).nanos - (1100.0 * 1.5 + 20.0)).abs() < 1e-6);
        assert_eq!(m.sync(3).nanos, 20.0);
        assert!(m.sync(9).extrapolated && m.transfer(64, 9).extrapolated && !m.transfer(64, 4).extrapolated);
    }

    #[test]
    fn messages_overlap_their_segments() {
        let m = model();
        let l = |tau| m.transfer(8192, tau).nanos;
        assert!((m.message(3 * 8192).nanos - (5.0 + 2.0 * l(1) + 2.0 * l(2))).abs() < 1e-6);
    }

    /// Operations without data cost their synchronisation: a barrier (section 3.1).
    #[test]
    fn collectives_price_their_concurrency() {
        let m = model();
        let barrier = m.collective(&Call::new(Form::DisseminationBarrier, 4, 0)).unwrap();
        assert_eq!(barrier.nanos, 5.0 + 2.0 * 2.0 * 40.0);
        let bcast = |p| m.collective(&Call::new(Form::BinomialBcast, p, 4096)).unwrap().nanos;
        let l = |tau| m.transfer(4096, tau).nanos;
        assert!((bcast(8) - (5.0 + 2.0 * (l(1) + l(2) + l(4)))).abs() < 1e-6);
        // The last stage has one message among 5 ranks, and four among 8.
        assert!((bcast(5) - (5.0 + 2.0 * (l(1) + l(2) + l(1)))).abs() < 1e-6);
        assert!(m.collective(&Call::new(Form::BinomialReduce, 4, 64)).is_err());
        // Where synchronisation is not known apart, a barrier's time is not 0 but unknown.
        let whole = TauLop { sync: Vec::new(), ..m.clone() };
        let error = whole.collective(&Call::new(Form::DisseminationBarrier, 4, 0)).unwrap_err();
        assert!(error.to_string().starts_with("tau-Lop needs y(tau)"), "{error}");
        assert!(whole.collective(&Call::new(Form::BinomialBcast, 4, 64)).is_ok());
        let gamma = Surface::line(Fitted::cited(3.0), Fitted::cited(0.0));
        let call = Call { gamma: Some(&gamma), ..Call::new(Form::BinomialReduce, 2, 64) };
        assert!(
            (m.collective(&call).unwrap().nanos - (5.0 + 2.0 * m.transfer(64, 1).nanos + 3.0)).abs() < 1e-9
        );
    }
}

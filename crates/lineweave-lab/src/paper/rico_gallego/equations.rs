//! The numbered equations: as printed, beside what summing over the algorithm's stages gives.

use super::super::{item, Finding};
use crate::models::tau_lop::{Transfers, Way};
use crate::models::{Call, Form, LogGp, Published};
use lineweave_core::model::Fitted;

/// Segments of 8 KiB, as the paper configures both libraries.
pub(super) const S: u64 = 8192;
/// P = 2 to 1,024.
pub(super) fn logs() -> impl Iterator<Item = u32> {
    1..=10
}

/// c L(S, tau).
pub(super) fn l(c: u64, tau: u64) -> Transfers {
    Transfers::one(S, tau).times(c)
}

pub(super) fn sum(list: impl IntoIterator<Item = Transfers>) -> Transfers {
    list.into_iter().fold(Transfers::none(), |a, b| a.then(&b))
}

/// A LogGP machine; the tie of Eq. 7 is one of coefficients and does not depend on the values.
pub(super) fn loggp(segment: u64) -> LogGp {
    let f = Fitted::cited;
    LogGp { l: f(311.0), o: f(23.0), g: f(71.0), per_byte: f(0.19), segment }
}

pub(super) fn items() -> Vec<Finding> {
    vec![equation_7(), messages(), collectives(), simplified()]
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

fn equation_7() -> Finding {
    let (mut agree, mut of) = (0, 0);
    for lg in logs() {
        let p = 1usize << lg;
        for k in [1, 2, 64] {
            let model = loggp(S);
            let printed = model.scatter_or_allgather(p, k * S);
            for form in [Form::Scatter, Form::DoublingAllgather] {
                let summed = model.collective(&Call::new(form, p, p as u64 * k * S));
                of += 1;
                agree += usize::from(summed.is_ok_and(|r| close(r.nanos, printed)));
            }
        }
    }
    let remark = "the sum of Eq. 2 over the stages of scatter and of recursive-doubling allgather, P = 2 to 1024, k = 1, 2, \
                  64: both are what Eq. 7 prints, so LogGP ties them";
    item("eq 7", agree, of, remark)
}

fn messages() -> Finding {
    let (mut agree, mut of) = (0, 0);
    let mut check = |holds: bool| {
        of += 1;
        agree += usize::from(holds);
    };
    for k in 1..=64 {
        let way = Way::MPICH;
        check(way.message(k * S) == l(2, 1).then(&l(k - 1, 2)));
        let steady = Way { back_to_back: true, ..way };
        check(steady.message(k * S) == l(k, 2));
    }
    check(Way::MPICH.message(100) == Transfers::one(100, 1).times(2));
    let knem = Way { segment: 0, transfers: 1, back_to_back: false };
    check(knem.message(1 << 20) == Transfers::one(1 << 20, 1));
    item("eq 9 to 11, 22", agree, of, "Eq. 9 with n = 2 for k = 1 to 64 gives Eq. 10, with k = 1 Eq. 11, with n = k = 1 KNEM's L(m, 1); k L(S, 2) back to back")
}

fn collectives() -> Finding {
    let (mut agree, mut of) = (0, 0);
    let mut check = |found: Transfers, printed: Transfers| {
        of += 1;
        agree += usize::from(found == printed);
    };
    let way = Way::MPICH;
    let k = 16;
    for lg in logs() {
        let p = 1u64 << lg;
        let at = |way: Way, form, bytes| way.collective(form, p as usize, bytes).unwrap_or_default();
        let stages = || 0..lg;
        // Eq. 14 and 15.
        check(
            at(way, Form::BinomialBcast, k * S),
            sum(stages().map(|i| l(2, 1 << i).then(&l(k - 1, 2 << i)))),
        );
        check(at(way, Form::BinomialBcast, S), sum(stages().map(|i| l(2, 1 << i))));
        // Eq. 16, of a message of P k segments; Eq. 17 and 18; Eq. 21.
        let whole = p * k * S;
        let halves = stages().map(|i| way.message(whole >> (i + 1)).beside(1 << i));
        check(at(way, Form::Scatter, whole), sum(halves));
        check(at(way, Form::DoublingAllgather, whole), sum(stages().map(|i| l((2 * k) << i, p))));
        check(at(way, Form::RingAllgather, whole), l(2 * k * (p - 1), p));
    }
    item("eq 13 to 18, 21", agree, of, "sums over the stages of the algorithms for P = 2 to 1024 and 16 segments, against the printed right-hand sides (Eq. 18 and 21 with P || applied once, see claims)")
}

fn simplified() -> Finding {
    let steady = Way { back_to_back: true, ..Way::MPICH };
    let k = 16;
    let (mut agree, mut of) = (0, 0);
    for lg in logs() {
        let p = 1u64 << lg;
        let at = |form| steady.collective(form, p as usize, p * k * S).unwrap_or_default();
        let scatter = sum((0..lg).map(|i| l(k * (p >> (i + 1)), 2 << i)));
        let doubling = sum((0..lg).map(|i| l(2 * k * (p >> (i + 1)), p)));
        for holds in [at(Form::Scatter) == scatter, at(Form::DoublingAllgather) == doubling] {
            of += 1;
            agree += usize::from(holds);
        }
    }
    item("eq 23, 24", agree, of, "the same sums with Eq. 22 for a message, P = 2 to 1024; m is now what one rank gets, where in Eq. 16 it is the whole message")
}

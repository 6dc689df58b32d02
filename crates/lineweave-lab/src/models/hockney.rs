//! Hockney 1994: a message takes a start-up and a time a byte, T = alpha + beta m.
//!
//! Collectives after Rico-Gallego & Diaz-Martin 2015, section 1 (binomial tree: (alpha + m beta) ceil(log2 P)), and
//! Thakur, Rabenseifner & Gropp 2005, sections 4.1 to 4.5. Not valid where messages share a channel: a stage costs
//! the same however many messages it has.

use super::published::Published;
use lineweave_core::model::{AlphaBeta, Reading};

impl Published for AlphaBeta {
    fn name(&self) -> &'static str {
        "Hockney"
    }

    /// T(m) = alpha + beta m; m in bytes, alpha in ns, beta in ns a byte.
    fn message(&self, bytes: u64) -> Reading {
        Reading { nanos: self.alpha.value + self.beta.value * bytes as f64, extrapolated: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{Call, Form};
    use lineweave_core::model::Fitted;

    /// Closed forms as Thakur et al. print them, n bytes in all: scatter and recursive doubling lg p alpha + (p-1)/p
    /// n beta, ring (p-1) alpha + (p-1)/p n beta, broadcast by scatter and ring (lg p + p - 1) alpha + 2 (p-1)/p n
    /// beta, Rabenseifner 2 lg p alpha + 2 (p-1)/p n beta + (p-1)/p n gamma.
    #[test]
    fn sums_over_stages_are_the_printed_closed_forms() {
        let (alpha, beta) = (100.0, 0.5);
        let model = AlphaBeta { alpha: Fitted::cited(alpha), beta: Fitted::cited(beta) };
        for lg in 1..11u32 {
            let p = 1usize << lg;
            let n = 1u64 << 16;
            let (l, pf, nf) = (f64::from(lg), p as f64, n as f64);
            let share = (pf - 1.0) / pf * nf * beta;
            let at = |form| model.collective(&Call::new(form, p, n)).unwrap().nanos;
            let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6 * b, "{a} {b}");
            close(at(Form::BinomialBcast), l * (alpha + nf * beta));
            close(at(Form::Scatter), l * alpha + share);
            close(at(Form::DoublingAllgather), l * alpha + share);
            close(at(Form::RingAllgather), (pf - 1.0) * alpha + share);
            close(at(Form::ScatterRingBcast), (l + pf - 1.0) * alpha + 2.0 * share);
            close(at(Form::ScatterDoublingBcast), 2.0 * l * alpha + 2.0 * share);
            let gamma = lineweave_core::model::Surface::line(Fitted::cited(0.0), Fitted::cited(0.25));
            let folding = Call { gamma: Some(&gamma), ..Call::new(Form::Rabenseifner, p, n) };
            let folded = (pf - 1.0) / pf * nf * 0.25;
            close(model.collective(&folding).unwrap().nanos, 2.0 * l * alpha + 2.0 * share + folded);
            let folding = Call { form: Form::DoublingAllreduce, ..folding };
            close(model.collective(&folding).unwrap().nanos, l * (alpha + nf * beta + nf * 0.25));
        }
    }

    #[test]
    fn folding_without_gamma_is_named() {
        let model = AlphaBeta { alpha: Fitted::cited(1.0), beta: Fitted::cited(1.0) };
        let error = model.collective(&Call::new(Form::BinomialReduce, 4, 64)).unwrap_err();
        assert!(error.to_string().starts_with("Hockney needs gamma(m, tau)"), "{error}");
    }
}

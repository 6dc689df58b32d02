//! PLogP (Kielmann, Bal & Verstoep 2000): LogP with overheads and gap as functions of the message's length.
//!
//! T(m) = L + g(m). Kielmann et al. measure g(0) by saturating a link and take g(m) = RTT(m) - RTT(0) + g(0), so that L
//! and g(0) are told apart by the saturated link alone. Not valid where transfers share a channel.

use super::loggp::LogGp;
use super::published::{Call, NoForm, Published, Sum};
use super::stages::Form;
use lineweave_core::model::{Fitted, Reading, Surface};

/// The parameters, in ns.
#[derive(Clone, PartialEq, Debug)]
pub struct PLogP {
    /// L: end-to-end latency that neither end is busy with.
    pub l: Fitted,
    /// o_s(m): time the sender is busy.
    pub send: Surface,
    /// o_r(m): time the receiver is busy.
    pub receive: Surface,
    /// g(m): least time between messages of m bytes; at least o_s(m) and o_r(m).
    pub gap: Surface,
}

impl PLogP {
    /// A broadcast down a chain in k segments of S bytes: (P - 1)(L + g(S)) + (k - 1) g(S) (Kielmann et al., section
    /// 4). In ns.
    pub fn chain(&self, ranks: usize, k: u64, segment: u64) -> Reading {
        let gap = self.gap.at(segment as usize, 1);
        let hops = ranks.saturating_sub(1) as f64;
        let nanos = hops * (self.l.value + gap.nanos) + k.saturating_sub(1) as f64 * gap.nanos;
        Reading { nanos, extrapolated: gap.extrapolated }
    }

    /// The LogGP model with the same messages at 1 byte and at `large` bytes (Kielmann et al., Table 1): L + g(1) -
    /// o_s(1) - o_r(1), (o_s(1) + o_r(1)) / 2, g(1) and g(m) / m.
    pub fn loggp(&self, large: u64, segment: u64) -> LogGp {
        let at = |s: &Surface, m: u64| s.at(m as usize, 1).nanos;
        let busy = at(&self.send, 1) + at(&self.receive, 1);
        let of = |v: f64| Fitted::new(v, lineweave_core::model::Provenance::Inferred);
        LogGp {
            l: of(self.l.value + at(&self.gap, 1) - busy),
            o: of(busy / 2.0),
            g: of(at(&self.gap, 1)),
            per_byte: of(at(&self.gap, large) / large.max(1) as f64),
            segment,
        }
    }
}

impl Published for PLogP {
    fn name(&self) -> &'static str {
        "PLogP"
    }

    /// T(m) = L + g(m).
    fn message(&self, bytes: u64) -> Reading {
        let gap = self.gap.at(bytes as usize, 1);
        Reading { nanos: self.l.value + gap.nanos, ..gap }
    }

    /// A sender of several messages is busy for a gap each: the flat broadcast is (P - 1) g(m) + L. The rest as all
    /// message models.
    fn collective(&self, call: &Call<'_>) -> Result<Reading, NoForm> {
        let mut sum = Sum::default();
        for stage in call.stages()? {
            match call.form {
                Form::FlatBcast => {
                    sum.add(self.gap.at(stage.bytes as usize, 1), stage.times);
                    sum.add(Reading { nanos: self.l.value, extrapolated: false }, 1);
                }
                _ => sum.add(self.message(stage.bytes), stage.times),
            }
            sum.add(call.folding(self.name(), stage.folded, 1)?, stage.times);
        }
        Ok(sum.reading())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model() -> PLogP {
        let line = |a: f64, b: f64| Surface::line(Fitted::cited(a), Fitted::cited(b));
        PLogP {
            l: Fitted::cited(100.0),
            send: line(10.0, 0.1),
            receive: line(20.0, 0.1),
            gap: line(30.0, 0.25),
        }
    }

    #[test]
    fn messages_and_trees() {
        let m = model();
        assert_eq!(m.message(1000).nanos, 380.0);
        assert_eq!(m.collective(&Call::new(Form::FlatBcast, 5, 1000)).unwrap().nanos, 4.0 * 280.0 + 100.0);
        assert_eq!(m.collective(&Call::new(Form::BinomialBcast, 5, 1000)).unwrap().nanos, 3.0 * 380.0);
        assert_eq!(m.chain(5, 3, 1000).nanos, 4.0 * 380.0 + 2.0 * 280.0);
    }

    /// With Table 1's translation a message of one byte costs the same in both models.
    #[test]
    fn the_translation_to_loggp_keeps_a_short_message() {
        let m = model();
        let other = m.loggp(1 << 20, 0);
        assert!((other.whole(1) - m.message(1).nanos).abs() < 1e-9);
        assert!((other.per_byte.value - 0.25).abs() < 1e-3);
    }
}

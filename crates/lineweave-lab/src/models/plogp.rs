//! PLogP (Kielmann, Bal & Verstoep 2000): LogP with overheads and gap as functions of the message's length.
//!
//! T(m) = L + g(m). Kielmann et al. measure g(0) by saturating a link and take g(m) = RTT(m) - RTT(0) + g(0), so that L
//! and g(0) are told apart by the saturated link alone. Not valid where transfers share a channel.

use super::published::{Call, NoForm, Published, Sum};
use super::stages::Form;
use lineweave_core::model::{Fitted, Reading, Surface};

/// The parameters, in ns.
#[derive(Clone, PartialEq, Debug)]
pub struct PLogP {
    /// L: end-to-end latency that neither end is busy with.
    pub l: Fitted,
    /// g(m): least time between messages of m bytes; at least what either end is busy.
    pub gap: Surface,
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
        PLogP { l: Fitted::cited(100.0), gap: line(30.0, 0.25) }
    }

    #[test]
    fn messages_and_trees() {
        let m = model();
        assert_eq!(m.message(1000).nanos, 380.0);
        assert_eq!(m.collective(&Call::new(Form::FlatBcast, 5, 1000)).unwrap().nanos, 4.0 * 280.0 + 100.0);
        assert_eq!(m.collective(&Call::new(Form::BinomialBcast, 5, 1000)).unwrap().nanos, 3.0 * 380.0);
    }
}

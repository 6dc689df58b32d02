//! LogGP (Alexandrov et al. 1995): LogP with G, the gap a byte, for long messages; with messages in segments.
//!
//! Equations as numbered by Rico-Gallego & Diaz-Martin 2015. Not valid where transfers share a channel: Eq. 7 gives
//! scatter and recursive-doubling allgather the same cost, although the second has P messages under way in each stage.

use super::published::{segments, Published};
use lineweave_core::model::{Fitted, Reading};

/// The parameters, in ns, G in ns a byte.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LogGp {
    /// L: latency.
    pub l: Fitted,
    /// o: overhead of sending or receiving a message.
    pub o: Fitted,
    /// g: least time between two messages of one rank.
    pub g: Fitted,
    /// G: gap a byte.
    pub per_byte: Fitted,
    /// S: bytes of a segment; 0 sends messages whole.
    pub segment: u64,
}

impl LogGp {
    fn byte_gaps(&self, bytes: f64) -> f64 {
        (bytes - 1.0).max(0.0) * self.per_byte.value
    }

    /// T = 2 o + L + (m - 1) G, not segmented (Eq. 1). In ns.
    pub fn whole(&self, bytes: u64) -> f64 {
        2.0 * self.o.value + self.l.value + self.byte_gaps(bytes as f64)
    }

    /// T = 2 o + L + (S - 1) G + (k - 1)(g + (S - 1) G), in k segments of S bytes (Eq. 2). In ns.
    pub fn segmented(&self, bytes: u64) -> f64 {
        let (k, s) = segments(bytes, self.segment);
        self.whole(0) + self.byte_gaps(s) + (k - 1) as f64 * (self.g.value + self.byte_gaps(s))
    }

    /// log P (L + 2 o - g) + (P - 1) k (g + (S - 1) G): scatter and recursive-doubling allgather alike, of `block`
    /// bytes = k S a rank (Eq. 7). In ns. For powers of two.
    pub fn scatter_or_allgather(&self, ranks: usize, block: u64) -> f64 {
        let (k, s) = segments(block, self.segment);
        let first = f64::from(ranks.max(1).ilog2()) * (self.l.value + 2.0 * self.o.value - self.g.value);
        first + (ranks as f64 - 1.0) * k as f64 * (self.g.value + self.byte_gaps(s))
    }

    /// (P - 1) k (o + (S - 1) G + max(L + o, g)): recursive-doubling allgather as section 4.1 has it (Eq. 19), which
    /// is not what Eq. 7 says of the same algorithm. In ns. For powers of two.
    pub fn allgather_of_section_4_1(&self, ranks: usize, block: u64) -> f64 {
        let (k, s) = segments(block, self.segment);
        let each = self.o.value + self.byte_gaps(s) + (self.l.value + self.o.value).max(self.g.value);
        (ranks as f64 - 1.0) * k as f64 * each
    }
}

impl Published for LogGp {
    fn name(&self) -> &'static str {
        "LogGP"
    }

    fn message(&self, bytes: u64) -> Reading {
        Reading { nanos: self.segmented(bytes), extrapolated: false }
    }
}

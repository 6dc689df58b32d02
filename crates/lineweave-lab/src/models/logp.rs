//! LogP (Culler et al. 1993): short messages by latency L, overhead o, gap g and P.
//!
//! A message is one packet; here a packet is a cache line, the least that a machine with shared memory moves. Not valid
//! for long messages, which LogGP was made for, nor where transfers share a channel.

use super::published::Published;
use lineweave_core::model::{Fitted, Reading};

/// The parameters, in ns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LogP {
    /// L: from the end of the sender's overhead to the beginning of the receiver's.
    pub l: Fitted,
    /// o: the time a processor is engaged in sending or receiving a packet, mean of the two.
    pub o: Fitted,
    /// g: least time between two packets of one rank.
    pub g: Fitted,
    /// Bytes of a packet.
    pub packet: u64,
}

impl LogP {
    /// Packets of a message.
    pub fn packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.packet.max(1)).max(1)
    }
}

impl Published for LogP {
    fn name(&self) -> &'static str {
        "LogP"
    }

    /// T(n packets) = 2 o + L + (n - 1) max(g, o) (Culler et al. 1993, section 3.3).
    fn message(&self, bytes: u64) -> Reading {
        let more = (self.packets(bytes) - 1) as f64 * self.g.value.max(self.o.value);
        Reading { nanos: 2.0 * self.o.value + self.l.value + more, extrapolated: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(l: f64, o: f64, g: f64) -> LogP {
        LogP { l: Fitted::cited(l), o: Fitted::cited(o), g: Fitted::cited(g), packet: 64 }
    }

    #[test]
    fn messages_are_trains_of_packets() {
        let m = model(6.0, 2.0, 4.0);
        assert_eq!(m.message(0).nanos, 10.0);
        assert_eq!(m.message(64).nanos, 10.0);
        assert_eq!(m.message(65).nanos, 14.0);
        assert_eq!(model(6.0, 5.0, 4.0).message(128).nanos, 21.0, "a gap below o does not count");
    }
}

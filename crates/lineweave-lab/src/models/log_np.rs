//! log_nP (Cameron, Ge & Sun 2007) and mlog_nP (Tu et al. 2012): a message as a sequence of n transfers.
//!
//! T = sum over the n transfers of max(g_i, o_i) + l_i (Rico-Gallego & Diaz-Martin Eq. 4); with contiguous messages
//! (l = 0) and equal transfers T = n o, which for n = 2 is Eq. 5. A message is a black box measured for each length: for a
//! message alone the error is nought by construction (section 3.2). Not valid where messages share a channel, nor for
//! what is not made of messages: Eq. 6 multiplies by the number of stages whatever goes on in them.

use super::published::{Published, Sum};
use lineweave_core::model::{Reading, Surface};
use lineweave_core::topology::Level;

/// One transfer on the way, each in ns by length in bytes.
#[derive(Clone, PartialEq, Debug)]
pub struct Hop {
    /// o: the processor is engaged, for a contiguous message.
    pub overhead: Surface,
    /// g: the same with contention, where that was told apart.
    pub gap: Option<Surface>,
    /// l: what a message that is not contiguous costs beside; none for contiguous ones.
    pub latency: Option<Surface>,
}

/// The transfers of a message over one channel.
#[derive(Clone, PartialEq, Debug)]
pub struct LogNp {
    /// Transfers in order; n of them.
    pub transfers: Vec<Hop>,
}

impl LogNp {
    /// log_2 P with two equal transfers of contiguous data, each `overhead` (Eq. 5).
    pub fn two(overhead: Surface) -> LogNp {
        let hop = Hop { overhead, gap: None, latency: None };
        LogNp { transfers: vec![hop.clone(), hop] }
    }

    /// 2 (P - 1) o: the sum over stages of 2^(i + 1) o, recursive-doubling allgather in units of a block's transfer
    /// (Eq. 20). In ns.
    pub fn doubling_allgather(&self, ranks: usize, block: u64) -> Reading {
        let mut sum = Sum::default();
        if let Some(hop) = self.transfers.first() {
            sum.add(hop.overhead.at(block as usize, 1), 2 * (ranks as u64).saturating_sub(1));
        }
        sum.reading()
    }
}

impl Published for LogNp {
    fn name(&self) -> &'static str {
        "log_nP"
    }

    /// T(m) by Eq. 4.
    fn message(&self, bytes: u64) -> Reading {
        let m = bytes as usize;
        let mut sum = Sum::default();
        for hop in &self.transfers {
            let overhead = hop.overhead.at(m, 1);
            let gap = hop.gap.as_ref().map(|g| g.at(m, 1)).filter(|g| g.nanos > overhead.nanos);
            sum.add(gap.unwrap_or(overhead), 1);
            if let Some(latency) = &hop.latency {
                sum.add(latency.at(m, 1), 1);
            }
        }
        sum.reading()
    }
}

/// log_nP with a channel a distance: whoever is near communicates over the near one.
#[derive(Clone, PartialEq, Debug)]
pub struct MLogNp {
    /// Channels by distance, nearest first; not empty.
    pub channels: Vec<(Level, LogNp)>,
}

impl MLogNp {
    /// The channel between ranks at this distance: that level's, or the next farther one's, or the farthest.
    pub fn channel(&self, level: Level) -> Option<&LogNp> {
        let near = self.channels.iter().find(|(l, _)| *l >= level);
        near.or(self.channels.last()).map(|(_, c)| c)
    }
}

impl Published for MLogNp {
    fn name(&self) -> &'static str {
        "mlog_nP"
    }

    /// Over the farthest channel.
    fn message(&self, bytes: u64) -> Reading {
        self.message_over(bytes, Some(Level::Machine))
    }

    fn message_over(&self, bytes: u64, level: Option<Level>) -> Reading {
        let channel = self.channel(level.unwrap_or(Level::Machine));
        channel.map_or(Reading { nanos: f64::NAN, extrapolated: true }, |c| c.message(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::{Call, Distance, Form};
    use lineweave_core::model::Fitted;

    fn line(a: f64, b: f64) -> Surface {
        Surface::line(Fitted::cited(a), Fitted::cited(b))
    }

    #[test]
    fn transfers_add_up_by_equation_4() {
        let plain = Hop { overhead: line(10.0, 0.1), gap: None, latency: None };
        let slow = Hop { gap: Some(line(50.0, 0.0)), latency: Some(line(7.0, 0.0)), ..plain.clone() };
        let m = LogNp { transfers: vec![plain, slow] };
        assert_eq!(m.message(100).nanos, 20.0 + 50.0 + 7.0);
        assert_eq!(m.message(1000).nanos, 110.0 + 110.0 + 7.0, "the larger of gap and overhead");
        assert_eq!(LogNp::two(line(10.0, 0.1)).message(100).nanos, 40.0);
    }

    /// Eq. 6, and what it leaves out: 65 ranks cost as much as 128.
    #[test]
    fn stages_are_multiplied_out() {
        let m = LogNp::two(line(10.0, 0.1));
        let at = |p| m.collective(&Call::new(Form::BinomialBcast, p, 100)).unwrap().nanos;
        assert_eq!(at(128), 7.0 * 40.0);
        assert_eq!(at(65), at(128));
        let tree = Call::new(Form::TwoSegmentTree { degree: 2 }, 8, 100);
        assert_eq!(m.collective(&tree).unwrap().nanos, 4.0 * 40.0, "h(P) 2 o, section 4.2");
        assert_eq!(m.doubling_allgather(8, 100).nanos, (2.0 + 4.0 + 8.0) * 20.0);
    }

    #[derive(Debug)]
    struct TwoNodes;

    impl Distance for TwoNodes {
        fn of(&self, hop: usize) -> Level {
            if hop < 4 {
                Level::L3
            } else {
                Level::Machine
            }
        }
    }

    /// "As this paper focuses on shared memory, mlog_nP and log_nP become equivalent."
    #[test]
    fn one_channel_makes_them_equal_and_two_do_not() {
        let near = LogNp::two(line(10.0, 0.1));
        let far = LogNp::two(line(30.0, 0.2));
        let one = MLogNp { channels: vec![(Level::Numa, near.clone())] };
        let call = Call { channel: Some(&TwoNodes), ..Call::new(Form::BinomialBcast, 8, 100) };
        assert_eq!(one.collective(&call), near.collective(&call));
        let two = MLogNp { channels: vec![(Level::L3, near), (Level::Machine, far)] };
        assert_eq!(two.collective(&call).unwrap().nanos, 2.0 * 40.0 + 100.0, "one stage of three goes far");
    }
}

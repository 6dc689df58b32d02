//! log_nP (Cameron, Ge & Sun 2007) and mlog_nP (Tu et al. 2012): a message as a sequence of n transfers.
//!
//! T = sum over the n transfers of max(g_i, o_i) + l_i (Rico-Gallego & Diaz-Martin Eq. 4); with contiguous messages
//! (l = 0) and equal transfers T = n o, which for n = 2 is Eq. 5. A message is a black box measured for each length: for a
//! message alone the error is nought by construction (section 3.2). Not valid where messages share a channel, nor for
//! what is not made of messages: Eq. 6 multiplies by the number of stages whatever goes on in them.

use super::published::Published;
use lineweave_core::model::{Reading, Surface};
use lineweave_core::topology::Level;

/// The transfers of a message over one channel: two equal ones of contiguous data, so log_2 P.
#[derive(Clone, PartialEq, Debug)]
pub struct LogNp {
    /// o: the processor is engaged in a transfer, in ns by length in bytes.
    pub overhead: Surface,
}

impl Published for LogNp {
    fn name(&self) -> &'static str {
        "log_nP"
    }

    /// T(m) = 2 o(m) (Eq. 5).
    fn message(&self, bytes: u64) -> Reading {
        let each = self.overhead.at(bytes as usize, 1);
        Reading { nanos: 2.0 * each.nanos, ..each }
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
    use crate::models::{Call, Form};
    use lineweave_core::model::Fitted;
    use lineweave_core::topology::Shape;

    fn line(a: f64, b: f64) -> LogNp {
        LogNp { overhead: Surface::line(Fitted::cited(a), Fitted::cited(b)) }
    }

    /// Eq. 6, and what it leaves out: 65 ranks cost as much as 128.
    #[test]
    fn stages_are_multiplied_out() {
        let m = line(10.0, 0.1);
        let at = |p| m.collective(&Call::new(Form::BinomialBcast, p, 100)).unwrap().nanos;
        assert_eq!(at(128), 7.0 * 40.0);
        assert_eq!(at(65), at(128));
        let tree = Call::new(Form::TwoSegmentTree { degree: 2 }, 8, 100);
        assert_eq!(m.collective(&tree).unwrap().nanos, 4.0 * 40.0, "h(P) 2 o, section 4.2");
    }

    /// "As this paper focuses on shared memory, mlog_nP and log_nP become equivalent."
    #[test]
    fn one_channel_makes_them_equal_and_two_do_not() {
        let near = line(10.0, 0.1);
        let far = line(30.0, 0.2);
        let one = MLogNp { channels: vec![(Level::Numa, near.clone())] };
        let shape = Shape::flat(8);
        let call = Call { channel: Some(&shape), ..Call::new(Form::BinomialBcast, 8, 100) };
        assert_eq!(one.collective(&call), near.collective(&call));
        let two = MLogNp { channels: vec![(Level::L3, near), (Level::Machine, far)] };
        let over = |level| two.message_over(100, Some(level)).nanos;
        assert_eq!([Level::Core, Level::L3, Level::Numa].map(over), [40.0, 40.0, 100.0]);
    }
}

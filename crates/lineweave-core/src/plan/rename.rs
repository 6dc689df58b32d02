//! A plan whose ops name other flags and places; one in which ranks have changed parts.

use super::{Carry, FlagRef, Op, Plan, Region, Space, Take};
use crate::units::Rank;

impl Op {
    /// The op with other flags and places.
    pub(super) fn through(&self, flag: impl Fn(FlagRef) -> FlagRef, space: impl Fn(Space) -> Space) -> Op {
        let region = |r: Region| Region { space: space(r.space), ..r };
        match *self {
            Op::Move { src, dst } => Op::Move { src: region(src), dst: region(dst) },
            Op::Fold { a, b, dst } => Op::Fold { a: region(a), b: region(b), dst: region(dst) },
            Op::Set { flag: f, value, carry } => {
                let carry = carry.map(|carry| match carry {
                    Carry::Bytes(bytes) => Carry::Bytes(region(bytes)),
                    Carry::Address(of) => Carry::Address(space(of)),
                });
                Op::Set { flag: flag(f), value, carry }
            }
            Op::Wait { flag: f, value, take } => {
                let take = take.map(|take| match take {
                    Take::Bytes(bytes) => Take::Bytes(region(bytes)),
                    Take::Address(of) => Take::Address(space(of)),
                });
                Op::Wait { flag: flag(f), value, take }
            }
            Op::Add { flag: f } => Op::Add { flag: flag(f) },
        }
    }
}

impl Plan {
    /// The plan in which `parts[r]` does what rank `r` does here. If its collective [can be renamed](crate::collective::Collective::can_be_renamed), a proof of this
    /// plan is one of that, but for the order of what is combined: it speaks of bytes, flags and who follows whom, and a new name changes none of these.
    #[must_use]
    pub fn renamed(&self, parts: &[usize]) -> Plan {
        let rank = |Rank(r): Rank| Rank::from(parts[r as usize]);
        let space = |space: Space| match space {
            Space::Slot { rank: r, slot } => Space::Slot { rank: rank(r), slot },
            Space::PeerIn(r) => Space::PeerIn(rank(r)),
            Space::PeerOut(r) => Space::PeerOut(rank(r)),
            Space::In | Space::Out | Space::Acc => space,
        };
        let flag = |f: FlagRef| FlagRef { home: rank(f.home), ..f };
        let mut plan = self.clone();
        plan.root = rank(self.root);
        for (part, &player) in parts.iter().enumerate() {
            plan.programs[player] = self.programs[part].iter().map(|op| op.through(flag, space)).collect();
        }
        plan
    }
}

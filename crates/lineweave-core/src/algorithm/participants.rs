//! Ranks that take part in an emission, and the places of their data.

use super::{BarrierPart, Problem};
use crate::plan::{Region, Space};
use std::ops::Range;

/// A private place whose bytes correspond to the bytes of the message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// `in`, `out` or `acc`.
    pub space: Space,
    /// Offset of byte 0 of the message.
    pub base: usize,
}

impl Place {
    /// The input buffer.
    pub const IN: Place = Place { space: Space::In, base: 0 };
    /// The output buffer.
    pub const OUT: Place = Place { space: Space::Out, base: 0 };

    /// Scratch from `base` on.
    pub fn acc(base: usize) -> Place {
        Place { space: Space::Acc, base }
    }

    /// The bytes `range` of the message as they lie here.
    pub fn at(self, range: Range<usize>) -> Region {
        Region::new(self.space, self.base + range.start..self.base + range.end)
    }
}

/// The part of a plan that one emission covers: some ranks, the root among them, and where data lies.
///
/// Bcast: the root's bytes are at `from[root]`, every other member's arrive at `to`; the root's `to` is not
/// written. Reduce: member `i` contributes `from[i]`; the result arrives at `to` of the root. Allreduce: the
/// same, and the result arrives at `to` of every member. `from[i]` may be `to`. Scan, exscan: the same, and what
/// arrives combines the members up to (before) each. Barrier: nothing moves. Collectives that exchange blocks are
/// always played by all ranks, from `in` to `out`: their [`Problem::grid`] says whose block lies where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Participants {
    /// The plan's ranks that take part, in the order the algorithm numbers them.
    pub members: Vec<usize>,
    /// Index of the root in `members`.
    pub root: usize,
    /// For each member, where its contribution lies.
    pub from: Vec<Place>,
    /// Place of the results.
    pub to: Place,
    /// Message length in bytes.
    pub bytes: usize,
    /// Part of a barrier that is emitted; `Full` for every other collective.
    pub phase: BarrierPart,
}

impl Participants {
    /// All ranks of a problem, from `in` to `out`.
    pub fn all(problem: &Problem) -> Participants {
        let ranks = problem.ranks();
        Participants {
            members: (0..ranks).collect(),
            root: problem.root,
            from: vec![Place::IN; ranks],
            to: Place::OUT,
            bytes: problem.bytes,
            phase: BarrierPart::Full,
        }
    }

    /// Returns the members at these indices, in this order and rooted at the first.
    #[must_use]
    pub fn in_order(&self, order: &[usize]) -> Participants {
        Participants {
            members: order.iter().map(|&i| self.members[i]).collect(),
            root: 0,
            from: order.iter().map(|&i| self.from[i]).collect(),
            ..*self
        }
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The rank of the member that is `v` places after the root, cyclically: virtual rank `v`.
    pub fn rank_of_virtual(&self, v: usize) -> usize {
        self.members[self.index_of_virtual(v)]
    }

    /// The ranks by virtual rank.
    pub fn virtual_ranks(&self) -> Vec<usize> {
        (0..self.len()).map(|v| self.rank_of_virtual(v)).collect()
    }

    /// The index of the member that is `v` places after the root, cyclically.
    pub fn index_of_virtual(&self, v: usize) -> usize {
        (self.root + v) % self.len()
    }
}

//! Requests for plans: all that the plans of a call depend on besides the team, and which request stands for others.

use super::peer_access::PeerAccess;
use lineweave_core::collective::{Association, Collective};
use lineweave_core::plan::Uneven;
use lineweave_core::units::LINE;
use std::sync::Arc;

/// Lengths of a call's blocks, or of its one message, in bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Lengths {
    Even(usize),
    /// One for each rank, or for each pair of ranks.
    Uneven(Arc<[usize]>),
}

/// All that the plans of a call depend on besides the team.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PlanRequest {
    pub collective: Collective,
    pub lengths: Lengths,
    pub grain: usize,
    pub association: Association,
    pub root: usize,
    pub access: PeerAccess,
    /// True if its plans may be cut for shorter ones, or it may be carried out by such a plan.
    pub cut: bool,
}

/// The length that is chosen for, and stands for those from the one before it on: each of up to a line, then four from one power of two elements to the
/// next.
pub(super) fn alike(bytes: usize, grain: usize) -> usize {
    in_steps(bytes, grain, 2).unwrap_or(bytes)
}

/// The length at the end of a step, of which there are `1 << log` from one power of two elements to the next; nothing up to a line, where each length
/// is of its own.
fn in_steps(bytes: usize, grain: usize, log: u32) -> Option<usize> {
    let elements = bytes / grain;
    let many = bytes > LINE && elements >= 8;
    many.then(|| elements.next_multiple_of(1 << elements.ilog2().saturating_sub(log)) * grain)
}

/// The longest length of a class; nothing where each length is of its own.
fn class_end(bytes: usize, grain: usize) -> Option<usize> {
    in_steps(bytes, grain, if bytes > LONG { 4 } else { 2 })
}

/// Length in bytes from which moving bytes takes longer than exchanging flags; beyond it, classes are closer together.
const LONG: usize = 16 << 10;
/// Shorter blocks have plans of their own: where they touch, several are copied at once, which a plan that may be cut has to do one by one.
const LONG_BLOCK: usize = 1 << 10;

impl PlanRequest {
    /// Returns the bytes of the message, or of the longest block.
    pub fn bytes(&self) -> usize {
        match &self.lengths {
            Lengths::Even(bytes) => *bytes,
            Lengths::Uneven(counts) => counts.iter().copied().max().unwrap_or(0),
        }
    }

    /// Returns the request with even blocks of so many bytes in place of its own.
    pub fn of_bytes(&self, bytes: usize) -> PlanRequest {
        PlanRequest { lengths: Lengths::Even(bytes), ..*self }
    }

    /// Returns the request for plans of these lengths alone, which are not cut.
    pub fn whole(&self) -> PlanRequest {
        PlanRequest { cut: false, ..self.clone() }
    }

    /// Returns the request of the class whose plans carry this one out, being cut for it: that for the longest length of the class. `None` if it has plans
    /// of its own. Whatever passes through boxes may do so as if all blocks were as long as the longest, so at least half of that has to be there.
    pub fn class(&self) -> Option<PlanRequest> {
        let longest = self.bytes();
        let (worth, end) = match &self.lengths {
            Lengths::Even(bytes) => {
                (!self.collective.has_blocks() || *bytes > LONG_BLOCK, class_end(longest, self.grain))
            }
            // Blocks of up to a line are one class.
            Lengths::Uneven(counts) => {
                let alone = || longest.max(LINE.next_multiple_of(self.grain));
                (Uneven::fill_half(counts), Some(class_end(longest, self.grain).unwrap_or_else(alone)))
            }
        };
        end.filter(|_| self.cut && worth).map(|bytes| self.of_bytes(bytes))
    }

    /// Returns the blocks that differ in length, if they do.
    pub fn blocks(&self, ranks: usize) -> Option<Uneven> {
        match (&self.lengths, self.collective) {
            (Lengths::Even(_), _) => None,
            (Lengths::Uneven(counts), Collective::Alltoall) => Some(Uneven::by_pair(ranks, counts.to_vec())),
            (Lengths::Uneven(counts), _) => Some(Uneven::by_rank(counts.to_vec())),
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn lengths_that_stand_for_others_are_few_and_stand_for_themselves() {
        let stand = |grain: usize, most: usize| {
            let lengths = (0..most).step_by(grain).map(|bytes| alike(bytes, grain));
            lengths.collect::<std::collections::BTreeSet<_>>()
        };
        assert!(stand(8, 8000).len() <= 8 + 4 * 7 + 1);
        for grain in [1, 3, 8, 24] {
            for &bytes in &stand(grain, 1 << 14) {
                assert_eq!((bytes % grain, alike(bytes, grain)), (0, bytes), "grain {grain}");
            }
            assert!((0..1 << 14)
                .step_by(grain)
                .all(|bytes| (bytes..=bytes + bytes / 4 + grain).contains(&alike(bytes, grain))));
        }
        for power in 0..40 {
            assert_eq!(alike(1 << power, 1), 1 << power);
        }
    }

    #[test]
    fn blocks_that_differ_are_of_the_class_of_the_longest_and_short_ones_of_one() {
        let class = |counts: &[usize], grain: usize, cut: bool| {
            let lengths = Lengths::Uneven(counts.into());
            let request = PlanRequest {
                collective: Collective::Allgather,
                lengths,
                grain,
                association: Association::Free,
                root: 0,
                access: PeerAccess::None,
                cut,
            };
            request.class().map(|class| class.lengths)
        };
        let even = |bytes| Some(Lengths::Even(bytes));
        assert_eq!(class(&[8, 16], 8, true), class(&[64, 0], 8, true));
        assert_eq!(class(&[8, 16], 8, true), even(LINE));
        assert_eq!((class(&[600, 584], 8, true), class(&[520, 592], 8, true)), (even(640), even(640)));
        assert_eq!((class(&[600, 0, 0], 8, true), class(&[8, 16], 8, false)), (None, None));
        // An element may be longer than a line.
        assert_eq!(class(&[192, 96], 96, true), even(192));
        assert_eq!(class(&[24, 0], 24, true), even(72));
    }
}

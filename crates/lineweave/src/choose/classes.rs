//! Classes of lengths: which one stands for others.

use super::proven::Key;
use lineweave_core::units::LINE;

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

impl Key {
    /// The longest call of the class whose plans carry this one out, being cut for it; nothing if it has plans of its own.
    pub(crate) fn class(&self) -> Option<Key> {
        let worth = !self.collective.has_blocks() || self.bytes > LONG_BLOCK;
        let bytes = class_end(self.bytes, self.grain).filter(|_| self.cut && worth)?;
        Some(Key { bytes, ..*self })
    }

    /// As `class`, for calls whose blocks differ in length, the longest of which is this one's: all those of up to a line are one class.
    pub(super) fn class_of_uneven(&self) -> Option<Key> {
        let alone = || self.bytes.max(LINE.next_multiple_of(self.grain));
        let bytes = class_end(self.bytes, self.grain).unwrap_or_else(alone);
        self.cut.then_some(Key { bytes, ..*self })
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
        let uneven = |counts: Vec<usize>, grain| {
            let collective = lineweave_core::collective::Collective::Allgather;
            let association = lineweave_core::collective::Association::Free;
            let access = super::super::PeerAccess::None;
            super::super::CountVector {
                collective,
                grain,
                association,
                root: 0,
                access,
                counts: counts.into(),
            }
        };
        let class = |counts: &[usize]| uneven(counts.to_vec(), 8).class(false).map(|key| key.bytes);
        assert_eq!(class(&[8, 16]), class(&[64, 0]));
        assert_eq!(class(&[8, 16]), Some(LINE));
        assert_eq!((class(&[600, 584]), class(&[520, 592])), (Some(640), Some(640)));
        assert_eq!((class(&[600, 0, 0]), uneven(vec![8, 16], 8).class(true)), (None, None));
        // An element may be longer than a line.
        assert_eq!(uneven(vec![192, 96], 96).class(false).map(|key| key.bytes), Some(192));
        assert_eq!(uneven(vec![24, 0], 24).class(false).map(|key| key.bytes), Some(72));
    }
}

//! A plan of which a message, or blocks, shorter than its own are carried out.
//!
//! Collectives treat every element alike, so leaving elements out leaves the others as they are. A plan is *cut* to `bytes` by leaving out of each
//! op that touches callers' buffers what lies behind them there; all other ops, and all flags, stay. Where blocks lie side by side they may
//! also be moved, each as a whole, and cut to a length of its own each. That is right for every plan that was proved and of which [`Proof::shortens`](crate::verify::Proof) holds:
//!
//! - *Order.* What the cut plan accesses the whole one accesses as well, in the same order, so nothing new can meet.
//! - *Result.* `shortens` says that bytes at an offset of a caller's buffer (of a block) belong to that byte of the message (of that block). So an op
//!   that is cut does without elements behind the end and no others. By induction over the ops, elements before the end are everywhere
//!   what they are in the whole plan. Those behind it may be anything in slots and scratch, and reach no caller's buffer.
//! - *Progress* and *shape* speak of flags and borders, which are the same or nearer.

use super::{Blocks, Grid, Op, Plan, Region, Space, Uneven};
use std::sync::Arc;

impl Plan {
    /// Bytes between the starts of blocks in callers' buffers; more than any buffer has where they hold a message. Nothing where blocks
    /// touch, or have lengths of their own: such a plan cannot be cut.
    pub fn pitch(&self) -> Option<usize> {
        match self.blocks {
            _ if !self.collective.has_blocks() => Some(usize::MAX),
            Blocks::Apart(pitch) if pitch > self.bytes => Some(pitch),
            Blocks::Dense | Blocks::Apart(_) | Blocks::Uneven(_) => None,
        }
    }

    /// The plan for a message, or blocks, of `bytes` bytes, where blocks lie `pitch` bytes apart. The engine cuts what it compiled; this is what that
    /// is tested against. Nothing if it cannot be cut.
    pub fn cut(&self, bytes: usize, pitch: usize) -> Option<Plan> {
        let whole = self.pitch()?;
        let at = |_: usize, r: &Region| {
            let within = r.offset % whole;
            Region {
                offset: r.offset / whole * pitch + within,
                len: bytes.saturating_sub(within).min(r.len),
                ..*r
            }
        };
        let blocks = if self.collective.has_blocks() { Blocks::Apart(pitch) } else { Blocks::Dense };
        Some(self.with_regions(bytes, blocks, at))
    }

    /// As [`Plan::cut`], for blocks of different lengths, none longer than those of the plan.
    pub fn cut_to(&self, uneven: Uneven) -> Option<Plan> {
        let whole = self.pitch().filter(|_| self.collective.has_blocks())?;
        let (bytes, blocks) = (uneven.longest(), Blocks::Uneven(Arc::new(uneven)));
        let (collective, ranks, root) = (self.collective, self.ranks, self.root.index());
        let grid = Grid { collective, ranks, root, bytes, blocks: &blocks };
        let at = |rank: usize, r: &Region| {
            let (block, within) = (r.offset / whole, r.offset % whole);
            let place = grid.place(rank, r.space, block);
            let len = place.len().saturating_sub(within).min(r.len);
            Region { offset: place.start + within, len, ..*r }
        };
        Some(self.with_regions(bytes, blocks.clone(), at))
    }

    /// With regions of callers' buffers of each rank's ops as `at` says, and no op on more bytes than the shortest of its regions.
    fn with_regions(&self, bytes: usize, blocks: Blocks, at: impl Fn(usize, &Region) -> Region) -> Plan {
        let cut = |rank: usize, r: &Region| match r.space {
            Space::In | Space::Out | Space::PeerIn(_) | Space::PeerOut(_) => at(rank, r),
            Space::Acc | Space::Slot { .. } => *r,
        };
        let op = |rank: usize, op: &Op| {
            let mut op = *op;
            op.regions_mut().for_each(|r| *r = cut(rank, r));
            let shortest = op.regions().map(|r| r.len).min().unwrap_or(0);
            op.regions_mut().for_each(|r| r.len = shortest);
            op
        };
        let of_rank = |(rank, program): (usize, &Vec<Op>)| program.iter().map(|o| op(rank, o)).collect();
        let programs = self.programs.iter().enumerate().map(of_rank).collect();
        Plan { bytes, blocks, programs, ..self.clone() }
    }
}

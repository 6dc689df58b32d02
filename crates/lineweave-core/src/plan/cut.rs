//! A plan of which a message, or blocks, shorter than its own are carried out.
//!
//! Collectives treat every element alike, so leaving elements out leaves the others as they are. A plan is *cut* to `bytes` by leaving out of each
//! op that touches callers' buffers what lies behind them there; all other ops, and all flags, stay. Where blocks lie side by side they may
//! also be moved, each as a whole. That is right for every plan that was proved and of which [`Proof::shortens`](crate::verify::Proof) holds:
//!
//! - *Order.* What the cut plan accesses the whole one accesses as well, in the same order, so nothing new can meet.
//! - *Result.* `shortens` says that bytes at an offset of a caller's buffer (of a block) belong to that byte of the message (of the block). So an op
//!   that is cut does without elements behind the end and no others. By induction over the ops, elements before the end are everywhere
//!   what they are in the whole plan. Those behind it may be anything in slots and scratch, and reach no caller's buffer.
//! - *Progress* and *shape* speak of flags and borders, which are the same or nearer.

use super::{Blocks, Carry, Op, Plan, Region, Space, Take};

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
        let place = |r: &Region| Region { offset: r.offset / whole * pitch + r.offset % whole, ..*r };
        let left = |r: &Region| match r.space {
            Space::In | Space::Out | Space::PeerIn(_) | Space::PeerOut(_) => {
                bytes.saturating_sub(r.offset % whole).min(r.len)
            }
            Space::Acc | Space::Slot { .. } => r.len,
        };
        let users = |r: &Region| !matches!(r.space, Space::Acc | Space::Slot { .. });
        let one = |r: &Region, len: usize| Region { len, ..if users(r) { place(r) } else { *r } };
        let op = |op: &Op| match *op {
            Op::Move { src, dst } => {
                let len = left(&src).min(left(&dst));
                Op::Move { src: one(&src, len), dst: one(&dst, len) }
            }
            Op::Fold { a, b, dst } => {
                let len = left(&a).min(left(&b)).min(left(&dst));
                Op::Fold { a: one(&a, len), b: one(&b, len), dst: one(&dst, len) }
            }
            Op::Set { flag, value, carry: Some(Carry::Bytes(r)) } => {
                Op::Set { flag, value, carry: Some(Carry::Bytes(one(&r, left(&r)))) }
            }
            Op::Wait { flag, value, take: Some(Take::Bytes(r)) } => {
                Op::Wait { flag, value, take: Some(Take::Bytes(one(&r, left(&r)))) }
            }
            Op::Set { .. } | Op::Wait { .. } | Op::Add { .. } => *op,
        };
        let programs = self.programs.iter().map(|program| program.iter().map(op).collect()).collect();
        let blocks = if self.collective.has_blocks() { Blocks::Apart(pitch) } else { Blocks::Dense };
        Some(Plan { bytes, blocks, programs, ..self.clone() })
    }
}

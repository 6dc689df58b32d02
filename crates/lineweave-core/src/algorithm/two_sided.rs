//! Blocking send and receive through message buffers, as RCCE has them: what its collectives are made of.
//!
//! Petrovic et al. 2012, sections 1.1 and 5; Mattson & van der Wijngaart 2010.
//!
//! 1. The sender puts a chunk into its own box.
//! 2. It raises the flag `sent` that the receiver has for this sender.
//! 3. The receiver, which waits for it, takes it down, and gets the chunk from the sender's box.
//! 4. It raises the flag `ready` that the sender has for this receiver.
//! 5. The sender, which waits for it, takes it down and goes on.
//!
//! RCCE's flags are set and unset; here they count and stay. What taking one down costs is written as raising
//! a flag of the rank's own, `unset`, that nobody waits for; `unset=no` leaves that out.
//!
//! With `slots = 2` (iRCCE's pipelined transfer) the sender puts the next chunk while the receiver gets this one,
//! and waits for `ready` when it needs the slot again, and at the end. Flags count the chunks of a pair of
//! ranks and are never reset. A box is free when a send returns, so runs follow each other without more.

use super::pieces::LAYOUT;
use super::ranks::chunks;
use super::trees::boxed;
use super::{ParamSpec, Participants};
use crate::plan::{Builder, FlagArrayId, Layout, Params, PlanError, Region};
use std::collections::BTreeMap;

/// Payload of RCCE's message buffer with flags of a byte: 251 lines of 32 bytes.
const PAYLOAD: usize = 251 * 32;

/// Parameters of every algorithm over send and receive.
pub(super) const PARAMS: &[ParamSpec] = &[
    ParamSpec { name: "chunk", default: "8032", about: "bytes that a box holds at once, all slots together" },
    ParamSpec {
        name: "slots",
        default: "1",
        about: "chunks of a box: 1 as RCCE, 2 as iRCCE's pipelined transfer",
    },
    ParamSpec {
        name: "unset",
        default: "yes",
        about: "yes: a flag that was waited for is taken down, as in RCCE; no: flags only count",
    },
    LAYOUT,
];

/// A way to send and receive between any two ranks of a plan.
#[derive(Debug)]
pub(super) struct TwoSided {
    sent: FlagArrayId,
    ready: FlagArrayId,
    /// Flags that ranks take down count in these, and how often each rank has.
    unset: Option<FlagArrayId>,
    taken: Vec<i32>,
    slots: Vec<u16>,
    chunk: usize,
    /// For each pair, the chunks so far.
    count: BTreeMap<(usize, usize), i32>,
}

impl TwoSided {
    /// Flags for every pair of participants, and slots for messages of at most `longest` bytes.
    pub fn new(b: &mut Builder, params: &Params, longest: usize) -> Result<TwoSided, PlanError> {
        let slots = params.int("slots", 1, 1..17)?;
        let grain = b.grain();
        let payload = params.int("chunk", PAYLOAD, 1..usize::MAX)?;
        let layout = params.read("layout", Layout::Alone)?;
        // Slots begin on lines, and hold an element at least.
        let whole = (payload / slots / grain * grain).max(grain);
        let lines = if slots > 1 && whole > 64 { whole / 32 * 32 / grain * grain } else { whole };
        let chunk = lines.max(grain);
        let ranks = b.ranks();
        let unset = params.one_of("unset", true, &[("yes", true), ("no", false)])?;
        Ok(TwoSided {
            sent: b.flags("sent", layout, ranks),
            ready: b.flags("ready", layout, ranks),
            unset: unset.then(|| b.flags("unset", layout, 1)),
            taken: vec![0; ranks],
            slots: (0..slots).map(|_| b.slot(chunk.min(longest))).collect(),
            chunk,
            count: BTreeMap::new(),
        })
    }

    /// Appends to `from` that it sends `src` to `to`, and to `to` that it receives it in `dst`. Both block: the
    /// order of calls is the order in which a rank's sends and receives happen.
    pub fn message(&mut self, b: &mut Builder, from: usize, to: usize, src: Region, dst: Region) {
        if src.len == 0 || from == to {
            return;
        }
        let count = self.count.entry((from, to)).or_insert(0);
        let (sent, ready) = (self.sent.at(to, from), self.ready.at(from, to));
        let slots = self.slots.len();
        let parts = chunks(0..src.len, self.chunk, b.grain());
        for (i, part) in parts.iter().enumerate() {
            let of = |whole: Region| Region { offset: whole.offset + part.start, len: part.len(), ..whole };
            let place = boxed(from, self.slots[i % slots], 0..part.len());
            *count += 1;
            if i >= slots {
                b.wait(from, ready, *count - slots as i32);
                take_down(b, self.unset, &mut self.taken, from);
            }
            b.mov(from, of(src), place); // 1.
            b.set(from, sent, *count); // 2.
            b.wait(to, sent, *count); // 3.
            take_down(b, self.unset, &mut self.taken, to);
            b.mov(to, place, of(dst));
            b.set(to, ready, *count); // 4.
        }
        b.wait(from, ready, *count); // 5.
        take_down(b, self.unset, &mut self.taken, from);
    }
}

fn take_down(b: &mut Builder, unset: Option<FlagArrayId>, taken: &mut [i32], rank: usize) {
    if let Some(unset) = unset {
        taken[rank] += 1;
        b.set(rank, unset.at(rank, 0), taken[rank]);
    }
}

/// Sends down a binary recursive tree: the ranks `lo .. hi` of which `lo` has everything are split in halves, and
/// `lo` sends to the first of the second half; then each half does the same. `send(from, to, hi)` is called
/// with virtual ranks in an order that each of them can follow.
pub(super) fn halves(lo: usize, hi: usize, send: &mut impl FnMut(usize, usize, usize)) {
    if hi - lo < 2 {
        return;
    }
    let mid = lo + (hi - lo).div_ceil(2);
    send(lo, mid, hi);
    halves(lo, mid, send);
    halves(mid, hi, send);
}

/// Returns the place of the message at virtual rank `v` of a broadcast.
pub(super) fn place(s: &Participants, v: usize) -> super::Place {
    if v == 0 {
        s.from[s.root]
    } else {
        s.to
    }
}

//! Send and receive through message buffers that are split among all senders, as RCKMPI's channel has them, and what
//! MPICH's algorithms are made of over it.
//!
//! Comprés Ureña, Riepen & Konow 2011: each core's message buffer has a section for every other core, 5 lines at 48
//! ranks. Senders write into the receiver's buffer, where OC-Bcast and RCCE read from the sender's.
//!
//! 1. The sender waits until its section at the receiver is free, and puts a packet there from its memory.
//! 2. It raises the flag `sent` that the receiver has for this sender.
//! 3. The receiver, which waits for it, copies the packet from its own buffer to its memory.
//! 4. It raises the flag `ready` that the sender has for this receiver.
//!
//! With several slots a section, steps 1 and 3 of packets that follow each other overlap, as in MPICH's channel of shared memory
//! (Rico-Gallego & Diaz-Martin 2015, Fig. 6). A send is over when its last packet is written. At the end of a run ranks wait until all their sections are free, so
//! that runs follow each other without more.

use super::pieces::joined;
pub(super) use super::pieces::LAYOUT;
use super::ranks::{block, chunks};
use super::trees::boxed;
use super::{ParamSpec, Participants, Place};
use crate::plan::{Builder, FlagArrayId, Layout, Params, PlanError, Region};
use std::collections::BTreeMap;
use std::ops::Range;

/// Parameters of every algorithm over split boxes.
pub(super) const PARAMS: &[ParamSpec] = &[
    CHUNK,
    SLOTS,
    ParamSpec {
        name: "method",
        default: "auto",
        about: "auto, as MPICH chooses by length; or short or long",
    },
    LAYOUT,
];

/// The parameter `chunk`.
pub(super) const CHUNK: ParamSpec =
    ParamSpec { name: "chunk", default: "160", about: "bytes of a packet from one sender" };
/// The parameter `slots`.
pub(super) const SLOTS: ParamSpec =
    ParamSpec { name: "slots", default: "1", about: "packets that a section holds at once" };

/// Returns whether MPICH's algorithm for short messages is to be taken, where it is for up to `most` bytes.
pub(super) fn short(params: &Params, bytes: usize, most: usize) -> Result<bool, PlanError> {
    let auto = bytes <= most;
    params.one_of("method", auto, &[("auto", auto), ("short", true), ("long", false)])
}

/// A way to send and receive between any two ranks of a plan.
#[derive(Debug)]
pub(super) struct Channel {
    sent: FlagArrayId,
    ready: FlagArrayId,
    /// For each sender the slots of its section.
    sections: Vec<Vec<u16>>,
    chunk: usize,
    /// Packets from a rank to a rank so far, as sender and as receiver count them.
    given: BTreeMap<(usize, usize), i32>,
    taken: BTreeMap<(usize, usize), i32>,
}

/// Peer and region of a message that a rank sends or receives.
pub(super) type Message = (usize, Region);

impl Channel {
    /// Sections for every rank of the plan, for messages of at most `longest` bytes.
    pub fn new(b: &mut Builder, params: &Params, longest: usize) -> Result<Channel, PlanError> {
        let grain = b.grain();
        let chunk = (params.int("chunk", 160, 1..usize::MAX)? / grain).max(1) * grain;
        let slots = params.int("slots", 1, 1..65)?;
        let layout = params.read("layout", Layout::Alone)?;
        let ranks = b.ranks();
        Ok(Channel {
            sent: b.flags("sent", layout, ranks),
            ready: b.flags("ready", layout, ranks),
            sections: (0..ranks).map(|_| (0..slots).map(|_| b.slot(chunk.min(longest))).collect()).collect(),
            chunk,
            given: BTreeMap::new(),
            taken: BTreeMap::new(),
        })
    }

    /// Appends to `rank` that it sends one message and receives another at once, packet by packet in turn.
    pub fn exchange(&mut self, b: &mut Builder, rank: usize, to: Option<Message>, from: Option<Message>) {
        let packets =
            |m: Option<Message>| m.map_or_else(Vec::new, |m| chunks(0..m.1.len, self.chunk, b.grain()));
        let (out, into) = (packets(to), packets(from));
        let part = |whole: Region, part: &Range<usize>| Region {
            offset: whole.offset + part.start,
            len: part.len(),
            ..whole
        };
        for i in 0..out.len().max(into.len()) {
            if let (Some((peer, src)), Some(range)) = (to, out.get(i)) {
                let n = self.given.entry((rank, peer)).or_insert(0);
                let slots = &self.sections[rank];
                let free = *n - slots.len() as i32 + 1;
                if free > 0 {
                    b.wait(rank, self.ready.at(rank, peer), free);
                }
                let slot = slots[*n as usize % slots.len()];
                *n += 1;
                b.mov(rank, part(src, range), boxed(peer, slot, 0..range.len()));
                b.set(rank, self.sent.at(peer, rank), *n);
            }
            if let (Some((peer, dst)), Some(range)) = (from, into.get(i)) {
                let n = self.taken.entry((peer, rank)).or_insert(0);
                let slot = self.sections[peer][*n as usize % self.sections[peer].len()];
                *n += 1;
                b.wait(rank, self.sent.at(rank, peer), *n);
                b.mov(rank, boxed(rank, slot, 0..range.len()), part(dst, range));
                b.set(rank, self.ready.at(peer, rank), *n);
            }
        }
    }

    /// A message from rank to rank.
    pub fn message(&mut self, b: &mut Builder, from: usize, to: usize, src: Region, dst: Region) {
        self.exchange(b, from, Some((to, src)), None);
        self.exchange(b, to, None, Some((from, dst)));
    }

    /// Appends messages of pieces that lie apart, joined where they do not.
    pub fn pieces(
        &mut self,
        b: &mut Builder,
        from: usize,
        to: usize,
        pieces: impl IntoIterator<Item = [Region; 2]>,
    ) {
        for [src, dst] in joined(pieces) {
            self.message(b, from, to, src, dst);
        }
    }

    /// Every rank waits until what it sent has been taken.
    pub fn finish(self, b: &mut Builder) {
        for ((from, to), n) in self.given {
            b.wait(from, self.ready.at(from, to), n);
        }
    }
}

/// A reduction by powers of two (Thakur, Rabenseifner & Gropp 2005, as MPICH has it): with rem = P - 2^q, of the first
/// 2 rem members those of even number give their contribution to the next one and take no further part.
pub(super) struct Doubling<'a> {
    /// The members.
    pub s: &'a Participants,
    /// Channel through which the members exchange messages.
    pub link: Channel,
    /// Place of received contributions until they are folded.
    received: Place,
    /// The members that take part, by their new number.
    pub players: Vec<usize>,
}

impl<'a> Doubling<'a> {
    /// Contributions go to `out`, and the first fold is done.
    pub fn new(b: &mut Builder, s: &'a Participants, link: Channel) -> Doubling<'a> {
        let p = s.len();
        let rem = p - (1 << p.ilog2());
        let players = (0..p).filter(|&i| i >= 2 * rem || i % 2 == 1).collect();
        let received = Place::acc(b.acc(s.bytes));
        let mut all = Doubling { s, link, received, players };
        for i in 0..p {
            b.mov(s.members[i], s.from[i].at(0..s.bytes), s.to.at(0..s.bytes));
        }
        for guest in (0..2 * rem).step_by(2) {
            let whole = 0..s.bytes;
            let (src, dst) = (s.to.at(whole.clone()), received.at(whole.clone()));
            all.link.message(b, s.members[guest], s.members[guest + 1], src, dst);
            all.fold(b, guest + 1, guest, whole);
        }
        all
    }

    /// The guests are given the result.
    pub fn tell_guests(&mut self, b: &mut Builder) {
        let whole = self.s.to.at(0..self.s.bytes);
        for guest in 0..self.s.len() {
            if !self.players.contains(&guest) {
                let host = self.s.members[guest + 1];
                self.link.message(b, host, self.s.members[guest], whole, whole);
            }
        }
    }

    /// Folds the contribution received from `other` with that of member `i`, the lower member's on the left.
    fn fold(&self, b: &mut Builder, i: usize, other: usize, range: Range<usize>) {
        let (own, came) = (self.s.to.at(range.clone()), self.received.at(range));
        let (left, right) = if other < i { (came, own) } else { (own, came) };
        b.fold(self.s.members[i], left, right, own);
    }

    /// Every player exchanges everything with the one at each power of two: recursive doubling.
    pub fn everything(&mut self, b: &mut Builder) {
        let whole = 0..self.s.bytes;
        for mask in self.masks() {
            for v in 0..self.players.len() {
                let (i, other) = (self.players[v], self.players[v ^ mask]);
                let peer = self.s.members[other];
                let (src, dst) = (self.s.to.at(whole.clone()), self.received.at(whole.clone()));
                self.link.exchange(b, self.s.members[i], Some((peer, src)), Some((peer, dst)));
                self.fold(b, i, other, whole.clone());
            }
        }
    }

    fn masks(&self) -> Vec<usize> {
        (0..self.players.len().ilog2()).map(|r| 1 << r).collect()
    }

    /// Blocks of the message, one a player.
    pub fn blocks(&self, b: &Builder, blocks: Range<usize>) -> Range<usize> {
        let of = |j: usize| block(self.s.bytes, b.grain(), self.players.len(), j);
        of(blocks.start).start..of(blocks.end - 1).end
    }

    /// Halves are exchanged and folded until each player has the sum of its own block: recursive halving.
    pub fn scatter(&mut self, b: &mut Builder) {
        let count = self.players.len();
        for half in self.masks().into_iter().rev() {
            for v in 0..count {
                // The blocks that v still has, of which it keeps the half with its own.
                let start = v / (2 * half) * (2 * half);
                let halves = [start..start + half, start + half..start + 2 * half];
                let mine = usize::from(v & half != 0);
                let (keep, give) =
                    (self.blocks(b, halves[mine].clone()), self.blocks(b, halves[1 - mine].clone()));
                let (i, other) = (self.players[v], self.players[v ^ half]);
                let peer = self.s.members[other];
                let (src, dst) = (self.s.to.at(give), self.received.at(keep.clone()));
                self.link.exchange(b, self.s.members[i], Some((peer, src)), Some((peer, dst)));
                self.fold(b, i, other, keep);
            }
        }
    }

    /// The blocks are exchanged, ever more of them: recursive doubling.
    pub fn gather(&mut self, b: &mut Builder) {
        for have in self.masks() {
            for v in 0..self.players.len() {
                let start = |v: usize| v / have * have;
                let (mine, theirs) = (start(v), start(v ^ have));
                let (give, take) = (self.blocks(b, mine..mine + have), self.blocks(b, theirs..theirs + have));
                let peer = self.s.members[self.players[v ^ have]];
                let (src, dst) = (self.s.to.at(give), self.s.to.at(take));
                self.link.exchange(b, self.s.members[self.players[v]], Some((peer, src)), Some((peer, dst)));
            }
        }
    }
}

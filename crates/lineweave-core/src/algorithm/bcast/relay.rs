//! Common part of all tree broadcasts through boxes: the way of a message, whole or in chunks, down a tree.
//!
//! 1. A rank learns that chunk `i` is ready, by a flag of its own or by one that it polls with its siblings.
//! 2. With binary notification it tells up to two of its siblings, or as many as `siblings` says.
//! 3. A rank with children copies the chunk from its parent's box to its own and tells its children; a leaf
//!    copies it straight to where it goes (or, where that is asked for, as the others do).
//! 4. It tells its parent that the chunk has been copied (only where slots are reused).
//! 5. A rank with children copies the chunk to where it goes.
//!
//! A message that fits the lines of the flags travels in them instead, piece by piece.
//!
//! With `slots = 0` every chunk has a place of its own, nothing is acknowledged, and each run takes the next
//! bank. With `slots >= 1` chunk `i` goes through slot `i mod slots`; before it is written, the children's
//! acknowledgements of chunk `i - slots` are waited for, in this run or from the previous one, so a run ends
//! without waiting for anybody.

use super::super::pieces::{value, wait_free};
use super::super::ranks::chunks;
use super::super::trees::{boxed, Tree};
use super::super::{Participants, Place};
use super::settings::{Notify, Source};
use crate::plan::{Builder, FlagArrayId, FlagRef, Layout, Params, PlanError, Region};
use std::ops::Range;

/// Settings for the way of a message down a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Relay {
    /// Lines of the flags.
    pub layout: Layout,
    /// Notification scheme: the ranks that raise the flags.
    pub notify: Notify,
    /// Most flags that a rank raises where siblings pass a notification on.
    pub siblings: usize,
    /// A message of at most this many flag payloads travels in the flags' lines.
    pub carry: usize,
    /// Rank whose box is copied from.
    pub source: Source,
    /// Bytes of a chunk; 0 for the whole message.
    pub chunk: usize,
    /// Slots that chunks take turns in; 0 for a place for each.
    pub slots: usize,
    /// Acknowledgements live at the parent, one line a child, rather than at the child.
    pub done_at_parent: bool,
    /// Step 5 reads the parent's box again rather than the rank's own.
    pub twice: bool,
    /// A leaf copies through its own box too.
    pub leaf_boxed: bool,
}

impl Relay {
    /// A flag a child, the whole message at once, nothing acknowledged.
    pub const PLAIN: Relay = Relay {
        layout: Layout::Alone,
        notify: Notify::Each,
        siblings: 2,
        carry: 1,
        source: Source::Parent,
        chunk: 0,
        slots: 0,
        done_at_parent: false,
        twice: false,
        leaf_boxed: false,
    };

    /// These settings where `params` does not say otherwise.
    pub fn read(self, params: &Params) -> Result<Relay, PlanError> {
        let sources = [("parent", Source::Parent), ("root", Source::Root)];
        let relay = Relay {
            layout: params.read("layout", self.layout)?,
            notify: Notify::read(params, self.notify)?,
            siblings: params.int("siblings", self.siblings, 1..1025)?,
            carry: params.int("carry", self.carry, 0..65)?,
            source: params.one_of("source", self.source, &sources)?,
            chunk: params.int("chunk", self.chunk, 0..usize::MAX)?,
            slots: params.int("slots", self.slots, 0..1025)?,
            ..self
        };
        if relay.source == Source::Root && relay.slots > 0 {
            let expected = "0 with source=root, where slots are not acknowledged";
            return Err(PlanError::bad("slots", relay.slots, expected));
        }
        Ok(relay)
    }

    /// The pieces of a message that travels in its flags' lines, or none when it does not.
    fn pieces(&self, bytes: usize) -> Option<Vec<Range<usize>>> {
        let payload = self.layout.payload();
        if payload == 0 || self.carry == 0 || bytes > payload * self.carry {
            return None;
        }
        Some(chunks(0..bytes, payload, 1))
    }

    /// Emits the broadcast down `tree`, whose virtual rank `v` is participant `members[v]`.
    pub fn emit(&self, b: &mut Builder, s: &Participants, tree: &Tree, members: &[usize]) {
        if s.bytes == 0 || tree.len() < 2 {
            return;
        }
        let at = |v: usize| if v == 0 { s.from[members[0]] } else { s.to };
        let ranks: Vec<usize> = members.iter().map(|&i| s.members[i]).collect();
        let positions = positions(tree);
        let (notify, most) = (self.notify, self.siblings);
        let links = |ready| Links { ready, notify, most, tree, ranks: &ranks, positions: &positions };
        if let Some(pieces) = self.pieces(s.bytes) {
            // Steps 1 to 3 with the payload in the line.
            b.ring();
            let ready = b.flags("ready", self.layout, pieces.len());
            let links = links(ready);
            for (v, &rank) in ranks.iter().enumerate() {
                for (i, piece) in pieces.iter().enumerate() {
                    let here = at(v).at(piece.clone());
                    if let Some(flag) = links.own(v, i) {
                        b.wait_taking(rank, flag, 1, here);
                    }
                    for flag in links.siblings(v, i).into_iter().chain(links.children(v, i)) {
                        b.set_carrying(rank, flag, 1, here);
                    }
                }
            }
            return;
        }
        match (self.source, self.slots) {
            (Source::Root, _) => self.notify_only(b, s, &ranks, &links, &at),
            (Source::Parent, _) => self.stream(b, s, &ranks, &links, &at),
        }
    }

    /// The tree only notifies; everybody copies out of the root's box.
    fn notify_only<'a>(
        &self,
        b: &mut Builder,
        s: &Participants,
        ranks: &[usize],
        links: &dyn Fn(FlagArrayId) -> Links<'a>,
        at: &dyn Fn(usize) -> Place,
    ) {
        b.ring();
        let links = links(b.flags("ready", self.layout, 1));
        let slot = b.slot(s.bytes);
        for (v, &rank) in ranks.iter().enumerate() {
            for (i, chunk) in self.split(b, s.bytes).into_iter().enumerate() {
                let boxed = boxed(ranks[0], slot, chunk.clone());
                if v == 0 {
                    b.mov(rank, at(0).at(chunk.clone()), boxed);
                }
                if let Some(flag) = links.own(v, 0) {
                    b.wait(rank, flag, value(i));
                }
                for flag in links.siblings(v, 0).into_iter().chain(links.children(v, 0)) {
                    b.set(rank, flag, value(i));
                }
                if v > 0 {
                    b.mov(rank, boxed, at(v).at(chunk));
                }
            }
        }
    }

    /// Steps 1 to 5, chunk by chunk.
    fn stream<'a>(
        &self,
        b: &mut Builder,
        s: &Participants,
        ranks: &[usize],
        links: &dyn Fn(FlagArrayId) -> Links<'a>,
        at: &dyn Fn(usize) -> Place,
    ) {
        let parts = self.split(b, s.bytes);
        let boxes = Boxes::new(b, self.slots, &parts);
        // A pair of flags that a parent and its child exchange may share a line; see `Layout::Paired`.
        let linked = boxes.reused > 0 && !self.done_at_parent && self.notify != Notify::Shared;
        let ready = b.flags("ready", self.layout, if linked { 2 } else { 1 });
        let links = links(ready);
        let tree = links.tree;
        let done = match boxes.reused {
            0 => None,
            _ if linked => Some(ready),
            _ if self.done_at_parent => Some(b.flags("done", self.layout, tree.degree())),
            _ => Some(b.flags("done", self.layout, 1)),
        };
        let done_flag = |done: FlagArrayId, parent: usize, position: usize, child: usize| {
            if self.done_at_parent {
                done.at(ranks[parent], position)
            } else {
                done.at(ranks[child], usize::from(linked))
            }
        };
        for (v, &rank) in ranks.iter().enumerate() {
            let parent = tree.parent[v];
            let inner = !tree.children[v].is_empty() || self.leaf_boxed;
            for (i, part) in parts.iter().enumerate() {
                let here = at(v).at(part.clone());
                let own = boxes.place(rank, i, part);
                let above = parent.map(|q| boxes.place(ranks[q], i, part));
                // 1. and 2. Learn that the chunk is ready and pass that on.
                if let Some(flag) = links.own(v, 0) {
                    b.wait(rank, flag, value(i));
                }
                for flag in links.siblings(v, 0) {
                    b.set(rank, flag, value(i));
                }
                // 3. Fill the rank's own slot once its children have left it, and tell them.
                if inner {
                    if let Some(done) = done {
                        for (position, &child) in tree.children[v].iter().enumerate() {
                            boxes.wait_free(b, rank, done_flag(done, v, position, child), i);
                        }
                    }
                    b.mov(rank, above.unwrap_or(here), own);
                }
                let ack = done.zip(parent).map(|(d, q)| done_flag(d, q, links.positions[v], v));
                if !self.twice && inner {
                    // 4. The parent's slot is not needed again.
                    acknowledge(b, rank, ack, i);
                }
                for flag in links.children(v, 0) {
                    b.set(rank, flag, value(i));
                }
                // 5. Copy it to where it goes.
                if let Some(above) = above {
                    b.mov(rank, if inner && !self.twice { own } else { above }, here);
                    if self.twice || !inner {
                        acknowledge(b, rank, ack, i);
                    }
                }
            }
        }
    }

    fn split(&self, b: &Builder, bytes: usize) -> Vec<Range<usize>> {
        chunks(0..bytes, if self.chunk == 0 { bytes } else { self.chunk }, b.grain())
    }
}

fn acknowledge(b: &mut Builder, rank: usize, flag: Option<FlagRef>, i: usize) {
    if let Some(flag) = flag {
        b.set(rank, flag, value(i));
    }
}

/// Returns, for each virtual rank, its index among the children of its parent.
fn positions(tree: &Tree) -> Vec<usize> {
    let mut positions = vec![0; tree.len()];
    for children in &tree.children {
        for (i, &child) in children.iter().enumerate() {
            positions[child] = i;
        }
    }
    positions
}

/// Placement of chunks in a box.
struct Boxes {
    slots: Vec<u16>,
    /// Number of slots that chunks take turns in; 0 when each chunk has a place of its own in the only slot.
    reused: usize,
    chunks: usize,
}

impl Boxes {
    fn new(b: &mut Builder, slots: usize, parts: &[Range<usize>]) -> Boxes {
        if slots == 0 {
            b.ring();
            let bytes = parts.last().map_or(0, |last| last.end);
            return Boxes { slots: vec![b.slot(bytes)], reused: 0, chunks: parts.len() };
        }
        let longest = parts.iter().map(Range::len).max().unwrap_or(0);
        let reused = slots.min(parts.len());
        let slots = (0..reused).map(|_| b.slot(longest)).collect();
        Boxes { slots, reused, chunks: parts.len() }
    }

    fn place(&self, rank: usize, i: usize, part: &Range<usize>) -> Region {
        match self.reused {
            0 => boxed(rank, self.slots[0], part.clone()),
            n => boxed(rank, self.slots[i % n], 0..part.len()),
        }
    }

    /// Waits until the last reader of the place of chunk `i` has acknowledged, in this run or the one before.
    fn wait_free(&self, b: &mut Builder, rank: usize, flag: FlagRef, i: usize) {
        if self.reused > 0 {
            wait_free(b, rank, i, (self.reused, self.chunks), |_| flag);
        }
    }
}

/// The flags that say "ready" down a tree.
struct Links<'a> {
    ready: FlagArrayId,
    notify: Notify,
    /// Most flags that one rank raises with [`Notify::Binary`].
    most: usize,
    tree: &'a Tree,
    ranks: &'a [usize],
    positions: &'a [usize],
}

impl Links<'_> {
    /// The flag that tells virtual rank `v` about piece `i`.
    fn own(&self, v: usize, i: usize) -> Option<FlagRef> {
        let parent = self.tree.parent[v]?;
        Some(match self.notify {
            Notify::Each | Notify::Binary => self.ready.at(self.ranks[v], i),
            Notify::Shared => self.ready.at(self.ranks[parent], i),
        })
    }

    /// The flags that `v` raises for its children.
    fn children(&self, v: usize, i: usize) -> Vec<FlagRef> {
        let children = &self.tree.children[v];
        match self.notify {
            Notify::Each => children.iter().map(|&c| self.ready.at(self.ranks[c], i)).collect(),
            Notify::Shared if children.is_empty() => Vec::new(),
            Notify::Shared => vec![self.ready.at(self.ranks[v], i)],
            Notify::Binary => {
                children.iter().take(self.most).map(|&c| self.ready.at(self.ranks[c], i)).collect()
            }
        }
    }

    /// The flags that `v` raises for its siblings: positions nq+1 to nq+n of a heap whose top is the parent.
    fn siblings(&self, v: usize, i: usize) -> Vec<FlagRef> {
        let (Notify::Binary, Some(parent)) = (self.notify, self.tree.parent[v]) else { return Vec::new() };
        let q = self.positions[v] + 1;
        let family = &self.tree.children[parent];
        let n = self.most;
        (n * q..n * q + n).filter_map(|j| family.get(j)).map(|&c| self.ready.at(self.ranks[c], i)).collect()
    }
}

/// The virtual ranks of the participants as indices of members: the root first, cyclically.
pub(super) fn cyclic(s: &Participants) -> Vec<usize> {
    (0..s.len()).map(|v| s.index_of_virtual(v)).collect()
}

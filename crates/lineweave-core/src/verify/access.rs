//! Reads and writes of one op, checked for order and for what they find.

use super::expr::{Node, UNDEFINED};
use super::machine::Machine;
use super::memory::{Conflict, Epoch, Known, Shadow, Value};
use super::segments::Piece;
use super::text::{region_text, space_text};
use super::violation::{Race, Violation};
use crate::collective::Collective;
use crate::plan::{FlagRef, Plan, Region, Space};
use crate::units::Rank;
use std::rc::Rc;

/// Stretches of a region: distance from its first byte, and what they hold.
pub(super) type Pieces = Vec<(usize, Value)>;

impl Machine<'_> {
    /// Outside of a run the caller may do anything to both buffers.
    pub(super) fn caller_touches(&mut self, rank: usize) -> Result<(), Violation> {
        let p = self.plan.ranks;
        let (input, output) = (self.sizes[rank], self.sizes[p + rank]);
        for (id, space, end) in [(rank, Space::In, input), (p + rank, Space::Out, output)] {
            if end > 0 && self.shared_private[id] {
                self.access(rank, id, &Region { space, offset: 0, len: end }, true)?;
            }
        }
        Ok(())
    }

    pub(super) fn no_address(&self, rank: usize, space: Space) -> Violation {
        Violation::NoAddress { site: Box::new(self.site_of(self.now(rank))), space: space_text(space) }
    }

    pub(super) fn fold(
        &mut self,
        rank: usize,
        left: &[(usize, Value)],
        right: &[(usize, Value)],
        len: usize,
    ) -> Pieces {
        let (mut i, mut j, mut at) = (0, 0, 0);
        let mut out: Pieces = Vec::with_capacity(left.len().max(right.len()));
        while at < len {
            let (a, b) = (left[i], right[j]);
            let a_end = left.get(i + 1).map_or(len, |p| p.0);
            let b_end = right.get(j + 1).map_or(len, |p| p.0);
            let end = a_end.min(b_end);
            let av = a.1.tail(at - a.0);
            let bv = b.1.tail(at - b.0);
            let grain = self.plan.grain;
            let value = if av.expr == UNDEFINED || bv.expr == UNDEFINED {
                Value::NONE
            } else if av.origin != bv.origin || av.origin % grain != 0 || (end - at) % grain != 0 {
                let run = self.at[rank].0;
                let text = |v: Value| {
                    format!(
                        "{} at message bytes {}..{}",
                        self.exprs.text(v.expr, run),
                        v.origin,
                        v.origin + end - at
                    )
                };
                let violation = Violation::Misaligned {
                    site: Box::new(self.site_of(self.now(rank))),
                    left: text(av),
                    right: text(bv),
                };
                self.pending.get_or_insert(violation);
                Value::NONE
            } else {
                Value { expr: self.exprs.fold(av.expr, bv.expr), origin: av.origin }
            };
            out.push((at, value));
            at = end;
            i += usize::from(at == a_end);
            j += usize::from(at == b_end);
        }
        out
    }

    pub(super) fn read(
        &mut self,
        rank: usize,
        region: &Region,
        dst: Option<&Region>,
        pieces: &mut Pieces,
    ) -> Result<(), Violation> {
        let id = self.resolve(rank, region)?;
        self.access(rank, id, region, false)?;
        let (start, end) = (region.offset, region.end());
        pieces.clear();
        pieces.extend(self.place(id).values.iter(start, end).map(|(at, _, v)| (at - start, v)));
        if let Some(&(at, _)) = pieces.iter().find(|(_, v)| v.expr == UNDEFINED) {
            self.undefined(
                rank,
                region_text(&Region { offset: start + at, len: region.len - at, ..*region }),
            );
        }
        let p = self.plan.ranks;
        self.shortens &= id >= 2 * p || self.within_a_block(region);
        if id < p && self.at[rank].0 == 0 && self.in_place {
            let (start, end) = (start + self.overlay[id], end + self.overlay[id]);
            // The same op may replace exactly the elements it reads.
            let clash = dst.is_some_and(|d| {
                let at = d.offset + self.overlay[p + id];
                self.same_buffer(rank, d) == Some(id)
                    && at < end
                    && start < at + d.len
                    && (at, d.len) != (start, region.len)
            });
            let (now, clock) = (self.now(rank), &self.clocks[rank]);
            let (known, mut good) = (Known { rank, clock }, !clash);
            self.one_buffer[id].update(start, end, |_, _, s| {
                good &= !s.written;
                s.reads.retain(|&e| !known.has(e));
                s.reads.push(now);
            });
            self.in_place = good;
        }
        Ok(())
    }

    /// Returns whether a region of a caller's buffer lies within one block, or message.
    fn within_a_block(&self, region: &Region) -> bool {
        self.pitch.is_some_and(|pitch| region.offset % pitch + region.len <= self.plan.bytes)
    }

    /// Returns whether a value is of what belongs into block `block` of the caller's buffer `id`, where ranks exchange blocks.
    fn is_of_block(&self, value: Value, id: usize, block: usize) -> bool {
        let (p, pitch) = (self.plan.ranks, self.pitch.unwrap_or(usize::MAX));
        if !self.plan.collective.has_blocks() {
            return true;
        }
        let Some(owner) = id.checked_sub(p) else { return false };
        let giver = match self.exprs.node(value.expr) {
            Node::Leaf { rank, .. } => Some(rank),
            Node::Fold(..) | Node::Undefined | Node::Address { .. } => None,
        };
        let of = value.origin / pitch;
        match self.plan.collective {
            Collective::Gather | Collective::Allgather => giver == Some(block),
            Collective::Alltoall => giver == Some(block) && of == owner,
            Collective::Scatter | Collective::ReduceScatter => of == owner,
            Collective::Barrier
            | Collective::Bcast
            | Collective::Reduce
            | Collective::Allreduce
            | Collective::Scan
            | Collective::Exscan => true,
        }
    }

    /// The rank whose `out` a region lies in.
    fn same_buffer(&self, rank: usize, region: &Region) -> Option<usize> {
        match region.space {
            Space::Out => Some(rank),
            Space::PeerOut(q) => Some(q.index()),
            Space::In | Space::Acc | Space::Slot { .. } | Space::PeerIn(_) => None,
        }
    }

    pub(super) fn write(
        &mut self,
        rank: usize,
        region: &Region,
        pieces: &[(usize, Value)],
    ) -> Result<(), Violation> {
        let id = self.resolve(rank, region)?;
        self.access(rank, id, region, true)?;
        if self.shortens && id < 2 * self.plan.ranks {
            let pitch = self.pitch.unwrap_or(usize::MAX);
            let stays = |&(at, value): &(usize, Value)| {
                let (block, within) = ((region.offset + at) / pitch, (region.offset + at) % pitch);
                value.origin % pitch == within && self.is_of_block(value, id, block)
            };
            self.shortens = self.within_a_block(region) && pieces.iter().all(stays);
        }
        self.place(id).values.replace(region.offset, region.end(), pieces);
        if self.at[rank].0 == 0 && self.in_place {
            if let Some(owner) = self.same_buffer(rank, region) {
                let known = Known { rank, clock: &self.clocks[rank] };
                let mut good = true;
                let shift = self.overlay[self.plan.ranks + owner];
                self.one_buffer[owner].update(region.offset + shift, region.end() + shift, |_, _, s| {
                    good &= s.reads.iter().all(|&e| known.has(e));
                    s.written = true;
                });
                self.in_place = good;
            }
        }
        Ok(())
    }

    pub(super) fn write_payload(
        &mut self,
        rank: usize,
        id: usize,
        flag: FlagRef,
        len: usize,
        pieces: &[(usize, Value)],
    ) -> Result<(), Violation> {
        let place = self.payload(id, flag);
        let (now, clock) = (self.now(rank), Rc::clone(&self.clocks[rank]));
        let conflict = self.place(place).write(0, len, now, Known { rank, clock: &clock });
        self.conflict(conflict, now, true, || payload_text(self.plan, flag))?;
        self.place(place).values.replace(0, len, pieces);
        Ok(())
    }

    pub(super) fn read_payload(
        &mut self,
        rank: usize,
        id: usize,
        flag: FlagRef,
        len: usize,
    ) -> Result<Pieces, Violation> {
        let place = self.payload(id, flag);
        let (now, clock) = (self.now(rank), Rc::clone(&self.clocks[rank]));
        let conflict = self.place(place).read(0, len, now, Known { rank, clock: &clock });
        self.conflict(conflict, now, false, || payload_text(self.plan, flag))?;
        let pieces: Vec<_> = self.place(place).values.iter(0, len).map(|(at, _, v)| (at, v)).collect();
        if pieces.iter().any(|(_, v)| v.expr == UNDEFINED) {
            self.undefined(rank, payload_text(self.plan, flag));
        }
        Ok(pieces)
    }

    fn undefined(&mut self, rank: usize, place: String) {
        if self.pending.is_none() {
            self.pending = Some(Violation::Undefined { site: Box::new(self.site_of(self.now(rank))), place });
        }
    }

    fn access(&mut self, rank: usize, id: usize, region: &Region, writes: bool) -> Result<(), Violation> {
        let (now, clock) = (self.now(rank), Rc::clone(&self.clocks[rank]));
        let known = Known { rank, clock: &clock };
        let (start, end) = (region.offset, region.end());
        let place = self.place(id);
        let conflict =
            if writes { place.write(start, end, now, known) } else { place.read(start, end, now, known) };
        let owner = |space| match space {
            Space::In => Space::PeerIn(Rank::from(rank)),
            Space::Out => Space::PeerOut(Rank::from(rank)),
            Space::Acc | Space::Slot { .. } | Space::PeerIn(_) | Space::PeerOut(_) => space,
        };
        let bytes = conflict.as_ref().map_or((start, end), |c| c.bytes);
        self.conflict(conflict, now, writes, || {
            region_text(&Region { space: owner(region.space), offset: bytes.0, len: bytes.1 - bytes.0 })
        })
    }

    fn conflict(
        &self,
        conflict: Option<Conflict>,
        now: Epoch,
        writes: bool,
        place: impl FnOnce() -> String,
    ) -> Result<(), Violation> {
        let Some(c) = conflict else { return Ok(()) };
        let known =
            Epoch { rank: c.earlier.rank, tick: self.clocks[now.rank as usize][c.earlier.rank as usize] };
        Err(Violation::Race(Box::new(Race {
            place: place(),
            first: self.site_of(c.earlier),
            first_writes: c.earlier_writes,
            second: self.site_of(now),
            second_writes: writes,
            known: (known.tick > 0).then(|| self.site_of(known)),
        })))
    }

    fn payload(&mut self, flag_id: usize, flag: FlagRef) -> usize {
        let id = 3 * self.plan.ranks + self.banks * self.plan.ranks * self.plan.slots.len() + flag_id;
        let most = self.plan.flags[flag.array as usize].layout.payload();
        self.places[id].get_or_insert_with(|| Box::new(Shadow::new(most, true)));
        id
    }

    /// The number of the place a region lies in, and that its address is known.
    fn resolve(&mut self, rank: usize, region: &Region) -> Result<usize, Violation> {
        let p = self.plan.ranks;
        match region.space {
            Space::In => Ok(rank),
            Space::Out => Ok(p + rank),
            Space::Acc => Ok(2 * p + rank),
            Space::Slot { rank: owner, slot } => {
                let slots = self.plan.slots.len();
                let id = 3 * p + (self.bank(rank) * p + owner.index()) * slots + slot as usize;
                let size = self.plan.slots[slot as usize];
                self.places[id].get_or_insert_with(|| Box::new(Shadow::new(size, true)));
                Ok(id)
            }
            Space::PeerIn(q) if self.addresses[rank].contains(&region.space) => Ok(q.index()),
            Space::PeerOut(q) if self.addresses[rank].contains(&region.space) => Ok(p + q.index()),
            Space::PeerIn(_) | Space::PeerOut(_) => Err(self.no_address(rank, region.space)),
        }
    }

    pub(super) fn place(&mut self, id: usize) -> &mut Shadow {
        let p = self.plan.ranks;
        let private = self.sizes.get(id).copied().unwrap_or(self.plan.acc);
        let shared = id < 2 * p && self.shared_private[id];
        self.places[id].get_or_insert_with(|| Box::new(Shadow::new(private, shared)))
    }
}

fn payload_text(plan: &Plan, flag: FlagRef) -> String {
    format!("the payload of {}", plan.flag_text(flag))
}

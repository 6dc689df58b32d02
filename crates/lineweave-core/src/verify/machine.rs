//! Runs a plan symbolically: one greedy schedule, with a vector clock a rank.

use super::expr::{Exprs, Node, UNDEFINED};
use super::memory::{Conflict, Epoch, Known, Place, Shared, Value};
use super::result::Results;
use super::segments::Segments;
use super::shape::{FlagIndex, Writers};
use super::text::{region_text, site, space_text};
use super::violation::{Race, Site, Step, Violation};
use crate::collective::Collective;
use crate::plan::{Carry, FlagKind, FlagRef, Op, Plan, Region, Reuse, Space, Take};
use crate::units::Rank;
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

/// Banks of a ring plan: the fewest that the engine uses.
const BANKS: usize = 2;

/// What a rank knew as it set a flag: its clock without its own entry, and its own step.
#[derive(Clone)]
struct Snapshot {
    clock: Rc<Vec<u32>>,
    now: Epoch,
    hops: u32,
}

/// The adds of one run to one counter.
#[derive(Clone, Default)]
struct Adds {
    done: usize,
    clock: Vec<u32>,
    hops: u32,
}

#[derive(Default)]
struct FlagState {
    sets: Vec<Snapshot>,
    adds: Vec<Adds>,
    added: usize,
    waiters: Vec<usize>,
}

/// What a wait needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Need {
    /// Nothing: it refers to a run before the first.
    Nothing,
    /// This many sets of the flag since the first run.
    Sets(usize),
    /// This many adds since the first run.
    Adds(usize),
    /// More than any run provides.
    Never,
}

pub(super) struct Machine<'a> {
    pub(super) plan: &'a Plan,
    pub(super) index: &'a FlagIndex,
    pub(super) writers: &'a [Writers],
    pub(super) runs: usize,
    span: i64,
    banks: usize,
    pub(super) exprs: Exprs,
    places: Vec<Option<Place>>,
    shared_private: Vec<bool>,
    clocks: Vec<Rc<Vec<u32>>>,
    hops: Vec<u32>,
    /// Run and step (0 enter, 1 + op, then leave) of every rank.
    pub(super) at: Vec<(usize, usize)>,
    flags: Vec<FlagState>,
    pub(super) left: Vec<usize>,
    left_clock: Vec<Vec<u32>>,
    entering: Vec<usize>,
    /// What each rank may access directly in its current run.
    addresses: Vec<HashSet<Space>>,
    one_buffer: Vec<Segments<Shared>>,
    queue: VecDeque<usize>,
    pub(super) results: Results,
    /// The first violation that a race, found later, may explain better.
    pub(super) pending: Option<Violation>,
    pub(super) in_place: bool,
    pub(super) synchronizing: Result<(), (usize, usize)>,
    pub(super) depth: u32,
    scratch: Vec<(usize, Value)>,
}

impl<'a> Machine<'a> {
    pub(super) fn new(
        plan: &'a Plan,
        index: &'a FlagIndex,
        writers: &'a [Writers],
        runs: usize,
    ) -> Machine<'a> {
        let p = plan.ranks;
        let banks = match plan.reuse {
            Reuse::Same => 1,
            Reuse::Ring => BANKS,
        };
        let mut shared_private = vec![false; 2 * p];
        let mut mark = |space: Space| match space {
            Space::PeerIn(q) => shared_private[q.index()] = true,
            Space::PeerOut(q) => shared_private[p + q.index()] = true,
            Space::In | Space::Out | Space::Acc | Space::Slot { .. } => {}
        };
        if plan.direct {
            for (_, op) in plan.ops() {
                match op {
                    Op::Move { src, dst } => [src, dst].into_iter().for_each(|r| mark(r.space)),
                    Op::Fold { a, b, dst } => [a, b, dst].into_iter().for_each(|r| mark(r.space)),
                    Op::Set { carry: Some(Carry::Bytes(r)), .. }
                    | Op::Wait { take: Some(Take::Bytes(r)), .. } => mark(r.space),
                    Op::Set { .. } | Op::Wait { .. } | Op::Add { .. } => {}
                }
            }
        }
        let zero = Rc::new(vec![0; p]);
        let mut places = Vec::new();
        places.resize_with(3 * p + banks * (p * plan.slots.len() + index.total), || None);
        let mut flags = Vec::new();
        flags.resize_with(banks * index.total, FlagState::default);
        Machine {
            plan,
            index,
            writers,
            runs,
            span: i64::from(plan.span()),
            banks,
            exprs: Exprs::new(p, runs),
            places,
            shared_private,
            clocks: vec![zero; p],
            hops: vec![0; p],
            at: vec![(0, 0); p],
            flags,
            left: vec![0; runs],
            left_clock: vec![vec![0; p]; runs],
            entering: Vec::new(),
            addresses: vec![HashSet::new(); p],
            one_buffer: (0..p).map(|_| Segments::new(plan.bytes, Shared::default())).collect(),
            queue: (0..p).collect(),
            results: Results::new(plan, runs),
            pending: None,
            in_place: true,
            synchronizing: Ok(()),
            depth: 0,
            scratch: Vec::new(),
        }
    }

    /// Runs every rank as far as it goes; whether all came to their end.
    pub(super) fn run(&mut self) -> Result<bool, Violation> {
        while let Some(rank) = self.queue.pop_front() {
            while self.at[rank].0 < self.runs && self.step(rank)? {
                let (run, step) = self.at[rank];
                self.at[rank] =
                    if step > self.plan.programs[rank].len() { (run + 1, 0) } else { (run, step + 1) };
            }
        }
        Ok(self.at.iter().all(|&(run, _)| run == self.runs))
    }

    /// The next step of a rank; `false` when it has to wait.
    fn step(&mut self, rank: usize) -> Result<bool, Violation> {
        let plan = self.plan;
        let (run, step) = self.at[rank];
        let program = &plan.programs[rank];
        if step == 0 {
            return self.enter(rank, run);
        }
        let Some(op) = program.get(step - 1) else {
            return self.leave(rank, run).map(|()| true);
        };
        match op {
            Op::Move { src, dst } => {
                let mut pieces = std::mem::take(&mut self.scratch);
                self.read(rank, src, Some(dst), &mut pieces)?;
                self.write(rank, dst, &pieces)?;
                self.scratch = pieces;
            }
            Op::Fold { a, b, dst } => {
                let mut left = std::mem::take(&mut self.scratch);
                let mut right = Vec::new();
                self.read(rank, a, Some(dst), &mut left)?;
                self.read(rank, b, Some(dst), &mut right)?;
                let folded = self.fold(rank, &left, &right, dst.len);
                self.write(rank, dst, &folded)?;
                self.scratch = left;
            }
            Op::Set { flag, carry, .. } => self.set(rank, *flag, carry.as_ref())?,
            Op::Wait { flag, value, take } => return self.wait(rank, *flag, *value, take.as_ref()),
            Op::Add { flag } => self.add(rank, *flag)?,
        }
        Ok(true)
    }

    fn enter(&mut self, rank: usize, run: usize) -> Result<bool, Violation> {
        // A bank is entered only when every rank has left it.
        if self.banks > 1 && run >= self.banks {
            let before = run - self.banks;
            if self.left[before] < self.plan.ranks {
                self.entering.push(rank);
                return Ok(false);
            }
            let clock = std::mem::take(&mut self.left_clock[before]);
            self.join(rank, &clock);
            self.left_clock[before] = clock;
        }
        self.caller_touches(rank)?;
        let p = self.plan.ranks;
        let speaks = self.plan.collective != Collective::Bcast || self.plan.root.index() == rank;
        let input = if speaks { self.exprs.leaf(rank, run) } else { UNDEFINED };
        self.place(rank).values.reset(Value { expr: input, origin: 0 });
        self.place(p + rank).values.reset(Value::NONE);
        self.place(2 * p + rank).values.reset(Value::NONE);
        self.addresses[rank].clear();
        Ok(true)
    }

    fn leave(&mut self, rank: usize, run: usize) -> Result<(), Violation> {
        let p = self.plan.ranks;
        if run == 0 {
            for q in 0..p {
                if q != rank && self.clocks[rank][q] < 1 && self.synchronizing.is_ok() {
                    self.synchronizing = Err((rank, q));
                }
            }
            self.depth = self.depth.max(self.hops[rank]);
        }
        let values = std::mem::replace(self.place(p + rank), Place::new(0, false));
        let verdict = self.results.check(self.plan, &self.exprs, rank, run, &values.values);
        *self.place(p + rank) = values;
        if let Err(v) = verdict {
            self.pending.get_or_insert(v);
        }
        self.caller_touches(rank)?;
        let now = self.now(rank);
        let clock = Rc::clone(&self.clocks[rank]);
        for (mine, theirs) in self.left_clock[run].iter_mut().zip(clock.iter()) {
            *mine = (*mine).max(*theirs);
        }
        self.left_clock[run][rank] = now.tick;
        self.left[run] += 1;
        if self.left[run] == p {
            self.queue.extend(std::mem::take(&mut self.entering));
        }
        Ok(())
    }

    /// Outside of a run the caller may do anything to both buffers.
    fn caller_touches(&mut self, rank: usize) -> Result<(), Violation> {
        let (p, end) = (self.plan.ranks, self.plan.bytes);
        for (id, space) in [(rank, Space::In), (p + rank, Space::Out)] {
            if end > 0 && self.shared_private[id] {
                self.access(rank, id, &Region { space, offset: 0, len: end }, true)?;
            }
        }
        Ok(())
    }

    fn set(&mut self, rank: usize, flag: FlagRef, carry: Option<&Carry>) -> Result<(), Violation> {
        let id = self.flag(rank, flag);
        match carry {
            None => {}
            Some(Carry::Bytes(region)) => {
                let mut pieces = Vec::new();
                self.read(rank, region, None, &mut pieces)?;
                self.write_payload(rank, id, flag, region.len, &pieces)?;
            }
            Some(Carry::Address(space)) => {
                let out = matches!(space, Space::Out | Space::PeerOut(_));
                let expr = self.exprs.address(rank, out, self.at[rank].0);
                self.write_payload(rank, id, flag, 8, &[(0, Value { expr, origin: 0 })])?;
            }
        }
        let now = self.now(rank);
        let snapshot = Snapshot { clock: Rc::clone(&self.clocks[rank]), now, hops: self.hops[rank] };
        let state = &mut self.flags[id];
        state.sets.push(snapshot);
        self.queue.extend(std::mem::take(&mut state.waiters));
        Ok(())
    }

    fn add(&mut self, rank: usize, flag: FlagRef) -> Result<(), Violation> {
        let (id, now, run) = (self.flag(rank, flag), self.now(rank), self.at[rank].0);
        let adds = &self.writers[self.index.of(flag)].adds;
        let uses = run / self.banks;
        // Thresholds can be told apart only when the adds of successive runs on one bank are.
        if uses > 0 {
            let before = run - self.banks;
            for &(q, op) in adds {
                let early = Epoch { rank: q as u32, tick: self.tick(q, before, 1 + op) };
                if !self.known(rank).has(early) {
                    return Err(Violation::CounterOverlap {
                        early: Box::new(self.site_of(early)),
                        late: Box::new(self.site_of(now)),
                    });
                }
            }
        }
        let clock = Rc::clone(&self.clocks[rank]);
        let hops = self.hops[rank];
        let state = &mut self.flags[id];
        state.adds.resize_with(state.adds.len().max(uses + 1), Adds::default);
        let sum = &mut state.adds[uses];
        sum.clock.resize(clock.len(), 0);
        for (mine, theirs) in sum.clock.iter_mut().zip(clock.iter()) {
            *mine = (*mine).max(*theirs);
        }
        sum.clock[rank] = sum.clock[rank].max(now.tick);
        sum.hops = sum.hops.max(hops);
        sum.done += 1;
        state.added += 1;
        self.queue.extend(std::mem::take(&mut state.waiters));
        Ok(())
    }

    /// What a wait needs of its flag, from the start of the flag's bank.
    pub(super) fn need(&self, run: usize, flag: FlagRef, value: i32) -> Need {
        let w = &self.writers[self.index.of(flag)];
        let uses = (run / self.banks) as i64;
        let provided = self.runs.div_ceil(self.banks);
        match self.plan.flags[flag.array as usize].kind {
            FlagKind::Signal => {
                let target = uses * self.span + i64::from(value);
                if target <= 0 {
                    return Need::Nothing;
                }
                if w.sets.is_empty() {
                    return Need::Never;
                }
                let (mut k, rel) = ((target - 1) / self.span, (target - 1) % self.span + 1);
                let mut i = w.sets.partition_point(|s| i64::from(s.value) < rel);
                if i == w.sets.len() {
                    (k, i) = (k + 1, 0);
                }
                match usize::try_from(k) {
                    Ok(k) if k < provided => Need::Sets(k * w.sets.len() + i + 1),
                    _ => Need::Never,
                }
            }
            FlagKind::Counter => {
                let target = uses * w.adds.len() as i64 + i64::from(value);
                match usize::try_from(target) {
                    Err(_) | Ok(0) => Need::Nothing,
                    Ok(n) if n <= provided * w.adds.len() => Need::Adds(n),
                    Ok(_) => Need::Never,
                }
            }
        }
    }

    fn wait(
        &mut self,
        rank: usize,
        flag: FlagRef,
        value: i32,
        take: Option<&Take>,
    ) -> Result<bool, Violation> {
        let (id, run) = (self.flag(rank, flag), self.at[rank].0);
        match self.need(run, flag, value) {
            Need::Nothing => {}
            Need::Sets(n) if self.flags[id].sets.len() >= n => {
                let s = self.flags[id].sets[n - 1].clone();
                if self.run_of(s.now) == run {
                    self.hops[rank] = self.hops[rank].max(s.hops + 1);
                }
                let from = s.now.rank as usize;
                if from != rank && self.clocks[rank][from] < s.now.tick {
                    self.join(rank, &s.clock);
                    Rc::make_mut(&mut self.clocks[rank])[from] = s.now.tick;
                }
            }
            Need::Adds(n) if self.flags[id].added >= n => {
                // Only the adds of whole runs are certain to be among the first n.
                let total = self.writers[self.index.of(flag)].adds.len();
                if let Some(whole) = (n / total).checked_sub(1) {
                    let sum = self.flags[id].adds[whole].clone();
                    if whole == run / self.banks {
                        self.hops[rank] = self.hops[rank].max(sum.hops + 1);
                    }
                    self.join(rank, &sum.clock);
                }
            }
            Need::Sets(_) | Need::Adds(_) | Need::Never => {
                self.flags[id].waiters.push(rank);
                return Ok(false);
            }
        }
        match take {
            None => {}
            Some(Take::Bytes(region)) => {
                let pieces = self.read_payload(rank, id, flag, region.len)?;
                self.write(rank, region, &pieces)?;
            }
            Some(Take::Address(space)) => {
                let pieces = self.read_payload(rank, id, flag, 8)?;
                let node = self.exprs.node(pieces[0].1.expr);
                let right = match (node, space) {
                    (Node::Address { rank: q, out: false, run: r }, Space::PeerIn(peer))
                    | (Node::Address { rank: q, out: true, run: r }, Space::PeerOut(peer)) => {
                        q == peer.index() && r == run
                    }
                    _ => false,
                };
                if right || node == Node::Undefined {
                    self.addresses[rank].insert(*space);
                } else {
                    return Err(self.no_address(rank, *space));
                }
            }
        }
        Ok(true)
    }

    fn no_address(&self, rank: usize, space: Space) -> Violation {
        Violation::NoAddress { site: Box::new(self.site_of(self.now(rank))), space: space_text(space) }
    }

    fn fold(
        &mut self,
        rank: usize,
        left: &[(usize, Value)],
        right: &[(usize, Value)],
        len: usize,
    ) -> Vec<(usize, Value)> {
        let (mut i, mut j, mut at) = (0, 0, 0);
        let mut out: Vec<(usize, Value)> = Vec::with_capacity(left.len().max(right.len()));
        while at < len {
            let (a, b) = (left[i], right[j]);
            let a_end = left.get(i + 1).map_or(len, |p| p.0);
            let b_end = right.get(j + 1).map_or(len, |p| p.0);
            let end = a_end.min(b_end);
            let av = super::segments::Piece::tail(&a.1, at - a.0);
            let bv = super::segments::Piece::tail(&b.1, at - b.0);
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

    fn read(
        &mut self,
        rank: usize,
        region: &Region,
        dst: Option<&Region>,
        pieces: &mut Vec<(usize, Value)>,
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
        if id < p && self.at[rank].0 == 0 && self.in_place {
            // The same op may replace exactly the elements it reads.
            let clash = dst.is_some_and(|d| {
                self.same_buffer(rank, d) == Some(id)
                    && d.offset < end
                    && start < d.end()
                    && (d.offset, d.len) != (start, region.len)
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

    /// The rank whose `out` a region lies in.
    fn same_buffer(&self, rank: usize, region: &Region) -> Option<usize> {
        match region.space {
            Space::Out => Some(rank),
            Space::PeerOut(q) => Some(q.index()),
            Space::In | Space::Acc | Space::Slot { .. } | Space::PeerIn(_) => None,
        }
    }

    fn write(&mut self, rank: usize, region: &Region, pieces: &[(usize, Value)]) -> Result<(), Violation> {
        let id = self.resolve(rank, region)?;
        self.access(rank, id, region, true)?;
        self.place(id).values.replace(region.offset, region.end(), pieces);
        if self.at[rank].0 == 0 && self.in_place {
            if let Some(owner) = self.same_buffer(rank, region) {
                let known = Known { rank, clock: &self.clocks[rank] };
                let mut good = true;
                self.one_buffer[owner].update(region.offset, region.end(), |_, _, s| {
                    good &= s.reads.iter().all(|&e| known.has(e));
                    s.written = true;
                });
                self.in_place = good;
            }
        }
        Ok(())
    }

    fn write_payload(
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

    fn read_payload(
        &mut self,
        rank: usize,
        id: usize,
        flag: FlagRef,
        len: usize,
    ) -> Result<Vec<(usize, Value)>, Violation> {
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

    fn join(&mut self, rank: usize, clock: &[u32]) {
        for (mine, theirs) in Rc::make_mut(&mut self.clocks[rank]).iter_mut().zip(clock) {
            *mine = (*mine).max(*theirs);
        }
    }

    fn known(&self, rank: usize) -> Known<'_> {
        Known { rank, clock: &self.clocks[rank] }
    }

    fn tick(&self, rank: usize, run: usize, step: usize) -> u32 {
        let tick = run * (self.plan.programs[rank].len() + 2) + step + 1;
        u32::try_from(tick).expect("a plan has fewer than 2^32 steps")
    }

    fn now(&self, rank: usize) -> Epoch {
        let (run, step) = self.at[rank];
        Epoch { rank: rank as u32, tick: self.tick(rank, run, step) }
    }

    fn run_of(&self, e: Epoch) -> usize {
        (e.tick as usize - 1) / (self.plan.programs[e.rank as usize].len() + 2)
    }

    pub(super) fn site_of(&self, e: Epoch) -> Site {
        let rank = e.rank as usize;
        let ops = self.plan.programs[rank].len();
        let run = self.run_of(e);
        let step = match (e.tick as usize - 1) % (ops + 2) {
            0 => Step::Enter,
            s if s <= ops => Step::Op(s - 1),
            _ => Step::Leave,
        };
        site(self.plan, rank, run, step)
    }

    fn bank(&self, rank: usize) -> usize {
        self.at[rank].0 % self.banks
    }

    fn flag(&self, rank: usize, flag: FlagRef) -> usize {
        self.bank(rank) * self.index.total + self.index.of(flag)
    }

    fn payload(&mut self, flag_id: usize, flag: FlagRef) -> usize {
        let id = 3 * self.plan.ranks + self.banks * self.plan.ranks * self.plan.slots.len() + flag_id;
        let most = self.plan.flags[flag.array as usize].layout.payload();
        self.places[id].get_or_insert_with(|| Place::new(most, true));
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
                self.places[id].get_or_insert_with(|| Place::new(size, true));
                Ok(id)
            }
            Space::PeerIn(q) if self.addresses[rank].contains(&region.space) => Ok(q.index()),
            Space::PeerOut(q) if self.addresses[rank].contains(&region.space) => Ok(p + q.index()),
            Space::PeerIn(_) | Space::PeerOut(_) => Err(self.no_address(rank, region.space)),
        }
    }

    fn place(&mut self, id: usize) -> &mut Place {
        let p = self.plan.ranks;
        let private = if id < 2 * p { self.plan.bytes } else { self.plan.acc };
        let shared = id < 2 * p && self.shared_private[id];
        self.places[id].get_or_insert_with(|| Place::new(private, shared))
    }
}

fn payload_text(plan: &Plan, flag: FlagRef) -> String {
    format!("the payload of {}", super::text::flag_text(plan, flag))
}

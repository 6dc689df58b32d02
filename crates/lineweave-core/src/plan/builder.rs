//! Making a plan op by op.

use super::part::Tally;
use super::{
    Blocks, Carry, FlagArray, FlagKind, FlagRef, Layout, Op, Params, Part, Plan, PlanError, Region, Reuse,
    Space, Take,
};
use crate::collective::Collective;
use crate::units::{Rank, LINE};
use std::collections::HashSet;

/// A flag array of the plan under construction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlagArrayId(u16);

impl FlagArrayId {
    /// The flag `index` of this array whose line lives at rank `home`.
    pub fn at(self, home: usize, index: usize) -> FlagRef {
        let index = u16::try_from(index).expect("a flag index fits 16 bits");
        FlagRef { array: self.0, home: Rank::from(home), index }
    }
}

/// Ops of all ranks that a plan may have: two copies of them, as plan and as program, stay below 4 GiB.
pub const MAX_OPS: usize = 16 << 20;

/// Collects ops rank by rank; empty transfers are left out.
#[derive(Debug)]
pub struct Builder {
    plan: Plan,
    /// The names that flag arrays were asked for by, before they were made unique.
    asked: Vec<String>,
    next: Cursor,
    /// Waits for the previous run, by rank and op: their values are relative to a span known at the end.
    previous: Vec<(usize, usize)>,
    /// True if some wait is for an earlier run.
    looks_back: bool,
    /// Ops asked for; those beyond `most` are counted only.
    ops: usize,
    most: usize,
    /// The rank whose ops are kept, if it is one alone, and what is known of all ranks' then.
    only: Option<(usize, Tally)>,
}

/// Positions from which on the next allocation may share arrays, slots and scratch: see [`Builder::alike`].
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    array: usize,
    slot: usize,
    acc: usize,
}

impl Builder {
    /// An empty plan for `ranks` ranks and a message of `bytes` bytes in elements of `grain` bytes.
    pub fn new(
        collective: Collective,
        algorithm: &str,
        params: &Params,
        ranks: usize,
        root: usize,
        bytes: usize,
        grain: usize,
    ) -> Builder {
        Builder {
            plan: Plan {
                collective,
                algorithm: algorithm.to_owned(),
                params: params.clone(),
                ranks,
                root: Rank::from(root),
                bytes,
                blocks: Blocks::Dense,
                grain: grain.max(1),
                slots: Vec::new(),
                flags: Vec::new(),
                acc: 0,
                reuse: Reuse::Same,
                direct: false,
                programs: vec![Vec::new(); ranks],
            },
            asked: Vec::new(),
            next: Cursor::default(),
            previous: Vec::new(),
            looks_back: false,
            ops: 0,
            most: MAX_OPS,
            only: None,
        }
    }

    /// A new array of `count` signal flags at every rank.
    pub fn flags(&mut self, name: &str, layout: Layout, count: usize) -> FlagArrayId {
        self.array(name, FlagKind::Signal, layout, count)
    }

    /// A new array of `count` counters at every rank.
    pub fn counters(&mut self, name: &str, layout: Layout, count: usize) -> FlagArrayId {
        self.array(name, FlagKind::Counter, layout, count)
    }

    /// Emits for each of `groups`, disjoint sets of ranks, in the same flag arrays, slots and scratch: they
    /// live at different ranks, so that a plan of many groups needs no more memory than its largest.
    ///
    /// # Errors
    /// The first error of `emit`.
    pub fn alike<T>(
        &mut self,
        groups: &[T],
        mut emit: impl FnMut(&mut Builder, &T) -> Result<(), PlanError>,
    ) -> Result<(), PlanError> {
        let start = self.next;
        for group in groups {
            self.next = start;
            emit(self, group)?;
        }
        self.next = Cursor { array: self.plan.flags.len(), slot: self.plan.slots.len(), acc: self.plan.acc };
        Ok(())
    }

    /// Names are made unique, so that phases of a composed plan may use the same ones.
    fn array(&mut self, name: &str, kind: FlagKind, layout: Layout, count: usize) -> FlagArrayId {
        let shared = (self.next.array..self.plan.flags.len()).find(|&i| {
            let array = &self.plan.flags[i];
            self.asked[i] == name && array.kind == kind && array.layout == layout
        });
        if let Some(i) = shared {
            let array = &mut self.plan.flags[i];
            array.count = array.count.max(count);
            self.next.array = i + 1;
            return FlagArrayId(i as u16);
        }
        let taken = |n: &str| self.plan.flags.iter().any(|a| a.name == n);
        let mut unique = name.to_owned();
        let mut next = 2;
        while taken(&unique) {
            unique = format!("{name}{next}");
            next += 1;
        }
        let id = u16::try_from(self.plan.flags.len()).expect("a plan has fewer than 65536 flag arrays");
        self.plan.flags.push(FlagArray { name: unique, kind, layout, count });
        self.asked.push(name.to_owned());
        self.next.array = self.plan.flags.len();
        FlagArrayId(id)
    }

    /// A new slot of `bytes` bytes in every rank's box.
    pub fn slot(&mut self, bytes: usize) -> u16 {
        let id = u16::try_from(self.next.slot).expect("a plan has fewer than 65536 slots");
        match self.plan.slots.get_mut(self.next.slot) {
            Some(size) => *size = (*size).max(bytes),
            None => self.plan.slots.push(bytes),
        }
        self.next.slot += 1;
        id
    }

    /// New scratch of `bytes` bytes at every rank, starting on a line; returns its offset in `acc`.
    pub fn acc(&mut self, bytes: usize) -> usize {
        let at = self.next.acc;
        self.next.acc += bytes.div_ceil(LINE) * LINE;
        self.plan.acc = self.plan.acc.max(self.next.acc);
        at
    }

    /// The blocks of a collective that exchanges some lie like this.
    pub fn blocks(&mut self, blocks: Blocks) {
        self.plan.blocks = blocks;
    }

    /// Each run takes the next bank, because the plan does not order runs by itself.
    pub fn ring(&mut self) {
        self.plan.reuse = Reuse::Ring;
    }

    /// The plan reads or writes peers' private buffers.
    pub fn direct(&mut self) {
        self.plan.direct = true;
    }

    /// The size of an element.
    pub fn grain(&self) -> usize {
        self.plan.grain
    }

    /// The number of ranks of the whole plan.
    pub fn ranks(&self) -> usize {
        self.plan.ranks
    }

    /// Rank `rank` copies `src` to `dst`.
    pub fn mov(&mut self, rank: usize, src: Region, dst: Region) {
        if src.len > 0 && src != dst {
            self.push(rank, Op::Move { src, dst });
        }
    }

    /// Rank `rank` computes `dst = a (op) b`.
    pub fn fold(&mut self, rank: usize, a: Region, b: Region, dst: Region) {
        if dst.len > 0 {
            self.push(rank, Op::Fold { a, b, dst });
        }
    }

    /// Rank `rank` raises `flag` to `value`.
    pub fn set(&mut self, rank: usize, flag: FlagRef, value: i32) {
        self.push(rank, Op::Set { flag, value, carry: None });
    }

    /// Rank `rank` raises `flag` to `value` with `bytes` in its line (nothing when empty).
    pub fn set_carrying(&mut self, rank: usize, flag: FlagRef, value: i32, bytes: Region) {
        self.set_with(rank, flag, value, Some(bytes));
    }

    /// As [`Builder::set_carrying`] of the bytes that go `beside` the flag, if any do.
    pub fn set_with(&mut self, rank: usize, flag: FlagRef, value: i32, beside: Option<Region>) {
        self.push(rank, Op::Set { flag, value, carry: beside.filter(|r| r.len > 0).map(Carry::Bytes) });
    }

    /// Rank `rank` raises `flag` to `value` with the address of its buffer `space` in its line.
    pub fn set_address(&mut self, rank: usize, flag: FlagRef, value: i32, space: Space) {
        self.push(rank, Op::Set { flag, value, carry: Some(Carry::Address(space)) });
    }

    /// Rank `rank` waits for `flag` to reach `value`.
    pub fn wait(&mut self, rank: usize, flag: FlagRef, value: i32) {
        self.push(rank, Op::Wait { flag, value, take: None });
    }

    /// Rank `rank` waits for what the previous run set `flag` to as `value` (1 ..= span): the acknowledgement
    /// that was not waited for then.
    pub fn wait_previous(&mut self, rank: usize, flag: FlagRef, value: i32) {
        if self.ops < self.most && self.keeps(rank) {
            self.previous.push((rank, self.plan.programs[rank].len()));
        }
        self.push_one(rank, Op::Wait { flag, value, take: None }, true);
    }

    /// Rank `rank` waits for `flag` to reach `value` and takes the bytes in its line (none when empty).
    pub fn wait_taking(&mut self, rank: usize, flag: FlagRef, value: i32, into: Region) {
        self.wait_with(rank, flag, value, Some(into));
    }

    /// As [`Builder::wait_taking`] of the bytes that came `beside` the flag, if any did.
    pub fn wait_with(&mut self, rank: usize, flag: FlagRef, value: i32, beside: Option<Region>) {
        self.push(rank, Op::Wait { flag, value, take: beside.filter(|r| r.len > 0).map(Take::Bytes) });
    }

    /// Rank `rank` waits for `flag` to reach `value` and learns where `space` (a peer's buffer) is.
    pub fn wait_address(&mut self, rank: usize, flag: FlagRef, value: i32, space: Space) {
        self.push(rank, Op::Wait { flag, value, take: Some(Take::Address(space)) });
    }

    /// Rank `rank` adds one to a counter.
    pub fn add(&mut self, rank: usize, flag: FlagRef) {
        self.push(rank, Op::Add { flag });
    }

    /// The finished plan. When each run takes the next bank, waits for an earlier run (values below 1) are
    /// left out: the bank is free before the run begins.
    pub fn finish(self) -> Plan {
        let span = self.plan.span();
        self.finish_by(span)
    }

    /// The finished part of the rank whose ops [alone](Builder::only) were kept; all of the plan if that was not asked for.
    pub(crate) fn finish_part(mut self) -> Part {
        match self.only.take() {
            Some((_, tally)) => {
                let span = tally.span();
                tally.part(self.finish_by(span))
            }
            None => Part::whole(self.finish(), false),
        }
    }

    fn finish_by(mut self, span: i32) -> Plan {
        for &(rank, at) in &self.previous {
            if let Op::Wait { value, .. } = &mut self.plan.programs[rank][at] {
                *value -= span;
            }
        }
        if self.plan.reuse == Reuse::Ring && self.looks_back {
            for program in &mut self.plan.programs {
                program.retain(|op| !matches!(op, Op::Wait { value, .. } if *value < 1));
            }
        }
        self.plan
    }

    /// Keeps no more ops than these, [`MAX_OPS`] if it is not said; more are counted.
    pub fn keep(&mut self, most: usize) {
        self.most = most;
    }

    /// Keeps the ops of one rank alone; those of the others are counted and digested, and who sets the `wanted` flags is kept.
    pub(crate) fn only(&mut self, rank: usize, wanted: HashSet<FlagRef>) {
        self.only = Some((rank, Tally::new(self.plan.ranks, wanted)));
    }

    /// Ops asked for so far, also those that were not kept.
    pub fn ops(&self) -> usize {
        self.ops
    }

    fn keeps(&self, rank: usize) -> bool {
        self.only.as_ref().is_none_or(|(only, _)| *only == rank)
    }

    fn push(&mut self, rank: usize, op: Op) {
        self.push_one(rank, op, false);
    }

    fn push_one(&mut self, rank: usize, op: Op, previous: bool) {
        self.ops += 1;
        self.looks_back |= previous || matches!(op, Op::Wait { value, .. } if value < 1);
        if let Some((_, tally)) = &mut self.only {
            tally.add(rank, &op, previous);
        }
        if self.ops <= self.most && self.keeps(rank) {
            self.plan.programs[rank].push(op);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder() -> Builder {
        Builder::new(Collective::Bcast, "test", &Params::new(), 3, 0, 8, 1)
    }

    #[test]
    fn waits_for_the_previous_run_are_relative_to_the_final_span() {
        let mut b = builder();
        let done = b.flags("done", Layout::Alone, 1);
        b.wait_previous(0, done.at(1, 0), 2);
        b.set(1, done.at(1, 0), 5);
        let plan = b.finish();
        assert_eq!(plan.programs[0], vec![Op::Wait { flag: done.at(1, 0), value: -3, take: None }]);
    }

    #[test]
    fn a_ring_needs_no_wait_for_the_previous_run() {
        let mut b = builder();
        let done = b.flags("done", Layout::Alone, 1);
        b.wait_previous(0, done.at(1, 0), 1);
        b.set(0, done.at(2, 0), 1);
        b.ring();
        let plan = b.finish();
        assert_eq!(plan.programs[0], vec![Op::Set { flag: done.at(2, 0), value: 1, carry: None }]);
    }
}

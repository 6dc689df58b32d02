//! Making a plan op by op.

use super::{Carry, FlagArray, FlagKind, FlagRef, Layout, Op, Params, Plan, Region, Reuse, Space, Take};
use crate::collective::Collective;
use crate::units::{Rank, LINE};

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

/// How much memory a plan under construction has asked for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Mark {
    flags: usize,
    slots: usize,
    acc: usize,
}

/// Collects ops rank by rank; empty transfers are left out.
#[derive(Debug)]
pub struct Builder {
    plan: Plan,
    /// What is handed out next: the end of the plan's memory, or before it after a [`Builder::rewind`].
    next: Mark,
    /// Waits for the previous run, by rank and op: their values are relative to a span known at the end.
    previous: Vec<(usize, usize)>,
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
                grain: grain.max(1),
                slots: Vec::new(),
                flags: Vec::new(),
                acc: 0,
                reuse: Reuse::Same,
                direct: false,
                programs: vec![Vec::new(); ranks],
            },
            next: Mark::default(),
            previous: Vec::new(),
        }
    }

    /// A place to [`rewind`](Builder::rewind) to.
    pub fn mark(&self) -> Mark {
        self.next
    }

    /// What follows is for ranks that took no part in what was emitted since `mark`: flags, slots and scratch
    /// from there on are handed out again, so that groups side by side do not each cost every rank memory.
    pub fn rewind(&mut self, mark: Mark) {
        self.next = mark;
    }

    /// Ends what [`rewind`](Builder::rewind) began: what follows gets memory of its own.
    pub fn forward(&mut self) {
        self.next = Mark { flags: self.plan.flags.len(), slots: self.plan.slots.len(), acc: self.plan.acc };
    }

    /// A new array of `count` signal flags at every rank.
    pub fn flags(&mut self, name: &str, layout: Layout, count: usize) -> FlagArrayId {
        self.array(name, FlagKind::Signal, layout, count)
    }

    /// A new array of `count` counters at every rank.
    pub fn counters(&mut self, name: &str, layout: Layout, count: usize) -> FlagArrayId {
        self.array(name, FlagKind::Counter, layout, count)
    }

    /// Names are made unique, so that phases of a composed plan may use the same ones.
    fn array(&mut self, name: &str, kind: FlagKind, layout: Layout, count: usize) -> FlagArrayId {
        // After a rewind: the next array of this kind and layout, if there is one.
        let again = (self.next.flags..self.plan.flags.len())
            .find(|&i| self.plan.flags[i].kind == kind && self.plan.flags[i].layout == layout);
        if let Some(i) = again {
            self.plan.flags[i].count = self.plan.flags[i].count.max(count);
            self.next.flags = i + 1;
            return FlagArrayId(u16::try_from(i).expect("a plan has fewer than 65536 flag arrays"));
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
        self.next.flags = self.plan.flags.len();
        FlagArrayId(id)
    }

    /// A new slot of `bytes` bytes in every rank's box.
    pub fn slot(&mut self, bytes: usize) -> u16 {
        let i = self.next.slots;
        match self.plan.slots.get_mut(i) {
            Some(size) => *size = bytes.max(*size),
            None => self.plan.slots.push(bytes),
        }
        self.next.slots += 1;
        u16::try_from(i).expect("a plan has fewer than 65536 slots")
    }

    /// New scratch of `bytes` bytes at every rank, starting on a line; returns its offset in `acc`.
    pub fn acc(&mut self, bytes: usize) -> usize {
        let at = self.next.acc;
        self.next.acc += bytes.div_ceil(LINE) * LINE;
        self.plan.acc = self.plan.acc.max(self.next.acc);
        at
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
        let carry = (bytes.len > 0).then_some(Carry::Bytes(bytes));
        self.push(rank, Op::Set { flag, value, carry });
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
    /// that was not waited for then. A plan that takes a fresh bank for each run does without such waits.
    pub fn wait_previous(&mut self, rank: usize, flag: FlagRef, value: i32) {
        self.previous.push((rank, self.plan.programs[rank].len()));
        self.wait(rank, flag, value);
    }

    /// Rank `rank` waits for `flag` to reach `value` and takes the bytes in its line (none when empty).
    pub fn wait_taking(&mut self, rank: usize, flag: FlagRef, value: i32, into: Region) {
        let take = (into.len > 0).then_some(Take::Bytes(into));
        self.push(rank, Op::Wait { flag, value, take });
    }

    /// Rank `rank` waits for `flag` to reach `value` and learns where `space` (a peer's buffer) is.
    pub fn wait_address(&mut self, rank: usize, flag: FlagRef, value: i32, space: Space) {
        self.push(rank, Op::Wait { flag, value, take: Some(Take::Address(space)) });
    }

    /// Rank `rank` adds one to a counter.
    pub fn add(&mut self, rank: usize, flag: FlagRef) {
        self.push(rank, Op::Add { flag });
    }

    /// The finished plan.
    pub fn finish(mut self) -> Plan {
        let span = self.plan.span();
        // From the last one back, so that indices before it stay valid.
        for &(rank, at) in self.previous.iter().rev() {
            match self.plan.reuse {
                Reuse::Ring => drop(self.plan.programs[rank].remove(at)),
                Reuse::Same => {
                    if let Op::Wait { value, .. } = &mut self.plan.programs[rank][at] {
                        *value -= span;
                    }
                }
            }
        }
        self.plan
    }

    fn push(&mut self, rank: usize, op: Op) {
        self.plan.programs[rank].push(op);
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
        b.wait_previous(0, done.at(1, 0), 1);
        b.ring();
        let plan = b.finish();
        assert_eq!(plan.programs[0], vec![Op::Set { flag: done.at(2, 0), value: 1, carry: None }]);
    }

    #[test]
    fn groups_side_by_side_share_memory() {
        let mut b = builder();
        let outer = b.flags("outer", Layout::Alone, 1);
        let mark = b.mark();
        let first = (b.flags("ready", Layout::Alone, 2), b.slot(64), b.acc(8));
        b.rewind(mark);
        let second = (b.flags("ready", Layout::Alone, 3), b.slot(128), b.acc(100));
        let other = b.flags("ready", Layout::Packed, 1);
        b.forward();
        let after = (b.flags("ready", Layout::Alone, 1), b.slot(8), b.acc(8));
        assert_eq!(first, second);
        assert!(outer != first.0 && other != first.0 && after.0 != first.0 && after.1 != first.1);
        assert_eq!(after.2, 128);
        let plan = b.finish();
        assert_eq!(plan.slots, vec![128, 8]);
        assert_eq!(plan.flags[1].count, 3);
        assert_eq!(plan.acc, 192);
    }
}

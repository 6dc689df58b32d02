//! Runs a plan symbolically: one greedy schedule, with a vector clock a rank.

mod flags;

pub(super) use flags::Need;

use self::flags::FlagState;
use super::expr::{Exprs, UNDEFINED};
use super::memory::{Epoch, Known, Shadow, Shared, Value};
use super::result::Results;
use super::segments::Segments;
use super::shape::Writers;
use super::text::site;
use super::violation::{Site, Step, Violation};
use crate::collective::Extent;
use crate::plan::{FlagIndex, FlagRef, Op, Plan, Reuse, Space};
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;

/// Banks of a ring plan: the fewest that the engine uses.
const BANKS: usize = 2;

pub(super) struct Machine<'a> {
    pub(super) plan: &'a Plan,
    pub(super) index: &'a FlagIndex,
    pub(super) writers: &'a [Writers],
    pub(super) runs: usize,
    span: i64,
    pub(super) banks: usize,
    pub(super) exprs: Exprs,
    pub(super) places: Vec<Option<Box<Shadow>>>,
    pub(super) shared_private: Vec<bool>,
    pub(super) clocks: Vec<Rc<Vec<u32>>>,
    hops: Vec<u32>,
    /// Run and step (0 enter, 1 + op, then leave) of every rank.
    pub(super) at: Vec<(usize, usize)>,
    flags: Vec<FlagState>,
    pub(super) left: Vec<usize>,
    left_clock: Vec<Vec<u32>>,
    entering: Vec<usize>,
    /// Spaces that each rank may access directly in its current run.
    pub(super) addresses: Vec<HashSet<Space>>,
    pub(super) one_buffer: Vec<Segments<Shared>>,
    /// Bytes of every rank's `in`, then of every rank's `out`.
    pub(super) sizes: Vec<usize>,
    /// Offsets at which these would start if both were one buffer.
    pub(super) overlay: Vec<usize>,
    queue: VecDeque<usize>,
    pub(super) results: Results,
    /// The first violation that a race, found later, may explain better.
    pub(super) pending: Option<Violation>,
    pub(super) in_place: bool,
    /// Bytes between blocks of callers' buffers, if the plan can be cut at all.
    pub(super) pitch: Option<usize>,
    pub(super) shortens: bool,
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
            plan.ops().flat_map(|(_, op)| op.regions()).for_each(|r| mark(r.space));
        }
        let grid = plan.grid();
        let mut sizes: Vec<usize> = (0..p).map(|r| grid.input_bytes(r)).collect();
        sizes.extend((0..p).map(|r| grid.output_bytes(r)));
        let overlay = overlay(plan);
        let ends = |r: usize| (sizes[r] + overlay[r]).max(sizes[p + r] + overlay[p + r]);
        let one_buffer = (0..p).map(|r| Segments::new(ends(r), Shared::default())).collect();
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
            one_buffer,
            sizes,
            overlay,
            queue: (0..p).collect(),
            results: Results::new(plan, runs),
            pending: None,
            in_place: true,
            pitch: plan.pitch(),
            shortens: plan.pitch().is_some(),
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
                if step <= self.plan.programs[rank].len() {
                    self.at[rank] = (run, step + 1);
                } else {
                    // The others first come to the end of this run: counter-examples are easier to follow.
                    self.at[rank] = (run + 1, 0);
                    self.queue.push_back(rank);
                    break;
                }
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
        let speaks = self.plan.collective.input(rank, self.plan.root.index()) != Extent::Nothing;
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
        let values = std::mem::replace(self.place(p + rank), Shadow::new(0, false));
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

    pub(super) fn now(&self, rank: usize) -> Epoch {
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

    pub(super) fn bank(&self, rank: usize) -> usize {
        self.at[rank].0 % self.banks
    }

    fn flag(&self, rank: usize, flag: FlagRef) -> usize {
        // Counters lie outside the banks.
        let bank = if self.plan.is_counter(flag) { 0 } else { self.bank(rank) };
        bank * self.index.total + self.index.of(flag)
    }
}

/// For every rank's `in`, then for every rank's `out`, where it would start if both were one buffer: a message where it
/// is one of the blocks.
fn overlay(plan: &Plan) -> Vec<usize> {
    let (p, grid, root) = (plan.ranks, plan.grid(), plan.root.index());
    let shift = |own: Extent, other: Extent, place: usize| match (own, other) {
        (Extent::Message, Extent::Blocks) if !plan.collective.folds() => place,
        _ => 0,
    };
    let extents = |r: usize| (plan.collective.input(r, root), plan.collective.output(r, root));
    let ins = (0..p).map(|r| shift(extents(r).0, extents(r).1, grid.taken(r, r).start));
    let outs = (0..p).map(|r| shift(extents(r).1, extents(r).0, grid.given(r, r).start));
    ins.chain(outs).collect()
}

//! Flags as they are raised, added to and waited for.

use super::super::expr::Node;
use super::super::memory::{Epoch, Value};
use super::super::shape::Writers;
use super::super::violation::Violation;
use super::Machine;
use crate::plan::{Carry, FlagKind, FlagRef, Space, Take};
use std::rc::Rc;

/// Knowledge of a rank as it set a flag: its clock without its own entry, and its own step.
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
pub(super) struct FlagState {
    sets: Vec<Snapshot>,
    adds: Vec<Adds>,
    added: usize,
    pub(super) waiters: Vec<usize>,
}

/// Condition that a wait needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Need {
    /// Nothing: it refers to a run before the first.
    Nothing,
    /// This many sets of the flag since the first run.
    Sets(usize),
    /// This many adds since the first run.
    Adds(usize),
    /// More than any run provides.
    Never,
}

impl Machine<'_> {
    pub(super) fn set(&mut self, rank: usize, flag: FlagRef, carry: Option<&Carry>) -> Result<(), Violation> {
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

    pub(super) fn add(&mut self, rank: usize, flag: FlagRef) -> Result<(), Violation> {
        let (id, now, run) = (self.flag(rank, flag), self.now(rank), self.at[rank].0);
        let Writers { adds, waits, .. } = &self.writers[self.index.of(flag)];
        if let Some(before) = run.checked_sub(1) {
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
        state.adds.resize_with(state.adds.len().max(run + 1), Adds::default);
        let sum = &mut state.adds[run];
        sum.clock.resize(clock.len(), 0);
        for (mine, theirs) in sum.clock.iter_mut().zip(clock.iter()) {
            *mine = (*mine).max(*theirs);
        }
        sum.clock[rank] = sum.clock[rank].max(now.tick);
        sum.hops = sum.hops.max(hops);
        sum.done += 1;
        state.added += 1;
        self.queue.extend(std::mem::take(&mut state.waiters));
        // Whoever waits in a run has seen all of it before the run after the next adds to the same word.
        if sum.done < adds.len() || run == 0 {
            return Ok(());
        }
        let sum = &self.flags[id].adds[run];
        for &(q, op) in waits {
            let wait = Epoch { rank: q as u32, tick: self.tick(q, run - 1, 1 + op) };
            if sum.clock[q] < wait.tick {
                return Err(Violation::CounterUnread { wait: Box::new(self.site_of(wait)) });
            }
        }
        Ok(())
    }

    /// Returns the condition that a wait needs of its flag, from the start of the flag's bank.
    pub(in super::super) fn need(&self, run: usize, flag: FlagRef, value: i32) -> Need {
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
            // All adds of the run: nothing else has the right shape. Counters lie outside the banks.
            FlagKind::Counter => Need::Adds((run + 1) * w.adds.len()),
        }
    }

    pub(super) fn wait(
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
                let sum = self.flags[id].adds[run].clone();
                self.hops[rank] = self.hops[rank].max(sum.hops + 1);
                self.join(rank, &sum.clock);
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
}

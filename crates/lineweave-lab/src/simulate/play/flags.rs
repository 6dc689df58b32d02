//! Effects of accesses on flags, and on those who wait for them.

use super::super::fabric::{Access, Fabric};
use super::super::program::{FlagAt, Instruction};
use super::Player;
use lineweave_core::trace::Picos;

impl<F: Fabric> Player<'_, F> {
    /// Applies the effect on flags of an access that is over. Returns `false` when the rank now waits.
    pub(super) fn effect(&mut self, now: Picos, rank: u32, access: &Access, visible: Picos) -> bool {
        let r = rank as usize;
        match access {
            Access::Set { flag, .. } => {
                if let Some(value) = self.value_set(rank) {
                    self.raise(*flag, value, visible);
                }
                true
            }
            Access::Add { flag } => {
                let sets = &self.flags[flag.id as usize].sets;
                let value = sets.last().map_or(0, |s| s.0) + 1;
                self.raise(*flag, value, visible);
                true
            }
            Access::Poll { flag } => {
                let Some(&Instruction::Wait { flag: f, value, .. }) =
                    self.program.ops[r].get(self.runners[r].pc)
                else {
                    return true;
                };
                let wanted = self.value(r, f, value);
                let seen = wanted <= 0 || self.reached(flag.id, wanted).is_some_and(|v| v <= visible);
                if !seen {
                    self.await_flag(now, visible, rank, *flag, wanted);
                }
                seen
            }
            Access::Call(_) | Access::Read { .. } | Access::Write { .. } | Access::Combine { .. } => true,
        }
    }

    /// The value that the set of the rank's current op stands for.
    pub(super) fn value_set(&self, rank: u32) -> Option<i64> {
        let r = rank as usize;
        match self.program.ops[r].get(self.runners[r].pc) {
            Some(&Instruction::Set { flag, value, .. }) => Some(self.value(r, flag, value)),
            _ => None,
        }
    }

    /// Tells those who wait of the posted sets that have landed.
    pub(super) fn land(&mut self) {
        while let Some((flag, visible)) = self.agenda.landed() {
            if let Some(value) = self.flags[flag.id as usize].posted.pop_front() {
                self.raise(flag, value, visible);
            }
        }
    }

    /// Returns the time from which a flag's value of at least `wanted` is visible, as far as it was set.
    pub(super) fn reached(&self, flag: u32, wanted: i64) -> Option<Picos> {
        let sets = &self.flags[flag as usize].sets;
        let at = sets.partition_point(|s| s.0 < wanted);
        sets.get(at).map(|s| s.1)
    }

    /// Returns whether a rank comes to a wait only when its flag is visible, where that is free: it goes on then.
    pub(super) fn comes_late(&mut self, now: Picos, rank: u32, flag: u32, value: i32) -> bool {
        let r = rank as usize;
        let (wanted, id) = (self.value(r, flag, value), self.flag_at(r, flag).id);
        let visible = self.reached(id, wanted);
        if wanted <= 0 || visible.is_some_and(|at| at <= now) || !self.agenda.late() {
            return false;
        }
        match visible {
            Some(at) => self.agenda.resume(at, self.agenda.agent(rank, 0), 0),
            None => self.flags[id as usize].late.push((rank, wanted)),
        }
        true
    }

    /// The rank polls until the value is visible.
    fn await_flag(&mut self, now: Picos, sampled: Picos, rank: u32, flag: FlagAt, wanted: i64) {
        self.fabric.wait(now, sampled, rank, flag, &mut self.agenda);
        match self.reached(flag.id, wanted) {
            Some(visible) => self.wake(rank, flag, visible),
            None => self.flags[flag.id as usize].waiters.push((rank, wanted)),
        }
    }

    fn wake(&mut self, rank: u32, flag: FlagAt, visible: Picos) {
        if let Some(at) = self.fabric.wake(visible, rank, flag) {
            let agent = self.agenda.agent(rank, 0);
            self.agenda.resume(at, agent, 0);
        }
    }

    fn raise(&mut self, flag: FlagAt, value: i64, visible: Picos) {
        let state = &mut self.flags[flag.id as usize];
        // Writes of one flag become visible in order.
        let visible = state.sets.last().map_or(visible, |last| visible.max(last.1));
        state.sets.push((value, visible));
        for late in state.late.extract_if(.., |late| late.1 <= value) {
            self.agenda.resume(visible, self.agenda.agent(late.0, 0), 0);
        }
        if state.waiters.is_empty() {
            return;
        }
        let mut waiters = std::mem::take(&mut state.waiters);
        waiters.retain(|&(rank, wanted)| {
            if wanted <= value {
                self.wake(rank, flag, visible);
            }
            wanted > value
        });
        self.flags[flag.id as usize].waiters.append(&mut waiters);
    }
}

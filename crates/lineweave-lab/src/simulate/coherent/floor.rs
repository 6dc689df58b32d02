//! A time that no order of requests is below: every access as if nobody else were there.

use super::super::{
    play, Access, Agenda, Agent, Fabric, Fidelity, FlagAt, Lanes, Playable, SimulateError, Step,
};
use super::caches::Caches;
use lineweave_core::lines::Prices;
use lineweave_core::trace::Picos;
use std::collections::HashMap;

/// Caches in which lines of messages cost least, and a flag of another core the least transfer once it is set.
struct Floor<'a> {
    caches: &'a Caches,
    /// Time from which each flag's first value is visible.
    set: HashMap<u32, Picos>,
}

impl Floor<'_> {
    /// Returns the least time that a rank waits for a line that another rank has written.
    fn transfer(&self, rank: u32) -> u64 {
        let core = |rank: usize| self.caches.hands[rank].core;
        let others = (0..self.caches.hands.len()).filter(|&other| other != rank as usize);
        let least = others.map(|other| self.caches.costs.least(core(rank as usize), core(other)));
        least.min().unwrap_or(0)
    }
}

impl Caches {
    /// Returns a time that no play of the program is below.
    ///
    /// # Errors
    /// [`SimulateError::Stuck`].
    pub(in super::super) fn floor(&self, program: &Playable) -> Result<Picos, SimulateError> {
        Ok(play(&mut Floor { caches: self, set: HashMap::new() }, program, 1, Fidelity::Line, false)?.ended
            [0])
    }
}

impl Fabric for Floor<'_> {
    fn line_bytes(&self) -> usize {
        self.caches.costs.line_bytes
    }

    fn lanes(&self) -> Lanes {
        Lanes { count: 1, gap: Picos(0) }
    }

    fn step(&mut self, now: Picos, _: Agent, rank: u32, access: &Access, _: u8, _: &mut Agenda) -> Step {
        let costs = &self.caches.costs;
        let both = |time: u64| Step::Done { at: Picos(now.0 + time), visible: Picos(now.0 + time) };
        let hit = Picos(now.0 + costs.hit());
        match *access {
            Access::Read { len, .. } | Access::Write { len, .. } if len > 0 => both(costs.least_line()),
            Access::Call(_) | Access::Combine { .. } | Access::Read { .. } | Access::Write { .. } => both(0),
            Access::Set { flag, .. } => {
                self.set.entry(flag.id).or_insert(hit);
                both(costs.hit())
            }
            Access::Add { flag } => {
                self.set.entry(flag.id).or_insert(now);
                Step::Done { at: hit, visible: now }
            }
            // A flag that is set came by a transfer since.
            Access::Poll { flag } => {
                let since = self.set.get(&flag.id).map_or(0, |set| set.0 + self.transfer(rank));
                Step::Done { at: Picos(hit.0.max(since)), visible: now }
            }
        }
    }

    fn wait(&mut self, _: Picos, _: Picos, _: u32, _: FlagAt, _: &mut Agenda) {}

    fn wake(&mut self, visible: Picos, rank: u32, _: FlagAt) -> Option<Picos> {
        Some(Picos(visible.0 + self.transfer(rank)))
    }
}

//! A time that no order of requests is below: every access as if nobody else were there.

use super::super::{
    play, Access, Agenda, Agent, Fabric, Fidelity, FlagAt, Lanes, Playable, SimulateError, Step,
};
use super::caches::Caches;
use lineweave_core::lines::Prices;
use lineweave_core::trace::Picos;

/// Caches in which lines of messages cost least, and a flag of another core the least transfer once it is set.
struct Floor<'a>(&'a Caches);

impl Caches {
    /// Returns a time that no play of the program is below.
    ///
    /// # Errors
    /// [`SimulateError::Stuck`].
    pub(in super::super) fn floor(&self, program: &Playable) -> Result<Picos, SimulateError> {
        Ok(play(&mut Floor(self), program, 1, Fidelity::Line, false)?.ended[0])
    }
}

impl Fabric for Floor<'_> {
    fn line_bytes(&self) -> usize {
        self.0.costs.line_bytes
    }

    fn lanes(&self) -> Lanes {
        Lanes { count: 1, gap: Picos(0) }
    }

    fn step(&mut self, now: Picos, _: Agent, _: u32, access: &Access, _: u8, _: &mut Agenda) -> Step {
        let costs = &self.0.costs;
        let after = |time: u64| Picos(now.0 + time);
        match access {
            Access::Call(_)
            | Access::Combine { .. }
            | Access::Read { len: 0, .. }
            | Access::Write { len: 0, .. } => Step::Done { at: now, visible: now },
            Access::Read { .. } | Access::Write { .. } => {
                Step::Done { at: after(costs.least_line()), visible: after(costs.least_line()) }
            }
            Access::Set { .. } => Step::Done { at: after(costs.hit()), visible: after(costs.hit()) },
            Access::Add { .. } | Access::Poll { .. } => Step::Done { at: after(costs.hit()), visible: now },
        }
    }

    fn wait(&mut self, _: Picos, _: Picos, _: u32, _: FlagAt, _: &mut Agenda) {}

    fn wake(&mut self, visible: Picos, rank: u32, _: FlagAt) -> Option<Picos> {
        let core = |rank: usize| self.0.hands[rank].core;
        let others = (0..self.0.hands.len()).filter(|&other| other != rank as usize);
        let least = others.map(|other| self.0.costs.least(core(rank as usize), core(other))).min();
        Some(Picos(visible.0 + least.unwrap_or(0)))
    }
}

//! Requests for lines: when each is served, and whom that wakes. Their costs are those of [`lineweave_core::lines`].

use super::super::{Agenda, Agent, FlagAt};
use super::caches::{Caches, SERVED};
use lineweave_core::lines::Leave;
use lineweave_core::trace::Picos;

/// Kind of a request for a line, and its origin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Want {
    /// A rank's load misses; `nth` counts the op's misses in a row, from 1.
    Read { rank: u32, agent: Agent, nth: u64 },
    /// A rank's store misses and the rank waits for it.
    Write { rank: u32, agent: Agent, nth: u64 },
    /// A store from a rank's buffer.
    Store { rank: u32, flag: FlagAt },
    /// Ranks of a core poll the line and have lost it.
    Poll { core: u32 },
    /// The prefetcher of a core.
    Prefetch { core: u32 },
}

impl Want {
    /// Returns whether others lose the line.
    pub(super) fn is_write(self) -> bool {
        match self {
            Want::Write { .. } | Want::Store { .. } => true,
            Want::Read { .. } | Want::Poll { .. } | Want::Prefetch { .. } => false,
        }
    }
}

impl Caches {
    /// A core reads a line, served from `now` on; `nth` counts misses in a row. Returns when it has arrived.
    pub(super) fn read(&mut self, now: Picos, core: u32, line: u32, nth: u64) -> Picos {
        self.memory.lines[line as usize].line.read(now, core, nth, &mut self.costs)
    }

    /// A core makes a line its own, served from `now` on. Returns when nobody else has it any more.
    pub(super) fn write(&mut self, now: Picos, core: u32, line: u32, nth: u64) -> Picos {
        self.memory.lines[line as usize].line.write(now, core, nth, &mut self.costs)
    }

    /// Serves the requests for a line whose turn it is, and says when the next is due.
    pub(super) fn serve(&mut self, now: Picos, line: u32, agenda: &mut Agenda) {
        while let Some(at) = self.turn(now, line, agenda) {
            let it = &mut self.memory.lines[line as usize];
            if at > now {
                if it.alarm.is_none_or(|alarm| alarm > at || alarm <= now) {
                    it.alarm = Some(at);
                    agenda.alarm(at, self.hands.len() as u32 + line);
                }
                return;
            }
            it.settled = false;
            let Some(want) = it.queue.pop_front() else { return };
            self.grant(now, line, want, agenda);
        }
    }

    /// Returns when the first request for a line is served. Where the order is free any may become the first once the line serves
    /// one of them.
    fn turn(&mut self, now: Picos, line: u32, agenda: &mut Agenda) -> Option<Picos> {
        let it = &mut self.memory.lines[line as usize];
        if agenda.choices().is_some() && !it.settled {
            let soonest = it.queue.iter().map(|want| it.line.serves(want.is_write())).min()?;
            if soonest > now {
                return Some(soonest);
            }
            let chosen = it.queue.remove(agenda.choose(it.queue.len()))?;
            it.queue.push_front(chosen);
            it.settled = true;
        }
        it.queue.front().map(|want| it.line.serves(want.is_write()))
    }

    pub(super) fn grant(&mut self, now: Picos, line: u32, want: Want, agenda: &mut Agenda) {
        match want {
            Want::Read { rank, agent, nth } => {
                let at = self.read(now, self.hands[rank as usize].core, line, nth);
                self.hands[rank as usize].sampled = now;
                agenda.resume(at, agent, SERVED);
            }
            Want::Prefetch { core } => {
                self.read(now, core, line, 1);
            }
            Want::Poll { core } => {
                let at = self.read(now, core, line, 1);
                self.wake_watchers(at, core, line, agenda);
            }
            Want::Write { rank, agent, nth } => {
                let core = self.hands[rank as usize].core;
                let at = self.write(now, core, line, nth);
                agenda.resume(at, agent, SERVED);
                self.invalidated(now, core, line, agenda);
            }
            Want::Store { rank, flag } => {
                let core = self.hands[rank as usize].core;
                let at = self.write(now, core, line, 1);
                let at = self.hands[rank as usize].stores.lands(at);
                self.memory.lines[line as usize].line.keep(at);
                agenda.land(flag, at);
                agenda.alarm(at, rank);
                self.invalidated(now, core, line, agenda);
            }
        }
    }

    /// Ranks of a core that poll a line see it again, from `at` on.
    fn wake_watchers(&mut self, at: Picos, core: u32, line: u32, agenda: &mut Agenda) {
        let mut watchers = std::mem::take(&mut self.memory.lines[line as usize].watchers);
        watchers.retain(|&rank| {
            let hand = &mut self.hands[rank as usize];
            match hand.set.filter(|set| hand.core == core && set.0 == line) {
                None => true,
                Some((_, visible)) => {
                    hand.set = None;
                    agenda.resume(at.max(visible), agenda.agent(rank, 0), 0);
                    false
                }
            }
        });
        self.memory.lines[line as usize].watchers = watchers;
    }

    /// Everybody but `writer` has lost a line: those who poll it ask for it again, in the order of ranks.
    fn invalidated(&mut self, now: Picos, writer: u32, line: u32, agenda: &mut Agenda) {
        let it = &self.memory.lines[line as usize];
        let mut cores: Vec<u32> = it.watchers.iter().map(|&r| self.hands[r as usize].core).collect();
        cores.retain(|&core| core != writer && !it.polled_for(core));
        cores.dedup();
        for core in cores {
            if !self.memory.lines[line as usize].polled_for(core) {
                self.memory.lines[line as usize].queue.push_back(Want::Poll { core });
                self.prefetch(now, core, line, agenda);
            }
        }
    }

    /// A poll misses a line: the prefetcher fetches those behind it, but for lines that are under way already
    /// (Chunduri & Srinivasan 2015, section VI.D).
    fn prefetch(&mut self, now: Picos, core: u32, line: u32, agenda: &mut Agenda) {
        for number in self.memory.behind(line, self.costs.prefetch) {
            let next = self.memory.touch(number, &self.costs);
            let it = &self.memory.lines[next as usize];
            if !it.line.held_by(core) && it.is_idle(now) {
                self.grant(now, next, Want::Prefetch { core }, agenda);
            }
        }
    }

    /// Puts a request at the end of a line's queue.
    pub(super) fn ask(&mut self, now: Picos, line: u32, want: Want, agenda: &mut Agenda) {
        self.memory.lines[line as usize].queue.push_back(want);
        self.serve(now, line, agenda);
    }

    /// A poll misses a line.
    pub(super) fn miss(&mut self, now: Picos, core: u32, line: u32, want: Want, agenda: &mut Agenda) {
        self.ask(now, line, want, agenda);
        self.prefetch(now, core, line, agenda);
    }

    /// Sends stores on their way as long as there is room.
    pub(super) fn drain(&mut self, now: Picos, rank: u32, agenda: &mut Agenda) {
        while let Leave::Now((line, flag)) =
            self.hands[rank as usize].stores.leave(now, self.costs.in_flight, 0)
        {
            self.ask(now, line, Want::Store { rank, flag }, agenda);
        }
    }
}

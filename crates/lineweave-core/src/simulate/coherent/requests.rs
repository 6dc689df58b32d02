//! What becomes of a request for a line: who answers, what that does to its state, and whom it makes wait.

use super::super::Agenda;
use super::caches::{Caches, SERVED};
use super::costs::Found;
use super::line::Want;
use crate::machine::{Protocol, State};
use crate::trace::Picos;

impl Caches {
    /// Who answers a core's request for a line, and after what time.
    fn supplier(&self, core: u32, line: u32) -> (Found, u64) {
        let it = &self.memory.lines[line as usize];
        let state = it.state();
        let transfer = |from: u32| self.costs.between(core, from, state);
        let nearest = || it.holders.iter().map(|h| transfer(h.0)).min();
        let answer = match self.costs.protocol {
            Protocol::Mesi | Protocol::Mesif => nearest(),
            Protocol::Gols => it.answers.filter(|&a| it.held_by(a)).map(transfer).or_else(nearest),
        };
        match answer {
            Some(time) => (Found::Cached, time),
            None => (Found::Memory, self.costs.memory(core, it.node)),
        }
    }

    /// When a request to memory that is made at `now` is served.
    fn busy_memory(&mut self, now: Picos, line: u32) -> Picos {
        let node = self.memory.lines[line as usize].node as usize;
        match self.costs.memory_line {
            None => now,
            Some(busy) => {
                let start = now.max(self.nodes[node]);
                self.nodes[node] = Picos(start.0 + busy);
                start
            }
        }
    }

    /// A core reads a line, served from `now` on; `nth` counts misses in a row. Returns when it has arrived.
    pub(super) fn read(&mut self, now: Picos, core: u32, line: u32, nth: u64) -> Picos {
        if let Some(arrives) = self.memory.lines[line as usize].arrives(core) {
            return Picos(now.max(arrives).0 + self.costs.local);
        }
        let (found, transfer) = self.supplier(core, line);
        let start = if found == Found::Memory { self.busy_memory(now, line) } else { now };
        let arrived = Picos(start.0 + self.costs.nth(found, nth, transfer));
        let service = self.costs.service(found, transfer);
        let it = &mut self.memory.lines[line as usize];
        let alone = it.holders.is_empty();
        it.owner = alone.then_some(core);
        if alone {
            it.answers = Some(core);
        }
        // Whoever shares a line finds it as memory has it, unless the owner keeps answering for it.
        it.modified &= self.costs.protocol == Protocol::Gols;
        it.holders.push((core, arrived));
        it.free = Picos(start.0 + service);
        it.settled = it.settled.max(arrived);
        arrived
    }

    /// A core makes a line its own, served from `now` on. Returns when nobody else has it any more.
    pub(super) fn write(&mut self, now: Picos, core: u32, line: u32, nth: u64) -> Picos {
        let it = &self.memory.lines[line as usize];
        // A shared line is invalidated at the price of an exclusive one (Ramos & Hoefler 2013, Eq. 2.9).
        let state = if it.state() == State::M { State::M } else { State::E };
        let others = it.holders.iter().filter(|h| h.0 != core);
        let farthest = others.map(|h| self.costs.between(core, h.0, state)).max();
        let alone = it.held_by(core);
        let done = match farthest {
            Some(time) => Picos(now.0 + self.costs.nth(Found::Cached, nth, time)),
            None if alone => Picos(now.0 + self.costs.local),
            None => {
                let (start, time) = (self.busy_memory(now, line), self.supplier(core, line).1);
                Picos(start.0 + self.costs.nth(Found::Memory, nth, time))
            }
        };
        let it = &mut self.memory.lines[line as usize];
        it.holders.clear();
        it.holders.push((core, done));
        (it.owner, it.answers, it.modified) = (Some(core), Some(core), true);
        (it.free, it.settled) = (done, done);
        done
    }

    /// Serves the requests for a line whose turn it is, and says when the next is due.
    pub(super) fn serve(&mut self, now: Picos, line: u32, agenda: &mut Agenda) {
        while let Some(&want) = self.memory.lines[line as usize].queue.front() {
            let at = self.memory.lines[line as usize].serves(want);
            if at > now {
                let it = &mut self.memory.lines[line as usize];
                if it.alarm.is_none_or(|alarm| alarm > at || alarm <= now) {
                    it.alarm = Some(at);
                    agenda.alarm(at, self.hands.len() as u32 + line);
                }
                return;
            }
            self.memory.lines[line as usize].queue.pop_front();
            self.grant(now, line, want, agenda);
        }
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
            let next = self.memory.touch(number);
            let it = &self.memory.lines[next as usize];
            if !it.held_by(core) && it.is_idle(now) {
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
        while self.hands[rank as usize].under_way < self.costs.in_flight {
            let Some((line, flag)) = self.hands[rank as usize].buffer.pop_front() else { return };
            self.hands[rank as usize].under_way += 1;
            self.ask(now, line, Want::Store { rank, flag }, agenda);
        }
    }
}

//! The fabric: what each access does to the line's state, what it costs, and whom it makes wait.

use super::super::{Access, Agenda, Agent, Fabric, FlagAt, Lanes, Place, Step};
use super::costs::{Costs, Found};
use super::line::Want;
use super::memory::Memory;
use crate::machine::{Protocol, State};
use crate::trace::Picos;
use std::collections::VecDeque;

/// A rank under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Hand {
    core: u32,
    agent: Agent,
    /// Lines of the current access that are done.
    cursor: usize,
    /// When the last line it read was read.
    sampled: Picos,
    /// Misses of the current op, of loads and of stores.
    loads: u64,
    stores: u64,
    /// What it waits for has been set on this line, and is visible from this time on.
    set: Option<(u32, Picos)>,
    /// Stores that wait for their turn, and how many are under way.
    buffer: VecDeque<(u32, FlagAt)>,
    under_way: usize,
}

/// Caches that agree.
#[derive(Debug)]
pub(super) struct Caches {
    costs: Costs,
    memory: Memory,
    hands: Vec<Hand>,
    /// When each node's memory is free.
    nodes: Vec<Picos>,
    /// Whether a whole move or fold is played at once.
    chunks: bool,
}

/// The access has been served since the last step.
const SERVED: u8 = 1;
/// The access goes on with its next line.
const NEXT: u8 = 2;

impl Caches {
    pub(super) fn new(costs: Costs, memory: Memory, cores: &[u32], nodes: usize, chunks: bool) -> Caches {
        let hand = |&core: &u32| Hand { core, ..Hand::default() };
        let hands = cores.iter().map(hand).collect();
        Caches { costs, memory, hands, nodes: vec![Picos(0); nodes], chunks }
    }

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
    fn from_memory(&mut self, now: Picos, line: u32) -> Picos {
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
    fn read(&mut self, now: Picos, core: u32, line: u32, nth: u64) -> Picos {
        if let Some(arrives) = self.memory.lines[line as usize].arrives(core) {
            return Picos(now.max(arrives).0 + self.costs.local);
        }
        let (found, transfer) = self.supplier(core, line);
        let start = if found == Found::Memory { self.from_memory(now, line) } else { now };
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
    fn write(&mut self, now: Picos, core: u32, line: u32, nth: u64) -> Picos {
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
                let (start, time) = (self.from_memory(now, line), self.supplier(core, line).1);
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
    fn serve(&mut self, now: Picos, line: u32, agenda: &mut Agenda) {
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

    fn grant(&mut self, now: Picos, line: u32, want: Want, agenda: &mut Agenda) {
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
    fn ask(&mut self, now: Picos, line: u32, want: Want, agenda: &mut Agenda) {
        self.memory.lines[line as usize].queue.push_back(want);
        self.serve(now, line, agenda);
    }

    /// A poll misses a line.
    fn miss(&mut self, now: Picos, core: u32, line: u32, want: Want, agenda: &mut Agenda) {
        self.ask(now, line, want, agenda);
        self.prefetch(now, core, line, agenda);
    }

    /// Sends stores on their way as long as there is room.
    fn drain(&mut self, now: Picos, rank: u32, agenda: &mut Agenda) {
        while self.hands[rank as usize].under_way < self.costs.in_flight {
            let Some((line, flag)) = self.hands[rank as usize].buffer.pop_front() else { return };
            self.hands[rank as usize].under_way += 1;
            self.ask(now, line, Want::Store { rank, flag }, agenda);
        }
    }

    /// When a line that a core has can be read: it may still be on its way.
    fn ready(&self, now: Picos, core: u32, line: u32) -> Option<Picos> {
        self.memory.lines[line as usize].arrives(core).map(|at| now.max(at))
    }

    /// Lines `place .. place + len`, loaded or stored one after the other.
    fn lines(
        &mut self,
        now: Picos,
        (agent, rank): (Agent, u32),
        place: Place,
        len: usize,
        stores: bool,
        agenda: &mut Agenda,
    ) -> Step {
        let (first, last) = self.memory.span(place, len);
        let core = self.hands[rank as usize].core;
        while len > 0 && first + self.hands[rank as usize].cursor <= last {
            let line = self.memory.touch(first + self.hands[rank as usize].cursor);
            let hit = match stores {
                true => self.memory.lines[line as usize].owned_by(core),
                false => self.memory.lines[line as usize].held_by(core),
            };
            if hit {
                self.memory.lines[line as usize].modified |= stores;
                self.hands[rank as usize].cursor += 1;
                let at = match stores {
                    true => now,
                    false => self.ready(now, core, line).unwrap_or(now),
                };
                return Step::Later { at: Picos(at.0 + self.costs.local), stage: NEXT };
            }
            let want = self.miss_of(rank, agent, stores);
            self.ask(now, line, want, agenda);
            return Step::Parked;
        }
        self.hands[rank as usize].cursor = 0;
        Step::Done { at: now, visible: now }
    }

    fn miss_of(&mut self, rank: u32, agent: Agent, stores: bool) -> Want {
        let hand = &mut self.hands[rank as usize];
        if stores {
            hand.stores += 1;
            Want::Write { rank, agent, nth: hand.stores }
        } else {
            hand.loads += 1;
            Want::Read { rank, agent, nth: hand.loads }
        }
    }

    /// The same at once.
    fn chunk(&mut self, now: Picos, rank: u32, place: Place, len: usize, stores: bool) -> Step {
        let (first, last) = self.memory.span(place, len);
        let core = self.hands[rank as usize].core;
        let mut at = now;
        for number in first..if len > 0 { last + 1 } else { first } {
            let line = self.memory.touch(number);
            let it = &self.memory.lines[line as usize];
            let hit = if stores { it.owned_by(core) } else { it.held_by(core) };
            if hit {
                let ready = if stores { at } else { self.ready(at, core, line).unwrap_or(at) };
                at = Picos(ready.0 + self.costs.local);
                self.memory.lines[line as usize].modified |= stores;
                continue;
            }
            let want = self.miss_of(rank, 0, stores);
            let start = at.max(self.memory.lines[line as usize].serves(want));
            at = match want {
                Want::Write { nth, .. } => self.write(start, core, line, nth),
                Want::Read { nth, .. } => self.read(start, core, line, nth),
                Want::Store { .. } | Want::Poll { .. } | Want::Prefetch { .. } => start,
            };
        }
        Step::Done { at, visible: at }
    }

    fn poll(
        &mut self,
        now: Picos,
        agent: Agent,
        rank: u32,
        flag: FlagAt,
        stage: u8,
        agenda: &mut Agenda,
    ) -> Step {
        if stage == SERVED {
            return Step::Done { at: now, visible: self.hands[rank as usize].sampled };
        }
        let core = self.hands[rank as usize].core;
        let number = self.memory.of_flag(flag);
        let line = self.memory.touch(number);
        // Polled ahead until now.
        self.memory.lines[line as usize].watchers.retain(|&r| r != rank);
        match self.ready(now, core, line) {
            Some(ready) => Step::Done { at: Picos(ready.0 + self.costs.local), visible: ready },
            None => {
                self.miss(now, core, line, Want::Read { rank, agent, nth: 1 }, agenda);
                Step::Parked
            }
        }
    }

    fn watch(&mut self, now: Picos, rank: u32, line: u32, agenda: &mut Agenda) {
        let core = self.hands[rank as usize].core;
        let it = &mut self.memory.lines[line as usize];
        if let Err(at) = it.watchers.binary_search(&rank) {
            it.watchers.insert(at, rank);
        }
        if !it.held_by(core) && !it.polled_for(core) {
            self.miss(now, core, line, Want::Poll { core }, agenda);
        }
    }
}

impl Fabric for Caches {
    fn line_bytes(&self) -> usize {
        self.costs.line_bytes
    }

    fn lanes(&self) -> Lanes {
        // Misses of one op that overlap are in the cost of lines in a row.
        Lanes { count: 1, gap: Picos(0) }
    }

    fn polls_at_once(&self) -> usize {
        self.costs.in_flight
    }

    fn step(
        &mut self,
        now: Picos,
        agent: Agent,
        rank: u32,
        access: &Access,
        stage: u8,
        agenda: &mut Agenda,
    ) -> Step {
        let r = rank as usize;
        if stage == SERVED {
            self.hands[r].cursor += 1;
        }
        match *access {
            Access::Call(_) => {
                let hand = &mut self.hands[r];
                (hand.agent, hand.loads, hand.stores, hand.cursor) = (agent, 0, 0, 0);
                Step::Done { at: now, visible: now }
            }
            Access::Combine { .. } => Step::Done { at: now, visible: now },
            Access::Read { from, len } if self.chunks => self.chunk(now, rank, from, len, false),
            Access::Write { to, len } if self.chunks => self.chunk(now, rank, to, len, true),
            Access::Read { from, len } => self.lines(now, (agent, rank), from, len, false, agenda),
            Access::Write { to, len } => self.lines(now, (agent, rank), to, len, true, agenda),
            Access::Poll { flag } => self.poll(now, agent, rank, flag, stage, agenda),
            Access::Set { flag, .. } => {
                let number = self.memory.of_flag(flag);
                let line = self.memory.touch(number);
                let at = Picos(now.0 + self.costs.local);
                let hand = &mut self.hands[r];
                let idle = hand.buffer.is_empty() && hand.under_way == 0;
                if idle && self.memory.lines[line as usize].owned_by(hand.core) {
                    self.memory.lines[line as usize].modified = true;
                    return Step::Done { at, visible: at };
                }
                hand.buffer.push_back((line, flag));
                self.drain(now, rank, agenda);
                Step::Posted { at }
            }
            Access::Add { flag } => {
                let number = self.memory.of_flag(flag);
                let line = self.memory.touch(number);
                let owned = self.memory.lines[line as usize].owned_by(self.hands[r].core);
                if stage == SERVED || owned {
                    self.memory.lines[line as usize].modified = true;
                    return Step::Done { at: Picos(now.0 + self.costs.local), visible: now };
                }
                self.ask(now, line, Want::Write { rank, agent, nth: 1 }, agenda);
                Step::Parked
            }
        }
    }

    fn alarm(&mut self, now: Picos, resource: u32, agenda: &mut Agenda) {
        match resource.checked_sub(self.hands.len() as u32) {
            None => {
                self.hands[resource as usize].under_way -= 1;
                self.drain(now, resource, agenda);
            }
            Some(line) => {
                if self.memory.lines[line as usize].alarm == Some(now) {
                    self.memory.lines[line as usize].alarm = None;
                }
                self.serve(now, line, agenda);
            }
        }
    }

    fn ahead(&mut self, now: Picos, rank: u32, flags: &[FlagAt], agenda: &mut Agenda) {
        for &flag in flags {
            let number = self.memory.of_flag(flag);
            let line = self.memory.touch(number);
            self.watch(now, rank, line, agenda);
        }
    }

    fn wait(&mut self, now: Picos, _: Picos, rank: u32, flag: FlagAt, agenda: &mut Agenda) {
        self.hands[rank as usize].set = None;
        let number = self.memory.of_flag(flag);
        let line = self.memory.touch(number);
        self.watch(now, rank, line, agenda);
    }

    fn wake(&mut self, visible: Picos, rank: u32, flag: FlagAt) -> Option<Picos> {
        let number = self.memory.of_flag(flag);
        let line = self.memory.touch(number);
        let hand = &mut self.hands[rank as usize];
        let it = &mut self.memory.lines[line as usize];
        if let Some(arrives) = it.arrives(hand.core) {
            it.watchers.retain(|&r| r != rank);
            // It has been fetched since, or was written by a thread of the same core.
            return Some(if arrives > visible { arrives } else { Picos(visible.0 + self.costs.sibling) });
        }
        hand.set = Some((line, visible));
        None
    }
}

//! The fabric: accesses of ranks as hits, and as requests for lines.

use super::super::names::Names;
use super::super::{Access, Address, Agenda, Agent, Fabric, FlagAt, Lanes, Step};
use super::costs::Costs;
use super::memory::Memory;
use super::requests::Want;
use lineweave_core::lines::{Prices, Stores};
use lineweave_core::trace::Picos;

/// A rank under way.
#[derive(Clone, Debug, Default)]
pub(super) struct Hand {
    pub(super) core: u32,
    pub(super) agent: Agent,
    /// Lines of the current access that are done.
    pub(super) cursor: usize,
    /// Time at which the line was read that is under way to it; 0 if none is.
    pub(super) sampled: Picos,
    /// Misses of the current op, of loads and of stores.
    pub(super) loads: u64,
    pub(super) writes: u64,
    /// Line on which the flag it waits for has been set, and the time from which that is visible.
    pub(super) set: Option<(u32, Picos)>,
    pub(super) stores: Stores<(u32, FlagAt)>,
}

/// Caches that agree.
#[derive(Clone, Debug)]
pub(in super::super) struct Caches {
    pub(super) costs: Costs,
    pub(super) memory: Memory,
    pub(super) hands: Vec<Hand>,
    /// True if a whole move or fold is played at once.
    chunks: bool,
}

/// The access has been served since the last step.
pub(super) const SERVED: u8 = 1;
/// The access goes on with its next line.
const NEXT: u8 = 2;

impl Caches {
    pub(super) fn new(costs: Costs, memory: Memory, cores: &[u32], chunks: bool) -> Caches {
        let hand = |&core: &u32| Hand { core, ..Hand::default() };
        let hands = cores.iter().map(hand).collect();
        Caches { costs, memory, hands, chunks }
    }

    /// Returns the time at which a line that a core has can be read: it may still be on its way.
    fn ready(&self, now: Picos, core: u32, line: u32) -> Option<Picos> {
        self.memory.lines[line as usize].line.arrives(core).map(|at| now.max(at))
    }

    /// Lines `place .. place + len`, loaded or stored one after the other.
    fn lines(
        &mut self,
        now: Picos,
        (agent, rank): (Agent, u32),
        place: Address,
        len: usize,
        stores: bool,
        agenda: &mut Agenda,
    ) -> Step {
        let (first, last) = self.memory.span(place, len);
        let core = self.hands[rank as usize].core;
        let next = first + self.hands[rank as usize].cursor;
        if len == 0 || next > last {
            self.hands[rank as usize].cursor = 0;
            return Step::Done { at: now, visible: now };
        }
        let line = self.memory.touch(next, &self.costs);
        let it = &mut self.memory.lines[line as usize].line;
        let hit = if stores { it.owned_by(core) } else { it.held_by(core) };
        if hit {
            if stores {
                it.written();
            }
            let at = if stores { now } else { self.ready(now, core, line).unwrap_or(now) };
            self.hands[rank as usize].cursor += 1;
            return Step::Later { at: Picos(at.0 + self.costs.hit()), stage: NEXT };
        }
        let want = self.miss_of(rank, agent, stores);
        self.ask(now, line, want, agenda);
        Step::Parked
    }

    fn miss_of(&mut self, rank: u32, agent: Agent, stores: bool) -> Want {
        let hand = &mut self.hands[rank as usize];
        if stores {
            hand.writes += 1;
            Want::Write { rank, agent, nth: hand.writes }
        } else {
            hand.loads += 1;
            Want::Read { rank, agent, nth: hand.loads }
        }
    }

    /// Loads or stores lines as `lines` does, all at once.
    fn chunk(&mut self, now: Picos, rank: u32, place: Address, len: usize, stores: bool) -> Step {
        let (first, last) = self.memory.span(place, len);
        let core = self.hands[rank as usize].core;
        let mut at = now;
        self.copying(Some(now));
        for number in first..if len > 0 { last + 1 } else { first } {
            let line = self.memory.touch(number, &self.costs);
            let it = &self.memory.lines[line as usize].line;
            let hit = if stores { it.owned_by(core) } else { it.held_by(core) };
            if hit {
                let ready = if stores { at } else { self.ready(at, core, line).unwrap_or(at) };
                at = Picos(ready.0 + self.costs.hit());
                if stores {
                    self.memory.lines[line as usize].line.written();
                }
                continue;
            }
            let want = self.miss_of(rank, 0, stores);
            let start = at.max(self.memory.lines[line as usize].line.serves(want.is_write()));
            at = match want {
                Want::Write { nth, .. } => self.write(start, core, line, nth),
                Want::Read { nth, .. } => self.read(start, core, line, nth),
                Want::Store { .. } | Want::Poll { .. } | Want::Prefetch { .. } => start,
            };
        }
        self.copying(None);
        Step::Done { at, visible: at }
    }

    /// A copy that is played at once begins then, or has ended.
    fn copying(&mut self, since: Option<Picos>) {
        if let Some(links) = &mut self.costs.links {
            links.copying = since;
        }
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
            let visible = std::mem::take(&mut self.hands[rank as usize].sampled);
            return Step::Done { at: now, visible };
        }
        let core = self.hands[rank as usize].core;
        let line = self.memory.of_flag(flag, &self.costs);
        // Polled ahead until now.
        self.memory.lines[line as usize].watchers.retain(|&r| r != rank);
        match self.ready(now, core, line) {
            Some(ready) => Step::Done { at: Picos(ready.0 + self.costs.hit()), visible: ready },
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
        if !it.line.held_by(core) && !it.polled_for(core) {
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
            if !matches!(access, Access::Poll { .. }) {
                self.hands[r].sampled = Picos(0);
            }
        }
        match *access {
            Access::Call(_) => {
                let hand = &mut self.hands[r];
                (hand.agent, hand.loads, hand.writes, hand.cursor) = (agent, 0, 0, 0);
                Step::Done { at: now, visible: now }
            }
            Access::Combine { .. } => Step::Done { at: now, visible: now },
            Access::Read { from, len } if self.chunks => self.chunk(now, rank, from, len, false),
            Access::Write { to, len } if self.chunks => self.chunk(now, rank, to, len, true),
            Access::Read { from, len } => self.lines(now, (agent, rank), from, len, false, agenda),
            Access::Write { to, len } => self.lines(now, (agent, rank), to, len, true, agenda),
            Access::Poll { flag } => self.poll(now, agent, rank, flag, stage, agenda),
            Access::Set { flag, .. } => {
                let line = self.memory.of_flag(flag, &self.costs);
                let at = Picos(now.0 + self.costs.hit());
                let hand = &mut self.hands[r];
                let it = &mut self.memory.lines[line as usize].line;
                if hand.stores.idle() && it.owned_by(hand.core) {
                    it.written();
                    return Step::Done { at, visible: at };
                }
                hand.stores.push((line, flag));
                self.drain(now, rank, agenda);
                Step::Posted { at }
            }
            Access::Add { flag } => {
                let line = self.memory.of_flag(flag, &self.costs);
                let it = &mut self.memory.lines[line as usize].line;
                if stage == SERVED || it.owned_by(self.hands[r].core) {
                    it.written();
                    return Step::Done { at: Picos(now.0 + self.costs.hit()), visible: now };
                }
                self.ask(now, line, Want::Write { rank, agent, nth: 1 }, agenda);
                Step::Parked
            }
        }
    }

    fn alarm(&mut self, now: Picos, resource: u32, agenda: &mut Agenda) {
        match resource.checked_sub(self.hands.len() as u32) {
            None => {
                self.hands[resource as usize].stores.landed();
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
            let line = self.memory.of_flag(flag, &self.costs);
            self.watch(now, rank, line, agenda);
        }
    }

    fn wait(&mut self, now: Picos, _: Picos, rank: u32, flag: FlagAt, agenda: &mut Agenda) {
        self.hands[rank as usize].set = None;
        let line = self.memory.of_flag(flag, &self.costs);
        self.watch(now, rank, line, agenda);
    }

    fn wake(&mut self, visible: Picos, rank: u32, flag: FlagAt) -> Option<Picos> {
        let line = self.memory.of_flag(flag, &self.costs);
        let hand = &mut self.hands[rank as usize];
        let it = &mut self.memory.lines[line as usize];
        if let Some(arrives) = it.line.arrives(hand.core) {
            it.watchers.retain(|&r| r != rank);
            // It has been fetched since, or was written by a thread of the same core.
            return Some(if arrives > visible { arrives } else { Picos(visible.0 + self.costs.sibling) });
        }
        hand.set = Some((line, visible));
        None
    }

    fn key(&self, now: Picos, names: &Names, key: &mut Vec<u64>) {
        self.state(now, names, key);
    }
}

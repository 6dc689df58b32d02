//! Flags on their lines while a plan is played: requests, stores on their way, and ranks that poll.

mod polls;

use super::compile::Playable;
use super::events::Events;
use super::hand::{Hand, Store, AT_ONCE};
use super::rates::{picos, Sitting};
use super::term::Term;
use super::trace::{Entry, Log, NONE};
use crate::lines::{Leave, Line, Prices};
use crate::topology::Level;
use crate::trace::Picos;
use std::collections::VecDeque;

/// Request of a rank for a line.
#[derive(Clone, Copy, Debug)]
enum Want {
    Poll(u32),
    /// Its store in this place of those under way.
    Store(u32, u8),
}

/// Event that happens at some time.
#[derive(Clone, Copy, Debug)]
enum Event {
    Serve(u32),
    Drain(u32),
    Land { rank: u32, place: u8 },
    Arrive { rank: u32, line: u32 },
}

/// A rank has seen what it waited for.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// Who.
    pub rank: u32,
    /// When, in ns.
    pub at: f64,
}

/// A line, and who asks for it.
#[derive(Clone, Debug)]
struct Wire {
    line: Line,
    wants: VecDeque<Want>,
    /// Time at which the line is looked at next.
    alarm: Option<Picos>,
    /// Ranks that poll the line, and some that did.
    watchers: Vec<u32>,
}

/// A flag's value, who raised it last, and the log entry of that.
#[derive(Clone, Copy, Debug)]
struct Raised {
    value: i64,
    by: u32,
    entry: u32,
}

/// All flags of all banks.
pub struct Wires<'a> {
    /// Places of the ranks, and costs of lines.
    pub sitting: Sitting<'a>,
    wires: Vec<Wire>,
    hands: Vec<Hand>,
    flags: Vec<Raised>,
    /// True if levels are asked for.
    explains: bool,
    events: Events<Event>,
    seen: Vec<Seen>,
}

impl<'a> Wires<'a> {
    /// All flags of a plan whose runs before left these lines of a bank.
    pub fn new(sitting: Sitting<'a>, program: &Playable, lines: Vec<Line>, explains: bool) -> Wires<'a> {
        let wire = |line| Wire { line, wants: VecDeque::new(), alarm: None, watchers: Vec::new() };
        let bank: Vec<Wire> = lines.into_iter().map(wire).collect();
        let flags = program.adds.len() * program.banks;
        Wires {
            wires: (0..program.banks).flat_map(|_| bank.iter().cloned()).collect(),
            hands: vec![Hand::default(); sitting.cache.len()],
            flags: vec![Raised { value: 0, by: 0, entry: NONE }; flags],
            explains,
            events: Events::new(),
            seen: Vec::new(),
            sitting,
        }
    }

    /// Returns the time at which the next event is due, in ns.
    pub fn next(&self) -> f64 {
        self.events.next().map_or(f64::INFINITY, |at| at.nanos())
    }

    /// Takes one of the events that ranks have seen and that were not taken yet.
    pub fn take_seen(&mut self) -> Option<Seen> {
        self.seen.pop()
    }

    fn at(&mut self, at: Picos, event: Event) {
        self.events.push(at, event);
    }

    fn cache(&self, rank: u32) -> u32 {
        self.sitting.cache[rank as usize]
    }

    /// A rank issues a store at `now`.
    pub fn store(&mut self, now: f64, store: Store, log: &mut Log) {
        let (now, rank) = (picos(now), store.rank as usize);
        self.hands[rank].stores.push(store);
        self.drain(now, store.rank, log);
    }

    /// Returns the time, in ns, at which stores of a rank's bytes take effect, behind those of flags.
    pub fn behind_flags(&self, now: f64, rank: u32) -> f64 {
        let stores = &self.hands[rank as usize].stores;
        let last = stores.waiting().last().map_or(0, |last| self.taken(rank, last.line));
        now.max(stores.have_landed(picos(now), self.sitting.rates.gap, last).nanos())
    }

    /// Returns the time, in picoseconds, to get a line from the farthest cache that has it.
    fn taken(&self, rank: u32, line: u32) -> u64 {
        let (cache, it) = (self.cache(rank), &self.wires[line as usize].line);
        let own = |other| self.sitting.own(cache, other, it.home(), it.state());
        it.others(cache).map(own).max().unwrap_or(0)
    }

    /// An add of a rank that shares its CPU, done at once; returns when.
    pub fn add_at_once(&mut self, now: f64, store: Store, log: &mut Log) -> f64 {
        let cache = self.cache(store.rank);
        let line = &mut self.wires[store.line as usize].line;
        let start = picos(now).max(line.serves(true));
        let done = line.write(start, cache, 1, &mut self.sitting);
        self.land(done, store, log);
        self.invalidated(done, store.line, cache);
        done.nanos() + self.sitting.rates.add
    }

    /// Returns whether a flag has a value.
    pub fn is_raised(&self, flag: u32, wanted: i64) -> bool {
        self.flags[flag as usize].value >= wanted
    }

    /// Handles the next event.
    pub fn step(&mut self, log: &mut Log) {
        let Some((at, event)) = self.events.pop() else { return };
        match event {
            Event::Serve(line) => {
                if self.wires[line as usize].alarm == Some(at) {
                    self.wires[line as usize].alarm = None;
                    self.serve(at, line);
                }
            }
            Event::Drain(rank) => {
                self.hands[rank as usize].drains = None;
                self.drain(at, rank, log);
            }
            Event::Land { rank, place } => {
                if let Some(store) = self.hands[rank as usize].under_way[usize::from(place)].take() {
                    self.land(at, store, log);
                }
                self.hands[rank as usize].stores.landed();
                self.drain(at, rank, log);
            }
            Event::Arrive { rank, line } => self.arrive(at, rank, line),
        }
    }

    /// Sends stores on their way.
    fn drain(&mut self, now: Picos, rank: u32, log: &mut Log) {
        let (gap, cache) = (self.sitting.rates.gap, self.cache(rank));
        loop {
            let hand = &mut self.hands[rank as usize];
            // A line that is the core's own takes the store at once, where none is before it.
            let first = hand.stores.waiting().next().copied();
            if let (Some(store), true) = (first, hand.stores.nothing_under_way()) {
                let line = &mut self.wires[store.line as usize].line;
                let still = line.still_there(cache, now);
                if still || line.owned_by(cache) {
                    if still {
                        line.written_while_leaving(self.sitting.rates.takes_over());
                    } else {
                        line.written();
                    }
                    self.hands[rank as usize].stores.take(true);
                    self.land(now, store, log);
                    continue;
                }
                if line.owner() == Some(cache) && line.serves(true) <= now {
                    let done = line.write(now, cache, 1, &mut self.sitting);
                    let hand = &mut self.hands[rank as usize];
                    hand.stores.take(false);
                    let place = hand.put_under_way(store);
                    self.at(done, Event::Land { rank, place });
                    return;
                }
            }
            match self.hands[rank as usize].stores.leave(now, AT_ONCE, gap) {
                Leave::Now(store) => {
                    let place = self.hands[rank as usize].put_under_way(store);
                    self.wires[store.line as usize].wants.push_back(Want::Store(rank, place));
                    self.serve(now, store.line);
                }
                Leave::At(at) => {
                    let hand = &mut self.hands[rank as usize];
                    if hand.drains.is_none_or(|drains| drains > at) {
                        hand.drains = Some(at);
                        self.at(at, Event::Drain(rank));
                    }
                    return;
                }
                Leave::Stays => return,
            }
        }
    }

    /// Serves the requests for a line whose turn it is.
    fn serve(&mut self, now: Picos, line: u32) {
        while let Some(&want) = self.wires[line as usize].wants.front() {
            let at = self.wires[line as usize].line.serves(matches!(want, Want::Store(..)));
            if at > now {
                let queue = &mut self.wires[line as usize];
                if queue.alarm.is_none_or(|alarm| alarm > at || alarm <= now) {
                    queue.alarm = Some(at);
                    self.at(at, Event::Serve(line));
                }
                return;
            }
            self.wires[line as usize].wants.pop_front();
            let it = &mut self.wires[line as usize].line;
            match want {
                Want::Poll(rank) => {
                    let at = it.read(now, self.sitting.cache[rank as usize], 1, &mut self.sitting);
                    self.at(at, Event::Arrive { rank, line });
                    self.taken_over(now, line);
                }
                Want::Store(rank, place) => {
                    let cache = self.sitting.cache[rank as usize];
                    let hand = &mut self.hands[rank as usize];
                    let Some(store) = &mut hand.under_way[usize::from(place)] else { continue };
                    if self.explains {
                        let farthest = it.others(cache).max_by_key(|&other| self.sitting.level(cache, other));
                        store.term = farthest.map(|other| {
                            let level = self.sitting.level(cache, other);
                            Term::Own(level, self.sitting.away(cache, other, it.home()))
                        });
                    }
                    let done = it.write(now, cache, 1, &mut self.sitting);
                    let atomic = if store.atomic { picos(self.sitting.rates.add).0 } else { 0 };
                    let at = hand.stores.lands(Picos(done.0 + atomic));
                    it.keep(at);
                    self.at(at, Event::Land { rank, place });
                    self.invalidated(now, line, cache);
                }
            }
        }
    }

    /// A store takes effect: its own core sees it.
    fn land(&mut self, now: Picos, store: Store, log: &mut Log) {
        let flag = &mut self.flags[store.flag as usize];
        if store.atomic {
            flag.value += 1;
            self.seen.push(Seen { rank: store.rank, at: now.nanos() });
        } else {
            flag.value = flag.value.max(store.value);
        }
        let entry = match store.term {
            None => store.entry,
            Some(term) => {
                log.aside(Entry::new(store.rank, Some(store.op as usize), now.nanos(), term, store.entry))
            }
        };
        (flag.by, flag.entry) = (store.rank, entry);
        let cache = self.cache(store.rank);
        for i in 0..self.wires[store.line as usize].watchers.len() {
            let rank = self.wires[store.line as usize].watchers[i];
            if self.cache(rank) == cache {
                self.arrive_if(now, rank, store.line);
            }
        }
        // A rank that waited for its line with this store, in vain.
        if let Some(watch) = self.hands[store.rank as usize].watch {
            if watch.line == store.line
                && !watch.asked
                && !self.wires[store.line as usize].line.held_by(cache)
            {
                if let Some(watch) = &mut self.hands[store.rank as usize].watch {
                    watch.asked = true;
                }
                self.wires[store.line as usize].wants.push_back(Want::Poll(store.rank));
                self.serve(now, store.line);
            }
        }
    }

    /// Returns the distance of a rank from the one that raised a flag last, and the log entry of that.
    pub fn raised(&self, rank: u32, flag: u32) -> (Level, u32) {
        let Raised { by, entry, .. } = self.flags[flag as usize];
        (self.sitting.level(self.cache(rank), self.cache(by)), entry)
    }

    /// Returns the term for reading a flag from the rank that raised it last.
    pub fn reads(&self, rank: u32, line: u32, flag: u32) -> Term {
        let (cache, writer) = (self.cache(rank), self.cache(self.flags[flag as usize].by));
        let away = self.sitting.away(cache, writer, self.wires[line as usize].line.home());
        Term::Read(self.sitting.level(cache, writer), away)
    }
}

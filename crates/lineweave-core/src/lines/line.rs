//! One cache line.

use super::{Prices, GROUPS};
use crate::machine::{Protocol, State};
use crate::trace::Picos;

/// From how many on the holders of a line are counted by groups.
const MANY: usize = 8;

/// Source of a line: a cache, if some cache has it, or memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// One has it.
    Cached = 0,
    /// It is in memory only.
    Memory = 1,
}

/// State of a line: the cores that have it, and the time from which it can be asked for again.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Cores that have it, or to which it is on its way, and when it arrives there.
    holders: Vec<(u32, Picos)>,
    /// Of each group of cores, how many have it: counted when many do, where prices are by groups.
    counts: Option<Counts>,
    /// The core that may write it.
    owner: Option<u32>,
    /// True if memory is out of date: modified rather than exclusive.
    modified: bool,
    /// True if its owner read it and has not written it yet.
    taken_over: bool,
    /// The core that answers for a shared line, where the protocol names one.
    answers: Option<u32>,
    /// From when the next request is served.
    free: Picos,
    /// Core that had the line to itself until another core's read was served, the time when the line leaves it, and that other core.
    leaves: Option<(u32, Picos, u32)>,
    /// Time at which all that was served has arrived. A line is taken away only then.
    settled: Picos,
    /// Home of the line, where its memory is.
    home: u32,
}

/// Number of cores of each group that have a line.
#[derive(Clone, Debug, Default)]
struct Counts(Vec<u32>);

impl Counts {
    fn add(&mut self, groups: &[u32; GROUPS]) {
        let most = groups.iter().fold(0, |most, &group| most.max(group as usize));
        if self.0.len() <= most {
            self.0.resize(most + 1, 0);
        }
        groups.iter().for_each(|&group| self.0[group as usize] += 1);
    }

    fn of(&self, group: u32) -> u32 {
        self.0.get(group as usize).copied().unwrap_or(0)
    }
}

impl Line {
    /// A line that nobody has, or one core exclusively.
    pub fn new(home: u32, owner: Option<u32>) -> Line {
        Line {
            holders: owner.into_iter().map(|core| (core, Picos(0))).collect(),
            owner,
            counts: None,
            modified: false,
            taken_over: false,
            answers: owner,
            free: Picos(0),
            leaves: None,
            settled: Picos(0),
            home,
        }
    }

    /// A line that these cores read last.
    pub fn read_by(home: u32, cores: impl IntoIterator<Item = u32>) -> Line {
        let holders: Vec<(u32, Picos)> = cores.into_iter().map(|core| (core, Picos(0))).collect();
        let owner = if holders.len() == 1 { Some(holders[0].0) } else { None };
        let answers = holders.first().map(|h| h.0);
        Line { holders, owner, answers, ..Line::new(home, None) }
    }

    /// Returns the time at which the line arrives, or arrived, at a core that has it.
    pub fn arrives(&self, core: u32) -> Option<Picos> {
        self.holders.iter().find(|h| h.0 == core).map(|h| h.1)
    }

    /// Returns the cores that have the line besides `core`.
    pub fn others(&self, core: u32) -> impl Iterator<Item = u32> + '_ {
        self.holders.iter().map(|h| h.0).filter(move |&other| other != core)
    }

    /// Returns whether a core can read it.
    pub fn held_by(&self, core: u32) -> bool {
        self.arrives(core).is_some()
    }

    /// Returns whether a core can write it, and nothing is in the way.
    pub fn owned_by(&self, core: u32) -> bool {
        self.owner == Some(core) && !self.taken_over
    }

    /// Returns whether a core that had it for itself can still write it: a read takes half of a transfer to get there.
    pub fn still_there(&self, core: u32, now: Picos) -> bool {
        self.leaves.is_some_and(|(owner, until, _)| owner == core && now < until)
    }

    /// The core that it leaves has written it meanwhile, so that it arrives modified; `takes_over` as for a read of a modified line.
    pub fn written_while_leaving(&mut self, takes_over: bool) {
        let Some((owner, _, to)) = self.leaves else { return };
        let between_two = self.holders.len() == 2 && self.held_by(owner);
        if let (Some(arrives), None, true) = (self.arrives(to), self.owner, takes_over && between_two) {
            (self.holders, self.counts) = (vec![(to, arrives)], None);
            (self.owner, self.answers, self.taken_over) = (Some(to), Some(to), true);
            self.free = self.free.max(arrives);
        }
    }

    /// Returns the home of the line, where its memory is.
    pub fn home(&self) -> u32 {
        self.home
    }

    /// The core that has it for itself.
    pub fn owner(&self) -> Option<u32> {
        self.owner
    }

    /// The owner has written it.
    pub fn written(&mut self) {
        self.modified = true;
    }

    /// Its owner's store takes effect at `until` only, after others before it: nobody is served before.
    pub fn keep(&mut self, until: Picos) {
        self.free = self.free.max(until);
        self.settled = self.settled.max(until);
    }

    /// Its state in the caches that have it.
    pub fn state(&self) -> State {
        match (self.owner, self.modified) {
            (Some(_), true) => State::M,
            (Some(_), false) => State::E,
            (None, _) => State::S,
        }
    }

    /// Returns the time at which a request is served, others not counted: a store takes the line away, a load does not.
    pub fn serves(&self, store: bool) -> Picos {
        match store {
            true => self.free.max(self.settled),
            false => self.free,
        }
    }

    /// Returns the time, in picoseconds, after which another core answers a read by `core`, and that core, unless it was found by groups;
    /// `None` for memory.
    fn supplier(&mut self, core: u32, prices: &impl Prices) -> Option<(u64, Option<u32>)> {
        if let (MANY.., Some(groups)) = (self.holders.len(), prices.groups(core)) {
            return self.nearest_by_groups(core, &groups, prices).map(|time| (time, None));
        }
        let state = self.state();
        let from = |other: u32| (prices.read(core, other, self.home, state), Some(other));
        let nearest = || self.holders.iter().map(|h| from(h.0)).min_by_key(|found| found.0);
        match prices.protocol() {
            Protocol::Mesi | Protocol::Mesif => nearest(),
            Protocol::Gols => self.answers.filter(|&a| self.held_by(a)).map(from).or_else(nearest),
        }
    }

    /// As `supplier`, where many cores have the line and prices are by groups: the cheapest of the groups with a holder that is in
    /// none of the smaller ones.
    fn nearest_by_groups(&mut self, core: u32, groups: &[u32; GROUPS], prices: &impl Prices) -> Option<u64> {
        let counts = self.counts.get_or_insert_with(|| {
            let mut counts = Counts::default();
            self.holders.iter().filter_map(|h| prices.groups(h.0)).for_each(|groups| counts.add(&groups));
            counts
        });
        let have = |nth: usize| counts.of(groups[nth]);
        let there = |nth: &usize| *nth == 0 || have(*nth) > have(*nth - 1);
        (0..GROUPS)
            .filter(|nth| have(*nth) > 0)
            .filter(there)
            .map(|nth| prices.read_within(core, nth, self.home))
            .min()
    }

    /// Another core has it.
    fn held_also_by(&mut self, core: u32, arrives: Picos, prices: &impl Prices) {
        self.holders.push((core, arrives));
        if let (Some(counts), Some(groups)) = (&mut self.counts, prices.groups(core)) {
            counts.add(&groups);
        }
    }

    /// Returns whether it is known, without asking all who have it, that a core has not.
    fn surely_not_at(&self, core: u32, prices: &impl Prices) -> bool {
        let (Some(counts), Some([alone, ..])) = (&self.counts, prices.groups(core)) else { return false };
        counts.of(alone) == 0
    }

    /// As [`Line::arrives`], found sooner where prices are by groups.
    pub fn arrives_at(&self, core: u32, prices: &impl Prices) -> Option<Picos> {
        if self.surely_not_at(core, prices) {
            return None;
        }
        self.arrives(core)
    }

    /// A core reads it, served from `now` on; `nth` counts misses in a row. Returns when it has arrived.
    pub fn read(&mut self, now: Picos, core: u32, nth: u64, prices: &mut impl Prices) -> Picos {
        if let Some(arrives) = self.arrives_at(core, prices) {
            return Picos(now.max(arrives).0 + prices.hit());
        }
        let (found, start, transfer) = match self.supplier(core, prices) {
            Some((transfer, from)) => {
                let start = prices.sent(now, core, self.home, from.into_iter(), true);
                (Found::Cached, start, transfer)
            }
            None => {
                let (start, transfer) = prices.memory(now, core, self.home);
                (Found::Memory, start, transfer)
            }
        };
        let arrived = Picos(start.0 + prices.nth(found, nth, transfer));
        let takes_over = self.state() == State::M && prices.upgrade().is_some();
        self.leaves = self.owner.map(|owner| (owner, Picos(start.0 + transfer / 2), core));
        self.free = match takes_over {
            true => arrived,
            false => Picos(start.0 + prices.service(found, transfer)),
        };
        if takes_over {
            self.holders.clear();
            self.counts = None;
        }
        let alone = self.holders.is_empty();
        self.owner = alone.then_some(core);
        self.taken_over = takes_over;
        if alone {
            self.answers = Some(core);
        }
        // Whoever shares a line finds it as memory has it, unless the owner keeps answering for it.
        self.modified &= prices.protocol() == Protocol::Gols && !takes_over;
        self.held_also_by(core, arrived, prices);
        self.settled = self.settled.max(arrived);
        arrived
    }

    /// A core makes it its own, served from `now` on. Returns when nobody else has it any more.
    pub fn write(&mut self, now: Picos, core: u32, nth: u64, prices: &mut impl Prices) -> Picos {
        // A shared line is invalidated at the price of an exclusive one (Ramos & Hoefler 2013, Eq. 2.9).
        let state = match self.state() {
            State::E if self.taken_over => State::M,
            State::S => State::E,
            other => other,
        };
        let farthest = self.others(core).map(|other| prices.own(core, other, self.home, state)).max();
        self.leaves = None;
        let done = match farthest {
            Some(time) => {
                let start = prices.sent(now, core, self.home, self.others(core), !self.held_by(core));
                Picos(start.0 + prices.nth(Found::Cached, nth, time))
            }
            None if self.taken_over => Picos(now.0 + prices.upgrade().unwrap_or(0).max(prices.hit())),
            None if self.held_by(core) => Picos(now.0 + prices.hit()),
            None => {
                let (start, time) = prices.memory(now, core, self.home);
                Picos(start.0 + prices.nth(Found::Memory, nth, time))
            }
        };
        self.holders.clear();
        self.counts = None;
        self.holders.push((core, done));
        (self.owner, self.answers, self.modified, self.taken_over) = (Some(core), Some(core), true, false);
        (self.free, self.settled) = (done, done);
        done
    }
}

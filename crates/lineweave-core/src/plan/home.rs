//! Homes: in whose box the lines of a plan's flags, and its slots, lie.
//!
//! A line's memory is where its home is, and caches ask there who has the line. An algorithm gives each flag a home; the parameter
//! `home` gives all of them another. Flags that share a line move together, and nothing else of the plan changes: a proof of it
//! holds for all homes.

use super::{Carry, FlagRef, Layout, Op, Plan, PlanError, Space, Take};
use crate::topology::Shape;
use crate::units::{Rank, LINE};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::str::FromStr;

/// Rank in whose box lines lie.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Home {
    /// The one rank's that waits for the line's flags, or reads the slot; lines of several stay where they are.
    Poller,
    /// The one rank's that sets the line's flags, or writes the slot; lines of several stay where they are.
    Setter,
    /// The root's.
    Root,
    /// The first rank's of a NUMA node: as where one process touched all of the memory first.
    Node(usize),
}

impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Home::Poller => f.pad("poller"),
            Home::Setter => f.pad("setter"),
            Home::Root => f.pad("root"),
            Home::Node(node) => f.pad(&format!("node{node}")),
        }
    }
}

impl FromStr for Home {
    type Err = String;

    fn from_str(text: &str) -> Result<Home, String> {
        match text {
            "poller" => Ok(Home::Poller),
            "setter" => Ok(Home::Setter),
            "root" => Ok(Home::Root),
            _ => text
                .strip_prefix("node")
                .and_then(|node| node.parse().ok())
                .map(Home::Node)
                .ok_or_else(|| "poller, setter, root, or node0 .. for a NUMA node".to_owned()),
        }
    }
}

/// Unit that moves as one: the flags of an array at one home that share a line, or a slot of one box.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Unit {
    Flags { array: u16, home: Rank, line: u16 },
    Slot { slot: u16, home: Rank },
}

impl Unit {
    fn home(self) -> Rank {
        match self {
            Unit::Flags { home, .. } | Unit::Slot { home, .. } => home,
        }
    }
}

/// Use of a line by a rank: flags are polled and slots read, or they are written.
#[derive(Clone, Copy)]
enum Use {
    Polls,
    Sets,
}

/// Ranks that poll and ranks that set a line.
#[derive(Clone, Default)]
struct Users {
    polls: BTreeSet<Rank>,
    sets: BTreeSet<Rank>,
}

/// As many flags as share a line.
fn on_a_line(layout: Layout) -> u16 {
    match layout {
        Layout::Packed => (LINE / 8) as u16,
        Layout::Paired => 2,
        Layout::Alone | Layout::Spread(_) => 1,
    }
}

impl Plan {
    /// This plan with its lines in other boxes.
    ///
    /// # Errors
    /// [`PlanError::BadParameter`] for a node on which no rank sits, [`PlanError::NotApplicable`] where a box would have more flags
    /// or slots than can be numbered.
    pub fn homed(&self, home: Home, shape: &Shape) -> Result<Plan, PlanError> {
        let all = match home {
            Home::Poller | Home::Setter => None,
            Home::Root => Some(self.root),
            Home::Node(node) => {
                let sits = |&rank: &usize| shape.cpu(Rank::from(rank)).numa == node;
                let first = (0..self.ranks).find(sits).map(Rank::from);
                let expected = "a NUMA node on which a rank sits";
                Some(first.ok_or_else(|| PlanError::bad("home", home, expected))?)
            }
        };
        let users = self.users();
        let moves = |(&unit, users): (&Unit, &Users)| {
            let users = if home == Home::Poller { &users.polls } else { &users.sets };
            let only = users.first().filter(|_| users.len() == 1).copied();
            (unit, all.or(only).unwrap_or(unit.home()))
        };
        self.moved(&users.iter().map(moves).collect())
    }

    /// The home of each line that the plan uses, and whether that is one of those who poll it or set it.
    pub fn homes(&self) -> impl Iterator<Item = (Rank, bool)> {
        let mut own: HashMap<Unit, bool> = HashMap::new();
        self.each_use(|unit, rank, _| *own.entry(unit).or_default() |= unit.home() == rank);
        let mut own: Vec<(Unit, bool)> = own.into_iter().collect();
        own.sort_unstable();
        own.into_iter().map(|(unit, own)| (unit.home(), own))
    }

    fn unit_of(&self, flag: FlagRef) -> Unit {
        let line = flag.index / on_a_line(self.flags[flag.array as usize].layout);
        Unit::Flags { array: flag.array, home: flag.home, line }
    }

    /// Every line that an op names, and who uses it.
    fn users(&self) -> BTreeMap<Unit, Users> {
        let mut all: BTreeMap<Unit, Users> = BTreeMap::new();
        self.each_use(|unit, rank, uses| {
            let users = all.entry(unit).or_default();
            match uses {
                Use::Polls => users.polls.insert(rank),
                Use::Sets => users.sets.insert(rank),
            };
        });
        all
    }

    /// Every line that an op names, with its rank and what that does.
    fn each_use(&self, mut uses: impl FnMut(Unit, Rank, Use)) {
        for (rank, op) in self.ops() {
            let mut touch = |space: Space, what: &[Use]| {
                let Space::Slot { rank: home, slot } = space else { return };
                what.iter().for_each(|&what| uses(Unit::Slot { slot, home }, rank, what));
            };
            match op {
                Op::Move { src, dst } => {
                    touch(src.space, &[Use::Polls]);
                    touch(dst.space, &[Use::Sets]);
                }
                Op::Fold { a, b, dst } => {
                    [a, b].into_iter().for_each(|region| touch(region.space, &[Use::Polls]));
                    touch(dst.space, &[Use::Sets]);
                }
                Op::Set { carry: Some(Carry::Bytes(bytes)), .. } => touch(bytes.space, &[Use::Polls]),
                Op::Wait { take: Some(Take::Bytes(bytes)), .. } => touch(bytes.space, &[Use::Sets]),
                // Whoever learns where it is may do either.
                Op::Set { carry: Some(Carry::Address(space)), .. }
                | Op::Wait { take: Some(Take::Address(space)), .. } => {
                    touch(*space, &[Use::Polls, Use::Sets])
                }
                Op::Set { .. } | Op::Wait { .. } | Op::Add { .. } => {}
            }
            match op {
                Op::Wait { flag, .. } => uses(self.unit_of(*flag), rank, Use::Polls),
                Op::Set { flag, .. } | Op::Add { flag } => uses(self.unit_of(*flag), rank, Use::Sets),
                Op::Move { .. } | Op::Fold { .. } => {}
            }
        }
    }

    /// The plan with each line in this rank's box, where they are numbered anew, array by array and slot by slot.
    fn moved(&self, homes: &BTreeMap<Unit, Rank>) -> Result<Plan, PlanError> {
        let too_many = || PlanError::NotApplicable {
            algorithm: format!("{}/{}", self.collective, self.algorithm),
            why: "a box would have more flags or slots than can be numbered".to_owned(),
        };
        // 1. Each line's number among those of its array, or copies of its slot, in its new box.
        let mut taken: BTreeMap<(bool, u16, Rank), usize> = BTreeMap::new();
        let mut numbers: BTreeMap<Unit, usize> = BTreeMap::new();
        let mut copies = vec![0; self.slots.len()];
        for (&unit, &home) in homes {
            let (is_slot, of) = match unit {
                Unit::Flags { array, .. } => (false, array),
                Unit::Slot { slot, .. } => (true, slot),
            };
            let next = taken.entry((is_slot, of, home)).or_insert(0);
            numbers.insert(unit, *next);
            *next += 1;
            if is_slot {
                copies[of as usize] = (*next).max(copies[of as usize]);
            }
        }
        // 2. Slots follow each other, as many of each as the fullest box has, and one that nobody uses.
        let mut plan = self.clone();
        let mut first = vec![0; self.slots.len()];
        plan.slots.clear();
        for (slot, &size) in self.slots.iter().enumerate() {
            first[slot] = plan.slots.len();
            plan.slots.extend(std::iter::repeat_n(size, copies[slot].max(1)));
        }
        if plan.slots.len() > usize::from(u16::MAX) {
            return Err(too_many());
        }
        // 3. Flags keep their places on their lines.
        let index = |flag: FlagRef| {
            let each = on_a_line(self.flags[flag.array as usize].layout);
            numbers[&self.unit_of(flag)] * usize::from(each) + usize::from(flag.index % each)
        };
        let mut counts = vec![0; self.flags.len()];
        for (_, op) in self.ops() {
            if let Op::Set { flag, .. } | Op::Wait { flag, .. } | Op::Add { flag } = op {
                let count = &mut counts[flag.array as usize];
                *count = (index(*flag) + 1).max(*count);
            }
        }
        for (array, count) in plan.flags.iter_mut().zip(counts).filter(|(_, count)| *count > 0) {
            array.count = count;
        }
        if plan.flags.iter().any(|array| array.count > usize::from(u16::MAX)) {
            return Err(too_many());
        }
        let flag = |f: FlagRef| FlagRef { home: homes[&self.unit_of(f)], index: index(f) as u16, ..f };
        let space = |space: Space| match space {
            Space::Slot { rank, slot } => {
                let unit = Unit::Slot { slot, home: rank };
                let slot = first[slot as usize] + numbers[&unit];
                Space::Slot { rank: homes[&unit], slot: slot as u16 }
            }
            Space::In | Space::Out | Space::Acc | Space::PeerIn(_) | Space::PeerOut(_) => space,
        };
        for program in &mut plan.programs {
            program.iter_mut().for_each(|op| *op = op.through(flag, space));
        }
        Ok(plan)
    }
}

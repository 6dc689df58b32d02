//! A model's numbers in tables, and what lines cost between the ranks of a shape.

use crate::lines::{Found, Prices, GROUPS};
use crate::machine::{is_away, Protocol, State};
use crate::model::{Model, Reading, Surface};
use crate::topology::{Level, Shape};
use crate::trace::Picos;
use crate::units::Rank;
use std::collections::HashMap;

/// Costs at one distance.
#[derive(Clone, Copy, Debug)]
pub struct Near<'m> {
    /// R_R, in picoseconds.
    read: u64,
    /// Ownership of a line that is modified there, and of one that is not.
    own: [u64; 2],
    /// As many times longer all of it takes where the line's home is in another package.
    pub farther_away: f64,
    /// Reading a peer's bytes.
    pub get: &'m Surface,
    /// Writing where a peer read.
    pub put: &'m Surface,
    /// Bytes that flow through a ring, where that was measured.
    pub stream: Option<&'m Surface>,
}

/// Everything the player looks up. Times are in ns.
#[derive(Clone, Debug)]
pub struct Rates<'m> {
    levels: Vec<Near<'m>>,
    /// The model.
    pub model: &'m Model,
    /// A set.
    pub set: f64,
    /// A satisfied wait.
    pub wait: f64,
    /// A move without its bytes.
    pub mov: f64,
    /// A fold without its bytes.
    pub fold: f64,
    /// A run.
    pub run: f64,
    /// Same-line contention.
    pub contention: f64,
    /// Same-line contention in picoseconds: the time for which a read keeps its line busy.
    service: u64,
    /// Between loads of lines in a row.
    row: f64,
    /// Between stores to lines of others, in picoseconds.
    pub gap: u64,
    /// R_L.
    local: u64,
    /// R_I.
    invalid: u64,
    /// A store after a read that took the line over.
    upgrade: Option<u64>,
    /// A fetch-and-add beyond the ownership of its line.
    pub add: f64,
}

/// Values read off surfaces lately: plans have few lengths, and ask for each of them again and again.
#[derive(Debug)]
pub struct Readings(Vec<([usize; 3], Reading)>);

impl Readings {
    /// As many as are remembered.
    const PLACES: usize = 64;

    /// None yet.
    pub fn new() -> Readings {
        Readings(vec![([0; 3], Reading { nanos: 0.0, extrapolated: false }); Readings::PLACES])
    }

    /// [`Surface::at`].
    pub fn at(&mut self, surface: &Surface, bytes: usize, tau: usize) -> Reading {
        let which = std::ptr::from_ref(surface) as usize;
        let place = (which >> 4).wrapping_add(bytes ^ bytes >> 7).wrapping_mul(7).wrapping_add(tau);
        let (key, reading) = &mut self.0[place % Readings::PLACES];
        if *key != [which, bytes, tau] {
            (*key, *reading) = ([which, bytes, tau], surface.at(bytes, tau));
        }
        *reading
    }
}

/// Nanoseconds as whole picoseconds.
pub fn picos(ns: f64) -> Picos {
    Picos((ns * 1e3).round() as u64)
}

impl<'m> Rates<'m> {
    /// The tables of a model.
    pub fn of(model: &'m Model) -> Rates<'m> {
        let o = &model.overhead;
        let near = |&level: &Level| {
            let costs = model.level(level).0;
            let own = costs.own_modified.unwrap_or(costs.own);
            Near {
                read: picos(costs.read.value).0,
                own: [picos(own.value).0, picos(costs.own.value).0],
                farther_away: costs.farther_away(),
                get: &costs.get,
                put: &costs.put,
                stream: costs.stream.as_ref(),
            }
        };
        let nearest = &model.levels[0];
        Rates {
            levels: Level::ALL.iter().map(near).collect(),
            model,
            set: o.set.value,
            wait: o.wait.value,
            mov: o.mov.value,
            fold: o.fold.value,
            run: o.run.value,
            contention: model.contention.c.value,
            service: picos(model.contention.c.value).0,
            row: model.issue.value,
            gap: picos(model.between_stores(nearest.level).value).0,
            local: picos(model.local.value).0,
            invalid: picos(model.invalid.value).0,
            upgrade: nearest.upgrade().map(|u| picos(u.value).0),
            add: (model.add.value - nearest.own.value).max(0.0),
        }
    }

    /// Returns whether a read of a modified line takes it over.
    pub fn takes_over(&self) -> bool {
        self.upgrade.is_some()
    }

    /// A load behind others, of a line at this distance.
    pub fn in_row(&self, level: Level) -> f64 {
        self.row.min(self.at(level).read as f64 / 1e3)
    }

    /// Costs at a distance.
    pub fn at(&self, level: Level) -> &Near<'m> {
        &self.levels[level as usize]
    }
}

impl Near<'_> {
    /// A transfer at this distance, of a line that is away from home or not.
    fn transfer(&self, time: u64, away: bool) -> u64 {
        match away {
            true => (time as f64 * self.farther_away).round() as u64,
            false => time,
        }
    }
}

/// Ranks on the caches of their CPUs: ranks of one CPU share its caches.
#[derive(Clone, Debug)]
pub struct Sitting<'a> {
    /// The tables.
    pub rates: Rates<'a>,
    shape: &'a Shape,
    /// For each rank, the number of its cache.
    pub cache: Vec<u32>,
    /// For each cache, a rank on it.
    rank: Vec<u32>,
    /// For each cache, its number among caches, and then the group of caches at each level that it is in.
    groups: Option<Vec<[u32; GROUPS]>>,
    /// True if the model knows of lines that are away from home, and ranks are in several packages.
    homes: bool,
}

impl<'a> Sitting<'a> {
    /// The ranks of a shape.
    pub fn of(model: &'a Model, shape: &'a Shape) -> Sitting<'a> {
        let mut numbers = HashMap::new();
        let mut rank = Vec::new();
        let cache = (0..shape.ranks() as u32)
            .map(|r| {
                let next = numbers.len() as u32;
                let of = *numbers.entry(shape.cpu(Rank(r)).os).or_insert(next);
                if of == next {
                    rank.push(r);
                }
                of
            })
            .collect();
        let homes =
            model.levels.iter().any(|level| level.away.is_some()) && shape.groups(Level::Package).len() > 1;
        let groups = groups(shape, &rank);
        Sitting { rates: Rates::of(model), shape, cache, rank, groups, homes }
    }

    /// Returns whether a line in a rank's box is away from two caches: they share a package, and that rank sits in another one.
    pub fn away(&self, a: u32, b: u32, home: u32) -> bool {
        let cpu = |cache: u32| self.shape.cpu(Rank(self.rank[cache as usize]));
        self.homes && is_away(cpu(a), cpu(b), self.shape.cpu(Rank(home)).package)
    }

    /// As many times longer a transfer of a line takes than one at home.
    pub fn farther_away(&self, a: u32, b: u32, home: u32) -> f64 {
        match self.away(a, b, home) {
            true => self.rates.at(self.level(a, b)).farther_away,
            false => 1.0,
        }
    }

    /// The distance of two caches.
    pub fn level(&self, a: u32, b: u32) -> Level {
        self.shape.distance(Rank(self.rank[a as usize]), Rank(self.rank[b as usize]))
    }
}

/// For each cache, with a rank on it: its number, and then a number of the group of caches at each level that it is in. Nothing where some group lies
/// in several of the next level.
fn groups(shape: &Shape, rank: &[u32]) -> Option<Vec<[u32; GROUPS]>> {
    let mut groups: Vec<[u32; GROUPS]> = (0..rank.len() as u32).map(|cache| [cache; GROUPS]).collect();
    let mut next = rank.len() as u32;
    for (nth, &level) in Level::ALL.iter().enumerate().rev() {
        let mut known: HashMap<usize, [u32; 2]> = HashMap::new();
        for (cache, &rank) in rank.iter().enumerate() {
            let around = groups[cache].get(nth + 2).copied().unwrap_or(0);
            let [number, first_around] = *known.entry(shape.cpu(Rank(rank)).id(level)).or_insert_with(|| {
                next += 1;
                [next - 1, around]
            });
            if first_around != around {
                return None;
            }
            groups[cache][nth + 1] = number;
        }
    }
    Some(groups)
}

impl Prices for Sitting<'_> {
    fn protocol(&self) -> Protocol {
        Protocol::Mesi
    }

    fn hit(&self) -> u64 {
        self.rates.local
    }

    fn read(&self, core: u32, from: u32, home: u32, _: State) -> u64 {
        let near = self.rates.at(self.level(core, from));
        near.transfer(near.read, self.away(core, from, home))
    }

    fn groups(&self, core: u32) -> Option<[u32; GROUPS]> {
        self.groups.as_ref().map(|groups| groups[core as usize])
    }

    fn read_within(&self, core: u32, group: usize, home: u32) -> u64 {
        // A rank's cache has what it reads from itself, so the nearest other one is at the first level.
        let level = Level::ALL[group.saturating_sub(1)];
        let away = level < Level::Machine && self.away(core, core, home);
        let near = self.rates.at(level);
        near.transfer(near.read, away)
    }

    fn own(&self, core: u32, from: u32, home: u32, state: State) -> u64 {
        let near = self.rates.at(self.level(core, from));
        near.transfer(near.own[usize::from(state != State::M)], self.away(core, from, home))
    }

    fn memory(&mut self, now: Picos, _: u32, _: u32) -> (Picos, u64) {
        (now, self.rates.invalid)
    }

    fn service(&self, _: Found, _: u64) -> u64 {
        self.rates.service
    }

    fn nth(&self, _: Found, _: u64, first: u64) -> u64 {
        first
    }

    fn upgrade(&self) -> Option<u64> {
        self.rates.upgrade
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines::Line;
    use crate::model::Values;
    use crate::topology::Cpu;

    #[test]
    fn a_line_that_many_share_costs_the_same_by_groups_as_one_by_one() {
        let cpu = |c: usize| Cpu { os: c, core: c / 2, l3: c / 8, numa: c / 16, package: c / 32, kind: 0 };
        let shape = Shape::on((0..64).map(cpu).collect());
        let model = Values::default().model();
        let mut groups = Sitting::of(&model, &shape);
        // Asked for holder by holder.
        let mut alone = Sitting { groups: None, ..groups.clone() };
        assert!(groups.groups(3).is_some() && alone.groups(3).is_none());
        for step in [1, 5, 27, 39] {
            let (mut one, mut other) = (Line::new(40, Some(9)), Line::new(40, Some(9)));
            for turn in 0..3 {
                for i in 0..60 {
                    let (now, core) = (Picos(10 * i), (7 + i as u32 * step) % 64);
                    let found = [one.read(now, core, 1, &mut groups), other.read(now, core, 1, &mut alone)];
                    assert_eq!(found[0], found[1], "turn {turn}, read {i} in steps of {step}");
                }
                let written =
                    [one.write(Picos(0), step, 1, &mut groups), other.write(Picos(0), step, 1, &mut alone)];
                assert_eq!(written[0], written[1]);
            }
        }
        let crossed = |c: usize| Cpu { numa: c % 2, ..cpu(c) };
        assert!(Sitting::of(&model, &Shape::on((0..64).map(crossed).collect())).groups(0).is_none());
    }
}

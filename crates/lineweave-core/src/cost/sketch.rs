//! What a plan costs at least, or little more: its ops in the order of what they wait for, each at what it costs where nothing is in its
//! way. A tenth of the work of playing it.
//!
//! Flags arrive one transfer after they were set, readers of one flag and adds to one counter follow each other, and bytes cost a copy at
//! their distance. Left out is what playing is for: stores on their way, lines that several flags share, copies at once, turns on a CPU.

use super::rates::Sitting;
use crate::model::Model;
use crate::plan::{FlagIndex, FlagKind, Layout, Op, Plan, Region, Space};
use crate::topology::{Level, Shape};
use crate::units::Rank;
use std::collections::HashMap;

/// Runs that follow each other.
const RUNS: i64 = 2;

/// What a plan costs at least, in ns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sketch {
    /// A run alone.
    pub first: f64,
    /// From run to run.
    pub each: f64,
}

/// One flag while a plan is sketched.
#[derive(Clone, Default)]
struct Flag {
    /// Values, over all runs, with when and by whom they were set.
    raised: Vec<(i64, f64, u32)>,
    /// How many have read the last value that somebody waited for, and that value.
    readers: (i64, u32),
    /// Ranks that wait for it, and for which value.
    waiting: Vec<(i64, u32)>,
}

impl Flag {
    /// It has a value from `at` on; whoever waited for that goes on.
    fn raise(&mut self, value: i64, at: f64, by: u32, queue: &mut Vec<u32>) {
        self.raised.push((value, at, by));
        self.waiting.retain(|&(wanted, rank)| {
            if wanted <= value {
                queue.push(rank);
            }
            wanted > value
        });
    }
}

/// A rank while a plan is sketched.
#[derive(Clone, Copy, Default)]
struct Hand {
    run: i64,
    pc: usize,
    now: f64,
    /// What it did itself.
    busy: f64,
    /// From when its next store to a line of others leaves.
    leaves: f64,
}

/// Costs by length, of which a plan has few.
struct Bytes<'a> {
    model: &'a Model,
    grain: usize,
    attach: bool,
    known: HashMap<(usize, Option<Level>, bool), f64>,
    last: ((usize, Option<Level>, bool), f64),
}

impl Bytes<'_> {
    /// A copy, or a fold, with bytes out of memory at this distance.
    fn nanos(&mut self, len: usize, from: Option<Level>, fold: bool) -> f64 {
        let key = (len, from, fold);
        if self.last.0 != key {
            let cost = *self.known.entry(key).or_insert_with(|| {
                let local = self.model.copy.at(len, 1).nanos;
                let fetched = match from {
                    None => 0.0,
                    Some(_) if self.attach => self.model.attach.as_ref().map_or(0.0, |a| a.at(len, 1).nanos),
                    // As if it followed others, whose transfers are under way.
                    Some(level) => {
                        let (costs, row) = (self.model.level(level).0, self.model.issue.value);
                        let hidden = (costs.read.value - row).max(0.0);
                        (costs.get.at(len, 1).nanos - local - hidden).max(0.0)
                    }
                };
                match self.model.fold(self.grain).filter(|_| fold) {
                    // Part of the transfer is hidden behind the sums.
                    Some(costs) => costs.private.at(len, 1).nanos + fetched / 2.0,
                    None if self.attach && from.is_some() => fetched,
                    None => local + fetched,
                }
            });
            self.last = (key, cost);
        }
        self.last.1
    }
}

/// The least that a plan costs, or nothing where it cannot come to its end. `shape` has as many ranks as the plan.
pub fn sketch(model: &Model, shape: &Shape, plan: &Plan, attach: bool) -> Option<Sketch> {
    let index = FlagIndex::new(plan);
    let sitting = Sitting::of(model, shape);
    let ranks = plan.ranks;
    let span = i64::from(plan.span());
    let mut flags = vec![Flag::default(); index.total];
    let mut adds = vec![0i64; index.total];
    for (_, op) in plan.ops() {
        if let Op::Add { flag } = op {
            adds[index.of(*flag)] += 1;
        }
    }
    let mut bytes = Bytes {
        model,
        grain: plan.grain,
        attach: attach && plan.direct,
        known: HashMap::new(),
        last: ((usize::MAX, None, false), 0.0),
    };
    let level = |a: u32, b: u32| shape.distance(Rank(a), Rank(b));
    // Two ranks hand one line to and fro, which takes one transfer.
    let alone = ranks <= 2;
    let gap = if alone { 0.0 } else { sitting.rates.gap as f64 / 1e3 };
    let nearest = model.levels.iter().map(|l| l.own.value).fold(f64::INFINITY, f64::min);
    let own = |rank, home| if rank == home { nearest } else { model.level(level(rank, home)).0.own.value };
    let mut hands = vec![Hand::default(); ranks];
    let mut ends = [0.0f64; RUNS as usize];
    let mut done = 0;
    let mut queue: Vec<u32> = (0..ranks as u32).rev().collect();
    while let Some(rank) = queue.pop() {
        let mut hand = hands[rank as usize];
        let away = |region: &Region| match region.space {
            Space::Slot { rank: owner, .. } | Space::PeerIn(owner) | Space::PeerOut(owner)
                if owner.0 != rank =>
            {
                Some(level(rank, owner.0))
            }
            Space::In
            | Space::Out
            | Space::Acc
            | Space::Slot { .. }
            | Space::PeerIn(_)
            | Space::PeerOut(_) => None,
        };
        let rates = &sitting.rates;
        'program: loop {
            while let Some(op) = plan.programs[rank as usize].get(hand.pc) {
                let spent = match op {
                    Op::Move { src, dst } => {
                        rates.mov
                            + bytes.nanos(
                                src.len,
                                away(src).or_else(|| away(dst).filter(|_| bytes.attach)),
                                false,
                            )
                    }
                    Op::Fold { a, b, dst } => {
                        rates.fold + bytes.nanos(dst.len, away(a).or_else(|| away(b)), true)
                    }
                    Op::Set { flag, value, carry } => {
                        let spent = rates.set + if carry.is_some() { rates.mov } else { 0.0 };
                        let value = hand.run * span + i64::from(*value);
                        let leaves = (hand.now + spent).max(hand.leaves);
                        hand.leaves = leaves + gap;
                        // Flags on one line may come with one transfer.
                        let apart = matches!(
                            plan.flags[flag.array as usize].layout,
                            Layout::Alone | Layout::Spread(_)
                        );
                        let at = if alone || !apart { leaves } else { leaves + own(rank, flag.home.0) };
                        flags[index.of(*flag)].raise(value, at, rank, &mut queue);
                        spent
                    }
                    Op::Add { flag } => {
                        let it = &mut flags[index.of(*flag)];
                        let (count, last) = it.raised.last().map_or((0, None), |&(n, at, _)| (n, Some(at)));
                        let issued = hand.now + rates.set;
                        let at = last.map_or(issued, |at| issued.max(at + rates.contention));
                        it.raise(count + 1, at, rank, &mut queue);
                        at - hand.now
                    }
                    Op::Wait { flag, value, .. } => {
                        let number = index.of(*flag);
                        let step = match plan.flags[flag.array as usize].kind {
                            FlagKind::Signal => span,
                            FlagKind::Counter => adds[number],
                        };
                        let wanted = hand.run * step + i64::from(*value);
                        let it = &mut flags[number];
                        let found = it.raised.partition_point(|r| r.0 < wanted);
                        hand.busy += rates.wait;
                        if wanted > 0 {
                            let Some(&(_, at, by)) = it.raised.get(found) else {
                                hand.busy -= rates.wait;
                                it.waiting.push((wanted, rank));
                                break 'program;
                            };
                            if by != rank {
                                it.readers = if it.readers.0 == wanted {
                                    (wanted, it.readers.1 + 1)
                                } else {
                                    (wanted, 0)
                                };
                                let read = model.level(level(rank, by)).0.read.value;
                                let seen = at + read + f64::from(it.readers.1) * rates.contention;
                                // What was there before it came may have come with something else.
                                hand.now = hand.now.max(seen - rates.wait);
                            }
                        }
                        hand.now += rates.wait;
                        0.0
                    }
                };
                (hand.now, hand.busy) = (hand.now + spent, hand.busy + spent);
                hand.pc += 1;
            }
            (hand.now, hand.busy) = (hand.now + rates.run, hand.busy + rates.run);
            let end = &mut ends[hand.run as usize];
            *end = end.max(hand.now);
            (hand.run, hand.pc) = (hand.run + 1, 0);
            if hand.run == RUNS {
                done += 1;
                break;
            }
        }
        hands[rank as usize] = hand;
    }
    if done < ranks {
        return None;
    }
    // Ranks on one CPU work one after the other, and each has its turn.
    let mut cpus: HashMap<u32, (f64, f64)> = HashMap::new();
    for (hand, &cpu) in hands.iter().zip(&sitting.cache) {
        let (busy, ranks) = cpus.entry(cpu).or_default();
        (*busy, *ranks) = (*busy + hand.busy / RUNS as f64, *ranks + 1.0);
    }
    let turns = |ranks: f64| if ranks > 1.0 { ranks * model.wake.yielding.value } else { 0.0 };
    let crowded = cpus.values().map(|&(busy, ranks)| busy + turns(ranks)).fold(0.0, f64::max);
    Some(Sketch { first: ends[0].max(crowded), each: (ends[1] - ends[0]).max(crowded) })
}

//! Lower bound of a plan's cost, or little more: its ops in the order of their waits, each at its cost where nothing is in its way.
//! That takes a fraction of the time of playing the plan.
//!
//! Stores leave a core some time apart, flags arrive one transfer later, readers of one flag and adds to one counter follow each other, and
//! bytes cost a copy at their distance. Left out is what playing is for: lines that several flags share, pollers that take a line back,
//! copies at once, turns on a CPU.

use super::numbers::Known;
use super::rates::Sitting;
use crate::model::Model;
use crate::plan::{FlagIndex, FlagKind, Layout, Op, Plan, Region, Space};
use crate::topology::{Level, Shape};
use crate::units::Rank;

/// Runs that follow each other.
const RUNS: i64 = 2;

/// Lower bound of a plan's cost, in ns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LowerBound {
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
    /// Last value that a rank waited for, and the number of ranks that read it before the latest reader did.
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
    /// Time, in ns, for which the rank itself was at work.
    busy: f64,
    /// From when its next store to a line of others leaves.
    leaves: f64,
}

/// Costs by length, of which a plan has few.
struct Bytes<'a> {
    model: &'a Model,
    grain: usize,
    attach: bool,
    known: Known<(usize, Option<Level>, bool), f64>,
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

/// A plan under way.
struct Sketcher<'a> {
    plan: &'a Plan,
    sitting: Sitting<'a>,
    shape: &'a Shape,
    index: FlagIndex,
    span: i64,
    flags: Vec<Flag>,
    /// Adds to each flag in a run.
    adds: Vec<i64>,
    bytes: Bytes<'a>,
    /// Two ranks hand one line to and fro, which takes one transfer.
    alone: bool,
    /// Between stores of a core to lines of others.
    gap: f64,
    /// Taking a line from the nearest.
    nearest: f64,
    /// Ranks that can go on.
    queue: Vec<u32>,
}

impl<'a> Sketcher<'a> {
    fn new(model: &'a Model, shape: &'a Shape, plan: &'a Plan, attach: bool) -> Sketcher<'a> {
        let (index, sitting) = (FlagIndex::new(plan), Sitting::of(model, shape));
        let mut adds = vec![0; index.total];
        for (_, op) in plan.ops() {
            if let Op::Add { flag } = op {
                adds[index.of(*flag)] += 1;
            }
        }
        let alone = plan.ranks <= 2;
        let bytes = Bytes {
            model,
            grain: plan.grain,
            attach: attach && plan.direct,
            known: Known::default(),
            last: ((usize::MAX, None, false), 0.0),
        };
        Sketcher {
            plan,
            shape,
            span: i64::from(plan.span()),
            flags: vec![Flag::default(); index.total],
            adds,
            index,
            bytes,
            alone,
            gap: if alone { 0.0 } else { sitting.rates.gap as f64 / 1e3 },
            nearest: model.levels.iter().map(|l| l.own.value).fold(f64::INFINITY, f64::min),
            queue: (0..plan.ranks as u32).rev().collect(),
            sitting,
        }
    }

    fn level(&self, a: u32, b: u32) -> Level {
        self.shape.distance(Rank(a), Rank(b))
    }

    /// As many times longer a transfer between two ranks takes of a line in the box of a third.
    fn farther_away(&self, a: u32, b: u32, home: u32) -> f64 {
        self.sitting.farther_away(self.sitting.cache[a as usize], self.sitting.cache[b as usize], home)
    }

    /// Returns the distance of the region's bytes if they are another rank's.
    fn away(&self, rank: u32, region: &Region) -> Option<Level> {
        match region.space {
            Space::Slot { rank: owner, .. } | Space::PeerIn(owner) | Space::PeerOut(owner) => {
                (owner.0 != rank).then(|| self.level(rank, owner.0))
            }
            Space::In | Space::Out | Space::Acc => None,
        }
    }

    /// Goes on until a wait is for what nobody has set yet; whether all runs are done.
    fn go_on(&mut self, rank: u32, hand: &mut Hand, ends: &mut [f64; RUNS as usize]) -> bool {
        while hand.run < RUNS {
            while let Some(op) = self.plan.programs[rank as usize].get(hand.pc) {
                let Some(spent) = self.spend(rank, hand, op) else { return false };
                (hand.now, hand.busy) = (hand.now + spent, hand.busy + spent);
                hand.pc += 1;
            }
            let run = self.sitting.rates.run;
            (hand.now, hand.busy) = (hand.now + run, hand.busy + run);
            let end = &mut ends[hand.run as usize];
            *end = end.max(hand.now);
            (hand.run, hand.pc) = (hand.run + 1, 0);
        }
        true
    }

    /// Returns the time, in ns, that a rank itself spends on an op; `None` while it has to wait.
    fn spend(&mut self, rank: u32, hand: &mut Hand, op: &Op) -> Option<f64> {
        Some(match op {
            Op::Move { src, dst } => {
                let written = || self.away(rank, dst).filter(|_| self.bytes.attach);
                let from = self.away(rank, src).or_else(written);
                self.sitting.rates.mov + self.bytes.nanos(src.len, from, false)
            }
            Op::Fold { a, b, dst } => {
                let from = self.away(rank, a).or_else(|| self.away(rank, b));
                self.sitting.rates.fold + self.bytes.nanos(dst.len, from, true)
            }
            Op::Set { flag, value, carry } => {
                let rates = &self.sitting.rates;
                let spent = rates.set + if carry.is_some() { rates.mov } else { 0.0 };
                let leaves = (hand.now + spent).max(hand.leaves);
                hand.leaves = leaves + self.gap;
                // Flags on one line may come with one transfer.
                let layout = self.plan.flags[flag.array as usize].layout;
                let own = match layout {
                    _ if self.alone => 0.0,
                    Layout::Packed | Layout::Paired => 0.0,
                    Layout::Alone | Layout::Spread(_) if flag.home.0 == rank => self.nearest,
                    Layout::Alone | Layout::Spread(_) => {
                        rates.model.level(self.level(rank, flag.home.0)).0.own.value
                    }
                };
                let value = hand.run * self.span + i64::from(*value);
                self.flags[self.index.of(*flag)].raise(value, leaves + own, rank, &mut self.queue);
                spent
            }
            Op::Add { flag } => {
                let rates = &self.sitting.rates;
                let it = &mut self.flags[self.index.of(*flag)];
                let (count, last) = it.raised.last().map_or((0, None), |&(n, at, _)| (n, Some(at)));
                let issued = hand.now + rates.set;
                let at = last.map_or(issued, |at| issued.max(at + rates.contention));
                it.raise(count + 1, at, rank, &mut self.queue);
                at - hand.now
            }
            Op::Wait { flag, value, .. } => {
                let number = self.index.of(*flag);
                let step = match self.plan.flags[flag.array as usize].kind {
                    FlagKind::Signal => self.span,
                    FlagKind::Counter => self.adds[number],
                };
                self.wait(rank, hand, (number, flag.home), hand.run * step + i64::from(*value))?;
                self.sitting.rates.wait
            }
        })
    }

    /// Moves a rank's clock to when it sees a value; nothing while nobody has set it.
    fn wait(&mut self, rank: u32, hand: &mut Hand, (flag, home): (usize, Rank), wanted: i64) -> Option<()> {
        if wanted <= 0 {
            return Some(());
        }
        let it = &self.flags[flag];
        let found = it.raised.partition_point(|r| r.0 < wanted);
        let Some(&(_, at, by)) = it.raised.get(found) else {
            self.flags[flag].waiting.push((wanted, rank));
            return None;
        };
        if by != rank {
            let rates = &self.sitting.rates;
            let read = rates.model.level(self.level(rank, by)).0.read.value;
            let read = read * self.farther_away(rank, by, home.0);
            let readers = &mut self.flags[flag].readers;
            *readers = if readers.0 == wanted { (wanted, readers.1 + 1) } else { (wanted, 0) };
            let seen = at + read + f64::from(readers.1) * rates.contention;
            hand.now = hand.now.max(seen - rates.wait);
        }
        Some(())
    }
}

/// The least that a plan costs, or nothing where it cannot come to its end. `shape` has as many ranks as the plan, of which one may be
/// `ahead` runs ahead of another: so many runs have their turns on a shared CPU together.
pub fn sketch(model: &Model, shape: &Shape, plan: &Plan, ahead: usize, attach: bool) -> Option<LowerBound> {
    let ahead = ahead as f64;
    let mut sketcher = Sketcher::new(model, shape, plan, attach);
    let mut hands = vec![Hand::default(); plan.ranks];
    let mut ends = [0.0; RUNS as usize];
    let mut done = 0;
    while let Some(rank) = sketcher.queue.pop() {
        let mut hand = hands[rank as usize];
        done += usize::from(sketcher.go_on(rank, &mut hand, &mut ends));
        hands[rank as usize] = hand;
    }
    if done < plan.ranks {
        return None;
    }
    // Ranks on one CPU work one after the other. Each has its turn, and who had the last one of a run has the first of the next.
    let mut cpus: Known<u32, (f64, f64)> = Known::default();
    for (hand, &cpu) in hands.iter().zip(&sketcher.sitting.cache) {
        let (busy, ranks) = cpus.entry(cpu).or_default();
        (*busy, *ranks) = (*busy + hand.busy / RUNS as f64, *ranks + 1.0);
    }
    let turns = |ranks: f64| (ranks - 1.0) * model.wake.yielding.value;
    let crowded =
        |runs: f64| cpus.values().map(|&(busy, ranks)| busy + turns(ranks) / runs).fold(0.0, f64::max);
    Some(LowerBound { first: ends[0].max(crowded(1.0)), each: (ends[1] - ends[0]).max(crowded(ahead)) })
}

//! CPUs and the ranks on them. A CPU runs one rank at a time; ranks that share one take turns in a circle, and
//! each step of the circle costs one hand-over, whether or not the rank it reaches can go on.

use crate::topology::Shape;
use crate::units::Rank;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Time at which a CPU is due, the CPU and its generation, in one word, which compares fast; of CPUs due at one time the first leads.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Due(u128);

impl Due {
    /// Times are not negative, so their bits are in their order.
    fn new(at: f64, cpu: usize, generation: u32) -> Due {
        Due(u128::from(at.to_bits()) << 64 | (cpu as u128) << 32 | u128::from(generation))
    }

    fn at(self) -> f64 {
        f64::from_bits((self.0 >> 64) as u64)
    }

    fn cpu(self) -> usize {
        (self.0 >> 32) as u32 as usize
    }

    fn generation(self) -> u32 {
        self.0 as u32
    }
}

/// Assignment of ranks to CPUs.
#[derive(Clone, Debug)]
pub struct Cpus {
    /// For each CPU its ranks, in order.
    ranks: Vec<Vec<u32>>,
    /// For each rank its CPU.
    of: Vec<usize>,
}

impl Cpus {
    /// The CPUs of a shape.
    pub fn of(shape: &Shape) -> Cpus {
        let mut order: Vec<(usize, u32)> =
            (0..shape.ranks()).map(|r| (shape.cpu(Rank::from(r)).os, r as u32)).collect();
        order.sort_unstable();
        let mut ranks: Vec<Vec<u32>> = Vec::new();
        let mut of = vec![0; shape.ranks()];
        let mut last = None;
        for (os, rank) in order {
            if last != Some(os) {
                ranks.push(Vec::new());
                last = Some(os);
            }
            let cpu = ranks.len() - 1;
            ranks[cpu].push(rank);
            of[rank as usize] = cpu;
        }
        Cpus { ranks, of }
    }
}

/// State of a rank that may wait.
#[derive(Clone, Copy, Debug)]
enum Waiting {
    /// Nothing: it can run.
    No,
    /// For something seen at that time (infinite: nobody has raised it).
    For { seen: f64 },
    /// All its runs are done.
    Done,
}

#[derive(Clone, Debug)]
struct Cpu {
    /// Ranks still at work, in the order of turns.
    ranks: Vec<u32>,
    /// Index in `ranks` of the rank whose turn it is.
    turn: usize,
    /// Since when nobody runs; `None` while somebody does.
    blocked: Option<f64>,
    /// Time at which the CPU last began to look for a rank to run.
    looked: f64,
    /// The turn that comes next, and when.
    next: Option<(usize, f64)>,
    /// Agenda entries of older generations are void.
    generation: u32,
}

/// Schedule of ranks on their CPUs.
#[derive(Debug)]
pub struct Agenda {
    cpus: Vec<Cpu>,
    of: Vec<usize>,
    waiting: Vec<Waiting>,
    heap: BinaryHeap<Reverse<Due>>,
    /// Ranks that are not done.
    at_work: usize,
    yielding: f64,
}

impl Agenda {
    /// Every CPU begins with its first rank at time 0.
    pub fn new(cpus: Cpus, yielding: f64) -> Agenda {
        let waiting = vec![Waiting::No; cpus.of.len()];
        let heap = (0..cpus.ranks.len()).map(|c| Reverse(Due::new(0.0, c, 0))).collect();
        let cpu = |ranks| Cpu { ranks, turn: 0, blocked: None, looked: 0.0, next: None, generation: 0 };
        let at_work = waiting.len();
        let list = cpus.ranks.into_iter().map(cpu).collect();
        Agenda { cpus: list, of: cpus.of, waiting, heap, at_work, yielding: yielding.max(0.0) }
    }

    /// The next CPU that is due, its rank and the time.
    pub fn next(&mut self) -> Option<(usize, u32, f64)> {
        while let Some(Reverse(due)) = self.heap.pop() {
            let c = due.cpu();
            let cpu = &mut self.cpus[c];
            if cpu.generation != due.generation() || cpu.ranks.is_empty() {
                continue;
            }
            if let Some((turn, _)) = cpu.next.take() {
                cpu.turn = turn;
            }
            if let Some(since) = cpu.blocked.take() {
                cpu.looked = since;
            }
            return Some((c, cpu.ranks[cpu.turn], due.at()));
        }
        None
    }

    /// Returns the time at which the next CPU is due.
    pub fn soonest(&mut self) -> f64 {
        while let Some(Reverse(due)) = self.heap.peek() {
            let cpu = &self.cpus[due.cpu()];
            if cpu.generation == due.generation() && !cpu.ranks.is_empty() {
                return due.at();
            }
            self.heap.pop();
        }
        f64::INFINITY
    }

    /// Returns whether all ranks have done all that they had to do.
    pub fn idle(&self) -> bool {
        self.at_work == 0
    }

    /// The running rank of a CPU goes on at `now`, after others.
    pub fn resume(&mut self, cpu: usize, now: f64) {
        let generation = self.cpus[cpu].generation;
        self.heap.push(Reverse(Due::new(now, cpu, generation)));
    }

    /// The running rank waits for what it will be told of.
    pub fn block(&mut self, cpu: usize, rank: u32, now: f64) {
        self.waiting[rank as usize] = Waiting::For { seen: f64::INFINITY };
        self.look(cpu, now);
    }

    /// The running rank is done.
    pub fn retire(&mut self, cpu: usize, rank: u32, now: f64) {
        self.waiting[rank as usize] = Waiting::Done;
        self.at_work -= 1;
        let c = &mut self.cpus[cpu];
        c.ranks.remove(c.turn);
        if c.ranks.is_empty() {
            c.generation += 1;
            return;
        }
        // The circle goes on with the rank after the one that left.
        c.turn = (c.turn + c.ranks.len() - 1) % c.ranks.len();
        self.look(cpu, now);
    }

    /// Records that a waiting rank will see at `seen` what it waits for.
    pub fn notify(&mut self, rank: u32, seen: f64) {
        if let Waiting::For { seen: s } = &mut self.waiting[rank as usize] {
            *s = seen;
        }
        let c = self.of[rank as usize];
        let Some(since) = self.cpus[c].blocked else { return };
        let Some(turn) = self.cpus[c].ranks.iter().position(|&r| r == rank) else { return };
        let at = self.turn_at(c, turn, since);
        if self.cpus[c].next.is_none_or(|(_, t)| at < t) {
            self.plan_turn(c, turn, at);
        }
    }

    /// A rank that has waited goes on: when it saw what it waited for.
    pub fn take_seen(&mut self, rank: u32) -> Option<f64> {
        match self.waiting[rank as usize] {
            Waiting::For { seen } => {
                self.waiting[rank as usize] = Waiting::No;
                Some(seen)
            }
            Waiting::No | Waiting::Done => None,
        }
    }

    /// Returns whether several ranks are at work on a CPU.
    pub fn shares(&self, cpu: usize) -> bool {
        self.cpus[cpu].ranks.len() > 1
    }

    /// Returns the time at which a CPU last began to look for a rank to run.
    pub fn blocked_at(&self, cpu: usize) -> f64 {
        self.cpus[cpu].looked
    }

    /// Looks for the rank that goes on first when the circle starts to turn at `now`.
    fn look(&mut self, c: usize, now: f64) {
        self.cpus[c].blocked = Some(now);
        self.cpus[c].next = None;
        let best = (0..self.cpus[c].ranks.len())
            .map(|turn| (turn, self.turn_at(c, turn, now)))
            .filter(|t| t.1.is_finite())
            .min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        match best {
            Some((turn, at)) => self.plan_turn(c, turn, at),
            None => self.cpus[c].generation += 1,
        }
    }

    fn plan_turn(&mut self, c: usize, turn: usize, at: f64) {
        let cpu = &mut self.cpus[c];
        cpu.generation += 1;
        cpu.next = Some((turn, at));
        self.heap.push(Reverse(Due::new(at, c, cpu.generation)));
    }

    /// Returns the time of a rank's turn with its flag seen, in a circle that started to turn at `since`.
    fn turn_at(&self, c: usize, turn: usize, since: f64) -> f64 {
        let cpu = &self.cpus[c];
        let n = cpu.ranks.len();
        let ready = match self.waiting[cpu.ranks[turn] as usize] {
            Waiting::No => since,
            Waiting::For { seen } => seen,
            Waiting::Done => f64::INFINITY,
        };
        if n == 1 || self.yielding <= 0.0 || ready.is_infinite() {
            return ready.max(since);
        }
        // 1 .. n steps to the first turn, then one in n.
        let steps = (turn + n - cpu.turn - 1) % n + 1;
        let first = since + steps as f64 * self.yielding;
        let circle = n as f64 * self.yielding;
        first + ((ready - first) / circle).ceil().max(0.0) * circle
    }
}

//! Playing a compiled plan in the order of time, CPU by CPU.

use super::before::leave;
use super::compile::{Flag, Instruction, Playable};
use super::copies::Copies;
use super::data::Memory;
use super::hand::Store;
use super::pieces::Pieces;
use super::rates::{Readings, Sitting};
use super::ring::apart;
use super::schedule::{Agenda, Cpus};
use super::term::{Part, Term};
use super::trace::{Entry, Log};
use super::transfer::{pinning, streams};
use super::wires::{Seen, Wires};
use super::{Cost, Options};
use crate::model::Model;
use crate::plan::Plan;
use crate::topology::Shape;
use crate::units::{Nanos, Rank};

/// A rank under way.
#[derive(Clone, Debug)]
pub(super) struct Runner {
    run: usize,
    pub(super) pc: usize,
    /// The op at `pc`, fetched when the one before was over: its rank's turn comes later, and by then it has come from memory.
    next: Option<Instruction>,
    started: bool,
    /// End of each run.
    ends: Vec<f64>,
    /// True if its last load of a peer's bytes is so near that the next follows it in a row.
    pub(super) in_row: bool,
    /// True if what it waits for had been raised when it came.
    late: bool,
}

/// Outcome of one step.
enum Outcome {
    /// The rank goes on at this time.
    Until(f64),
    /// It waits until it is told what it has seen.
    Waits,
    /// All its runs are done.
    Done,
}

pub(super) struct Player<'a> {
    pub(super) wires: Wires<'a>,
    pub(super) shape: &'a Shape,
    pub(super) options: &'a Options,
    /// For each rank, how much memory its buffers are in.
    pub(super) reach: Vec<usize>,
    pub(super) grain: usize,
    pub(super) program: &'a Playable,
    /// Runs to play.
    runs: usize,
    pub(super) runners: Vec<Runner>,
    /// Slots of all banks.
    pub(super) slots: Memory,
    /// Users' buffers that others reach.
    pub(super) reached: Memory,
    pub(super) copies: Copies,
    pub(super) readings: Readings,
    /// Extra cost of a page that a system call copies, where other ranks copy from the same buffers.
    pub(super) pinning: f64,
    /// For each run, how many ranks have left it, and who waits for that.
    left: Vec<(usize, Vec<u32>)>,
    /// Bytes that each rank has put into shared buffers.
    pub(super) put: Vec<u64>,
    /// And those that it puts into slots before it comes to the same place of a ring again that runs walk through; 0 where they do not.
    pub(super) walked: Vec<u64>,
    /// True if moves into users' buffers go past the caches.
    pub(super) streams: bool,
    pub(super) extrapolated: bool,
    agenda: Agenda,
    log: Log,
    /// For each rank when each op of the last run ended, where that is wanted.
    op_ends: Vec<Vec<Nanos>>,
}

/// Plays `options.runs` runs and times the last `timed` of them, or all but the first.
pub fn play(
    model: &Model,
    shape: &Shape,
    plan: &Plan,
    program: &Playable,
    options: &Options,
    timed: Option<usize>,
) -> Cost {
    let ranks = plan.ranks;
    let runner = |ops: &Vec<Instruction>| Runner {
        run: 0,
        pc: 0,
        next: ops.first().copied(),
        started: false,
        ends: Vec::new(),
        in_row: false,
        late: false,
    };
    let mut sitting = Sitting::of(model, shape);
    if program.swaps && shape.oversubscription() == 1 {
        // Nothing of the call is between the wait of one and the store of the next, and no op is looked up: a word comes with its flag, and
        // its sum is one instruction.
        let rates = &mut sitting.rates;
        (rates.run, rates.mov, rates.fold) = (0.0, 0.0, 0.0);
    }
    let takes_over = sitting.rates.takes_over();
    let memory = |pieces: &Pieces| {
        let each = pieces.iter().map(|(buffer, len)| (len, sitting.cache[buffer.home.index()]));
        Memory::of(each, takes_over)
    };
    let (slots, reached) = (memory(&program.slots), memory(&program.reached));
    let pinning = pinning(&sitting, program.attachers);
    let left = leave(program, &sitting.cache, takes_over, slots, reached);
    let apart = apart(plan, options);
    let reach = program.reach(plan, options.message, apart);
    let walked = match options.walk {
        0 => vec![0; ranks],
        _ => program.put().map(|put| (put as f64 * apart) as u64).collect(),
    };
    let mut player = Player {
        shape,
        options,
        grain: plan.grain,
        program,
        runs: options.runs,
        runners: program.ops.iter().map(runner).collect(),
        slots: left.slots.banks(program.banks),
        reached: left.reached,
        copies: Copies::new(&program.ops, options.concurrent, &reach, &model.copy),
        reach,
        readings: Readings::new(),
        pinning: pinning.nanos,
        left: vec![(0, Vec::new()); options.runs],
        put: left.put,
        walked,
        streams: streams(model, plan, options),
        extrapolated: pinning.extrapolated,
        agenda: Agenda::new(Cpus::of(shape), model.wake.yielding.value),
        log: Log::new(options.trace, ranks),
        op_ends: vec![Vec::new(); ranks],
        wires: Wires::new(sitting, program, left.lines, options.trace),
    };
    loop {
        let (wires, ranks_due) = (player.wires.next(), player.agenda.soonest());
        if wires.min(ranks_due) > options.limit {
            break;
        }
        if wires <= ranks_due {
            player.wires.step(&mut player.log);
            player.notify();
        } else if let Some((cpu, rank, now)) = player.agenda.next() {
            player.go_on(cpu, rank, now);
        }
        if player.agenda.idle() || wires.min(ranks_due).is_infinite() {
            return player.cost(timed);
        }
    }
    Cost::unplayable(ranks, None)
}

impl Player<'_> {
    /// Runs a rank until another CPU is due, or until it waits.
    fn go_on(&mut self, cpu: usize, rank: u32, mut now: f64) {
        loop {
            match self.step(cpu, rank, now) {
                Outcome::Until(t) => now = t,
                Outcome::Waits => {
                    self.agenda.block(cpu, rank, now);
                    return self.notify();
                }
                Outcome::Done => return self.agenda.retire(cpu, rank, now),
            }
            self.notify();
            if now > self.agenda.soonest().min(self.wires.next()) {
                return self.agenda.resume(cpu, now);
            }
        }
    }

    fn step(&mut self, cpu: usize, rank: u32, now: f64) -> Outcome {
        let r = rank as usize;
        if !self.runners[r].started {
            let now = match self.agenda.take_seen(rank) {
                Some(seen) => now.max(seen),
                None if self.gated(rank) => return Outcome::Waits,
                None => now,
            };
            self.runners[r].started = true;
            let at = now + self.wires.sitting.rates.run;
            self.log.spend(rank, None, at, Term::Overhead(Part::Run));
            return Outcome::Until(at);
        }
        let (run, pc) = (self.runners[r].run, self.runners[r].pc);
        let Some(instruction) = self.runners[r].next else {
            let runner = &mut self.runners[r];
            runner.ends.push(now);
            (runner.run, runner.pc, runner.started, runner.in_row) = (run + 1, 0, false, false);
            runner.next = self.program.ops[r].first().copied();
            self.leave(run, now);
            return if run + 1 == self.runs { Outcome::Done } else { Outcome::Until(now) };
        };
        let bank = run % self.program.banks;
        let slots = bank * self.program.slots.len();
        let at = match instruction {
            Instruction::Move { src, dst, len } => {
                let len = self.program.lens[len as usize];
                let (at, term) = self.transfer(rank, slots, now, src.place(), dst.place(), len);
                self.log.spend(rank, Some(pc), at, term);
                at
            }
            Instruction::Fold { a, b, dst, len } => {
                let len = self.program.lens[len as usize];
                let at = self.combine(rank, slots, now, [a, b].map(|o| o.place()), dst.place(), len);
                self.log.spend(rank, Some(pc), at, Term::Fold);
                at
            }
            Instruction::Set { flag, value, carries } => self.set(rank, bank, now, flag, value, carries),
            Instruction::Add { flag } => match self.add(cpu, rank, bank, now, flag) {
                Some(done) => done,
                None => return Outcome::Waits,
            },
            Instruction::Wait { flag, value, takes } => {
                let Some(done) = self.wait(cpu, rank, bank, now, flag, value) else { return Outcome::Waits };
                if takes {
                    let at = done + self.wires.sitting.rates.mov;
                    self.log.spend(rank, Some(pc), at, Term::Overhead(Part::Move));
                    at
                } else {
                    done
                }
            }
        };
        if self.options.trace && run + 1 == self.runs {
            self.op_ends[r].push(Nanos(at));
        }
        let runner = &mut self.runners[r];
        runner.pc += 1;
        runner.next = self.program.ops[r].get(runner.pc).copied();
        Outcome::Until(at)
    }

    /// Returns whether a rank has to wait until others have left the bank of its run.
    fn gated(&mut self, rank: u32) -> bool {
        let run = self.runners[rank as usize].run;
        let banks = self.options.banks;
        let Some(before) = run.checked_sub(banks).filter(|_| self.program.guarded) else { return false };
        let (left, waiting) = &mut self.left[before];
        let gated = *left < self.runners.len();
        if gated {
            waiting.push(rank);
        }
        gated
    }

    /// A rank has left a run.
    fn leave(&mut self, run: usize, now: f64) {
        self.left[run].0 += 1;
        if self.left[run].0 == self.runners.len() {
            let seen = now + self.wires.sitting.rates.model.levels[0].read.value;
            for rank in std::mem::take(&mut self.left[run].1) {
                self.agenda.notify(rank, seen);
            }
        }
    }

    /// The value over all runs that a value of this run stands for.
    fn value(&self, flag: Flag, run: usize, value: i32) -> i64 {
        let span = if flag.counts { self.program.adds[flag.number as usize] } else { self.program.span };
        (run / self.program.banks) as i64 * span + i64::from(value)
    }

    /// A flag of a bank and its line, counted over all banks.
    fn flag(&self, bank: usize, flag: Flag) -> (u32, u32) {
        let lines = if self.program.same_lines { 0 } else { bank * self.program.lines };
        ((bank * self.program.adds.len()) as u32 + flag.number, lines as u32 + flag.line)
    }

    /// Tells ranks what they have seen.
    fn notify(&mut self) {
        while let Some(Seen { rank, at }) = self.wires.take_seen() {
            self.agenda.notify(rank, at);
        }
    }

    fn set(&mut self, rank: u32, bank: usize, now: f64, flag: Flag, value: i32, carries: bool) -> f64 {
        let rates = &self.wires.sitting.rates;
        let done = now + rates.set + if carries { rates.mov } else { 0.0 };
        let (run, pc) = (self.runners[rank as usize].run, self.runners[rank as usize].pc);
        let value = self.value(flag, run, value);
        let entry = self.log.spend(rank, Some(pc), done, Term::Overhead(Part::Set));
        let (flag, line) = self.flag(bank, flag);
        self.wires.store(done, Store::set(rank, line, flag, value, pc, entry), &mut self.log);
        done
    }

    /// Returns the time at which an add is over, or `None` while it waits for its line.
    fn add(&mut self, cpu: usize, rank: u32, bank: usize, now: f64, flag: Flag) -> Option<f64> {
        let pc = self.runners[rank as usize].pc;
        if let Some(seen) = self.agenda.take_seen(rank) {
            let at = now.max(seen);
            self.log.spend(rank, Some(pc), at, Term::Add);
            return Some(at);
        }
        let (flag, line) = self.flag(bank, flag);
        let issued = now + self.wires.sitting.rates.set;
        let store = Store::add(rank, line, flag, pc, self.log.last(rank));
        // It takes no turn, so where ranks share a CPU it is over at once.
        if self.agenda.shares(cpu) {
            let at = self.wires.add_at_once(issued, store, &mut self.log);
            self.log.spend(rank, Some(pc), at, Term::Add);
            return Some(at);
        }
        self.wires.store(issued, store, &mut self.log);
        None
    }

    /// Returns the time at which a wait is over, or `None` while it lasts.
    fn wait(&mut self, cpu: usize, rank: u32, bank: usize, now: f64, flag: Flag, value: i32) -> Option<f64> {
        let pc = self.runners[rank as usize].pc;
        let wait = self.wires.sitting.rates.wait;
        let wanted = self.value(flag, self.runners[rank as usize].run, value);
        let (flag, line) = self.flag(bank, flag);
        // 1. Back from waiting: the flag has been seen.
        if let Some(seen) = self.agenda.take_seen(rank) {
            let shared = self.agenda.shares(cpu);
            let at = if shared { now.max(seen) + wait } else { now.max(seen) };
            let (_, raised) = self.wires.raised(rank, flag);
            let term = self.wires.reads(rank, line, flag);
            let cause = self.log.later(raised, self.log.last(rank));
            self.log.await_event(rank, Entry::new(rank, Some(pc), seen, term, cause));
            self.log.resume(rank, pc, seen, at, shared.then(|| self.agenda.blocked_at(cpu)));
            // What a core could not foresee ends a row: what comes next begins after it.
            self.runners[rank as usize].in_row = std::mem::take(&mut self.runners[rank as usize].late);
            return Some(at);
        }
        let checked = now + wait;
        // 2. Nothing to wait for, in the first runs.
        if wanted <= 0 {
            self.log.spend(rank, Some(pc), checked, Term::Overhead(Part::Wait));
            return Some(checked);
        }
        // 3. Raised before. Whoever shares its CPU looks once before it hands over.
        let seen = match self.agenda.shares(cpu) {
            true => self.wires.glance(now, rank, line, flag, wanted),
            false => self.wires.wait(now, rank, line, flag, wanted, self.runners[rank as usize].in_row),
        };
        if let Some(seen) = seen {
            let at = seen.max(checked);
            self.runners[rank as usize].in_row |= seen > checked;
            let reads = self.wires.reads(rank, line, flag);
            let term = if seen > checked { reads } else { Term::Overhead(Part::Wait) };
            self.log.spend(rank, Some(pc), at, term);
            return Some(at);
        }
        self.runners[rank as usize].late = self.wires.is_raised(flag, wanted);
        if self.agenda.shares(cpu) {
            self.wires.wait(now, rank, line, flag, wanted, false);
        }
        None
    }

    fn cost(mut self, timed: Option<usize>) -> Cost {
        let runs = self.runs;
        let ranks = self.runners.len();
        if let Some(r) = self.runners.iter().position(|r| r.ends.len() < runs) {
            return Cost::unplayable(ranks, Some((Rank::from(r), self.runners[r].pc)));
        }
        let end = |j: usize| self.runners.iter().map(|r| r.ends[j]).fold(0.0, f64::max);
        // Ranks that share a line end two runs at a time, so an even number of them is timed.
        let even = if runs > 2 { (runs - 1) / 2 * 2 } else { runs - 1 };
        let timed = timed.unwrap_or(even);
        let step = |ended: &dyn Fn(usize) -> f64| match timed {
            0 => ended(runs - 1),
            n => (ended(runs - 1) - ended(runs - 1 - n)) / n as f64,
        };
        let total = Nanos(step(&end));
        let per_rank = self.runners.iter().map(|r| Nanos(step(&|run| r.ends[run]))).collect();
        let first = Nanos(end(0));
        let last = (0..ranks).max_by(|&a, &b| {
            let ends = |r: usize| self.runners[r].ends[runs - 1];
            ends(a).total_cmp(&ends(b)).then(b.cmp(&a))
        });
        let critical_runs = match (timed, self.shape.oversubscription()) {
            (0, _) | (_, 0 | 1) => 1,
            (timed, _) => timed,
        };
        let from = if runs > 1 { end(runs - 1 - critical_runs) } else { 0.0 };
        let critical = last.map_or_else(Vec::new, |r| self.log.critical(r as u32, from));
        let extrapolated = self.extrapolated;
        let op_ends = self.op_ends;
        Cost { total, first, per_rank, critical, critical_runs, op_ends, extrapolated, stuck: None }
    }
}

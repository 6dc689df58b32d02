//! Playing a compiled plan in the order of time, CPU by CPU.

use super::compile::{FlagInfo, Instruction, Program, NOBODY};
use super::data::Buffer;
use super::flags::{add, arrival, store, Arrival, Event, FlagState, LineState, Sent};
use super::rates::Rates;
use super::schedule::{Agenda, Cpus};
use super::term::{Part, Term};
use super::trace::{Entry, Log};
use super::{Cost, Options};
use crate::model::Model;
use crate::plan::Plan;
use crate::topology::Shape;
use crate::units::{Nanos, Rank};

/// How many of its last sets a rank remembers when it looks for an exchange.
const REMEMBERED: usize = 8;

/// A rank under way.
#[derive(Clone, Debug)]
struct Runner {
    run: usize,
    pc: usize,
    started: bool,
    /// End of each run.
    ends: Vec<f64>,
    /// When the store port takes the next line.
    store_free: f64,
    sent: Vec<Sent>,
}

/// What became of one step.
enum Outcome {
    /// The rank goes on at this time.
    Until(f64),
    /// It waits; the time is when its flag is seen, infinite when nobody has raised it yet.
    Waits(f64),
    /// All its runs are done.
    Done,
}

pub(super) struct Player<'a> {
    pub(super) rates: Rates<'a>,
    pub(super) shape: &'a Shape,
    pub(super) options: &'a Options,
    /// For each rank, how much memory its buffers are in.
    pub(super) reach: Vec<usize>,
    pub(super) grain: usize,
    program: &'a Program,
    runners: Vec<Runner>,
    flags: Vec<FlagState>,
    lines: Vec<LineState>,
    pub(super) buffers: Vec<Buffer>,
    /// Ends of the copies under way.
    pub(super) active: Vec<f64>,
    /// Bytes that each rank has put into shared buffers.
    pub(super) put: Vec<u64>,
    pub(super) extrapolated: bool,
    agenda: Agenda,
    log: Log,
}

/// Plays `options.runs` runs and measures them.
pub fn play(model: &Model, shape: &Shape, plan: &Plan, program: &Program, options: &Options) -> Cost {
    let ranks = plan.ranks;
    let runner =
        Runner { run: 0, pc: 0, started: false, ends: Vec::new(), store_free: 0.0, sent: Vec::new() };
    let mut player = Player {
        rates: Rates::of(model),
        shape,
        options,
        reach: (0..ranks).map(|r| plan.grid().reach(r, options.message.max(plan.bytes))).collect(),
        grain: plan.grain,
        program,
        runners: vec![runner; ranks],
        flags: vec![FlagState::default(); program.flags.len() * program.banks],
        lines: vec![LineState::new(); program.lines * program.banks],
        buffers: (0..program.banks).flat_map(|_| program.buffers.iter().map(|&n| Buffer::new(n))).collect(),
        active: Vec::new(),
        put: vec![0; ranks],
        extrapolated: false,
        agenda: Agenda::new(Cpus::of(shape), model.wake.yielding.value),
        log: Log::new(options.trace, ranks),
    };
    while let Some((cpu, rank, now)) = player.agenda.next() {
        if now > options.limit {
            return Cost::unplayable(ranks, None);
        }
        player.go_on(cpu, rank, now);
    }
    player.cost()
}

impl Player<'_> {
    /// Runs a rank until another CPU is due, or until it waits.
    fn go_on(&mut self, cpu: usize, rank: u32, mut now: f64) {
        loop {
            match self.step(cpu, rank, now) {
                Outcome::Until(t) => now = t,
                Outcome::Waits(seen) => return self.agenda.block(cpu, rank, now, seen),
                Outcome::Done => return self.agenda.retire(cpu, rank, now),
            }
            if now > self.agenda.soonest() {
                return self.agenda.resume(cpu, now);
            }
        }
    }

    fn step(&mut self, cpu: usize, rank: u32, now: f64) -> Outcome {
        let r = rank as usize;
        if !self.runners[r].started {
            self.runners[r].started = true;
            let at = now + self.rates.run;
            self.log.spend(rank, None, at, Term::Overhead(Part::Run));
            return Outcome::Until(at);
        }
        let (run, pc) = (self.runners[r].run, self.runners[r].pc);
        let Some(&instruction) = self.program.ops[r].get(pc) else {
            let runner = &mut self.runners[r];
            runner.ends.push(now);
            (runner.run, runner.pc, runner.started) = (run + 1, 0, false);
            return if run + 1 == self.options.runs { Outcome::Done } else { Outcome::Until(now) };
        };
        let bank = run % self.program.banks;
        let at = match instruction {
            Instruction::Move { src, dst, len } => {
                let (at, term) = self.transfer(rank, bank * self.program.buffers.len(), now, src, dst, len);
                self.log.spend(rank, Some(pc), at, term);
                at
            }
            Instruction::Fold { a, b, dst, len } => {
                let at = self.combine(rank, bank * self.program.buffers.len(), now, [a, b], dst, len);
                self.log.spend(rank, Some(pc), at, Term::Fold);
                at
            }
            Instruction::Set { flag, value, carries } => self.set(rank, bank, now, flag, value, carries),
            Instruction::Add { flag } => self.add(rank, bank, now, flag),
            Instruction::Wait { flag, value, takes } => {
                let done = match self.wait(cpu, rank, bank, now, flag, value) {
                    Ok(done) => done,
                    Err(seen) => return Outcome::Waits(seen),
                };
                if takes {
                    let at = done + self.rates.mov;
                    self.log.spend(rank, Some(pc), at, Term::Overhead(Part::Move));
                    at
                } else {
                    done
                }
            }
        };
        self.runners[r].pc += 1;
        Outcome::Until(at)
    }

    /// The value over all runs that a value of this run stands for.
    fn value(&self, info: &FlagInfo, run: usize, value: i32) -> i64 {
        (run / self.program.banks) as i64 * info.span + i64::from(value)
    }

    fn set(&mut self, rank: u32, bank: usize, now: f64, flag: u32, value: i32, carries: bool) -> f64 {
        let info = self.program.flags[flag as usize];
        let line = bank * self.program.lines + info.line as usize;
        let pc = self.runners[rank as usize].pc;
        let run = self.runners[rank as usize].run;
        let done = now + self.rates.set + if carries { self.rates.mov } else { 0.0 };
        // Stores to lines of others leave one `issue` apart.
        let issued = done.max(self.runners[rank as usize].store_free);
        let (start, visible) =
            store(&mut self.lines[line], &self.rates, self.shape, rank, info.reader, issued);
        let runner = &mut self.runners[rank as usize];
        if visible > issued {
            runner.store_free = issued + self.rates.issue;
        }
        if runner.sent.len() == REMEMBERED {
            runner.sent.remove(0);
        }
        runner.sent.push(Sent { reader: info.reader, at: issued, line: line % self.program.lines, run });
        let entry = self.log.spend(rank, Some(pc), done, Term::Overhead(Part::Set));
        let value = self.value(&info, run, value);
        let event = Event { value, at: issued, start, visible, writer: rank, run, atomic: false, entry };
        self.raise(bank, flag, event);
        done
    }

    fn add(&mut self, rank: u32, bank: usize, now: f64, flag: u32) -> f64 {
        let info = self.program.flags[flag as usize];
        let line = bank * self.program.lines + info.line as usize;
        let (run, pc) = (self.runners[rank as usize].run, self.runners[rank as usize].pc);
        let reader = if info.reader == NOBODY { (rank + 1) % self.shape.ranks() as u32 } else { info.reader };
        let issued = now + self.rates.set;
        let done = add(&mut self.lines[line], &self.rates, self.shape, rank, reader, issued);
        let level = self.shape.distance(Rank(rank), Rank(reader));
        let entry = self.log.spend(rank, Some(pc), done, Term::Add(level));
        let state = &self.flags[bank * self.program.flags.len() + flag as usize];
        let value = state.events.last().map_or(0, |e| e.value) + 1;
        let event =
            Event { value, at: done, start: done, visible: done, writer: rank, run, atomic: true, entry };
        self.raise(bank, flag, event);
        done
    }

    /// Records an event and tells those who wait for it.
    fn raise(&mut self, bank: usize, flag: u32, event: Event) {
        let state = &mut self.flags[bank * self.program.flags.len() + flag as usize];
        state.events.push(event);
        if state.waiters.is_empty() {
            return;
        }
        let due: Vec<u32> = state.waiters.iter().filter(|w| w.1 <= event.value).map(|w| w.0).collect();
        state.waiters.retain(|w| w.1 > event.value);
        for rank in due {
            let since = self.agenda.since(rank);
            let seen = self.see(rank, bank, flag, &event, since);
            self.agenda.notify(rank, seen.at);
        }
    }

    /// When `rank` sees `event`, having waited since then; noted in the log.
    fn see(&mut self, rank: u32, bank: usize, flag: u32, event: &Event, since: f64) -> Arrival {
        let info = self.program.flags[flag as usize];
        let line = &mut self.lines[bank * self.program.lines + info.line as usize];
        let runner = &self.runners[rank as usize];
        let seen = arrival(line, &self.rates, self.shape, &info, event, (rank, since), &runner.sent);
        let cause = if seen.by_event { event.entry } else { self.log.last(rank) };
        self.log.await_event(rank, Entry { rank, op: Some(runner.pc), end: seen.at, term: seen.term, cause });
        seen
    }

    /// When a wait is over, or else when its flag is seen.
    fn wait(
        &mut self,
        cpu: usize,
        rank: u32,
        bank: usize,
        now: f64,
        flag: u32,
        value: i32,
    ) -> Result<f64, f64> {
        let pc = self.runners[rank as usize].pc;
        let checked = now + self.rates.wait;
        // 1. Back from waiting: the flag has been seen.
        if let Some(seen) = self.agenda.take_seen(rank) {
            let shared = self.agenda.shares(cpu);
            let at = if shared { now.max(seen) + self.rates.wait } else { now.max(seen) };
            self.log.resume(rank, pc, seen, at, shared.then(|| self.agenda.blocked_at(cpu)));
            return Ok(at);
        }
        let info = self.program.flags[flag as usize];
        let wanted = self.value(&info, self.runners[rank as usize].run, value);
        // 2. Nothing to wait for, in the first runs.
        if wanted <= 0 {
            self.log.spend(rank, Some(pc), checked, Term::Overhead(Part::Wait));
            return Ok(checked);
        }
        let state = &mut self.flags[bank * self.program.flags.len() + flag as usize];
        let at = state.events.partition_point(|e| e.value < wanted);
        // 3. Not raised yet.
        let Some(&event) = state.events.get(at) else {
            state.waiters.push((rank, wanted));
            return Err(f64::INFINITY);
        };
        // 4. Raised: seen as soon as it is read, or on its way; then a rank that shares its CPU hands over.
        let seen = self.see(rank, bank, flag, &event, now);
        if seen.by_event && seen.at > checked && self.agenda.shares(cpu) {
            return Err(seen.at);
        }
        let at = seen.at.max(checked);
        self.log.resume(rank, pc, seen.at, at, None);
        Ok(at)
    }

    fn cost(mut self) -> Cost {
        let runs = self.options.runs;
        let ranks = self.runners.len();
        if let Some(r) = self.runners.iter().position(|r| r.ends.len() < runs) {
            return Cost::unplayable(ranks, Some((Rank::from(r), self.runners[r].pc)));
        }
        let end = |j: usize| self.runners.iter().map(|r| r.ends[j]).fold(0.0, f64::max);
        let step = |first: f64, last: f64| if runs > 1 { (last - first) / (runs - 1) as f64 } else { last };
        let total = Nanos(step(end(0), end(runs - 1)));
        let per_rank = self.runners.iter().map(|r| Nanos(step(r.ends[0], r.ends[runs - 1]))).collect();
        let first = Nanos(end(0));
        let last = (0..ranks).max_by(|&a, &b| {
            let ends = |r: usize| self.runners[r].ends[runs - 1];
            ends(a).total_cmp(&ends(b)).then(b.cmp(&a))
        });
        let critical_runs = match (runs, self.shape.oversubscription()) {
            (1, _) | (_, 0 | 1) => 1,
            (runs, _) => runs - 1,
        };
        let from = if runs > 1 { end(runs - 1 - critical_runs) } else { 0.0 };
        let critical = last.map_or_else(Vec::new, |r| self.log.critical(r as u32, from));
        let extrapolated = self.extrapolated;
        Cost { total, first, per_rank, critical, critical_runs, extrapolated, stuck: None }
    }
}

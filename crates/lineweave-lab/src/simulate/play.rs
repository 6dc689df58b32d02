//! Playing a program on a fabric: each rank's ops as elementary accesses, in the order of (time, rank).
//!
//! 1. An op begins with a call, whose overhead the fabric knows.
//! 2. A move or fold is cut into pieces, a line or the whole of it; lanes take pieces in turn. A piece is a
//!    read and a write, or two reads, a combination and a write, one after the other.
//! 3. A set takes effect when the fabric says that it is visible; ranks that wait for it are woken then.
//! 4. A wait reads its flag. If it is not there yet, the rank keeps polling, which is the fabric's to charge,
//!    until a set that reaches it becomes visible.

mod accesses;
mod flags;
mod state;

use self::accesses::runner_bank;
use super::agenda::{Agenda, Agent};
use super::choices::Choices;
use super::fabric::{Access, Fabric, Lanes, Step};
use super::program::{Instruction, Playable};
use super::{Fidelity, SimulateError};
use lineweave_core::trace::Picos;
use lineweave_core::units::Rank;
use std::collections::VecDeque;

/// A rank under way.
#[derive(Clone, Debug)]
struct Runner {
    run: usize,
    pc: usize,
    /// Access of the op that comes next, for ops that are not cut into pieces.
    part: u8,
    /// Lanes that have not finished their pieces.
    busy: u32,
    /// Time at which the op began.
    began: Picos,
    /// Time at which the last lane so far finished.
    latest: Picos,
}

/// One of a rank's lanes.
#[derive(Clone, Copy, Debug)]
struct Lane {
    access: Access,
    under_way: bool,
    piece: usize,
    part: u8,
}

/// The sets of one flag that can still matter.
#[derive(Clone, Debug, Default)]
struct FlagState {
    /// (value, visible from), both growing.
    sets: Vec<(i64, Picos)>,
    /// (rank, value waited for).
    waiters: Vec<(u32, i64)>,
    /// As `waiters`, of ranks that come when the value is visible.
    late: Vec<(u32, i64)>,
    /// Values that were set and have not landed.
    posted: VecDeque<i64>,
}

/// One op as it ran, in the run that is traced.
#[derive(Clone, Copy, Debug)]
pub struct Ran {
    /// Rank of the op.
    pub rank: u32,
    /// Index in its program.
    pub op: u32,
    /// Time at which the op began.
    pub start: Picos,
    /// Time at which the op ended.
    pub end: Picos,
}

/// Outcome of playing a program.
#[derive(Clone, Debug)]
pub struct Played {
    /// Time at which the plan's root (rank 0 where there is none) began each run.
    pub began: Vec<Picos>,
    /// Time at which the last rank had ended each run.
    pub ended: Vec<Picos>,
    /// Time at which each rank ended its last run.
    pub per_rank: Vec<Picos>,
    /// Events handled.
    pub events: u64,
    /// The ops of the first run, when asked for.
    pub trace: Vec<Ran>,
}

/// A program under way.
pub(super) struct Player<'a, F: Fabric> {
    fabric: &'a mut F,
    program: &'a Playable,
    runs: usize,
    piece: usize,
    lanes: Lanes,
    runners: Vec<Runner>,
    lane: Vec<Lane>,
    flags: Vec<FlagState>,
    agenda: Agenda,
    /// Number of ranks that have ended each run; in `gated`, the ranks that wait for its end.
    left: Vec<u32>,
    gated: Vec<Vec<u32>>,
    wants_trace: bool,
    out: Played,
}

/// Plays `runs` runs back to back. Every rank enters the first at time 0, and the next as soon as it has ended
/// one, unless its bank is still in use or all begin together.
///
/// # Errors
/// [`SimulateError::Stuck`] when a rank waits for ever.
pub fn play<F: Fabric>(
    fabric: &mut F,
    program: &Playable,
    runs: usize,
    fidelity: Fidelity,
    wants_trace: bool,
) -> Result<Played, SimulateError> {
    let mut player = Player::new(fabric, program, runs, fidelity, None);
    player.wants_trace = wants_trace;
    player.go(|_, _| true);
    player.outcome()
}

impl<'a, F: Fabric> Player<'a, F> {
    /// All ranks have entered the first run. With `choices` the order of what competes is free.
    pub(super) fn new(
        fabric: &'a mut F,
        program: &'a Playable,
        runs: usize,
        fidelity: Fidelity,
        choices: Option<Choices>,
    ) -> Player<'a, F> {
        let ranks = program.ops.len();
        let lanes = match fidelity {
            Fidelity::Line => fabric.lanes(),
            Fidelity::Chunk => Lanes { count: 1, gap: Picos(0) },
        };
        let idle = Access::Combine { len: 0 };
        let lane = Lane { access: idle, under_way: false, piece: 0, part: 0 };
        let mut player = Player {
            piece: match fidelity {
                Fidelity::Line => fabric.line_bytes(),
                Fidelity::Chunk => usize::MAX,
            },
            fabric,
            program,
            runs,
            lanes,
            runners: vec![
                Runner { run: 0, pc: 0, part: 0, busy: 0, began: Picos(0), latest: Picos(0) };
                ranks
            ],
            lane: vec![lane; ranks * lanes.count as usize],
            flags: vec![FlagState::default(); program.flags()],
            agenda: match choices {
                None => Agenda::new(ranks as u32, lanes.count),
                Some(choices) => Agenda::free(ranks as u32, lanes.count, choices),
            },
            left: vec![0; runs],
            gated: vec![Vec::new(); runs],
            wants_trace: false,
            out: Played {
                began: vec![Picos(0); runs],
                ended: vec![Picos(0); runs],
                per_rank: vec![Picos(0); ranks],
                events: 0,
                trace: Vec::new(),
            },
        };
        for rank in 0..ranks as u32 {
            player.enter(rank, Picos(0));
        }
        player
    }

    /// Handles event after event as long as `on` says so, which is asked before each. Returns whether all are handled.
    pub(super) fn go(&mut self, mut on: impl FnMut(&Player<'a, F>, Picos) -> bool) -> bool {
        while let Some(at) = self.agenda.due() {
            if !on(self, at) {
                return false;
            }
            let Some((now, agent, stage)) = self.agenda.next() else { break };
            if agent >= self.agenda.resources() {
                self.fabric.alarm(now, agent - self.agenda.resources(), &mut self.agenda);
                self.land();
            } else {
                self.go_on(now, agent, stage);
            }
        }
        true
    }

    /// Returns the choices that were made so far.
    pub(super) fn choices(&self) -> Choices {
        self.agenda.choices().cloned().unwrap_or_default()
    }

    /// Returns whether several events come at the time of the next one.
    pub(super) fn chooses_next(&self) -> bool {
        let next = self.agenda.due();
        self.agenda.to_come().filter(|event| Some(event.0) == next).count() > 1
    }

    /// Returns the number of events that were handled.
    pub(super) fn events(&self) -> u64 {
        self.agenda.handled()
    }

    /// Returns the number of choices that were made so far.
    pub(super) fn made(&self) -> usize {
        self.agenda.choices().map_or(0, |choices| choices.made)
    }

    /// Returns what was played, all events being handled.
    pub(super) fn outcome(mut self) -> Result<Played, SimulateError> {
        self.out.events = self.agenda.handled();
        match self.runners.iter().position(|r| r.run < self.runs) {
            Some(rank) => Err(SimulateError::Stuck { rank: Rank::from(rank), op: self.runners[rank].pc }),
            None => Ok(self.out),
        }
    }
}

impl<F: Fabric> Player<'_, F> {
    /// A rank enters its next run, or waits at the gate.
    fn enter(&mut self, rank: u32, now: Picos) {
        let run = self.runners[rank as usize].run;
        let ranks = self.runners.len() as u32;
        if run == self.runs {
            return;
        }
        if let Some(before) = self.program.apart.and_then(|apart| run.checked_sub(apart)) {
            if self.left[before] < ranks {
                self.gated[before].push(rank);
                return;
            }
        }
        if rank == self.program.root {
            self.out.began[run] = now;
        }
        self.fabric.begin(rank, run);
        let agent = self.agenda.agent(rank, 0);
        self.agenda.resume(now, agent, 0);
    }

    /// A rank has ended its run at `now`.
    fn leave(&mut self, rank: u32, now: Picos) {
        let runner = &mut self.runners[rank as usize];
        let run = runner.run;
        (runner.run, runner.pc, runner.part) = (run + 1, 0, 0);
        self.out.ended[run] = self.out.ended[run].max(now);
        self.out.per_rank[rank as usize] = now;
        self.left[run] += 1;
        self.enter(rank, now);
        if self.left[run] == self.runners.len() as u32 {
            for waiting in std::mem::take(&mut self.gated[run]) {
                self.enter(waiting, now);
            }
        }
    }

    /// Goes on with an agent until somebody else is due.
    fn go_on(&mut self, mut now: Picos, agent: Agent, mut stage: u8) {
        let rank = self.agenda.rank(agent);
        loop {
            if !self.lane[agent as usize].under_way {
                match self.next(now, rank, agent) {
                    None => return,
                    Some(access) => {
                        let lane = &mut self.lane[agent as usize];
                        (lane.access, lane.under_way) = (access, true);
                        stage = 0;
                    }
                }
            }
            let access = self.lane[agent as usize].access;
            let step = self.fabric.step(now, agent, rank, &access, stage, &mut self.agenda);
            if let (Step::Posted { .. }, Access::Set { flag, .. }) = (step, &access) {
                let value = self.value_set(rank);
                self.flags[flag.id as usize].posted.extend(value);
            }
            self.land();
            match step {
                Step::Parked => return,
                Step::Posted { at } => {
                    self.lane[agent as usize].under_way = false;
                    if !self.agenda.is_next(at, agent) {
                        return self.agenda.resume(at, agent, 0);
                    }
                    now = at;
                }
                Step::Later { at, stage: next } => {
                    if !self.agenda.is_next(at, agent) {
                        return self.agenda.resume(at, agent, next);
                    }
                    (now, stage) = (at, next);
                }
                Step::Done { at, visible } => {
                    self.lane[agent as usize].under_way = false;
                    if !self.effect(now, rank, &access, visible) {
                        return;
                    }
                    if !self.agenda.is_next(at, agent) {
                        return self.agenda.resume(at, agent, 0);
                    }
                    now = at;
                }
            }
        }
    }

    /// The next access of an agent, or `None` when it has nothing to do.
    fn next(&mut self, now: Picos, rank: u32, agent: Agent) -> Option<Access> {
        let r = rank as usize;
        loop {
            let runner = &self.runners[r];
            let Some(&op) = self.program.ops[r].get(runner.pc) else {
                self.leave(rank, now);
                return None;
            };
            if runner.part == 0 {
                self.runners[r].began = now;
                self.runners[r].part = 1;
                return Some(Access::Call(self.call(runner_bank(&self.runners[r], self.program), &op)));
            }
            match op {
                Instruction::Move { len, .. } | Instruction::Fold { len, .. } => {
                    if self.runners[r].part == 1 {
                        self.deal(now, rank, len);
                    }
                    let lane = self.agenda.lane(agent);
                    if let Some(access) = self.of_piece(r, agent, &op, len) {
                        return Some(access);
                    }
                    // Lane 0 goes on with the rank when the last lane is done.
                    let runner = &mut self.runners[r];
                    runner.busy -= 1;
                    runner.latest = runner.latest.max(now);
                    if runner.busy > 0 {
                        return None;
                    }
                    let at = runner.latest;
                    self.over(rank, at);
                    if lane != 0 {
                        let first = self.agenda.agent(rank, 0);
                        self.agenda.resume(at, first, 0);
                        return None;
                    }
                }
                Instruction::Set { .. } | Instruction::Wait { .. } | Instruction::Add { .. } => {
                    if let (1, Instruction::Wait { flag, value, .. }) = (self.runners[r].part, op) {
                        if self.comes_late(now, rank, flag, value) {
                            return None;
                        }
                        self.look_ahead(now, rank);
                    }
                    match self.of_flag(r, &op) {
                        Some(access) => return Some(access),
                        None => self.over(rank, now),
                    }
                }
            }
        }
    }

    fn over(&mut self, rank: u32, end: Picos) {
        let runner = &mut self.runners[rank as usize];
        if self.wants_trace && runner.run == 0 {
            self.out.trace.push(Ran { rank, op: runner.pc as u32, start: runner.began, end });
        }
        runner.pc += 1;
        runner.part = 0;
    }
}

//! Next access of an op: a move or fold piece by piece, in lanes; an op on a flag access by access.

use super::super::agenda::Agent;
use super::super::fabric::{Access, Call, Fabric};
use super::super::program::{Address, FlagAt, Instruction, Playable};
use super::{Player, Runner};
use lineweave_core::trace::{Kind, Picos};

impl<F: Fabric> Player<'_, F> {
    /// Hands out the pieces of a move or fold to the rank's lanes.
    pub(super) fn deal(&mut self, now: Picos, rank: u32, len: usize) {
        let pieces = len.div_ceil(self.piece).max(1);
        let lanes = (self.lanes.count as usize).min(pieces);
        let runner = &mut self.runners[rank as usize];
        (runner.part, runner.busy, runner.latest) = (2, lanes as u32, now);
        for lane in 0..lanes {
            let agent = self.agenda.agent(rank, lane as u32);
            let state = &mut self.lane[agent as usize];
            (state.piece, state.part, state.under_way) = (lane, 0, false);
            if lane > 0 {
                self.agenda.resume(Picos(now.0 + lane as u64 * self.lanes.gap.0), agent, 0);
            }
        }
    }

    /// The next access of a lane in a move or fold.
    pub(super) fn of_piece(
        &mut self,
        r: usize,
        agent: Agent,
        op: &Instruction,
        len: usize,
    ) -> Option<Access> {
        let bank = runner_bank(&self.runners[r], self.program);
        let lane = &mut self.lane[agent as usize];
        let last = match op {
            Instruction::Move { .. } => 2,
            _ => 4,
        };
        if lane.part == last {
            lane.part = 0;
            lane.piece += self.lanes.count as usize;
        }
        let start = lane.piece.saturating_mul(self.piece);
        if start >= len {
            return None;
        }
        let part = lane.part;
        lane.part += 1;
        let n = self.piece.min(len - start);
        let place = |p: Address| p.in_bank(bank).plus(start);
        Some(match (*op, part) {
            (Instruction::Move { src, .. }, 0) => Access::Read { from: place(src), len: n },
            (Instruction::Move { dst, .. }, _) => Access::Write { to: place(dst), len: n },
            (Instruction::Fold { a, .. }, 0) => Access::Read { from: place(a), len: n },
            (Instruction::Fold { b, .. }, 1) => Access::Read { from: place(b), len: n },
            (Instruction::Fold { dst, .. }, 3) => Access::Write { to: place(dst), len: n },
            (_, _) => Access::Combine { len: n },
        })
    }

    /// Tells the fabric which flags the rank waits for after this one, as many as it polls at once.
    pub(super) fn look_ahead(&mut self, now: Picos, rank: u32) {
        let r = rank as usize;
        let more = self.fabric.polls_at_once().saturating_sub(1);
        if more == 0 {
            return;
        }
        let ops = &self.program.ops[r][self.runners[r].pc + 1..];
        let next = ops.iter().take(more).map_while(|op| match op {
            Instruction::Wait { flag, .. } => Some(self.flag_at(r, *flag)),
            _ => None,
        });
        let flags: Vec<FlagAt> = next.collect();
        if !flags.is_empty() {
            self.fabric.ahead(now, rank, &flags, &mut self.agenda);
        }
    }

    /// The next access of an op on a flag.
    pub(super) fn of_flag(&mut self, r: usize, op: &Instruction) -> Option<Access> {
        let bank = runner_bank(&self.runners[r], self.program);
        let part = self.runners[r].part;
        self.runners[r].part += 1;
        match (*op, part) {
            (Instruction::Set { from: Some(from), payload, .. }, 1) => {
                Some(Access::Read { from: from.in_bank(bank), len: payload })
            }
            (Instruction::Set { flag, payload, from, .. }, 1 | 2) => {
                if part == 1 && from.is_none() {
                    self.runners[r].part = 3;
                }
                Some(Access::Set { flag: self.flag_at(r, flag), payload })
            }
            (Instruction::Add { flag }, 1) => Some(Access::Add { flag: self.flag_at(r, flag) }),
            (Instruction::Wait { flag, .. }, 1) => Some(Access::Poll { flag: self.flag_at(r, flag) }),
            (Instruction::Wait { into: Some(into), payload, .. }, 2) => {
                Some(Access::Write { to: into.in_bank(bank), len: payload })
            }
            (_, _) => None,
        }
    }

    /// The value over all runs that a value of this run stands for.
    pub(super) fn value(&self, r: usize, flag: u32, value: i32) -> i64 {
        (self.runners[r].run / self.program.banks) as i64 * self.program.flags[flag as usize].growth
            + i64::from(value)
    }

    pub(super) fn flag_at(&self, r: usize, flag: u32) -> FlagAt {
        let info = &self.program.flags[flag as usize];
        let bank = self.runners[r].run % self.program.banks;
        FlagAt {
            id: (bank * self.program.flags.len()) as u32 + flag,
            home: info.home,
            offset: info.offset + bank * self.program.bank_bytes,
        }
    }

    pub(super) fn call(&self, bank: usize, op: &Instruction) -> Call {
        let at = |p: Address| Some(p.in_bank(bank));
        match *op {
            Instruction::Move { src, dst, .. } => Call { kind: Kind::Move, from: at(src), to: at(dst) },
            Instruction::Fold { a, dst, .. } => Call { kind: Kind::Fold, from: at(a), to: at(dst) },
            Instruction::Set { .. } => Call { kind: Kind::Set, from: None, to: None },
            Instruction::Wait { .. } => Call { kind: Kind::Wait, from: None, to: None },
            Instruction::Add { .. } => Call { kind: Kind::Add, from: None, to: None },
        }
    }
}

/// Returns the first byte, in a box, of the bank of a rank's current run.
pub(super) fn runner_bank(runner: &Runner, program: &Playable) -> usize {
    runner.run % program.banks * program.bank_bytes
}

//! A plan with its flags numbered and its slots laid out, ready to be played.

use super::SimulateError;
use lineweave_core::plan::{Carry, FlagKind, FlagRef, Footprint, Op, Plan, Region, Reuse, Space, Take};
use lineweave_core::units::Rank;
use std::collections::HashMap;

/// One of a rank's private buffers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Buffer {
    /// Input of the rank.
    In,
    /// Output of the rank.
    Out,
    /// Scratch memory of the rank.
    Acc,
}

/// Place of a byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Address {
    /// A byte in private memory; another rank's in `direct` plans.
    Private {
        /// Rank that owns the memory.
        owner: u32,
        /// Buffer of the owner.
        buffer: Buffer,
        /// Byte of the buffer.
        offset: usize,
    },
    /// A byte in a slot of a box.
    Slot {
        /// Rank that owns the box.
        owner: u32,
        /// Byte of the box, flags and banks included.
        offset: usize,
    },
}

impl Address {
    /// The rank in whose memory it lies.
    pub fn owner(self) -> u32 {
        match self {
            Address::Private { owner, .. } | Address::Slot { owner, .. } => owner,
        }
    }

    /// The place `bytes` bytes further on.
    #[must_use]
    pub fn plus(self, bytes: usize) -> Address {
        match self {
            Address::Private { owner, buffer, offset } => {
                Address::Private { owner, buffer, offset: offset + bytes }
            }
            Address::Slot { owner, offset } => Address::Slot { owner, offset: offset + bytes },
        }
    }

    /// Returns this place of a box in the bank that begins at byte `start`; private memory has no banks.
    pub(super) fn in_bank(self, start: usize) -> Address {
        match self {
            Address::Private { .. } => self,
            Address::Slot { .. } => self.plus(start),
        }
    }
}

/// A flag as a fabric knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlagAt {
    /// Number of the flag: flags of all ranks and banks count through.
    pub id: u32,
    /// The rank in whose box it lies.
    pub home: u32,
    /// Byte of the box, banks included.
    pub offset: usize,
}

/// Constants of a flag of one bank.
#[derive(Clone, Copy, Debug)]
pub(super) struct FlagInfo {
    pub(super) home: u32,
    pub(super) offset: usize,
    /// Growth of the flag's value from run to run.
    pub(super) growth: i64,
}

/// One op.
#[derive(Clone, Copy, Debug)]
pub(super) enum Instruction {
    Move { src: Address, dst: Address, len: usize },
    Fold { a: Address, b: Address, dst: Address, len: usize },
    Set { flag: u32, value: i32, from: Option<Address>, payload: usize },
    Wait { flag: u32, value: i32, into: Option<Address>, payload: usize },
    Add { flag: u32 },
}

/// A plan, compiled.
#[derive(Debug)]
pub struct Playable {
    pub(super) ops: Vec<Vec<Instruction>>,
    pub(super) flags: Vec<FlagInfo>,
    /// Bytes of one bank of a box.
    pub(super) bank_bytes: usize,
    /// Banks that runs alternate between.
    pub(super) banks: usize,
    /// A run begins only after everybody has ended the one so many before it.
    pub(super) apart: Option<usize>,
    /// Rank whose begin of a run counts.
    pub(super) root: u32,
}

impl Playable {
    /// Numbers everything. `footprint` says where flags and slots lie in a box of this machine; `banks` is at least 1.
    ///
    /// # Errors
    /// [`SimulateError::Malformed`] with the first op that names what the plan does not have.
    pub fn compile(plan: &Plan, footprint: &Footprint, banks: usize) -> Result<Playable, SimulateError> {
        let mut compiler = Compiler {
            plan,
            footprint,
            span: i64::from(plan.span()),
            numbers: HashMap::new(),
            flags: Vec::new(),
        };
        if plan.programs.len() != plan.ranks {
            return Err(SimulateError::Malformed { rank: Rank(0), op: 0 });
        }
        let mut ops = Vec::with_capacity(plan.ranks);
        for (rank, program) in plan.programs.iter().enumerate() {
            let mut compiled = Vec::with_capacity(program.len());
            for (at, op) in program.iter().enumerate() {
                let malformed = SimulateError::Malformed { rank: Rank::from(rank), op: at };
                compiled.push(compiler.instruction(rank as u32, op).ok_or(malformed)?);
            }
            ops.push(compiled);
        }
        let (banks, apart) = match plan.reuse {
            Reuse::Ring => (banks.max(1), Some(banks.max(1))),
            Reuse::Same => (1, None),
        };
        Ok(Playable {
            ops,
            flags: compiler.flags,
            bank_bytes: footprint.total(),
            banks,
            apart,
            root: plan.root.0,
        })
    }

    /// Returns this program, in which all ranks begin every run together if asked for.
    #[must_use]
    pub fn together(self, asked: bool) -> Playable {
        let apart = if asked { Some(1) } else { self.apart };
        Playable { apart, ..self }
    }

    /// Bytes that every rank's box has, all banks together.
    pub fn box_bytes(&self) -> usize {
        self.bank_bytes * self.banks
    }

    /// Flags of all ranks and banks.
    pub fn flags(&self) -> usize {
        self.flags.len() * self.banks
    }
}

struct Compiler<'a> {
    plan: &'a Plan,
    footprint: &'a Footprint,
    span: i64,
    numbers: HashMap<FlagRef, u32>,
    flags: Vec<FlagInfo>,
}

impl Compiler<'_> {
    fn flag(&mut self, flag: FlagRef) -> Option<u32> {
        let array = self.plan.flags.get(flag.array as usize)?;
        if flag.home.index() >= self.plan.ranks || usize::from(flag.index) >= array.count {
            return None;
        }
        let next = self.flags.len() as u32;
        let id = *self.numbers.entry(flag).or_insert(next);
        if id == next {
            let growth = match array.kind {
                FlagKind::Signal => self.span,
                FlagKind::Counter => 0,
            };
            self.flags.push(FlagInfo { home: flag.home.0, offset: self.footprint.flag(flag), growth });
        }
        Some(id)
    }

    fn place(&self, rank: u32, region: Region) -> Option<Address> {
        let own = |buffer| Address::Private { owner: rank, buffer, offset: region.offset };
        let known = |q: Rank| (q.index() < self.plan.ranks).then_some(q.0);
        Some(match region.space {
            Space::In => own(Buffer::In),
            Space::Out => own(Buffer::Out),
            Space::Acc => own(Buffer::Acc),
            Space::Slot { rank, slot } => {
                let size = *self.plan.slots.get(usize::from(slot))?;
                if region.end() > size {
                    return None;
                }
                Address::Slot { owner: known(rank)?, offset: self.footprint.slot(slot) + region.offset }
            }
            Space::PeerIn(q) => {
                Address::Private { owner: known(q)?, buffer: Buffer::In, offset: region.offset }
            }
            Space::PeerOut(q) => {
                Address::Private { owner: known(q)?, buffer: Buffer::Out, offset: region.offset }
            }
        })
    }

    fn instruction(&mut self, rank: u32, op: &Op) -> Option<Instruction> {
        Some(match *op {
            Op::Move { src, dst } => {
                Instruction::Move { src: self.place(rank, src)?, dst: self.place(rank, dst)?, len: src.len }
            }
            Op::Fold { a, b, dst } => Instruction::Fold {
                a: self.place(rank, a)?,
                b: self.place(rank, b)?,
                dst: self.place(rank, dst)?,
                len: dst.len,
            },
            Op::Set { flag, value, carry } => {
                let (from, payload) = match carry {
                    None => (None, 0),
                    Some(Carry::Bytes(region)) => (Some(self.place(rank, region)?), region.len),
                    Some(Carry::Address(_)) => (None, ADDRESS),
                };
                Instruction::Set { flag: self.flag(flag)?, value, from, payload }
            }
            Op::Wait { flag, value, take } => {
                let (into, payload) = match take {
                    None => (None, 0),
                    Some(Take::Bytes(region)) => (Some(self.place(rank, region)?), region.len),
                    Some(Take::Address(_)) => (None, ADDRESS),
                };
                Instruction::Wait { flag: self.flag(flag)?, value, into, payload }
            }
            Op::Add { flag } => {
                let flag = self.flag(flag)?;
                self.flags[flag as usize].growth += 1;
                Instruction::Add { flag }
            }
        })
    }
}

/// Bytes of an address.
const ADDRESS: usize = 8;

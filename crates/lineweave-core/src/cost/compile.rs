//! A plan with its flags, lines and shared buffers numbered densely, ready to be played.

use super::attachers::Attachers;
use super::numbers::{number, Numbers};
use super::pieces::{Access, Buffers, Pieces};
use super::Options;
use crate::plan::{Carry, FlagKind, FlagRef, Footprint, Op, Plan, Region, Reuse, Space, Take};
use crate::units::Rank;

/// Place of an operand.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Operand {
    /// Private memory that stays in the cache.
    Near,
    /// A user's buffer that nobody else reaches: as near as the whole message.
    User,
    /// Bytes of a slot, which others read or write.
    Slot(Access),
    /// A user's buffer that others reach, the same in all runs.
    Reached(Access),
    /// A peer's buffer that a system call copies from or to.
    Attached,
}

/// An [`Operand`] in two words: plans have millions of them, and who plays one meets most for the first time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Packed {
    first: u32,
    /// The number of pieces, and above it what kind of place it is.
    rest: u32,
}

impl Packed {
    const KIND: u32 = 29;

    fn of(place: Operand) -> Packed {
        let (kind, Access { first, count }) = match place {
            Operand::Near => (0, Access { first: 0, count: 0 }),
            Operand::User => (1, Access { first: 0, count: 0 }),
            Operand::Attached => (2, Access { first: 0, count: 0 }),
            Operand::Slot(access) => (3, access),
            Operand::Reached(access) => (4, access),
        };
        Packed { first, rest: kind << Packed::KIND | count }
    }

    /// Returns the place of the operand.
    pub fn place(self) -> Operand {
        let access = Access { first: self.first, count: self.rest & ((1 << Packed::KIND) - 1) };
        match self.rest >> Packed::KIND {
            0 => Operand::Near,
            1 => Operand::User,
            2 => Operand::Attached,
            3 => Operand::Slot(access),
            _ => Operand::Reached(access),
        }
    }
}

/// A flag of a bank.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Its number.
    pub number: u32,
    /// Its line's.
    pub line: u32,
    /// True if ranks add to it.
    pub counts: bool,
}

/// One op. Lengths are numbers of [`Playable::lens`].
#[derive(Clone, Copy, Debug)]
pub enum Instruction {
    /// Copy.
    Move { src: Packed, dst: Packed, len: u32 },
    /// Combine.
    Fold { a: Packed, b: Packed, dst: Packed, len: u32 },
    /// Raise.
    Set { flag: Flag, value: i32, carries: bool },
    /// Wait.
    Wait { flag: Flag, value: i32, takes: bool },
    /// Add one.
    Add { flag: Flag },
}

const _: () = assert!(size_of::<Instruction>() <= 32);

impl Instruction {
    /// Returns the places of the op's operands, and the number of their length.
    fn operands(&mut self) -> ([Option<&mut Packed>; 3], usize) {
        match self {
            Instruction::Move { src, dst, len } => ([Some(src), Some(dst), None], *len as usize),
            Instruction::Fold { a, b, dst, len } => ([Some(a), Some(b), Some(dst)], *len as usize),
            Instruction::Set { .. } | Instruction::Wait { .. } | Instruction::Add { .. } => {
                ([None, None, None], 0)
            }
        }
    }
}

/// A compiled plan.
#[derive(Debug)]
pub struct Playable {
    /// For each rank its ops.
    pub ops: Vec<Vec<Instruction>>,
    /// The lengths that ops have.
    pub lens: Vec<usize>,
    /// For each flag of one bank how often ranks add to it.
    pub adds: Vec<i64>,
    /// Growth from run to run of the flags to which no rank adds.
    pub span: i64,
    /// Lines of one bank.
    pub lines: usize,
    /// For each line of a bank, the rank in whose box it lies.
    pub homes: Vec<Rank>,
    /// The slots of one bank.
    pub slots: Pieces,
    /// Users' buffers that others reach, each with its owner.
    pub reached: Pieces,
    /// Banks that runs alternate between, of those that are played.
    pub banks: usize,
    /// True if all banks are on the same lines.
    pub same_lines: bool,
    /// True if a bank is entered only after everybody has left it.
    pub guarded: bool,
    /// True if two ranks exchange a flag, with a word at most, and that is all: a call like the last one is then straight code.
    pub swaps: bool,
    /// The most ranks that reach one rank's buffers by system calls at once.
    pub attachers: usize,
}

/// Bytes of a word.
const WORD: usize = 8;

/// Returns whether a rank sets a flag, waits for one, and combines the words that came with them at most.
fn swaps(ops: &[Op]) -> bool {
    match ops {
        [Op::Set { .. }, Op::Wait { .. }, then @ ..] => {
            matches!(then, [] | [Op::Fold { dst: Region { len: ..=WORD, .. }, .. }])
        }
        _ => false,
    }
}

impl Playable {
    /// For each rank, how much memory its buffers are in: as much as the whole message, what its plan reaches of others', and the slots that it
    /// touches before runs come back to them, `times` as many as in one run.
    pub fn reach(&self, plan: &Plan, message: usize, times: f64) -> Vec<usize> {
        let windows = message.checked_div(plan.bytes).unwrap_or(1).max(1);
        // What the rank that is looked at has touched of each slot.
        let mut touched = vec![(usize::MAX, 0); self.slots.buffers.len()];
        let of_rank = |(rank, ops): (usize, &Vec<Instruction>)| {
            let (mut reached, mut slots) = (0, 0);
            for mut op in ops.iter().copied() {
                let (operands, len) = op.operands();
                let len = self.lens[len];
                for operand in operands.into_iter().flatten() {
                    match operand.place() {
                        Operand::Near | Operand::User | Operand::Attached => {}
                        Operand::Reached(_) => reached += len,
                        Operand::Slot(_) if len == 0 => {}
                        Operand::Slot(access) => {
                            let buffer = self.slots.of[access.first as usize] as usize;
                            let (last, bytes) = &mut touched[buffer];
                            if *last != rank {
                                (*last, *bytes) = (rank, 0);
                            }
                            let more = len.min(self.slots.buffers[buffer].size.saturating_sub(*bytes));
                            *bytes += more;
                            slots += more;
                        }
                    }
                }
            }
            let own = plan.grid().reach(rank, message.max(plan.bytes));
            // A copy of so many bytes touches twice as many.
            own.max(reached * windows / 2) + (slots as f64 * times / 2.0) as usize
        };
        self.ops.iter().enumerate().map(of_rank).collect()
    }

    /// For each rank, how many bytes it writes into slots in a run.
    pub fn put(&self) -> impl Iterator<Item = usize> + '_ {
        let put = |op: &Instruction| match *op {
            Instruction::Move { dst, len, .. } | Instruction::Fold { dst, len, .. } => match dst.place() {
                Operand::Slot(_) => self.lens[len as usize],
                Operand::Near | Operand::User | Operand::Attached | Operand::Reached(_) => 0,
            },
            Instruction::Set { .. } | Instruction::Wait { .. } | Instruction::Add { .. } => 0,
        };
        self.ops.iter().map(move |ops| ops.iter().map(put).sum())
    }
}

struct Compiler<'a> {
    plan: &'a Plan,
    attach: bool,
    footprint: Footprint,
    flag_numbers: Numbers<FlagRef>,
    line_numbers: Numbers<(Rank, usize)>,
    flags: Vec<Flag>,
    adds: Vec<i64>,
    homes: Vec<Rank>,
    slots: Buffers,
    reached: Buffers,
    lens: Vec<usize>,
    len_numbers: Numbers<usize>,
    last_len: (usize, u32),
    attachers: Attachers,
}

/// A rank's buffers.
const IN: u32 = 0;
const OUT: u32 = 1;

impl Compiler<'_> {
    fn flag(&mut self, flag: FlagRef) -> Option<Flag> {
        let array = self.plan.flags.get(flag.array as usize)?;
        if flag.home.index() >= self.plan.ranks || usize::from(flag.index) >= array.count {
            return None;
        }
        let id = number(&mut self.flag_numbers, flag);
        if id as usize == self.flags.len() {
            let line = number(&mut self.line_numbers, self.footprint.flag_line(flag));
            if line as usize == self.homes.len() {
                self.homes.push(flag.home);
            }
            self.flags.push(Flag { number: id, line, counts: array.kind == FlagKind::Counter });
            self.adds.push(0);
        }
        Some(self.flags[id as usize])
    }

    /// The number of a length, which is mostly that of the op before.
    fn len(&mut self, len: usize) -> u32 {
        if self.last_len.0 != len || self.lens.is_empty() {
            self.last_len = (len, number(&mut self.len_numbers, len));
            if self.last_len.1 as usize == self.lens.len() {
                self.lens.push(len);
            }
        }
        self.last_len.1
    }

    fn place(&mut self, rank: usize, region: Region) -> Option<Operand> {
        let own = Rank::from(rank);
        let peer = |q: Rank| (q.index() < self.plan.ranks).then_some(q);
        Some(match region.space {
            Space::Acc => Operand::Near,
            Space::In | Space::Out if self.attach || !self.plan.direct => Operand::User,
            Space::PeerIn(q) | Space::PeerOut(q) if self.attach => {
                self.attachers.call(own, q, region)?;
                Operand::Attached
            }
            Space::In => self.user(own, IN, region),
            Space::Out => self.user(own, OUT, region),
            Space::PeerIn(q) => self.user(peer(q)?, IN, region),
            Space::PeerOut(q) => self.user(peer(q)?, OUT, region),
            Space::Slot { rank, slot } => {
                let size = *self.plan.slots.get(usize::from(slot))?;
                if region.end() > size {
                    return None;
                }
                Operand::Slot(self.slots.access(peer(rank)?, u32::from(slot), size, region))
            }
        })
    }

    fn user(&mut self, rank: Rank, which: u32, region: Region) -> Operand {
        Operand::Reached(self.reached.access(rank, which, self.plan.bytes, region))
    }

    fn instruction(&mut self, rank: usize, op: &Op) -> Option<Instruction> {
        Some(match *op {
            Op::Move { src, dst } => {
                let [from, to] = [self.place(rank, src)?, self.place(rank, dst)?].map(Packed::of);
                Instruction::Move { src: from, dst: to, len: self.len(src.len) }
            }
            Op::Fold { a, b, dst } => {
                let places = [self.place(rank, a)?, self.place(rank, b)?, self.place(rank, dst)?];
                let ([a, b, to], len) = (places.map(Packed::of), self.len(dst.len));
                Instruction::Fold { a, b, dst: to, len }
            }
            Op::Set { flag, value, carry } => {
                let carries = matches!(carry, Some(Carry::Bytes(_) | Carry::Address(_)));
                Instruction::Set { flag: self.flag(flag)?, value, carries }
            }
            Op::Wait { flag, value, take } => {
                let takes = matches!(take, Some(Take::Bytes(_) | Take::Address(_)));
                Instruction::Wait { flag: self.flag(flag)?, value, takes }
            }
            Op::Add { flag } => {
                let flag = self.flag(flag)?;
                self.adds[flag.number as usize] += 1;
                Instruction::Add { flag }
            }
        })
    }
}

/// Numbers everything, or names the first op that refers to what the plan does not have.
pub fn compile(plan: &Plan, line_bytes: usize, options: &Options) -> Result<Playable, (Rank, usize)> {
    let mut c = Compiler {
        plan,
        attach: options.attach,
        footprint: Footprint::of(plan, line_bytes.max(8)),
        flag_numbers: Numbers::default(),
        line_numbers: Numbers::default(),
        flags: Vec::new(),
        adds: Vec::new(),
        homes: Vec::new(),
        slots: Buffers::default(),
        reached: Buffers::default(),
        lens: Vec::new(),
        len_numbers: Numbers::default(),
        last_len: (0, 0),
        attachers: Attachers::of(plan.ranks),
    };
    // Ops without bytes have a length too.
    c.len(0);
    let mut ops = Vec::with_capacity(plan.ranks);
    for (rank, program) in plan.programs.iter().enumerate() {
        let mut compiled = Vec::with_capacity(program.len());
        for (at, op) in program.iter().enumerate() {
            compiled.push(c.instruction(rank, op).ok_or((Rank::from(rank), at))?);
        }
        ops.push(compiled);
    }
    let (slots, reached) = (c.slots.resolve(), c.reached.resolve());
    for op in ops.iter_mut().flatten() {
        for operand in op.operands().0.into_iter().flatten() {
            *operand = match operand.place() {
                Operand::Slot(access) => Packed::of(Operand::Slot(slots[access.first as usize])),
                Operand::Reached(access) => Packed::of(Operand::Reached(reached[access.first as usize])),
                Operand::Near | Operand::User | Operand::Attached => continue,
            };
        }
    }
    let banks = match plan.reuse {
        Reuse::Same => 1,
        Reuse::Ring => options.banks.min(options.runs),
    };
    let same_lines = !plan.collective.one_way() && plan.leaves_room_for_a_generation();
    let stays = same_lines || plan.reuse == Reuse::Same;
    Ok(Playable {
        ops,
        lens: c.lens,
        adds: c.adds,
        span: i64::from(plan.span()),
        lines: c.homes.len(),
        homes: c.homes,
        slots: c.slots.cut,
        reached: c.reached.cut,
        banks,
        same_lines,
        guarded: plan.reuse == Reuse::Ring,
        swaps: stays && plan.ranks == 2 && plan.programs.iter().all(|ops| swaps(ops)),
        attachers: c.attachers.at_once(),
    })
}

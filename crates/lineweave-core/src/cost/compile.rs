//! A plan with its flags, lines and shared buffers numbered densely, ready to be played.

use super::Options;
use crate::plan::{Carry, FlagKind, FlagRef, Footprint, Op, Plan, Region, Reuse, Space, Take};
use crate::units::Rank;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Where an operand lies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Operand {
    /// Private memory that stays in the cache.
    Near,
    /// A user's buffer that nobody else reaches: as near as the whole message.
    User,
    /// Bytes of a slot, which others read or write; the buffer's index is the one in its bank.
    Slot(Access),
    /// A user's buffer that others reach, the same in all runs.
    Reached(Access),
    /// A peer's buffer that a system call copies from or to.
    Attached,
}

/// Bytes of a buffer, as many of the pieces that no access cuts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Access {
    /// Index of the buffer.
    pub buffer: u32,
    /// The first piece, and the one behind the last.
    pub pieces: (u32, u32),
}

impl Access {
    /// As indices.
    pub fn range(&self) -> std::ops::Range<usize> {
        self.pieces.0 as usize..self.pieces.1 as usize
    }
}

/// One op.
#[derive(Clone, Copy, Debug)]
pub enum Instruction {
    /// Copy.
    Move { src: Operand, dst: Operand, len: usize },
    /// Combine.
    Fold { a: Operand, b: Operand, dst: Operand, len: usize },
    /// Raise.
    Set { flag: u32, value: i32, carries: bool },
    /// Wait.
    Wait { flag: u32, value: i32, takes: bool },
    /// Add one.
    Add { flag: u32 },
}

impl Instruction {
    /// Where its operands lie, and how long they are.
    fn operands(&self) -> ([Option<Operand>; 3], usize) {
        match *self {
            Instruction::Move { src, dst, len } => ([Some(src), Some(dst), None], len),
            Instruction::Fold { a, b, dst, len } => ([Some(a), Some(b), Some(dst)], len),
            Instruction::Set { .. } | Instruction::Wait { .. } | Instruction::Add { .. } => ([None; 3], 0),
        }
    }
}

/// What is fixed about a flag.
#[derive(Clone, Copy, Debug)]
pub struct FlagInfo {
    /// Its line.
    pub line: u32,
    /// How much it grows from run to run.
    pub span: i64,
}

/// A compiled plan.
#[derive(Debug)]
pub struct Playable {
    /// For each rank its ops.
    pub ops: Vec<Vec<Instruction>>,
    /// Flags of one bank.
    pub flags: Vec<FlagInfo>,
    /// Lines of one bank.
    pub lines: usize,
    /// For each line of a bank, the ranks that wait for a flag on it.
    pub readers: Vec<Vec<u32>>,
    /// For each line of a bank, the rank in whose box it lies.
    pub homes: Vec<Rank>,
    /// The slots of one bank, each with the last rank that reads it.
    pub slots: Vec<Pieces>,
    /// Users' buffers that others reach, each with its owner.
    pub reached: Vec<Pieces>,
    /// Banks that runs alternate between, of those that are played.
    pub banks: usize,
    /// Whether all banks are on the same lines.
    pub same_lines: bool,
    /// Whether a bank is entered only after everybody has left it.
    pub guarded: bool,
    /// Whether two ranks exchange a flag, with a word at most, and that is all: a call like the last one is then straight code.
    pub swaps: bool,
}

impl Playable {
    /// For each rank, how much memory its buffers are in: as much as the whole message, what its plan reaches of others', and the slots that it
    /// touches before runs come back to them, `times` as many as in one run.
    pub fn reach(&self, plan: &Plan, message: usize, times: f64) -> Vec<usize> {
        let windows = message.checked_div(plan.bytes).unwrap_or(1).max(1);
        // What the rank that is looked at has touched of each slot.
        let mut touched = vec![(usize::MAX, 0); self.slots.len()];
        let of_rank = |(rank, ops): (usize, &Vec<Instruction>)| {
            let (mut reached, mut slots) = (0, 0);
            for op in ops {
                let (places, len) = op.operands();
                for place in places.into_iter().flatten() {
                    match place {
                        Operand::Near | Operand::User | Operand::Attached => {}
                        Operand::Reached(_) => reached += len,
                        Operand::Slot(access) => {
                            let (last, bytes) = &mut touched[access.buffer as usize];
                            if *last != rank {
                                (*last, *bytes) = (rank, 0);
                            }
                            let size = self.slots[access.buffer as usize].ends.last().copied().unwrap_or(0);
                            let more = len.min(size.saturating_sub(*bytes));
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
}

/// Bytes of a word.
const WORD: usize = 8;

/// Whether a rank sets a flag, waits for one, and combines the words that came with them at most.
fn swaps(ops: &[Instruction]) -> bool {
    match ops {
        [Instruction::Set { .. }, Instruction::Wait { .. }, then @ ..] => {
            matches!(then, [] | [Instruction::Fold { len: ..=WORD, .. }])
        }
        _ => false,
    }
}

/// A fast hash for small keys (FxHash's multiplication); plans are compiled far more often than they run.
#[derive(Default)]
struct Quick(u64);

impl Hasher for Quick {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&b| self.write_u64(u64::from(b)));
    }
    fn write_u16(&mut self, v: u16) {
        self.write_u64(u64::from(v));
    }
    fn write_u32(&mut self, v: u32) {
        self.write_u64(u64::from(v));
    }
    fn write_u64(&mut self, v: u64) {
        self.0 = (self.0.rotate_left(5) ^ v).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
    fn write_usize(&mut self, v: usize) {
        self.write_u64(v as u64);
    }
}

type Numbers<K> = HashMap<K, u32, BuildHasherDefault<Quick>>;

fn number<K: Hash + Eq>(numbers: &mut Numbers<K>, key: K) -> u32 {
    let next = numbers.len() as u32;
    *numbers.entry(key).or_insert(next)
}

struct Compiler<'a> {
    plan: &'a Plan,
    attach: bool,
    span: i64,
    footprint: Footprint,
    flag_numbers: Numbers<FlagRef>,
    line_numbers: Numbers<(Rank, usize)>,
    flags: Vec<FlagInfo>,
    readers: Vec<Vec<u32>>,
    homes: Vec<Rank>,
    slots: Buffers,
    reached: Buffers,
}

/// A buffer cut wherever an access begins or ends.
#[derive(Debug)]
pub struct Pieces {
    /// Where the pieces end, in order; they cover the buffer.
    pub ends: Vec<usize>,
    /// The rank in whose memory it lies.
    pub home: Rank,
    /// The rank that has it when the first run begins.
    pub with: Rank,
}

/// Buffers of ranks, numbered.
#[derive(Default)]
struct Buffers {
    numbers: Numbers<(Rank, u32)>,
    /// Not yet in order.
    pieces: Vec<Pieces>,
    /// First byte of all accesses so far, and the one behind the last.
    asked: Vec<(usize, usize)>,
}

impl Buffers {
    /// An access to bytes of a buffer, whose pieces are not known before [`Buffers::resolve`]: till then its first is the access's number.
    fn access(&mut self, rank: Rank, which: u32, size: usize, region: Region) -> Access {
        let buffer = number(&mut self.numbers, (rank, which));
        if buffer as usize == self.pieces.len() {
            self.pieces.push(Pieces { ends: vec![size], home: rank, with: rank });
        }
        self.pieces[buffer as usize].ends.extend([region.offset, region.end()]);
        self.asked.push((region.offset, region.end()));
        Access { buffer, pieces: (self.asked.len() as u32 - 1, 0) }
    }

    /// Puts the pieces of all buffers in order, once all accesses are known.
    fn cut(&mut self) {
        for Pieces { ends, .. } in &mut self.pieces {
            ends.sort_unstable();
            ends.dedup();
            // Nothing ends where the buffer begins.
            if ends.first() == Some(&0) {
                ends.remove(0);
            }
        }
    }

    fn resolve(&self, access: &mut Access) {
        let ends = &self.pieces[access.buffer as usize].ends;
        let (start, end) = self.asked[access.pieces.0 as usize];
        let before = |at: usize| ends.partition_point(|&end| end <= at) as u32;
        access.pieces = (before(start), before(end));
    }
}

/// A rank's buffers.
const IN: u32 = 0;
const OUT: u32 = 1;

impl Compiler<'_> {
    fn flag(&mut self, flag: FlagRef) -> Option<u32> {
        let array = self.plan.flags.get(flag.array as usize)?;
        if flag.home.index() >= self.plan.ranks || usize::from(flag.index) >= array.count {
            return None;
        }
        let id = number(&mut self.flag_numbers, flag);
        if id as usize == self.flags.len() {
            let line = number(&mut self.line_numbers, self.footprint.flag_line(flag));
            if line as usize == self.readers.len() {
                self.readers.push(Vec::new());
                self.homes.push(flag.home);
            }
            let span = if array.kind == FlagKind::Signal { self.span } else { 0 };
            self.flags.push(FlagInfo { line, span });
        }
        Some(id)
    }

    fn place(&mut self, rank: usize, region: Region) -> Option<Operand> {
        let own = Rank::from(rank);
        let peer = |q: Rank| (q.index() < self.plan.ranks).then_some(q);
        Some(match region.space {
            Space::Acc => Operand::Near,
            Space::In | Space::Out if self.attach || !self.plan.direct => Operand::User,
            Space::PeerIn(q) | Space::PeerOut(q) if self.attach => peer(q).map(|_| Operand::Attached)?,
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

    /// A slot is with whoever reads it last when the next run begins.
    fn read_by(&mut self, rank: usize, place: Operand) {
        if let Operand::Slot(access) = place {
            self.slots.pieces[access.buffer as usize].with = Rank::from(rank);
        }
    }

    /// Says which pieces an operand is made of.
    fn resolve(&self, place: &mut Operand) {
        match place {
            Operand::Slot(access) => self.slots.resolve(access),
            Operand::Reached(access) => self.reached.resolve(access),
            Operand::Near | Operand::User | Operand::Attached => {}
        }
    }

    fn instruction(&mut self, rank: usize, op: &Op) -> Option<Instruction> {
        Some(match *op {
            Op::Move { src, dst } => {
                let (src_place, dst) = (self.place(rank, src)?, self.place(rank, dst)?);
                self.read_by(rank, src_place);
                Instruction::Move { src: src_place, dst, len: src.len }
            }
            Op::Fold { a, b, dst } => {
                let operands = [self.place(rank, a)?, self.place(rank, b)?];
                operands.into_iter().for_each(|place| self.read_by(rank, place));
                let [a, b] = operands;
                Instruction::Fold { a, b, dst: self.place(rank, dst)?, len: dst.len }
            }
            Op::Set { flag, value, carry } => {
                let carries = matches!(carry, Some(Carry::Bytes(_) | Carry::Address(_)));
                Instruction::Set { flag: self.flag(flag)?, value, carries }
            }
            Op::Wait { flag, value, take } => {
                let takes = matches!(take, Some(Take::Bytes(_) | Take::Address(_)));
                let flag = self.flag(flag)?;
                let readers = &mut self.readers[self.flags[flag as usize].line as usize];
                if readers.last() != Some(&(rank as u32)) {
                    readers.push(rank as u32);
                }
                Instruction::Wait { flag, value, takes }
            }
            Op::Add { flag } => {
                let flag = self.flag(flag)?;
                self.flags[flag as usize].span += 1;
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
        span: i64::from(plan.span()),
        footprint: Footprint::of(plan, line_bytes.max(8)),
        flag_numbers: Numbers::default(),
        line_numbers: Numbers::default(),
        flags: Vec::new(),
        readers: Vec::new(),
        homes: Vec::new(),
        slots: Buffers::default(),
        reached: Buffers::default(),
    };
    let mut ops = Vec::with_capacity(plan.ranks);
    for (rank, program) in plan.programs.iter().enumerate() {
        let mut compiled = Vec::with_capacity(program.len());
        for (at, op) in program.iter().enumerate() {
            compiled.push(c.instruction(rank, op).ok_or((Rank::from(rank), at))?);
        }
        ops.push(compiled);
    }
    c.slots.cut();
    c.reached.cut();
    for op in ops.iter_mut().flatten() {
        match op {
            Instruction::Move { src, dst, .. } => [src, dst].into_iter().for_each(|p| c.resolve(p)),
            Instruction::Fold { a, b, dst, .. } => [a, b, dst].into_iter().for_each(|p| c.resolve(p)),
            Instruction::Set { .. } | Instruction::Wait { .. } | Instruction::Add { .. } => {}
        }
    }
    let banks = match plan.reuse {
        Reuse::Same => 1,
        Reuse::Ring => options.banks.min(options.runs),
    };
    let same_lines = !plan.collective.one_way() && plan.leaves_room_for_a_generation();
    Ok(Playable {
        swaps: (same_lines || plan.reuse == Reuse::Same)
            && plan.ranks == 2
            && ops.iter().all(|ops| swaps(ops)),
        ops,
        flags: c.flags,
        lines: c.readers.len(),
        readers: c.readers,
        homes: c.homes,
        slots: c.slots.pieces,
        reached: c.reached.pieces,
        banks,
        same_lines,
        guarded: plan.reuse == Reuse::Ring,
    })
}

//! A plan with its flags, lines and shared buffers numbered densely, ready to be played.

use super::Options;
use crate::plan::{Carry, FlagKind, FlagRef, Footprint, Layout, Op, Plan, Region, Reuse, Space, Take};
use crate::units::Rank;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// No rank.
pub const NOBODY: u32 = u32::MAX;

/// Where an operand lies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Place {
    /// Private memory that stays in the cache.
    Near,
    /// A user's buffer: as near as the whole message.
    User,
    /// Bytes that others read or write.
    Shared {
        /// Index of the buffer.
        buffer: u32,
        /// First byte.
        start: usize,
    },
    /// A peer's input: new in every run.
    Fresh(u32),
    /// A peer's buffer that a system call copies from or to.
    Attached,
}

/// One op.
#[derive(Clone, Copy, Debug)]
pub enum Instruction {
    /// Copy.
    Move { src: Place, dst: Place, len: usize },
    /// Combine.
    Fold { a: Place, b: Place, dst: Place, len: usize },
    /// Raise.
    Set { flag: u32, value: i32, carries: bool },
    /// Wait.
    Wait { flag: u32, value: i32, takes: bool },
    /// Add one.
    Add { flag: u32 },
}

/// What is fixed about a flag.
#[derive(Clone, Copy, Debug)]
pub struct FlagInfo {
    /// Its line.
    pub line: u32,
    /// The layout that its cost is looked up by: a flag that has its line for itself is `Alone`, whatever its
    /// array's layout is.
    pub layout: Layout,
    /// The one rank that waits for it, or [`NOBODY`].
    pub reader: u32,
    /// How much it grows from run to run.
    pub span: i64,
}

/// A compiled plan.
#[derive(Debug)]
pub struct Program {
    /// For each rank its ops.
    pub ops: Vec<Vec<Instruction>>,
    /// Flags of one bank.
    pub flags: Vec<FlagInfo>,
    /// Lines of one bank.
    pub lines: usize,
    /// Sizes of the shared buffers of one bank.
    pub buffers: Vec<usize>,
    /// Banks that runs alternate between.
    pub banks: usize,
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
    footprint: Footprint,
    flag_numbers: Numbers<FlagRef>,
    line_numbers: Numbers<(Rank, usize)>,
    buffer_numbers: Numbers<(Rank, u32)>,
    flags: Vec<FlagInfo>,
    buffers: Vec<usize>,
}

/// The out buffer of a rank among its slots.
const OUT: u32 = u32::MAX;

impl Compiler<'_> {
    fn flag(&mut self, flag: FlagRef) -> Option<u32> {
        let array = self.plan.flags.get(flag.array as usize)?;
        if flag.home.index() >= self.plan.ranks || usize::from(flag.index) >= array.count {
            return None;
        }
        let id = number(&mut self.flag_numbers, flag);
        if id as usize == self.flags.len() {
            let line = number(&mut self.line_numbers, self.footprint.flag_line(flag));
            self.flags.push(FlagInfo { line, layout: array.layout, reader: NOBODY, span: 0 });
        }
        Some(id)
    }

    fn place(&mut self, rank: usize, region: Region) -> Option<Place> {
        let peer = |q: Rank| (q.index() < self.plan.ranks).then_some(q);
        Some(match region.space {
            Space::Acc => Place::Near,
            Space::In => Place::User,
            Space::Out if self.attach || !self.plan.direct => Place::User,
            Space::PeerIn(q) | Space::PeerOut(q) if self.attach => peer(q).map(|_| Place::Attached)?,
            Space::Out => self.shared(Rank::from(rank), OUT, self.plan.bytes.max(region.end()), region),
            Space::Slot { rank, slot } => {
                let size = *self.plan.slots.get(usize::from(slot))?;
                if region.end() > size {
                    return None;
                }
                self.shared(peer(rank)?, u32::from(slot), size, region)
            }
            Space::PeerIn(q) => Place::Fresh(peer(q)?.0),
            Space::PeerOut(q) => {
                let q = peer(q)?;
                self.shared(q, OUT, self.plan.bytes.max(region.end()), region)
            }
        })
    }

    fn shared(&mut self, rank: Rank, slot: u32, size: usize, region: Region) -> Place {
        let buffer = number(&mut self.buffer_numbers, (rank, slot));
        if buffer as usize == self.buffers.len() {
            self.buffers.push(size);
        }
        let size = &mut self.buffers[buffer as usize];
        *size = (*size).max(region.end());
        Place::Shared { buffer, start: region.offset }
    }

    fn instruction(&mut self, rank: usize, op: &Op) -> Option<Instruction> {
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
                let carries = matches!(carry, Some(Carry::Bytes(_) | Carry::Address(_)));
                Instruction::Set { flag: self.flag(flag)?, value, carries }
            }
            Op::Wait { flag, value, take } => {
                let takes = matches!(take, Some(Take::Bytes(_) | Take::Address(_)));
                let flag = self.flag(flag)?;
                let info = &mut self.flags[flag as usize];
                info.reader = match info.reader {
                    NOBODY => rank as u32,
                    one if one == rank as u32 => one,
                    // Several ranks poll it: nobody exchanges over it. Restored below.
                    _ => MANY,
                };
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

/// Several readers, while compiling.
const MANY: u32 = u32::MAX - 1;

/// Numbers everything, or names the first op that refers to what the plan does not have.
pub fn compile(plan: &Plan, line_bytes: usize, options: &Options) -> Result<Program, (Rank, usize)> {
    let mut c = Compiler {
        plan,
        attach: options.attach,
        footprint: Footprint::of(plan, line_bytes.max(8)),
        flag_numbers: Numbers::default(),
        line_numbers: Numbers::default(),
        buffer_numbers: Numbers::default(),
        flags: Vec::new(),
        buffers: Vec::new(),
    };
    let mut ops = Vec::with_capacity(plan.ranks);
    for (rank, program) in plan.programs.iter().enumerate() {
        let mut compiled = Vec::with_capacity(program.len());
        for (at, op) in program.iter().enumerate() {
            compiled.push(c.instruction(rank, op).ok_or((Rank::from(rank), at))?);
        }
        ops.push(compiled);
    }
    let lines = c.line_numbers.len();
    let mut on_line = vec![0u32; lines];
    c.flags.iter().for_each(|f| on_line[f.line as usize] += 1);
    let span = i64::from(plan.span());
    for (flag, id) in &c.flag_numbers {
        let info = &mut c.flags[*id as usize];
        if info.reader == MANY {
            info.reader = NOBODY;
        }
        if on_line[info.line as usize] == 1 && !matches!(info.layout, Layout::Spread(_)) {
            info.layout = Layout::Alone;
        }
        if plan.flags[flag.array as usize].kind == FlagKind::Signal {
            info.span = span;
        }
    }
    let banks = match plan.reuse {
        Reuse::Same => 1,
        Reuse::Ring => options.banks.min(options.runs),
    };
    Ok(Program { ops, flags: c.flags, lines, buffers: c.buffers, banks })
}

//! Steps of a rank's program.

use crate::segment::Segment;
use crate::sync::AtomicU64;

/// An address relative to one of the bases of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Addr {
    /// Index into the bases: [`IN`], [`OUT`], [`ACC`], [`BANK`], then one for each peer buffer used.
    pub base: u32,
    /// Distance from the base in bytes.
    pub offset: usize,
}

/// The count of sleepers at a flag's home, resolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SleeperCounter(*const AtomicU64);

impl SleeperCounter {
    /// The home of rank `rank`'s flags in a segment that outlives every use of this value.
    pub fn of(segment: &Segment, rank: usize) -> SleeperCounter {
        SleeperCounter(segment.sleepers(rank))
    }

    /// Returns the count of sleepers.
    #[inline(always)]
    pub fn sleepers<'a>(self) -> &'a AtomicU64 {
        // SAFETY: the communicator that compiled the step keeps its segment mapped for as long as it runs it.
        unsafe { &*self.0 }
    }
}

/// Base of the input buffer.
pub const IN: u32 = 0;
/// Base of the output buffer.
pub const OUT: u32 = 1;
/// Base of the scratch memory.
pub const ACC: u32 = 2;
/// Base of the bank: rank 0's part of it.
pub const BANK: u32 = 3;
/// First base of peers' buffers.
pub const PEERS: u32 = 4;

/// One step. `at` is a flag's offset from the bank's base (for counters: from the counters' base), `home`
/// counts who sleeps on flags there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Copy bytes.
    Move { src: Addr, dst: Addr, len: usize },
    /// Copy bytes from or to a buffer that may be another process's.
    CopyRemote { src: Addr, dst: Addr, len: usize },
    /// Combine elements, some of which may be in another process.
    ReduceRemote { a: Addr, b: Addr, dst: Addr, elements: usize },
    /// Combine elements: `dst = a (op) b`.
    Fold { a: Addr, b: Addr, dst: Addr, elements: usize },
    /// Combine all contributions in one place: number `number` of [`Compiled::chains`].
    FoldAll { number: u32 },
    /// Combine elements into two places: number `number` of [`Compiled::doubles`].
    FoldTwice { number: u32 },
    /// Raise a flag.
    Set { at: usize, home: SleeperCounter, value: u32 },
    /// Store a payload beside a flag and raise it.
    SetBytes { at: usize, home: SleeperCounter, value: u32, src: Addr, len: u32 },
    /// Store the address of a buffer beside a flag and raise it.
    SetAddress { at: usize, home: SleeperCounter, value: u32, base: u32 },
    /// Store where a buffer is in shared memory beside a flag and raise it.
    SetPlace { at: usize, home: SleeperCounter, value: u32, base: u32 },
    /// Take so many lines of the next bank for writing.
    PrefetchForWrite { at: usize, lines: u32 },
    /// Wait for a value of this run, from a rank that is `apart` (see [`Budget::apart`](crate::wait::Budget::apart)) or not.
    Wait { at: usize, home: SleeperCounter, value: u32, apart: bool },
    /// Wait for what the run `lag` runs ago set (`below` less than this run's base), if there was one.
    WaitEarlier { at: usize, home: SleeperCounter, below: u32, lag: u32 },
    /// Wait and copy the payload.
    WaitBytes { at: usize, home: SleeperCounter, value: u32, dst: Addr, len: u32, apart: bool },
    /// Wait and take the address of a peer's buffer.
    WaitAddress { at: usize, home: SleeperCounter, value: u32, base: u32 },
    /// Wait and take where a peer's buffer is in shared memory, of which so many bytes are reached.
    WaitPlace { at: usize, home: SleeperCounter, value: u32, base: u32, near: bool, bytes: usize },
    /// Add the call's mark to a counter.
    Add { at: usize, home: SleeperCounter },
    /// Wait for a counter to which `each` adds are made in a run.
    WaitCount { at: usize, home: SleeperCounter, each: u32 },
}

/// A fold and the copy of its result that follows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Double {
    /// The first operand.
    pub a: Addr,
    /// The second operand.
    pub b: Addr,
    /// Destination of the result.
    pub dst: Addr,
    /// The second place of the result.
    pub also: Addr,
    /// The number of elements of each operand.
    pub elements: usize,
}

/// Folds that follow each other, each into the result of the one before, and together into one sum of all contributions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    /// The contributions, in the order in which they are combined.
    pub operands: Box<[Addr]>,
    /// Destination of the results in between, when there are any.
    pub through: Addr,
    /// Destination of the last result.
    pub dst: Addr,
    /// The number of elements of each operand.
    pub elements: usize,
}

impl Chain {
    /// All places that it reads and writes.
    pub fn places(&self) -> impl Iterator<Item = Addr> + '_ {
        self.operands.iter().copied().chain([self.through, self.dst])
    }
}

/// A plan that swaps one payload and folds it: the small allreduce of two ranks.
#[derive(Clone, Copy, Debug)]
pub struct Swap {
    /// The flag to raise.
    pub at: usize,
    /// The sleepers' counter of that flag.
    pub home: SleeperCounter,
    /// The value to raise it to, within this run.
    pub value: u32,
    /// The flag to wait for.
    pub other: usize,
    /// The sleepers' counter of that flag.
    pub theirs: SleeperCounter,
    /// The value to wait for, within this run.
    pub wanted: u32,
    /// Payload in bytes: the whole message.
    pub bytes: usize,
    /// True if this rank's contribution is the left operand.
    pub left: bool,
}

/// A plan that only raises one flag and waits for another: the two-rank barrier.
#[derive(Clone, Copy, Debug)]
pub struct Exchange {
    /// The flag to raise.
    pub at: usize,
    /// The sleepers' counter of that flag.
    pub home: SleeperCounter,
    /// The value to raise it to, within this run.
    pub value: u32,
    /// The flag to wait for.
    pub other: usize,
    /// The sleepers' counter of that flag.
    pub theirs: SleeperCounter,
    /// The value to wait for, within this run.
    pub wanted: u32,
}

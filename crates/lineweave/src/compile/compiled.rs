//! A plan as one rank runs it: its steps, and what they need of banks.

use super::step::{Addr, Chain, Double, Exchange, Step, Swap, IN, OUT, PEERS};
use super::truncation::Truncation;
use crate::segment::{BankClass, Mapped};
use crate::signature::CallKey;
use crate::sync::AtomicU64;
use lineweave_core::plan::Space;

/// Requirements of a plan's runs on the banks where flags and slots are.
#[derive(Clone, Debug)]
pub struct Need {
    /// Runs follow each other in one bank.
    pub stays: bool,
    /// Bytes between the two generations of flags that successive runs alternate between, or 0.
    pub generations: usize,
    /// Class of the bank, which selects the ring.
    pub class: BankClass,
    /// Bytes of a bank that it uses, from the bank's start.
    pub extent: usize,
    /// Bytes of slots, each run's of which may lie in another place of the bank; 0 where they have to stay.
    pub walks: usize,
    /// Ranks in whose areas it has flags or slots.
    pub areas: Box<[u32]>,
    /// Part of the banks that is mapped in all of these areas.
    pub mapped: Mapped,
    /// True if the plan has counters.
    pub counts: bool,
}

/// A rank's steps, and what they refer to.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// All steps, in order.
    pub all: Box<[Step]>,
    /// The operands of steps that fold into two places.
    pub doubles: Box<[Double]>,
    /// The operands of steps that combine all contributions.
    pub chains: Box<[Chain]>,
    /// Steps that depend on the length, where the plan is run for shorter messages or blocks as well.
    pub(super) cuts: Option<Truncation>,
}

impl Steps {
    /// Returns the bytes of memory that the steps take, beyond the fields.
    fn bytes(&self) -> usize {
        let operands: usize = self.chains.iter().map(|chain| size_of_val(&*chain.operands)).sum();
        let lists = size_of_val(&*self.all) + size_of_val(&*self.doubles) + size_of_val(&*self.chains);
        lists + operands + self.cuts.as_ref().map_or(0, Truncation::bytes)
    }
}

/// A buffer of another rank.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Buffer, as the plan names it.
    pub space: Space,
    /// Rank that the buffer belongs to.
    pub rank: u32,
    /// The process of that rank.
    pub pid: u32,
}

/// A plan as one rank runs it.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Steps that the rank executes.
    pub steps: Steps,
    /// Half of what all ranks' buffers hold together, of the call of which this is a window: of a copy, its length. 0 where results are read
    /// again soon, and should stay in a cache.
    pub message: usize,
    /// Number of bases that the steps use.
    pub bases: usize,
    /// Requirements of the plan's runs on banks.
    pub need: Need,
    /// Distance between runs on every flag.
    pub span: u64,
    /// Every rank's end follows every rank's start.
    pub synchronizing: bool,
    /// `in` and `out` may be one buffer.
    pub in_place: bool,
    /// Scratch bytes.
    pub acc: usize,
    /// Bytes that are combined at a time where operands come from other processes, if any do.
    pub piece: usize,
    /// Bytes of an element.
    pub grain: usize,
    /// Peer buffers that the bases from [`PEERS`] on stand for.
    pub peers: Box<[Peer]>,
    /// Differs for plans that differ, and is equal on all ranks.
    pub digest: u64,
    /// Sum of the marks of one add in each run so far, for runs that use the word of the next run and for the others.
    pub counted: [u64; 2],
    /// True if the next run uses the second word of counters.
    pub odd: bool,
}

impl Compiled {
    /// Returns the bytes of memory that the compiled plan takes.
    pub fn bytes(&self) -> usize {
        size_of::<Compiled>() + self.steps.bytes()
    }

    /// Returns how far into each counter the word of the next run lies.
    #[inline(always)]
    pub fn word(&self) -> usize {
        usize::from(self.odd) * size_of::<AtomicU64>()
    }

    /// Counts a run that added to counters: the next one uses their other words.
    #[inline(always)]
    pub fn count(&mut self, key: CallKey) {
        let [this, next] = self.counted;
        self.counted = [next, this.wrapping_add(key.of_counters())];
        self.odd = !self.odd;
    }

    /// Returns whether it tells others where this rank's buffers are.
    pub fn lends(&self) -> bool {
        self.steps.all.iter().any(|step| matches!(step, Step::SetAddress { .. } | Step::SetPlace { .. }))
    }

    /// The process of whose memory an address is.
    pub fn pid(&self, addr: Addr) -> u32 {
        self.peers[(addr.base - PEERS) as usize].pid
    }

    /// The exchange of payloads, when all that this rank does is to carry `in`, take the peer's, and fold both
    /// into `out`.
    pub fn swap(&self) -> Option<Swap> {
        let [Step::SetBytes { at, home, value, src, len }, Step::WaitBytes { at: other, home: theirs, value: wanted, dst, len: taken, .. }, Step::Fold { a, b, dst: out, .. }] =
            *self.steps.all
        else {
            return None;
        };
        let whole = |addr: Addr, base: u32| addr == Addr { base, offset: 0 };
        let left = whole(a, IN) && b == dst;
        let right = a == dst && whole(b, IN);
        let fits = whole(src, IN) && whole(out, OUT) && len == taken && self.need.generations > 0;
        let swap = Swap { at, home, value, other, theirs, wanted, bytes: len as usize, left };
        (fits && (left || right)).then_some(swap)
    }

    /// The flag to raise and the flag to wait for, when that is all this rank does.
    pub fn exchange(&self) -> Option<Exchange> {
        match *self.steps.all {
            [Step::Set { at, home, value }, Step::Wait { at: other, home: theirs, value: wanted, .. }] => {
                Some(Exchange { at, home, value, other, theirs, wanted })
            }
            _ => None,
        }
    }
}

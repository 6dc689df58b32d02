//! Addresses of one run's bytes and flags, and the moves of bytes: within this process, or from and to another's memory.

use crate::attach;
use crate::compile::{Addr, Chain, Compiled, Double, BANK, IN, OUT, PEERS};
use crate::flag::Goal;
use crate::kernel::{Copier, Fold, MAX_PAYLOAD};
use crate::segment::{far, HeapRegistry};
use crate::signature::CallKey;
use crate::sync::AtomicU64;
use rustix::io::Errno;
use std::mem::MaybeUninit;

/// Addresses of one run's bytes and flags.
pub struct Frame<'a> {
    /// Start of every base (see `compile`), peers' to be filled in while running.
    pub bases: &'a mut [*mut u8],
    /// Start of rank 0's part of the bank.
    pub bank: *mut u8,
    /// The start of the next bank of the ring.
    pub next: *mut u8,
    /// Start of rank 0's counters; where they have two words, of those that this run uses.
    pub counters: *mut u8,
    /// Says where a place in shared memory is.
    pub heaps: &'a HeapRegistry,
    /// Value of every flag before this run, with the key of the call.
    pub base: u64,
    /// The call's key.
    pub key: CallKey,
    /// Runs of this plan in this bank before this one.
    pub earlier: u64,
    /// Combines elements; unused by plans without folds.
    pub fold: Fold,
    /// Copies bytes.
    pub copy: Copier,
    /// Room for operands that come from other processes.
    pub room: *mut u8,
    /// The rank whose memory could not be reached, and why.
    pub unreached: Option<(u32, Errno)>,
}

impl Frame<'_> {
    /// Returns the value that a flag is raised to in this run.
    #[inline(always)]
    pub(super) fn value(&self, value: u32) -> u64 {
        self.base.wrapping_add(u64::from(value))
    }

    /// Returns the goal of a wait for a flag of this run.
    #[inline(always)]
    pub(super) fn goal(&self, value: u32) -> Goal {
        Goal::of_call(self.value(value))
    }

    #[inline(always)]
    pub(super) fn at(&self, addr: Addr) -> *mut u8 {
        // SAFETY: the compiler of the plan numbered the bases, and the checker proved offsets to lie within
        // the space that the base stands for.
        unsafe { self.bases.get_unchecked(addr.base as usize).add(addr.offset) }
    }

    /// Copies, unless `in` and `out` are one buffer and the plan copies a part of it to itself. Stores past the
    /// caches are for users' buffers alone: what goes into a box, a peer's buffer or scratch is read next.
    ///
    /// # Safety
    /// Both ranges must be valid for `len` bytes and be equal or disjoint.
    #[inline(always)]
    pub(super) unsafe fn transfer(&self, src: Addr, dst: Addr, len: usize) {
        // SAFETY: passed on.
        unsafe {
            let (from, to) = (self.at(src), self.at(dst));
            if std::ptr::eq(from, to) {
                return;
            }
            match dst.base {
                IN | OUT => self.copy.copy(from, to, len),
                _ => self.copy.copy_plain(from, to, len),
            }
        }
    }

    /// Returns the address of bytes that may be another process's.
    #[inline]
    fn place(&self, addr: Addr) -> *mut u8 {
        self.bases[addr.base as usize].wrapping_add(addr.offset)
    }

    /// [`Frame::transfer`] from or to what may be another process's.
    ///
    /// # Safety
    /// That of [`Frame::transfer`].
    pub(super) unsafe fn reach(&mut self, plan: &Compiled, src: Addr, dst: Addr, len: usize) -> bool {
        let (from, to) = (self.place(src), self.place(dst));
        let (owner, done) = match (far(from), far(to)) {
            (None, None) => {
                // SAFETY: passed on; both are of this process.
                unsafe { self.transfer(src, dst, len) };
                return true;
            }
            // SAFETY: passed on, for the side of this process; the other one is its owner's, who waits for the flags of the plan.
            (Some(remote), None) => (src, unsafe { attach::read(plan.pid(src), remote, to, len) }),
            // SAFETY: as above.
            (None, Some(remote)) => (dst, unsafe { attach::write(plan.pid(dst), remote, from, len) }),
            // No plan has a rank copy between two others.
            (Some(_), Some(_)) => (src, Err(Errno::NOSYS)),
        };
        self.note(plan, owner, done)
    }

    fn note(&mut self, plan: &Compiled, owner: Addr, done: Result<(), Errno>) -> bool {
        if let Err(why) = done {
            self.unreached = Some((plan.peers[(owner.base - PEERS) as usize].rank, why));
        }
        done.is_ok()
    }

    /// Combines elements, some of which may be another process's: those are copied here first, or the result there, piece by piece.
    ///
    /// # Safety
    /// The ranges must be valid for `elements` elements, and `dst` be equal to each operand or disjoint.
    pub(super) unsafe fn combine(
        &mut self,
        plan: &Compiled,
        a: Addr,
        b: Addr,
        dst: Addr,
        elements: usize,
    ) -> bool {
        if [a, b, dst].iter().all(|&addr| far(self.place(addr)).is_none()) {
            // SAFETY: passed on; all three are of this process.
            return unsafe { self.fold.run(self.place(a), self.place(b), self.place(dst), elements) };
        }
        let most = plan.piece / plan.grain;
        let mut done = 0;
        while done < elements {
            let count = most.min(elements - done);
            let (at, len) = (done * plan.grain, count * plan.grain);
            let mut here = [a, b, dst].map(|addr| self.place(addr).wrapping_add(at));
            for (k, addr) in [a, b].into_iter().enumerate() {
                let Some(remote) = far(here[k]) else { continue };
                here[k] = self.room.wrapping_add(k * plan.piece);
                // SAFETY: the room has a piece for each operand; the other side is as in `reach`.
                let read = unsafe { attach::read(plan.pid(addr), remote, here[k], len) };
                if !self.note(plan, addr, read) {
                    return false;
                }
            }
            let remote = far(here[2]);
            if remote.is_some() {
                here[2] = self.room.wrapping_add(2 * plan.piece);
            }
            // SAFETY: all three are of this process now, and `dst` equal to an operand or disjoint.
            if !unsafe { self.fold.run(here[0], here[1], here[2], count) } {
                return false;
            }
            if let Some(remote) = remote {
                // SAFETY: as above.
                let written = unsafe { attach::write(plan.pid(dst), remote, here[2], len) };
                if !self.note(plan, dst, written) {
                    return false;
                }
            }
            done += count;
        }
        true
    }

    /// Combines elements into two places, piece by piece, so that what is written to the second comes from the first cache. Where users'
    /// buffers go past the caches a piece is combined in scratch, so that each destination is written once.
    ///
    /// # Safety
    /// That of [`Frame::combine`]; `also` is disjoint from `dst` and equal to or disjoint from each operand, and all are of this process.
    #[inline(never)] // its room would be in the frame of every run
    pub(super) unsafe fn combine_twice(&self, double: &Double, grain: usize) -> bool {
        let Double { a, b, dst, also, elements } = *double;
        let [a, b, dst, also] = [a, b, dst, also].map(|addr| self.at(addr));
        let apart = !std::ptr::eq(a, dst) && !std::ptr::eq(b, dst);
        let streams = self.copy.streams(elements * grain);
        let both = streams && apart && double.dst.base != BANK && grain <= PIECE;
        let mut room = Piece([MaybeUninit::uninit(); PIECE]);
        let most = (PIECE / grain).max(1);
        for from in (0..elements).step_by(most) {
            let (count, at) = (most.min(elements - from), from * grain);
            // SAFETY: the caller's, for a part of each; where the scratch is used it holds so many elements, and is aligned for all.
            unsafe {
                let (dst, also) = (dst.add(at), also.add(at));
                let piece = if both { room.0.as_mut_ptr().cast::<u8>() } else { dst };
                if !self.fold.run(a.add(at), b.add(at), piece, count) {
                    return false;
                }
                if both {
                    self.copy.stream(piece, dst, count * grain);
                }
                match streams {
                    true => self.copy.stream(piece, also, count * grain),
                    false => self.copy.copy_plain(piece, also, count * grain),
                }
            }
        }
        true
    }

    /// Combines all contributions: 16-bit floats piece by piece in f32, rounded once, and others one after the other.
    ///
    /// # Safety
    /// The ranges must be valid for `elements` elements of this process, and `dst` be equal to each operand or disjoint; `through` is disjoint
    /// from the operands, or equal to `dst`.
    #[inline(never)] // its room would be in the frame of every run
    pub(super) unsafe fn combine_all(&self, chain: &Chain, grain: usize) -> bool {
        let [first, rest @ ..] = &*chain.operands else { return true };
        let dst = self.at(chain.dst);
        let Some(sums) = self.fold.sums() else {
            let mut sum = self.at(*first);
            return rest.iter().enumerate().all(|(k, &next)| {
                let to = if k + 1 == rest.len() { dst } else { self.at(chain.through) };
                let left = std::mem::replace(&mut sum, to);
                // SAFETY: the caller's.
                unsafe { self.fold.run(left, self.at(next), to, chain.elements) }
            });
        };
        let mut room = [0.0f32; SUMS];
        for from in (0..chain.elements).step_by(SUMS) {
            let at = from * grain;
            let piece = &mut room[..SUMS.min(chain.elements - from)];
            // SAFETY: the caller's, for a part of each: all operands of a piece are read before it is written.
            unsafe {
                (sums.first)(self.at(*first).add(at), piece);
                for &next in rest {
                    (sums.next)(self.at(next).add(at), piece);
                }
                (sums.round)(piece, dst.add(at));
            }
        }
        true
    }

    #[inline(always)]
    pub(super) fn flag(&self, at: usize) -> &AtomicU64 {
        // SAFETY: within the bank by the plan's footprint; flags are 8-byte aligned and only used as atomics.
        unsafe { &*self.bank.add(at).cast::<AtomicU64>() }
    }

    /// The words beside a flag that `len` bytes of payload take.
    #[inline(always)]
    pub(super) fn payload(&self, at: usize, len: usize) -> &[AtomicU64] {
        debug_assert!(len <= MAX_PAYLOAD);
        // SAFETY: the words follow the flag on its line, as many as its layout leaves to it, which the
        // checker compared with the payload; they are only used as atomics.
        unsafe { std::slice::from_raw_parts(self.bank.add(at + 8).cast::<AtomicU64>(), len.div_ceil(8)) }
    }

    #[inline(always)]
    pub(super) fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: within the counters' page, which is only used as atomics.
        unsafe { &*self.counters.add(at).cast::<AtomicU64>() }
    }
}

/// Elements that are summed up at a time, in half of a first-level cache with their operands.
const SUMS: usize = 1024;

/// Bytes that are combined at a time before they go past the caches.
const PIECE: usize = 4096;

/// Room for them.
#[repr(align(64))]
struct Piece([MaybeUninit<u8>; PIECE]);

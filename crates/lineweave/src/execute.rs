//! Running compiled steps: the innermost loop of the engine.

use crate::attach;
use crate::compile::{Addr, Compiled, Double, Step, BANK, IN, OUT, PEERS};
use crate::kernel::{load_words, store_words, Copier, Fold, MAX_PAYLOAD};
use crate::segment::{far, KnownHeaps};
use crate::sync::AtomicU64;
use crate::wait::{Interrupted, Vigil, Waiter};
use rustix::io::Errno;
use std::mem::MaybeUninit;

/// Where one run's bytes and flags are.
pub struct Frame<'a> {
    /// Start of every base (see `compile`), peers' to be filled in while running.
    pub bases: &'a mut [*mut u8],
    /// Start of rank 0's part of the bank.
    pub bank: *mut u8,
    /// Start of rank 0's counters.
    pub counters: *mut u8,
    /// Says where a place in shared memory is.
    pub heaps: &'a KnownHeaps,
    /// Value of every flag before this run.
    pub base: u64,
    /// Runs of this plan in this bank before this one.
    pub earlier: u64,
    /// Combines elements; unused by plans without folds.
    pub fold: Fold,
    /// How to copy.
    pub copy: Copier,
    /// Room for operands that come from other processes.
    pub room: *mut u8,
    /// The rank whose memory could not be reached, and why.
    pub unreached: Option<(u32, Errno)>,
}

impl Frame<'_> {
    #[inline(always)]
    fn at(&self, addr: Addr) -> *mut u8 {
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
    unsafe fn transfer(&self, src: Addr, dst: Addr, len: usize) {
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

    /// Where bytes are that may be another process's.
    #[inline]
    fn place(&self, addr: Addr) -> *mut u8 {
        self.bases[addr.base as usize].wrapping_add(addr.offset)
    }

    /// [`Frame::transfer`] from or to what may be another process's.
    ///
    /// # Safety
    /// That of [`Frame::transfer`].
    unsafe fn reach(&mut self, plan: &Compiled, src: Addr, dst: Addr, len: usize) -> bool {
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
            self.unreached = Some((plan.peers[(owner.base - PEERS) as usize].0, why));
        }
        done.is_ok()
    }

    /// Combines elements, some of which may be another process's: those are copied here first, or the result there, piece by piece.
    ///
    /// # Safety
    /// The ranges must be valid for `elements` elements, and `dst` be equal to each operand or disjoint.
    unsafe fn combine(&mut self, plan: &Compiled, a: Addr, b: Addr, dst: Addr, elements: usize) -> bool {
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
    /// That of [`Frame::combine`]; `also` is disjoint from all others, and all are of this process.
    #[inline(never)] // its room would be in the frame of every run
    unsafe fn combine_twice(&self, double: &Double, grain: usize) -> bool {
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

    #[inline(always)]
    fn flag(&self, at: usize) -> &AtomicU64 {
        // SAFETY: within the bank by the plan's footprint; flags are 8-byte aligned and only used as atomics.
        unsafe { &*self.bank.add(at).cast::<AtomicU64>() }
    }

    /// The words beside a flag that `len` bytes of payload take.
    #[inline(always)]
    fn payload(&self, at: usize, len: usize) -> &[AtomicU64] {
        debug_assert!(len <= MAX_PAYLOAD);
        // SAFETY: the words follow the flag on its line, as many as its layout leaves to it, which the
        // checker compared with the payload; they are only used as atomics.
        unsafe { std::slice::from_raw_parts(self.bank.add(at + 8).cast::<AtomicU64>(), len.div_ceil(8)) }
    }

    #[inline(always)]
    fn counter(&self, at: usize) -> &AtomicU64 {
        // SAFETY: within the counters' page, which is only used as atomics.
        unsafe { &*self.counters.add(at).cast::<AtomicU64>() }
    }
}

/// Bytes that are combined at a time before they go past the caches.
const PIECE: usize = 4096;

/// Room for them.
#[repr(align(64))]
struct Piece([MaybeUninit<u8>; PIECE]);

/// What a step does when it has to wait.
pub trait Patience {
    /// Why it did not.
    type Stop;

    /// Raises a flag and wakes whoever sleeps on it.
    fn raise(&self, flag: &AtomicU64, value: u64, sleepers: &AtomicU64);

    /// Adds one to a counter and wakes whoever sleeps on it.
    fn add(&self, flag: &AtomicU64, sleepers: &AtomicU64);

    /// Goes on when `flag` has reached `value`; who raises it is `apart` or not (see [`Budget::apart`](crate::wait::Budget::apart)).
    fn wait_for(
        &mut self,
        flag: &AtomicU64,
        value: u64,
        sleepers: &AtomicU64,
        apart: bool,
    ) -> Result<(), Self::Stop>;

    /// The same for who is not known to be.
    #[inline(always)]
    fn wait(&mut self, flag: &AtomicU64, value: u64, sleepers: &AtomicU64) -> Result<(), Self::Stop> {
        self.wait_for(flag, value, sleepers, false)
    }

    /// The reason when an operator of the program failed.
    fn broken(&self) -> Self::Stop;
}

/// Waits, however long it takes.
#[derive(Debug)]
pub struct Blocking<'a, V> {
    /// How.
    pub waiter: &'a mut Waiter,
    /// Who looks after it.
    pub vigil: &'a mut V,
}

impl<V: Vigil> Patience for Blocking<'_, V> {
    type Stop = Interrupted;

    #[inline(always)]
    fn raise(&self, flag: &AtomicU64, value: u64, sleepers: &AtomicU64) {
        self.waiter.raise(flag, value, sleepers);
    }

    #[inline(always)]
    fn add(&self, flag: &AtomicU64, sleepers: &AtomicU64) {
        self.waiter.add(flag, sleepers);
    }

    #[inline(always)]
    fn wait_for(
        &mut self,
        flag: &AtomicU64,
        value: u64,
        sleepers: &AtomicU64,
        apart: bool,
    ) -> Result<(), Interrupted> {
        self.waiter.wait_for(flag, value, sleepers, self.vigil, apart)
    }

    fn broken(&self) -> Interrupted {
        Interrupted
    }
}

/// Never waits: a step that would have to is tried again later.
#[derive(Debug)]
pub struct Polling<'a> {
    /// Whose peers are woken.
    pub waiter: &'a Waiter,
}

impl Patience for Polling<'_> {
    /// Nothing where it would have had to wait.
    type Stop = Option<Interrupted>;

    fn raise(&self, flag: &AtomicU64, value: u64, sleepers: &AtomicU64) {
        self.waiter.raise(flag, value, sleepers);
    }

    fn add(&self, flag: &AtomicU64, sleepers: &AtomicU64) {
        self.waiter.add(flag, sleepers);
    }

    fn wait_for(&mut self, flag: &AtomicU64, value: u64, _: &AtomicU64, _: bool) -> Result<(), Self::Stop> {
        if crate::flag::reached(flag, value) {
            Ok(())
        } else {
            Err(None)
        }
    }

    fn broken(&self) -> Self::Stop {
        Some(Interrupted)
    }
}

/// Runs one rank's steps from number `from` on. A step that waits does nothing else before, so one that stopped, whose
/// number comes with the reason, can be tried again.
///
/// # Safety
/// The bases of `in`, `out` and `acc` must be valid for the lengths that the plan declares, not be accessed by
/// anybody else meanwhile except as the plan says, and `out` and `acc` be writable. The plan must have been
/// proven, every rank of the segment must run it in the same order of calls, and `fold` must fit its grain. A run that
/// stopped goes on with the same frame and where it stopped.
#[inline(always)]
pub unsafe fn execute<P: Patience>(
    plan: &Compiled,
    from: usize,
    frame: &mut Frame<'_>,
    patience: &mut P,
) -> Result<(), (usize, P::Stop)> {
    for (number, step) in plan.steps[from..].iter().enumerate() {
        // SAFETY: passed on.
        if let Err(stop) = unsafe { one(plan, step, frame, patience) } {
            return Err((from + number, stop));
        }
    }
    Ok(())
}

/// Runs one step.
///
/// # Safety
/// As for [`execute`].
#[inline(always)]
unsafe fn one<P: Patience>(
    plan: &Compiled,
    step: &Step,
    frame: &mut Frame<'_>,
    patience: &mut P,
) -> Result<(), P::Stop> {
    match *step {
        Step::Move { src, dst, len } => {
            // SAFETY: proven disjoint and in bounds; the caller vouches for the bases.
            unsafe { frame.transfer(src, dst, len) };
        }
        Step::Fold { a, b, dst, elements } => {
            // SAFETY: as above, and `dst` is disjoint from or equal to each operand.
            let done = unsafe { frame.fold.run(frame.at(a), frame.at(b), frame.at(dst), elements) };
            if !done {
                return Err(patience.broken());
            }
        }
        Step::FoldTwice { number } => {
            // SAFETY: as above; the copy was proven disjoint.
            if !unsafe { frame.combine_twice(&plan.doubles[number as usize], plan.grain) } {
                return Err(patience.broken());
            }
        }
        Step::MoveReach { src, dst, len } => {
            // SAFETY: as above.
            if !unsafe { frame.reach(plan, src, dst, len) } {
                return Err(patience.broken());
            }
        }
        Step::FoldReach { a, b, dst, elements } => {
            // SAFETY: as above.
            if !unsafe { frame.combine(plan, a, b, dst, elements) } {
                return Err(patience.broken());
            }
        }
        Step::Set { at, home, value } => {
            patience.raise(frame.flag(at), frame.base + u64::from(value), home.sleepers());
        }
        Step::SetBytes { at, home, value, src, len } => {
            // SAFETY: proven in bounds; the caller vouches for the base.
            let payload = unsafe { std::slice::from_raw_parts(frame.at(src), len as usize) };
            store_words(frame.payload(at, payload.len()), payload);
            patience.raise(frame.flag(at), frame.base + u64::from(value), home.sleepers());
        }
        Step::SetAddress { at, home, value, base } => {
            let address = frame.bases[base as usize] as u64;
            // Relaxed: ordered by the raise below.
            frame.flag(at + 8).store(address, crate::sync::Ordering::Relaxed);
            patience.raise(frame.flag(at), frame.base + u64::from(value), home.sleepers());
        }
        Step::SetPlace { at, home, value, base } => {
            let place = frame.heaps.place(frame.bases[base as usize]);
            // Relaxed: ordered by the raise below.
            frame.flag(at + 8).store(place, crate::sync::Ordering::Relaxed);
            patience.raise(frame.flag(at), frame.base + u64::from(value), home.sleepers());
        }
        Step::Wait { at, home, value, apart } => {
            patience.wait_for(frame.flag(at), frame.base + u64::from(value), home.sleepers(), apart)?;
        }
        Step::WaitEarlier { at, home, below, lag } => {
            if frame.earlier >= u64::from(lag) {
                patience.wait(frame.flag(at), frame.base - u64::from(below), home.sleepers())?;
            }
        }
        Step::WaitBytes { at, home, value, dst, len, apart } => {
            patience.wait_for(frame.flag(at), frame.base + u64::from(value), home.sleepers(), apart)?;
            // SAFETY: proven in bounds; the caller vouches for the base and that it is writable.
            let payload = unsafe { std::slice::from_raw_parts_mut(frame.at(dst), len as usize) };
            load_words(frame.payload(at, payload.len()), payload);
        }
        Step::WaitAddress { at, home, value, base } => {
            patience.wait(frame.flag(at), frame.base + u64::from(value), home.sleepers())?;
            // Relaxed: ordered by the wait above.
            let address = frame.flag(at + 8).load(crate::sync::Ordering::Relaxed);
            frame.bases[base as usize] = address as *mut u8;
        }
        Step::WaitPlace { at, home, value, base, near } => {
            patience.wait(frame.flag(at), frame.base + u64::from(value), home.sleepers())?;
            // Relaxed: ordered by the wait above.
            let place = frame.flag(at + 8).load(crate::sync::Ordering::Relaxed);
            frame.bases[base as usize] = frame.heaps.at_place(place, near);
        }
        Step::Add { at, home } => patience.add(frame.counter(at), home.sleepers()),
        Step::WaitCount { at, home, each, value } => {
            let target = plan.runs * u64::from(each) + u64::from(value);
            patience.wait(frame.counter(at), target, home.sleepers())?;
        }
    }
    Ok(())
}

//! Running compiled steps: the innermost loop of the engine.

use crate::compile::{Addr, Compiled, Step, ACC, IN, OUT};
use crate::kernel::{load_words, store_words, Copier, Fold, MAX_PAYLOAD};
use crate::segment::KnownHeaps;
use crate::sync::AtomicU64;
use crate::wait::{Interrupted, Vigil, Waiter};

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
}

impl Frame<'_> {
    #[inline(always)]
    fn at(&self, addr: Addr) -> *mut u8 {
        // SAFETY: the compiler of the plan numbered the bases, and the checker proved offsets to lie within
        // the space that the base stands for.
        unsafe { self.bases.get_unchecked(addr.base as usize).add(addr.offset) }
    }

    /// Copies, unless `in` and `out` are one buffer and the plan copies a part of it to itself. Stores past the
    /// caches are for private memory alone: what goes into a box or a peer's buffer is read next.
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
                IN | OUT | ACC => self.copy.copy(from, to, len),
                _ => self.copy.copy_plain(from, to, len),
            }
        }
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

/// What a step does when it has to wait.
pub trait Patience {
    /// Why it did not.
    type Stop;

    /// Raises a flag and wakes whoever sleeps on it.
    fn raise(&self, flag: &AtomicU64, value: u64, sleepers: &AtomicU64);

    /// Adds one to a counter and wakes whoever sleeps on it.
    fn add(&self, flag: &AtomicU64, sleepers: &AtomicU64);

    /// Goes on when `flag` has reached `value`.
    fn wait(&mut self, flag: &AtomicU64, value: u64, sleepers: &AtomicU64) -> Result<(), Self::Stop>;

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
    fn wait(&mut self, flag: &AtomicU64, value: u64, sleepers: &AtomicU64) -> Result<(), Interrupted> {
        self.waiter.wait(flag, value, sleepers, self.vigil)
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

    fn wait(&mut self, flag: &AtomicU64, value: u64, _: &AtomicU64) -> Result<(), Self::Stop> {
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
        Step::Wait { at, home, value } => {
            patience.wait(frame.flag(at), frame.base + u64::from(value), home.sleepers())?;
        }
        Step::WaitEarlier { at, home, below, lag } => {
            if frame.earlier >= u64::from(lag) {
                patience.wait(frame.flag(at), frame.base - u64::from(below), home.sleepers())?;
            }
        }
        Step::WaitBytes { at, home, value, dst, len } => {
            patience.wait(frame.flag(at), frame.base + u64::from(value), home.sleepers())?;
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
        Step::WaitPlace { at, home, value, base } => {
            patience.wait(frame.flag(at), frame.base + u64::from(value), home.sleepers())?;
            // Relaxed: ordered by the wait above.
            let place = frame.flag(at + 8).load(crate::sync::Ordering::Relaxed);
            frame.bases[base as usize] = frame.heaps.at_place(place);
        }
        Step::Add { at, home } => patience.add(frame.counter(at), home.sleepers()),
        Step::WaitCount { at, home, each, value } => {
            let target = plan.runs * u64::from(each) + u64::from(value);
            patience.wait(frame.counter(at), target, home.sleepers())?;
        }
    }
    Ok(())
}

//! Probe `trick`: the exchange of two ranks on one line, written by hand, with one signalling trick each
//! (docs/explanation/measuring.md, "Which flags share a line"). `plain` is the store and the paused poll
//! that the engine uses, but for its two-rank barrier where `load-fence` wins. `lines` is an exchange of 1 KiB through boxes by the engine, and
//! `lines-ahead` the same where a rank takes the lines of its next run for writing while it waits.

use super::cache;
use super::cell::{ProbeContext, ProbeTasks, ProbeTeam, Role, SampleKey, Task};
use super::plans;
use super::timing::{collect_samples, Rules, Samples};
use lineweave::flag;
use lineweave::sync::{
    has_load_fence, has_prefetch_for_write, load_fence, prefetch_for_write, spin_loop, AtomicU64, Ordering,
};
use lineweave::Error;
use lineweave_core::units::LINE;

/// Sets the own flag to a value and waits until the other has it; whether it came.
type Exchange = fn(mine: &AtomicU64, other: &AtomicU64, value: u64) -> bool;

/// Name, whether this CPU has it, and the loop.
type Trick = (&'static str, fn() -> bool, Exchange);

const TRICKS: [Trick; 7] = [
    ("plain", || true, plain),
    ("no-pause", || true, no_pause),
    ("load-fence", has_load_fence, fenced),
    ("xchg", || true, xchg),
    ("prefetchw", has_prefetch_for_write, prefetchw),
    ("cldemote", cache::has_cldemote, cldemote),
    ("umwait", cache::has_umwait, umwait),
];

/// Bytes of a block of `lines`.
const BLOCK: usize = 1024;

/// Polls after which a peer is taken for lost: a minute or so.
pub(super) const PATIENCE: u64 = 1 << 31;

/// Offset of the flags of the tricks: behind the lines of the probes `line` and `states`.
const START: usize = 128 << 10;

pub fn offer(crew: &ProbeTeam, offer: &mut ProbeTasks) {
    if crew.role != Role::Pair {
        return;
    }
    for (index, (name, has, exchange)) in TRICKS.into_iter().enumerate() {
        if !has() {
            offer.missing(format!("trick[{name}]"), "this CPU does not have the instruction");
            continue;
        }
        let key = SampleKey::new("trick").with("name", name).with("level", crew.level);
        offer.tasks.push(Task::new(key, 2.0, move |hand, rules| samples(hand, rules, index, exchange)));
    }
    if !has_prefetch_for_write() {
        offer.missing("trick[lines-ahead]".to_owned(), "this CPU does not have the instruction");
        return;
    }
    for (name, ahead) in [("lines", false), ("lines-ahead", true)] {
        let key = SampleKey::new("trick").with("name", name).with("level", crew.level);
        offer.tasks.push(Task::new(key, 2.0, move |hand, rules| lines(hand, rules, ahead)));
    }
}

fn lines(hand: &mut ProbeContext<'_>, rules: &Rules, ahead: bool) -> Result<Samples, Error> {
    let plan = plans::exchange_of_blocks(BLOCK)?;
    let before = hand.comm.set_ahead(ahead);
    let samples = plans::time(hand, rules, &plan);
    hand.comm.set_ahead(before);
    samples
}

fn samples(
    hand: &mut ProbeContext<'_>,
    rules: &Rules,
    index: usize,
    exchange: Exchange,
) -> Result<Samples, Error> {
    // Several lines away from each other, out of reach of the adjacent-line prefetcher.
    let line = hand.shared[0].wrapping_add(START + index * 4 * LINE);
    // SAFETY: within the shared buffer of rank 0, which starts as zeros and outlives the team; nothing else
    // uses this line, and these words are only used as atomics.
    let words: [&AtomicU64; 2] = unsafe { [&*line.cast(), &*line.add(LINE / 2).cast()] };
    let rank = hand.comm.rank();
    let (mine, other) = (words[rank], words[1 - rank]);
    let mut value = 0;
    collect_samples(hand.comm, rules, &mut |_, count| {
        let came = (0..count).all(|_| {
            value += 1;
            exchange(mine, other, value)
        });
        came.then_some(()).ok_or_else(lost)
    })
}

/// The error of a rank that polled in vain.
pub(super) fn lost() -> Error {
    Error::Failed("the other rank of an exchange did not come".to_owned())
}

#[inline(always)]
fn poll(other: &AtomicU64, value: u64, between: impl Fn()) -> bool {
    for _ in 0..PATIENCE {
        if flag::reached(other, value) {
            return true;
        }
        between();
    }
    false
}

fn plain(mine: &AtomicU64, other: &AtomicU64, value: u64) -> bool {
    flag::raise(mine, value);
    poll(other, value, spin_loop)
}

fn no_pause(mine: &AtomicU64, other: &AtomicU64, value: u64) -> bool {
    flag::raise(mine, value);
    poll(other, value, || ())
}

fn fenced(mine: &AtomicU64, other: &AtomicU64, value: u64) -> bool {
    flag::raise(mine, value);
    poll(other, value, load_fence)
}

fn xchg(mine: &AtomicU64, other: &AtomicU64, value: u64) -> bool {
    // SYNC: flag
    mine.swap(value, Ordering::AcqRel);
    poll(other, value, spin_loop)
}

fn prefetchw(mine: &AtomicU64, other: &AtomicU64, value: u64) -> bool {
    flag::raise(mine, value);
    let came = poll(other, value, spin_loop);
    // The next thing this rank does with the line is a store.
    prefetch_for_write(std::ptr::from_ref(mine).cast());
    came
}

fn cldemote(mine: &AtomicU64, other: &AtomicU64, value: u64) -> bool {
    flag::raise(mine, value);
    cache::cldemote(std::ptr::from_ref(mine).cast());
    poll(other, value, spin_loop)
}

fn umwait(mine: &AtomicU64, other: &AtomicU64, value: u64) -> bool {
    flag::raise(mine, value);
    poll(other, value, || {
        cache::umonitor(std::ptr::from_ref(other).cast());
        if !flag::reached(other, value) {
            cache::umwait();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trick_of_this_cpu_exchanges() {
        for (name, has, exchange) in TRICKS {
            if !has() {
                continue;
            }
            let words = [AtomicU64::new(0), AtomicU64::new(0)];
            let came = std::thread::scope(|s| {
                let other = s.spawn(|| (1..100).all(|v| exchange(&words[1], &words[0], v)));
                (1..100).all(|v| exchange(&words[0], &words[1], v)) && other.join().expect("no panic")
            });
            assert!(came, "{name}");
        }
    }
}

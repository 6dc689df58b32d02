//! The primitives under every plan, checked over all interleavings: flags, carried payloads, sleepers, banks
//! and the reuse of slots. Plans themselves are proven by `lineweave_core::verify`.
#![cfg(loom)]

use lineweave::flag::{
    add, announce_sleeper, has_sleepers, peek, raise, reached, retire_sleeper, Goal, WakeFence,
};
use lineweave::kernel::{load_words, store_words};
use lineweave::message_ring::{RecvEnd, SendEnd};
use lineweave::ring::{leave, left, Ring};
use lineweave::sync::{spin_loop, AtomicU64};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;

/// A slot whose misuse loom reports as a data race.
struct Slot(UnsafeCell<u64>);

// SAFETY: whether accesses are ordered is what loom checks.
unsafe impl Sync for Slot {}
// SAFETY: as above.
unsafe impl Send for Slot {}

impl Slot {
    fn new() -> Slot {
        Slot(UnsafeCell::new(0))
    }

    fn put(&self, value: u64) {
        // SAFETY: loom reports an access that is not ordered.
        self.0.with_mut(|p| unsafe { *p = value });
    }

    fn get(&self) -> u64 {
        // SAFETY: loom reports an access that is not ordered.
        self.0.with(|p| unsafe { *p })
    }
}

fn await_flag(flag: &AtomicU64, value: u64) {
    while !reached(flag, value) {
        spin_loop();
    }
}

/// A line: a flag and seven words of payload.
fn line() -> [AtomicU64; 8] {
    std::array::from_fn(|_| AtomicU64::new(0))
}

fn carry(line: &[AtomicU64; 8], value: u64, payload: &[u8]) {
    store_words(&line[1..], payload);
    raise(&line[0], value);
}

fn take<const N: usize>(line: &[AtomicU64; 8], value: u64) -> [u8; N] {
    await_flag(&line[0], value);
    let mut bytes = [0; N];
    load_words(&line[1..], &mut bytes);
    bytes
}

/// Has another thread do its part on what is shared beside this one's.
fn beside<T: Send + Sync + 'static>(
    shared: T,
    other: impl FnOnce(&T) + Send + 'static,
    own: impl FnOnce(&T),
) {
    let shared = Arc::new(shared);
    let thread = {
        let shared = Arc::clone(&shared);
        thread::spawn(move || other(&shared))
    };
    own(&shared);
    thread.join().unwrap();
}

#[test]
fn a_flag_publishes_what_was_written_before_it() {
    loom::model(|| {
        let writer = |(flag, slot): &(AtomicU64, Slot)| {
            slot.put(42);
            raise(flag, 1);
        };
        beside((AtomicU64::new(0), Slot::new()), writer, |(flag, slot)| {
            await_flag(flag, 1);
            assert_eq!(slot.get(), 42);
        });
    });
}

#[test]
fn a_payload_arrives_with_its_flag() {
    // Two words, the second in part.
    const PAYLOAD: &[u8; 11] = b"eleven byte";
    loom::model(|| {
        beside(line(), |line| carry(line, 1, PAYLOAD), |line| assert_eq!(take::<11>(line, 1), *PAYLOAD));
    });
}

#[test]
fn nobody_sleeps_through_a_set() {
    loom::model(|| {
        let shared = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        let writer = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                raise(&shared.0, 1);
                has_sleepers(&shared.1, WakeFence::Full)
            })
        };
        announce_sleeper(&shared.1, WakeFence::Full);
        let would_sleep = peek(&shared.0) < 1;
        let wakes = writer.join().unwrap();
        assert!(!would_sleep || wakes, "the sleeper saw a low flag and the writer saw no sleeper");
        retire_sleeper(&shared.1);
    });
}

#[test]
fn a_bank_is_free_when_it_is_entered_again() {
    // Rank 0 broadcasts three times through a ring of two banks; nothing acknowledges but `left`.
    type Banks = ([AtomicU64; 2], [Slot; 2], [AtomicU64; 2]);
    fn enter(ring: &mut Ring, other: &AtomicU64) -> usize {
        if let Some(need) = ring.needs() {
            while left(other) < need {
                spin_loop();
            }
            ring.learn(left(other));
        }
        ring.enter() as usize
    }
    loom::model(|| {
        let words = || [AtomicU64::new(0), AtomicU64::new(0)];
        let root = |(flags, slots, leaves): &Banks| {
            let mut ring = Ring::new(2);
            for run in 1..=3 {
                let bank = enter(&mut ring, &leaves[1]);
                slots[bank].put(run * 10);
                raise(&flags[bank], run);
                leave(&leaves[0], ring.uses());
            }
        };
        beside((words(), [Slot::new(), Slot::new()], words()), root, |(flags, slots, leaves)| {
            let mut ring = Ring::new(2);
            for run in 1..=3 {
                let bank = enter(&mut ring, &leaves[0]);
                await_flag(&flags[bank], run);
                assert_eq!(slots[bank].get(), run * 10);
                leave(&leaves[1], ring.uses());
            }
        });
    });
}

#[test]
fn a_deferred_acknowledgement_protects_a_slot() {
    // One slot, three runs; the writer waits for the reader's `done` of the run before.
    loom::model(|| {
        let writer = |(flag, done, slot): &(AtomicU64, AtomicU64, Slot)| {
            for run in 1..=3 {
                await_flag(done, run - 1);
                slot.put(run);
                raise(flag, run);
            }
        };
        beside((AtomicU64::new(0), AtomicU64::new(0), Slot::new()), writer, |(flag, done, slot)| {
            for run in 1..=3 {
                await_flag(flag, run);
                assert_eq!(slot.get(), run);
                raise(done, run);
            }
        });
    });
}

#[test]
fn an_exchange_reuses_its_lines_every_second_run() {
    // Two ranks swap payloads three times over two sets of lines: entering run r+2 follows the peer's entry
    // into run r+1, and so its reading of run r. No other acknowledgement.
    fn rank(lines: &[[[AtomicU64; 8]; 2]; 2], me: usize) {
        for run in 1..=3u64 {
            let bank = &lines[run as usize % 2];
            let of = |rank: usize| (run * 100 + rank as u64).to_ne_bytes();
            carry(&bank[me], run, &of(me));
            assert_eq!(take::<8>(&bank[1 - me], run), of(1 - me));
        }
    }
    loom::model(|| {
        beside([[line(), line()], [line(), line()]], |lines| rank(lines, 1), |lines| rank(lines, 0))
    });
}

#[test]
fn a_cell_is_filled_again_only_after_it_was_taken() {
    // Three messages through a ring of two cells; the last gives the sender's own memory, which it changes afterwards.
    type Ends = ([AtomicU64; 2], [Slot; 2], Slot);
    loom::model(|| {
        let shared = ([AtomicU64::new(0), AtomicU64::new(0)], [Slot::new(), Slot::new()], Slot::new());
        let sender = |([sent, taken], cells, private): &Ends| {
            let mut out = SendEnd::new(2);
            for n in 1..=3 {
                await_flag(taken, out.needs());
                if n == 3 {
                    private.put(33);
                }
                cells[out.cell()].put(n * 10);
                raise(sent, out.advance());
            }
            await_flag(taken, 3);
            private.put(0);
        };
        beside(shared, sender, |([sent, taken], cells, private)| {
            let mut inbox = RecvEnd::new(2);
            for n in 1..=3 {
                await_flag(sent, inbox.needs());
                assert_eq!(cells[inbox.cell()].get(), n * 10);
                if n == 3 {
                    assert_eq!(private.get(), 33);
                }
                raise(taken, inbox.advance());
            }
        });
    });
}

#[test]
fn a_counter_releases_when_everybody_has_added() {
    // Three runs over the two words of a counter, each with a mark of its own. Whoever is released in a run sees what all wrote
    // before it, and a late look is not disturbed by those who are a run ahead.
    const MARKS: [u64; 3] = [5, 9, 3];
    fn rank((words, slots): &([AtomicU64; 8], [Slot; 2]), me: usize) {
        let mut counted = [0; 2];
        for (run, mark) in MARKS.into_iter().enumerate() {
            if run == 0 {
                slots[me].put(7);
            }
            add(&words[run % 2], mark);
            counted[run % 2] += mark;
            while !Goal::exactly(2 * counted[run % 2]).is_reached(&words[run % 2]) {
                spin_loop();
            }
            if run == 0 {
                assert_eq!(slots[1 - me].get(), 7);
            }
        }
    }
    loom::model(|| beside((line(), [Slot::new(), Slot::new()]), |s| rank(s, 1), |s| rank(s, 0)));
}

#[test]
fn a_counter_releases_nobody_whose_calls_differ() {
    // After calls that differed, three ranks meet at the counter of one plan.
    let mark = |rank: usize| [0x9e37_79b9_7f4a_7c15u64, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb][rank];
    loom::model(move || {
        let word = Arc::new(AtomicU64::new(0));
        let adders: Vec<_> = (1..3)
            .map(|rank| {
                let word = Arc::clone(&word);
                thread::spawn(move || {
                    add(&word, mark(rank));
                    assert!(!Goal::exactly(mark(rank).wrapping_mul(3)).is_reached(&word));
                })
            })
            .collect();
        add(&word, mark(0));
        assert!(!Goal::exactly(mark(0).wrapping_mul(3)).is_reached(&word));
        adders.into_iter().for_each(|adder| adder.join().unwrap());
        assert!((0..3).all(|rank| !Goal::exactly(mark(rank).wrapping_mul(3)).is_reached(&word)));
    });
}

#[test]
fn an_announcement_is_taken_by_whom_it_is_for_and_whole() {
    use lineweave::segment::announce::{look, prepare, Found};
    loom::model(|| {
        let announcer = |(line, told): &([AtomicU64; 3], AtomicU64)| {
            let line = line.each_ref();
            // For another group, whose members have all taken it; then for this one, which tells by a flag.
            let open = prepare(line, 1, 10);
            raise(line[0], open);
            raise(line[0], open + 1);
            let open = prepare(line, 2, 20);
            raise(line[0], open);
            await_flag(told, 1);
            raise(line[0], open + 1);
        };
        beside(([0; 3].map(AtomicU64::new), AtomicU64::new(0)), announcer, |(line, told)| {
            let line = line.each_ref();
            loop {
                match look(line, 2, 0) {
                    Found::Taken { count, number } => {
                        assert_eq!((count, number), (3, 20));
                        break;
                    }
                    Found::Later(count) => await_flag(line[0], count),
                }
            }
            raise(told, 1);
            assert!(matches!(look(line, 2, 3), Found::Later(_)));
        });
    });
}

#[test]
fn an_engine_is_held_by_one_at_a_time_and_comes_back() {
    use lineweave::communicator::ownership::EngineOwnership;
    loom::model(|| {
        fn carry_on((ownership, calls): &(EngineOwnership, Slot)) -> bool {
            let held = ownership.try_hold();
            if held {
                let left = calls.get() - 1;
                calls.put(left);
                ownership.release(left > 0);
            }
            held
        }
        let shared = (EngineOwnership::default(), Slot::new());
        // Two calls to carry on, by a helper and by the owner.
        shared.1.put(2);
        shared.0.lend();
        let helper = |shared: &(EngineOwnership, Slot)| {
            carry_on(shared);
        };
        beside(shared, helper, |shared| {
            while !shared.0.is_idle() {
                if !carry_on(shared) {
                    spin_loop();
                }
            }
            // Idle: the owner's alone.
            assert_eq!(shared.1.get(), 0);
            shared.1.put(7);
            assert!(!shared.0.try_hold());
        });
    });
}

/// A stretch that is kept goes to one of those who look for it, with all that was stored before it was entered.
#[test]
fn what_is_kept_has_one_taker() {
    use lineweave::segment::free_extents::{FreeExtent, FreeListSlot};
    loom::model(|| {
        let words: Arc<[AtomicU64; 4]> = Arc::new(std::array::from_fn(|_| AtomicU64::new(0)));
        let left = Arc::new(Slot::new());
        fn place(words: &[AtomicU64; 4]) -> FreeListSlot<'_> {
            FreeListSlot(std::array::from_fn(|i| &words[i]))
        }
        let takers: Vec<_> = (0..2)
            .map(|mark| {
                let (words, left) = (Arc::clone(&words), Arc::clone(&left));
                thread::spawn(move || {
                    let found = place(&words).take(|idle| idle.mark >= mark);
                    found.is_some_and(|idle| {
                        assert_eq!(idle, FreeExtent { at: 4096, mark: 1, bytes: 2, span: 3 });
                        let seen = left.get();
                        left.put(seen + 1);
                        true
                    })
                })
            })
            .collect();
        left.put(1);
        assert!(place(&words).put(FreeExtent { at: 4096, mark: 1, bytes: 2, span: 3 }));
        let taken = takers.into_iter().map(|taker| taker.join().unwrap()).filter(|&taken| taken).count();
        assert!(taken <= 1);
        let rest = place(&words).take(|_| true);
        assert_eq!(rest.is_some(), taken == 0, "it is there, or somebody has it");
    });
}

/// Two ranks agree again and again whether both have a plan, which a thread beside gives them at any time, by the words of
/// `engine/agreement.rs`: both change over at one call.
#[test]
fn ranks_that_agree_change_over_at_one_call() {
    /// The two words of each rank, and whether it has the plan.
    type Shared = ([[AtomicU64; 2]; 2], [AtomicU64; 2]);
    fn changes((said, has): &Shared, me: usize) -> Option<u64> {
        (1..=3).find(|turn| {
            let missing = u64::from(!reached(&has[me], 1));
            let word = |rank: usize| &said[rank][(turn % 2) as usize];
            raise(word(me), 4 * turn + missing);
            await_flag(word(1 - me), 4 * turn);
            (missing | (peek(word(1 - me)) & 3)) == 0
        })
    }
    loom::model(|| {
        let words = || std::array::from_fn(|_| AtomicU64::new(0));
        let shared: Arc<Shared> = Arc::new(([words(), words()], words()));
        let [helped, others] = [Arc::clone(&shared), Arc::clone(&shared)];
        let helper = thread::spawn(move || helped.1.iter().for_each(|has| raise(has, 1)));
        let other = thread::spawn(move || changes(&others, 1));
        assert_eq!(changes(&shared, 0), other.join().unwrap(), "both at one call, or not within three");
        helper.join().unwrap();
    });
}

//! Probe `states`: one line there and back, halved, by the states of both buffers (Ramos & Hoefler 2013, chapter 2).
//!
//! 1. Each rank has lines to send from and lines to receive in. Before a sample all lines of a kind are brought into one state, alike at
//!    both ranks: `modified` by its owner, `exclusive` by eviction and a read, `shared` by the other's read as well, `invalid` by eviction.
//! 2. Rank 0 reads a line to send, and writes what is there into the other's line to receive. Rank 1 polls that, learns from it which line it
//!    sends next, and answers likewise. So no access begins before the one before it has ended, and no prefetcher guesses the next line.
//! 3. A sample is rank 0's time of all round trips but the first, which brings both together.
//!
//! A receiver polls its line, which is therefore never invalid, and threads of one core share no line.

use super::cache;
use super::cell::{ProbeContext, ProbeTasks, ProbeTeam, Role, SampleKey, Task};
use super::clock::Clock;
use super::line::{evict, word, State, RANGE};
use super::timing::{collect_timed, Rules, Samples};
use super::trick::{lost, PATIENCE};
use lineweave::sync::Ordering;
use lineweave::Error;
use lineweave_core::topology::Level;
use lineweave_core::units::LINE;

/// Round trips of a sample: the lines of four buffers fit into the sets of any first-level cache.
const TRIPS: usize = 32;
/// Offset of the lines to receive in.
const RECEIVE: usize = RANGE * LINE;
/// In the low bits of what is sent, which is otherwise an offset and may be 0.
const SENT: u64 = 1;

pub fn offer(crew: &ProbeTeam, offer: &mut ProbeTasks) {
    if crew.role != Role::Pair {
        return;
    }
    if !cache::FLUSHES {
        offer.missing("states[exclusive, invalid]", "lines can be evicted from every cache on x86-64 only");
    }
    for send in State::ALL {
        for recv in State::ALL.into_iter().filter(|&recv| recv != State::Invalid) {
            let [flushes, shares] =
                [State::is_evicted, |s: State| s == State::Shared].map(|is| is(send) || is(recv));
            if flushes && !cache::FLUSHES || shares && crew.level == Level::Core {
                continue;
            }
            let key = SampleKey::new("states").with("send", send.name()).with("recv", recv.name());
            offer.tasks.push(Task::new(key.with("level", crew.level), 0.7, move |hand, rules| {
                samples(hand, rules, send, recv)
            }));
        }
    }
}

fn samples(hand: &mut ProbeContext<'_>, rules: &Rules, send: State, recv: State) -> Result<Samples, Error> {
    let rank = hand.comm.rank();
    let [mine, other] = [hand.shared[rank], hand.shared[1 - rank]];
    let (clock, random) = (Clock::get(), &mut hand.random);
    collect_timed(hand.comm, rules, &mut |comm| {
        let mut offsets: Vec<usize> = (0..RANGE).map(|i| i * LINE).collect();
        random.shuffle(&mut offsets);
        let at = &offsets[..=TRIPS];
        for (i, &offset) in at.iter().enumerate() {
            // Relaxed: barriers follow. Rank 0 names the line that it sends, rank 1 the next one.
            word(mine, offset).store(at[(i + rank) % at.len()] as u64 | SENT, Ordering::Relaxed);
            // Relaxed: barriers follow.
            word(mine, RECEIVE + offset).store(0, Ordering::Relaxed);
        }
        let kinds = [(0, send), (RECEIVE, recv)].map(|(from, state)| {
            let lines: Vec<usize> = at.iter().map(|offset| from + offset).collect();
            (lines, state)
        });
        // Relaxed: their values are not used.
        let read = |base: *mut u8, lines: &[usize]| {
            std::hint::black_box(lines.iter().map(|&at| word(base, at).load(Ordering::Relaxed)).max());
        };
        for (lines, state) in &kinds {
            if state.is_evicted() {
                evict(mine, lines);
            }
            if *state == State::Exclusive {
                read(mine, lines);
            }
        }
        comm.barrier()?;
        for (lines, _) in kinds.iter().filter(|(_, state)| *state == State::Shared) {
            read(other, lines);
        }
        comm.barrier()?;
        let send = |next: usize| {
            // Relaxed: written before the barriers.
            let sent = word(mine, next).load(Ordering::Relaxed);
            // Relaxed: the word is all that is passed on.
            word(other, RECEIVE + next).store(sent, Ordering::Relaxed);
        };
        let (mut start, mut next) = (clock.now(), at[0]);
        for (trip, &offset) in at.iter().enumerate() {
            if rank == 0 {
                send(next);
            }
            next = receive(mine, offset)?;
            if rank == 1 {
                send(next);
            }
            if trip == 0 {
                start = clock.now();
            }
        }
        Ok(if rank == 0 { clock.since(start) / (2 * TRIPS) as f64 } else { 0.0 })
    })
}

/// Polls a line, and returns the offset that came.
fn receive(mine: *mut u8, offset: usize) -> Result<usize, Error> {
    for _ in 0..PATIENCE {
        // Relaxed: the word is all that is passed on.
        let came = word(mine, RECEIVE + offset).load(Ordering::Relaxed);
        if came != 0 {
            return Ok((came & !SENT) as usize);
        }
    }
    Err(lost())
}

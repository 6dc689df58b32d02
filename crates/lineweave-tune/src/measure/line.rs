//! Probes `line` and `contention`: one line at a time, by its state and where it is.
//!
//! Rank 0's shared buffer is the home, or that of a third rank in another package (the factor `home` is then how far away that rank is).
//! Some lines of it, at random offsets, form a ring in random order: each holds where the next one is, so that an access cannot begin
//! before the one before it has ended, and no prefetcher guesses it. A read follows the ring by loads (R_L, R_R, R_I of Ramos & Hoefler 2013); taking
//! ownership follows it by fetch-and-add.

use super::cache;
use super::cell::{ProbeContext, ProbeTasks, ProbeTeam, Role, SampleKey, Task};
use super::clock::Clock;
use super::timing::{collect_timed, Rules, Samples};
use lineweave::sync::{AtomicU64, Ordering};
use lineweave::Error;
use lineweave_core::units::LINE;

/// Lines of a ring: several in each of a few pages, few enough for any first-level cache.
const LINES: usize = 96;
/// Lines among which they are drawn: 16 pages, which the first-level TLB holds too.
pub(super) const RANGE: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Access {
    Read,
    Own,
}

/// State of a line, at the rank that has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Modified,
    Exclusive,
    Shared,
    Invalid,
}

impl State {
    pub(super) const ALL: [State; 4] = [State::Modified, State::Exclusive, State::Shared, State::Invalid];

    /// Returns whether the line is evicted from all caches to get there.
    pub(super) fn is_evicted(self) -> bool {
        matches!(self, State::Exclusive | State::Invalid)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            State::Modified => "modified",
            State::Exclusive => "exclusive",
            State::Shared => "shared",
            State::Invalid => "invalid",
        }
    }
}

pub fn offer(crew: &ProbeTeam, offer: &mut ProbeTasks) {
    for access in [Access::Read, Access::Own] {
        let name = if access == Access::Read { "read" } else { "own" };
        for state in State::ALL {
            let what = || format!("line[{name} {}]", state.name());
            if state.is_evicted() && !cache::FLUSHES {
                offer.missing(what(), "lines can be evicted from every cache on x86-64 only");
                continue;
            }
            // A line that only its reader shares with a third: both must be elsewhere.
            let third = access == Access::Read && state == State::Shared;
            let level = match crew.role {
                Role::Solo if third || state == State::Invalid => continue,
                Role::Solo => "local",
                Role::Pair if third => {
                    continue;
                }
                Role::Crowd if !third => continue,
                Role::Trio if (access, state) != (Access::Read, State::Modified) => continue,
                Role::Pair | Role::Trio | Role::Crowd => crew.level.name(),
                Role::SameCpu => continue,
            };
            let (home, whose) = match crew.role == Role::Trio {
                true => (crew.cpus[0].common(&crew.cpus[2]).name(), 2),
                false => ("owner", 0),
            };
            let key =
                SampleKey::new("line").with("access", name).with("state", state.name()).with("level", level);
            // A shared line is taken back by its owner, as a flag is by the rank that sets it again.
            let taken_back = access == Access::Own && state == State::Shared;
            let reader = usize::from(crew.role != Role::Solo && !taken_back);
            offer.tasks.push(Task::new(key.with("home", home), 2.0, move |hand, rules| {
                samples(hand, rules, access, state, whose, &[reader])
            }));
        }
    }
    if crew.role == Role::Crowd {
        let most = crew.cpus.len() - 1;
        let mut readers = 1;
        while readers <= most {
            let key = SampleKey::new("contention").with("readers", readers).with("level", crew.level);
            let who: Vec<usize> = (1..=readers).collect();
            offer.tasks.push(Task::new(key, 2.0, move |hand, rules| {
                samples(hand, rules, Access::Read, State::Modified, 0, &who)
            }));
            readers = if readers < most { (2 * readers).min(most) } else { most + 1 };
        }
    }
}

/// Lists what machines of fewer CPUs cannot tell.
pub fn beyond(cpus: usize, offer: &mut ProbeTasks) {
    if cpus < 3 {
        let because = format!("several ranks reading one line at once need 3 CPUs, and {cpus} can be used");
        offer.missing("T_C", because);
        let because = format!("a line shared by two others needs 3 CPUs, and {cpus} can be used");
        offer.missing("line[read shared]", because);
    }
}

fn samples(
    hand: &mut ProbeContext<'_>,
    rules: &Rules,
    access: Access,
    state: State,
    whose: usize,
    readers: &[usize],
) -> Result<Samples, Error> {
    let (base, rank, local) = (hand.shared[whose], hand.comm.rank(), hand.comm.ranks() == 1);
    let (clock, random) = (Clock::get(), &mut hand.random);
    let timed = readers.contains(&rank);
    // Who brings lines into the shared state by reading them.
    let sharer = match access {
        Access::Read => 2,
        Access::Own => 1,
    };
    collect_timed(hand.comm, rules, &mut |comm| {
        let mut offsets: Vec<usize> = (0..RANGE).map(|i| i * LINE).collect();
        random.shuffle(&mut offsets);
        let ring = &offsets[..LINES];
        if rank == 0 {
            write_ring(base, ring);
            if state.is_evicted() {
                evict(base, ring);
            }
            if state == State::Exclusive {
                follow(base, ring[0], Access::Read);
            }
        }
        comm.barrier()?;
        if state == State::Shared && rank == sharer {
            follow(base, ring[0], Access::Read);
        }
        comm.barrier()?;
        if local {
            // In the own cache in every sense, its order unknown to the prefetcher's history.
            follow(base, ring[0], access);
        }
        if !timed {
            return Ok(0.0);
        }
        let start = clock.now();
        follow(base, ring[0], access);
        Ok(clock.since(start) / LINES as f64)
    })
}

pub(super) fn word<'a>(base: *mut u8, offset: usize) -> &'a AtomicU64 {
    // SAFETY: within the first twice `RANGE` lines of a shared buffer, which is longer and outlives the team; lines
    // of a ring are only used as atomics.
    unsafe { &*base.add(offset).cast::<AtomicU64>() }
}

/// Each line learns where the next one is. The low bits are left to fetch-and-add.
fn write_ring(base: *mut u8, ring: &[usize]) {
    for (i, &at) in ring.iter().enumerate() {
        // Relaxed: the barrier that follows orders it.
        word(base, at).store(ring[(i + 1) % ring.len()] as u64, Ordering::Relaxed);
    }
}

pub(super) fn evict(base: *mut u8, ring: &[usize]) {
    cache::settle();
    for &at in ring {
        // SAFETY: within the buffer, as for `word`.
        unsafe { cache::flush(base.add(at)) };
    }
    cache::settle();
}

/// Goes round the ring once.
#[inline(never)]
fn follow(base: *mut u8, first: usize, access: Access) -> usize {
    let mut at = first;
    for _ in 0..LINES {
        let next = match access {
            // Relaxed: what is read was written before the barrier.
            Access::Read => word(base, at).load(Ordering::Relaxed),
            // Relaxed: as above; an addition that is not zero, or it would be compiled to a load.
            Access::Own => word(base, at).fetch_add(1, Ordering::Relaxed),
        };
        at = next as usize & !(LINE - 1);
    }
    std::hint::black_box(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave::internal::Scratch;

    #[test]
    fn a_ring_leads_through_every_line_and_back() {
        let mut memory = Scratch::default();
        memory.grow(RANGE * LINE).expect("memory");
        let ring: Vec<usize> = (0..LINES).map(|i| (i * 7 % RANGE) * LINE).collect();
        write_ring(memory.start(), &ring);
        for access in [Access::Read, Access::Own, Access::Own] {
            assert_eq!(follow(memory.start(), ring[0], access), ring[0]);
        }
    }
}

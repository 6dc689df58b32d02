//! Probe `fold`: combining m bytes, of private memory or straight out of a peer's box; and out of peers' buffers while tau ranks do so,
//! each out of the next one's, which its owner has just written: what plans live on that reach private buffers.

use super::cell::{ProbeContext, ProbeTasks, ProbeTeam, Role, SampleKey, Task};
use super::clock::Clock;
use super::timing::{collect_timed, Rules, Samples};
use lineweave::kernel::{copy, fold_fn, ElementType, FoldFn, Operator};
use lineweave::Error;

const SIZES: [usize; 6] = [64, 1 << 10, 16 << 10, 128 << 10, 1 << 20, 8 << 20];
/// One type for each size of an element: what a model tells apart.
const TYPES: [ElementType; 4] = [ElementType::F32, ElementType::F64, ElementType::I16, ElementType::U8];
/// Bytes folded in a sample, at least.
const SAMPLE: usize = 16 << 10;

/// Source of the bytes that are combined with the own ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    Private,
    /// Rank 0's, by the last rank.
    Slot,
    /// The next rank's, by so many ranks at once.
    Peers(usize),
}

pub fn offer(crew: &ProbeTeam, largest: usize, offer: &mut ProbeTasks) {
    concurrent(crew, largest, offer);
    let source = match crew.role {
        Role::Solo => Source::Private,
        Role::Pair => Source::Slot,
        Role::SameCpu | Role::Trio | Role::Crowd => return,
    };
    for element in TYPES {
        let Ok(fold) = fold_fn(Operator::Sum, element) else { continue };
        for bytes in SIZES.into_iter().filter(|&b| b <= largest) {
            let mut key = SampleKey::new("fold")
                .with("type", element)
                .with("op", Operator::Sum)
                .with("bytes", bytes)
                .with("source", if source == Source::Slot { "slot" } else { "private" });
            if crew.role == Role::Pair {
                key = key.with("level", crew.level);
            }
            offer.tasks.push(Task::new(key, 0.5, move |hand, rules| {
                samples(hand, rules, (fold, element), bytes, source)
            }));
        }
    }
}

/// Sums of f64 out of peers' buffers, two, four, eight ... at once, and all.
fn concurrent(crew: &ProbeTeam, largest: usize, offer: &mut ProbeTasks) {
    let ranks = crew.cpus.len();
    let mut taus: Vec<usize> = match crew.role {
        Role::Pair => vec![2],
        Role::Crowd => (2..).map(|i| 1 << i).take_while(|&tau| tau < ranks).chain([ranks]).collect(),
        Role::Solo | Role::SameCpu | Role::Trio => return,
    };
    taus.dedup();
    let element = ElementType::F64;
    let Ok(fold) = fold_fn(Operator::Sum, element) else { return };
    for bytes in SIZES.into_iter().filter(|&b| b <= largest) {
        for &tau in &taus {
            let key =
                SampleKey::new("fold").with("type", element).with("op", Operator::Sum).with("bytes", bytes);
            let key = key.with("source", "peers").with("tau", tau).with("level", crew.level);
            offer.tasks.push(Task::new(key, 0.5, move |hand, rules| {
                samples(hand, rules, (fold, element), bytes, Source::Peers(tau))
            }));
        }
    }
}

fn samples(
    hand: &mut ProbeContext<'_>,
    rules: &Rules,
    (fold, element): (FoldFn, ElementType),
    bytes: usize,
    source: Source,
) -> Result<Samples, Error> {
    let (rank, ranks) = (hand.comm.rank(), hand.comm.ranks());
    let (input, output, own) = (hand.input, hand.output, hand.shared[rank]);
    let next = (rank + 1) % ranks;
    // Who combines, out of what, and who writes it before.
    let (acts, from, writes) = match source {
        Source::Private => (true, input, false),
        Source::Slot => (rank + 1 == ranks, hand.shared[0], rank == 0),
        Source::Peers(tau) => (rank < tau, hand.shared[next], (rank + ranks - 1) % ranks < tau),
    };
    let count = (SAMPLE / bytes).max(1);
    let clock = Clock::get();
    let mut order: Vec<usize> = (0..count).collect();
    let random = &mut hand.random;
    collect_timed(hand.comm, rules, &mut |comm| {
        random.shuffle(&mut order);
        if writes {
            // SAFETY: both buffers hold `count * bytes` bytes at least; nobody reads them before the barrier.
            unsafe { copy(input, own, count * bytes) };
        }
        comm.barrier()?;
        let mut nanos = 0.0;
        if acts {
            let start = clock.now();
            for &i in &order {
                // SAFETY: as above; places are aligned to lines, and `output` is the left operand itself.
                unsafe {
                    let acc = output.add(i * bytes);
                    fold(acc, from.add(i * bytes), acc, bytes / element.size());
                }
                if source != Source::Private {
                    super::cache::serialize();
                }
            }
            nanos = clock.since(start) / count as f64;
        }
        comm.barrier()?;
        Ok(nanos)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::topology::{Cpu, Level};

    #[test]
    fn peers_buffers_are_combined_by_as_many_as_there_are() {
        let cpu = |os| Cpu { os, core: os, l3: 0, numa: 0, package: 0, kind: 0 };
        let offered = |role, cpus: usize| {
            let mut all = ProbeTasks::default();
            offer(
                &ProbeTeam { role, cpus: (0..cpus).map(cpu).collect(), level: Level::L3 },
                1 << 10,
                &mut all,
            );
            let keys = all.tasks.iter().map(|t| t.keys[0].to_string());
            keys.filter(|key| key.contains("source=peers")).collect::<Vec<_>>()
        };
        assert_eq!(offered(Role::Pair, 2).len(), 2);
        let crowd = offered(Role::Crowd, 6);
        assert_eq!(crowd.len(), 4, "four at once and six, of 64 B and 1 KiB: {crowd:?}");
        assert!(crowd.iter().any(|key| key.contains("tau=6")), "{crowd:?}");
        assert!(offered(Role::Solo, 1).is_empty());
    }
}

//! Probe `fold`: combining m bytes, of private memory or straight out of a peer's box.

use super::cell::{Crew, Hand, Key, Offer, Role, Task};
use super::clock::Clock;
use super::timing::{collect_timed, Rules, Samples};
use crate::error::Error;
use crate::kernel::{copy, fold_fn, ElementType, FoldFn, Operator};

const SIZES: [usize; 6] = [64, 1 << 10, 16 << 10, 128 << 10, 1 << 20, 8 << 20];
/// One type for each size of an element: what a model tells apart.
const TYPES: [ElementType; 4] = [ElementType::F32, ElementType::F64, ElementType::I16, ElementType::U8];
/// Bytes folded in a sample, at least.
const SAMPLE: usize = 16 << 10;

pub fn offer(crew: &Crew, largest: usize, offer: &mut Offer) {
    let source = match crew.role {
        Role::Solo => "private",
        Role::Pair => "slot",
        Role::SameCpu | Role::Crowd => return,
    };
    for element in TYPES {
        let Ok(fold) = fold_fn(Operator::Sum, element) else { continue };
        for bytes in SIZES.into_iter().filter(|&b| b <= largest) {
            let mut key = Key::new("fold")
                .with("type", element)
                .with("op", Operator::Sum)
                .with("bytes", bytes)
                .with("source", source);
            if crew.role == Role::Pair {
                key = key.with("level", crew.level);
            }
            offer
                .tasks
                .push(Task::new(key, 0.5, move |hand, rules| samples(hand, rules, fold, element, bytes)));
        }
    }
}

fn samples(
    hand: &mut Hand<'_>,
    rules: &Rules,
    fold: FoldFn,
    element: ElementType,
    bytes: usize,
) -> Result<Samples, Error> {
    let (rank, last) = (hand.comm.rank(), hand.comm.ranks() - 1);
    let (input, output, source) = (hand.input, hand.output, hand.shared[0]);
    let slot = last > 0;
    let count = (SAMPLE / bytes).max(1);
    let clock = Clock::get();
    let mut order: Vec<usize> = (0..count).collect();
    let random = &mut hand.random;
    collect_timed(hand.comm, rules, &mut |comm| {
        random.shuffle(&mut order);
        if slot && rank == 0 {
            // SAFETY: both buffers hold `count * bytes` bytes at least; nobody reads them before the barrier.
            unsafe { copy(input, source, count * bytes) };
        }
        comm.barrier()?;
        let mut nanos = 0.0;
        if rank == last {
            let from = if slot { source } else { input };
            let start = clock.now();
            for &i in &order {
                // SAFETY: as above; places are aligned to lines, and `output` is the left operand itself.
                unsafe {
                    let acc = output.add(i * bytes);
                    fold(acc, from.add(i * bytes), acc, bytes / element.size());
                }
                if slot {
                    super::cache::serialize();
                }
            }
            nanos = clock.since(start) / count as f64;
        }
        comm.barrier()?;
        Ok(nanos)
    })
}

//! Probe `attach`: copying m bytes that a peer has just written by the kernel, as processes do that may read each other's memory.
//!
//! The ranks that measure are threads of one process. The kernel takes the way that it takes between two: it looks the process up, checks
//! the right to read, and copies page by page.

use super::cell::{Crew, Hand, Key, Offer, Role, Task};
use super::clock::Clock;
use super::timing::{collect_timed, Rules, Samples};
use lineweave::internal::read_process;
use lineweave::kernel::copy;
use lineweave::Error;

/// From what a system call costs alone to beyond most caches.
const SIZES: [usize; 7] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];

pub fn offer(crew: &Crew, largest: usize, offer: &mut Offer) {
    if crew.role != Role::Pair {
        return;
    }
    let (word, mut found) = (1u64, 0u64);
    let (from, to) = (std::ptr::from_ref(&word) as usize, std::ptr::from_mut(&mut found).cast());
    // SAFETY: both words are this function's own.
    if let Err(e) = unsafe { read_process(std::process::id(), from, to, size_of::<u64>()) } {
        return offer.missing("attach", format!("process_vm_readv: {e}"));
    }
    for bytes in SIZES.into_iter().filter(|&b| b <= largest) {
        let key = Key::new("attach").with("bytes", bytes).with("level", crew.level);
        offer.tasks.push(Task::new(key, 0.7, move |hand, rules| samples(hand, rules, bytes)));
    }
}

fn samples(hand: &mut Hand<'_>, rules: &Rules, bytes: usize) -> Result<Samples, Error> {
    let (rank, input, output, source) = (hand.comm.rank(), hand.input, hand.output, hand.shared[0]);
    let clock = Clock::get();
    collect_timed(hand.comm, rules, &mut |comm| {
        if rank == 0 {
            // SAFETY: both buffers hold so many bytes at least; nobody reads them before the barrier.
            unsafe { copy(input, source, bytes) };
        }
        comm.barrier()?;
        let mut nanos = 0.0;
        if rank == 1 {
            let start = clock.now();
            // SAFETY: as above; nobody writes before the next barrier.
            let done = unsafe { read_process(std::process::id(), source as usize, output, bytes) };
            nanos = clock.since(start);
            done.map_err(|e| Error::System {
                what: "process_vm_readv".to_owned(),
                reason: e.to_string(),
                advice: "",
            })?;
        }
        comm.barrier()?;
        Ok(nanos)
    })
}

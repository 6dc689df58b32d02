//! Probe `stream`: bytes that flow from rank 0 to rank 1 through a ring of slots, by how large the ring is.
//!
//! Writing a slot takes its lines away from the peer that read them last, and does so while the peer reads the
//! slots before. Copies one at a time (probe `copy`) show none of that: here a ring within a core's own caches was four
//! times slower than one beyond them.

use super::cell::{ProbeTasks, ProbeTeam, Role, SampleKey, Task};
use super::plans;
use lineweave::segment::BankClass;
use lineweave_core::probe::STREAMED;

/// From well within a core's caches to what a large bank holds.
const RINGS: [usize; 5] = [64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20];

pub fn offer(crew: &ProbeTeam, largest: usize, offer: &mut ProbeTasks) {
    if crew.role != Role::Pair {
        return;
    }
    for ring in RINGS.into_iter().filter(|&r| r <= largest) {
        let key =
            SampleKey::new("stream").with("bytes", ring).with("chunk", STREAMED).with("level", crew.level);
        offer.tasks.push(Task::new(key, 1.5, move |hand, rules| {
            debug_assert!(ring <= hand.comm.segment().geometry().zones(BankClass::Large).slots);
            plans::time(hand, rules, &plans::stream(ring)?)
        }));
    }
}

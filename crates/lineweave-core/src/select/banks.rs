//! Places of the slots of runs that follow each other.

use crate::model::{Model, Surface};
use crate::plan::{Plan, Reuse};
use crate::topology::Shape;

/// Banks that runs of a [`Reuse::Ring`](crate::plan::Reuse) plan take in turn when its slots are small: how far a
/// rank may run ahead of the slowest before it must look.
pub const SMALL_BANKS: usize = 64;
/// Banks that runs of larger plans take in turn: enough to overlap one window with the next.
pub const LARGE_BANKS: usize = 2;
/// Bytes of slots that a small bank holds at each rank.
pub const SMALL_SLOTS: usize = 4096;
/// As many of them as are used where each rank has a CPU and a ring as long as the small banks is slower than one as long as the large ones,
/// through which slots walk.
const NEAR_SLOTS: usize = 2048;
/// A ring is as fast as a longer one if a byte takes at most this many times as long.
const AS_FAST: f64 = 1.25;

/// Bytes of a plan's slots at each rank up to which its runs take small banks.
pub fn small_slots(model: &Model, shape: &Shape) -> usize {
    if shape.oversubscription() > 1 || small_banks_flow(model) {
        SMALL_SLOTS
    } else {
        NEAR_SLOTS
    }
}

/// Returns whether it was measured, at every distance there is, that lines can be written again after as many bytes as small banks hold: in some machines they are in
/// the reader's cache until then.
fn small_banks_flow(model: &Model) -> bool {
    let flows = |stream: &Surface| -> Option<bool> {
        let (small, long) = ((SMALL_BANKS * SMALL_SLOTS) as u64, *stream.bytes.last()?);
        Some(stream.per_byte(small)? <= AS_FAST * stream.per_byte(long)?)
    };
    let mut measured = model.levels.iter().filter_map(|l| l.stream.as_ref()).peekable();
    measured.peek().is_some() && measured.all(|stream| flows(stream) == Some(true))
}

/// The banks that a plan's runs take in turn.
pub fn ring_banks(plan: &Plan, model: &Model, shape: &Shape) -> usize {
    if plan.slots.iter().sum::<usize>() <= small_slots(model, shape) {
        SMALL_BANKS
    } else {
        LARGE_BANKS
    }
}

/// Bytes of slots that a rank's runs of a plan walk through before they come to the same place again, where its slots lie in another
/// place of a large bank in each run: all of what the banks hold.
pub fn walk(plan: &Plan, model: &Model, shape: &Shape, box_bytes: usize) -> u64 {
    let slots = plan.slots.iter().sum::<usize>();
    match plan.reuse {
        Reuse::Ring if slots > small_slots(model, shape) => {
            (LARGE_BANKS * slots * (box_bytes / slots).max(1)) as u64
        }
        Reuse::Ring | Reuse::Same => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Fitted, Point, Provenance, Values};

    #[test]
    fn slots_of_4_kib_take_small_banks_where_a_ring_as_long_flows() {
        let near = Shape::flat(2);
        let mut model = Values::default().model();
        let mut slots = |kibs: &[(u64, f64)]| {
            let cost = |us: f64| Fitted {
                value: us * 1e3,
                ci_low: us * 1e3,
                ci_high: us * 1e3,
                provenance: Provenance::Measured,
            };
            let points: Vec<Point> = kibs
                .iter()
                .map(|&(kib, us)| Point { bytes: kib << 10, tau: 1, cost: cost(us), weight: 1.0 })
                .collect();
            model.levels.iter_mut().for_each(|l| l.stream = Surface::from_points(&points));
            small_slots(&model, &near)
        };
        assert_eq!(slots(&[]), NEAR_SLOTS, "nothing is known");
        // As measured on an EPYC and on a Xeon.
        assert_eq!(slots(&[(64, 8.47), (256, 35.5), (1024, 38.2)]), NEAR_SLOTS);
        assert_eq!(slots(&[(64, 8.4), (256, 17.6), (1024, 65.3)]), SMALL_SLOTS);
        let crowded = Shape::on(vec![near.cpu(crate::units::Rank(0)).clone(); 2]);
        assert_eq!(small_slots(&Values::default().model(), &crowded), SMALL_SLOTS);
    }
}

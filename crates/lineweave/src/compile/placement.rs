//! Placement of a plan's flags, slots and counters.

use crate::segment::{Zones, COUNTER_BYTES};
use lineweave_core::plan::{FlagKind, Layout, Plan};
use lineweave_core::units::LINE;

/// Reason why a proven plan cannot be compiled for a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unfit {
    /// Slots need more than a bank holds.
    Slots { need: usize, have: usize },
    /// Flags of a layout need more than a bank holds.
    Flags { layout: Layout, need: usize, have: usize },
    /// Counters need more than is left of their page.
    Counters { need: usize, have: usize },
}

impl std::fmt::Display for Unfit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unfit::Slots { need, have } => {
                write!(f, "its slots need {need} bytes at each rank and a bank holds {have}; raise LINEWEAVE_BOX_BYTES")
            }
            Unfit::Flags { layout, need, have } => {
                write!(f, "its {layout} flags need {need} bytes at each rank and a bank holds {have}")
            }
            Unfit::Counters { need, have } => {
                write!(f, "it needs {need} bytes of counters and {have} are left on this communicator")
            }
        }
    }
}

/// Starts of a plan's flag arrays and slots within a bank.
pub(super) struct Placement {
    pub arrays: Vec<usize>,
    pub slots: Vec<usize>,
    /// End of the last flag array or slot within the bank.
    pub end: usize,
}

impl Placement {
    pub fn of(plan: &Plan, zones: &Zones, twin: bool) -> Result<Placement, Unfit> {
        // Bytes used of the zones for packed, paired, and lone flags.
        let mut used = [0usize; 3];
        let mut arrays = Vec::with_capacity(plan.flags.len());
        let mut end = 0;
        for array in &plan.flags {
            let (start, have) = if twin { zones.twin_flags() } else { zones.flags(array.layout) };
            let zone = match array.layout {
                Layout::Packed => 0,
                Layout::Paired => 1,
                Layout::Alone | Layout::Spread(_) => 2,
            };
            arrays.push(start + used[zone]);
            if array.kind == FlagKind::Signal {
                used[zone] += array.bytes(LINE);
                end = end.max(start + used[zone]);
            }
            if used[zone] > have {
                return Err(Unfit::Flags { layout: array.layout, need: used[zone], have });
            }
        }
        let mut at = 0;
        let mut slots = Vec::with_capacity(plan.slots.len());
        for size in &plan.slots {
            slots.push(zones.slots_start() + at);
            at += size.next_multiple_of(LINE);
        }
        if at > zones.slots {
            return Err(Unfit::Slots { need: at, have: zones.slots });
        }
        if at > 0 {
            end = zones.slots_start() + at;
        }
        Ok(Placement { arrays, slots, end })
    }
}

/// Start of each counter array within the counters' page; signal arrays have none.
pub(super) fn counter_offsets(plan: &Plan, used: &mut usize) -> Result<Vec<Option<usize>>, Unfit> {
    let mut at = *used;
    let mut offsets = Vec::with_capacity(plan.flags.len());
    for array in &plan.flags {
        match array.kind {
            FlagKind::Signal => offsets.push(None),
            FlagKind::Counter => {
                offsets.push(Some(at));
                at += array.bytes(LINE);
            }
        }
    }
    if at > COUNTER_BYTES {
        return Err(Unfit::Counters { need: at - *used, have: COUNTER_BYTES - *used });
    }
    *used = at;
    Ok(offsets)
}

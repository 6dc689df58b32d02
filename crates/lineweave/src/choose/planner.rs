//! Plans that are chosen and proved ahead of the calls that need them, in another thread.
//!
//! Choosing and proving use what all communicators of a process share: the caches of proved plans, and the records by which one process of a team
//! does it for all. So a planner has its own selector of the same calls, and the engine of the communicator is not touched.

use super::selector::{PlanBudget, PlanSelector};
use crate::call::CallSpec;
use crate::error::Error;
use crate::flag::WakeFence;
use crate::segment::Segment;
use std::sync::Arc;

/// Chooser of plans for the calls of a communicator, for a thread beside the one that makes them. A call whose plans it has chosen and proved only
/// compiles them.
///
/// ```
/// use lineweave::{team::Team, CallSpec, Collective, ElementType, Operator};
/// # fn main() -> Result<(), lineweave::Error> {
/// let mut comm = Team::new(1)?.join(0)?;
/// let planner = comm.planner();
/// let call = CallSpec {
///     collective: Collective::Allreduce,
///     element: ElementType::F64,
///     count: 1000,
///     operator: Some(Operator::Sum),
///     root: 0,
/// };
/// std::thread::spawn(move || planner.plan(&call)).join().expect("it does not panic")?;
/// comm.allreduce(&[1.0; 1000], &mut [0.0; 1000], Operator::Sum)?;
///
/// let planner = comm.planner();
/// planner.keep(42, 7);
/// assert!(matches!(planner.kept(42), Some(7) | None), "nothing is kept where there is no folder for it");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Planner {
    pub(crate) segment: Arc<Segment>,
    pub(crate) selector: PlanSelector,
    /// The fence that wakes sleepers, if other processes share choices.
    pub(crate) records: Option<WakeFence>,
    /// The rank whose parts of plans are kept; `None` where all parts are.
    pub(crate) rank: Option<usize>,
    pub(crate) counter_bytes: usize,
}

impl Planner {
    /// Chooses and proves the plans of a call; or waits for the process of the team that does so.
    ///
    /// # Errors
    /// [`Error::Root`]; the errors of choosing a plan.
    pub fn plan(&self, call: &CallSpec) -> Result<(), Error> {
        let ranks = self.selector.shape().ranks();
        if call.root >= ranks {
            return Err(Error::Root { collective: call.collective, root: call.root, ranks });
        }
        let budget = PlanBudget {
            geometry: self.segment.geometry(),
            counter_bytes: self.counter_bytes,
            records: self.records.map(|order| (self.segment.pool().as_ref(), order)),
            rank: self.rank,
        };
        self.selector.proven_for(&self.selector.key_of(call), &budget).map(drop)
    }

    /// Returns what [`Planner::keep`] kept under this name, in this program or an earlier one, on a communicator with ranks on the same CPUs, by the
    /// same profile and version of lineweave.
    pub fn kept(&self, name: u64) -> Option<u64> {
        self.selector.tuning.record(self.kept_name(name))?.first().copied()
    }

    /// Keeps a value for later programs, with the kept plans; nothing where these are not kept.
    pub fn keep(&self, name: u64, value: u64) {
        self.selector.tuning.keep(self.kept_name(name), &[value]);
    }

    fn kept_name(&self, name: u64) -> [u64; 2] {
        [u64::from_le_bytes(*b"planner:") ^ self.selector.place, name]
    }
}

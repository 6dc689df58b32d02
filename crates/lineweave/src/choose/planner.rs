//! Plans that are chosen and proved ahead of the calls that need them, in another thread.
//!
//! Choosing and proving use what all communicators of a process share: the caches of proved plans, and the records by which one process of a team
//! does it for all. So a planner has its own selector of the same calls, and the engine of the communicator is not touched.

use super::request::PlanRequest;
use super::selector::{PlanBudget, PlanSelector};
use crate::call::CallSpec;
use crate::compile;
use crate::error::Error;
use crate::flag::WakeFence;
use crate::segment::{LargeBanks, Segment};
use crate::throttle::Throttle;
use std::sync::Arc;

/// The most calls that are planned as like another one: all of a process's communicators of one shape have room for eight times as many plans.
const ALIKE: usize = 32;

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
/// std::thread::spawn(move || {
///     planner.plan(&call)?;
///     planner.alike(&call)?.iter().try_for_each(|call| planner.plan(call))
/// })
/// .join()
/// .expect("it does not panic")?;
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
    /// Chooses and proves the plans of a call; or waits for the process of the team that does so. If they need memory that the rank has not
    /// reserved yet, it is reserved.
    ///
    /// # Errors
    /// [`Error::Root`]; the errors of choosing a plan; [`Error::Memory`].
    pub fn plan(&self, call: &CallSpec) -> Result<(), Error> {
        self.has_root(call)?;
        self.plan_request(&self.selector.request_of(call))
    }

    /// As [`Planner::plan`], for a call with this request.
    pub(super) fn plan_request(&self, request: &PlanRequest) -> Result<(), Error> {
        let budget = PlanBudget {
            geometry: self.segment.geometry(),
            counter_bytes: self.counter_bytes,
            records: self.records.map(|order| (self.segment.pool().as_ref(), order)),
            rank: self.rank,
        };
        let throttle = self.selector.pending.throttled.then(Throttle::new);
        let (_, proven) = self.selector.proven_for(request, &budget)?;
        drop(throttle);
        let (geometry, model, shape) = (budget.geometry, self.selector.model(), self.selector.shape());
        let takes =
            || proven.plans().any(|p| compile::takes_large_banks(&p.part.plan, geometry, model, shape));
        match self.rank {
            Some(rank) if geometry.large_banks() == LargeBanks::WhenPlanned && takes() => {
                self.segment.claim_large_banks(rank)
            }
            _ => Ok(()),
        }
    }

    fn has_root(&self, call: &CallSpec) -> Result<(), Error> {
        let ranks = self.selector.shape().ranks();
        match call.root < ranks {
            true => Ok(()),
            false => Err(Error::Root { collective: call.collective, root: call.root, ranks }),
        }
    }

    /// Returns calls that are like this one and have plans of their own, the likeliest first, and 32 at most: with each length above half of the power
    /// of two that this one's bytes come to, up to that, and from each root that sits differently. Of lengths and roots that share a plan, one is there.
    ///
    /// # Errors
    /// [`Error::Root`].
    pub fn alike(&self, call: &CallSpec) -> Result<Vec<CallSpec>, Error> {
        self.has_root(call)?;
        if !call.collective.moves_data() || call.bytes() == 0 {
            return Ok(Vec::new());
        }
        let (counts, roots) = (self.counts_alike(call), self.roots_apart(call));
        let one = |count: usize, root: usize| CallSpec { count, root, ..*call };
        let own_root = counts.iter().map(|&count| one(count, call.root));
        let own_length = roots.iter().map(|&root| one(call.count, root));
        let others = roots.iter().flat_map(|&root| counts.iter().map(move |&count| one(count, root)));
        Ok(own_root.chain(own_length).chain(others).take(ALIKE).collect())
    }

    /// The counts, but for the call's own class, of its power of two of bytes: one of each class. Of lengths that have plans of their own, multiples of
    /// the greatest powers of two come first.
    fn counts_alike(&self, call: &CallSpec) -> Vec<usize> {
        let request = |count: usize| self.selector.request_of(&CallSpec { count, ..*call });
        let plans_of = |count: usize| request(count).class().unwrap_or_else(|| request(count));
        let (size, most) = (call.element.size(), call.bytes().next_power_of_two());
        let (mut count, last) = (most / 2 / size + 1, most / size);
        let mut counts = Vec::new();
        while count <= last {
            let end = (plans_of(count).bytes() / size).clamp(count, last);
            // The longest of a class may reach others' buffers where shorter ones do not.
            counts.extend((plans_of(end) != plans_of(count)).then_some(count));
            counts.push(end);
            count = end + 1;
        }
        counts.retain(|&count| plans_of(count) != plans_of(call.count));
        counts.sort_by_key(|count| std::cmp::Reverse(count.trailing_zeros()));
        counts.truncate(ALIKE);
        counts
    }

    /// Roots, one of each set that shares a plan, but for the set of the call's own.
    fn roots_apart(&self, call: &CallSpec) -> Vec<usize> {
        if !call.collective.rooted() {
            return Vec::new();
        }
        let first =
            |root: usize| self.selector.first(&self.selector.request_of(&CallSpec { root, ..*call })).0.root;
        let mut apart = vec![first(call.root)];
        for root in (0..self.selector.shape().ranks()).map(first) {
            if apart.len() > ALIKE {
                break;
            }
            if !apart.contains(&root) {
                apart.push(root);
            }
        }
        apart.split_off(1)
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::prove::tests::team;
    use super::*;
    use crate::{ElementType, Operator};
    use lineweave_core::collective::Collective;

    /// Returns a planner of a team of processes that keeps all ranks' parts.
    fn planner(ranks: usize) -> Planner {
        let (mut config, segment) = team(ranks);
        config.tuning.kept = None;
        config.direct = false;
        let mut selector = PlanSelector::new(&config, false);
        // Other tests of this process have plans of such teams, too.
        selector.proven = Arc::new(super::super::proven::ProvenPlans::of_one(1));
        Planner { segment: Arc::new(segment), selector, records: None, rank: None, counter_bytes: 4096 }
    }

    fn call(collective: Collective, count: usize, root: usize) -> CallSpec {
        let operator = collective.folds().then_some(Operator::Sum);
        let element = if collective.folds() { ElementType::F64 } else { ElementType::U8 };
        CallSpec { collective, element, count, operator, root }
    }

    #[test]
    fn no_call_of_a_class_is_chosen_or_proved_once_what_is_alike_is_planned() {
        for collective in Collective::ALL.into_iter().filter(|c| c.moves_data()) {
            for bytes in [8000, if collective.has_blocks() { 30_000 } else { 100 }] {
                let planner = planner(3);
                let call = call(collective, bytes / if collective.folds() { 8 } else { 1 }, 1);
                planner.plan(&call).unwrap();
                let alike = planner.alike(&call).unwrap();
                alike.iter().for_each(|call| planner.plan(call).unwrap());
                let proven = planner.selector.proven.plans.count();
                let (size, most) = (call.element.size(), bytes.next_power_of_two());
                for count in (most / 2 / size + 1..=most / size).step_by(1 + most / size / 500) {
                    for root in 0..if collective.rooted() { 3 } else { 1 } {
                        planner.plan(&CallSpec { count, root, ..call }).unwrap();
                        let now = planner.selector.proven.plans.count();
                        assert!(
                            now == proven || alike.len() == ALIKE,
                            "{collective} of {count}, root {root}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_alike_is_bounded_and_of_one_power_of_two() {
        let planner = planner(64);
        for (collective, bytes) in
            Collective::ALL.into_iter().flat_map(|c| [0, 8, 64, 1000, 70_000].map(|b| (c, b)))
        {
            let call = call(collective, bytes / if collective.folds() { 8 } else { 1 }, 0);
            let alike = planner.alike(&call).unwrap();
            assert_eq!(
                alike.is_empty(),
                bytes == 0 || !collective.moves_data() || (collective.folds() && bytes == 8)
            );
            assert!(alike.len() <= ALIKE && !alike.contains(&call));
            for one in &alike {
                assert_eq!(
                    one.bytes().next_power_of_two(),
                    bytes.next_power_of_two(),
                    "{collective} {bytes}"
                );
                assert_eq!(
                    (one.collective, one.element, one.operator),
                    (collective, call.element, call.operator)
                );
            }
            let several: std::collections::HashSet<_> =
                alike.iter().map(|one| (one.count, one.root)).collect();
            assert_eq!(several.len(), alike.len());
        }
        assert!(matches!(planner.alike(&call(Collective::Bcast, 8, 64)), Err(Error::Root { root: 64, .. })));
    }
}

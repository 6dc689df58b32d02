//! One rank's compiled plans, by what they were asked for.
//!
//! What is there after a sequence of calls depends on these calls alone. All ranks of a communicator make the same ones, so they find and evict the same.

use super::lru::{Limits, LruCache};
use super::request::PlanRequest;
use super::resolved::{CachedPlans, PlanSequence, ResolvedCall};
use crate::compile::PlanId;
use lineweave_core::collective::Collective;
use std::collections::HashMap;

/// Limits of a rank's plan cache, in plans and in ops (a rank's, on average of all ranks): all ranks have to forget the same plans.
const REMEMBERED: Limits = Limits { entries: 64, weight: 1 << 18 };

/// Plans of earlier calls.
#[derive(Debug)]
pub(crate) struct PlanCache {
    known: LruCache<PlanRequest, CachedPlans>,
    /// Entries that are never evicted: overrides, and plans with counters, whose memory is not given back.
    kept: HashMap<PlanRequest, CachedPlans>,
    /// The last call of each collective: most programs repeat it.
    last: [Option<ResolvedCall>; Collective::ALL.len()],
}

impl PlanCache {
    /// Makes the cache of one of `ranks` ranks.
    pub fn of_one(ranks: usize) -> PlanCache {
        PlanCache {
            known: LruCache::new(REMEMBERED.shared_by(ranks)),
            kept: HashMap::new(),
            last: [None; Collective::ALL.len()],
        }
    }

    /// Returns the last call of a collective.
    #[inline(always)]
    pub fn last(&self, collective: Collective) -> Option<&ResolvedCall> {
        self.last[collective as usize].as_ref()
    }

    /// Returns the last call of each collective.
    pub fn last_calls(&self) -> impl Iterator<Item = &ResolvedCall> {
        self.last.iter().flatten()
    }

    /// Sets the last call of its collective.
    pub fn set_last(&mut self, ready: ResolvedCall) -> &ResolvedCall {
        self.last[ready.call.collective as usize].insert(ready)
    }

    /// Forgets the last call of each collective, so that it is resolved again.
    pub fn forget_last(&mut self) {
        self.last = [None; Collective::ALL.len()];
    }

    /// Runs these plans for calls with this request, and does not evict them, until `unkeep`.
    pub fn keep(&mut self, request: PlanRequest, plans: CachedPlans) {
        self.last[request.collective as usize] = None;
        self.kept.insert(request, plans);
    }

    /// Removes what `keep` added.
    pub fn unkeep(&mut self, request: &PlanRequest) {
        self.last[request.collective as usize] = None;
        self.kept.remove(request);
    }

    /// Returns the chosen plans of a call: of the call itself if they are kept, else of its size class, else of the call.
    pub fn sequence(&mut self, request: &PlanRequest) -> Option<PlanSequence> {
        if !self.kept.is_empty() {
            if let Some(kept) = self.kept.get(&request.whole()) {
                return kept.sequence();
            }
        }
        let of_class = request.class().and_then(|class| self.chosen(&class)?.sequence());
        of_class.or_else(|| self.chosen(&request.whole())?.sequence())
    }

    /// Returns the chosen plans of exactly this request.
    pub fn chosen(&mut self, request: &PlanRequest) -> Option<&CachedPlans> {
        let PlanCache { known, kept, .. } = self;
        let kept = kept.get(request);
        kept.or_else(|| known.get(request).filter(|cached| !cached.is_provisional()))
    }

    /// Returns the provisional plans of exactly this request.
    pub fn provisional(&self, request: &PlanRequest) -> Option<PlanSequence> {
        let cached = self.known.peek(request).filter(|cached| cached.is_provisional());
        cached.and_then(CachedPlans::sequence)
    }

    /// Counts a call that runs provisional plans, and returns the number so far; `None` if the request has none.
    pub fn count_provisional(&mut self, request: &PlanRequest) -> Option<u64> {
        let Some(CachedPlans::Provisional(_, calls)) = self.known.get_mut(request) else { return None };
        *calls += 1;
        Some(*calls)
    }

    /// Removes the plans of exactly this request, which are returned.
    pub fn remove(&mut self, request: &PlanRequest) -> Option<CachedPlans> {
        self.known.remove(request)
    }

    /// Adds plans, and returns those evicted for them. `weight` must be the same on all ranks.
    pub fn insert(&mut self, request: PlanRequest, plans: CachedPlans, weight: usize) -> Vec<PlanId> {
        let PlanCache { known, kept, last } = self;
        let of = CachedPlans::plans;
        let mut gone = known.insert(request, plans, weight);
        let kept = kept.values().flat_map(of).count();
        while kept + known.values().flat_map(of).count() > REMEMBERED.entries && known.values().count() > 1 {
            gone.extend(known.forget());
        }
        let gone: Vec<PlanId> = gone.iter().flat_map(of).collect();
        for last in last {
            if last.as_ref().is_some_and(|ready| gone.contains(&ready.sequence.plan)) {
                *last = None;
            }
        }
        gone
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::prove::tests::request;
    use super::super::proven::WindowRun;
    use super::super::request::Lengths;
    use super::super::resolved::UnevenSequence;
    use super::*;
    use std::collections::HashSet;
    use std::sync::Arc;

    /// Returns the next of a sequence of numbers below a bound that look random (Knuth, The Art of Computer Programming, volume 2, 3.3.4).
    fn below(state: &mut u64, bound: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % bound
    }

    #[test]
    fn ranks_that_make_the_same_calls_evict_the_same_plans_and_keep_no_more_than_the_limit() {
        let mut ranks = [PlanCache::of_one(2), PlanCache::of_one(2)];
        let (mut state, mut next, mut live) = (1, 0, HashSet::new());
        for _ in 0..5000 {
            let bytes = 1000 + below(&mut state, 100) as usize;
            let uneven = below(&mut state, 2) == 1;
            let lengths = if uneven { Lengths::Uneven([bytes, 1].into()) } else { Lengths::Even(bytes) };
            let request = PlanRequest { lengths, ..request(Collective::Allgather, 0, 1) };
            let [cached, other] = ranks.each_mut().map(|rank| rank.chosen(&request).map(CachedPlans::plans));
            assert_eq!(cached, other);
            if let Some(cached) = cached {
                assert!(cached.iter().all(|plan| live.contains(plan)), "what was evicted is not found");
                continue;
            }
            // Few calls have many plans.
            let many = if uneven { 1 + below(&mut state, 90) as u32 / (1 + bytes as u32 % 30) } else { 1 };
            let run = |plan| WindowRun { plan: PlanId(plan), from: 0, window: bytes, times: 1 };
            let runs: Vec<WindowRun<PlanId>> = (next..next + many).map(run).collect();
            next += many;
            let plans = match uneven {
                true => CachedPlans::Uneven(Arc::new(UnevenSequence { runs, in_place: false })),
                false => CachedPlans::Chosen(PlanSequence::of(&runs)),
            };
            live.extend(plans.plans());
            let weight = below(&mut state, 10_000) as usize;
            let [gone, other] =
                ranks.each_mut().map(|rank| rank.insert(request.clone(), plans.clone(), weight));
            assert_eq!(gone, other);
            assert!(gone.iter().all(|plan| live.remove(plan)), "each plan is evicted once");
            assert!(live.len() <= REMEMBERED.entries.max(many as usize), "{} plans", live.len());
        }
        let held: HashSet<PlanId> = ranks[0].known.values().flat_map(CachedPlans::plans).collect();
        assert_eq!(held, live);
    }
}

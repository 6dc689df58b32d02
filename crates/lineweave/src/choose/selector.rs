//! The plan selector: what one rank's choices depend on, and the calls that it has plans for.

use super::background::PendingChoices;
use super::lru::{Limits, LruCache};
use super::peer_access::PeerAccess;
use super::proven::{Key, ProvenPlanCache};
use super::resolved::{PlanSequence, ResolvedCall};
use super::{process_cache, uneven_counts};
use crate::call::CallSpec;
use crate::compile::PlanId;
use crate::config::TeamConfig;
use crate::flag::WakeFence;
use crate::kernel::Operator;
use crate::segment::{BankClass, Geometry, TeamMemory};
use crate::sync::has_prefetch_for_write;
use crate::tuning::{Tuning, ATTACH_FROM};
use lineweave_core::collective::{Association, Collective};
use lineweave_core::model::Model;
use lineweave_core::plan::Digest;
use lineweave_core::select::Question;
use lineweave_core::topology::Shape;
use lineweave_core::units::{fnv1a, Rank};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Limits of a rank's plan cache, in plans and in ops (a rank's, on average of all ranks): all ranks have to forget the same plans.
const REMEMBERED: Limits = Limits { entries: 64, weight: 1 << 18 };

/// State of copies out of other ranks' memory.
#[derive(Clone, Copy, Debug, Default)]
struct Attaching {
    /// Permitted by the settings.
    may: bool,
    /// Possible at all ranks.
    can: bool,
    /// True if copies out of other ranks' memory are in use.
    does: bool,
}

/// The cached plans of a call or of a size class.
#[derive(Clone, Copy, Debug)]
pub(super) struct CachedPlans {
    pub sequence: PlanSequence,
    /// The number of calls so far that ran provisional plans, if they are; 0 if they were chosen.
    pub provisional_calls: u64,
}

impl CachedPlans {
    pub fn is_provisional(&self) -> bool {
        self.provisional_calls > 0
    }

    fn chosen(&self) -> Option<PlanSequence> {
        (!self.is_provisional()).then_some(self.sequence)
    }

    fn plans(&self) -> impl Iterator<Item = PlanId> {
        self.sequence.plans()
    }
}

/// The plans of earlier calls.
#[derive(Debug)]
pub(super) struct CallHistory {
    pub(super) known: LruCache<Key, CachedPlans>,
    /// Entries that are never evicted: overrides, and plans with counters, whose memory is not given back.
    kept: HashMap<Key, PlanSequence>,
    pub(super) uneven_counts: uneven_counts::UnevenCalls,
    /// The last call of each collective: most programs repeat it.
    last: [Option<ResolvedCall>; Collective::ALL.len()],
}

/// Chooses the plans of one rank's calls, and caches them.
#[derive(Debug)]
pub(crate) struct PlanSelector {
    pub(super) shape: Shape,
    /// A number that differs for different shapes.
    pub(super) place: u64,
    pub(super) tuning: Arc<Tuning>,
    direct: bool,
    /// True if this rank stays on the CPU that its shape names: nobody but lineweave, its starter or the program can see to that.
    held: bool,
    /// The shortest message for which calls ask for shared buffers.
    ask_from: usize,
    /// Copies out of other ranks' memory: permitted, possible, in use.
    attach: Attaching,
    pub check: bool,
    /// True if the slots of successive runs lie in other places of a large bank.
    pub walk: bool,
    /// True if a rank takes the lines of its next run for writing while it waits in this one.
    pub ahead: bool,
    /// True if results have to be reproducible.
    pub reproducible: bool,
    pub(super) proven: ProvenPlanCache,
    pub(super) history: CallHistory,
    /// Calls whose plans are not chosen yet.
    pub(super) pending: PendingChoices,
}

impl PlanSelector {
    /// Returns the model that costs are predicted by.
    pub fn model(&self) -> &Model {
        &self.tuning.model
    }

    /// Returns the shape: the CPU of each rank.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn new(config: &TeamConfig, held: bool) -> PlanSelector {
        let tuning = process_cache::tuning(&config.tuning);
        let may = tuning.attaches(config.attach, usize::MAX);
        let (direct, check, reproducible) = (config.direct, config.check, config.reproducible);
        let selector = PlanSelector::with(config.shape(), tuning, direct, check, reproducible);
        let attach = Attaching { may, ..selector.attach };
        let pending = PendingChoices::new(config.threads.choose);
        PlanSelector { attach, held, walk: config.walk, pending, ..selector }
    }

    /// Returns whether this rank stays on its CPU.
    pub fn held(&self) -> bool {
        self.held
    }

    /// Returns whether ranks are to try and reach each other's memory.
    pub fn may_attach(&self) -> bool {
        self.attach.may
    }

    /// Returns whether all ranks can reach all others' memory by cross-memory attach, and do.
    pub fn attach(&self) -> bool {
        self.attach.does
    }

    /// Records whether every rank can read every other rank's memory, and turns that on if so.
    pub fn set_can_attach(&mut self, can: bool) {
        (self.attach.can, self.attach.does) = (can, can);
    }

    /// Turns cross-memory attach on or off; on has no effect where it is not possible. Returns the previous state.
    pub fn set_attach(&mut self, attach: bool) -> bool {
        std::mem::replace(&mut self.attach.does, attach && self.attach.can)
    }

    /// Returns a hash of the members' number and NUMA nodes: communicators with one hash can take over each other's memory.
    pub fn places_of(&self, members: &[usize]) -> u64 {
        let node = |&r: &usize| (self.shape.cpu(Rank::from(r)).numa as u64).to_le_bytes();
        fnv1a(members.iter().flat_map(node))
    }

    /// Makes the selector of a communicator of these ranks; `direct` if they read each other's buffers.
    pub fn of_members(&self, members: &[usize], direct: bool) -> PlanSelector {
        let cpus = members.iter().map(|&r| self.shape.cpu(Rank::from(r)).clone()).collect();
        let tuning = Arc::clone(&self.tuning);
        let selector = PlanSelector::with(Shape::on(cpus), tuning, direct, self.check, self.reproducible);
        let PlanSelector { held, walk, attach, .. } = *self;
        let pending = PendingChoices::new(self.pending.on);
        PlanSelector { held, walk, attach, pending, ..selector }
    }

    pub(super) fn with(
        shape: Shape,
        tuning: Arc<Tuning>,
        direct: bool,
        check: bool,
        reproducible: bool,
    ) -> PlanSelector {
        let proven = process_cache::plans(&tuning, &shape, direct);
        let mut place = Digest::new(0);
        for cpu in (0..shape.ranks()).map(|r| shape.cpu(Rank::from(r))) {
            (cpu.os, cpu.core, cpu.l3, cpu.numa, cpu.package, cpu.kind).hash(&mut place);
        }
        let ask_from = tuning.ask_from(&shape);
        // A profile may be of another machine.
        let ahead = has_prefetch_for_write() && tuning.model.trick_beats("lines-ahead", "lines");
        let ranks = shape.ranks();
        PlanSelector {
            shape,
            place: place.finish(),
            held: false,
            ask_from,
            attach: Attaching::default(),
            tuning,
            direct,
            walk: true,
            ahead,
            check,
            reproducible,
            proven,
            history: CallHistory {
                known: LruCache::new(REMEMBERED.shared_by(ranks)),
                kept: HashMap::new(),
                uneven_counts: uneven_counts::UnevenCalls::of_one(ranks),
                last: [None; Collective::ALL.len()],
            },
            pending: PendingChoices::default(),
        }
    }

    pub(crate) fn question(&self, key: &Key, room: &PlanBudget<'_>) -> Question {
        Question {
            collective: key.collective,
            shape: self.shape.clone(),
            root: key.root,
            bytes: key.bytes,
            uneven: None,
            grain: key.grain,
            association: key.association,
            direct: key.access != PeerAccess::None,
            attach: key.access == PeerAccess::Cma,
            box_bytes: room.geometry.zones(BankClass::Large).slots,
            counter_bytes: room.counter_bytes,
            acc_bytes: None,
        }
    }

    /// The shortest message for which calls ask for shared buffers.
    pub fn ask_from(&self) -> usize {
        self.ask_from
    }

    /// Forgets the last call of each collective, so that it is resolved again.
    pub fn forget_last(&mut self) {
        self.history.last = [None; Collective::ALL.len()];
    }

    /// Returns whether ranks reach each other's private buffers.
    pub fn direct(&self) -> bool {
        self.direct
    }

    /// Returns the order of operands that a call's reduction requires.
    pub(crate) fn association(&self, call: &CallSpec) -> Association {
        match call.operator {
            Some(operator) if call.collective.folds() => {
                Association::wanted(operator.commutes(), self.reproducible)
            }
            Some(_) | None => Association::Free,
        }
    }

    pub(crate) fn key_of(&self, call: &CallSpec) -> Key {
        let collective = call.collective;
        Key {
            collective,
            bytes: call.bytes(),
            grain: if collective.folds() { call.element.size() } else { 1 },
            association: self.association(call),
            root: call.effective_root(),
            access: self.access(call.bytes()),
            // What lies behind the end is combined, and a program's own operator need not bear that.
            cut: !matches!(call.operator, Some(Operator::User(_))),
        }
    }

    /// Returns which buffers of peers a plan for a message of `bytes` bytes may access without an agreement.
    pub(crate) fn access(&self, bytes: usize) -> PeerAccess {
        match self.direct {
            true => PeerAccess::SameProcess,
            false if self.attach.does && bytes >= ATTACH_FROM => PeerAccess::Cma,
            false => PeerAccess::None,
        }
    }

    /// Returns whether the last call of this collective was equal, and asked for the same.
    #[inline(always)]
    pub(crate) fn is_last(&self, call: &CallSpec) -> bool {
        let same = |ready: &ResolvedCall| ready.call == *call && ready.reproducible == self.reproducible;
        self.history.last[call.collective as usize].as_ref().is_some_and(same)
    }

    /// The last call of a collective.
    #[inline(always)]
    pub(crate) fn last(&self, collective: Collective) -> Option<&ResolvedCall> {
        self.history.last[collective as usize].as_ref()
    }

    /// Sets the last call of its collective.
    pub(crate) fn set_last(&mut self, ready: ResolvedCall) -> &ResolvedCall {
        self.history.last[ready.call.collective as usize].insert(ready)
    }

    /// Overrides the choice for calls with this key until `unkeep`.
    pub(crate) fn keep(&mut self, key: Key, sequence: PlanSequence) {
        self.history.kept.insert(key, sequence);
        self.history.last[key.collective as usize] = None;
    }

    /// Removes an override.
    pub(crate) fn unkeep(&mut self, key: &Key) {
        self.history.kept.remove(key);
        self.history.last[key.collective as usize] = None;
    }

    /// Returns the cached plans of a call: of the call itself, else of its size class.
    pub(crate) fn remembered(&mut self, key: &Key) -> Option<PlanSequence> {
        let CallHistory { known, kept, .. } = &mut self.history;
        let (whole, class) = (Key { cut: false, ..*key }, key.class());
        let kept = |key: &Key| kept.get(key).copied();
        let mut chosen = |key: &Key| known.get(key).and_then(CachedPlans::chosen);
        let of_class = class.and_then(|class| kept(&class).or_else(|| chosen(&class)));
        // A choice of one's own comes before what its class has.
        kept(&whole).or(of_class).or_else(|| chosen(&whole))
    }

    /// Returns the cached plans of a size class.
    pub(crate) fn remembered_class(&mut self, class: &Key) -> Option<PlanSequence> {
        let CallHistory { known, kept, .. } = &mut self.history;
        kept.get(class).copied().or_else(|| known.get(class).and_then(CachedPlans::chosen))
    }

    /// Caches a call's plans, or `provisional` ones, and returns the plans evicted for them. `weight` must be the same on all ranks.
    pub(crate) fn remember(
        &mut self,
        key: Key,
        sequence: PlanSequence,
        weight: usize,
        provisional: bool,
    ) -> Vec<PlanId> {
        // What is called again and again is not looked up, and was used all the same.
        let repeated: Vec<Key> =
            self.history.last.iter().flatten().map(|ready| self.key_of(&ready.call)).collect();
        for key in repeated {
            self.remembered(&key);
        }
        let cached = CachedPlans { sequence, provisional_calls: u64::from(provisional) };
        let gone = self.history.known.insert(key, cached, weight);
        let mut plans: Vec<PlanId> = gone.iter().flat_map(CachedPlans::plans).collect();
        plans.extend(self.forget_beyond());
        self.forget_last_of(&plans);
        plans
    }

    /// Evicts calls until all caches together hold no more plans than the limit.
    pub(super) fn forget_beyond(&mut self) -> Vec<PlanId> {
        let CallHistory { known, kept, uneven_counts, .. } = &mut self.history;
        let others = uneven_counts.plans() + kept.values().flat_map(PlanSequence::plans).count();
        let plans = |known: &LruCache<Key, CachedPlans>| known.values().flat_map(CachedPlans::plans).count();
        let mut gone = Vec::new();
        while others + plans(known) > REMEMBERED.entries && known.values().count() > 1 {
            gone.extend(known.forget());
        }
        let gone: Vec<PlanId> = gone.iter().flat_map(CachedPlans::plans).collect();
        self.forget_last_of(&gone);
        gone
    }

    fn forget_last_of(&mut self, plans: &[PlanId]) {
        for last in &mut self.history.last {
            if last.as_ref().is_some_and(|ready| plans.contains(&ready.sequence.plan)) {
                *last = None;
            }
        }
    }
}

/// The memory of a communicator that plans may use. It is the same on all ranks, as they make the same calls.
#[derive(Clone, Copy)]
pub(crate) struct PlanBudget<'a> {
    pub geometry: &'a Geometry,
    pub counter_bytes: usize,
    /// The memory through which processes share choices, if there are several, and the fence that wakes sleepers.
    pub records: Option<(&'a TeamMemory, WakeFence)>,
    /// The rank whose part of a plan is kept; `None` where all parts are.
    pub rank: Option<usize>,
}

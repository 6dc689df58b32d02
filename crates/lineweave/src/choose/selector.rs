//! The plan selector: what one rank's choices depend on, and the calls that it has plans for.

use super::background::PendingChoices;
use super::peer_access::PeerAccess;
use super::plan_cache::PlanCache;
use super::process_cache;
use super::proven::ProvenPlanCache;
use super::request::{Lengths, PlanRequest};
use super::resolved::{CachedPlans, ResolvedCall};
use crate::call::CallSpec;
use crate::compile::PlanId;
use crate::config::TeamConfig;
use crate::flag::WakeFence;
use crate::kernel::Operator;
use crate::segment::{BankClass, Geometry, TeamMemory};
use crate::sync::has_prefetch_for_write;
use crate::tuning::{Tuning, ATTACH_FROM};
use lineweave_core::collective::Association;
use lineweave_core::model::Model;
use lineweave_core::plan::Digest;
use lineweave_core::select::Question;
use lineweave_core::topology::Shape;
use lineweave_core::units::{fnv1a, Rank};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

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
    pub(crate) cache: PlanCache,
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
        let pending = PendingChoices::new(config.threads.choose, config.usable <= config.ranks());
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
        let pending = PendingChoices::new(self.pending.on, self.pending.throttled);
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
            cache: PlanCache::of_one(ranks),
            pending: PendingChoices::default(),
        }
    }

    pub(crate) fn question(&self, request: &PlanRequest, room: &PlanBudget<'_>) -> Question {
        let PlanRequest { collective, grain, association, root, access, .. } = *request;
        Question {
            collective,
            shape: self.shape.clone(),
            root,
            bytes: request.bytes(),
            uneven: request.blocks(self.shape.ranks()).map(Arc::new),
            grain,
            association,
            direct: access != PeerAccess::None,
            attach: access == PeerAccess::Cma,
            box_bytes: room.geometry.zones(BankClass::Large).slots,
            counter_bytes: room.counter_bytes,
            acc_bytes: None,
        }
    }

    /// The shortest message for which calls ask for shared buffers.
    pub fn ask_from(&self) -> usize {
        self.ask_from
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

    /// Returns the request of a call whose blocks have one length.
    pub(crate) fn request_of(&self, call: &CallSpec) -> PlanRequest {
        self.request_for(call, Lengths::Even(call.bytes()))
    }

    /// Returns the request of a call with these lengths.
    pub(crate) fn request_for(&self, call: &CallSpec, lengths: Lengths) -> PlanRequest {
        let collective = call.collective;
        let request = PlanRequest {
            collective,
            lengths,
            grain: if collective.folds() { call.element.size() } else { 1 },
            association: self.association(call),
            root: call.effective_root(),
            access: PeerAccess::None,
            // What lies behind the end is combined, and a program's own operator need not bear that.
            cut: !matches!(call.operator, Some(Operator::User(_))),
        };
        PlanRequest { access: self.access(request.bytes()), ..request }
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
        self.cache.last(call.collective).is_some_and(same)
    }

    /// Caches a call's plans, and returns the plans evicted for them. `weight` must be the same on all ranks.
    pub(crate) fn remember(
        &mut self,
        request: PlanRequest,
        plans: CachedPlans,
        weight: usize,
    ) -> Vec<PlanId> {
        // What is called again and again is not looked up, and was used all the same.
        let repeated: Vec<PlanRequest> =
            self.cache.last_calls().map(|ready| self.request_of(&ready.call)).collect();
        for request in repeated {
            self.cache.sequence(&request);
        }
        self.cache.insert(request, plans, weight)
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

//! What a rank's choices are made by, and what was chosen so far.

use super::reach::Reach;
use super::ready::{Ready, Sequence};
use super::recent::{Limits, Recent};
use super::shelf::{Key, Shelf};
use super::{library, sets};
use crate::call::CallSpec;
use crate::charter::Charter;
use crate::compile::PlanId;
use crate::flag::WakeFence;
use crate::kernel::Operator;
use crate::segment::{BankClass, Geometry, Pool};
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

/// How many plans a rank remembers, and how much all ranks do. Ops of a rank, on average of all: ranks have to forget the same.
const REMEMBERED: Limits = Limits { entries: 64, weight: 1 << 18 };

/// Whether ranks copy out of each other's memory.
#[derive(Clone, Copy, Debug, Default)]
struct Attaching {
    /// They may.
    may: bool,
    /// All can.
    can: bool,
    /// They do.
    does: bool,
}

/// Plans of calls that came before.
#[derive(Debug)]
pub(super) struct Past {
    known: Recent<Key, Sequence>,
    /// What is never forgotten: choices of one's own, and plans with counters, whose room is not given back.
    kept: HashMap<Key, Sequence>,
    pub(super) sets: sets::Known,
    /// The last call of each collective: most programs repeat it.
    last: [Option<Ready>; Collective::ALL.len()],
}

/// One rank's choices so far.
#[derive(Debug)]
pub(crate) struct Book {
    pub(super) shape: Shape,
    /// A number that differs for different shapes.
    pub(super) place: u64,
    pub(super) tuning: Arc<Tuning>,
    direct: bool,
    /// Whether this rank stays on the CPU that its shape names: nobody but lineweave, its starter or the program can see to that.
    held: bool,
    /// From which length on calls can ask for shared buffers.
    ask_from: usize,
    /// Whether ranks may copy out of each other's memory, whether all can, and whether they do.
    attach: Attaching,
    pub check: bool,
    /// Whether the slots of successive runs lie in other places of a large bank.
    pub walk: bool,
    /// Whether a rank takes the lines of its next run for writing while it waits in this one.
    pub ahead: bool,
    /// Whether results have to be reproducible.
    pub reproducible: bool,
    pub(super) shelf: Shelf,
    pub(super) past: Past,
}

impl Book {
    /// What costs are predicted by.
    pub fn model(&self) -> &Model {
        &self.tuning.model
    }

    /// Where the ranks sit.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn new(charter: &Charter, held: bool) -> Book {
        let tuning = library::tuning(&charter.tuning);
        let may = tuning.attaches(charter.attach, usize::MAX);
        let (direct, check, reproducible) = (charter.direct, charter.check, charter.reproducible);
        let book = Book::with(charter.shape(), tuning, direct, check, reproducible);
        let attach = Attaching { may, ..book.attach };
        Book { attach, held, walk: charter.walk, ..book }
    }

    /// Whether this rank stays on its CPU.
    pub fn held(&self) -> bool {
        self.held
    }

    /// Whether ranks are to try and reach each other's memory.
    pub fn may_attach(&self) -> bool {
        self.attach.may
    }

    /// Whether all ranks can reach all others' memory by cross-memory attach, and do.
    pub fn attach(&self) -> bool {
        self.attach.does
    }

    /// Says whether all ranks can reach all others' memory; from now on they do.
    pub fn set_can_attach(&mut self, can: bool) {
        (self.attach.can, self.attach.does) = (can, can);
    }

    /// Has them do so, if they can, or no longer; whether they did.
    pub fn set_attach(&mut self, attach: bool) -> bool {
        std::mem::replace(&mut self.attach.does, attach && self.attach.can)
    }

    /// A number for how many these of the ranks are and on which NUMA nodes they run: what memory near them has to be like.
    pub fn places_of(&self, members: &[usize]) -> u64 {
        let node = |&r: &usize| (self.shape.cpu(Rank::from(r)).numa as u64).to_le_bytes();
        fnv1a(members.iter().flat_map(node))
    }

    /// For a communicator of these of the ranks, which reach each other's buffers if `direct`.
    pub fn of_members(&self, members: &[usize], direct: bool) -> Book {
        let cpus = members.iter().map(|&r| self.shape.cpu(Rank::from(r)).clone()).collect();
        let tuning = Arc::clone(&self.tuning);
        let book = Book::with(Shape::on(cpus), tuning, direct, self.check, self.reproducible);
        let Book { held, walk, attach, .. } = *self;
        Book { held, walk, attach, ..book }
    }

    pub(super) fn with(
        shape: Shape,
        tuning: Arc<Tuning>,
        direct: bool,
        check: bool,
        reproducible: bool,
    ) -> Book {
        let shelf = library::shelf(&tuning, &shape, direct);
        let mut place = Digest::new(0);
        for cpu in (0..shape.ranks()).map(|r| shape.cpu(Rank::from(r))) {
            (cpu.os, cpu.core, cpu.l3, cpu.numa, cpu.package, cpu.kind).hash(&mut place);
        }
        let ask_from = tuning.ask_from(&shape);
        // A profile may be of another machine.
        let ahead = has_prefetch_for_write() && tuning.model.trick_beats("lines-ahead", "lines");
        let ranks = shape.ranks();
        Book {
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
            shelf,
            past: Past {
                known: Recent::new(REMEMBERED.shared_by(ranks)),
                kept: HashMap::new(),
                sets: sets::Known::of_one(ranks),
                last: [None; Collective::ALL.len()],
            },
        }
    }

    pub(crate) fn question(&self, key: &Key, room: &Room<'_>) -> Question {
        Question {
            collective: key.collective,
            shape: self.shape.clone(),
            root: key.root,
            bytes: key.bytes,
            uneven: None,
            grain: key.grain,
            association: key.association,
            direct: key.reach != Reach::Own,
            attach: key.reach == Reach::Attach,
            box_bytes: room.geometry.zones(BankClass::Large).slots,
            counter_bytes: room.counter_bytes,
            acc_bytes: None,
        }
    }

    /// From which length on calls can ask for shared buffers.
    pub fn ask_from(&self) -> usize {
        self.ask_from
    }

    /// Has calls be made ready anew.
    pub fn forget_last(&mut self) {
        self.past.last = [None; Collective::ALL.len()];
    }

    /// Whether ranks reach each other's private buffers.
    pub fn direct(&self) -> bool {
        self.direct
    }

    /// What a call asks of the order and the brackets of what it combines.
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
            root: if collective.rooted() { call.root } else { 0 },
            reach: self.reach(call.bytes()),
            // What lies behind the end is combined, and a program's own operator need not bear that.
            cut: !matches!(call.operator, Some(Operator::User(_))),
        }
    }

    /// Whose buffers plans for a message may reach when nobody was asked.
    pub(crate) fn reach(&self, bytes: usize) -> Reach {
        match self.direct {
            true => Reach::Threads,
            false if self.attach.does && bytes >= ATTACH_FROM => Reach::Attach,
            false => Reach::Own,
        }
    }

    /// Whether the last call of this collective was equal, and asked for the same.
    #[inline(always)]
    pub(crate) fn is_last(&self, call: &CallSpec) -> bool {
        let same = |ready: &Ready| ready.call == *call && ready.reproducible == self.reproducible;
        self.past.last[call.collective as usize].as_ref().is_some_and(same)
    }

    /// The last call of a collective.
    #[inline(always)]
    pub(crate) fn last(&self, collective: Collective) -> Option<&Ready> {
        self.past.last[collective as usize].as_ref()
    }

    /// Takes it.
    pub(crate) fn set_last(&mut self, ready: Ready) -> &Ready {
        self.past.last[ready.call.collective as usize].insert(ready)
    }

    /// Has calls like this run these plans from now on, for good.
    pub(crate) fn keep(&mut self, key: Key, sequence: Sequence) {
        self.past.kept.insert(key, sequence);
        self.past.last[key.collective as usize] = None;
    }

    /// Has them run what the tuning says again.
    pub(crate) fn unkeep(&mut self, key: &Key) {
        self.past.kept.remove(key);
        self.past.last[key.collective as usize] = None;
    }

    /// The plans of a call that came before, if they are not forgotten.
    pub(crate) fn remembered(&mut self, key: &Key) -> Option<Sequence> {
        let Past { known, kept, .. } = &mut self.past;
        let (whole, class) = (Key { cut: false, ..*key }, key.class());
        let kept = |key: &Key| kept.get(key).copied();
        let of_class = class.and_then(|class| kept(&class).or_else(|| known.get(&class).copied()));
        // A choice of one's own comes before what its class has.
        kept(&whole).or(of_class).or_else(|| known.get(&whole).copied())
    }

    /// The plans of a class of calls, if they are not forgotten.
    pub(crate) fn remembered_class(&mut self, class: &Key) -> Option<Sequence> {
        self.past.kept.get(class).or_else(|| self.past.known.get(class)).copied()
    }

    /// Remembers a call's plans, and returns those that are to be given up for them. `weight` is the same on all ranks.
    pub(crate) fn remember(&mut self, key: Key, sequence: Sequence, weight: usize) -> Vec<PlanId> {
        // What is called again and again is not looked up, and was used all the same.
        let repeated: Vec<Key> =
            self.past.last.iter().flatten().map(|ready| self.key_of(&ready.call)).collect();
        for key in repeated {
            self.remembered(&key);
        }
        let gone = self.past.known.insert(key, sequence, weight);
        let mut plans: Vec<PlanId> = gone.iter().flat_map(Sequence::plans).collect();
        plans.extend(self.forget_beyond());
        self.forget_last_of(&plans);
        plans
    }

    /// Forgets calls until what is left of all has no more plans than are remembered.
    pub(super) fn forget_beyond(&mut self) -> Vec<PlanId> {
        let Past { known, kept, sets, .. } = &mut self.past;
        let others = sets.plans() + kept.values().flat_map(Sequence::plans).count();
        let plans = |known: &Recent<Key, Sequence>| known.values().flat_map(Sequence::plans).count();
        let mut gone = Vec::new();
        while others + plans(known) > REMEMBERED.entries && known.values().count() > 1 {
            gone.extend(known.forget());
        }
        let gone: Vec<PlanId> = gone.iter().flat_map(Sequence::plans).collect();
        self.forget_last_of(&gone);
        gone
    }

    fn forget_last_of(&mut self, plans: &[PlanId]) {
        for last in &mut self.past.last {
            if last.as_ref().is_some_and(|ready| plans.contains(&ready.sequence.plan)) {
                *last = None;
            }
        }
    }
}

/// What plans may take of a communicator's memory. All ranks have the same, as they make the same calls.
#[derive(Clone, Copy)]
pub(crate) struct Room<'a> {
    pub geometry: &'a Geometry,
    pub counter_bytes: usize,
    /// Where processes tell each other what they chose, if there are several, and how they wake who waits for it.
    pub records: Option<(&'a Pool, WakeFence)>,
    /// Whose part of plans is kept, if it is one rank's alone.
    pub rank: Option<usize>,
}

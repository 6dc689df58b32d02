//! What a rank's choices are made by, and what was chosen so far.

use super::recent::{Limits, Recent};
use super::record::{Digest, Proofs, Record};
use super::{library, uneven, Ready, Sequence};
use crate::check::CallSpec;
use crate::communicator::PlanId;
use crate::error::Error;
use crate::flag::WakeFence;
use crate::segment::{BankClass, Geometry, Name, Pool, Seen};
use crate::sync::has_prefetch_for_write;
use crate::team::Charter;
use crate::tuning::{Because, Chosen, Tuning, ATTACH_FROM};
use lineweave_core::algorithm;
use lineweave_core::collective::{Association, Collective};
use lineweave_core::model::Model;
use lineweave_core::plan::{FlagKind, Plan};
use lineweave_core::select::{self, Question};
use lineweave_core::topology::Shape;
use lineweave_core::units::{Rank, LINE};
use lineweave_core::verify::Proof;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// Whose buffers a plan may reach.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Reach {
    /// The own: others' bytes come through boxes.
    Own,
    /// Everybody's, because ranks are threads of one process.
    Threads,
    /// Everybody's, because they lie in a heap.
    Heap,
    /// Everybody's, by system calls that copy.
    Attach,
}

impl Reach {
    /// The kind of team, as choices name it.
    pub(super) fn team(self) -> &'static str {
        match self {
            Reach::Own | Reach::Attach => "processes",
            Reach::Threads => "threads",
            Reach::Heap => "shared",
        }
    }
}

/// What a choice depends on, besides the team.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    pub collective: Collective,
    pub bytes: usize,
    pub grain: usize,
    pub association: Association,
    pub root: usize,
    pub reach: Reach,
}

/// Proven plans that ranks and communicators of one process share, so that each is chosen and proven once. Some of them
/// may have less room than others.
pub(crate) type Shelf = Arc<Shelves>;

/// How much is on a shelf: of sizes that come once and never again there would be more and more. Ops of all ranks, which are some
/// 64 bytes each.
const ON_SHELF: Limits = Limits { entries: 256, weight: 1 << 20 };

/// How many choices for lengths that stand for others.
const ALIKE: Limits = Limits { entries: 4096, weight: 4096 };

/// How many calls a rank remembers the plans of. Ops of a rank, on average of all: ranks have to forget the same.
const REMEMBERED: Limits = Limits { entries: 256, weight: 1 << 18 };

/// What is on it, by call and room for counters.
#[derive(Debug)]
pub(crate) struct Shelves {
    even: Mutex<Recent<(Key, usize), Outcome>>,
    /// Choices for lengths that stand for others.
    alike: Mutex<Recent<(Key, usize), Chosen>>,
    pub(super) uneven: uneven::Shelf,
}

impl Default for Shelves {
    fn default() -> Shelves {
        Shelves {
            even: Mutex::new(Recent::new(ON_SHELF)),
            alike: Mutex::new(Recent::new(ALIKE)),
            uneven: uneven::Shelf::default(),
        }
    }
}

/// A choice with its proven plans, or why there is none.
type Outcome = Result<Arc<Proven>, Error>;

/// A choice with its proven plans.
#[derive(Debug)]
pub(super) struct Proven {
    pub window: usize,
    pub whole: usize,
    pub plan: (Plan, Proof),
    pub tail: Option<(Plan, Proof)>,
}

impl Proven {
    fn plans(&self) -> impl Iterator<Item = &Plan> {
        [Some(&self.plan), self.tail.as_ref()].into_iter().flatten().map(|(plan, _)| plan)
    }

    /// Whether a plan counts arrivals.
    pub fn has_counters(&self) -> bool {
        self.plans().flat_map(|plan| &plan.flags).any(|array| array.kind == FlagKind::Counter)
    }

    /// Of all ranks.
    pub fn ops(&self) -> usize {
        self.plans().map(|plan| plan.ops().count()).sum()
    }
}

/// One rank's choices so far.
#[derive(Debug)]
pub(crate) struct Book {
    pub(super) shape: Shape,
    /// A number that differs for different shapes.
    place: u64,
    tuning: Arc<Tuning>,
    direct: bool,
    /// Whether this rank stays on the CPU that its shape names: nobody but lineweave, its starter or the program can see to that.
    held: bool,
    /// From which length on calls can ask for shared buffers.
    ask_from: usize,
    /// Whether ranks may copy out of each other's memory, whether all can, and whether they do.
    may_attach: bool,
    can_attach: bool,
    attach: bool,
    pub check: bool,
    /// Whether the slots of successive runs lie in other places of a large bank.
    pub walk: bool,
    /// Whether a rank takes the lines of its next run for writing while it waits in this one.
    pub ahead: bool,
    /// Whether results have to be reproducible.
    pub reproducible: bool,
    pub(super) shelf: Shelf,
    known: Recent<Key, Sequence>,
    /// What is never forgotten: choices of one's own, and plans with counters, whose room is not given back.
    pub(super) kept: HashMap<Key, Sequence>,
    pub(super) uneven: uneven::Known,
    /// The last call of each collective: most programs repeat it.
    pub(super) last: [Option<Ready>; Collective::ALL.len()],
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
        let may_attach = tuning.attaches(charter.attach, usize::MAX);
        let (direct, check, reproducible) = (charter.direct, charter.check, charter.reproducible);
        let book = Book::with(charter.shape(), tuning, direct, check, reproducible);
        Book { may_attach, held, walk: charter.walk, ..book }
    }

    /// Whether this rank stays on its CPU.
    pub fn held(&self) -> bool {
        self.held
    }

    /// Whether ranks are to try and reach each other's memory.
    pub fn may_attach(&self) -> bool {
        self.may_attach
    }

    /// Whether all ranks can reach all others' memory by cross-memory attach, and do.
    pub fn attach(&self) -> bool {
        self.attach
    }

    /// Says whether all ranks can reach all others' memory; from now on they do.
    pub fn set_can_attach(&mut self, can: bool) {
        (self.can_attach, self.attach) = (can, can);
    }

    /// Has them do so, if they can, or no longer; whether they did.
    pub fn set_attach(&mut self, attach: bool) -> bool {
        std::mem::replace(&mut self.attach, attach && self.can_attach)
    }

    /// For a communicator of these of the ranks, which reach each other's buffers if `direct`.
    pub fn of_members(&self, members: &[usize], direct: bool) -> Book {
        let cpus = members.iter().map(|&r| self.shape.cpu(Rank::from(r)).clone()).collect();
        let tuning = Arc::clone(&self.tuning);
        let book = Book::with(Shape::on(cpus), tuning, direct, self.check, self.reproducible);
        let Book { held, walk, may_attach, can_attach, attach, .. } = *self;
        Book { held, walk, may_attach, can_attach, attach, ..book }
    }

    fn with(shape: Shape, tuning: Arc<Tuning>, direct: bool, check: bool, reproducible: bool) -> Book {
        let shelf = library::shelf(&tuning, &shape, direct);
        let mut place = Digest::new(0);
        for cpu in (0..shape.ranks()).map(|r| shape.cpu(Rank::from(r))) {
            (cpu.os, cpu.core, cpu.l3, cpu.numa, cpu.package, cpu.kind).hash(&mut place);
        }
        let ask_from = tuning.ask_from(&shape);
        // A profile may be of another machine.
        let ahead = has_prefetch_for_write() && tuning.model.trick_beats("lines-ahead", "lines");
        Book {
            shape,
            place: place.finish(),
            held: false,
            ask_from,
            may_attach: false,
            can_attach: false,
            attach: false,
            tuning,
            direct,
            walk: true,
            ahead,
            check,
            reproducible,
            shelf,
            known: Recent::new(REMEMBERED),
            kept: HashMap::new(),
            uneven: uneven::Known::default(),
            last: [None; Collective::ALL.len()],
        }
    }

    pub(super) fn question(&self, key: &Key, room: &Room<'_>) -> Question {
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
        self.last = [None; Collective::ALL.len()];
    }

    /// Whether ranks reach each other's private buffers.
    pub fn direct(&self) -> bool {
        self.direct
    }

    /// What a call asks of the order and the brackets of what it combines.
    pub(super) fn association(&self, call: &CallSpec) -> Association {
        match call.operator {
            Some(operator) if call.collective.folds() => {
                Association::wanted(operator.commutes(), self.reproducible)
            }
            Some(_) | None => Association::Free,
        }
    }

    pub(super) fn key_of(&self, call: &CallSpec) -> Key {
        let collective = call.collective;
        Key {
            collective,
            bytes: call.bytes(),
            grain: if collective.folds() { call.element.size() } else { 1 },
            association: self.association(call),
            root: if collective.rooted() { call.root } else { 0 },
            reach: self.reach(call.bytes()),
        }
    }

    /// Whose buffers plans for a message may reach when nobody was asked.
    pub(super) fn reach(&self, bytes: usize) -> Reach {
        match self.direct {
            true => Reach::Threads,
            false if self.attach && bytes >= ATTACH_FROM => Reach::Attach,
            false => Reach::Own,
        }
    }

    /// Chooses and proves, or takes what is proven already.
    pub(super) fn proven(&self, key: &Key, room: &Room<'_>) -> Outcome {
        // A thread that panicked while proving left the map as it was.
        let mut shelf = self.shelf.even.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (*key, room.counter_bytes);
        if let Some(known) = shelf.get(&place) {
            return known.clone();
        }
        let outcome = self.prove(key, room).map(Arc::new);
        shelf.insert(place, outcome.clone(), outcome.as_ref().map_or(1, |proven| proven.ops()));
        outcome
    }

    fn prove(&self, key: &Key, room: &Room<'_>) -> Result<Proven, Error> {
        let question = self.question(key, room);
        self.once(&(key, room.counter_bytes), &question, key.reach, room, |chosen, proofs| {
            Book::plans(key, &question, chosen, proofs)
        })
    }

    /// What `make` makes of the choice for a question. One process of the team chooses and proves; the others take its choice and its
    /// proofs. `about` is what the choice depends on, besides the tuning and where the ranks sit.
    pub(super) fn once<T>(
        &self,
        about: &impl Hash,
        question: &Question,
        reach: Reach,
        room: &Room<'_>,
        make: impl Fn(&Chosen, &mut Proofs<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut claim = None;
        match room.records.map(|(pool, order)| pool.await_record(self.name(about), order)) {
            Some(Seen::Found(words)) => {
                if let Some(Record { chosen, proofs }) = Record::read(&words, question.collective) {
                    return make(&chosen, &mut Proofs::Told(proofs.iter()));
                }
            }
            Some(Seen::Mine(mine)) => claim = Some(mine),
            Some(Seen::Nothing) | None => {}
        }
        let chosen = self.choose(question, reach)?;
        let mut proofs = Vec::new();
        let made = make(&chosen, &mut Proofs::Made(&mut proofs))?;
        if let Some(claim) = claim {
            claim.give(&Record { chosen, proofs }.words());
        }
        Ok(made)
    }

    fn name(&self, about: &impl Hash) -> Name {
        [1, 2].map(|seed| {
            let mut digest = Digest::new(self.place ^ seed);
            about.hash(&mut digest);
            digest.finish()
        })
    }

    /// The plans of a choice for a call.
    pub(super) fn plans(
        key: &Key,
        question: &Question,
        chosen: &Chosen,
        proofs: &mut Proofs<'_>,
    ) -> Result<Proven, Error> {
        let mut proven = |bytes: usize| proofs.of(chosen.plan(question, bytes)?, key.association);
        let window = chosen.window.max(key.grain);
        let rest = key.bytes % window;
        Ok(Proven {
            window,
            whole: (key.bytes / window).max(usize::from(key.bytes == 0)),
            plan: proven(if key.bytes < window { key.bytes } else { window })?,
            tail: if rest > 0 && key.bytes > window { Some(proven(rest)?) } else { None },
        })
    }

    /// The best by the model of those that reach other ranks' buffers.
    pub(super) fn best_direct(&self, question: &Question) -> Option<Chosen> {
        let choice = select::select(&self.tuning.model, question).ok()?;
        let best = choice.considered.into_iter().find(|c| c.reaches(question))?;
        let algorithm = algorithm::find(question.collective, best.name).ok()?;
        Some(Chosen { algorithm, params: best.params, window: best.window, because: Because::Predicted })
    }

    /// The plans of a call that came before, if they are not forgotten.
    pub(super) fn remembered(&mut self, key: &Key) -> Option<Sequence> {
        self.kept.get(key).or_else(|| self.known.get(key)).copied()
    }

    /// Remembers a call's plans, and returns those that are to be given up for them. `weight` is the same on all ranks.
    pub(super) fn remember(&mut self, key: Key, sequence: Sequence, weight: usize) -> Vec<PlanId> {
        // What is called again and again is not looked up, and was used all the same.
        let repeated: Vec<Key> = self.last.iter().flatten().map(|ready| self.key_of(&ready.call)).collect();
        for key in repeated {
            self.known.get(&key);
        }
        let gone = self.known.insert(key, sequence, weight);
        let plans: Vec<PlanId> = gone.iter().flat_map(|s| [Some(s.plan), s.tail]).flatten().collect();
        for last in &mut self.last {
            if last.as_ref().is_some_and(|ready| plans.contains(&ready.sequence.plan)) {
                *last = None;
            }
        }
        plans
    }

    pub(super) fn choose(&self, question: &Question, reach: Reach) -> Result<Chosen, Error> {
        if let Some(chosen) = self.choose_alike(question, reach) {
            return Ok(chosen);
        }
        self.tuning.choose(question, reach.team()).map_err(|e| Error::NoPlan {
            collective: question.collective,
            bytes: question.bytes,
            ranks: question.shape.ranks(),
            why: e.to_string(),
        })
    }

    /// What is predicted to be the fastest for the length that stands for this one, if it does for this one too. So a program with a thousand
    /// lengths chooses a few dozen times. The plan is still made and proved for the length that is asked for.
    fn choose_alike(&self, question: &Question, reach: Reach) -> Option<Chosen> {
        let bytes = alike(question.bytes, question.grain);
        if bytes == question.bytes || !self.tuning.predicts(question, reach.team()) {
            return None;
        }
        let Question { collective, grain, association, root, counter_bytes, .. } = *question;
        let place = (Key { collective, bytes, grain, association, root, reach }, counter_bytes);
        let mut known = self.shelf.alike.lock().unwrap_or_else(PoisonError::into_inner);
        let chosen = match known.get(&place) {
            Some(chosen) => chosen.clone(),
            None => {
                let chosen =
                    self.tuning.choose(&Question { bytes, ..question.clone() }, reach.team()).ok()?;
                known.insert(place, chosen.clone(), 1);
                chosen
            }
        };
        let chosen = Chosen { window: chosen.window.min(question.bytes), ..chosen };
        let plan = chosen.plan(question, chosen.window).ok()?;
        let rest = question.bytes % chosen.window;
        let tail = rest == 0 || chosen.plan(question, rest).is_ok();
        let fits = tail && question.fits(&plan, self.tuning.model.line_bytes);
        (fits && question.associates(chosen.algorithm, &chosen.params)).then_some(chosen)
    }
}

/// The length that stands for those from the one before it on: each of up to a line, then four from one power of two elements to the next.
fn alike(bytes: usize, grain: usize) -> usize {
    let elements = bytes / grain;
    if bytes <= LINE || elements < 8 {
        return bytes;
    }
    elements.next_multiple_of(1 << (elements.ilog2() - 2)) * grain
}

/// What plans may take of a communicator's memory. All ranks have the same, as they make the same calls.
pub(crate) struct Room<'a> {
    pub geometry: &'a Geometry,
    pub counter_bytes: usize,
    /// Where processes tell each other what they chose, if there are several, and how they wake who waits for it.
    pub records: Option<(&'a Pool, WakeFence)>,
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::segment::Segment;
    use crate::team::Team;
    use std::cell::Cell;

    #[test]
    fn lengths_that_stand_for_others_are_few_and_stand_for_themselves() {
        let stand = |grain: usize, most: usize| {
            let lengths = (0..most).step_by(grain).map(|bytes| alike(bytes, grain));
            lengths.collect::<std::collections::BTreeSet<_>>()
        };
        assert!(stand(8, 8000).len() <= 8 + 4 * 7 + 1);
        for grain in [1, 3, 8, 24] {
            for &bytes in &stand(grain, 1 << 14) {
                assert_eq!((bytes % grain, alike(bytes, grain)), (0, bytes), "grain {grain}");
            }
            assert!((0..1 << 14)
                .step_by(grain)
                .all(|bytes| (bytes..=bytes + bytes / 4 + grain).contains(&alike(bytes, grain))));
        }
        for power in 0..40 {
            assert_eq!(alike(1 << power, 1), 1 << power);
        }
    }

    #[test]
    fn a_choice_for_a_length_alike_is_a_plan_for_every_length_and_root() {
        let charter = Team::new(5).unwrap().charter().clone();
        let segment = Segment::create(5, charter.box_bytes, b"").unwrap();
        let room = Room { geometry: segment.geometry(), counter_bytes: 4096, records: None };
        let book = Book::new(&charter, false);
        for collective in Collective::ALL.into_iter().filter(|c| c.moves_data()) {
            for bytes in [72, 88, 1016, 1032, 8200] {
                for root in if collective.rooted() { 0..5 } else { 0..1 } {
                    let association = Association::Free;
                    let key = Key { collective, bytes, grain: 8, association, root, reach: Reach::Own };
                    let proven = book
                        .proven(&key, &room)
                        .unwrap_or_else(|e| panic!("{collective} {bytes} {root}: {e}"));
                    assert_eq!(
                        (proven.plan.0.bytes, proven.plan.0.root.index()),
                        (proven.window.min(bytes), root)
                    );
                }
            }
        }
    }

    #[test]
    fn one_process_chooses_and_proves_and_the_others_take_it() {
        let charter = Team::new(2).unwrap().charter().clone();
        let segment = Segment::create(2, charter.box_bytes, b"").unwrap();
        let records = Some((segment.pool().as_ref(), WakeFence::Full));
        let room = Room { geometry: segment.geometry(), counter_bytes: 4096, records };
        let book = Book::new(&charter, false);
        let call = CallSpec {
            collective: Collective::Allreduce,
            element: crate::ElementType::F64,
            count: 100,
            operator: Some(crate::Operator::Sum),
            root: 0,
        };
        let key = book.key_of(&call);
        let question = book.question(&key, &room);
        let chose = Cell::new(0);
        let ask = |book: &Book| {
            book.once(&(key, 4096usize), &question, key.reach, &room, |chosen, proofs| {
                chose.set(chose.get() + usize::from(matches!(proofs, Proofs::Made(_))));
                Book::plans(&key, &question, chosen, proofs)
            })
        };
        let (first, second) = (ask(&book).unwrap(), ask(&Book::new(&charter, false)).unwrap());
        assert_eq!(chose.get(), 1);
        assert_eq!((&first.plan, &first.tail, first.window), (&second.plan, &second.tail, second.window));
        // A record of a build that makes other plans.
        let name = book.name(&(key, 100usize));
        let Seen::Mine(claim) = segment.pool().await_record(name, WakeFence::Full) else {
            panic!("nobody has it")
        };
        let chosen = book.choose(&question, key.reach).unwrap();
        claim.give(&Record { chosen, proofs: vec![(1, first.plan.1)] }.words());
        let foreign = book.once(&(key, 100usize), &question, key.reach, &room, |chosen, proofs| {
            Book::plans(&key, &question, chosen, proofs)
        });
        assert!(matches!(foreign, Err(Error::Foreign { .. })));
    }
}

//! From a call to the plans that carry it out: looked up when the call was made before, else chosen, proven
//! and compiled.

mod adopt;
mod library;
mod uneven;

pub use adopt::Adoptable;
pub(crate) use library::Library;
pub(crate) use uneven::Prepared;

use crate::check::CallSpec;
use crate::communicator::{Buffers, Engine, PlanId};
use crate::error::Error;
use crate::kernel::{scale_fn, Fold, ScaleFn};
use crate::segment::{BankClass, Geometry};
use crate::settings::Attach;
use crate::team::Charter;
use crate::tuning::{Chosen, Tuning};
use lineweave_core::collective::{Association, Collective};
use lineweave_core::plan::Plan;
use lineweave_core::select::Question;
use lineweave_core::topology::Shape;
use lineweave_core::units::Rank;
use lineweave_core::verify::{self, Proof};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Whose buffers a plan may reach.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Reach {
    /// The own: others' bytes come through boxes.
    Own,
    /// Everybody's, because ranks are threads of one process.
    Threads,
    /// Everybody's, because they lie in a heap.
    Heap,
    /// Everybody's, by system calls that copy.
    Attach,
}

/// Shorter messages go through boxes: a system call that copies nothing took 0.45 us on a Xeon and 1.45 us on an EPYC (both in
/// a VM), in which 16 KiB and more pass through a box.
const ATTACH_FROM: usize = 16 << 10;

impl Reach {
    /// The kind of team, as choices name it.
    fn team(self) -> &'static str {
        match self {
            Reach::Own | Reach::Attach => "processes",
            Reach::Threads => "threads",
            Reach::Heap => "shared",
        }
    }
}

/// What a choice depends on, besides the team.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    collective: Collective,
    bytes: usize,
    grain: usize,
    association: Association,
    root: usize,
    reach: Reach,
}

/// The plans of one call: `plan` over windows of `window` bytes `whole` times, then `tail` for the rest.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sequence {
    pub plan: PlanId,
    pub window: usize,
    pub whole: usize,
    pub tail: Option<PlanId>,
}

/// A call with everything it needs resolved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub call: CallSpec,
    /// Whether it was asked to be reproducible.
    pub reproducible: bool,
    pub sequence: Sequence,
    pub fold: Fold,
    pub scale: Option<ScaleFn>,
    /// One window does, it may run in place, and nothing is asked before.
    pub simple: bool,
}

/// Proven plans that ranks and communicators of one process share, so that each is chosen and proven once. Some of them
/// may have less room than others.
pub(crate) type Shelf = Arc<Shelves>;

/// What is on it, by call and room for counters.
#[derive(Debug, Default)]
pub(crate) struct Shelves {
    even: Mutex<HashMap<(Key, usize), Outcome>>,
    uneven: uneven::Shelf,
}

/// A choice with its proven plans, or why there is none.
type Outcome = Result<Arc<Proven>, Error>;

/// A choice with its proven plans.
#[derive(Debug)]
pub(crate) struct Proven {
    window: usize,
    whole: usize,
    plan: (Plan, Proof),
    tail: Option<(Plan, Proof)>,
}

/// One rank's choices so far.
#[derive(Debug)]
pub(crate) struct Book {
    shape: Shape,
    tuning: Arc<Tuning>,
    direct: bool,
    /// From which length on calls can ask for shared buffers.
    ask_from: usize,
    /// Whether ranks may copy out of each other's memory, and whether all can.
    may_attach: bool,
    attach: bool,
    pub check: bool,
    /// Whether results have to be reproducible.
    pub reproducible: bool,
    shelf: Shelf,
    known: HashMap<Key, Sequence>,
    uneven: uneven::Known,
    /// The last call of each collective: most programs repeat it.
    last: [Option<Ready>; Collective::ALL.len()],
}

impl Book {
    pub fn new(charter: &Charter, library: &Library) -> Book {
        let tuning = Arc::new(charter.tuning.clone());
        let may_attach = match charter.attach {
            Attach::Auto => tuning.model.attach.is_some(),
            Attach::On => true,
            Attach::Off => false,
        };
        let (direct, check, reproducible) = (charter.direct, charter.check, charter.reproducible);
        let book = Book::with(charter.shape(), tuning, direct, check, reproducible, library);
        Book { may_attach, ..book }
    }

    /// Whether ranks are to try and reach each other's memory.
    pub fn may_attach(&self) -> bool {
        self.may_attach
    }

    /// Whether all ranks can reach all others' memory by cross-memory attach, and may.
    pub fn attach(&self) -> bool {
        self.attach
    }

    /// Says whether all ranks can reach all others' memory.
    pub fn set_attach(&mut self, attach: bool) {
        self.attach = attach;
    }

    /// For a communicator of these of the ranks, which reach each other's buffers if `direct`.
    pub fn of_members(&self, members: &[usize], direct: bool, library: &Library) -> Book {
        let cpus = members.iter().map(|&r| self.shape.cpu(Rank::from(r)).clone()).collect();
        let tuning = Arc::clone(&self.tuning);
        let book = Book::with(Shape::on(cpus), tuning, direct, self.check, self.reproducible, library);
        Book { may_attach: self.may_attach, attach: self.attach, ..book }
    }

    fn with(
        shape: Shape,
        tuning: Arc<Tuning>,
        direct: bool,
        check: bool,
        reproducible: bool,
        library: &Library,
    ) -> Book {
        let shelf = library.shelf(&shape, direct);
        let ask_from = tuning.ask_from(&shape);
        Book {
            shape,
            ask_from,
            may_attach: false,
            attach: false,
            tuning,
            direct,
            check,
            reproducible,
            shelf,
            known: HashMap::new(),
            uneven: uneven::Known::default(),
            last: [None; Collective::ALL.len()],
        }
    }

    fn question(&self, key: &Key, room: &Room<'_>) -> Question {
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
    fn association(&self, call: &CallSpec) -> Association {
        match call.operator {
            Some(operator) if call.collective.folds() => {
                Association::wanted(operator.commutes(), self.reproducible)
            }
            Some(_) | None => Association::Free,
        }
    }

    fn key_of(&self, call: &CallSpec) -> Key {
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
    fn reach(&self, bytes: usize) -> Reach {
        match self.direct {
            true => Reach::Threads,
            false if self.attach && bytes >= ATTACH_FROM => Reach::Attach,
            false => Reach::Own,
        }
    }

    /// Chooses and proves, or takes what is proven already.
    fn proven(&self, key: &Key, room: &Room<'_>) -> Outcome {
        // A thread that panicked while proving left the map as it was.
        let mut shelf = self.shelf.even.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.entry((*key, room.counter_bytes)).or_insert_with(|| self.prove(key, room).map(Arc::new)).clone()
    }

    fn prove(&self, key: &Key, room: &Room<'_>) -> Result<Proven, Error> {
        let question = self.question(key, room);
        let chosen = self.choose(&question, key.reach)?;
        Book::prove_choice(key, &question, &chosen)
    }

    fn prove_choice(key: &Key, question: &Question, chosen: &Chosen) -> Result<Proven, Error> {
        let proven = |bytes: usize| -> Result<(Plan, Proof), Error> {
            let plan = chosen.plan(question, bytes)?;
            match verify::verify(&plan) {
                Ok(proof) if proof.meets(key.association) => Ok((plan, proof)),
                Ok(_) => Err(unordered(&plan)),
                Err(v) => Err(Error::Refuted { plan: plan.name(), violation: Box::new(v) }),
            }
        };
        let window = chosen.window.max(key.grain);
        let rest = key.bytes % window;
        Ok(Proven {
            window,
            whole: (key.bytes / window).max(usize::from(key.bytes == 0)),
            plan: proven(if key.bytes < window { key.bytes } else { window })?,
            tail: if rest > 0 && key.bytes > window { Some(proven(rest)?) } else { None },
        })
    }

    fn choose(&self, question: &Question, reach: Reach) -> Result<Chosen, Error> {
        self.tuning.choose(question, reach.team()).map_err(|e| Error::NoPlan {
            collective: question.collective,
            bytes: question.bytes,
            ranks: question.shape.ranks(),
            why: e.to_string(),
        })
    }
}

/// What plans may take of a communicator's memory. All ranks have the same, as they make the same calls.
pub(crate) struct Room<'a> {
    pub geometry: &'a Geometry,
    pub counter_bytes: usize,
}

impl Engine {
    /// Where the ranks sit.
    pub fn shape(&self) -> &Shape {
        &self.book().shape
    }

    /// See [`crate::Communicator::reproducible`].
    pub fn reproducible(&self) -> bool {
        self.book().reproducible
    }

    /// See [`crate::Communicator::set_reproducible`].
    pub fn set_reproducible(&mut self, reproducible: bool) -> bool {
        if self.book().reproducible != reproducible {
            self.cool();
        }
        std::mem::replace(&mut self.book_mut().reproducible, reproducible)
    }

    /// The algorithm that a call of this size runs, and why.
    ///
    /// # Errors
    /// [`Error::NoPlan`].
    pub fn chosen(&self, call: &CallSpec) -> Result<Chosen, Error> {
        let book = self.book();
        let key = book.key_of(call);
        book.choose(&book.question(&key, &self.room()), key.reach)
    }

    /// Everything a call needs, from the last call of this collective if that was equal. By reference: copying
    /// it about costs more than a small call itself.
    ///
    /// # Errors
    /// Those of choosing a plan, and [`Error::Operator`] when the type has no such operator.
    #[inline(always)]
    pub(crate) fn ready(&mut self, call: &CallSpec) -> Result<&Ready, Error> {
        let slot = call.collective as usize;
        let reproducible = self.book().reproducible;
        let same = |ready: &Ready| ready.call == *call && ready.reproducible == reproducible;
        if !self.book().last[slot].as_ref().is_some_and(same) {
            let ready = self.make_ready(call)?;
            self.book_mut().last[slot] = Some(ready);
        }
        match &self.book().last[slot] {
            Some(ready) => Ok(ready),
            None => Err(Error::Failed("a call was not made ready".into())),
        }
    }

    #[cold]
    fn make_ready(&mut self, call: &CallSpec) -> Result<Ready, Error> {
        let undefined = |e: crate::kernel::Undefined| Error::Operator(e.to_string());
        let (fold, scale) = match call.operator {
            None => (Buffers::NONE.fold, None),
            Some(o) => (Fold::of(o, call.element).map_err(undefined)?, scale_fn(o, call.element)),
        };
        let sequence = self.sequence_of(self.book().key_of(call))?;
        let simple = sequence.whole == 1
            && !self.asks(call)
            && sequence.tail.is_none()
            && (!has_two_buffers(call.collective) || self.runs_in_place(sequence.plan));
        let reproducible = self.book().reproducible;
        Ok(Ready { call: *call, reproducible, sequence, fold, scale, simple })
    }

    /// The plans of a call whose buffers are all shared.
    ///
    /// # Errors
    /// Those of choosing a plan.
    pub(crate) fn shared_sequence(&mut self, call: &CallSpec) -> Result<Sequence, Error> {
        self.sequence_of(Key { reach: Reach::Heap, ..self.book().key_of(call) })
    }

    fn sequence_of(&mut self, key: Key) -> Result<Sequence, Error> {
        if let Some(&sequence) = self.book().known.get(&key) {
            return Ok(sequence);
        }
        let sequence = self.look_further(key)?;
        self.book_mut().known.insert(key, sequence);
        Ok(sequence)
    }

    fn look_further(&mut self, key: Key) -> Result<Sequence, Error> {
        let proven = self.book().proven(&key, &self.room())?;
        self.compile(&key, &proven)
    }

    fn compile(&mut self, key: &Key, proven: &Proven) -> Result<Sequence, Error> {
        let plan = self.prepare_proven(&proven.plan.0, &proven.plan.1)?;
        let tail = match &proven.tail {
            Some((plan, proof)) => Some(self.prepare_proven(plan, proof)?),
            None => None,
        };
        // Where ranks exchange blocks, the copy is of the whole input, and made room for when first needed.
        let copies_windows = key.collective.folds() && !key.collective.has_blocks();
        if copies_windows && !self.runs_in_place(plan) {
            self.reserve_shadow(proven.window)?;
        }
        Ok(Sequence { plan, window: proven.window, whole: proven.whole, tail })
    }
}

/// A plan that was chosen for an order that it does not keep.
fn unordered(plan: &Plan) -> Error {
    Error::NoPlan {
        collective: plan.collective,
        bytes: plan.bytes,
        ranks: plan.ranks,
        why: format!("{} does not combine contributions in the order asked for", plan.name()),
    }
}

/// Whether some rank has an input and an output, which may be one buffer.
pub(crate) fn has_two_buffers(collective: Collective) -> bool {
    collective.folds() || collective.has_blocks()
}

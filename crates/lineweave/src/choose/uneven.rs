//! The plans of calls whose blocks have different lengths.
//!
//! A plan fits one set of lengths. So each set that comes is chosen for, proven and compiled once, and kept for when it
//! comes again, as it does in most programs; of many sets the older ones are forgotten. The blocks go window by window
//! like others. A window covers less of them as the shorter ones end: windows that cover the same are runs of one plan.

use super::book::{Book, Room};
use super::recent::{Limits, Recent};
use super::record::{Proofs, Proved};
use super::shelf::{Place, Reach};
use super::Engine;
use crate::check::CallSpec;
use crate::communicator::PlanId;
use crate::error::Error;
use crate::tuning::Chosen;
use lineweave_core::collective::{Association, Collective};
use lineweave_core::plan::Uneven;
use lineweave_core::select::Question;
use std::sync::{Arc, Mutex, PoisonError};

/// How many sets of lengths all ranks keep, and ops of their plans: of a rank, on average of all, since ranks have to forget the same.
const KEPT: Limits = Limits { entries: 64, weight: 1 << 18 };
/// What all processes keep for their ranks; ops of all ranks.
const ON_SHELF: Limits = Limits { entries: 64, weight: 1 << 20 };

/// What a choice depends on, besides the team.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    collective: Collective,
    grain: usize,
    association: Association,
    root: usize,
    reach: Reach,
    /// In bytes: one for each rank, or for each pair of them.
    counts: Arc<[usize]>,
}

/// Windows that follow each other and are runs of one plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stretch {
    pub plan: PlanId,
    /// Where the first starts in every block.
    pub from: usize,
    /// Bytes of each.
    pub window: usize,
    /// How many they are.
    pub times: usize,
}

/// A call with uneven blocks, ready to be run.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub stretches: Vec<Stretch>,
    /// Every plan is right when input and output are one buffer.
    pub in_place: bool,
}

/// One rank's.
#[derive(Debug)]
pub(super) struct Known(Recent<Key, Arc<Prepared>>);

impl Known {
    /// Of one of so many ranks.
    pub fn of_one(ranks: usize) -> Known {
        Known(Recent::new(KEPT.shared_by(ranks)))
    }
}

/// A stretch with its proven plan.
#[derive(Debug)]
struct Proven {
    proved: Proved,
    from: usize,
    window: usize,
    times: usize,
}

/// Every stretch of a call, or why there is none.
type Outcome = Result<Arc<Vec<Proven>>, Error>;

/// What ranks and communicators of one process share, by lengths and room for counters.
#[derive(Debug)]
pub(super) struct Shelf(Mutex<Recent<Place<Key>, Outcome>>);

impl Shelf {
    /// Of one of so many processes.
    pub fn of_one(processes: usize) -> Shelf {
        Shelf(Mutex::new(Recent::new(ON_SHELF.shared_by(processes))))
    }
}

fn held(proven: &[Proven]) -> usize {
    proven.iter().map(|p| p.proved.part.held()).sum()
}

fn blocks(key: &Key, ranks: usize) -> Uneven {
    match key.collective {
        Collective::Alltoall => Uneven::by_pair(ranks, key.counts.to_vec()),
        _ => Uneven::by_rank(key.counts.to_vec()),
    }
}

impl Book {
    fn uneven_question(&self, key: &Key, room: &Room<'_>) -> Question {
        let bytes = key.counts.iter().copied().max().unwrap_or(0);
        let even = super::shelf::Key {
            collective: key.collective,
            bytes,
            grain: key.grain,
            association: key.association,
            root: key.root,
            reach: key.reach,
        };
        let uneven = Some(Arc::new(blocks(key, self.shape.ranks())));
        Question { uneven, ..self.question(&even, room) }
    }

    /// Chooses and proves, or takes what is proven already.
    fn proven_uneven(&self, key: &Key, room: &Room<'_>) -> Outcome {
        // A thread that panicked while proving left the map as it was.
        let mut shelf = self.shelf.uneven.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (key.clone(), room.counter_bytes, room.rank);
        if let Some(known) = shelf.get(&place) {
            return known.clone();
        }
        let outcome = self.prove_uneven(key, room).map(Arc::new);
        shelf.insert(place, outcome.clone(), outcome.as_ref().map_or(1, |proven| held(proven)));
        outcome
    }

    fn prove_uneven(&self, key: &Key, room: &Room<'_>) -> Result<Vec<Proven>, Error> {
        let question = self.uneven_question(key, room);
        self.once(&(key, room.counter_bytes), &question, key.reach, room, |chosen, proofs| {
            stretches(key, &question, chosen, proofs, room.rank)
        })
    }
}

/// The stretches of a choice for a call.
fn stretches(
    key: &Key,
    question: &Question,
    chosen: &Chosen,
    proofs: &mut Proofs<'_>,
    rank: Option<usize>,
) -> Result<Vec<Proven>, Error> {
    let window = chosen.window.max(key.grain);
    let mut stretches: Vec<Proven> = Vec::new();
    for from in (0..question.bytes).step_by(window) {
        let window = window.min(question.bytes - from);
        let problem = question.stretch(from..from + window);
        match stretches.last_mut() {
            Some(last) if last.proved.part.plan.blocks == problem.blocks => last.times += 1,
            _ => {
                let proved = proofs.of(chosen, &problem, key.association, rank)?;
                stretches.push(Proven { proved, from, window, times: 1 });
            }
        }
    }
    Ok(stretches)
}

impl Engine {
    /// The plans for blocks of these lengths in bytes; `shared` if all buffers of all ranks lie in heaps.
    ///
    /// # Errors
    /// Those of choosing a plan.
    pub(crate) fn uneven(
        &mut self,
        call: &CallSpec,
        counts: &[usize],
        shared: bool,
    ) -> Result<Arc<Prepared>, Error> {
        let collective = call.collective;
        let longest = counts.iter().copied().max().unwrap_or(0);
        let key = Key {
            collective,
            grain: if collective.folds() { call.element.size() } else { 1 },
            association: self.book().association(call),
            root: if collective.rooted() { call.root } else { 0 },
            reach: if shared { Reach::Heap } else { self.book().reach(longest) },
            counts: counts.into(),
        };
        if let Some(known) = self.book_mut().uneven.0.get(&key) {
            return Ok(Arc::clone(known));
        }
        self.set_up(|engine| engine.make_uneven(key, longest))
    }

    fn make_uneven(&mut self, key: Key, longest: usize) -> Result<Arc<Prepared>, Error> {
        let proven = self.book().proven_uneven(&key, &self.room())?;
        let mut stretches = Vec::with_capacity(proven.len());
        for &Proven { ref proved, from, window, times } in proven.iter() {
            let plan = self.prepare_part(&proved.part, &proved.proof, longest)?;
            stretches.push(Stretch { plan, from, window, times });
        }
        let prepared =
            Arc::new(Prepared { stretches, in_place: proven.iter().all(|p| p.proved.proof.in_place) });
        let ops: usize = proven.iter().map(|p| p.proved.part.ops).sum();
        let weight = ops / self.ranks();
        let old = self.book_mut().uneven.0.insert(key, Arc::clone(&prepared), weight);
        self.give_up(old.iter().flat_map(|p| p.stretches.iter().map(|s| s.plan)));
        Ok(prepared)
    }
}

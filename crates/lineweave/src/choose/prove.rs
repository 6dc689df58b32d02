//! From a question to proven plans: chosen for the call that stands for others, once for all ranks, and proved.

use super::book::{Book, Room};
use super::classes::alike;
use super::reach::Reach;
use super::record::{Proofs, Proved, Record};
use super::shelf::{Key, Outcome, Proven};
use crate::error::Error;
use crate::segment::{Name, Seen};
use crate::tuning::{Because, Chosen};
use lineweave_core::algorithm;
use lineweave_core::collective::Association;
use lineweave_core::plan::Digest;
use lineweave_core::select::{self, Question};
use lineweave_core::units::LINE;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, PoisonError};

impl Book {
    /// Chooses and proves, or takes what is proven already. Roots that sit alike have one plan, in which ranks change parts.
    pub(crate) fn proven(&self, key: &Key, room: &Room<'_>) -> Outcome {
        let (first, parts) = self.first(key);
        if first == *key {
            return self.proven_first(&first, room);
        }
        let player = |rank: usize| parts.iter().position(|&player| player == rank).unwrap_or(rank);
        let proven = self.proven_first(&first, &Room { rank: room.rank.map(player), ..*room })?;
        let renamed =
            |Proved { part, proof }: &Proved| Proved { part: part.renamed(&parts), proof: proof.renamed() };
        let Proven { window, ref plan, ref tail } = *proven;
        Ok(Arc::new(Proven { window, plan: renamed(plan), tail: tail.as_ref().map(renamed) }))
    }

    /// The class that a call belongs to, with plans that may be cut for it; or its own plans, where there are none.
    pub(crate) fn proven_for(&self, key: &Key, room: &Room<'_>) -> Result<(Key, Arc<Proven>), Error> {
        if let Some(class) = key.class() {
            if let Some(proven) = self.proven_class(&class, room)? {
                return Ok((class, proven));
            }
        }
        let whole = Key { cut: false, ..*key };
        Ok((whole, self.proven(&whole, room)?))
    }

    /// Plans of a class that may be cut, if it has some.
    pub(crate) fn proven_class(&self, class: &Key, room: &Room<'_>) -> Result<Option<Arc<Proven>>, Error> {
        match self.proven(class, room) {
            Ok(proven) => Ok(Some(proven).filter(|proven| proven.shortens())),
            // All ranks come to the same. That a rank failed is no reason to try another plan.
            Err(Error::NoPlan { .. } | Error::Plan(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// The call that this one has its choice and its proofs from: with the first root that sits like its own, if its plan can be renamed and nothing
    /// is asked of the order. And who plays whose part.
    pub(crate) fn first(&self, key: &Key) -> (Key, Vec<usize>) {
        if key.root == 0 || !key.collective.can_be_renamed() || key.association != Association::Free {
            return (*key, Vec::new());
        }
        let (root, parts) = self.shape.alike(key.root);
        (Key { root, ..*key }, parts)
    }

    fn proven_first(&self, key: &Key, room: &Room<'_>) -> Outcome {
        // A thread that panicked while proving left the map as it was.
        let mut shelf = self.shelf.even.lock().unwrap_or_else(PoisonError::into_inner);
        let place = (*key, room.counter_bytes, room.rank);
        if let Some(known) = shelf.get(&place) {
            return known.clone();
        }
        let outcome = self.prove(key, room).map(Arc::new);
        shelf.insert(place, outcome.clone(), outcome.as_ref().map_or(1, |proven| proven.held()));
        outcome
    }

    fn prove(&self, key: &Key, room: &Room<'_>) -> Result<Proven, Error> {
        let question = self.question(key, room);
        self.once(&(key, room.counter_bytes), &question, key.reach, room, |chosen, proofs| {
            Book::plans(key, &question, chosen, proofs, room.rank)
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
        match room.records.map(|(pool, order)| pool.await_record(self.name(about), order, self.shape.ranks()))
        {
            Some(Seen::Found(words)) => {
                if let Some(Record { chosen, proofs }) = Record::read(&words, question.collective) {
                    return make(&chosen, &mut Proofs::Told(proofs.iter()));
                }
            }
            Some(Seen::Mine(mine)) => claim = Some(mine),
            Some(Seen::Nothing) | None => {}
        }
        // Who makes the others wait looks whether an earlier program did it.
        let name = self.kept_name(about, question);
        if let Some(words) = self.tuning.record(name) {
            let record = Record::read(&words, question.collective);
            let told = record.map(|r| make(&r.chosen, &mut Proofs::Told(r.proofs.iter())));
            if let Some(Ok(made)) = told {
                if let Some(claim) = claim {
                    claim.give(&words);
                }
                return Ok(made);
            }
        }
        let chosen = self.choose(question, reach)?;
        let mut proofs = Vec::new();
        let made = make(&chosen, &mut Proofs::Made(&mut proofs))?;
        let words = Record { chosen, proofs }.words();
        if let Some(claim) = claim {
            claim.give(&words);
        }
        self.tuning.keep(name, &words);
        Ok(made)
    }

    fn name(&self, about: &impl Hash) -> Name {
        [1, 2].map(|seed| {
            let mut digest = Digest::new(self.place ^ seed);
            about.hash(&mut digest);
            digest.finish()
        })
    }

    /// Among teams of all programs: what is the same for all ranks of one is not for others.
    fn kept_name(&self, about: &impl Hash, question: &Question) -> Name {
        self.name(about).map(|seed| {
            let mut digest = Digest::new(seed);
            (question.box_bytes, question.direct, question.attach).hash(&mut digest);
            digest.finish()
        })
    }

    /// The plans of a choice for a call, or a rank's parts of them.
    pub(crate) fn plans(
        key: &Key,
        question: &Question,
        chosen: &Chosen,
        proofs: &mut Proofs<'_>,
        rank: Option<usize>,
    ) -> Result<Proven, Error> {
        let mut proven = |bytes: usize| {
            let problem = if key.cut { question.cuttable(bytes) } else { question.window(bytes) };
            let proved = proofs.of(chosen, &problem, key.association, rank)?;
            // What was chosen fits; how blocks lie may have made a difference.
            match key.cut && !question.fits(&proved.part.plan, LINE) {
                true => Err(Error::NoPlan {
                    collective: key.collective,
                    bytes,
                    ranks: question.shape.ranks(),
                    why: format!("{} does not fit when it is to be cut", proved.part.plan.name()),
                }),
                false => Ok(proved),
            }
        };
        let window = chosen.window.max(key.grain);
        let rest = key.bytes % window;
        Ok(Proven {
            window,
            plan: proven(if key.bytes < window { key.bytes } else { window })?,
            tail: if rest > 0 && key.bytes > window { Some(proven(rest)?) } else { None },
        })
    }

    /// The best by the model of those that reach other ranks' buffers.
    pub(crate) fn best_direct(&self, question: &Question) -> Option<Chosen> {
        let choice = select::select(&self.tuning.model, question).ok()?;
        let best = choice.considered.into_iter().find(|c| c.reaches(question))?;
        let algorithm = algorithm::find(question.collective, best.name).ok()?;
        Some(Chosen { algorithm, params: best.params, window: best.window, because: Because::Predicted })
    }

    pub(crate) fn choose(&self, question: &Question, reach: Reach) -> Result<Chosen, Error> {
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
        let key = Key { collective, bytes, grain, association, root, reach, cut: false };
        let place = (key, counter_bytes);
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

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::call::CallSpec;
    use crate::choose::library;
    use crate::flag::WakeFence;
    use crate::segment::Segment;
    use crate::team::Team;
    use lineweave_core::collective::Collective;
    use lineweave_core::topology::Shape;
    use std::cell::Cell;

    /// A call with root 0 of which nothing is asked of the order.
    fn key(collective: Collective, bytes: usize, grain: usize) -> Key {
        Key {
            collective,
            bytes,
            grain,
            association: Association::Free,
            root: 0,
            reach: Reach::Own,
            cut: false,
        }
    }

    #[test]
    fn a_choice_for_a_length_alike_is_a_plan_for_every_length_and_root() {
        let charter = Team::new(5).unwrap().charter().clone();
        let segment = Segment::create(5, charter.box_bytes, b"").unwrap();
        let room = Room { geometry: segment.geometry(), counter_bytes: 4096, records: None, rank: None };
        let book = Book::new(&charter, false);
        for collective in Collective::ALL.into_iter().filter(|c| c.moves_data()) {
            for bytes in [72, 88, 1016, 1032, 8200] {
                for root in if collective.rooted() { 0..5 } else { 0..1 } {
                    let key = Key { root, ..key(collective, bytes, 8) };
                    let proven = book
                        .proven(&key, &room)
                        .unwrap_or_else(|e| panic!("{collective} {bytes} {root}: {e}"));
                    assert_eq!(
                        (proven.plan.part.plan.bytes, proven.plan.part.plan.root.index()),
                        (proven.window.min(bytes), root)
                    );
                }
            }
        }
    }

    #[test]
    fn roots_that_sit_alike_are_chosen_and_proved_for_once() {
        let charter = Team::new(5).unwrap().charter().clone();
        let segment = Segment::create(5, charter.box_bytes, b"").unwrap();
        let room = Room { geometry: segment.geometry(), counter_bytes: 4096, records: None, rank: None };
        let book = Book::with(Shape::flat(5), library::tuning(&charter.tuning), false, false, false);
        for collective in [Collective::Bcast, Collective::Reduce] {
            for root in 0..5 {
                let key = Key { root, ..key(collective, 1000, 8) };
                let proven = book.proven(&key, &room).unwrap();
                assert_eq!(proven.plan.part.plan.root.index(), root);
                for plan in proven.plans().map(|proved| &proved.part.plan) {
                    assert_eq!(lineweave_core::verify::verify(plan).err(), None, "{} to {root}", plan.name());
                }
                let on_shelf = book.shelf.even.lock().unwrap().get(&(key, 4096, None)).is_some();
                assert_eq!(on_shelf, root == 0);
                let ordered = Key { association: Association::RankOrder, ..key };
                assert_eq!(book.first(&ordered).0, ordered, "a new name changes the order");
            }
        }
    }

    #[test]
    fn one_process_chooses_and_proves_and_the_others_take_it() {
        let mut charter = Team::new(2).unwrap().charter().clone();
        charter.tuning.kept = None;
        let segment = Segment::create(2, charter.box_bytes, b"").unwrap();
        let records = Some((segment.pool().as_ref(), WakeFence::Full));
        let room = Room { geometry: segment.geometry(), counter_bytes: 4096, records, rank: None };
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
                Book::plans(&key, &question, chosen, proofs, None)
            })
        };
        let (first, second) = (ask(&book).unwrap(), ask(&Book::new(&charter, false)).unwrap());
        assert_eq!(chose.get(), 1);
        assert_eq!((&first.plan, &first.tail, first.window), (&second.plan, &second.tail, second.window));
        // A record of a build that makes other plans.
        let name = book.name(&(key, 100usize));
        let Seen::Mine(claim) = segment.pool().await_record(name, WakeFence::Full, 2) else {
            panic!("nobody has it")
        };
        let chosen = book.choose(&question, key.reach).unwrap();
        claim.give(&Record { chosen, proofs: vec![(1, first.plan.proof)] }.words());
        let foreign = book.once(&(key, 100usize), &question, key.reach, &room, |chosen, proofs| {
            Book::plans(&key, &question, chosen, proofs, None)
        });
        assert!(matches!(foreign, Err(Error::Foreign { .. })));
    }

    #[test]
    fn a_program_takes_what_an_earlier_one_kept_and_proves_what_it_did_not() {
        let directory = std::env::temp_dir().join(format!("lineweave-kept-plans-{}", std::process::id()));
        let mut charter = Team::new(3).unwrap().charter().clone();
        charter.tuning.kept = Some(directory.join("plans.bin"));
        let segment = Segment::create(3, charter.box_bytes, b"").unwrap();
        let room = Room { geometry: segment.geometry(), counter_bytes: 4096, records: None, rank: None };
        let (key, reach) = (key(Collective::Allreduce, 800, 8), Reach::Own);
        // A book of its own, whose shelf is empty, as in another program.
        let fresh = |charter: &crate::charter::Charter| {
            let mut book = Book::new(charter, false);
            book.shelf = Arc::new(crate::choose::shelf::Shelves::of_one(2));
            book
        };
        let ask = |charter: &crate::charter::Charter| {
            let (book, made) = (fresh(charter), Cell::new(0));
            let question = book.question(&key, &room);
            let plans = book.once(&(key, 4096usize), &question, reach, &room, |chosen, proofs| {
                made.set(made.get() + usize::from(matches!(proofs, Proofs::Made(_))));
                Book::plans(&key, &question, chosen, proofs, None)
            });
            (plans.unwrap().plan, made.get())
        };
        let (first, made) = ask(&charter);
        assert_eq!(made, 1);
        assert_eq!(ask(&charter), (first.clone(), 0), "taken from the file");
        // Boxes of another size are another question.
        charter.box_bytes /= 2;
        let small = Segment::create(3, charter.box_bytes, b"").unwrap();
        let room = Room { geometry: small.geometry(), counter_bytes: 4096, records: None, rank: None };
        let book = fresh(&charter);
        let question = book.question(&key, &room);
        let proved = Cell::new(false);
        book.once(&(key, 4096usize), &question, reach, &room, |chosen, proofs| {
            proved.set(matches!(proofs, Proofs::Made(_)));
            Book::plans(&key, &question, chosen, proofs, None)
        })
        .unwrap();
        assert!(proved.get());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_kept_proof_of_another_plan_is_not_taken() {
        let directory = std::env::temp_dir().join(format!("lineweave-kept-other-{}", std::process::id()));
        let mut charter = Team::new(2).unwrap().charter().clone();
        charter.tuning.kept = Some(directory.join("plans.bin"));
        let segment = Segment::create(2, charter.box_bytes, b"").unwrap();
        let room = Room { geometry: segment.geometry(), counter_bytes: 4096, records: None, rank: None };
        let (key, reach) = (key(Collective::Barrier, 0, 1), Reach::Own);
        let book = Book::new(&charter, false);
        let question = book.question(&key, &room);
        let seen = std::cell::RefCell::new(Vec::new());
        let ask = || {
            book.once(&(key, 1usize), &question, reach, &room, |chosen, proofs| {
                seen.borrow_mut().push(matches!(proofs, Proofs::Told(_)));
                Book::plans(&key, &question, chosen, proofs, None)
            })
            .unwrap()
        };
        let proof = ask().plan.proof;
        let chosen = book.choose(&question, reach).unwrap();
        let record = Record { chosen, proofs: vec![(1, proof)] }.words();
        book.tuning.keep(book.kept_name(&(key, 1usize), &question), &record);
        let _ = ask();
        assert_eq!(*seen.borrow(), [false, true, false], "told, found to be another one, and proved");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

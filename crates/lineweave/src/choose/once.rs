//! What is chosen and proved once for all ranks: by one process of a team for the others, and by one program for those after it.

use super::book::{Book, Room};
use super::reach::Reach;
use super::record::{Proofs, Record};
use crate::error::Error;
use crate::segment::{Name, Seen};
use crate::tuning::Chosen;
use lineweave_core::plan::Digest;
use lineweave_core::select::Question;
use std::hash::{Hash, Hasher};

impl Book {
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
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::prove::tests::key;
    use super::*;
    use crate::call::CallSpec;
    use crate::flag::WakeFence;
    use crate::segment::Segment;
    use crate::team::Team;
    use lineweave_core::collective::Collective;
    use std::cell::Cell;
    use std::sync::Arc;

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

//! Choices and proofs that are made once for all ranks: by one process of a team for the others, and by one program for those after it.

use super::peer_access::PeerAccess;
use super::prove::no_plan;
use super::record::{Proofs, Record};
use super::selector::{PlanBudget, PlanSelector};
use crate::error::Error;
use crate::segment::{RecordId, Seen};
use crate::tuning::Chosen;
use lineweave_core::plan::Digest;
use lineweave_core::select::Question;
use std::hash::{Hash, Hasher};

/// Origin of a choice.
#[derive(Clone, Copy)]
pub(super) enum Source {
    /// A choice that an earlier program kept, else the tuning's, for plans with this access.
    Tuning(PeerAccess),
    /// A simple algorithm, without a search. It is not kept.
    Simple,
}

impl PlanSelector {
    /// Returns the result of `make` for the choice that answers a question. One process of the team chooses and proves; the others take
    /// its choice and its proofs. `about` is what the choice depends on, besides the tuning and where the ranks sit.
    pub(super) fn once<T>(
        &self,
        about: &impl Hash,
        question: &Question,
        source: Source,
        room: &PlanBudget<'_>,
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
        let name = matches!(source, Source::Tuning(_)).then(|| self.kept_name(about, question));
        if let Some(words) = name.and_then(|name| self.tuning.record(name)) {
            let record = Record::read(&words, question.collective);
            let told = record.map(|r| make(&r.chosen, &mut Proofs::Told(r.proofs.iter())));
            if let Some(Ok(made)) = told {
                if let Some(claim) = claim {
                    claim.give(&words);
                }
                return Ok(made);
            }
        }
        let chosen = match source {
            Source::Tuning(access) => self.choose(question, access)?,
            Source::Simple => self
                .tuning
                .provisional(question)
                .ok_or_else(|| no_plan(question, &"no simple algorithm applies"))?,
        };
        let mut proofs = Vec::new();
        let made = make(&chosen, &mut Proofs::Made(&mut proofs))?;
        let words = Record { chosen, proofs }.words();
        if let Some(claim) = claim {
            claim.give(&words);
        }
        if let Some(name) = name {
            self.tuning.keep(name, &words);
        }
        Ok(made)
    }

    fn name(&self, about: &impl Hash) -> RecordId {
        [1, 2].map(|seed| {
            let mut digest = Digest::new(self.place ^ seed);
            about.hash(&mut digest);
            digest.finish()
        })
    }

    /// Among teams of all programs: what is the same for all ranks of one is not for others.
    pub(super) fn kept_name(&self, about: &impl Hash, question: &Question) -> RecordId {
        self.name(about).map(|seed| {
            let mut digest = Digest::new(seed);
            (question.box_bytes, question.direct, question.attach).hash(&mut digest);
            digest.finish()
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::prove::tests::{budget, key, team};
    use super::*;
    use crate::call::CallSpec;
    use crate::flag::WakeFence;
    use crate::segment::Segment;
    use lineweave_core::collective::Collective;
    use std::cell::Cell;
    use std::sync::Arc;

    #[test]
    fn one_process_chooses_and_proves_and_the_others_take_it() {
        let (mut config, segment) = team(2);
        config.tuning.kept = None;
        let records = Some((segment.pool().as_ref(), WakeFence::Full));
        let room = PlanBudget { records, ..budget(&segment) };
        let selector = PlanSelector::new(&config, false);
        let call = CallSpec {
            collective: Collective::Allreduce,
            element: crate::ElementType::F64,
            count: 100,
            operator: Some(crate::Operator::Sum),
            root: 0,
        };
        let key = selector.key_of(&call);
        let question = selector.question(&key, &room);
        let chose = Cell::new(0);
        let ask = |selector: &PlanSelector| {
            selector.once(
                &(key, 4096usize),
                &question,
                Source::Tuning(key.access),
                &room,
                |chosen, proofs| {
                    chose.set(chose.get() + usize::from(matches!(proofs, Proofs::Made(_))));
                    PlanSelector::plans(&key, &question, chosen, proofs, None)
                },
            )
        };
        let (first, second) = (ask(&selector).unwrap(), ask(&PlanSelector::new(&config, false)).unwrap());
        assert_eq!(chose.get(), 1);
        assert_eq!((&first.plan, &first.tail, first.window), (&second.plan, &second.tail, second.window));
        // A record of a build that makes other plans.
        let name = selector.name(&(key, 100usize));
        let Seen::Mine(claim) = segment.pool().await_record(name, WakeFence::Full, 2) else {
            panic!("nobody has it")
        };
        let chosen = selector.choose(&question, key.access).unwrap();
        claim.give(&Record { chosen, proofs: vec![(1, first.plan.proof)] }.words());
        let foreign = selector.once(
            &(key, 100usize),
            &question,
            Source::Tuning(key.access),
            &room,
            |chosen, proofs| PlanSelector::plans(&key, &question, chosen, proofs, None),
        );
        assert!(matches!(foreign, Err(Error::Foreign { .. })));
    }

    #[test]
    fn a_program_takes_what_an_earlier_one_kept_and_proves_what_it_did_not() {
        let directory = std::env::temp_dir().join(format!("lineweave-kept-plans-{}", std::process::id()));
        let (mut config, segment) = team(3);
        config.tuning.kept = Some(directory.join("plans.bin"));
        let room = budget(&segment);
        let (key, access) = (key(Collective::Allreduce, 800, 8), PeerAccess::None);
        // A selector of its own with an empty cache, as in another program.
        let fresh = |config: &crate::config::TeamConfig| {
            let mut selector = PlanSelector::new(config, false);
            selector.proven = Arc::new(crate::choose::proven::ProvenPlans::of_one(2));
            selector
        };
        let ask = |config: &crate::config::TeamConfig| {
            let (selector, made) = (fresh(config), Cell::new(0));
            let question = selector.question(&key, &room);
            let plans = selector.once(
                &(key, 4096usize),
                &question,
                Source::Tuning(access),
                &room,
                |chosen, proofs| {
                    made.set(made.get() + usize::from(matches!(proofs, Proofs::Made(_))));
                    PlanSelector::plans(&key, &question, chosen, proofs, None)
                },
            );
            (plans.unwrap().plan, made.get())
        };
        assert!(!fresh(&config).has_kept(&key, &room));
        let (first, made) = ask(&config);
        assert_eq!(made, 1);
        assert_eq!(ask(&config), (first.clone(), 0), "taken from the file");
        // Boxes of another size are another question.
        config.box_bytes /= 2;
        let small = Segment::create(3, config.box_bytes, b"").unwrap();
        let room = budget(&small);
        let selector = fresh(&config);
        let question = selector.question(&key, &room);
        let proved = Cell::new(false);
        selector
            .once(&(key, 4096usize), &question, Source::Tuning(access), &room, |chosen, proofs| {
                proved.set(matches!(proofs, Proofs::Made(_)));
                PlanSelector::plans(&key, &question, chosen, proofs, None)
            })
            .unwrap();
        assert!(proved.get());
        std::fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn a_kept_proof_of_another_plan_is_not_taken() {
        let directory = std::env::temp_dir().join(format!("lineweave-kept-other-{}", std::process::id()));
        let (mut config, segment) = team(2);
        config.tuning.kept = Some(directory.join("plans.bin"));
        let room = budget(&segment);
        let (key, access) = (key(Collective::Barrier, 0, 1), PeerAccess::None);
        let selector = PlanSelector::new(&config, false);
        let question = selector.question(&key, &room);
        let seen = std::cell::RefCell::new(Vec::new());
        let ask = || {
            selector
                .once(&(key, 1usize), &question, Source::Tuning(access), &room, |chosen, proofs| {
                    seen.borrow_mut().push(matches!(proofs, Proofs::Told(_)));
                    PlanSelector::plans(&key, &question, chosen, proofs, None)
                })
                .unwrap()
        };
        let proof = ask().plan.proof;
        let chosen = selector.choose(&question, access).unwrap();
        let record = Record { chosen, proofs: vec![(1, proof)] }.words();
        selector.tuning.keep(selector.kept_name(&(key, 1usize), &question), &record);
        let _ = ask();
        assert_eq!(*seen.borrow(), [false, true, false], "told, found to be another one, and proved");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

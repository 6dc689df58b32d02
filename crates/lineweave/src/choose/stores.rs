//! Stores of choices and proofs, so that they are made once for all ranks: the team's memory, by which one process makes them for the others, and the
//! file of the tuning, by which one program makes them for those after it. Both are given; without either, everybody chooses and proves.

use super::prove::no_plan;
use super::proven::Source;
use super::record::{Proofs, Record};
use super::request::PlanRequest;
use super::selector::{PlanBudget, PlanSelector};
use crate::error::Error;
use crate::segment::{RecordId, Seen};
use crate::tuning::Chosen;
use lineweave_core::plan::Digest;
use lineweave_core::select::Question;
use std::hash::{Hash, Hasher};

impl PlanSelector {
    /// Returns the result of `make` for the choice that answers a request. One process of the team chooses and proves; the others take
    /// its choice and its proofs.
    pub(super) fn once<T>(
        &self,
        request: &PlanRequest,
        question: &Question,
        source: Source,
        room: &PlanBudget<'_>,
        make: impl Fn(&Chosen, &mut Proofs<'_>) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let told = |words: &[u64]| {
            let record = Record::read(words, request.collective)?;
            Some(make(&record.chosen, &mut Proofs::Told(record.proofs.iter())))
        };
        let (name, ranks) = (self.name(request, source, room), self.shape.ranks());
        let mut claim = None;
        match room.records.map(|(pool, order)| pool.await_record(name, order, ranks)) {
            Some(Seen::Found(words)) => {
                if let Some(made) = told(&words) {
                    return made;
                }
            }
            Some(Seen::Mine(mine)) => claim = Some(mine),
            Some(Seen::Nothing) | None => {}
        }
        // Who makes the others wait looks whether an earlier program did it.
        let kept = (source == Source::Tuning).then(|| self.kept_name(request, question, room));
        if let Some(words) = kept.and_then(|name| self.tuning.record(name)) {
            if let Some(Ok(made)) = told(&words) {
                if let Some(claim) = claim {
                    claim.give(&words);
                }
                return Ok(made);
            }
        }
        let chosen = match source {
            Source::Tuning => self.choose(request, question)?,
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
        if let Some(name) = kept {
            self.tuning.keep(name, &words);
        }
        Ok(made)
    }

    fn name(&self, request: &PlanRequest, source: Source, room: &PlanBudget<'_>) -> RecordId {
        [1, 2].map(|seed| {
            let mut digest = Digest::new(self.place ^ seed);
            (request, source, room.counter_bytes).hash(&mut digest);
            digest.finish()
        })
    }

    /// Among teams of all programs: what is the same for all ranks of one is not for others.
    pub(super) fn kept_name(
        &self,
        request: &PlanRequest,
        question: &Question,
        room: &PlanBudget<'_>,
    ) -> RecordId {
        self.name(request, Source::Tuning, room).map(|seed| {
            let mut digest = Digest::new(seed);
            (question.box_bytes, question.direct, question.attach).hash(&mut digest);
            digest.finish()
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::prove::tests::{budget, request, team};
    use super::super::proven::Proven;
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
        let request = selector.request_of(&call);
        let question = selector.question(&request, &room);
        let chose = Cell::new(0);
        let ask = |selector: &PlanSelector| {
            selector.once(&request, &question, Source::Tuning, &room, |chosen, proofs| {
                chose.set(chose.get() + usize::from(matches!(proofs, Proofs::Made(_))));
                PlanSelector::plans(&request, &question, chosen, proofs, None)
            })
        };
        let (first, second) = (ask(&selector).unwrap(), ask(&PlanSelector::new(&config, false)).unwrap());
        assert_eq!(chose.get(), 1);
        let plans = |proven: &Proven| proven.0.iter().map(|run| run.plan.clone()).collect::<Vec<_>>();
        assert_eq!(plans(&first), plans(&second));
        // A record of a build that makes other plans.
        let room = PlanBudget { counter_bytes: 100, ..room };
        let name = selector.name(&request, Source::Tuning, &room);
        let Seen::Mine(claim) = segment.pool().await_record(name, WakeFence::Full, 2) else {
            panic!("nobody has it")
        };
        let chosen = selector.choose(&request, &question).unwrap();
        claim.give(&Record { chosen, proofs: vec![(1, first.0[0].plan.proof)] }.words());
        let foreign = selector.once(&request, &question, Source::Tuning, &room, |chosen, proofs| {
            PlanSelector::plans(&request, &question, chosen, proofs, None)
        });
        assert!(matches!(foreign, Err(Error::Foreign { .. })));
    }

    #[test]
    fn a_program_takes_what_an_earlier_one_kept_and_proves_what_it_did_not() {
        let directory = std::env::temp_dir().join(format!("lineweave-kept-plans-{}", std::process::id()));
        let (mut config, segment) = team(3);
        config.tuning.kept = Some(directory.join("plans.bin"));
        let room = budget(&segment);
        let request = request(Collective::Allreduce, 800, 8);
        // A selector of its own with an empty cache, as in another program.
        let fresh = |config: &crate::config::TeamConfig| {
            let mut selector = PlanSelector::new(config, false);
            selector.proven = Arc::new(crate::choose::proven::ProvenPlans::of_one(2));
            selector
        };
        let ask = |config: &crate::config::TeamConfig| {
            let (selector, made) = (fresh(config), Cell::new(0));
            let question = selector.question(&request, &room);
            let plans = selector.once(&request, &question, Source::Tuning, &room, |chosen, proofs| {
                made.set(made.get() + usize::from(matches!(proofs, Proofs::Made(_))));
                PlanSelector::plans(&request, &question, chosen, proofs, None)
            });
            (plans.unwrap().0[0].plan.clone(), made.get())
        };
        assert!(!fresh(&config).has_kept(&request, &room));
        let (first, made) = ask(&config);
        assert_eq!(made, 1);
        assert_eq!(ask(&config), (first.clone(), 0), "taken from the file");
        // Boxes of another size are another question.
        config.box_bytes /= 2;
        let small = Segment::create(3, config.box_bytes, b"").unwrap();
        let room = budget(&small);
        let selector = fresh(&config);
        let question = selector.question(&request, &room);
        let proved = Cell::new(false);
        selector
            .once(&request, &question, Source::Tuning, &room, |chosen, proofs| {
                proved.set(matches!(proofs, Proofs::Made(_)));
                PlanSelector::plans(&request, &question, chosen, proofs, None)
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
        let request = request(Collective::Barrier, 0, 1);
        let selector = PlanSelector::new(&config, false);
        let question = selector.question(&request, &room);
        let seen = std::cell::RefCell::new(Vec::new());
        let ask = || {
            selector
                .once(&request, &question, Source::Tuning, &room, |chosen, proofs| {
                    seen.borrow_mut().push(matches!(proofs, Proofs::Told(_)));
                    PlanSelector::plans(&request, &question, chosen, proofs, None)
                })
                .unwrap()
        };
        let proof = ask().0[0].plan.proof;
        let chosen = selector.choose(&request, &question).unwrap();
        let record = Record { chosen, proofs: vec![(1, proof)] }.words();
        selector.tuning.keep(selector.kept_name(&request, &question, &room), &record);
        let _ = ask();
        assert_eq!(*seen.borrow(), [false, true, false], "told, found to be another one, and proved");
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

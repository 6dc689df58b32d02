//! Choice and proof of plans: they are chosen for the call that stands for others, once for all ranks, and proved.

use super::classes::alike;
use super::once::Source;
use super::peer_access::{CacheKey, PeerAccess};
use super::proven::{Key, Outcome, Proven};
use super::record::{Proofs, Proved};
use super::selector::{PlanBudget, PlanSelector};
use crate::error::Error;
use crate::tuning::{Because, Chosen};
use lineweave_core::algorithm;
use lineweave_core::collective::Association;
use lineweave_core::select::{self, Question};
use lineweave_core::units::LINE;
use std::sync::Arc;

impl PlanSelector {
    /// Chooses and proves, or takes what is proven already. Roots that sit alike have one plan, in which ranks change parts.
    pub(crate) fn proven(&self, key: &Key, room: &PlanBudget<'_>) -> Outcome {
        let (place, parts) = self.place_of(key, room);
        let (first, _, rank) = place;
        let outcome = self.proven.even.get_or_make(&place, || {
            let outcome = self.prove(&first, &PlanBudget { rank, ..*room }).map(Arc::new);
            let weight = outcome.as_ref().map_or(1, |proven| proven.held());
            (outcome, weight)
        });
        if first == *key {
            return outcome;
        }
        let proven = outcome?;
        let renamed =
            |Proved { part, proof }: &Proved| Proved { part: part.renamed(&parts), proof: proof.renamed() };
        let Proven { window, ref plan, ref tail } = *proven;
        Ok(Arc::new(Proven { window, plan: renamed(plan), tail: tail.as_ref().map(renamed) }))
    }

    /// The class that a call belongs to, with plans that may be cut for it; or its own plans, where there are none.
    pub(crate) fn proven_for(&self, key: &Key, room: &PlanBudget<'_>) -> Result<(Key, Arc<Proven>), Error> {
        if let Some(class) = key.class() {
            if let Some(proven) = self.proven_class(&class, room)? {
                return Ok((class, proven));
            }
        }
        let whole = Key { cut: false, ..*key };
        Ok((whole, self.proven(&whole, room)?))
    }

    /// Plans of a class that may be cut, if it has some.
    pub(crate) fn proven_class(
        &self,
        class: &Key,
        room: &PlanBudget<'_>,
    ) -> Result<Option<Arc<Proven>>, Error> {
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

    /// Returns the place of a call's plans in the cache: that of the call which it has its proofs from, for the rank whose part this one plays there.
    /// And who plays whose part.
    pub(super) fn place_of(&self, key: &Key, room: &PlanBudget<'_>) -> (CacheKey<Key>, Vec<usize>) {
        let (first, parts) = self.first(key);
        let player = |rank: usize| parts.iter().position(|&player| player == rank).unwrap_or(rank);
        ((first, room.counter_bytes, room.rank.map(player)), parts)
    }

    fn prove(&self, key: &Key, room: &PlanBudget<'_>) -> Result<Proven, Error> {
        let question = self.question(key, room);
        self.once(
            &(key, room.counter_bytes),
            &question,
            Source::Tuning(key.access),
            room,
            |chosen, proofs| PlanSelector::plans(key, &question, chosen, proofs, room.rank),
        )
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

    pub(crate) fn choose(&self, question: &Question, access: PeerAccess) -> Result<Chosen, Error> {
        if let Some(chosen) = self.choose_alike(question, access) {
            return Ok(chosen);
        }
        self.tuning.choose(question, access.team()).map_err(|e| no_plan(question, &e))
    }

    /// Returns the choice that would be made if nothing were forced.
    pub(crate) fn choose_unforced(&self, question: &Question, access: PeerAccess) -> Result<Chosen, Error> {
        self.tuning.choose_unforced(question, access.team()).map_err(|e| no_plan(question, &e))
    }

    /// Returns the choice of this length's size class, if that choice also fits this length: a program with a thousand lengths chooses a few
    /// dozen times. The plan is still made and proved for the length that is asked for.
    fn choose_alike(&self, question: &Question, access: PeerAccess) -> Option<Chosen> {
        let bytes = alike(question.bytes, question.grain);
        if !self.tuning.predicts(question, access.team()) {
            return None;
        }
        let Question { collective, grain, association, root, counter_bytes, .. } = *question;
        let key = Key { collective, bytes, grain, association, root, access, cut: false };
        let chosen = self.proven.alike.get_or_make(&(key, counter_bytes, question.box_bytes), || {
            (self.tuning.choose(&Question { bytes, ..question.clone() }, access.team()).ok(), 1)
        })?;
        if bytes == question.bytes {
            return Some(chosen);
        }
        let chosen = Chosen { window: chosen.window.min(question.bytes), ..chosen };
        let plan = chosen.plan(question, chosen.window).ok()?;
        let rest = question.bytes % chosen.window;
        let tail = rest == 0 || chosen.plan(question, rest).is_ok();
        let fits = tail && question.fits(&plan, self.tuning.model.line_bytes);
        (fits && question.associates(chosen.algorithm, &chosen.params)).then_some(chosen)
    }
}

pub(super) fn no_plan(question: &Question, why: &dyn std::fmt::Display) -> Error {
    Error::NoPlan {
        collective: question.collective,
        bytes: question.bytes,
        ranks: question.shape.ranks(),
        why: why.to_string(),
    }
}

#[cfg(all(test, not(loom)))]
pub(super) mod tests {
    use super::*;
    use crate::choose::process_cache;
    use crate::config::TeamConfig;
    use crate::segment::Segment;
    use crate::team::Team;
    use lineweave_core::collective::Collective;
    use lineweave_core::topology::Shape;

    /// A call with root 0 of which nothing is asked of the order.
    pub(in crate::choose) fn key(collective: Collective, bytes: usize, grain: usize) -> Key {
        Key {
            collective,
            bytes,
            grain,
            association: Association::Free,
            root: 0,
            access: PeerAccess::None,
            cut: false,
        }
    }

    /// Returns a team's configuration and memory.
    pub(in crate::choose) fn team(ranks: usize) -> (TeamConfig, Segment) {
        let config = Team::new(ranks).unwrap().config().clone();
        let segment = Segment::create(ranks, config.box_bytes, b"").unwrap();
        (config, segment)
    }

    /// Returns what plans may use of a memory.
    pub(in crate::choose) fn budget(segment: &Segment) -> PlanBudget<'_> {
        PlanBudget { geometry: segment.geometry(), counter_bytes: 4096, records: None, rank: None }
    }

    #[test]
    fn a_choice_for_a_length_alike_is_a_plan_for_every_length_and_root() {
        let (config, segment) = team(5);
        let room = budget(&segment);
        let selector = PlanSelector::new(&config, false);
        for collective in Collective::ALL.into_iter().filter(|c| c.moves_data()) {
            for bytes in [72, 88, 1016, 1032, 8200] {
                for root in if collective.rooted() { 0..5 } else { 0..1 } {
                    let key = Key { root, ..key(collective, bytes, 8) };
                    let proven = selector
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
        let (config, segment) = team(5);
        let room = budget(&segment);
        let selector =
            PlanSelector::with(Shape::flat(5), process_cache::tuning(&config.tuning), false, false, false);
        for collective in [Collective::Bcast, Collective::Reduce] {
            for root in 0..5 {
                let key = Key { root, ..key(collective, 1000, 8) };
                let proven = selector.proven(&key, &room).unwrap();
                assert_eq!(proven.plan.part.plan.root.index(), root);
                for plan in proven.plans().map(|proved| &proved.part.plan) {
                    assert_eq!(lineweave_core::verify::verify(plan).err(), None, "{} to {root}", plan.name());
                }
                let on_shelf = selector.proven.even.known(&(key, 4096, None)).is_some();
                assert_eq!(on_shelf, root == 0);
                let ordered = Key { association: Association::RankOrder, ..key };
                assert_eq!(selector.first(&ordered).0, ordered, "a new name changes the order");
            }
        }
    }
}

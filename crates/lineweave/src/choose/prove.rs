//! Choice and proof of plans: they are chosen for the request that stands for others, once for all ranks, and proved.

use super::peer_access::PeerAccess;
use super::proven::{Outcome, Proven, ProvenKey, Source, WindowRun};
use super::record::{Proofs, Proved};
use super::request::{alike, Lengths, PlanRequest};
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
    pub(super) fn proven(&self, request: &PlanRequest, source: Source, room: &PlanBudget<'_>) -> Outcome {
        let (key, parts) = self.proven_key(request, source, room);
        let outcome = self.proven.plans.get_or_make(&key, || {
            let room = PlanBudget { rank: key.rank, ..*room };
            let outcome = self.prove(&key.request, source, &room).map(Arc::new);
            let weight = outcome.as_ref().map_or(1, |proven| proven.held());
            (outcome, weight)
        });
        if key.request == *request {
            return outcome;
        }
        let renamed =
            |Proved { part, proof }: &Proved| Proved { part: part.renamed(&parts), proof: proof.renamed() };
        let runs = outcome?.0.iter().map(|run| run.with(renamed(&run.plan))).collect();
        Ok(Arc::new(Proven(runs)))
    }

    /// The class that a request belongs to, with plans that may be cut for it; or its own plans, where there are none.
    pub(crate) fn proven_for(
        &self,
        request: &PlanRequest,
        room: &PlanBudget<'_>,
    ) -> Result<(PlanRequest, Arc<Proven>), Error> {
        if let Some(class) = request.class() {
            if let Some(proven) = self.proven_class(&class, room)? {
                return Ok((class, proven));
            }
        }
        let whole = request.whole();
        let proven = self.proven(&whole, Source::Tuning, room)?;
        Ok((whole, proven))
    }

    /// Plans of a class that may be cut, if it has some.
    pub(crate) fn proven_class(
        &self,
        class: &PlanRequest,
        room: &PlanBudget<'_>,
    ) -> Result<Option<Arc<Proven>>, Error> {
        match self.proven(class, Source::Tuning, room) {
            Ok(proven) => Ok(Some(proven).filter(|proven| proven.shortens())),
            // All ranks come to the same. That a rank failed is no reason to try another plan.
            Err(Error::NoPlan { .. } | Error::Plan(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// The request that this one has its choice and its proofs from: with the first root that sits like its own, if its plan can be renamed and nothing
    /// is asked of the order. And who plays whose part.
    pub(crate) fn first(&self, request: &PlanRequest) -> (PlanRequest, Vec<usize>) {
        let renames = matches!(request.lengths, Lengths::Even(_)) && request.collective.can_be_renamed();
        if request.root == 0 || !renames || request.association != Association::Free {
            return (request.clone(), Vec::new());
        }
        let (root, parts) = self.shape.alike(request.root);
        (PlanRequest { root, ..request.clone() }, parts)
    }

    /// Returns the key of a request's plans in the cache: that of the request which it has its proofs from, for the rank whose part this one plays there.
    /// And who plays whose part.
    pub(super) fn proven_key(
        &self,
        request: &PlanRequest,
        source: Source,
        room: &PlanBudget<'_>,
    ) -> (ProvenKey, Vec<usize>) {
        let (request, parts) = match source {
            Source::Tuning => self.first(request),
            Source::Simple => (request.clone(), Vec::new()),
        };
        let player = |rank: usize| parts.iter().position(|&player| player == rank).unwrap_or(rank);
        let (counter_bytes, rank) = (room.counter_bytes, room.rank.map(player));
        (ProvenKey { request, source, counter_bytes, rank }, parts)
    }

    fn prove(&self, request: &PlanRequest, source: Source, room: &PlanBudget<'_>) -> Result<Proven, Error> {
        let question = self.question(request, room);
        self.once(request, &question, source, room, |chosen, proofs| {
            PlanSelector::plans(request, &question, chosen, proofs, room.rank)
        })
    }

    /// The plans of a choice for a request, or a rank's parts of them. Where blocks differ in length, a window covers less of them as the shorter ones
    /// end: windows that cover the same are runs of one plan.
    pub(crate) fn plans(
        request: &PlanRequest,
        question: &Question,
        chosen: &Chosen,
        proofs: &mut Proofs<'_>,
        rank: Option<usize>,
    ) -> Result<Proven, Error> {
        let (bytes, window) = (question.bytes, chosen.window.max(request.grain));
        let mut runs: Vec<WindowRun<Proved>> = Vec::new();
        if let Lengths::Uneven(_) = request.lengths {
            for from in (0..bytes).step_by(window) {
                let window = window.min(bytes - from);
                let problem = question.stretch(from..from + window);
                match runs.last_mut() {
                    Some(last) if last.plan.part.plan.blocks == problem.blocks => last.times += 1,
                    _ => {
                        let plan = proofs.of(chosen, &problem, request.association, rank)?;
                        runs.push(WindowRun { plan, from, window, times: 1 });
                    }
                }
            }
            return Ok(Proven(runs));
        }
        let mut proven = |bytes: usize| {
            let problem = if request.cut { question.cuttable(bytes) } else { question.window(bytes) };
            let proved = proofs.of(chosen, &problem, request.association, rank)?;
            // What was chosen fits; how blocks lie may have made a difference.
            match request.cut && !question.fits(&proved.part.plan, LINE) {
                true => Err(no_plan(
                    question,
                    &format_args!("{} does not fit when it is to be cut", proved.part.plan.name()),
                )),
                false => Ok(proved),
            }
        };
        let (plan, times) = (proven(bytes.min(window))?, (bytes / window).max(1));
        runs.push(WindowRun { plan, from: 0, window, times });
        let rest = bytes % window;
        if rest > 0 && bytes > window {
            runs.push(WindowRun { plan: proven(rest)?, from: bytes - rest, window: rest, times: 1 });
        }
        Ok(Proven(runs))
    }

    /// The best by the model of those that reach other ranks' buffers.
    pub(crate) fn best_direct(&self, question: &Question) -> Option<Chosen> {
        let choice = select::select(&self.tuning.model, question).ok()?;
        let best = choice.considered.into_iter().find(|c| c.reaches(question))?;
        let algorithm = algorithm::find(question.collective, best.name).ok()?;
        Some(Chosen { algorithm, params: best.params, window: best.window, because: Because::Predicted })
    }

    pub(crate) fn choose(&self, request: &PlanRequest, question: &Question) -> Result<Chosen, Error> {
        if let Some(chosen) = self.choose_alike(request, question) {
            return Ok(chosen);
        }
        self.tuning.choose(question, request.access.team()).map_err(|e| no_plan(question, &e))
    }

    /// Returns the choice that would be made if nothing were forced.
    pub(crate) fn choose_unforced(&self, question: &Question, access: PeerAccess) -> Result<Chosen, Error> {
        self.tuning.choose_unforced(question, access.team()).map_err(|e| no_plan(question, &e))
    }

    /// Returns the choice of this length's size class, if that choice also fits this length: a program with a thousand lengths chooses a few
    /// dozen times. The plan is still made and proved for the length that is asked for.
    fn choose_alike(&self, request: &PlanRequest, question: &Question) -> Option<Chosen> {
        let (bytes, team) = (alike(question.bytes, question.grain), request.access.team());
        if !self.tuning.predicts(question, team) {
            return None;
        }
        let key = (request.of_bytes(bytes).whole(), question.counter_bytes, question.box_bytes);
        let chosen = self.proven.alike.get_or_make(&key, || {
            (self.tuning.choose(&Question { bytes, ..question.clone() }, team).ok(), 1)
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

    /// A request with root 0 of which nothing is asked of the order.
    pub(in crate::choose) fn request(collective: Collective, bytes: usize, grain: usize) -> PlanRequest {
        PlanRequest {
            collective,
            lengths: Lengths::Even(bytes),
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
                    let request = PlanRequest { root, ..request(collective, bytes, 8) };
                    let proven = selector
                        .proven(&request, Source::Tuning, &room)
                        .unwrap_or_else(|e| panic!("{collective} {bytes} {root}: {e}"));
                    let run = &proven.0[0];
                    let plan = &run.plan.part.plan;
                    assert_eq!((plan.bytes, plan.root.index()), (run.window.min(bytes), root));
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
                let request = PlanRequest { root, ..request(collective, 1000, 8) };
                let proven = selector.proven(&request, Source::Tuning, &room).unwrap();
                for plan in proven.0.iter().map(|run| &run.plan.part.plan) {
                    assert_eq!(plan.root.index(), root);
                    assert_eq!(lineweave_core::verify::verify(plan).err(), None, "{} to {root}", plan.name());
                }
                let of_root = |root: usize| {
                    let request = PlanRequest { root, ..request.clone() };
                    ProvenKey { request, source: Source::Tuning, counter_bytes: 4096, rank: None }
                };
                assert_eq!(selector.proven.plans.known(&of_root(root)).is_some(), root == 0);
                let ordered = PlanRequest { association: Association::RankOrder, ..request };
                assert_eq!(selector.first(&ordered).0, ordered, "a new name changes the order");
            }
        }
    }
}

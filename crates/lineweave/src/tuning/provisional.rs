//! Choices without a search: one simple algorithm for each collective, for calls that are made before their plans are chosen.

use super::{largest_window, Because, Chosen, Tuning};
use lineweave_core::algorithm;
use lineweave_core::collective::Collective;
use lineweave_core::select::Question;

/// Ranks up to which one rank serves all others itself.
const FEW: usize = 8;

/// The algorithms to be tried in their order: among few ranks those with the fewest steps, among many those whose steps grow least.
fn simple(collective: Collective, few: bool) -> &'static [&'static str] {
    match (collective, few) {
        (Collective::Barrier, _) => &["dissemination"],
        (Collective::Bcast | Collective::Reduce | Collective::Gather | Collective::Scatter, true) => {
            &["flat", "binomial"]
        }
        (Collective::Bcast | Collective::Reduce | Collective::Gather | Collective::Scatter, false) => {
            &["binomial", "flat"]
        }
        (Collective::Allreduce, _) => &["recursive-doubling", "all-read-all"],
        (Collective::Allgather, true) => &["all-read-all", "ring"],
        (Collective::Allgather, false) => &["ring", "all-read-all"],
        (Collective::ReduceScatter, _) => &["slices", "ring"],
        (Collective::Alltoall, _) => &["flat", "pairwise"],
        (Collective::Scan | Collective::Exscan, _) => &["recursive-doubling", "all-read-lower", "chain"],
    }
}

impl Tuning {
    /// Returns whether [`Tuning::choose`] searches among the algorithms for a question: nothing is forced, and nothing was measured.
    pub fn searches(&self, question: &Question, team: &str) -> bool {
        let forced = self.forced.iter().any(|f| f.collective == question.collective);
        !forced && self.measured(question, team).is_none_or(|(_, found)| question.attach && !found.attach)
    }

    /// Returns a simple choice for a question, with the largest window that fits, in the time that a few plans take to make; or `None` where none of
    /// the simple algorithms applies. Its plan has no counters, and costs are not looked at.
    pub fn provisional(&self, question: &Question) -> Option<Chosen> {
        let few = question.shape.ranks() <= FEW;
        simple(question.collective, few).iter().find_map(|name| {
            let algorithm = algorithm::find(question.collective, name).ok()?;
            let params = question.candidates(algorithm, question.bytes).into_iter().next()?;
            let window = largest_window(question, algorithm, &params).ok()?;
            // Nobody is shown the reason: such a choice is only run.
            let because = Because::Predicted;
            question.associates(algorithm, &params).then_some(Chosen { algorithm, params, window, because })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Origin;
    use super::*;
    use lineweave_core::collective::Association;
    use lineweave_core::model::Values;
    use lineweave_core::plan::FlagKind;
    use lineweave_core::units::LINE;
    use lineweave_core::verify;

    #[test]
    fn every_question_has_a_simple_plan_that_fits_and_is_proved() {
        let tuning = Tuning::of_model(
            Values::default().model(),
            Origin::Machine { name: "a test".into(), why: String::new() },
        );
        for (collective, ranks) in
            Collective::ALL.into_iter().flat_map(|c| (2..=64).step_by(3).map(move |ranks| (c, ranks)))
        {
            for bytes in [8, 72, 1000, 70_000, 1 << 20] {
                for association in [Association::Free, Association::RankOrder, Association::Fixed] {
                    let bytes = if collective.moves_data() { bytes } else { 0 };
                    let root = if collective.rooted() { ranks - 1 } else { 0 };
                    let flat = Question::flat(collective, ranks, bytes, 8);
                    let question = Question { association, root, counter_bytes: 0, ..flat };
                    let named = format!("{collective} of {bytes} among {ranks}, {association:?}");
                    let Some(chosen) = tuning.provisional(&question) else {
                        assert!(association != Association::Free, "{named}: no plan");
                        continue;
                    };
                    let plan = chosen.plan(&question, chosen.window).unwrap();
                    assert!(question.fits(&plan, LINE), "{named}: {}", plan.name());
                    assert!(plan.flags.iter().all(|array| array.kind != FlagKind::Counter), "{named}");
                    let proof = verify::verify(&plan).unwrap_or_else(|v| panic!("{named}: {v}"));
                    assert!(proof.meets(association), "{named}: {}", plan.name());
                }
            }
        }
    }
}

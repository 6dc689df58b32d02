//! Tree of a broadcast: for each rank, the rank that gives it the message.

use crate::steps::steps;
use lineweave_core::plan::Plan;

/// Pairs of ranks, giver first: for each rank but the root, the first rank with the message that ended one of its
/// waits. Ranks that nobody tells are left out.
pub fn tree(plan: &Plan) -> Vec<(usize, usize)> {
    let steps = steps(plan);
    let mut informed = vec![false; plan.ranks];
    if let Some(root) = informed.get_mut(plan.root.index()) {
        *root = true;
    }
    // Waits in the order in which they end: who gave comes before who was given to.
    let mut ends: Vec<(usize, usize, usize)> = Vec::new();
    for (rank, list) in steps.ranks.iter().enumerate() {
        ends.extend(list.iter().filter_map(|s| Some((s.at, s.cause?.0, rank))));
    }
    ends.sort_unstable();
    let mut tree = Vec::new();
    for (_, giver, rank) in ends {
        if giver != rank && informed[giver] && !informed[rank] {
            informed[rank] = true;
            tree.push((giver, rank));
        }
    }
    tree
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::algorithm;
    use lineweave_core::collective::Collective;
    use lineweave_core::plan::Params;
    use lineweave_core::select::Question;

    #[test]
    fn every_rank_but_the_root_has_one_giver() {
        for name in ["flat", "binomial", "chain"] {
            let question = Question::flat(Collective::Bcast, 9, 8, 1);
            let algorithm = algorithm::find(Collective::Bcast, name).unwrap();
            let plan = algorithm.plan(&question.window(8), &Params::new()).unwrap();
            let mut told: Vec<usize> = tree(&plan).iter().map(|t| t.1).collect();
            told.sort_unstable();
            assert_eq!(told, (1..9).collect::<Vec<_>>(), "{name}");
        }
    }
}

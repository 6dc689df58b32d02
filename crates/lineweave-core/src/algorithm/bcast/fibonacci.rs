//! The optimal one-item broadcast of the LogP model: an informed rank keeps sending, one message an overhead.
//!
//! Karp, Sahay, Santos & Schauser 1993; its tree is Fibonacci's when overhead is all that counts, and flat when
//! there is none. The ratio o / L is a parameter, for a machine's model to fill in. Any P and root.

use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::relay::{cyclic, Relay};
use super::settings::{self, tree_candidates};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

const RATIO: ParamSpec =
    ParamSpec { name: "ratio", default: "0.5", about: "o / L: overhead of a send over latency, 0 to 1000" };

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "fibonacci",
    about: "the optimal LogP tree: informed ranks keep sending, one message an overhead",
    source: "Karp et al. 1993",
    params: &[
        RATIO,
        settings::LAYOUT,
        settings::NOTIFY,
        settings::CARRY,
        settings::SOURCE,
        settings::CHUNK,
        settings::SLOTS,
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.ranks() < 3 {
        return Vec::new(); // With one reader this is `flat`.
    }
    // Ratios whose trees differ for this P.
    let mut trees: Vec<Tree> = Vec::new();
    let mut base = Vec::new();
    for ratio in ["0.05", "0.125", "0.25", "0.5", "1", "4"] {
        let tree = Tree::fibonacci(problem.ranks(), ratio.parse().unwrap_or(0.5));
        if !trees.contains(&tree) {
            trees.push(tree);
            base.push(Params::new().with("ratio", ratio));
        }
    }
    tree_candidates(problem, &base, &["each"])
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let ratio: f64 = params.read("ratio", 0.5)?;
    if !(0.0..=1000.0).contains(&ratio) {
        return Err(PlanError::bad("ratio", ratio, "a number from 0 to 1000"));
    }
    let relay = Relay::PLAIN.read(params)?;
    relay.emit(b, s, &Tree::fibonacci(s.len(), ratio), &cyclic(s));
    Ok(())
}

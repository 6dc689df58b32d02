//! A tree with a number of children of its own for each level, all of whom read the same line at once.
//!
//! Ramos & Hoefler 2013, section 4.1.2: children poll their parent's line and take a small message out of it
//! (`notify=shared`), which costs T_C(k) = R_R + R_L + c (k - 1) for `k` of them (Eq. 4.5). Their acknowledgements
//! are not needed here: a ring of banks takes their place. Any P and root; degrees beyond the list repeat
//! the last.

use super::super::ranks::ceil_log;
use super::super::trees::{default_degrees, degrees_for, Tree};
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::relay::{cyclic, Relay};
use super::settings::{self, tree_candidates, Notify};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError};

const DEGREES: ParamSpec = ParamSpec {
    name: "degrees",
    default: "auto",
    about: "children of a rank, level by level, such as 5,3,2",
};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "degrees",
    about: "a tree with a degree per level; children poll one line of their parent",
    source: "Ramos & Hoefler 2013, 4.1.2, Eq. 4.7",
    params: &[
        DEGREES,
        settings::LAYOUT,
        ParamSpec { default: "shared", ..settings::NOTIFY },
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
    let base: Vec<Params> = of_each_depth(problem.ranks()).take(6).collect();
    tree_candidates(problem, &base, &["shared", "each"])
}

/// Returns the degrees of trees of 1, 2, ... levels, each once.
pub(in super::super) fn of_each_depth(p: usize) -> impl Iterator<Item = Params> {
    let mut seen: Vec<Vec<usize>> = Vec::new();
    (1..=ceil_log(p, 2).max(1)).filter_map(move |levels| {
        let degrees = degrees_for(p, levels);
        if seen.contains(&degrees) {
            return None;
        }
        let text: Vec<String> = degrees.iter().map(usize::to_string).collect();
        seen.push(degrees);
        Some(Params::new().with("degrees", text.join(",")))
    })
}

/// The degrees of a parameter set; made for `p` ranks when it does not say.
pub(in super::super) fn degrees(params: &Params, p: usize) -> Result<Vec<usize>, PlanError> {
    match params.get("degrees") {
        None | Some("auto") => Ok(default_degrees(p)),
        Some(text) => text
            .split(',')
            .map(|d| d.trim().parse().ok().filter(|&d: &usize| d > 0))
            .collect::<Option<Vec<usize>>>()
            .ok_or_else(|| {
                let expected = "auto, or whole numbers above 0 with commas between them, such as 5,3,2";
                PlanError::bad("degrees", text, expected)
            }),
    }
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let degrees = degrees(params, s.len())?;
    let relay = Relay { notify: Notify::Shared, ..Relay::PLAIN }.read(params)?;
    relay.emit(b, s, &Tree::by_degrees(s.len(), &degrees), &cyclic(s));
    Ok(())
}

//! A tree with a degree per level and a buffer a child.
//!
//! Ramos & Hoefler 2013, section 4.3: each child writes to a buffer of its own at its parent, so that the children of
//! one parent never wait for each other; Eq. 4.13 gives the cost and with it the degrees. `buffers=child` leaves a
//! partial result in the child's box instead, where the parent reads it. Any P and root.

use super::super::trees::{default_degrees, degrees_for, Tree};
use super::super::{Algorithm, ParamSpec, Problem};
use super::up::{in_rank_order, up, Travel};
use crate::collective::Collective;
use crate::plan::{Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Reduce,
    name: "tree",
    about: "a tree with a degree per level and a buffer for each child",
    source: "Ramos & Hoefler 2013, section 4.3, Eq. 4.13",
    params: &[
        ParamSpec { name: "degrees", default: "auto", about: "children of a rank, level by level: 5,3,2" },
        ParamSpec {
            name: "buffers",
            default: "parent",
            about: "parent: one a child at its parent; child: at the child",
        },
        ParamSpec { name: "layout", default: "alone", about: "lines of the flags" },
    ],
    candidates,
    emit: |b, _, s, params| {
        let layout = params.read("layout", Layout::Alone)?;
        let at_parent = params.one_of("buffers", true, &[("parent", true), ("child", false)])?;
        let tree = in_rank_order(Tree::by_degrees(s.len(), &degrees(params, s.len())?));
        up(b, s, &tree, Travel { layout, at_parent, direct: false, rows: None })
    },
};

fn candidates(problem: &Problem) -> Vec<Params> {
    let p = problem.ranks();
    let mut out = Vec::new();
    let deepest = super::super::ranks::ceil_log(p, 2).max(1);
    let mut seen: Vec<Vec<usize>> = Vec::new();
    for levels in 1..=deepest {
        let degrees = degrees_for(p, levels);
        if seen.contains(&degrees) {
            continue;
        }
        let text: Vec<String> = degrees.iter().map(usize::to_string).collect();
        let base = Params::new().with("degrees", text.join(","));
        seen.push(degrees);
        out.push(base.clone());
        if problem.bytes > Layout::Alone.payload() {
            out.push(base.with("buffers", "child"));
        } else {
            out.push(base.with("layout", Layout::Spread(2)));
        }
    }
    out
}

fn degrees(params: &Params, p: usize) -> Result<Vec<usize>, PlanError> {
    match params.get("degrees") {
        None | Some("auto") => Ok(default_degrees(p)),
        Some(text) => text
            .split(',')
            .map(|k| k.parse::<usize>().ok().filter(|&k| k >= 1))
            .collect::<Option<Vec<usize>>>()
            .ok_or_else(|| {
                PlanError::bad("degrees", text, "auto, or whole numbers from 1, separated by commas")
            }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_child_has_a_buffer_at_its_parent() {
        let problem = Problem::flat(Collective::Reduce, 10, 128);
        let params = Params::new().with("degrees", "3,2");
        assert_eq!(ALGORITHM.plan(&problem, &params).expect("a plan").slots, vec![128; 3]);
        let at_child = ALGORITHM.plan(&problem, &params.with("buffers", "child")).expect("a plan");
        assert_eq!(at_child.slots, vec![128]);
        for bad in ["0", "3,", "x"] {
            assert!(ALGORITHM.plan(&problem, &Params::new().with("degrees", bad)).is_err());
        }
    }
}

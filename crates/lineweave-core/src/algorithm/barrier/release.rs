//! The two halves that tree-shaped barriers are made of: arrivals up a tree, and the release.

use super::super::trees::Tree;
use super::super::{ParamSpec, Phase, Scope};
use crate::plan::{Builder, Layout, Params, PlanError};

/// How ranks learn that they may go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Release {
    /// Down the tree, a flag at each rank's own home.
    Tree,
    /// One flag at the root's home, which everybody polls.
    Shared,
}

impl std::str::FromStr for Release {
    type Err = String;

    fn from_str(text: &str) -> Result<Release, String> {
        match text {
            "tree" => Ok(Release::Tree),
            "shared" => Ok(Release::Shared),
            _ => Err("tree or shared".to_owned()),
        }
    }
}

/// The parameter `release` of tree-shaped barriers.
pub(super) const fn release_param(default: &'static str) -> ParamSpec {
    ParamSpec {
        name: "release",
        default,
        about: "tree: down the tree, a flag a rank; shared: one flag, polled by all",
    }
}

/// The parameter `layout` of every barrier.
pub(super) const fn layout_param(default: &'static str) -> ParamSpec {
    ParamSpec { name: "layout", default, about: "lines of the flags: packed, paired, alone, spread2 .." }
}

/// Arrivals up `tree` and release, as far as `phase` says.
pub(super) fn along(b: &mut Builder, s: &Scope, tree: &Tree, layout: Layout, release: Release, phase: Phase) {
    if matches!(phase, Phase::Full | Phase::Gather) {
        gather(b, s, tree, layout);
    }
    if matches!(phase, Phase::Full | Phase::Release) {
        release_from_root(b, s, tree, layout, release);
    }
}

/// Each rank waits for its children (the one with the largest subtree last) and tells its parent.
fn gather(b: &mut Builder, s: &Scope, tree: &Tree, layout: Layout) {
    if s.len() < 2 {
        return;
    }
    let arrive = b.flags("arrive", layout, tree.degree());
    for v in 0..s.len() {
        let rank = s.rank_of_virtual(v);
        for position in (0..tree.children[v].len()).rev() {
            b.wait(rank, arrive.at(rank, position), 1);
        }
        if let Some(parent) = tree.parent[v] {
            b.set(rank, arrive.at(s.rank_of_virtual(parent), tree.position(v)), 1);
        }
    }
}

/// Everybody learns that the root has gone on.
fn release_from_root(b: &mut Builder, s: &Scope, tree: &Tree, layout: Layout, release: Release) {
    if s.len() < 2 {
        return;
    }
    let go = b.flags("release", layout, 1);
    match release {
        Release::Shared => shared(b, s, go.at(s.rank_of_virtual(0), 0)),
        Release::Tree => {
            for v in 0..s.len() {
                let rank = s.rank_of_virtual(v);
                if v > 0 {
                    b.wait(rank, go.at(rank, 0), 1);
                }
                for &child in &tree.children[v] {
                    b.set(rank, go.at(s.rank_of_virtual(child), 0), 1);
                }
            }
        }
    }
}

/// The root sets one flag, everybody else waits for it.
fn shared(b: &mut Builder, s: &Scope, go: crate::plan::FlagRef) {
    let root = s.rank_of_virtual(0);
    b.set(root, go, 1);
    for v in 1..s.len() {
        b.wait(s.rank_of_virtual(v), go, 1);
    }
}

/// A barrier without separate halves as one level of a hierarchical one: the whole of it where arrivals are
/// gathered, a binomial tree where the release comes back.
pub(super) fn undivided(
    b: &mut Builder,
    s: &Scope,
    layout: Layout,
    phase: Phase,
    full: impl FnOnce(&mut Builder) -> Result<(), PlanError>,
) -> Result<(), PlanError> {
    match phase {
        Phase::Full | Phase::Gather => full(b),
        Phase::Release => {
            release_from_root(b, s, &Tree::binomial(s.len()), layout, Release::Tree);
            Ok(())
        }
    }
}

/// Parameter sets that vary the layout only.
pub(super) fn layouts(base: &Params) -> Vec<Params> {
    [Layout::Packed, Layout::Paired, Layout::Alone, Layout::Spread(2)]
        .into_iter()
        .map(|layout| base.clone().with("layout", layout))
        .collect()
}

//! The two halves that tree-shaped barriers are made of: arrivals up a tree, and the release.

use super::super::trees::Tree;
use super::super::{BarrierPart, ParamSpec, Participants};
use crate::plan::{Builder, FlagArrayId, Layout, Params, PlanError};

/// Way in which ranks learn that they may go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Release {
    /// Down the tree, a flag at each rank's own home.
    Tree,
    /// One flag at the root's home, which everybody polls.
    Shared,
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

/// At whose home the flags of a tree-shaped barrier are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Home {
    /// A rank's arrival at its parent's home, its release at its own.
    Own,
    /// All side by side at the root's home, two a rank, as in one shared segment: with the layout `paired` a
    /// line a rank, on which its arrival and its release take turns.
    Root,
}

impl Home {
    /// Reads the parameter `home`.
    pub fn read(params: &Params) -> Result<Home, PlanError> {
        params.one_of("home", Home::Own, &[("own", Home::Own), ("root", Home::Root)])
    }
}

/// The parameter `home` of tree-shaped barriers.
pub(super) const HOME_PARAM: ParamSpec = ParamSpec {
    name: "home",
    default: "own",
    about: "own: a flag lives at the rank that polls it; root: all side by side in one place",
};

/// Arrangement of the flags of a tree-shaped barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wiring {
    pub(super) layout: Layout,
    pub(super) release: Release,
    pub(super) home: Home,
}

impl Wiring {
    /// Reads the parameters: by default each flag has a line of its own, and the release goes down the tree.
    pub fn read(params: &Params) -> Result<Wiring, PlanError> {
        let releases = [("tree", Release::Tree), ("shared", Release::Shared)];
        Ok(Wiring {
            layout: params.read("layout", Layout::Alone)?,
            release: params.one_of("release", Release::Tree, &releases)?,
            home: Home::read(params)?,
        })
    }
}

/// The trees that a barrier goes up and down; usually one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ways<'a> {
    pub(super) up: &'a Tree,
    pub(super) down: &'a Tree,
}

impl<'a> Ways<'a> {
    /// Up and down the same tree.
    pub(super) fn both(tree: &'a Tree) -> Ways<'a> {
        Ways { up: tree, down: tree }
    }
}

/// Arrivals up a tree and release, as far as the participants' phase says.
pub(super) fn along(b: &mut Builder, s: &Participants, ways: Ways<'_>, wiring: Wiring) {
    if s.len() < 2 {
        return;
    }
    // Side by side, so that with the layout `paired` the two flags of a rank share a line.
    let shared = (wiring.home == Home::Root).then(|| b.flags("flag", wiring.layout, 2 * s.len()));
    if s.phase != BarrierPart::Release {
        gather(b, s, ways.up, wiring.layout, shared);
    }
    if s.phase != BarrierPart::Gather {
        release_from_root(b, s, ways.down, wiring.layout, wiring.release, shared);
    }
}

/// Each rank waits for its children (the one with the largest subtree last) and tells its parent.
fn gather(b: &mut Builder, s: &Participants, tree: &Tree, layout: Layout, shared: Option<FlagArrayId>) {
    let root = s.rank_of_virtual(0);
    let arrive = shared.unwrap_or_else(|| b.flags("arrive", layout, tree.degree()));
    let flag = |parent: usize, child: usize| match shared {
        Some(_) => arrive.at(root, 2 * child),
        None => arrive.at(s.rank_of_virtual(parent), tree.position(child)),
    };
    for v in 0..s.len() {
        let rank = s.rank_of_virtual(v);
        for &child in tree.children[v].iter().rev() {
            b.wait(rank, flag(v, child), 1);
        }
        if let Some(parent) = tree.parent[v] {
            b.set(rank, flag(parent, v), 1);
        }
    }
}

/// Everybody learns that the root has gone on.
fn release_from_root(
    b: &mut Builder,
    s: &Participants,
    tree: &Tree,
    layout: Layout,
    release: Release,
    shared: Option<FlagArrayId>,
) {
    let root = s.rank_of_virtual(0);
    let go = shared.unwrap_or_else(|| b.flags("release", layout, 1));
    let flag = |v: usize| match shared {
        Some(_) => go.at(root, 2 * v + 1),
        None => go.at(s.rank_of_virtual(v), 0),
    };
    match release {
        Release::Shared => {
            b.set(root, flag(0), 1);
            for v in 1..s.len() {
                b.wait(s.rank_of_virtual(v), flag(0), 1);
            }
        }
        Release::Tree => {
            for v in 0..s.len() {
                let rank = s.rank_of_virtual(v);
                if v > 0 {
                    b.wait(rank, flag(v), 1);
                }
                for &child in &tree.children[v] {
                    b.set(rank, flag(child), 1);
                }
            }
        }
    }
}

/// A barrier without separate halves as one level of a hierarchical one: the whole of it where arrivals are
/// gathered, a binomial tree where the release comes back.
pub(super) fn undivided(b: &mut Builder, s: &Participants, layout: Layout, full: impl FnOnce(&mut Builder)) {
    match s.phase {
        BarrierPart::Full | BarrierPart::Gather => full(b),
        BarrierPart::Release => {
            let wiring = Wiring { layout, release: Release::Tree, home: Home::Own };
            along(b, s, Ways::both(&Tree::binomial(s.len())), wiring);
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

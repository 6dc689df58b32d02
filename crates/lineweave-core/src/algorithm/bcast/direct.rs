//! Common part of the broadcasts without boxes: an address travels in a flag's line, and other ranks use it.
//!
//! Ramos & Hoefler 2013, section 4.1.1 ("zero-copy protocol"). For threads, and for processes with a shared heap.
//! A rank whose buffer others use returns only after they have said that they are done with it.

use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Place, Problem};
use super::settings::Notify;

use crate::plan::{Builder, FlagArrayId, Layout, Params, PlanError, Region, Space};
use crate::units::Rank;
use std::ops::Range;

/// Parameter for the way in which a root learns that every rank is done with its buffer.
pub(in super::super) const ACK: ParamSpec = ParamSpec {
    name: "ack",
    default: "flags",
    about: "flags: the root reads a flag a rank; counter: ranks add to one line; a number k: a k-ary tree",
};

/// See [`ACK`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in super::super) enum Ack {
    /// The root reads a flag of each rank.
    Flags,
    /// Every rank adds one to a counter.
    Counter,
    /// Done flags go up a k-ary tree.
    Tree(usize),
}

impl std::str::FromStr for Ack {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "flags" => Ok(Ack::Flags),
            "counter" => Ok(Ack::Counter),
            _ => text
                .parse()
                .ok()
                .filter(|k| (1..=128).contains(k))
                .map(Ack::Tree)
                .ok_or_else(|| "flags, counter, or a degree from 1 to 128".to_owned()),
        }
    }
}

/// Returns whether a direct plan is worth costing: somebody to reach, and more than fits a flag's line.
pub(in super::super) fn applies(problem: &Problem) -> bool {
    problem.direct && problem.ranks() > 1 && problem.bytes > Layout::Alone.payload()
}

/// The ways of acknowledging worth costing, where a direct plan is. Not the counter: an engine has room for few of
/// them, and each root and size of a gather or scatter would take one.
pub(in super::super) fn ack_candidates(problem: &Problem) -> Vec<Params> {
    if !applies(problem) {
        return Vec::new();
    }
    let p = problem.ranks();
    let mut out = vec![Params::new()];
    out.extend([2, 4, 8].into_iter().filter(|k| k + 2 < p).map(|k| Params::new().with("ack", k)));
    out
}

/// A private buffer that its owner publishes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Public {
    /// As its owner names it.
    pub own: Space,
    peer: Space,
    base: usize,
}

impl Public {
    /// The buffer of `rank` at `place`, if such a buffer can be published and ranks can reach it.
    pub fn new(
        algorithm: &Algorithm,
        problem: &Problem,
        rank: usize,
        place: Place,
    ) -> Result<Public, PlanError> {
        if !problem.direct {
            return Err(algorithm.not_applicable("ranks cannot reach each other's buffers here"));
        }
        let peer = match place.space {
            Space::In => Space::PeerIn(Rank::from(rank)),
            Space::Out => Space::PeerOut(Rank::from(rank)),
            Space::Acc | Space::Slot { .. } | Space::PeerIn(_) | Space::PeerOut(_) => {
                return Err(algorithm.not_applicable("only input and output buffers have addresses to give"))
            }
        };
        Ok(Public { own: place.space, peer, base: place.base })
    }

    /// The space as others name it.
    pub fn peer(&self) -> Space {
        self.peer
    }

    /// The bytes `range` of the message as others name them.
    pub fn at(&self, range: Range<usize>) -> Region {
        Region::new(self.peer, self.base + range.start..self.base + range.end)
    }
}

/// The way of notifying, which cannot be by siblings.
pub(super) fn notify(params: &Params, default: Notify) -> Result<Notify, PlanError> {
    match Notify::read(params, default)? {
        Notify::Binary => {
            let expected = "each or shared: an address is only its owner's to give";
            Err(PlanError::bad("notify", "binary", expected))
        }
        other => Ok(other),
    }
}

/// An address needs room in its flag's line.
pub(in super::super) fn check_room(layout: Layout) -> Result<(), PlanError> {
    if layout.payload() >= 8 {
        return Ok(());
    }
    Err(PlanError::bad("layout", layout, "paired, alone or spreadN: a line with room for an address"))
}

/// Flags or counter by which virtual rank 0 learns that every rank has finished copying.
pub(in super::super) struct Done {
    ack: Ack,
    flags: FlagArrayId,
    index: usize,
    tree: Tree,
    ranks: Vec<usize>,
}

impl Done {
    /// For the virtual ranks `ranks`. Where `pair` is given, flag 1 of it at each rank is that rank's done flag, so
    /// that it may share a line with flag 0, by which the rank is told to start.
    pub fn new(
        b: &mut Builder,
        ack: Ack,
        layout: Layout,
        ranks: &[usize],
        pair: Option<FlagArrayId>,
    ) -> Done {
        let p = ranks.len();
        let (flags, index) = match (ack, pair) {
            (Ack::Flags | Ack::Tree(_), Some(pair)) => (pair, 1),
            (Ack::Flags | Ack::Tree(_), None) => (b.flags("done", layout, 1), 0),
            (Ack::Counter, _) => (b.counters("done", layout, 1), 0),
        };
        let tree = match ack {
            Ack::Flags | Ack::Counter => Tree::flat(p),
            Ack::Tree(k) => Tree::kary(p, k),
        };
        Done { ack, flags, index, tree, ranks: ranks.to_vec() }
    }

    /// Virtual rank `v` is done, and so are those below it; virtual rank 0 then knows that all are.
    pub fn emit(&self, b: &mut Builder, v: usize) {
        let rank = self.ranks[v];
        match self.ack {
            Ack::Counter if v == 0 => {
                let others = i32::try_from(self.ranks.len() - 1).unwrap_or(i32::MAX);
                b.wait(rank, self.flags.at(rank, 0), others);
            }
            Ack::Counter => b.add(rank, self.flags.at(self.ranks[0], 0)),
            Ack::Flags | Ack::Tree(_) => {
                for &child in &self.tree.children[v] {
                    b.wait(rank, self.flags.at(self.ranks[child], self.index), 1);
                }
                if v > 0 {
                    b.set(rank, self.flags.at(rank, self.index), 1);
                }
            }
        }
    }

    /// After [`Done::emit`]: everybody learns that all are done, down the same tree.
    pub fn release(&self, b: &mut Builder, go: FlagArrayId, v: usize) {
        let rank = self.ranks[v];
        if v > 0 {
            b.wait(rank, go.at(rank, 0), 1);
        }
        for &child in &self.tree.children[v] {
            b.set(rank, go.at(self.ranks[child], 0), 1);
        }
    }
}

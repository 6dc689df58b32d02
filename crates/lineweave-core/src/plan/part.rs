//! A rank's part of a plan: its own ops, and what it has to know of all others' to run them.
//!
//! Where everybody exchanges blocks with everybody, a plan has ops by the square of the ranks: those of an alltoall among 512 take 50 MB, of
//! which a rank runs one op in 512. So a plan is held whole by who proves it; each process of a team makes it once more, keeps its own part, and
//! only counts and digests the rest. The digest says that it is the plan that was proved.

use super::{Carry, Digest, FlagRef, Op, Plan, Region, Reuse, Space};
use crate::collective::Extent;
use crate::units::Rank;
use std::collections::{HashMap, HashSet};
use std::hash::{Hash, Hasher};

/// A plan, of which the ops of one rank may be all that is there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The plan; the programs of other ranks may be empty.
    pub plan: Plan,
    /// Ops of all ranks.
    pub ops: usize,
    /// As [`Plan::span`] says it of the whole plan.
    pub span: i32,
    /// The most bytes that a flag carries.
    pub carried: usize,
    /// True if some rank reads what was written to a user's buffer, but for folds into two places.
    pub rereads: bool,
    /// True if each sum is made in one place, of all ranks' contributions, by folds that follow each other.
    pub sums_whole: bool,
    /// Number of adds to each counter in a run.
    pub adds: HashMap<FlagRef, u32>,
    /// Rank that sets each flag that is waited for here; empty where each rank has a CPU of its own, as it then does not matter.
    pub setters: HashMap<FlagRef, Rank>,
    /// A number that differs for different plans, and is the same for all parts of one.
    pub digest: u64,
}

impl Part {
    /// All of a plan; with who sets which flag if ranks share CPUs (`crowded`).
    pub fn whole(plan: Plan, crowded: bool) -> Part {
        let mut tally = Tally::new(plan.ranks, HashSet::new());
        for (rank, op) in plan.ops() {
            tally.add(rank.index(), op, false);
        }
        let setter = |(rank, op): (Rank, &Op)| match op {
            Op::Set { flag, .. } => Some((*flag, rank)),
            Op::Wait { .. } | Op::Add { .. } | Op::Move { .. } | Op::Fold { .. } => None,
        };
        let setters = plan.ops().filter(|_| crowded).filter_map(setter).collect();
        Part { setters, ..tally.part(plan) }
    }

    /// The part of one rank alone.
    #[must_use]
    pub fn only(mut self, rank: usize) -> Part {
        for (r, program) in self.plan.programs.iter_mut().enumerate() {
            if r != rank {
                *program = Vec::new();
            }
        }
        let waited = self.plan.waited_for(rank);
        self.setters.retain(|flag, _| waited.contains(flag));
        self
    }

    /// The part of a plan in which ranks changed parts: see [`Plan::renamed`].
    #[must_use]
    pub fn renamed(&self, parts: &[usize]) -> Part {
        let rank = |Rank(r): Rank| Rank::from(parts[r as usize]);
        let flag = |f: FlagRef| FlagRef { home: rank(f.home), ..f };
        let plan = self.plan.renamed(parts);
        let mut digest = Digest::new(self.digest);
        plan.root.hash(&mut digest);
        Part {
            adds: self.adds.iter().map(|(&f, &times)| (flag(f), times)).collect(),
            setters: self.setters.iter().map(|(&f, &setter)| (flag(f), rank(setter))).collect(),
            digest: digest.finish(),
            plan,
            ..*self
        }
    }

    /// As [`Plan::leaves_room_for_a_generation`] says it of the whole plan.
    pub fn leaves_room_for_a_generation(&self) -> bool {
        self.plan.leaves_room_beside(self.carried)
    }

    /// Ops that are there.
    pub fn held(&self) -> usize {
        self.plan.programs.iter().map(Vec::len).sum()
    }
}

impl Plan {
    /// Half the bytes of all ranks' buffers for a message, or blocks, of `message` bytes: what decides whether they go past the caches.
    pub fn half_of_all(&self, message: usize) -> usize {
        let of = |extent: Extent| extent.bytes(self.ranks, message);
        let both = |rank: usize| {
            let (root, collective) = (self.root.index(), self.collective);
            of(collective.input(rank, root)).saturating_add(of(collective.output(rank, root)))
        };
        (0..self.ranks).map(both).fold(0, usize::saturating_add) / 2
    }

    /// Returns whether some rank reads what was written to a user's buffer, but for folds into two places: it stays in the caches then.
    pub fn rereads(&self) -> bool {
        self.programs.iter().any(|ops| {
            let mut tail = Tail::new();
            ops.iter().any(|op| tail.rereads(op))
        })
    }

    /// The flags that a rank waits for.
    pub(crate) fn waited_for(&self, rank: usize) -> HashSet<FlagRef> {
        let waited = |op: &Op| match op {
            Op::Wait { flag, .. } => Some(*flag),
            Op::Set { .. } | Op::Add { .. } | Op::Move { .. } | Op::Fold { .. } => None,
        };
        self.programs[rank].iter().filter_map(waited).collect()
    }
}

/// Summary of the ops of all ranks, told of one after the other. Ranks may take turns in any way: the ops of each come in its order.
#[derive(Debug)]
pub(super) struct Tally {
    ranks: Vec<Tail>,
    previous: Previous,
    ops: usize,
    span: i32,
    carried: usize,
    rereads: bool,
    sums_whole: bool,
    adds: HashMap<FlagRef, u32>,
    /// Flags of which it matters who sets them.
    wanted: HashSet<FlagRef>,
    setters: HashMap<FlagRef, Rank>,
}

/// Waits for earlier runs, which plans that take banks in turn have no need of.
#[derive(Clone, Copy, Default, Debug)]
struct Previous {
    count: usize,
    /// Sums over all waits: of a digest times the value that is waited for; and of the digests of those whose value is relative to the span, which
    /// is known at the end.
    values: u64,
    relative: u64,
}

/// State to be remembered of a rank's ops so far.
#[derive(Clone, Debug)]
struct Tail {
    digest: Digest,
    /// Region that the last op folded into.
    folded: Option<Region>,
    /// Region that the last op copied, if that was just folded into.
    copied: Option<Region>,
    /// Number of folds in a row, each into the result of the one before.
    chain: usize,
    /// A stretch of scratch in which all results in between lie.
    between: Option<Region>,
}

/// Returns the operand that a fold combines with `sum`, the result of the fold before it; `None` where it does something else, or where that
/// result is kept.
pub fn follows(op: &Op, sum: Region) -> Option<Region> {
    match *op {
        Op::Fold { a, b, dst } if sum == dst || sum.space == Space::Acc => match (a == sum, b == sum) {
            (true, false) => Some(b),
            (false, true) => Some(a),
            (true, true) | (false, false) => None,
        },
        _ => None,
    }
}

impl Tally {
    /// Nothing so far of so many ranks; who sets the `wanted` flags will be known.
    pub fn new(ranks: usize, wanted: HashSet<FlagRef>) -> Tally {
        Tally {
            ranks: vec![Tail::new(); ranks],
            previous: Previous::default(),
            ops: 0,
            span: 1,
            carried: 0,
            rereads: false,
            sums_whole: true,
            adds: HashMap::new(),
            wanted,
            setters: HashMap::new(),
        }
    }

    /// An op of a rank; `relative` if it waits for what the run before this one set, as the value that it set.
    pub fn add(&mut self, rank: usize, op: &Op, relative: bool) {
        let all = self.ranks.len() - 1;
        self.sums_whole &= self.ranks[rank].sums_whole(Some(op), all);
        if let Op::Wait { flag, value, take } = op {
            if relative || *value < 1 {
                let mut digest = Digest::new(rank as u64);
                (flag, take).hash(&mut digest);
                let (digest, previous) = (digest.finish(), &mut self.previous);
                previous.count += 1;
                previous.values = previous.values.wrapping_add(digest.wrapping_mul(i64::from(*value) as u64));
                previous.relative = previous.relative.wrapping_add(if relative { digest } else { 0 });
                return;
            }
        }
        self.ops += 1;
        op.hash(&mut self.ranks[rank].digest);
        self.rereads |= self.ranks[rank].rereads(op);
        match op {
            Op::Set { flag, value, carry } => {
                if self.wanted.contains(flag) {
                    self.setters.insert(*flag, Rank::from(rank));
                }
                self.span = self.span.max(*value);
                if let Some(Carry::Bytes(region)) = carry {
                    self.carried = self.carried.max(region.len);
                }
            }
            Op::Add { flag } => *self.adds.entry(*flag).or_insert(0) += 1,
            Op::Wait { .. } | Op::Move { .. } | Op::Fold { .. } => {}
        }
    }

    /// As [`Plan::span`].
    pub fn span(&self) -> i32 {
        self.span
    }

    /// With the plan, as far as it was kept.
    pub fn part(self, plan: Plan) -> Part {
        let mut digest = Digest::new(0);
        let Plan { collective, algorithm, params, ranks, root, bytes, blocks, grain, .. } = &plan;
        (collective, algorithm, params, ranks, root, bytes, blocks, grain).hash(&mut digest);
        (&plan.slots, plan.acc, plan.reuse, plan.direct).hash(&mut digest);
        for array in &plan.flags {
            (array.kind, array.layout, array.count).hash(&mut digest);
        }
        let mut ops = self.ops;
        if plan.reuse == Reuse::Same {
            let Previous { count, values, relative } = self.previous;
            (count, values.wrapping_sub(relative.wrapping_mul(self.span as u64))).hash(&mut digest);
            ops += count;
        }
        for rank in &self.ranks {
            rank.digest.finish().hash(&mut digest);
        }
        let all = self.ranks.len() - 1;
        let sums_whole = self.ranks.iter().all(|rank| rank.clone().sums_whole(None, all)) && self.sums_whole;
        let Tally { span, carried, rereads, adds, setters, .. } = self;
        Part { plan, ops, span, carried, rereads, sums_whole, adds, setters, digest: digest.finish() }
    }
}

impl Tail {
    fn new() -> Tail {
        Tail { digest: Digest::new(0), folded: None, copied: None, chain: 0, between: None }
    }

    /// Returns whether the rank's next op (`None` at the end) preserves this: each sum is an unbroken chain of `all` folds whose intermediates
    /// nobody reads.
    fn sums_whole(&mut self, op: Option<&Op>, all: usize) -> bool {
        let (before, between) = (self.chain, self.between);
        let apart =
            |region: &Region| region.space != Space::Acc || between.is_none_or(|b| !b.overlaps(region));
        let sum = self.folded.filter(|_| before > 0 && before < all);
        let next = sum.zip(op).and_then(|(sum, op)| Some((sum, follows(op, sum)?)));
        let (chain, apart) = match (op, next) {
            (Some(Op::Fold { dst, .. }), Some((sum, other))) => {
                if sum != *dst {
                    let (from, to) = between.map_or((sum.offset, sum.end()), |b| {
                        (b.offset.min(sum.offset), b.end().max(sum.end()))
                    });
                    self.between = Some(Region { offset: from, len: to - from, ..sum });
                }
                (before + 1, apart(&other))
            }
            (Some(Op::Fold { a, b, .. }), None) => (1, apart(a) && apart(b)),
            (Some(Op::Move { src, .. } | Op::Set { carry: Some(Carry::Bytes(src)), .. }), _) => {
                (0, apart(src))
            }
            (Some(Op::Set { .. } | Op::Wait { .. } | Op::Add { .. }) | None, _) => (0, true),
        };
        self.chain = chain;
        apart && (chain > before || before == 0 || before == all)
    }

    /// Returns whether this op, the rank's next one, reads what was written to a user's buffer: but for one copy of what was just folded there.
    fn rereads(&mut self, op: &Op) -> bool {
        let result = |region: &Region| matches!(region.space, Space::Out | Space::PeerOut(_));
        let (folded, copied) = (self.folded.take(), self.copied.take());
        match op {
            Op::Move { src, .. } if folded == Some(*src) => {
                self.copied = folded.filter(result);
                false
            }
            Op::Move { src, .. } => result(src) || copied == Some(*src),
            Op::Fold { a, b, dst } => {
                self.folded = Some(*dst);
                result(a) || result(b)
            }
            Op::Set { carry: Some(Carry::Bytes(region)), .. } => result(region),
            Op::Set { .. } | Op::Wait { .. } | Op::Add { .. } => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{self, Problem};
    use crate::collective::Collective;
    use crate::plan::Params;

    #[test]
    fn what_is_written_once_and_not_read_again_may_go_past_the_caches() {
        let direct = |ranks: usize, way: &str| {
            let problem =
                Problem { direct: true, grain: 8, ..Problem::flat(Collective::Allreduce, ranks, 1 << 16) };
            let algorithm = algorithm::find(Collective::Allreduce, "direct").expect("it is in the table");
            algorithm.plan(&problem, &Params::new().with("move", way)).expect("a plan")
        };
        for (ranks, way, rereads) in [(2, "push", false), (2, "pull", true), (3, "push", true)] {
            let plan = direct(ranks, way);
            assert_eq!(plan.rereads(), rereads, "{way} among {ranks}");
            assert_eq!(Part::whole(plan, false).rereads, rereads, "{way} among {ranks}");
        }
        assert_eq!(direct(2, "push").half_of_all(1000), 2000, "an input and an output at each of two ranks");
    }
}

//! Ranks that do the same: their programs as blocks, of ops that follow each other or repeat.

use super::plan::moved;
use lineweave_core::plan::{move_verb, Carry, Op, Plan};
use std::collections::BTreeMap;

/// Groups at most, where the finer ways to compare programs give more.
const GROUPS: usize = 12;
/// Blocks of a program at most: those in its middle become one.
const BLOCKS: usize = 10;
/// Ops of a unit that repeats.
const UNIT: usize = 8;

/// A stretch of a program: a unit of ops, some times over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Block {
    /// Verbs of the unit's ops; empty where blocks of several kinds became one.
    pub(super) verbs: Vec<&'static str>,
    /// Number of repetitions of the unit: the least and the most of the group.
    pub(super) times: (usize, usize),
    /// Bytes of an op that moves any: the least and the most.
    pub(super) bytes: Option<(usize, usize)>,
    /// Index of the block's first op in the program.
    pub(super) first: usize,
    /// Number of ops of the block.
    pub(super) ops: usize,
}

/// Ranks whose programs are alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Alike {
    /// The ranks, ascending.
    pub(super) ranks: Vec<usize>,
    /// The one with the most ops, whose program stands for all.
    pub(super) stands: usize,
    /// The program.
    pub(super) blocks: Vec<Block>,
    /// Index of the first op of each block, for each rank of `ranks`; empty where programs only use the same ops.
    pub(super) begins: Vec<Vec<usize>>,
}

impl Alike {
    /// Returns the block that an op of a rank is in.
    pub(super) fn block(&self, rank: usize, op: usize) -> Option<usize> {
        match self.begins.is_empty() {
            false => {
                let at = self.ranks.binary_search(&rank).ok()?;
                self.begins[at].partition_point(|first| *first <= op).checked_sub(1)
            }
            true if rank == self.stands => self.blocks.iter().rposition(|b| b.first <= op),
            true => self
                .blocks
                .iter()
                .position(|b| b.verbs.is_empty() || b.verbs.contains(&"set") || b.verbs.contains(&"add")),
        }
    }
}

/// Returns what an op does, in a word.
fn verb(op: &Op) -> &'static str {
    match op {
        Op::Move { src, dst } => move_verb(src.space, dst.space),
        Op::Fold { .. } => "fold",
        Op::Set { carry: Some(Carry::Bytes(_)), .. } => "send",
        Op::Set { .. } => "set",
        Op::Add { .. } => "add",
        Op::Wait { .. } => "wait",
    }
}

/// The blocks of a program.
fn blocks(ops: &[Op]) -> Vec<Block> {
    let verbs: Vec<&'static str> = ops.iter().map(verb).collect();
    let mut found: Vec<Block> = Vec::new();
    let block = |first: usize, unit: usize, times: usize| {
        let all = first..first + unit * times;
        let sizes = || ops[all.clone()].iter().filter_map(moved);
        Block {
            verbs: verbs[first..first + unit].to_vec(),
            times: (times, times),
            bytes: sizes().min().zip(sizes().max()),
            first,
            ops: all.len(),
        }
    };
    let mut at = 0;
    // Where ops began that do not repeat.
    let mut loose = 0;
    while at < verbs.len() {
        let times = |unit: usize| {
            let repeats = verbs[at..].chunks_exact(unit).take_while(|c| *c == &verbs[at..at + unit]);
            repeats.count()
        };
        let units = (1..=UNIT.min(verbs.len() - at)).map(|unit| (unit, times(unit)));
        let best = units
            .filter(|(_, times)| *times > 1)
            .max_by_key(|(unit, times)| (unit * times, usize::MAX - unit));
        // A wait begins a block, so that what ends it points to its front.
        if (best.is_some() || verbs[at] == "wait") && loose < at {
            found.push(block(loose, at - loose, 1));
            loose = at;
        }
        match best {
            Some((unit, times)) => {
                found.push(block(at, unit, times));
                at += unit * times;
                loose = at;
            }
            None => at += 1,
        }
    }
    if loose < at {
        found.push(block(loose, at - loose, 1));
    }
    if found.len() > BLOCKS {
        let (from, to) = (BLOCKS / 2, found.len() - (BLOCKS / 2 - 1));
        let first = found[from].first;
        let ops = found[to].first - first;
        found.splice(from..to, [Block { verbs: Vec::new(), times: (1, 1), bytes: None, first, ops }]);
    }
    found
}

/// Keys by which blocks are compared, closest first: all of a block; without lengths; without repetitions either. Beyond these
/// `alike` compares programs by the ops that are used.
const WAYS: [fn(&Block) -> Key; 3] = [
    |b| (b.verbs.clone(), Some(b.times), b.bytes),
    |b| (b.verbs.clone(), Some(b.times), None),
    |b| (b.verbs.clone(), None, None),
];

type Key = (Vec<&'static str>, Option<(usize, usize)>, Option<(usize, usize)>);

/// Returns the groups of ranks that do the same, in the order of their first ranks. The root is one of its own.
pub(super) fn alike(plan: &Plan) -> Vec<Alike> {
    let programs: Vec<Vec<Block>> = plan.programs.iter().map(|ops| blocks(ops)).collect();
    let root = |rank: usize| plan.collective.rooted() && rank == plan.root.index();
    for way in WAYS {
        let key = |rank: usize| (root(rank), programs[rank].iter().map(way).collect::<Vec<_>>());
        let groups = by(programs.len(), key);
        if groups.len() <= GROUPS {
            return groups.into_iter().map(|ranks| joined(plan, &programs, ranks, true)).collect();
        }
    }
    let used = |rank: usize| {
        let mut verbs: Vec<&str> = plan.programs[rank].iter().map(verb).collect();
        verbs.sort_unstable();
        verbs.dedup();
        (root(rank), verbs)
    };
    let mut groups = by(programs.len(), used);
    // What is left over, where even those are many, is one.
    if groups.len() > GROUPS {
        let rest = groups.split_off(GROUPS - 1).concat();
        groups.push(rest);
    }
    groups.into_iter().map(|ranks| joined(plan, &programs, ranks, false)).collect()
}

/// Ranks of equal keys.
fn by<K: Ord>(ranks: usize, key: impl Fn(usize) -> K) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    (0..ranks).for_each(|rank| groups.entry(key(rank)).or_default().push(rank));
    let mut groups: Vec<Vec<usize>> = groups.into_values().collect();
    groups.sort();
    groups
}

fn joined(plan: &Plan, programs: &[Vec<Block>], mut ranks: Vec<usize>, aligned: bool) -> Alike {
    ranks.sort_unstable();
    let most = ranks.iter().copied().max_by_key(|&rank| (plan.programs[rank].len(), usize::MAX - rank));
    let stands = most.unwrap_or(0);
    let mut blocks = programs[stands].clone();
    let mut begins = Vec::new();
    if aligned {
        for (i, block) in blocks.iter_mut().enumerate() {
            let same = || ranks.iter().map(|&rank| &programs[rank][i]);
            let least = same().map(|b| b.times.0).min().unwrap_or(1);
            block.times = (least, same().map(|b| b.times.1).max().unwrap_or(1));
            let sizes = || same().filter_map(|b| b.bytes);
            block.bytes = sizes().map(|b| b.0).min().zip(sizes().map(|b| b.1).max());
        }
        begins = ranks.iter().map(|&rank| programs[rank].iter().map(|b| b.first).collect()).collect();
    }
    Alike { ranks, stands, blocks, begins }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::algorithm;
    use lineweave_core::collective::Collective;
    use lineweave_core::plan::Params;
    use lineweave_core::select::Question;

    fn plan(collective: Collective, name: &str, ranks: usize) -> Plan {
        let question = Question::flat(collective, ranks, 8, 1);
        algorithm::find(collective, name).unwrap().plan(&question.window(8), &Params::new()).unwrap()
    }

    #[test]
    fn ranks_that_do_the_same_are_one_group() {
        let groups = alike(&plan(Collective::Barrier, "dissemination", 64));
        assert_eq!(groups.len(), 1, "{groups:?}");
        let groups = alike(&plan(Collective::Bcast, "binomial", 64));
        assert_eq!(groups[0].ranks, [0]);
        assert!((3..=8).contains(&groups.len()), "by the number of whom they tell: {groups:?}");
        assert_eq!(groups.iter().map(|g| g.ranks.len()).sum::<usize>(), 64);
    }

    #[test]
    fn every_rank_of_every_algorithm_is_in_one_group_and_every_op_in_one_block() {
        for algorithm in algorithm::all() {
            for ranks in [17, 64] {
                let question = Question::flat(
                    algorithm.collective,
                    ranks,
                    8,
                    if algorithm.collective.folds() { 8 } else { 1 },
                );
                let Ok(plan) = algorithm.plan(&question.window(8), &Params::new()) else { continue };
                let groups = alike(&plan);
                let mut all: Vec<usize> = groups.iter().flat_map(|g| g.ranks.clone()).collect();
                all.sort_unstable();
                assert_eq!(all, (0..ranks).collect::<Vec<_>>(), "{}", plan.name());
                assert!(groups.len() <= GROUPS, "{}: {} groups", plan.name(), groups.len());
                for group in &groups {
                    let ops: usize = group.blocks.iter().map(|b| b.ops).sum();
                    assert_eq!(ops, plan.programs[group.stands].len(), "{}", plan.name());
                    assert!(group.blocks.len() <= BLOCKS);
                }
            }
        }
    }
}

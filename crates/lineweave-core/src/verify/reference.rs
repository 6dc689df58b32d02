//! A second, naive judge for small plans, which shares no code with the first.
//!
//! It spells out every step of a few runs as a node of a graph, closes the graph under reachability, and looks
//! at every pair of accesses to every cell of memory. A mutant that passes [`super::verify`] counts as
//! harmless only when this judge, too, finds it ordered, complete, and equal in every result cell
//! to the plan it was made from.

use crate::collective::{Collective, Extent};
use crate::plan::{Carry, FlagKind, FlagRef, Op, Plan, Region, Reuse, Space, Take};
use std::collections::HashMap;

#[cfg(test)]
mod cuts;
#[cfg(test)]
pub(super) use cuts::{is_cut_of, is_cut_to};

const RUNS: usize = 3;
const BANKS: usize = 2;
/// Beyond this many steps the closure of the graph is refused.
const MOST_STEPS: usize = 24_000;

/// Returns whether two plans deliver the same results and are both ordered and complete.
pub(super) fn equivalent(original: &Plan, mutant: &Plan) -> bool {
    let cell = cell_size(original, cell_size(mutant, 0)).max(1);
    let mut trees = HashMap::new();
    let a = Judge::new(original, cell, &mut trees).and_then(|mut j| j.results());
    let b = Judge::new(mutant, cell, &mut trees).and_then(|mut j| j.results());
    a.is_some() && a == b
}

/// Returns the number of blocks of a buffer.
fn blocks_in(extent: Extent, ranks: usize) -> usize {
    match extent {
        Extent::Nothing => 0,
        Extent::Message => 1,
        Extent::Blocks => ranks,
    }
}

/// The largest size of which every offset and length is a multiple.
fn cell_size(plan: &Plan, start: usize) -> usize {
    fn gcd(a: usize, b: usize) -> usize {
        if b == 0 {
            a
        } else {
            gcd(b, a % b)
        }
    }
    let grid = plan.grid();
    let buffers = (0..plan.ranks).flat_map(|r| [grid.input_bytes(r), grid.output_bytes(r)]);
    let mut size = buffers.fold(start, gcd);
    for (_, op) in plan.ops() {
        for region in op.regions() {
            size = gcd(gcd(size, region.offset), region.len);
        }
    }
    size
}

/// A buffer of one rank or bank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Buffer {
    In(usize),
    Out(usize),
    Acc(usize),
    Slot(usize, usize, u16),
    Payload(usize, FlagRef),
}

/// Content of a cell.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Tree {
    Nothing,
    Input { rank: usize, cell: usize, run: usize },
    Address { rank: usize, out: bool, run: usize },
    Fold(usize),
}

/// A node of the graph.
#[derive(Clone, Copy, Debug)]
struct Event {
    rank: usize,
    run: usize,
    /// 0 enter, 1 + op, then leave.
    step: usize,
}

struct Judge<'a> {
    plan: &'a Plan,
    cell: usize,
    events: Vec<Event>,
    order: Vec<usize>,
    /// For every event, the events that precede it, as a bit set.
    before: Vec<Vec<u64>>,
    trees: &'a mut HashMap<(Tree, Tree), usize>,
    /// Bytes from one block to the next by which inputs are named, if not by where they lie.
    apart: Option<usize>,
}

impl<'a> Judge<'a> {
    /// The closed graph; `None` when it is too large, some wait is never satisfied, or waits form a cycle.
    fn new(plan: &'a Plan, cell: usize, trees: &'a mut HashMap<(Tree, Tree), usize>) -> Option<Judge<'a>> {
        let mut events = Vec::new();
        let mut first = vec![vec![0; RUNS]; plan.ranks];
        for (rank, program) in plan.programs.iter().enumerate() {
            for (run, at) in first[rank].iter_mut().enumerate() {
                *at = events.len();
                events.extend((0..program.len() + 2).map(|step| Event { rank, run, step }));
            }
        }
        if events.len() > MOST_STEPS {
            return None;
        }
        let preceding: Vec<Vec<usize>> =
            (0..events.len()).map(|i| predecessors(plan, &events, &first, i)).collect::<Option<_>>()?;
        // Kahn's order, and with it the closure.
        let mut after = vec![Vec::new(); events.len()];
        let mut open: Vec<usize> = preceding.iter().map(Vec::len).collect();
        for (i, list) in preceding.iter().enumerate() {
            list.iter().for_each(|&b| after[b].push(i));
        }
        let mut ready: Vec<usize> = (0..events.len()).filter(|&i| open[i] == 0).collect();
        let mut order = Vec::new();
        let mut before = vec![Vec::new(); events.len()];
        while let Some(i) = ready.pop() {
            let mut set = vec![0u64; events.len().div_ceil(64)];
            for &b in &preceding[i] {
                set[b / 64] |= 1 << (b % 64);
                let other: &Vec<u64> = &before[b];
                set.iter_mut().zip(other).for_each(|(m, t)| *m |= t);
            }
            before[i] = set;
            order.push(i);
            for &a in &after[i] {
                open[a] -= 1;
                if open[a] == 0 {
                    ready.push(a);
                }
            }
        }
        (order.len() == events.len()).then_some(Judge {
            plan,
            cell,
            events,
            order,
            before,
            trees,
            apart: None,
        })
    }

    /// The cells of a rank's input by their names.
    fn names(&self, rank: usize, cells: usize) -> Vec<usize> {
        let Some(pitch) = self.apart else { return (0..cells).collect() };
        let (grid, root) = (self.plan.grid(), self.plan.root.index());
        let blocks = blocks_in(grid.collective.input(rank, root), self.plan.ranks);
        let mut names = vec![0; cells];
        for block in 0..blocks {
            let place = grid.given(rank, block);
            let first = place.start / self.cell;
            (0..place.len() / self.cell).for_each(|i| names[first + i] = block * pitch / self.cell + i);
        }
        names
    }

    fn ordered(&self, a: usize, b: usize) -> bool {
        let has = |set: &Vec<u64>, i: usize| set[i / 64] >> (i % 64) & 1 == 1;
        a == b || has(&self.before[a], b) || has(&self.before[b], a)
    }

    /// Returns the content of every result cell in every run; `None` when something is unordered.
    fn results(&mut self) -> Option<Vec<(usize, usize, Vec<Tree>)>> {
        let plan = self.plan;
        let mut memory: HashMap<(Buffer, usize), Tree> = HashMap::new();
        let mut accesses: HashMap<(Buffer, usize), Vec<(usize, bool)>> = HashMap::new();
        let mut results = Vec::new();
        let grid = plan.grid();
        for i in self.order.clone() {
            let Event { rank, run, step } = self.events[i];
            let last = plan.programs[rank].len() + 1;
            let (ins, outs) = (grid.input_bytes(rank) / self.cell, grid.output_bytes(rank) / self.cell);
            if step == 0 || step == last {
                if step == last && speaks(plan, rank) {
                    let held = (0..outs).map(|c| memory.get(&(Buffer::Out(rank), c)).copied());
                    results.push((rank, run, held.map(|t| t.unwrap_or(Tree::Nothing)).collect()));
                }
                memory.retain(|(b, _), _| *b != Buffer::Out(rank) && *b != Buffer::Acc(rank));
                for (c, name) in self.names(rank, ins).into_iter().enumerate() {
                    let input = Tree::Input { rank, cell: name, run };
                    memory.insert((Buffer::In(rank), c), if step == 0 { input } else { Tree::Nothing });
                }
                if plan.direct {
                    for c in 0..ins {
                        accesses.entry((Buffer::In(rank), c)).or_default().push((i, true));
                    }
                    for c in 0..outs {
                        accesses.entry((Buffer::Out(rank), c)).or_default().push((i, true));
                    }
                }
                continue;
            }
            let bank = bank(plan, run);
            let op = &plan.programs[rank][step - 1];
            let get = |region: &Region, accesses: &mut HashMap<(Buffer, usize), Vec<(usize, bool)>>| {
                let buffer = buffer(rank, bank, region.space);
                let from = region.offset / self.cell;
                (from..from + region.len / self.cell)
                    .map(|c| {
                        accesses.entry((buffer, c)).or_default().push((i, false));
                        memory.get(&(buffer, c)).copied().unwrap_or(Tree::Nothing)
                    })
                    .collect::<Vec<Tree>>()
            };
            let (place, from, values) = match op {
                Op::Move { src, dst } => {
                    let values = get(src, &mut accesses);
                    (buffer(rank, bank, dst.space), dst.offset / self.cell, values)
                }
                Op::Fold { a, b, dst } => {
                    let (left, right) = (get(a, &mut accesses), get(b, &mut accesses));
                    let mut values = Vec::with_capacity(left.len());
                    for pair in left.into_iter().zip(right) {
                        let next = self.trees.len();
                        values.push(Tree::Fold(*self.trees.entry(pair).or_insert(next)));
                    }
                    (buffer(rank, bank, dst.space), dst.offset / self.cell, values)
                }
                Op::Set { flag, carry: Some(Carry::Bytes(region)), .. } => {
                    (Buffer::Payload(bank, *flag), 0, get(region, &mut accesses))
                }
                Op::Set { flag, carry: Some(Carry::Address(space)), .. } => {
                    let address = Tree::Address { rank, out: *space == Space::Out, run };
                    (Buffer::Payload(bank, *flag), 0, vec![address])
                }
                Op::Wait { flag, take: Some(Take::Bytes(region)), .. } => {
                    let values = (0..region.len / self.cell).map(|c| {
                        let at = (Buffer::Payload(bank, *flag), c);
                        accesses.entry(at).or_default().push((i, false));
                        memory.get(&at).copied().unwrap_or(Tree::Nothing)
                    });
                    let values = values.collect();
                    (buffer(rank, bank, region.space), region.offset / self.cell, values)
                }
                Op::Wait { flag, take: Some(Take::Address(space)), .. } => {
                    let at = (Buffer::Payload(bank, *flag), 0);
                    accesses.entry(at).or_default().push((i, false));
                    let wanted = match space {
                        Space::PeerIn(q) => Tree::Address { rank: q.index(), out: false, run },
                        Space::PeerOut(q) => Tree::Address { rank: q.index(), out: true, run },
                        Space::In | Space::Out | Space::Acc | Space::Slot { .. } => return None,
                    };
                    if memory.get(&at) != Some(&wanted) {
                        return None;
                    }
                    continue;
                }
                Op::Set { carry: None, .. } | Op::Wait { take: None, .. } | Op::Add { .. } => continue,
            };
            for (c, value) in values.into_iter().enumerate() {
                accesses.entry((place, from + c)).or_default().push((i, true));
                memory.insert((place, from + c), value);
            }
        }
        let disordered = accesses.values().any(|list| {
            list.iter().enumerate().any(|(n, &(a, writes))| {
                list[n + 1..].iter().any(|&(b, too)| (writes || too) && !self.ordered(a, b))
            })
        });
        if disordered || (plan.collective == Collective::Barrier && !self.synchronizes()) {
            return None;
        }
        results.sort_by_key(|(rank, run, _)| (*run, *rank));
        Some(results)
    }

    fn synchronizes(&self) -> bool {
        let find = |rank: usize, run: usize, step: usize| {
            self.events.iter().position(|e| e.rank == rank && e.run == run && e.step == step)
        };
        (0..RUNS).all(|run| {
            (0..self.plan.ranks).all(|a| {
                (0..self.plan.ranks).all(|b| {
                    match (find(a, run, 0), find(b, run, self.plan.programs[b].len() + 1)) {
                        (Some(enter), Some(leave)) => self.before[leave][enter / 64] >> (enter % 64) & 1 == 1,
                        _ => false,
                    }
                })
            })
        })
    }
}

/// Returns whether a rank's `out` is a result.
fn speaks(plan: &Plan, rank: usize) -> bool {
    plan.collective.output(rank, plan.root.index()) != Extent::Nothing
}

fn bank(plan: &Plan, run: usize) -> usize {
    match plan.reuse {
        Reuse::Same => 0,
        Reuse::Ring => run % BANKS,
    }
}

fn buffer(rank: usize, bank: usize, space: Space) -> Buffer {
    match space {
        Space::In => Buffer::In(rank),
        Space::Out => Buffer::Out(rank),
        Space::Acc => Buffer::Acc(rank),
        Space::Slot { rank, slot } => Buffer::Slot(bank, rank.index(), slot),
        Space::PeerIn(q) => Buffer::In(q.index()),
        Space::PeerOut(q) => Buffer::Out(q.index()),
    }
}

/// The events that directly precede event `i`; `None` when it waits for something that never comes.
fn predecessors(plan: &Plan, events: &[Event], first: &[Vec<usize>], i: usize) -> Option<Vec<usize>> {
    let Event { rank, run, step } = events[i];
    let mut list = Vec::new();
    if step > 0 || run > 0 {
        list.push(i - 1);
    }
    if step == 0 && plan.reuse == Reuse::Ring && run >= BANKS {
        list.extend((0..plan.ranks).map(|q| first[q][run - BANKS] + plan.programs[q].len() + 1));
    }
    let op = step.checked_sub(1).and_then(|s| plan.programs[rank].get(s));
    let Some(Op::Wait { flag, value, .. }) = op else { return Some(list) };
    // Every write of this flag in this bank, with the value it reaches counted from the bank's first run.
    let mates: Vec<usize> = (0..RUNS).filter(|&r| bank(plan, r) == bank(plan, run)).collect();
    let use_of = |r: usize| mates.iter().position(|&m| m == r).unwrap_or(0) as i64;
    let span = i64::from(plan.span());
    let mut sets: Vec<(i64, usize)> = Vec::new();
    let mut adds: Vec<Vec<usize>> = vec![Vec::new(); mates.len()];
    for (q, program) in plan.programs.iter().enumerate() {
        for (o, op) in program.iter().enumerate() {
            for &r in &mates {
                let event = first[q][r] + 1 + o;
                match op {
                    Op::Set { flag: f, value, .. } if f == flag => {
                        sets.push((use_of(r) * span + i64::from(*value), event));
                    }
                    Op::Add { flag: f } if f == flag => adds[use_of(r) as usize].push(event),
                    Op::Set { .. } | Op::Add { .. } | Op::Wait { .. } | Op::Move { .. } | Op::Fold { .. } => {
                    }
                }
            }
        }
    }
    match plan.flags[flag.array as usize].kind {
        FlagKind::Signal => {
            let target = use_of(run) * span + i64::from(*value);
            if target > 0 {
                list.push(sets.iter().filter(|(v, _)| *v >= target).min()?.1);
            }
        }
        FlagKind::Counter => {
            let total = adds[0].len() as i64;
            let target = use_of(run) * total + i64::from(*value);
            if target > total * adds.len() as i64 {
                return None;
            }
            // Fewer than a whole run's adds are no particular ones.
            for whole in adds.iter().take(usize::try_from(target.max(0) / total.max(1)).ok()?) {
                list.extend(whole);
            }
        }
    }
    Some(list)
}

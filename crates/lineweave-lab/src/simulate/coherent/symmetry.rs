//! Symmetries of a plan on a machine: ranks that can change places so that every rank does what another one did, on lines at the same distances.

use super::super::names::{Names, Renamed};
use super::super::program::Instruction;
use super::super::{Address, Playable};
use super::caches::Caches;

/// The most ranks whose orders are tried, and the most orders: all of 7 ranks, and of more those of the last ones.
const RANKS: usize = 8;
const ORDERS: usize = 5040;
/// The most symmetries that are used. Each costs a key a state.
const MOST: usize = 24;

/// A map under construction.
struct Map(Vec<u32>);

impl Map {
    fn new(count: usize) -> Map {
        Map(vec![u32::MAX; count])
    }

    /// Maps `a` to `b`. Returns whether that contradicts nothing.
    fn pair(&mut self, a: u32, b: u32) -> bool {
        let place = &mut self.0[a as usize];
        let free = *place == u32::MAX;
        if free {
            *place = b;
        }
        free || *place == b
    }
}

impl Caches {
    /// Touches all lines that a program ever touches. Returns the symmetries of the program on these caches, first the one that changes nothing.
    pub(in super::super) fn symmetries(&mut self, program: &Playable) -> Vec<Names> {
        let ranks = program.ops.len();
        let same: Vec<u32> = (0..ranks as u32).collect();
        for op in program.ops.iter().flatten() {
            self.touched(program, op);
        }
        let names = Names {
            ranks: Renamed::none(ranks),
            cores: Renamed::none(1 + self.hands.iter().map(|hand| hand.core as usize).max().unwrap_or(0)),
            lines: Renamed::none(self.memory.lines.len()),
            flags: Renamed::none(program.flags()),
        };
        let mut found = vec![names];
        if ranks > RANKS {
            return found;
        }
        let mut order = same.clone();
        for _ in 1..ORDERS {
            if found.len() == MOST || !next_order(&mut order) {
                break;
            }
            found.extend(self.symmetry(program, &order, &found[0]));
        }
        found
    }

    /// The lines of an op: for each place the first and how many, and for a flag those that are fetched with it.
    fn touched(&mut self, program: &Playable, op: &Instruction) -> Vec<u32> {
        let mut lines = Vec::new();
        let mut span = |caches: &mut Caches, place: Address, len: usize| {
            let (first, last) = caches.memory.span(place, len);
            lines.extend(
                (first..if len > 0 { last + 1 } else { first })
                    .map(|n| caches.memory.touch(n, &caches.costs)),
            );
        };
        let flag = match *op {
            Instruction::Move { src, dst, len } => {
                span(self, src, len);
                span(self, dst, len);
                return lines;
            }
            Instruction::Fold { a, b, dst, len } => {
                [a, b, dst].into_iter().for_each(|place| span(self, place, len));
                return lines;
            }
            Instruction::Set { flag, from: place, payload, .. }
            | Instruction::Wait { flag, into: place, payload, .. } => {
                place.into_iter().for_each(|place| span(self, place, payload));
                flag
            }
            Instruction::Add { flag } => flag,
        };
        let info = &program.flags[flag as usize];
        let at = super::super::FlagAt { id: flag, home: info.home, offset: info.offset };
        let line = self.memory.of_flag(at, &self.costs);
        lines.push(line);
        if matches!(op, Instruction::Wait { .. }) {
            let behind = self.memory.behind(line, self.costs.prefetch);
            lines.extend(behind.map(|number| self.memory.touch(number, &self.costs)));
        }
        lines
    }

    /// Returns the names by which rank `r` becomes `order[r]`, if that is a symmetry.
    fn symmetry(&mut self, program: &Playable, order: &[u32], same: &Names) -> Option<Names> {
        let ranks = Renamed::of(order.to_vec())?;
        let mut cores = Map::new(same.cores.in_order().count());
        let mut lines = Map::new(same.lines.in_order().count());
        let mut flags = Map::new(same.flags.in_order().count());
        for (rank, &other) in order.iter().enumerate().rev() {
            if !cores.pair(self.hands[rank].core, self.hands[other as usize].core) {
                return None;
            }
            let (mine, others) = (&program.ops[rank], &program.ops[other as usize]);
            if mine.len() != others.len() {
                return None;
            }
            for (a, b) in mine.iter().zip(others) {
                let (of_a, of_b) = (self.touched(program, a), self.touched(program, b));
                let lines_pair =
                    of_a.len() == of_b.len() && of_a.iter().zip(&of_b).all(|(&a, &b)| lines.pair(a, b));
                if !lines_pair || !alike(a, b, &mut flags) {
                    return None;
                }
            }
        }
        // Flags of further banks are not used by one run; nor are lines that only prefetchers of other ranks reach.
        for (at, to) in flags.0.iter_mut().enumerate().filter(|(_, to)| **to == u32::MAX) {
            *to = at as u32;
        }
        let (cores, lines) = (Renamed::of(cores.0)?, Renamed::of(lines.0)?);
        let names = Names { ranks, cores, lines, flags: Renamed::of(flags.0)? };
        let home = |line: u32| {
            let ((core, node), private) = self.memory.home(line);
            (if private { Some(core) } else { None }, node)
        };
        let moved = (0..self.memory.lines.len() as u32).all(|line| {
            let ((owner, node), other) = (home(line), home(names.lines.to(line)));
            other == (owner.map(|core| names.cores.to(core)), node)
        });
        let growth = (0..program.flags.len()).all(|flag| {
            let to = names.flags.to(flag as u32) as usize;
            program.flags.get(to).is_some_and(|other| other.growth == program.flags[flag].growth)
        });
        (moved && growth && self.costs.alike(&names.cores)).then_some(names)
    }
}

/// Returns whether two ops do the same, but for where.
fn alike(a: &Instruction, b: &Instruction, flags: &mut Map) -> bool {
    use Instruction::{Add, Fold, Move, Set, Wait};
    match (*a, *b) {
        (Move { len, .. }, Move { len: other, .. }) | (Fold { len, .. }, Fold { len: other, .. }) => {
            len == other
        }
        (Set { flag, value, from, payload }, Set { flag: f, value: v, from: place, payload: bytes })
        | (
            Wait { flag, value, into: from, payload },
            Wait { flag: f, value: v, into: place, payload: bytes },
        ) => (value, payload, from.is_some()) == (v, bytes, place.is_some()) && flags.pair(flag, f),
        (Add { flag }, Add { flag: f }) => flags.pair(flag, f),
        (_, _) => false,
    }
}

/// Goes on to the next order; `false` after the last.
fn next_order(order: &mut [u32]) -> bool {
    let Some(at) = order.windows(2).rposition(|pair| pair[0] < pair[1]) else { return false };
    let with = order.iter().rposition(|&n| n > order[at]).unwrap_or(at);
    order.swap(at, with);
    order[at + 1..].reverse();
    true
}

//! State that earlier runs leave for the first run: the caches that have the lines of flags, and the bytes of slots and of users' buffers.

use super::compile::{Flag, Instruction, Operand, Playable};
use super::data::Memory;
use crate::lines::Line;
use crate::units::Rank;

/// The lines of a bank, buffers, and what ranks have put into them.
pub struct Left {
    /// Of flags.
    pub lines: Vec<Line>,
    /// Slots of a bank.
    pub slots: Memory,
    /// Users' buffers that others reach.
    pub reached: Memory,
    /// For each rank, bytes that it put into shared buffers.
    pub put: Vec<u64>,
}

/// Caches that have a line of flags.
#[derive(Clone, Default)]
struct Holders {
    caches: Vec<u32>,
    /// True if the one that has it wrote it last.
    modified: bool,
}

/// One run of a plan without its time: ops in an order that its flags allow, which tells who has what in the end.
struct Before<'a> {
    program: &'a Playable,
    /// For each rank, its cache.
    cache: &'a [u32],
    /// True if a read of what another cache modified takes it over.
    takes_over: bool,
    /// For each rank, the op that comes next.
    next: Vec<usize>,
    flags: Vec<i64>,
    /// For each flag, who waits for which value.
    waiting: Vec<Vec<(i64, u32)>>,
    /// Ranks that can go on.
    queue: Vec<u32>,
    lines: Vec<Holders>,
}

/// Returns the state that a run leaves of flags' lines, these slots and users' buffers. A plan that cannot finish leaves the state
/// in which it stops.
pub fn leave(program: &Playable, cache: &[u32], takes_over: bool, slots: Memory, reached: Memory) -> Left {
    let mut left = Left { lines: Vec::new(), slots, reached, put: vec![0; cache.len()] };
    let flags = program.adds.len();
    let mut before = Before {
        program,
        cache,
        takes_over,
        next: vec![0; cache.len()],
        flags: vec![0; flags],
        waiting: vec![Vec::new(); flags],
        queue: (0..cache.len() as u32).rev().collect(),
        lines: vec![Holders::default(); program.lines],
    };
    before.run(&mut left);
    let line = |(holders, home): (Holders, &Rank)| {
        let mut line = Line::read_by(home.0, holders.caches);
        if holders.modified {
            line.written();
        }
        line
    };
    left.lines = before.lines.into_iter().zip(&program.homes).map(line).collect();
    left
}

impl Before<'_> {
    fn run(&mut self, left: &mut Left) {
        while let Some(rank) = self.queue.pop() {
            let r = rank as usize;
            while let Some(&op) = self.program.ops[r].get(self.next[r]) {
                if !self.goes_on(rank, op) {
                    break;
                }
                self.touch(rank, op, left);
                self.next[r] += 1;
            }
        }
    }

    /// Returns whether a rank is past an op of flags; if not, it is told when it is.
    fn goes_on(&mut self, rank: u32, op: Instruction) -> bool {
        match op {
            Instruction::Move { .. } | Instruction::Fold { .. } => {}
            Instruction::Set { flag, value, .. } => self.raise(rank, flag, i64::from(value)),
            Instruction::Add { flag } => self.raise(rank, flag, self.flags[flag.number as usize] + 1),
            Instruction::Wait { flag, value, .. } => {
                let (number, wanted) = (flag.number as usize, i64::from(value));
                if self.flags[number] < wanted {
                    self.waiting[number].push((wanted, rank));
                    return false;
                }
                let (cache, line) = (self.cache[rank as usize], &mut self.lines[flag.line as usize]);
                if !line.caches.contains(&cache) {
                    if line.modified && self.takes_over {
                        line.caches.clear();
                    }
                    line.caches.push(cache);
                    line.modified = false;
                }
            }
        }
        true
    }

    fn raise(&mut self, rank: u32, flag: Flag, value: i64) {
        let number = flag.number as usize;
        self.flags[number] = self.flags[number].max(value);
        let line = &mut self.lines[flag.line as usize];
        line.caches.clear();
        line.caches.push(self.cache[rank as usize]);
        line.modified = true;
        let queue = &mut self.queue;
        self.waiting[number].retain(|&(wanted, rank)| {
            if wanted <= value {
                queue.push(rank);
            }
            wanted > value
        });
    }

    /// Records the bytes that an op reads, and then those that it writes.
    fn touch(&self, rank: u32, op: Instruction, left: &mut Left) {
        let (sources, dst, len) = match op {
            Instruction::Move { src, dst, len } => ([Some(src), None], dst, len),
            Instruction::Fold { a, b, dst, len } => ([Some(a), Some(b)], dst, len),
            Instruction::Set { .. } | Instruction::Wait { .. } | Instruction::Add { .. } => return,
        };
        let (cache, put) = (self.cache[rank as usize], &mut left.put[rank as usize]);
        for source in sources.into_iter().flatten() {
            match source.place() {
                Operand::Slot(a) => left.slots.was_read(cache, a.range(0)),
                Operand::Reached(a) => left.reached.was_read(cache, a.range(0)),
                Operand::Near | Operand::User | Operand::Attached => {}
            }
        }
        match dst.place() {
            Operand::Slot(a) => left.slots.write(cache, a.range(0), *put),
            Operand::Reached(a) => left.reached.write(cache, a.range(0), *put),
            Operand::Near | Operand::User | Operand::Attached => return,
        };
        *put += self.program.lens[len as usize] as u64;
    }
}

#[cfg(test)]
mod tests {
    use crate::algorithm::{self, Problem};
    use crate::collective::Collective;
    use crate::cost::{cost_with, Options};
    use crate::model::{Fitted, Surface, Values};
    use crate::plan::Params;
    use crate::topology::Shape;

    /// Runs that all find a bank of their own cost what runs cost that come back to two banks: what they find there is what such runs
    /// leave. Slots of 512 bytes, which peers have read, cost their writers more than lines that nobody had.
    #[test]
    fn the_first_run_in_a_bank_finds_what_the_runs_before_leave() {
        let model = Values::default().model();
        let plans = [("ring", "pull"), ("ring", "ring"), ("rabenseifner", "")];
        for ((name, gather), ranks) in plans.into_iter().zip([2, 4, 2]) {
            let params = match gather {
                "" => Params::new(),
                gather => Params::new().with("gather", gather),
            };
            let problem = Problem { grain: 8, ..Problem::flat(Collective::Allreduce, ranks, 1024) };
            let plan = algorithm::find(Collective::Allreduce, name).unwrap().plan(&problem, &params).unwrap();
            let total = |banks| {
                let options = Options { runs: 9, banks, ..Options::default() };
                cost_with(&model, &Shape::flat(ranks), &plan, &options).total.0
            };
            let (new, again) = (total(9), total(2));
            assert!(
                (new / again - 1.0).abs() < 0.02,
                "{name} {gather} of {ranks}: {new}, {again} in two banks"
            );
        }
    }

    /// Nobody writes users' buffers between runs: their readers have them, and fetching them neither costs nor counts against a limit.
    #[test]
    fn what_is_read_of_users_buffers_was_read_before() {
        let model = Values::default().model();
        let mut dear = model.clone();
        dear.levels[0].get = Surface::line(Fitted::assumed(1e6), Fitted::assumed(1.0));
        let problem = Problem { direct: true, ..Problem::flat(Collective::Bcast, 4, 4096) };
        let direct = algorithm::find(Collective::Bcast, "direct-flat").unwrap();
        let plan = direct.plan(&problem, &Params::new()).unwrap();
        let of = |model, limit| {
            let options = Options { runs: 1, limit, ..Options::default() };
            cost_with(model, &Shape::flat(4), &plan, &options).first.0
        };
        let first = of(&model, f64::INFINITY);
        assert_eq!(of(&dear, f64::INFINITY), first);
        assert_eq!(of(&model, first), first, "nothing but this run counts against a limit");
        assert!(of(&model, 0.9 * first).is_infinite());
    }
}

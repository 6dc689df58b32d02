//! The log of a playing, and the critical path in it.

use super::term::{Part, Term};
use super::Step;
use crate::units::{Nanos, Rank};

/// No entry.
pub const NONE: u32 = u32::MAX;
/// No op: what surrounds a run.
const AROUND: u32 = u32::MAX;

/// Something that took until `end`, after what `cause` did.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The rank.
    pub rank: u32,
    /// Its op.
    op: u32,
    /// The entry that had to be over first.
    cause: u32,
    /// Term on which the time was spent.
    term: Term,
    /// Until then.
    end: f64,
}

impl Entry {
    /// Creates the entry of a rank, or of its op, which took until `end`, after `cause`.
    pub fn new(rank: u32, op: Option<usize>, end: f64, term: Term, cause: u32) -> Entry {
        Entry { rank, op: op.map_or(AROUND, |op| op as u32), cause, term, end }
    }
}

/// Entries, when they are wanted at all.
#[derive(Debug)]
pub struct Log {
    wanted: bool,
    entries: Vec<Entry>,
    /// For each rank its last entry.
    last: Vec<u32>,
    /// For each rank what it waits for.
    awaited: Vec<Option<Entry>>,
    /// All of ranks themselves: what a CPU did before it handed over is looked up by time.
    by_time: Vec<u32>,
}

impl Log {
    /// An empty log; one that is not wanted stays empty.
    pub fn new(wanted: bool, ranks: usize) -> Log {
        Log {
            wanted,
            entries: Vec::new(),
            last: vec![NONE; ranks],
            awaited: vec![None; ranks],
            by_time: Vec::new(),
        }
    }

    /// A rank's last entry.
    pub fn last(&self, rank: u32) -> u32 {
        self.last[rank as usize]
    }

    /// The entry of two that ended later.
    pub fn later(&self, a: u32, b: u32) -> u32 {
        let end = |entry: u32| self.entries.get(entry as usize).map_or(f64::MIN, |e| e.end);
        if end(a) >= end(b) {
            a
        } else {
            b
        }
    }

    /// The rank was busy until `end`.
    pub fn spend(&mut self, rank: u32, op: Option<usize>, end: f64, term: Term) -> u32 {
        let cause = self.last(rank);
        self.push(Entry::new(rank, op, end, term, cause))
    }

    /// Something that happens beside what its rank does meanwhile.
    pub fn aside(&mut self, entry: Entry) -> u32 {
        if !self.wanted {
            return NONE;
        }
        self.entries.push(entry);
        self.entries.len() as u32 - 1
    }

    /// The rank will see something.
    pub fn await_event(&mut self, rank: u32, entry: Entry) {
        if self.wanted {
            self.awaited[rank as usize] = Some(entry);
        }
    }

    /// The rank goes on at `at`, having seen what it awaited at `seen`. `looked` is given when it shares its CPU:
    /// when the CPU began to look for a rank to run.
    pub fn resume(&mut self, rank: u32, op: usize, seen: f64, at: f64, looked: Option<f64>) {
        if !self.wanted {
            return;
        }
        let awaited = self.awaited[rank as usize].take();
        match (awaited, looked) {
            // The CPU was busy with other ranks when the flag was raised: that, and the hand-over, took the time.
            (_, Some(looked)) if seen <= looked => {
                let before =
                    self.by_time.iter().rev().copied().find(|&e| self.entries[e as usize].end == looked);
                let cause = before.unwrap_or_else(|| self.last(rank));
                self.push(Entry::new(rank, Some(op), at, Term::Yield, cause));
            }
            (Some(entry), looked) => {
                self.push(entry);
                let term = if looked.is_some() { Term::Yield } else { Term::Overhead(Part::Wait) };
                if at > entry.end {
                    self.spend(rank, Some(op), at, term);
                }
            }
            (None, _) => {
                self.spend(rank, Some(op), at, Term::Overhead(Part::Wait));
            }
        }
    }

    fn push(&mut self, entry: Entry) -> u32 {
        if !self.wanted {
            return NONE;
        }
        let at = self.entries.len() as u32;
        self.last[entry.rank as usize] = at;
        self.entries.push(entry);
        self.by_time.push(at);
        at
    }

    /// Backwards from the end of a rank, until `from`; in order of time. The steps' times add up to the time
    /// between.
    pub fn critical(&mut self, rank: u32, from: f64) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut at = self.last(rank);
        while let Some(entry) = self.entries.get(at as usize) {
            if entry.end <= from {
                break;
            }
            let begun = self.entries.get(entry.cause as usize).map_or(0.0, |c| c.end).max(from);
            let nanos = Nanos((entry.end - begun).max(0.0));
            let op = (entry.op != AROUND).then_some(entry.op as usize);
            steps.push(Step { rank: Rank(entry.rank), op, why: entry.term, nanos });
            at = entry.cause;
        }
        steps.reverse();
        steps
    }
}

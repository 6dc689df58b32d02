//! Ranks that reach other ranks' buffers by system calls, and the number of ranks that reach the same bytes at once.

use super::numbers::{number, Numbers};
use crate::plan::Region;
use crate::units::Rank;

/// Calls of a plan's ranks, told rank by rank in the order of their programs.
#[derive(Default)]
pub struct Attachers {
    /// For each rank, who reached its buffers last.
    last: Vec<Option<Rank>>,
    /// True if several ranks reach one rank's buffers.
    several: bool,
    /// Rank whose call was recorded last; `calls` counts its calls.
    caller: Option<Rank>,
    calls: usize,
    /// Bytes, each with the number that the call has among those of its rank; and how many calls there are of each.
    numbers: Numbers<(usize, Region)>,
    alike: Vec<usize>,
}

impl Attachers {
    /// None yet, of so many ranks.
    pub fn of(ranks: usize) -> Attachers {
        Attachers { last: vec![None; ranks], ..Attachers::default() }
    }

    /// A call by which one rank reaches another's bytes; `None` if there is no such rank.
    pub fn call(&mut self, by: Rank, of: Rank, bytes: Region) -> Option<()> {
        let before = self.last.get_mut(of.index())?.replace(by);
        self.several |= before.is_some_and(|other| other != by);
        if self.caller.replace(by) != Some(by) {
            self.calls = 0;
        }
        let id = number(&mut self.numbers, (self.calls, bytes)) as usize;
        self.calls += 1;
        if id == self.alike.len() {
            self.alike.push(0);
        }
        self.alike[id] += 1;
        Some(())
    }

    /// The most ranks that reach the same bytes by the same call of theirs. Two if several reach one rank's buffers, but in turn or other bytes of
    /// them: what a call finds there another had in between as well.
    pub fn at_once(&self) -> usize {
        let alike = self.alike.iter().copied().max().unwrap_or(0);
        alike.max(if self.several { 2 } else { 0 })
    }
}

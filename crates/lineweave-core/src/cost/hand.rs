//! Work that a rank has in hand while a plan is played: stores on their way, and the flag that it waits for.

use super::term::Term;
use crate::lines::Stores;
use crate::trace::Picos;

/// Stores to lines of others that a core has under way at once: the one that is served, and the next.
pub const AT_ONCE: usize = 2;

/// A store, or an atomic add, that a rank has issued.
#[derive(Clone, Copy, Debug)]
pub struct Store {
    pub rank: u32,
    pub line: u32,
    pub flag: u32,
    pub value: i64,
    /// The rank waits for it, and adds.
    pub atomic: bool,
    pub op: u32,
    /// The log entry of the op.
    pub entry: u32,
    /// Taking the line from the farthest that had it.
    pub term: Option<Term>,
}

impl Store {
    /// A set of a rank.
    pub fn set(rank: u32, line: u32, flag: u32, value: i64, op: usize, entry: u32) -> Store {
        Store { rank, line, flag, value, atomic: false, op: op as u32, entry, term: None }
    }

    /// An add of a rank.
    pub fn add(rank: u32, line: u32, flag: u32, op: usize, entry: u32) -> Store {
        Store { rank, line, flag, value: 0, atomic: true, op: op as u32, entry, term: None }
    }
}

/// Flag that a rank waits for.
#[derive(Clone, Copy, Debug)]
pub struct Watch {
    pub flag: u32,
    pub line: u32,
    pub wanted: i64,
    /// True if a load of it is under way.
    pub asked: bool,
}

/// Stores that a rank has issued, and the flag that it waits for.
#[derive(Clone, Debug, Default)]
pub struct Hand {
    pub stores: Stores<Store>,
    /// Those that have left and not landed.
    pub under_way: [Option<Store>; AT_ONCE],
    pub watch: Option<Watch>,
    /// The line among whose watchers it was put last.
    pub listed: Option<u32>,
    pub drains: Option<Picos>,
}

impl Hand {
    /// A store leaves; its place among those under way.
    pub fn put_under_way(&mut self, store: Store) -> u8 {
        let place = usize::from(self.under_way[0].is_some());
        self.under_way[place] = Some(store);
        place as u8
    }
}

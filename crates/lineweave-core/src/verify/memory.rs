//! Ranks and steps that wrote and read bytes, and the values that the bytes hold.

use super::expr::{Expr, UNDEFINED};
use super::segments::{Piece, Segments};

/// A step of a rank, numbered through all runs from 1; tick 0 is no step.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Epoch {
    pub(super) rank: u32,
    pub(super) tick: u32,
}

/// Value of bytes: an expression, and the position in the message of the first of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Value {
    pub(super) expr: Expr,
    pub(super) origin: usize,
}

impl Value {
    pub(super) const NONE: Value = Value { expr: UNDEFINED, origin: 0 };
}

impl Piece for Value {
    fn tail(&self, by: usize) -> Value {
        if self.expr == UNDEFINED {
            *self
        } else {
            Value { expr: self.expr, origin: self.origin + by }
        }
    }

    fn goes_on(&self, by: usize, next: &Value) -> bool {
        self.tail(by) == *next
    }
}

/// The last write of some bytes and the reads since then that no later read is known to follow.
#[derive(Clone, Debug, Default)]
pub(super) struct Access {
    pub(super) write: Epoch,
    pub(super) reads: Vec<Epoch>,
}

impl Piece for Access {
    fn tail(&self, _: usize) -> Access {
        self.clone()
    }

    /// Different steps made them.
    fn goes_on(&self, _: usize, _: &Access) -> bool {
        false
    }
}

/// Knowledge of a rank: for every rank, the last of its steps that precedes the next step of this one.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) rank: usize,
    pub(super) clock: &'a [u32],
}

impl Known<'_> {
    pub(super) fn has(&self, e: Epoch) -> bool {
        e.tick == 0 || e.rank as usize == self.rank || self.clock[e.rank as usize] >= e.tick
    }
}

/// Two accesses that conflict: the earlier one and whether it wrote.
pub(super) struct Conflict {
    pub(super) bytes: (usize, usize),
    pub(super) earlier: Epoch,
    pub(super) earlier_writes: bool,
}

/// One buffer, slot or payload.
pub(super) struct Shadow {
    pub(super) values: Segments<Value>,
    /// None for what only one rank ever touches.
    pub(super) access: Option<Segments<Access>>,
}

impl Shadow {
    pub(super) fn new(len: usize, shared: bool) -> Shadow {
        Shadow {
            values: Segments::new(len, Value::NONE),
            access: shared.then(|| Segments::new(len, Access::default())),
        }
    }

    /// Records a read; a write that does not precede it is a conflict.
    pub(super) fn read(&mut self, start: usize, end: usize, now: Epoch, known: Known) -> Option<Conflict> {
        let mut conflict = None;
        self.access.as_mut()?.update(start, end, |from, to, a| {
            if !known.has(a.write) && conflict.is_none() {
                conflict = Some(Conflict { bytes: (from, to), earlier: a.write, earlier_writes: true });
            }
            a.reads.retain(|&e| !known.has(e));
            a.reads.push(now);
        });
        conflict
    }

    /// Records a write; a write or read that does not precede it is a conflict.
    pub(super) fn write(&mut self, start: usize, end: usize, now: Epoch, known: Known) -> Option<Conflict> {
        let mut conflict = None;
        self.access.as_mut()?.update(start, end, |from, to, a| {
            if conflict.is_none() {
                let read = a.reads.iter().copied().find(|&e| !known.has(e));
                let earlier = if known.has(a.write) { read } else { Some(a.write) };
                conflict = earlier.map(|earlier| Conflict {
                    bytes: (from, to),
                    earlier,
                    earlier_writes: earlier == a.write,
                });
            }
            a.write = now;
            a.reads.clear();
        });
        conflict
    }
}

/// Reads of `in` and writes of `out` of one rank in one run, as if both were one buffer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Shared {
    pub(super) written: bool,
    pub(super) reads: Vec<Epoch>,
}

impl Piece for Shared {
    fn tail(&self, _: usize) -> Shared {
        self.clone()
    }

    fn goes_on(&self, _: usize, next: &Shared) -> bool {
        self == next
    }
}

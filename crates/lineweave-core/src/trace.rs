//! A trace: when each op of a plan began and ended, in virtual or in real time.
//!
//! The engine and the simulator record the same type, so prediction and reality lie side by side op by op.

use crate::names::named;
use crate::plan::{Op, Plan};
use crate::units::Rank;

/// A point in time or a duration, in whole picoseconds; a run begins at 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Picos(pub u64);

impl Picos {
    /// This time in nanoseconds.
    pub fn nanos(self) -> f64 {
        self.0 as f64 / 1e3
    }
}

/// Source of times.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Clock {
    /// The engine on real memory.
    Measured,
    /// The simulator.
    Simulated,
    /// The model.
    Predicted,
}

named!(Clock, Measured = "measured", Simulated = "simulated", Predicted = "predicted");

/// Kind of an op, without its operands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// [`Op::Move`].
    Move,
    /// [`Op::Fold`].
    Fold,
    /// [`Op::Set`].
    Set,
    /// [`Op::Wait`].
    Wait,
    /// [`Op::Add`].
    Add,
}

named!(Kind, Move = "move", Fold = "fold", Set = "set", Wait = "wait", Add = "add");

impl Kind {
    /// The kind of an op.
    pub fn of(op: &Op) -> Kind {
        match op {
            Op::Move { .. } => Kind::Move,
            Op::Fold { .. } => Kind::Fold,
            Op::Set { .. } => Kind::Set,
            Op::Wait { .. } => Kind::Wait,
            Op::Add { .. } => Kind::Add,
        }
    }
}

/// One op as it ran.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Rank that ran the op.
    pub rank: Rank,
    /// Its index in the rank's program.
    pub op: u32,
    /// Kind of the op.
    pub kind: Kind,
    /// Time at which the op began.
    pub start: Picos,
    /// Time at which the op ended, not before it began.
    pub end: Picos,
    /// The op as the plan's text form shows it; may be empty.
    pub text: String,
}

/// One run of one plan.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trace {
    /// `collective/algorithm`.
    pub plan: String,
    /// The plan's parameters as text.
    pub params: String,
    /// Number of ranks.
    pub ranks: usize,
    /// Length of the message.
    pub bytes: usize,
    /// Source of the times.
    pub clock: Clock,
    /// The ops that ran, each rank's in program order.
    pub events: Vec<Event>,
}

impl Trace {
    /// An empty trace of a run of `plan`.
    pub fn of(plan: &Plan, clock: Clock) -> Trace {
        Trace {
            plan: plan.name(),
            params: plan.params.to_string(),
            ranks: plan.ranks,
            bytes: plan.bytes,
            clock,
            events: Vec::new(),
        }
    }

    /// Adds that `rank` ran op `op` of its program in `plan` from `start` to `end`. An op that the plan does
    /// not have is left out.
    pub fn record(&mut self, plan: &Plan, rank: Rank, op: u32, start: Picos, end: Picos) {
        let found = plan.programs.get(rank.index()).and_then(|ops| ops.get(op as usize));
        if let Some(it) = found {
            let end = end.max(start);
            self.events.push(Event { rank, op, kind: Kind::of(it), start, end, text: plan.op_text(it) });
        }
    }

    /// Returns the time at which the last op ended.
    pub fn end(&self) -> Picos {
        self.events.iter().map(|e| e.end).max().unwrap_or_default()
    }
}

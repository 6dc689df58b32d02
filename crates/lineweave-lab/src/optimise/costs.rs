//! Closed costs of the steps of trees and rounds, from a model's numbers at one distance.
//!
//! They say what `cost` plays where nothing but the critical path counts: ranks start together, lines are where the
//! run before left them, flags lie on lines of their own. What they leave out is named at each.

use lineweave_core::model::Model;
use lineweave_core::topology::Level;

/// Costs of the steps of small collectives at one distance, in ns.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Steps {
    /// Time from a set until a poller sees it, the set included.
    pub signal: f64,
    /// Reading a line that was set before one looks.
    pub read: f64,
    /// One more reader of the same line (c of T_C).
    pub contention: f64,
    /// Time from one set to the next.
    pub gap: f64,
    /// Time from one load to the next, of lines that were set before one looks.
    pub row: f64,
    /// True if a read of a modified line takes it over.
    pub takes_over: bool,
    /// A fold of a few bytes, and moving them out of their line.
    pub fold: f64,
}

impl Steps {
    /// Returns the steps of a model at this distance, or at the next farther one that it knows.
    pub fn of(model: &Model, level: Level) -> Steps {
        let (costs, _) = model.level(level);
        let o = &model.overhead;
        let both = costs.read.value + costs.own.value;
        Steps {
            signal: both + o.set.value,
            read: costs.read.value,
            contention: model.contention.c.value,
            gap: model.between_stores(level).value.max(o.set.value),
            row: model.issue.value.min(costs.read.value),
            takes_over: costs.upgrade().is_some(),
            fold: o.mov.value + o.fold.value + model.fold(8).map_or(0.0, |f| f.private.at(8, 1).nanos),
        }
    }

    /// `k` children poll one line of their parent: the first has it a signal later. Where its read takes the line over the second
    /// is served a read after it; each further one comes a contention later.
    pub fn shared(&self, k: usize) -> f64 {
        let further = k as f64 - 1.0;
        match (k, self.takes_over) {
            (0 | 1, _) | (_, false) => self.signal + self.contention * further,
            (_, true) => self.signal + self.read + self.contention * (further - 1.0),
        }
    }

    /// A parent sets a flag for each of `k` children: the last one's `k - 1` gaps later.
    pub fn each(&self, k: usize) -> f64 {
        self.signal + self.gap * (k as f64 - 1.0)
    }

    /// A parent folds what `k` children left at it at the same time: the first arrives by a signal, lines of the others
    /// have to be fetched. Children of unequal subtrees arrive apart, which this leaves out.
    pub fn gather(&self, k: usize) -> f64 {
        self.signal + self.after_first(k) + k as f64 * self.fold
    }

    /// Lines of `k` flags, the first of which has been awaited and the others were set meanwhile: one is fetched, the rest follow in
    /// a row.
    fn after_first(&self, k: usize) -> f64 {
        let others = k as f64 - 1.0;
        if k > 1 {
            self.read + (others - 1.0) * self.row
        } else {
            0.0
        }
    }

    /// A round in which everybody tells `m` others and hears from `m`: the last of the sets that leave one after the other is seen
    /// a signal later, or else the lines of the flags after the first are fetched later than that.
    pub fn round(&self, m: usize) -> f64 {
        let others = m as f64 - 1.0;
        self.signal + (others * self.gap).max(self.after_first(m))
    }
}

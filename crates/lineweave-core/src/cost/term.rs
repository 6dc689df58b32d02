//! The parameters that a critical path is made of, by name.

use crate::model::{Fitted, LevelCosts, Model};
use crate::plan::Layout;
use crate::topology::Level;
use std::fmt;

/// The part of the engine that an overhead belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Part {
    /// A set.
    Set,
    /// A satisfied wait.
    Wait,
    /// A move.
    Move,
    /// A fold.
    Fold,
    /// A run.
    Run,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Set => "set",
            Part::Wait => "wait",
            Part::Move => "move",
            Part::Fold => "fold",
            Part::Run => "run",
        }
    }
}

/// A parameter of the model as it enters a cost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Term {
    /// A set seen by a polling peer.
    Signal(LayoutKey, Level),
    /// Two ranks setting for each other at once.
    Exchange(LayoutKey, Level),
    /// One read transfer (R_R).
    Read(Level),
    /// A line handed from rank to rank within one CPU's cache (R_L).
    Local,
    /// A fetch-and-add.
    Add(Level),
    /// Copying within private memory.
    Copy,
    /// Copying what a peer wrote, or to where a peer read.
    Transfer(Level),
    /// Copying by the kernel between processes.
    Attach,
    /// Folding, including what its operands cost to fetch.
    Fold,
    /// The engine.
    Overhead(Part),
    /// Ranks of one CPU handing over.
    Yield,
}

/// A layout in an order: `Layout` itself has none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum LayoutKey {
    /// [`Layout::Packed`].
    Packed,
    /// [`Layout::Paired`].
    Paired,
    /// [`Layout::Alone`].
    Alone,
    /// [`Layout::Spread`].
    Spread(u8),
}

impl From<Layout> for LayoutKey {
    fn from(layout: Layout) -> LayoutKey {
        match layout {
            Layout::Packed => LayoutKey::Packed,
            Layout::Paired => LayoutKey::Paired,
            Layout::Alone => LayoutKey::Alone,
            Layout::Spread(n) => LayoutKey::Spread(n),
        }
    }
}

impl From<LayoutKey> for Layout {
    fn from(key: LayoutKey) -> Layout {
        match key {
            LayoutKey::Packed => Layout::Packed,
            LayoutKey::Paired => Layout::Paired,
            LayoutKey::Alone => Layout::Alone,
            LayoutKey::Spread(n) => Layout::Spread(n),
        }
    }
}

impl Term {
    /// The parameter's value in a model; for copies and folds, its value at `bytes`.
    pub fn parameter(self, model: &Model, bytes: usize) -> Fitted {
        match self {
            Term::Signal(layout, level) => {
                let costs = model.level(level).0;
                LevelCosts::by_layout(&costs.signal, layout.into()).unwrap_or(costs.read)
            }
            Term::Exchange(layout, level) => {
                let costs = model.level(level).0;
                LevelCosts::by_layout(&costs.exchange, layout.into()).unwrap_or(costs.read)
            }
            Term::Read(level) => model.level(level).0.read,
            Term::Local => model.local,
            Term::Add(_) => model.add,
            Term::Copy => model.copy.reported(bytes),
            Term::Transfer(level) => model.level(level).0.get.reported(bytes),
            Term::Attach => model.attach.as_ref().unwrap_or(&model.copy).reported(bytes),
            Term::Fold => model.folds.first().map_or(model.overhead.fold, |f| f.private.reported(bytes)),
            Term::Overhead(Part::Set) => model.overhead.set,
            Term::Overhead(Part::Wait) => model.overhead.wait,
            Term::Overhead(Part::Move) => model.overhead.mov,
            Term::Overhead(Part::Fold) => model.overhead.fold,
            Term::Overhead(Part::Run) => model.overhead.run,
            Term::Yield => model.wake.yielding,
        }
    }
}

impl fmt::Display for Term {
    /// The name in profiles and explanations: `signal[paired]@l3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Term::Signal(layout, level) => format!("signal[{}]@{level}", Layout::from(layout)),
            Term::Exchange(layout, level) => format!("exchange[{}]@{level}", Layout::from(layout)),
            Term::Read(level) => format!("R_R@{level}"),
            Term::Local => "R_L".to_owned(),
            Term::Add(level) => format!("add@{level}"),
            Term::Copy => "copy[local]".to_owned(),
            Term::Transfer(level) => format!("copy[get,put]@{level}"),
            Term::Attach => "attach".to_owned(),
            Term::Fold => "fold".to_owned(),
            Term::Overhead(part) => format!("overhead[{}]", part.name()),
            Term::Yield => "wake[yield]".to_owned(),
        };
        f.pad(&text)
    }
}

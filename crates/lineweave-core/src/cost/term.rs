//! The parameters that a critical path is made of, by name.

use crate::model::{Fitted, LevelCosts, Model};
use crate::names::named;
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

named!(Part, Set = "set", Wait = "wait", Move = "move", Fold = "fold", Run = "run");

/// A parameter of the model as it enters a cost.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Term {
    /// A flag's line on its way to who polls it, and its turn among others who ask for it (R_R); whether its home is away, in
    /// another package.
    Read(Level, bool),
    /// A flag's line on its way to who sets it, and its turn (ownership); whether its home is away.
    Own(Level, bool),
    /// A fetch-and-add.
    Add,
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

impl Term {
    /// The parameter's value in a model; for copies and folds, its value at `bytes`.
    pub fn parameter(self, model: &Model, bytes: usize) -> Fitted {
        match self {
            Term::Read(level, away) => at_home_or_away(model, level, away, |costs| costs.read),
            Term::Own(level, away) => at_home_or_away(model, level, away, |costs| costs.own),
            Term::Add => model.add,
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

/// A transfer, or what takes as many times longer away from home.
fn at_home_or_away(model: &Model, level: Level, away: bool, of: fn(&LevelCosts) -> Fitted) -> Fitted {
    let costs = model.level(level).0;
    match away {
        true => of(costs).inferred(costs.farther_away()),
        false => of(costs),
    }
}

impl fmt::Display for Term {
    /// The name in profiles and explanations: `R_R@l3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Term::Read(level, false) => format!("R_R@{level}"),
            Term::Read(level, true) => format!("R_R@{level}[away]"),
            Term::Own(level, false) => format!("own@{level}"),
            Term::Own(level, true) => format!("own@{level}[away]"),
            Term::Add => "add".to_owned(),
            Term::Copy => "copy[local]".to_owned(),
            Term::Transfer(level) => format!("copy[get,put]@{level}"),
            Term::Attach => "attach".to_owned(),
            Term::Fold => "fold".to_owned(),
            Term::Overhead(part) => format!("overhead[{part}]"),
            Term::Yield => "wake[yield]".to_owned(),
        };
        f.pad(&text)
    }
}

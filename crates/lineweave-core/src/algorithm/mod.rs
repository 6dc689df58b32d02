//! The table of algorithms. Each is one file, a pure function from ranks, sizes and parameters to a plan.
//!
//! An algorithm *emits* its ops for a [`Participants`]: some of the ranks of a plan, with a root among them and
//! places where contributions lie and results go. In a flat algorithm all ranks take part; a
//! hierarchical one is several, level by level. That is why no file below knows about topology except
//! the `hierarchical` ones.

pub mod allgather;
pub mod allreduce;
pub mod alltoall;
pub mod barrier;
pub mod bcast;
mod brackets;
pub mod edges;
mod foresee;
mod home;
pub mod gather;
pub mod levels;
mod noc_msg;
mod participants;
pub mod pieces;
pub mod ranks;
pub mod reduce;
pub mod reduce_scatter;
pub mod row_trees;
pub mod scan;
pub mod scatter;
pub mod spec;
mod split_box;
pub mod trees;
mod two_sided;

pub use participants::{Participants, Place};

use crate::collective::Collective;
use crate::plan::{Blocks, Builder, FlagRef, Grid, Params, Part, Plan, PlanError, MAX_OPS};
use crate::topology::Shape;
use std::collections::HashSet;

/// The most ranks a plan takes.
pub const MAX_RANKS: usize = 16_384;

/// Request for a plan: the collective, its ranks, sizes and blocks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Collective of the plan.
    pub collective: Collective,
    /// The ranks and where they sit.
    pub shape: Shape,
    /// The root of a rooted collective.
    pub root: usize,
    /// Message length in bytes (one window of it, when it is longer than a box takes); length of the longest block,
    /// where ranks exchange blocks.
    pub bytes: usize,
    /// Layout of the blocks, where ranks exchange some.
    pub blocks: Blocks,
    /// Element size in bytes; 1 when nothing is folded.
    pub grain: usize,
    /// True if ranks can reach each other's private buffers.
    pub direct: bool,
}

impl Problem {
    /// `ranks` ranks under one cache, root 0, single-byte elements, no direct access.
    pub fn flat(collective: Collective, ranks: usize, bytes: usize) -> Problem {
        Problem {
            collective,
            shape: Shape::flat(ranks),
            root: 0,
            bytes,
            blocks: Blocks::Dense,
            grain: 1,
            direct: false,
        }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.shape.ranks()
    }

    /// Returns the grid of the buffers, which gives the place of each block.
    pub fn grid(&self) -> Grid<'_> {
        Grid {
            collective: self.collective,
            ranks: self.ranks(),
            root: if self.collective.rooted() { self.root } else { 0 },
            bytes: self.bytes,
            blocks: &self.blocks,
        }
    }
}

/// Part of a barrier that is emitted: all of it, or the part that one level plays.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BarrierPart {
    /// Arrival and release.
    Full,
    /// The root learns that everybody has arrived.
    Gather,
    /// Everybody learns that the root has gone on.
    Release,
}

/// One parameter of an algorithm, for listings and for checking what a user gives.
#[derive(Clone, Copy, Debug)]
pub struct ParamSpec {
    /// Name.
    pub name: &'static str,
    /// Default, as text.
    pub default: &'static str,
    /// One line for the listing.
    pub about: &'static str,
}

/// An algorithm: one file, one line of a collective's table.
pub struct Algorithm {
    /// Collective that the algorithm implements.
    pub collective: Collective,
    /// Name, unique within the collective.
    pub name: &'static str,
    /// Description in one line.
    pub about: &'static str,
    /// Paper and equation or section, or the system it is known from.
    pub source: &'static str,
    /// Its parameters.
    pub params: &'static [ParamSpec],
    /// The parameter sets worth costing for a problem; empty when it does not apply.
    pub candidates: fn(&Problem) -> Vec<Params>,
    /// Appends the ops of some participants to a plan.
    pub emit: fn(&mut Builder, &Problem, &Participants, &Params) -> Result<(), PlanError>,
}

impl std::fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.collective, self.name)
    }
}

impl Algorithm {
    /// The plan of this algorithm for a problem.
    ///
    /// # Errors
    /// A [`PlanError`] when the problem is malformed, a parameter is unknown or out of range, or the
    /// algorithm does not apply.
    pub fn plan(&self, problem: &Problem, params: &Params) -> Result<Plan, PlanError> {
        check(problem)?;
        self.check_params(params)?;
        self.with_home(problem, params, |own| {
            self.foresee(problem, own)?;
            self.make(problem, own, MAX_OPS)
        })
    }

    /// As [`Algorithm::plan`], for a plan of at most `most` ops: finding that it has more takes little time.
    ///
    /// # Errors
    /// As [`Algorithm::plan`], and [`PlanError::TooLarge`].
    pub fn plan_within(&self, problem: &Problem, params: &Params, most: usize) -> Result<Plan, PlanError> {
        check(problem)?;
        self.check_params(params)?;
        self.with_home(problem, params, |own| {
            self.foresee_within(problem, own, most)?;
            self.make(problem, own, most)
        })
    }

    /// One rank's part of the plan that [`Algorithm::plan`] gives: `Part::whole(plan, ..).only(rank)`, in memory for this part alone.
    ///
    /// # Errors
    /// As [`Algorithm::plan`].
    pub fn part(&self, problem: &Problem, params: &Params, rank: usize) -> Result<Part, PlanError> {
        let crowded = problem.shape.oversubscription() > 1;
        if self.home(params)?.is_some() {
            // Who uses a line says where it lies, and that the whole plan tells.
            return Ok(Part::whole(self.plan(problem, params)?, crowded).only(rank));
        }
        check(problem)?;
        self.check_params(params)?;
        let part = |wanted: HashSet<FlagRef>| {
            let builder = self.emitted(problem, params, MAX_OPS, |builder| builder.only(rank, wanted))?;
            Ok(builder.finish_part())
        };
        let part_alone = part(HashSet::new())?;
        match crowded {
            true => part(part_alone.plan.waited_for(rank)),
            false => Ok(part_alone),
        }
    }

    fn make(&self, problem: &Problem, params: &Params, most: usize) -> Result<Plan, PlanError> {
        self.emitted(problem, params, most, |_| ()).map(Builder::finish)
    }

    /// The ops of a problem's plan, at most so many.
    fn emitted(
        &self,
        problem: &Problem,
        params: &Params,
        most: usize,
        set_up: impl FnOnce(&mut Builder),
    ) -> Result<Builder, PlanError> {
        let root = if self.collective.rooted() { problem.root } else { 0 };
        let mut builder = Builder::new(
            self.collective,
            self.name,
            params,
            problem.ranks(),
            root,
            problem.bytes,
            problem.grain,
        );
        builder.blocks(problem.blocks.clone());
        builder.keep(most);
        set_up(&mut builder);
        let participants = Participants { root, ..Participants::all(problem) };
        (self.emit)(&mut builder, problem, &participants, params)?;
        match builder.ops() <= most {
            true => Ok(builder),
            false => Err(self.too_large(problem, builder.ops(), most)),
        }
    }

    /// The parameter sets to prove and test for a problem: the candidates, or the defaults where there are
    /// none and the algorithm applies, as for baselines that are only there for comparison.
    pub fn trials(&self, problem: &Problem) -> Vec<Params> {
        let mut trials = (self.candidates)(problem);
        if trials.is_empty() && self.plan(problem, &Params::new()).is_ok() {
            trials.push(Params::new());
        }
        let fixed = trials.first().map(|first| brackets::reproducible(self, first.clone()));
        trials.extend(fixed.filter(|params| *params != trials[0]));
        trials
    }

    /// The parameter sets worth costing where results have to be reproducible: the candidates, with the brackets for it
    /// where the algorithm has a choice of them. Whether results then are, a plan's proof tells.
    pub fn reproducible_candidates(&self, problem: &Problem) -> Vec<Params> {
        let candidates = (self.candidates)(problem);
        candidates.into_iter().map(|params| brackets::reproducible(self, params)).collect()
    }

    /// Returns whether every parameter given is one that this algorithm has.
    ///
    /// # Errors
    /// [`PlanError::UnknownParameter`] for the first that is not.
    pub fn check_params(&self, params: &Params) -> Result<(), PlanError> {
        match params.0.keys().find(|name| *name != home::NAME && !self.params.iter().any(|p| p.name == *name))
        {
            None => Ok(()),
            Some(name) => Err(PlanError::UnknownParameter {
                algorithm: format!("{}/{}", self.collective, self.name),
                name: name.clone(),
                known: match self.params {
                    [] => "none".to_owned(),
                    known => known.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
                },
            }),
        }
    }

    /// The error that says why this algorithm does not fit.
    pub fn not_applicable(&self, why: impl Into<String>) -> PlanError {
        PlanError::NotApplicable { algorithm: format!("{}/{}", self.collective, self.name), why: why.into() }
    }
}

/// Returns whether a problem is one at all.
///
/// # Errors
/// A [`PlanError`]: no ranks or too many, a root that is not a rank, or bytes that are no whole number of elements.
pub fn check(problem: &Problem) -> Result<(), PlanError> {
    let ranks = problem.ranks();
    if ranks == 0 {
        return Err(PlanError::NoRanks);
    }
    if ranks > MAX_RANKS {
        return Err(PlanError::TooManyRanks { ranks, most: MAX_RANKS });
    }
    if problem.collective.rooted() && problem.root >= ranks {
        return Err(PlanError::RootOutOfRange { root: problem.root, ranks });
    }
    if problem.grain == 0 || problem.bytes % problem.grain != 0 {
        return Err(PlanError::Ragged { bytes: problem.bytes, grain: problem.grain });
    }
    match problem.grid().fault(problem.grain) {
        Some(fault) => Err(PlanError::Blocks(fault)),
        None => Ok(()),
    }
}

/// The algorithms of a collective, in the order of the listing.
pub fn table(collective: Collective) -> &'static [&'static Algorithm] {
    match collective {
        Collective::Barrier => barrier::TABLE,
        Collective::Bcast => bcast::TABLE,
        Collective::Reduce => reduce::TABLE,
        Collective::Allreduce => allreduce::TABLE,
        Collective::Gather => gather::TABLE,
        Collective::Scatter => scatter::TABLE,
        Collective::Allgather => allgather::TABLE,
        Collective::ReduceScatter => reduce_scatter::TABLE,
        Collective::Scan => scan::TABLE,
        Collective::Exscan => scan::EXCLUSIVE,
        Collective::Alltoall => alltoall::TABLE,
    }
}

/// Algorithms as a paper prints them that [`verify`](crate::verify) refutes: to be shown and timed, never chosen or run.
pub fn refuted(collective: Collective) -> &'static [&'static Algorithm] {
    match collective {
        Collective::Barrier => barrier::REFUTED,
        _ => &[],
    }
}

/// Every algorithm of every collective.
pub fn all() -> impl Iterator<Item = &'static Algorithm> {
    Collective::ALL.into_iter().flat_map(|c| table(c).iter().copied())
}

/// The algorithm of a collective with this name.
///
/// # Errors
/// [`PlanError::UnknownAlgorithm`], which lists the names there are.
pub fn find(collective: Collective, name: &str) -> Result<&'static Algorithm, PlanError> {
    table(collective).iter().copied().find(|a| a.name == name).ok_or_else(|| PlanError::UnknownAlgorithm {
        collective,
        name: name.to_owned(),
        known: table(collective).iter().map(|a| a.name).collect::<Vec<_>>().join(", "),
    })
}

/// [`find`], among the [`refuted`] ones too: for commands that look at a plan and never run it.
///
/// # Errors
/// [`PlanError::UnknownAlgorithm`], which lists the names of the table.
pub fn find_to_look_at(collective: Collective, name: &str) -> Result<&'static Algorithm, PlanError> {
    match refuted(collective).iter().find(|a| a.name == name) {
        Some(algorithm) => Ok(algorithm),
        None => find(collective, name),
    }
}

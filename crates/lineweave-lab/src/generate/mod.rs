//! Trees generated for one machine, from what lies between each two of its CPUs, beside the usual ones, all in virtual time.
//!
//! 1. [`matrix::some`] makes trees from the latencies of pairs: rank by rank, and cluster by cluster at each combination of
//!    distances that are apart. Those that fold are made by [`matrix::collecting`], with rows of children.
//! 2. Each becomes the parameter `edges` of a plan, with flags so far apart that no prefetcher reaches the next.
//! 3. Each plan is simulated, and the fastest is taken. The closed form only chooses whom to simulate. Of reductions the usual
//!    trees are simulated too.
//!
//! Times are of one call alone, of 8 bytes or none: everybody enters at once, and lines are where the call before left them.
//!
//! # The bound
//!
//! A parent tells a child by a store to a line that the child read in the call before, so the store has to take it
//! from there, and the child has to fetch it: two transfers between the two. A core has a limited number of misses under
//! way. So no tree can tell everybody sooner than [`matrix::bound`] says: the shortest way to whoever is farthest, how
//! fast word can spread within clusters and among them, and how soon each cluster can hear. Collecting is the same backwards, but
//! for what a parent does with what it hears, counted from its end:
//!
//! - Of two children that are heard one after the other in a row, the second takes two hits: to see that its flag is there and to keep
//!   what came with it; or its line came a transfer after the first was heard.
//! - Waits in a row are polled ahead, as many as there may be misses under way; what is waited for after any other op is fetched only
//!   then. So the last `n` children have come in one row, or a transfer lies between two of them.
//! - No fold is before the end of its row, and one makes of so many values no fewer than half. So `ceil(log2(n + 1))` folds
//!   follow a row of `n`, each of three hits.
//!
//! A barrier and an allreduce collect at one rank before they release from it: their bound is the sum. It holds for any tree
//! with a line for each edge that carries what is told, whatever its shape and order. A line that several children poll has none of
//! this, but serves them one by one; plans in which nobody hears of everybody before others do (dissemination, groups whose leaders
//! exchange) are no trees.

mod usual;

pub use usual::{usual, USUAL};

use crate::optimise::matrix::{self, Latencies, Work};
use crate::simulate::{coherent, Options, SimulateError};
use lineweave_core::algorithm::spec::Spec;
use lineweave_core::algorithm::Problem;
use lineweave_core::collective::Collective;
use lineweave_core::machine::Machine;
use lineweave_core::plan::{Blocks, Layout, Params, Plan, PlanError};
use lineweave_core::topology::Shape;

/// Collectives that have such trees.
pub const COLLECTIVES: [Collective; 4] =
    [Collective::Barrier, Collective::Bcast, Collective::Reduce, Collective::Allreduce];

/// Bytes of a message.
pub const BYTES: usize = 8;
/// Trees that are simulated, of those that are made.
const TRIED: usize = 4;
/// Calls that are simulated: in the first, lines are in memory.
const CALLS: usize = 4;
/// Times at which partial results are folded: as each comes, or when all of a row are there.
const FOLDS: [&str; 2] = ["each", ROWS];
const ROWS: &str = "last";

/// Problem that trees are generated for.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// Ranks and the CPUs that they sit on.
    pub shape: &'a Shape,
    /// One of [`COLLECTIVES`].
    pub collective: Collective,
    /// Root of a bcast or reduce; the other collectives meet at rank 0.
    pub root: usize,
}

/// A plan that was simulated.
#[derive(Clone, PartialEq, Debug)]
pub struct Timed {
    /// Algorithm and parameters.
    pub spec: Spec,
    /// One call alone.
    pub ns: f64,
}

/// The fastest tree that was generated.
#[derive(Clone, PartialEq, Debug)]
pub struct Generated {
    /// Plan of the tree, with its time.
    pub best: Timed,
    /// Lower bound of the time of every tree, in ns.
    pub bound_ns: f64,
}

/// Reason why there is no tree.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// The collective is none of [`COLLECTIVES`].
    #[error("no trees are generated for {0}: for barrier, bcast, reduce and allreduce they are")]
    Collective(Collective),
    /// Values are missing.
    #[error("machine {machine}: no pairs of its CPUs were timed, and trees are generated from those; `lineweave list --machines` shows whose were")]
    Unknown {
        /// Name of the machine.
        machine: String,
    },
    /// A plan cannot be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// It cannot be simulated.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
}

impl Case<'_> {
    /// The rank at which things meet.
    fn root(&self) -> usize {
        if self.collective.rooted() {
            self.root
        } else {
            0
        }
    }

    /// The problem that plans are made for.
    pub fn problem(&self) -> Problem {
        let bytes = if self.collective.moves_data() { BYTES } else { 0 };
        Problem {
            collective: self.collective,
            shape: self.shape.clone(),
            root: self.root(),
            bytes,
            blocks: Blocks::Dense,
            grain: if self.collective.folds() { BYTES } else { 1 },
            direct: false,
        }
    }

    /// The plan of a spec.
    ///
    /// # Errors
    /// A [`PlanError`] when it does not apply.
    pub fn plan(&self, spec: &Spec) -> Result<Plan, PlanError> {
        spec.algorithm(self.collective)?.plan(&self.problem(), &spec.params)
    }

    /// One call of a plan alone, in ns.
    ///
    /// # Errors
    /// A [`SimulateError`], with what the machine's description lacks.
    pub fn simulated(&self, plan: &Plan) -> Result<f64, SimulateError> {
        let options = Options { runs: CALLS, banks: 1, together: true, ..Options::default() };
        Ok(coherent::simulate(self.machine, self.shape, plan, &options)?.each.nanos())
    }

    fn time(&self, spec: Spec) -> Result<Timed, GenerateError> {
        let ns = self.simulated(&self.plan(&spec)?)?;
        Ok(Timed { spec, ns })
    }

    /// The fastest of some, the first of equal ones.
    fn fastest(&self, specs: impl IntoIterator<Item = Spec>) -> Result<Timed, GenerateError> {
        let mut best: Option<Timed> = None;
        for spec in specs {
            let timed = self.time(spec)?;
            if best.as_ref().is_none_or(|b| timed.ns < b.ns) {
                best = Some(timed);
            }
        }
        best.ok_or(GenerateError::Collective(self.collective))
    }

    /// Lines of flags: so far apart that no prefetcher reaches the next.
    fn layout(&self) -> Layout {
        let reach = self.machine.coherent.as_ref().and_then(|c| c.prefetch_lines.value).unwrap_or(1.0);
        match reach as u8 {
            0 => Layout::Alone,
            lines => Layout::Spread(lines + 1),
        }
    }

    /// The plan of a tree, as [`matrix::Schedule::param`] and [`matrix::Rows::param`] give its edges.
    fn edges(&self, edges: String) -> Spec {
        let mut spec = Spec::named("edges");
        if !edges.is_empty() {
            spec.params = spec.params.with("edges", edges);
        }
        spec.params = spec.params.with("layout", self.layout());
        spec
    }

    /// Returns the plan of a tree up which partial results go, folded as `fold` says: one of `FOLDS`.
    fn folding(&self, edges: String, fold: &str) -> Spec {
        let spec = self.edges(edges);
        Spec { params: spec.params.with("fold", fold), ..spec }
    }

    fn unknown(&self) -> GenerateError {
        GenerateError::Unknown { machine: self.machine.name.clone() }
    }

    /// Returns the kind of work that goes down a tree.
    fn told(&self) -> Work {
        if self.collective.moves_data() {
            Work::Carry
        } else {
            Work::Signal
        }
    }

    /// Returns whether partial results go up a tree, and whether something goes down one.
    fn ways(&self) -> (bool, bool) {
        (self.collective.folds(), self.collective != Collective::Reduce)
    }
}

/// The plan that collects up one tree, if it does, and releases down another, if it does.
fn joined(up: Option<Spec>, down: Option<Spec>) -> Option<Spec> {
    match (up, down) {
        (Some(up), Some(down)) => {
            let params = Params::new().with("reduce", up).with("bcast", down);
            Some(Spec { params, ..Spec::named("reduce-bcast") })
        }
        (up, down) => up.or(down),
    }
}

/// Returns lower bounds of every tree's time, in ns: to collect at the root, to release from it, each zero where the collective
/// does not.
///
/// # Errors
/// As [`generate`].
pub fn bounds(case: &Case) -> Result<(f64, f64), GenerateError> {
    let bound = |work: Work| {
        let least = Latencies::least_of_pairs(case.machine, case.shape, work);
        Ok::<f64, GenerateError>(matrix::bound(&least.ok_or_else(|| case.unknown())?, case.root()))
    };
    let (goes_up, goes_down) = case.ways();
    let releases = if goes_down { bound(case.told())? } else { 0.0 };
    Ok(match case.collective {
        // It collects without folds, which is the same backwards.
        Collective::Barrier => (releases, releases),
        _ => (if goes_up { bound(Work::Fold)? } else { 0.0 }, releases),
    })
}

/// The fastest tree for a machine that is simulated.
///
/// # Errors
/// A [`GenerateError`], with what the machine's description lacks.
pub fn generate(case: &Case) -> Result<Generated, GenerateError> {
    if !COLLECTIVES.contains(&case.collective) {
        return Err(GenerateError::Collective(case.collective));
    }
    let (collects, releases) = bounds(case)?;
    let of = |work: Work| Latencies::of_pairs(case.machine, case.shape, work).ok_or_else(|| case.unknown());
    let (goes_up, goes_down) = case.ways();
    let (mut ups, mut downs, mut others) = (Vec::new(), Vec::new(), Vec::new());
    if goes_up {
        let trees = matrix::collecting(&of(Work::Fold)?, case.root(), TRIED, collects);
        ups.extend(trees.iter().map(|tree| case.folding(tree.param(), ROWS)));
        others = usual::trees(case)?;
    }
    if goes_down {
        let trees = matrix::some(&of(case.told())?, case.root(), TRIED, releases);
        downs.extend(trees.iter().map(|tree| case.edges(tree.param())));
    }
    let nth = |of: &[Spec], i: usize| of.get(i).or(of.last()).cloned();
    let made = (0..ups.len().max(downs.len())).filter_map(|i| joined(nth(&ups, i), nth(&downs, i)));
    Ok(Generated { best: case.fastest(made.chain(others))?, bound_ns: collects + releases })
}

#[cfg(test)]
mod tests;

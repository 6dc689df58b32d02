//! Trees generated for one machine, from what lies between each two of its CPUs, beside the usual ones, all in virtual time.
//!
//! 1. [`matrix::some`] makes trees from the latencies of pairs: rank by rank, and cluster by cluster at each combination of
//!    distances that are apart.
//! 2. Each becomes the parameter `edges` of a plan, with flags so far apart that no prefetcher reaches the next.
//! 3. Each plan is simulated, and the fastest is taken. The closed form only chooses whom to simulate. It knows less of folds,
//!    so for them the usual trees are simulated too.
//!
//! Times are of one call alone, of 8 bytes or none: everybody enters at once, and lines are where the call before left them.
//!
//! # The bound
//!
//! A parent tells a child by a store to a line that the child read in the call before, so the store has to take it
//! from there, and the child has to fetch it: two transfers between the two. A core has a limited number of misses under
//! way. So no tree can tell everybody sooner than [`matrix::bound`] says: the shortest way to whoever is farthest, and how
//! fast word can spread within clusters and among them. Collecting is the same backwards. A barrier and an allreduce
//! collect at one rank before they release from it: their bound is the sum. It holds for any tree with a line for each
//! edge, whatever its shape and order. A line that several children poll has none of this, but serves them one by one;
//! barriers without a root (dissemination) are no trees.

mod usual;

pub use usual::{usual, USUAL};

use crate::optimise::matrix::{self, Latencies, Schedule, Work};
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
/// Of how many transfers under way trees that fold are made, beside all that a core has: the fewer, the fewer children has a rank,
/// and what it folds when all are there takes longer than the closed form knows.
const FOLDING: [usize; 2] = [5, 3];
/// When partial results are folded: as each comes, or when all are there.
const FOLDS: [&str; 2] = ["each", "last"];

/// What trees are for.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The machine.
    pub machine: &'a Machine,
    /// Its ranks.
    pub shape: &'a Shape,
    /// One of [`COLLECTIVES`].
    pub collective: Collective,
    /// Of a bcast or reduce; the others meet at rank 0.
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
    /// Its plan.
    pub best: Timed,
    /// What no tree is faster than.
    pub bound_ns: f64,
}

/// Why there is no tree.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GenerateError {
    /// For another collective.
    #[error("no trees are generated for {0}: for barrier, bcast, reduce and allreduce they are")]
    Collective(Collective),
    /// Values are missing.
    #[error("machine {machine}: no pairs of its CPUs were timed, and trees are generated from those; `lineweave list --machines` shows whose were")]
    Unknown {
        /// Its name.
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

    /// The plans that collect up one tree and release down another, as far as the collective does either.
    fn specs(&self, up: &Schedule, down: &Schedule) -> Vec<Spec> {
        let edges = |tree: &Schedule| {
            let mut spec = Spec::named("edges");
            if !tree.edges().is_empty() {
                spec.params = spec.params.with("edges", tree.param());
            }
            spec.params = spec.params.with("layout", self.layout());
            spec
        };
        let folds = || {
            FOLDS.map(|fold| {
                let spec = edges(up);
                Spec { params: spec.params.with("fold", fold), ..spec }
            })
        };
        let both = |up: Spec| {
            let params = Params::new().with("reduce", up).with("bcast", edges(down));
            Spec { params, ..Spec::named("reduce-bcast") }
        };
        match self.collective {
            Collective::Reduce => folds().into(),
            Collective::Allreduce => folds().map(both).into(),
            _ => vec![edges(down)],
        }
    }
}

/// The fastest tree for a machine that is simulated.
///
/// # Errors
/// A [`GenerateError`], with what the machine's description lacks.
pub fn generate(case: &Case) -> Result<Generated, GenerateError> {
    let Case { machine, shape, collective, .. } = *case;
    if !COLLECTIVES.contains(&collective) {
        return Err(GenerateError::Collective(collective));
    }
    let unknown = || GenerateError::Unknown { machine: machine.name.clone() };
    let root = case.root();
    let (goes_down, goes_up) = match collective.folds() {
        true => (Work::Carry, Work::Fold),
        false if collective.moves_data() => (Work::Carry, Work::Carry),
        false => (Work::Signal, Work::Signal),
    };
    let down = Latencies::of_pairs(machine, shape, goes_down).ok_or_else(unknown)?;
    let releases = matrix::bound(&down, root);
    // Collecting without folds is the same backwards.
    let (up, collects) = match goes_up == goes_down {
        true => (None, releases),
        false => {
            let up = Latencies::of_pairs(machine, shape, goes_up).ok_or_else(unknown)?;
            let collects = matrix::bound(&up, root);
            (Some(up), collects)
        }
    };
    let bound_ns = match collective {
        Collective::Bcast => releases,
        Collective::Reduce => collects,
        _ => collects + releases,
    };
    let downs = match collective {
        Collective::Reduce => vec![Schedule::alone(shape.ranks(), root)],
        _ => matrix::some(&down, root, TRIED, releases),
    };
    let ups = match up {
        Some(up) => {
            let fewer = FOLDING.map(|n| up.clone().with_at_most_at_once(n));
            let made = |up: &Latencies| matrix::some_up(up, root, TRIED / 2, collects);
            [up].iter().chain(&fewer).flat_map(made).collect()
        }
        None => vec![Schedule::alone(shape.ranks(), root)],
    };
    let tree = |of: &[Schedule], i: usize| of[i.min(of.len() - 1)].clone();
    let pairs = (0..ups.len().max(downs.len())).map(|i| (tree(&ups, i), tree(&downs, i)));
    let specs = pairs.flat_map(|(up, down)| case.specs(&up, &down));
    // The closed form knows less of folds.
    let others = if collective.folds() { usual::trees(case)? } else { Vec::new() };
    Ok(Generated { best: case.fastest(specs.chain(others))?, bound_ns })
}

#[cfg(test)]
mod tests;

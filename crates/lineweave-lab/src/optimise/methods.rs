//! The table of optimisers: each from a machine, a model, ranks and a size to the parameters of a plan.

use super::costs::Steps;
use super::hierarchy::{self, hierarchy};
use super::matrix::{self, Latencies};
use super::notify::notify;
use super::pipeline::{chunks, Stages};
use super::radix::{mixed, Growth};
use super::ramos_hoefler::{self as published, Large};
use super::{less, levels, list, Optimum};
use crate::models::cache_line::{multi_line, CacheLineError, Folding, MinMaxModel, Reads, SameLine};
use lineweave_core::algorithm::trees::Tree;
use lineweave_core::collective::Collective;
use lineweave_core::machine::{Machine, State};
use lineweave_core::model::{Model, MultiLine};
use lineweave_core::plan::{Layout, Params};
use lineweave_core::topology::{Level, Shape};

/// Problem to be optimised.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The machine, for closed forms in the paper's own numbers; without one they take what the model has fitted.
    pub machine: Option<&'a Machine>,
    /// Model of the machine, for closed forms in lineweave's numbers.
    pub model: &'a Model,
    /// Ranks and where they sit.
    pub shape: &'a Shape,
    /// The root.
    pub root: usize,
    /// Length of the message.
    pub bytes: usize,
}

impl Case<'_> {
    /// The largest distance between ranks.
    fn level(&self) -> Level {
        let far = |r: usize| self.shape.distance(0usize.into(), r.into());
        (0..self.shape.ranks()).map(far).max().unwrap_or(Level::Machine)
    }

    fn steps(&self) -> Steps {
        Steps::of(self.model, self.level())
    }

    fn fitted(&self) -> MinMaxModel {
        MinMaxModel::of_model(self.model, self.level())
    }

    fn reads(&self) -> Result<Reads, CacheLineError> {
        self.machine.map_or_else(|| Ok(self.fitted().reads), |machine| Reads::of(machine, self.level()))
    }

    /// T_C, buffers exclusive in their owner's cache.
    fn t_c(&self) -> Result<SameLine, CacheLineError> {
        let described = |machine| SameLine::of(machine, State::E, State::E);
        self.machine.map_or_else(|| Ok(self.fitted().t_c), described)
    }

    /// T_N, buffers exclusive in their owner's cache.
    fn t_n(&self) -> Result<MultiLine, CacheLineError> {
        let fitted = || {
            self.fitted().t_n.ok_or_else(|| CacheLineError {
                what: "T_N".to_owned(),
                machine: self.model.machine.cpu.clone(),
                why: "transfers of several lines were not measured".to_owned(),
            })
        };
        self.machine.map_or_else(fitted, |machine| multi_line(machine, State::E, State::E))
    }

    fn lines(&self) -> usize {
        self.bytes.div_ceil(self.model.line_bytes.max(1)).max(1)
    }
}

/// The plan that an optimiser chose.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chosen {
    /// The algorithm, by its name within the collective.
    pub algorithm: &'static str,
    /// Parameters of the algorithm.
    pub params: Params,
}

/// An optimiser: one line of the table.
pub struct Method {
    /// Collective that is optimised.
    pub collective: Collective,
    /// Name of the optimiser.
    pub name: &'static str,
    /// Quantity that it minimises, in one line.
    pub about: &'static str,
    /// True if its costs are those of a model, some of which may be assumed; otherwise cited ones of the machine.
    pub of_model: bool,
    /// True if it is for messages that travel in a flag's line, or for longer ones; barriers have neither.
    pub small: bool,
    /// Does it. Fails where a number that it needs is unknown.
    pub run: fn(&Case) -> Result<Optimum<Chosen>, CacheLineError>,
}

impl Method {
    /// Returns whether it is for messages of so many bytes.
    pub fn applies(&self, bytes: usize) -> bool {
        !self.collective.moves_data() || self.small == (bytes <= Layout::Alone.payload())
    }
}

fn method(
    collective: Collective,
    name: &'static str,
    about: &'static str,
    of_model: bool,
    run: fn(&Case) -> Result<Optimum<Chosen>, CacheLineError>,
) -> Method {
    Method { collective, name, about, of_model, small: true, run }
}

/// Every optimiser.
pub fn methods() -> Vec<Method> {
    use Collective::{Barrier, Bcast, Reduce};
    vec![
        method(Barrier, "published", "Ramos & Hoefler Eq. 4.11, r = ceil(log_m n)", false, |c| {
            barrier(c, Growth::Published)
        }),
        method(Barrier, "radix", "Ramos & Hoefler Eq. 4.11, r = ceil(log_(m+1) n)", false, |c| {
            barrier(c, Growth::Full)
        }),
        method(Barrier, "rounds", "Ramos & Hoefler Eq. 4.11, peers of each round", false, |c| {
            Ok(published::mixed_barrier(&c.reads()?, c.shape.ranks()).map(|m| dissemination(&m)))
        }),
        method(Barrier, "model", "the model's signals and reads, peers of each round", true, rounds),
        method(Bcast, "published", "Ramos & Hoefler Eq. 4.7, degrees by level", false, |c| {
            let t_c = c.t_c()?;
            Ok(published::small_broadcast(&c.reads()?, &t_c, c.shape.ranks())
                .map(|d| of_degrees("degrees", &d)))
        }),
        method(Bcast, "degrees", "the model's signal and contention, degrees by level", true, |c| {
            let steps = c.steps();
            let latencies = Latencies::of(c.model, c.shape).with_gap_at_most(steps.contention);
            degrees(c, "degrees", |k| steps.shared(k), &latencies)
        }),
        method(Bcast, "hierarchy", "the same, degrees by level of the machine", true, |c| {
            let down = hierarchy(c.model, c.shape, hierarchy::Way::Down);
            Ok(down.map(|h| hierarchical(&h)))
        }),
        method(Bcast, "matrix", "the model's signal between each two ranks, any tree", true, |c| {
            Ok(matrix::broadcast(&Latencies::of(c.model, c.shape), c.root).map(|s| edges(&s)))
        }),
        Method {
            small: false,
            ..method(Bcast, "published", "Ramos & Hoefler Eq. 4.8 and 4.10, pipelined or flat", false, large)
        },
        Method {
            small: false,
            ..method(
                Bcast,
                "pipeline",
                "the model's stages: degree, chunk, slots, notification",
                true,
                pipeline,
            )
        },
        method(Reduce, "published", "Ramos & Hoefler Eq. 4.13, degrees by level", false, |c| {
            let (t_c, t_n) = (c.t_c()?, c.t_n()?);
            let found = published::reduction(&c.reads()?, &t_c, &t_n, Folding::Slope, c.shape.ranks());
            Ok(found.map(|d| of_degrees("tree", &d)))
        }),
        method(Reduce, "degrees", "the model's signal, read and fold, degrees by level", true, |c| {
            let (steps, latencies) = (c.steps(), Latencies::folding_in_a_row(c.model, c.shape));
            degrees(c, "tree", |k| steps.gather(k), &latencies)
        }),
        method(Reduce, "hierarchy", "the same, degrees by level of the machine", true, |c| {
            let up = hierarchy(c.model, c.shape, hierarchy::Way::Up);
            Ok(up.map(|h| hierarchical(&h)))
        }),
        method(Reduce, "matrix", "the model's signal and fold between each two ranks, any tree", true, |c| {
            let found = matrix::reduce(&Latencies::folding(c.model, c.shape), c.root);
            let bound_ns = matrix::bound(&Latencies::folding_in_a_row(c.model, c.shape), c.root);
            Ok(Optimum { bound_ns, ..found }.map(|s| edges(&s)))
        }),
    ]
}

fn chosen(algorithm: &'static str, params: Params) -> Chosen {
    Chosen { algorithm, params }
}

fn dissemination(m: &[usize]) -> Chosen {
    let params = if m.is_empty() { Params::new() } else { Params::new().with("m", list(m)) };
    chosen("dissemination", params)
}

fn barrier(c: &Case, growth: Growth) -> Result<Optimum<Chosen>, CacheLineError> {
    Ok(published::barrier(&c.reads()?, c.shape.ranks(), growth).map(|r| dissemination(&[r.m])))
}

fn rounds(c: &Case) -> Result<Optimum<Chosen>, CacheLineError> {
    let steps = c.steps();
    let (m, cost_ns) = mixed(c.shape.ranks(), |m| steps.round(m));
    // The root hears of everybody, and looks at one line after the other.
    let bound_ns = matrix::bound(&Latencies::hearing(c.model, c.shape), c.root);
    Ok(Optimum { choice: dissemination(&m), cost_ns, bound_ns, exact: true })
}

/// A tree by degrees: `bcast/degrees` or `reduce/tree`.
fn of_degrees(algorithm: &'static str, degrees: &[usize]) -> Chosen {
    let degrees = if degrees.is_empty() { "auto".to_owned() } else { list(degrees) };
    chosen(algorithm, Params::new().with("degrees", degrees))
}

fn hierarchical(found: &hierarchy::Hierarchy) -> Chosen {
    chosen("hierarchical", Params::new().with("levels", found.param()))
}

fn edges(schedule: &matrix::Schedule) -> Chosen {
    let edges = schedule.param();
    let params = if edges.is_empty() { Params::new() } else { Params::new().with("edges", edges) };
    chosen("edges", params)
}

/// The degrees of least cost, a level of `k` children costing `level(k)`; the bound is that of these latencies.
fn degrees(
    c: &Case,
    algorithm: &'static str,
    level: impl Fn(usize) -> f64,
    latencies: &Latencies,
) -> Result<Optimum<Chosen>, CacheLineError> {
    let (found, cost_ns) = levels::degrees(c.shape.ranks(), level);
    let bound_ns = matrix::bound(latencies, c.root);
    Ok(Optimum { choice: of_degrees(algorithm, &found), cost_ns, bound_ns, exact: true })
}

fn large(c: &Case) -> Result<Optimum<Chosen>, CacheLineError> {
    let (t_c, t_n) = (c.t_c()?, c.t_n()?);
    let found = published::large_broadcast(&c.reads()?, &t_c, &t_n, c.shape.ranks(), c.lines());
    Ok(found.map(|way: Large| chosen(way.algorithm(), Params::new())))
}

/// The degree of a k-ary tree with its best chunks, slots and notification.
fn pipeline(c: &Case) -> Result<Optimum<Chosen>, CacheLineError> {
    // Two slots hide the acknowledgement unless it takes longer than the copy.
    const SLOTS: usize = 4;
    // The most children that `bcast/pipelined-kary` takes.
    const MOST: usize = 128;
    let ranks = c.shape.ranks();
    let mut best: Option<Optimum<Chosen>> = None;
    for k in 1..ranks.clamp(2, MOST + 1) {
        // Degrees that make the tree no lower only cost more.
        let depth = Tree::kary(ranks, k).depth();
        if k > 1 && depth == Tree::kary(ranks, k - 1).depth() {
            continue;
        }
        let found = chunks(&Stages::of(c.model, c.level(), k, depth), c.bytes, SLOTS);
        let told = notify(&c.steps(), k).choice;
        let bound = best.as_ref().map_or(found.bound_ns, |b| b.bound_ns.min(found.bound_ns));
        let better = best.as_ref().is_none_or(|b| less(found.cost_ns, b.cost_ns));
        let found = found.map(|chunks| {
            let params = Params::new()
                .with("k", k)
                .with("chunk", chunks.chunk)
                .with("slots", chunks.slots)
                .with("notify", told);
            chosen("pipelined-kary", params)
        });
        if better {
            best = Some(found);
        }
        // Any tree: the bound of the degree for which it is least.
        if let Some(best) = &mut best {
            best.bound_ns = bound;
        }
    }
    let nothing =
        Optimum { choice: chosen("pipelined-kary", Params::new()), cost_ns: 0.0, bound_ns: 0.0, exact: true };
    Ok(best.unwrap_or(nothing))
}

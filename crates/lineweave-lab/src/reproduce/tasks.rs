//! Tasks: the calls of a study that a machine can time.

use super::{By, Here, How, Over, Study};
use crate::optimise::methods::{methods, Case};
use lineweave_core::algorithm::{self, spec::Spec, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::machine::Machine;
use lineweave_core::model::Model;
use lineweave_core::plan::{Blocks, Plan, PlanError, Uneven};
use lineweave_core::topology::{Placement, Shape, Topology};
use std::sync::Arc;

/// One point to be measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Task {
    /// Picture and series.
    pub picture: &'static str,
    /// The series within the picture.
    pub series: &'static str,
    /// Value on the axis to the right.
    pub x: f64,
    /// The caller.
    pub by: By,
    /// The collective.
    pub collective: Collective,
    /// Algorithm and parameters; for a peer its name.
    pub spec: Spec,
    /// Length of the message.
    pub bytes: usize,
    /// Ranks.
    pub ranks: usize,
    /// The root.
    pub root: usize,
    /// True if each call is timed by itself, on this machine with a barrier behind it, less the time of a barrier: calls with a root
    /// overlap back to back.
    pub alone: bool,
    /// Placement of the ranks.
    pub place: Placement,
}

impl Task {
    /// Returns the bytes that each rank gives to each, row by row, where they differ: half, all and one and a half times the length.
    pub fn lengths(&self) -> Vec<usize> {
        match self.by {
            By::Uneven => (0..self.ranks * self.ranks)
                .map(|i| self.bytes / 2 * (1 + (i / self.ranks + i % self.ranks) % 3))
                .collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the plan among ranks that are placed so, for elements of `grain` bytes.
    ///
    /// # Errors
    /// A [`PlanError`] where the algorithm does not apply.
    pub fn plan(&self, shape: Shape, grain: usize) -> Result<Plan, PlanError> {
        let problem = Problem::flat(self.collective, self.ranks, self.bytes);
        let mut problem = Problem { root: self.root, shape, grain, ..problem };
        if let Some(longest) = self.lengths().into_iter().max() {
            problem.bytes = longest;
            problem.blocks = Blocks::Uneven(Arc::new(Uneven::by_pair(self.ranks, self.lengths())));
        }
        algorithm::find(self.collective, &self.spec.name)?.plan(&problem, &self.spec.params)
    }
}

/// The costs by which optimisers choose.
#[derive(Clone, Copy, Debug)]
pub struct Costs<'a> {
    /// The description, where the machine is described.
    pub machine: Option<&'a Machine>,
    /// The model, fitted to probes.
    pub model: &'a Model,
    /// CPUs in the order in which ranks take them.
    pub topology: &'a Topology,
}

impl Costs<'_> {
    fn chosen(&self, name: &str, collective: Collective, ranks: usize, bytes: usize) -> Option<Spec> {
        let shape = Shape::on(self.topology.cpus.iter().take(ranks).cloned().collect());
        let case = Case { machine: self.machine, model: self.model, shape: &shape, root: 0, bytes };
        let mut of = methods().into_iter();
        let method = of.find(|m| m.collective == collective && m.name == name && m.applies(bytes))?;
        let chosen = (method.run)(&case).ok()?.choice;
        Some(Spec { params: chosen.params, ..Spec::named(chosen.algorithm) })
    }
}

/// Returns what a study measures on a machine: none where ranks cannot be apart. Without costs no optimiser chooses.
pub fn tasks(study: &Study, here: &Here, costs: Option<&Costs<'_>>) -> Vec<Task> {
    let mut list = Vec::new();
    for series in study.series {
        let How::Calls { collective, algorithm, bytes, over, by } = &series.how else { continue };
        let elsewhere = match by {
            By::Peer | By::Mpi => here.simulated,
            By::Threads | By::Filling | By::Processes | By::Uneven => false,
        };
        if elsewhere || *by == By::Filling && here.cpus == here.cores {
            continue;
        }
        for (x, ranks, bytes, degree, root) in points(over, *bytes, here).into_iter().filter(|p| p.1 >= 2) {
            let spec = match algorithm.strip_prefix('@') {
                Some(name) => costs.and_then(|c| c.chosen(name, *collective, ranks, bytes)),
                None => algorithm.replace("{}", &degree.to_string()).parse().ok(),
            };
            let Some(spec) = spec else { continue };
            let place = if *by == By::Filling { Placement::Thread } else { here.place() };
            let (picture, series) = (series.picture, series.name);
            let (by, collective) = (*by, *collective);
            let alone = collective.rooted() || matches!(over, Over::Roots);
            let task = Task { picture, series, x, by, collective, spec, bytes, ranks, root, alone, place };
            if matches!(by, By::Peer | By::Mpi) || task.plan(Shape::flat(ranks), 1).is_ok() {
                list.push(task);
            }
        }
    }
    list
}

/// Values on the axis to the right, each with ranks, length, what takes the place of the braces, and root.
fn points(over: &Over, bytes: usize, here: &Here) -> Vec<(f64, usize, usize, usize, usize)> {
    let most = here.most();
    match over {
        Over::Ranks => ranks(most).into_iter().map(|n| (n as f64, n, bytes, 0, 0)).collect(),
        Over::Threads => {
            let a_core = here.cpus / here.cores.max(1);
            (2..=a_core).map(|n| (n as f64, n * here.cores, bytes, 0, 0)).collect()
        }
        Over::Roots => (0..most).map(|r| (r as f64, most, bytes, r, r)).collect(),
        Over::Bytes(all) => all.iter().map(|&bytes| (bytes as f64, most, bytes, 0, 0)).collect(),
        // A tree of more children than other ranks is the flat one.
        Over::Degrees(all) => {
            let fewer = all.iter().filter(|&&k| k < most.max(2));
            fewer.map(|&k| (k as f64, most, bytes, k, 0)).collect()
        }
    }
}

/// Powers of two up to the most ranks, and all of them.
fn ranks(most: usize) -> Vec<usize> {
    let mut list: Vec<usize> = (1..).map(|i| 1usize << i).take_while(|&n| n < most).collect();
    list.push(most);
    list
}

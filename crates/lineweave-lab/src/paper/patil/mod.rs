//! Patil 2014: NoC_Msg on the Intel SCC. Steps of its plans, and the claims of its chapter 6 beside RCCE.
//!
//! What the thesis measured is simulated, with flags of a byte, which leave RCCE's 251 lines of a message buffer. RCKMPI is
//! MPICH's algorithms over split message buffers (`algorithm/split_box.rs`): the thesis does not say which it takes.

mod claims;
mod contention;
mod figures;
mod links;

use super::given::{machine, planned, played, printed};
use super::{of, Finding, Paper};
use crate::simulate::mesh::{FlagCost, Settings};
use crate::simulate::{Fidelity, Options, Outcome};
use lineweave_core::algorithm::Problem;
use lineweave_core::collective::Collective;
use lineweave_core::machine::Machine;
use lineweave_core::plan::{Blocks, Params, Plan, Uneven};
use serde::Deserialize;
use std::sync::Arc;

/// Key of the paper.
const KEY: &str = "patil-2014";

/// The line of the table.
pub static PAPER: Paper = Paper {
    key: KEY,
    cite: "Patil 2014",
    about: "NoC_Msg: collectives without contention on links, along rows and columns of the Intel SCC's mesh",
    findings,
    figures: || figures::figures(&Study::new()),
};

/// Numbers that the text prints.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    setup: Setup,
    contention: Contention,
    measured: Measured,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Setup {
    cores: usize,
    columns: usize,
    rows: usize,
    line_bytes: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contention {
    get_per_core: f64,
    put_2: f64,
    put_48: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Measured {
    bcast_bytes: usize,
    bcast_throughput: f64,
    reduce_throughput: f64,
    reduce_cycles: f64,
    allreduce_bytes: usize,
    allreduce_throughput: f64,
    barrier_rcce: f64,
    reduce_rckmpi: f64,
    barrier_rckmpi: f64,
    alltoall_cycles: f64,
    alltoall_throughput: f64,
}

struct Study {
    printed: Printed,
    machine: &'static Machine,
}

/// Cycles of the simulated cores: those of `machines/intel-scc.toml`, where the thesis has 800 MHz.
const MHZ: f64 = 533.0;
/// Root of the comparisons: the core that the thesis finds best, in the middle of the second row.
const ROOT: usize = 18;

impl Study {
    fn new() -> Study {
        const TEXT: &str = include_str!("../../../papers/patil-2014/claims.toml");
        Study { printed: printed("patil-2014/claims.toml", TEXT), machine: machine("intel-scc") }
    }

    /// A plan for the first `ranks` cores.
    fn plan(&self, collective: Collective, name: &str, ranks: usize, root: usize, bytes: usize) -> Plan {
        let root = root.min(ranks - 1);
        let mut problem = Problem { root, ..Problem::flat(collective, ranks, bytes) };
        problem.grain = if collective.folds() { 4 } else { 1 };
        let mut params = Params::new();
        if name.starts_with("noc-msg") {
            params = params.with("columns", self.printed.setup.columns);
            if !collective.rooted() && collective != Collective::Alltoall {
                params = params.with("root", root);
            }
        }
        if name == "centralized" {
            params = params.with("release", "each").with("layout", "alone");
        }
        planned(name, &problem, &params)
    }

    fn play(&self, plan: &Plan, runs: usize) -> Outcome {
        let fidelity = if plan.bytes > 4096 { Fidelity::Chunk } else { Fidelity::Line };
        let mesh = Settings { flags: FlagCost::Byte, ..Settings::default() };
        played(self.machine, plan, &Options { fidelity, runs, mesh, ..Options::default() })
    }

    /// One run alone on the first `ranks` cores, in us.
    fn us(&self, collective: Collective, name: &str, ranks: usize, bytes: usize) -> f64 {
        self.play(&self.plan(collective, name, ranks, ROOT, bytes), 1).first.nanos() / 1e3
    }

    /// A library's name for what the table calls otherwise.
    fn of_library(library: &str, collective: Collective) -> &str {
        match (library, collective) {
            ("rcce", Collective::Barrier) => "centralized",
            ("rckmpi", Collective::Barrier) => "dissemination",
            _ => library,
        }
    }

    /// A collective of a library on all cores, in us.
    fn library(&self, library: &str, collective: Collective, bytes: usize) -> f64 {
        let name = Study::of_library(library, collective);
        self.us(collective, name, self.printed.setup.cores, bytes)
    }

    /// The better broadcast of RCCE_comm on all cores, in us.
    fn rcce_comm(&self, bytes: usize) -> f64 {
        let of = |name| self.library(name, Collective::Bcast, bytes);
        of("rcce-comm-binomial").min(of("rcce-comm-scatter-allgather"))
    }

    /// An alltoall of a library on all cores, in us; NoC_Msg's in windows of whole lines: two runs' blocks for each other core
    /// fit a message buffer.
    fn alltoall(&self, library: &str, block: usize) -> f64 {
        const WINDOW: usize = 64;
        let name = Study::of_library(library, Collective::Alltoall);
        if name != "noc-msg" || block <= WINDOW {
            return self.library(library, Collective::Alltoall, block);
        }
        let plan = self.plan(Collective::Alltoall, name, self.printed.setup.cores, 0, WINDOW);
        self.play(&plan, block.div_ceil(WINDOW)).total.nanos() / 1e3
    }

    /// An alltoallv of a library on all cores, in us: blocks of half, all and half as much again of `mean` bytes.
    fn alltoallv(&self, library: &str, mean: usize) -> f64 {
        let cores = self.printed.setup.cores;
        let lens = (0..cores * cores).map(|i| mean / 2 * (1 + (i / cores + i % cores) % 3)).collect();
        let mut problem = Problem::flat(Collective::Alltoall, cores, mean / 2 * 3);
        problem.blocks = Blocks::Uneven(Arc::new(Uneven::by_pair(cores, lens)));
        let name = Study::of_library(library, Collective::Alltoall);
        let params = match name {
            "noc-msg" => Params::new().with("columns", self.printed.setup.columns),
            _ => Params::new(),
        };
        self.play(&planned(name, &problem, &params), 1).first.nanos() / 1e3
    }

    /// Returns the time of RCKMPI as a multiple of that of NoC_Msg.
    fn beside_rckmpi(&self, collective: Collective, bytes: usize) -> f64 {
        self.library("rckmpi", collective, bytes) / self.library("noc-msg", collective, bytes)
    }

    /// Returns the time of RCCE as a multiple of that of NoC_Msg.
    fn beside_rcce(&self, collective: Collective, bytes: usize) -> f64 {
        let cores = self.printed.setup.cores;
        let rcce = if collective == Collective::Barrier { "centralized" } else { "rcce" };
        self.us(collective, rcce, cores, bytes) / self.us(collective, "noc-msg", cores, bytes)
    }
}

fn findings() -> Vec<Finding> {
    let study = Study::new();
    let mut out = claims::roots(&study);
    out.extend(links::findings(&study));
    out.extend(contention::findings(&study));
    out.extend(claims::findings(&study));
    of(KEY, out)
}

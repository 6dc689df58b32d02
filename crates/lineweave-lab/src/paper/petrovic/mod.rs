//! Petrovic et al. 2012: OC-Bcast on the Intel SCC. Model, Table 2, and the claims of its figures.
//!
//! Formulas are in [`models::put_get`](crate::models::put_get); what the paper measured is simulated.

mod claims;
pub(in crate::paper) mod contention;
mod design;
mod figures;
mod tables;

use super::given::{machine, planned, played, printed};
use super::{of, Finding, Paper};
use crate::models::put_get::PutGet;
use crate::simulate::mesh::{FlagCost, Settings};
use crate::simulate::{self, Fidelity, Options};
use lineweave_core::algorithm::Problem;
use lineweave_core::collective::Collective;
use lineweave_core::machine::Machine;
use lineweave_core::plan::{Params, Plan};
use serde::Deserialize;

/// Key of the paper.
const KEY: &str = "petrovic-2012";

/// The line of the table.
pub static PAPER: Paper = Paper {
    key: KEY,
    cite: "Petrovic et al. 2012",
    about:
        "OC-Bcast, an RMA-based pipelined k-ary broadcast on the Intel SCC, with a LogP-based put/get model",
    findings,
    figures: || figures::figures(&Study::new()),
};

#[derive(Deserialize, Debug)]
struct Throughput {
    k: usize,
    throughput: f64,
}

#[derive(Deserialize, Debug)]
struct Setup {
    cores: usize,
    chunk_lines: usize,
    line_bytes: usize,
    rcce_lines: usize,
    longest_lines: usize,
}

#[derive(Deserialize, Debug)]
struct Measured {
    oc_bcast_k7: f64,
    binomial: f64,
    k47_shortfall: f64,
}

#[derive(Deserialize, Debug)]
struct Printed {
    table_2: Vec<Throughput>,
    setup: Setup,
    measured: Measured,
}

/// Printed numbers of the paper, the machine, and its model.
pub(in crate::paper) struct Study {
    printed: Printed,
    machine: &'static Machine,
    model: PutGet,
}

impl Study {
    pub(in crate::paper) fn new() -> Study {
        const TEXT: &str = include_str!("../../../papers/petrovic-2012/tables.toml");
        let (printed, machine) = (printed("petrovic-2012/tables.toml", TEXT), machine("intel-scc"));
        let model = PutGet::of(machine).unwrap_or_else(|| panic!("machines/intel-scc.toml knows Table 1"));
        Study { printed, machine, model }
    }

    /// A broadcast of this many lines on all cores.
    fn bcast(&self, name: &str, params: &Params, lines: usize) -> Plan {
        let setup = &self.printed.setup;
        let problem = Problem::flat(Collective::Bcast, setup.cores, lines * setup.line_bytes);
        planned(name, &problem, params)
    }

    fn oc_bcast(&self, k: usize, lines: usize) -> Plan {
        self.bcast("oc-bcast", &Params::new().with("k", k), lines)
    }

    /// RCCE_comm's tree with what flags of this kind leave of a message buffer.
    fn binomial(&self, flags: FlagCost, lines: usize) -> Plan {
        let left = match flags {
            FlagCost::Line => 157,
            FlagCost::Byte | FlagCost::Bit | FlagCost::Rcce => 251,
        };
        let params = Params::new().with("chunk", left * self.printed.setup.line_bytes);
        self.bcast("rcce-comm-binomial", &params, lines)
    }

    fn scatter_allgather(&self, lines: usize) -> Plan {
        self.bcast("rcce-comm-scatter-allgather", &Params::new().with("chunk", 157 * 32), lines)
    }

    fn play(&self, plan: &Plan, fidelity: Fidelity, runs: usize, mesh: Settings) -> simulate::Outcome {
        played(self.machine, plan, &Options { fidelity, runs, mesh, ..Options::default() })
    }

    /// Steady throughput in MB/s, from run to run.
    fn throughput(&self, plan: &Plan, fidelity: Fidelity, mesh: Settings) -> f64 {
        plan.bytes as f64 / self.play(plan, fidelity, 2, mesh).each.nanos() * 1e3
    }

    /// Latency in us from the root's call to the last return, on average over broadcasts that follow each other.
    fn latency(&self, plan: &Plan, mesh: Settings) -> f64 {
        self.play(plan, Fidelity::Line, 12, mesh).latency.nanos() / 1e3
    }
}

/// As the model has it: every distance 1, and no contention.
const IDEAL: Settings =
    Settings { flags: FlagCost::Line, distance: Some(1), ideal: true, in_flight: None, arbiter: None };
/// The chip, with flags of a line.
const CHIP: Settings =
    Settings { flags: FlagCost::Line, distance: None, ideal: false, in_flight: None, arbiter: None };

fn findings() -> Vec<Finding> {
    let study = Study::new();
    let mut findings = tables::findings(&study);
    findings.extend(claims::findings(&study));
    findings.extend(contention::findings(&study));
    findings.extend(design::findings(&study));
    of(KEY, findings)
}

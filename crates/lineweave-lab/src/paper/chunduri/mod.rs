//! Chunduri & Srinivasan 2015: barriers for POWER8.
//!
//! What can be counted is counted on plans (`steps`); latencies are simulated (`simulated`).

mod figures;
mod printed;
mod simulated;
mod steps;

use super::given::{machine, planned};
use super::{all_on, of, Basis, Paper};
use lineweave_core::algorithm::Problem;
use lineweave_core::collective::Collective;
use lineweave_core::machine::Machine;
use lineweave_core::plan::{Params, Plan};
use lineweave_core::topology::Shape;

/// The table line.
pub static PAPER: Paper = Paper {
    key: KEY,
    cite: "Chunduri & Srinivasan 2015",
    about: "barriers for POWER8: flag layout, prefetching, tree degree, SMT",
    findings: || of(KEY, all_on(Basis::ByConstruction, steps::findings()).chain(simulated::findings())),
    figures: figures::figures,
};

const KEY: &str = "chunduri-2015";

/// The paper's machine.
fn power8() -> &'static Machine {
    machine("power8-8247-42l")
}

/// `ranks` ranks, one a core, cores filled chip by chip.
fn on_cores(ranks: usize) -> Shape {
    let topology = power8().topology().expect("the machine's topology is known");
    let mut cpus = topology.cpus;
    cpus.dedup_by_key(|cpu| cpu.core);
    cpus.truncate(ranks);
    Shape::on(cpus)
}

/// The paper's k-ary tree: all flags in one segment, arrival and release of a rank on one line.
fn tree(k: usize) -> Params {
    Params::new().with("k", k).with("home", "root").with("layout", "paired")
}

/// A barrier of the table.
fn barrier(name: &str, shape: &Shape, params: &Params) -> Plan {
    let problem = Problem { shape: shape.clone(), ..Problem::flat(Collective::Barrier, shape.ranks(), 0) };
    planned(name, &problem, params)
}

//! The beginnings of papers: machines that come with lineweave, printed numbers, and plans and simulations that must succeed.

use crate::simulate::{simulate, Options, Outcome};
use lineweave_core::algorithm::{self, Problem};
use lineweave_core::machine::{shipped, Machine};
use lineweave_core::plan::{Params, Plan};
use serde::de::DeserializeOwned;

/// Returns a machine whose description comes with lineweave.
pub(super) fn machine(name: &str) -> &'static Machine {
    let found = shipped().iter().find(|m| m.name == name);
    found.unwrap_or_else(|| panic!("machines/{name}.toml is shipped"))
}

/// Reads the numbers that a paper prints, from a file below `papers/`.
pub(super) fn printed<T: DeserializeOwned>(file: &str, text: &str) -> T {
    toml::from_str(text).unwrap_or_else(|e| panic!("papers/{file}: {e}"))
}

/// Returns the plan of an algorithm, a refuted one too.
pub(super) fn planned(name: &str, problem: &Problem, params: &Params) -> Plan {
    let collective = problem.collective;
    let made = algorithm::find_to_look_at(collective, name).and_then(|a| a.plan(problem, params));
    made.unwrap_or_else(|e| panic!("{collective}/{name} {params}: {e}"))
}

/// Plays a plan.
pub(super) fn played(machine: &Machine, plan: &Plan, options: &Options) -> Outcome {
    simulate(machine, plan, options)
        .unwrap_or_else(|e| panic!("{} of {} bytes on {}: {e}", plan.name(), plan.bytes, machine.name))
}

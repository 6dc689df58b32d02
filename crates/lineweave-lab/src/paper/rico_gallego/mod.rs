//! Rico-Gallego & Diaz-Martin 2015: tau-Lop's equations derived anew, the pipeline of Figs. 13 and 14 from the plan, and what
//! the paper reasons from them.
//!
//! Equations are compared as exact expressions ([`Transfers`](crate::models::tau_lop::Transfers)), so what agrees agrees for
//! every machine. Figures of errors are simulated on machines of the paper's shapes (`simulated`); what the paper prints of them is
//! under `machines/`.

mod claims;
mod equations;
mod figures;
mod figures_simulated;
mod setups;
mod simulated;

use super::{all_on, of, Basis, Finding, Paper};

/// Key of the paper.
const KEY: &str = "rico-gallego-2015";

/// The table line.
pub static PAPER: Paper = Paper {
    key: KEY,
    cite: "Rico-Gallego & Diaz-Martin 2015",
    about:
        "tau-Lop: transfers and their concurrency; models of MPICH's and Open MPI's shared-memory collectives",
    findings,
    figures: figures_simulated::figures,
};

fn findings() -> Vec<Finding> {
    let reasoned = equations::items().into_iter().chain(figures::items()).chain(claims::claims());
    of(KEY, all_on(Basis::ByConstruction, reasoned).chain(simulated::claims()))
}

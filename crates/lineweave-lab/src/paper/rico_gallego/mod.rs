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

use super::limit::Outcome;
use super::{all_on, Basis, Claim, Finding, Item, Paper};

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
    let items = equations::items().into_iter().chain(figures::items()).map(Finding::Item);
    let reasoned = items.chain(claims::claims().into_iter().map(Finding::Claim));
    let simulated = simulated::claims().into_iter().map(|claim| {
        // How many copies memory bears is taken from this figure.
        let calibrated = claim.item == "fig 17";
        Finding::Claim(claim).on(if calibrated { Basis::Calibrated } else { Basis::Predicted })
    });
    all_on(Basis::ByConstruction, reasoned).chain(simulated).collect()
}

fn item(item: &str, agree: usize, of: usize, remark: &str) -> Item {
    Item::new(KEY, item, agree, of, remark)
}

fn claim(item: &str, claimed: &str, ours: String, outcome: impl Into<Outcome>) -> Claim {
    Claim::new(KEY, item, claimed, ours, outcome)
}

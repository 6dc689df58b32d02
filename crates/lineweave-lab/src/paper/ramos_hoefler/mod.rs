//! Ramos & Hoefler 2013, *Modelling Communications in Cache Coherent Systems*: tables and claims that its model alone
//! can answer, and its figures of measurements on the Xeon Phi, simulated.
//!
//! Data as printed, and the page of findings: `papers/ramos-hoefler-2013/`.

mod claims;
mod data;
mod figures;
mod interference;
mod parameters;
mod simulated;
mod states;

use super::given::machine;
use super::{all_on, of, Basis, Finding, Paper};
use crate::models::cache_line::{multi_line, Reads, SameLine};
use lineweave_core::machine::{Machine, State};
use lineweave_core::model::MultiLine;
use lineweave_core::topology::Level;

const KEY: &str = "ramos-hoefler-2013";

/// The table line.
pub static PAPER: Paper = Paper {
    key: KEY,
    cite: "Ramos & Hoefler 2013",
    about: "cache-line model of coherent many-cores, and collectives optimised with it",
    findings,
    figures: figures::figures,
};

fn findings() -> Vec<Finding> {
    let reasoned = states::items().into_iter().chain(parameters::items()).chain(claims::claims());
    of(KEY, all_on(Basis::ByConstruction, reasoned).chain(simulated::claims()).chain(interference::claims()))
}

fn phi() -> &'static Machine {
    machine("xeon-phi-5110p")
}

fn bridge() -> &'static Machine {
    machine("sandy-bridge-e5-2670-2s")
}

/// The numbers that the paper's optimisers start from: Xeon Phi, buffers exclusive.
struct Numbers {
    reads: Reads,
    t_c: SameLine,
    t_n: MultiLine,
}

impl Numbers {
    fn of_phi() -> Numbers {
        const KNOWN: &str = "the shipped Xeon Phi describes it";
        Numbers {
            reads: Reads::of(phi(), Level::Numa).expect(KNOWN),
            t_c: SameLine::of(phi(), State::E, State::E).expect(KNOWN),
            t_n: multi_line(phi(), State::E, State::E).expect(KNOWN),
        }
    }
}

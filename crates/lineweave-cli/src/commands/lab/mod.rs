//! `lineweave lab`: models, simulations and searches, for people who study collectives or a machine that is not
//! available.
//!
//! A new experiment is a file here, and one line each in the list of modules, in [`Experiment`], and in its
//! functions.

mod coherence;
mod error;
pub mod models;
pub mod mpi;
pub mod optimise;
pub mod papers;
pub mod reproduce;
pub mod simulate;
mod subject;
mod teams;
pub mod what_if;

pub use error::LabError;

use crate::error::CliError;
use crate::session::Session;
use clap::Subcommand;

/// Arguments of `lineweave lab`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    #[command(subcommand)]
    experiment: Experiment,
}

/// The experiments of the laboratory.
#[derive(Subcommand, Debug)]
enum Experiment {
    /// Simulate plans, with contention, on a described machine
    Simulate(Box<simulate::Arguments>),
    /// Compare published models: what each predicts for each algorithm, and how wrong it is
    Models(models::Arguments),
    /// Find the cheapest parameters of a tree, barrier or pipeline, and their distance to a bound
    Optimise(optimise::Arguments),
    /// Compare links and ports of a growing mesh: which of them limits it; or coherent caches and message buffers
    WhatIf(what_if::Arguments),
    /// Predict an MPI: models of its messages beside each of its algorithms, and which one it uses
    Mpi(mpi::Arguments),
    /// Reproduce the papers: what they print beside what comes out here
    Papers(papers::Arguments),
    /// Redo a paper's experiments on this machine, and judge its claims here
    Reproduce(reproduce::Arguments),
}

/// Runs an experiment.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    match &arguments.experiment {
        Experiment::Simulate(arguments) => simulate::run(arguments, session),
        Experiment::Models(arguments) => models::run(arguments, session),
        Experiment::Optimise(arguments) => optimise::run(arguments, session),
        Experiment::WhatIf(arguments) => what_if::run(arguments, session),
        Experiment::Mpi(arguments) => mpi::run(arguments, session),
        Experiment::Papers(arguments) => papers::run(arguments, session),
        Experiment::Reproduce(arguments) => reproduce::run(arguments, session),
    }
}

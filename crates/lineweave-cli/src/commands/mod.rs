//! The commands: one file each, with its arguments and its `run`.
//!
//! A new command is a file here, and one line each in the list of modules, in [`Command`] and in
//! [`Command::run`].

pub mod bench;
pub mod completions;
pub mod doctor;
pub mod draw;
pub mod explain;
pub mod fit;
pub mod info;
pub mod list;
pub mod man;
pub mod measure;
pub mod optimise;
pub mod models;
pub mod papers;
pub mod plan;
pub mod profile;
pub mod rank_job;
pub mod report;
pub mod run;
pub mod simulate;
pub mod tune;
pub mod verify;
pub mod who;
pub mod what_if;

use crate::error::CliError;
use crate::session::Session;
use clap::Subcommand;

/// What can be asked for.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Measure this machine, choose the fastest plans for it, and keep them for all programs
    Tune(tune::Arguments),
    /// Show this machine, every setting and where it came from, and which costs decide
    Info(info::Arguments),
    /// Say what slows lineweave down on this machine, and what to do about it
    Doctor(doctor::Arguments),
    /// Show running and hung teams: each rank's call, what it waits for, and who is missing
    Who(who::Arguments),
    /// List the algorithms with their parameters and sources, or the machine descriptions
    List(list::Arguments),
    /// Print a plan as text: of an algorithm, or the one that would be chosen
    Plan(plan::Arguments),
    /// Draw a plan as SVG
    Draw(draw::Arguments),
    /// Prove plans, or show a counter-example
    Verify(verify::Arguments),
    /// Run an MPI or OpenMP program with lineweave's collectives: `mpirun -n 4 lineweave run -- ./app`
    Run(run::Arguments),
    /// Measure collectives beside hand-written loops, memcpy, other barriers and MPIs
    Bench(bench::Arguments),
    /// Explain a choice: which plan, its predicted time, the runner-up, and what decided
    Explain(explain::Arguments),
    /// Measure this machine and keep its profile; choices use it from then on
    Measure(measure::Arguments),
    /// Show a profile's parameters with their intervals, and which ones it cannot tell
    Fit(fit::Arguments),
    /// Write a page about a machine: its distances, its costs, and what is chosen on it
    Report(report::Arguments),
    /// Compare two profiles: which parameters differ, and whether significantly
    Profile(profile::Arguments),
    /// Find the cheapest parameters of a tree, barrier or pipeline, and their distance to a bound
    Optimise(optimise::Arguments),
    /// Compare published models: what each predicts for each algorithm, and how wrong it is
    Models(models::Arguments),
    /// Simulate plans, with contention, on a described machine
    Simulate(simulate::Arguments),
    /// Compare links and ports of a growing mesh: which of them limits it
    WhatIf(what_if::Arguments),
    /// Reproduce the papers: what they print beside what comes out here
    Papers(papers::Arguments),
    /// Print a script that completes this command's arguments in a shell
    Completions(completions::Arguments),
    /// Write the manual pages to a directory
    Man(man::Arguments),
    /// Be one rank of a team that another lineweave started
    #[command(hide = true)]
    RankJob(rank_job::Arguments),
}

impl Command {
    /// Does it.
    ///
    /// # Errors
    /// A [`CliError`] that says why not.
    pub fn run(&self, session: &mut Session) -> Result<(), CliError> {
        match self {
            Command::Tune(arguments) => tune::run(arguments, session),
            Command::Info(arguments) => info::run(arguments, session),
            Command::Doctor(arguments) => doctor::run(arguments, session),
            Command::Who(arguments) => who::run(arguments, session),
            Command::List(arguments) => list::run(arguments, session),
            Command::Plan(arguments) => plan::run(arguments, session),
            Command::Draw(arguments) => draw::run(arguments, session),
            Command::Verify(arguments) => verify::run(arguments, session),
            Command::Run(arguments) => run::run(arguments, session),
            Command::Bench(arguments) => bench::run(arguments, session),
            Command::Explain(arguments) => explain::run(arguments, session),
            Command::Measure(arguments) => measure::run(arguments, session),
            Command::Fit(arguments) => fit::run(arguments, session),
            Command::Report(arguments) => report::run(arguments, session),
            Command::Profile(arguments) => profile::run(arguments, session),
            Command::Optimise(arguments) => optimise::run(arguments, session),
            Command::Models(arguments) => models::run(arguments, session),
            Command::Simulate(arguments) => simulate::run(arguments, session),
            Command::WhatIf(arguments) => what_if::run(arguments, session),
            Command::Papers(arguments) => papers::run(arguments, session),
            Command::Completions(arguments) => completions::run(arguments, session),
            Command::Man(arguments) => man::run(arguments, session),
            Command::RankJob(arguments) => rank_job::run(arguments, session),
        }
    }
}

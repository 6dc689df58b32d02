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
    /// Measure this machine, choose and prove plans for it, run them: predicted beside measured, and kept
    Tune(tune::Arguments),
    /// Show this node, every setting with where it came from, and by what plans are chosen
    Info(info::Arguments),
    /// Say what keeps lineweave from its best on this node, and what to do about it
    Doctor(doctor::Arguments),
    /// Show running and hung teams: each rank's call, what it waits for and since when, and who is missing
    Who(who::Arguments),
    /// List the algorithms with their parameters and sources, or the machine descriptions
    List(list::Arguments),
    /// Print the plan of an algorithm, or of the one that would be chosen, as text
    Plan(plan::Arguments),
    /// Draw a plan as SVG
    Draw(draw::Arguments),
    /// Prove plans, or show a counter-example
    Verify(verify::Arguments),
    /// Run a program of MPI whose collectives lineweave takes over: `mpirun -n 4 lineweave run -- ./app`
    Run(run::Arguments),
    /// Measure collectives beside the floor, memcpy and other barriers, all in one run
    Bench(bench::Arguments),
    /// Say what is chosen for a message, what it is predicted to cost, and what decided it
    Explain(explain::Arguments),
    /// Measure this machine and keep its profile, by which plans are chosen from then on
    Measure(measure::Arguments),
    /// Show the parameters of a profile with their intervals, and what cannot be identified
    Fit(fit::Arguments),
    /// Write one page about a machine and what is chosen on it: pictures, curves, intervals, what is not known
    Report(report::Arguments),
    /// Compare profiles: which parameters differ, and whether that is significant
    Profile(profile::Arguments),
    /// Find the parameters that cost least in closed forms, and how far from a bound they are
    Optimise(optimise::Arguments),
    /// Show what every published model says of every algorithm, and how wrong it is
    Models(models::Arguments),
    /// Play plans in virtual time on a machine that need not be there, with contention
    Simulate(simulate::Arguments),
    /// Find from which number of cores and accesses in flight on links limit a mesh rather than ports
    WhatIf(what_if::Arguments),
    /// Compute what the papers print anew, and say item by item what agrees
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

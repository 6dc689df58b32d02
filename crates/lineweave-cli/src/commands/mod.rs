//! The commands: one file each, with its arguments and its `run`.
//!
//! A new command is a file here, and one line each in the list of modules, in `TASKS`, in [`Command`] and in
//! [`Command::run`].

pub mod bench;
pub mod completions;
pub mod doctor;
pub mod draw;
pub mod env;
pub mod examples;
pub mod explain;
pub mod fit;
pub mod info;
pub mod lab;
pub mod list;
pub mod man;
pub mod measure;
pub mod plan;
pub mod profile;
pub mod rank_job;
pub mod report;
pub mod run;
pub mod trace;
pub mod tune;
pub mod verify;
pub mod who;

use crate::error::CliError;
use crate::session::Session;
use clap::Subcommand;
use std::fmt::Write;

/// The commands, grouped by task.
const TASKS: [(&str, &[&str]); 5] = [
    ("Measure this machine", &["tune", "measure", "doctor", "info", "fit", "profile", "report"]),
    ("Choose and explain plans", &["explain", "list", "plan", "draw", "verify"]),
    ("Run programs", &["run", "env", "trace", "bench", "who"]),
    ("Laboratory", &["lab"]),
    ("Set up a shell", &["completions", "man"]),
];

/// Sets the help of the whole command to one that groups the commands by task: `clap` has only one heading for all.
pub fn by_task(command: clap::Command) -> clap::Command {
    let mut tasks = String::new();
    for (task, names) in TASKS {
        let _ = writeln!(tasks, "\n{task}:");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            let _ = writeln!(tasks, "  {name:<13}{}", about.map(ToString::to_string).unwrap_or_default());
        }
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n{tasks}\nOptions:\n{{options}}"
    ))
}

/// The commands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Measure this machine, and keep the fastest plans for all programs
    Tune(tune::Arguments),
    /// Show this machine, every setting and where it came from
    Info(info::Arguments),
    /// Say what slows lineweave down here, and what to do about it
    Doctor(doctor::Arguments),
    /// Show running and hung teams: who waits, for what, who is missing
    Who(who::Arguments),
    /// List the algorithms with their parameters, or the machines
    List(list::Arguments),
    /// Print a plan as text: an algorithm's, or the one that is chosen
    Plan(plan::Arguments),
    /// Draw a plan as SVG
    Draw(draw::Arguments),
    /// Prove plans, or show a counter-example
    Verify(verify::Arguments),
    /// Run an MPI or OpenMP program with lineweave's collectives
    Run(run::Arguments),
    /// Print what `run` sets, for job scripts with a fixed launch line
    Env(env::Arguments),
    /// Write the timeline of an MPI job that `run --trace` recorded
    Trace(trace::Arguments),
    /// Measure collectives beside hand-written loops, barriers and MPIs
    Bench(bench::Arguments),
    /// Explain a choice: which plan, its predicted time, what decided
    Explain(explain::Arguments),
    /// Measure this machine, and keep its profile for choosing
    Measure(measure::Arguments),
    /// Show a profile's parameters, and what it cannot tell
    Fit(fit::Arguments),
    /// Write a page about a machine: its costs, and what is chosen
    Report(report::Arguments),
    /// Compare profiles, or exchange matrices with other tools
    Profile(profile::Arguments),
    /// Simulate, compare models, search for trees, redo the papers
    Lab(lab::Arguments),
    /// Print a script that completes arguments in a shell
    Completions(completions::Arguments),
    /// Write the manual pages to a directory
    Man(man::Arguments),
    /// Be one rank of a team that another lineweave started
    #[command(hide = true)]
    RankJob(rank_job::Arguments),
}

impl Command {
    /// Runs the command.
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
            Command::Env(arguments) => env::run(arguments, session),
            Command::Trace(arguments) => trace::run(arguments, session),
            Command::Bench(arguments) => bench::run(arguments, session),
            Command::Explain(arguments) => explain::run(arguments, session),
            Command::Measure(arguments) => measure::run(arguments, session),
            Command::Fit(arguments) => fit::run(arguments, session),
            Command::Report(arguments) => report::run(arguments, session),
            Command::Profile(arguments) => profile::run(arguments, session),
            Command::Lab(arguments) => lab::run(arguments, session),
            Command::Completions(arguments) => completions::run(arguments, session),
            Command::Man(arguments) => man::run(arguments, session),
            Command::RankJob(arguments) => rank_job::run(arguments, session),
        }
    }
}

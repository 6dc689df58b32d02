//! The parts of the `lineweave` command: arguments, files and standard output, and what it says of the machine.

pub mod bench;
pub mod error;
pub mod node;
pub mod doctor;
pub mod size;
pub mod threads;
pub mod files;
pub mod link;
pub mod output;
pub mod machines;
pub mod session;
pub mod question;
pub mod commands;

pub use error::CliError;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use commands::lab::Experiment;
use commands::Command;
use session::{Globals, Session};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Exit status of a command line that means nothing.
const USAGE: u8 = 2;

/// Measures a machine, chooses collectives for it, proves and runs them.
#[derive(Parser, Debug)]
#[command(name = "lineweave", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

/// The definition of the arguments.
pub fn command() -> clap::Command {
    // What moved into the laboratory is still understood without its name, and shown with it alone.
    let formerly = Experiment::augment_subcommands(clap::Command::new(""));
    let hide = |command: clap::Command, old: &clap::Command| {
        command.mut_subcommand(old.get_name(), |old| old.hide(true))
    };
    commands::by_task(formerly.get_subcommands().fold(Cli::command(), hide))
}

/// Runs the command that `argv` asks for, the program's name first.
pub fn run(argv: impl IntoIterator<Item = OsString>) -> ExitCode {
    let parsed = command().try_get_matches_from(argv).and_then(|found| Cli::from_arg_matches(&found));
    let cli = match parsed {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let mut session = Session::new(cli.globals);
    let done = cli.command.run(&mut session).and_then(|()| session.finish());
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read the output has seen enough.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            // What was found before goes out first; that it cannot be written is no second failure.
            let _ = session.out.flush();
            complain(&error.to_string());
            ExitCode::from(error.status())
        }
    }
}

/// Help and versions to standard output; errors of usage to standard error.
fn usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let _ = write!(std::io::stdout(), "{}", error.render());
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            complain(&format!("expected a command, found none\n\n{}", error.render()));
            ExitCode::from(USAGE)
        }
        _ => {
            let text = error.render().to_string();
            complain(text.trim_start_matches("error: ").trim_end());
            ExitCode::from(USAGE)
        }
    }
}

/// Says what is wrong on standard error, where anybody listens.
fn complain(message: &str) {
    let _ = writeln!(std::io::stderr(), "lineweave: {message}");
}

#[cfg(test)]
mod tests {
    use super::command;

    #[test]
    fn the_definition_of_the_arguments_is_sound() {
        command().debug_assert();
    }

    /// Every command that is not hidden stands under one task, in lines that a terminal of 80 columns holds.
    #[test]
    fn the_help_shows_every_command_once() {
        let command = command();
        let help = command.clone().render_help().to_string();
        for shown in command.get_subcommands().filter(|c| !c.is_hide_set()) {
            let line = format!("\n  {:<13}", shown.get_name());
            assert_eq!(help.matches(&line).count(), 1, "{line}: {help}");
        }
        let tasks = &help[..help.find("\nOptions:").expect("options below the commands")];
        assert!(tasks.lines().all(|line| line.len() <= 80), "{tasks}");
        assert!(!tasks.contains("\n  simulate"), "{tasks}");
    }
}

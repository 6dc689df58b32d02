//! The `lineweave` command: arguments, files, standard output, and the description of the machine.

mod bench;
mod calls;
mod error;
mod node;
mod doctor;
mod size;
mod threads;
mod files;
mod room;
mod link;
mod fold;
mod fitting;
mod interrupt;
mod capture;
mod screen;
mod curve;
mod output;
mod machines;
mod script;
mod mpi;
mod openmp;
mod session;
mod question;
mod trace;
mod commands;

pub use machines::load as load_machine;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use commands::run::launcher;
use commands::Command;
use console::style;
use error::CliError;
use lineweave_core::names::did_you_mean;
use session::{Globals, Session};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// Exit status for a command line that cannot be parsed.
const USAGE: u8 = 2;

/// Measures a machine, chooses collectives for it, proves and runs them.
#[derive(Parser, Debug)]
#[command(name = "lineweave", version, propagate_version = true, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

/// Returns the definition of the arguments.
fn command() -> clap::Command {
    commands::examples::add(commands::by_task(Cli::command()))
}

/// The command line of `run` alone. It starts every rank of an MPI program, and defining all commands would take longer than the rest of
/// its work.
#[derive(Parser)]
#[command(name = "lineweave")]
struct Start {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Starting,
}

#[derive(Subcommand)]
enum Starting {
    Run(commands::run::Arguments),
}

/// Parses a command line.
fn parse(argv: &[OsString]) -> Result<Cli, clap::Error> {
    if argv.get(1).is_some_and(|first| first == "run") {
        // Errors are reported by the definition of all commands.
        if let Ok(Start { globals, command: Starting::Run(arguments) }) = Start::try_parse_from(argv) {
            return Ok(Cli { globals, command: Command::Run(arguments) });
        }
    }
    command().try_get_matches_from(argv).and_then(|found| Cli::from_arg_matches(&found))
}

/// Runs the command that `argv` asks for, the program's name first.
pub fn run(argv: impl IntoIterator<Item = OsString>) -> ExitCode {
    let argv: Vec<OsString> = argv.into_iter().collect();
    let cli = match parse(&argv) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let mut session = Session::new(cli.globals);
    // A program that `run` becomes shows its own progress, a rank is timed, and an interrupt is the usual end of `who --watch`.
    let becomes_rank = matches!(cli.command, Command::Run(_));
    if !matches!(cli.command, Command::Run(_) | Command::RankJob(_) | Command::Who(_)) {
        interrupt::keeps("nothing was kept");
        session.out.show_work();
    }
    let done = cli.command.run(&mut session).and_then(|()| session.finish());
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output has seen enough.
        Err(error) if error.is_broken_pipe() => ExitCode::SUCCESS,
        Err(error) => {
            // Findings so far go out first; if they cannot be written, the first error is still the one to report.
            let _ = session.out.flush();
            complain(&error.to_string());
            if becomes_rank {
                launcher::end_job(error.status());
            }
            ExitCode::from(error.status())
        }
    }
}

/// Prints help and versions to standard output, and errors of usage to standard error.
fn usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            let text = error.render().to_string();
            let mut out = std::io::stdout();
            match out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(CliError::Output) {
                Err(error) if !error.is_broken_pipe() => {
                    complain(&error.to_string());
                    ExitCode::from(error.status())
                }
                _ => ExitCode::SUCCESS,
            }
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            complain(&format!("expected a command, found none\n\n{}", error.render()));
            ExitCode::from(USAGE)
        }
        _ => {
            let text = error.render().to_string();
            let text = text.trim_start_matches("error: ").trim_end();
            let (first, more) = text.split_at(text.find('\n').unwrap_or(text.len()));
            complain(&format!("{first}{}{more}", meant(error)));
            ExitCode::from(USAGE)
        }
    }
}

/// Returns a tip about a command asked for without its group, or misspelt behind `help`, where none is given.
fn meant(error: &clap::Error) -> String {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return String::new();
    };
    let command = command();
    let names = command.get_subcommands().flat_map(|c| std::iter::once(c).chain(c.get_subcommands()));
    let has = |group: &&clap::Command| group.get_subcommands().any(|c| c.get_name() == name);
    if let Some(group) = command.get_subcommands().find(has) {
        return format!(" (did you mean `{} {name}`?)", group.get_name());
    }
    match error.get(ContextKind::SuggestedSubcommand) {
        None => did_you_mean(name, names.map(clap::Command::get_name)),
        Some(_) => String::new(),
    }
}

/// Prints an error to standard error, if there is one.
fn complain(message: &str) {
    let message = output::names_in_columns(message);
    let _ = writeln!(std::io::stderr(), "{} {message}", style("lineweave:").for_stderr().red());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_of_the_arguments_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn run_means_by_itself_what_it_means_among_all_commands() {
        let words = |line: &str| -> Vec<OsString> { line.split(' ').map(Into::into).collect() };
        let whole = |argv: &[OsString]| {
            command().try_get_matches_from(argv).and_then(|found| Cli::from_arg_matches(&found))
        };
        for line in [
            "run -- a",
            "run --report r a --report b",
            "run -q --mpi mpich a -q",
            "run --json --topology x a",
        ] {
            let argv = words(&format!("lineweave {line}"));
            assert!(Start::try_parse_from(&argv).is_ok(), "{line}");
            let expected = format!("{:?}", whole(&argv).expect("a command"));
            assert_eq!(format!("{:?}", parse(&argv).expect("a command")), expected);
        }
        for line in ["run", "run --no-such a", "run --help", "--quiet run a"] {
            let argv = words(&format!("lineweave {line}"));
            assert!(
                parse(&argv).map_err(|e| e.to_string()).err()
                    == whole(&argv).map_err(|e| e.to_string()).err()
            );
        }
    }

    /// Checks that every command that is not hidden stands under one task, in lines that fit a terminal of 80 columns.
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

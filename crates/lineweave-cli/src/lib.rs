//! The parts of the `lineweave` command: arguments, files and standard output, and nothing else.

pub mod bench;
pub mod error;
pub mod size;
pub mod files;
pub mod link;
pub mod output;
pub mod machines;
pub mod session;
pub mod question;
pub mod commands;

pub use error::CliError;

use clap::error::ErrorKind;
use clap::Parser;
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

/// Runs the command that `argv` asks for, the program's name first.
pub fn run(argv: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(argv) {
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
    use clap::CommandFactory;

    #[test]
    fn the_definition_of_the_arguments_is_sound() {
        super::Cli::command().debug_assert();
    }
}

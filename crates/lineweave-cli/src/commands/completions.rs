//! `lineweave completions`: scripts for shells.

use crate::error::CliError;
use crate::session::Session;
use clap_complete::Shell;
use serde::Serialize;

/// Arguments of `lineweave completions`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// The script that completes words in a shell. Printed as `completions` by `lineweave completions`.
#[derive(Serialize)]
struct Completions {
    shell: String,
    script: String,
}

/// Prints the script.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let mut script = Vec::new();
    let mut command = crate::command();
    clap_complete::generate(arguments.shell, &mut command, "lineweave", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    session.out.text(&script)?;
    session.out.object("completions", &Completions { shell: arguments.shell.to_string(), script })
}

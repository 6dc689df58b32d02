//! The `lineweave` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    lineweave_cli::run(std::env::args_os())
}

//! `lineweave env`: the variables that `lineweave run` would set, for job scripts whose launch line cannot change.

use super::run::detect::Abi;
use super::run::{library, preload, CHOOSER, COMMAND, PRELOAD};
use crate::error::CliError;
use crate::output::{name_of, shell_word};
use crate::session::Session;
use serde::Serialize;
use std::collections::BTreeMap;

/// Arguments of `lineweave env`: the programs that the environment is for.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// The MPI that the programs load [default: found out of each program where it is loaded]
    #[arg(long, value_enum)]
    mpi: Option<Abi>,
    /// Print what takes it back
    #[arg(long, conflicts_with = "mpi")]
    unset: bool,
}

/// The variables of the environment to set. Printed as `env` by `lineweave env`.
#[derive(Serialize)]
struct Variables {
    /// Values by name; `null` for a variable that is to be unset.
    variables: BTreeMap<&'static str, Option<String>>,
}

/// Prints lines for a shell's `eval`.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let before = std::env::var(PRELOAD).unwrap_or_default();
    let others: Vec<&str> = before.split([':', ' ']).filter(|path| !path.ends_with(CHOOSER)).collect();
    let mut libraries = Vec::new();
    if !arguments.unset {
        let named = arguments.mpi.map(|abi| format!("liblineweave_mpi_{}.so", name_of(&abi)));
        for file in named.into_iter().chain([CHOOSER.to_owned()]) {
            libraries.push(library(&file).map_err(CliError::NoLibrary)?);
        }
    }
    let list = preload(&libraries, &[], others.join(":").as_ref()).to_string_lossy().into_owned();
    // With the MPI told, no program is looked at.
    let command = (!arguments.unset && arguments.mpi.is_none())
        .then(|| std::env::current_exe().unwrap_or_default().display().to_string());
    let variables =
        BTreeMap::from([(PRELOAD, Some(list).filter(|list| !list.is_empty())), (COMMAND, command)]);
    variables.iter().try_for_each(|(name, value)| match value {
        Some(value) => session.out.line(&format!("export {name}={}", shell_word(value))),
        None => session.out.line(&format!("unset {name}")),
    })?;
    session.out.object("env", &Variables { variables })
}

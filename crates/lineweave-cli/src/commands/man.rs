//! `lineweave man`: the manual pages.

use crate::error::CliError;
use crate::session::Session;
use crate::Cli;
use clap::CommandFactory;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Where to.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// The directory, made when it does not exist
    directory: PathBuf,
}

#[derive(Serialize)]
struct Page<'a> {
    file: &'a Path,
}

/// Writes the pages and names them.
///
/// # Errors
/// [`CliError::Write`] when the directory cannot be written.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let directory = &arguments.directory;
    let error = |reason| CliError::Write { path: directory.clone(), option: "the argument", reason };
    std::fs::create_dir_all(directory).map_err(error)?;
    clap_mangen::generate_to(Cli::command(), directory).map_err(error)?;
    let mut pages: Vec<PathBuf> = Cli::command()
        .get_subcommands()
        .filter(|c| !c.is_hide_set())
        .map(|c| directory.join(format!("lineweave-{}.1", c.get_name())))
        .chain([directory.join("lineweave.1")])
        .collect();
    pages.sort();
    for page in &pages {
        match session.out.is_json() {
            true => session.out.object("page", &Page { file: page })?,
            false => session.out.line(&page.display().to_string())?,
        }
    }
    Ok(())
}

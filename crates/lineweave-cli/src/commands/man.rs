//! `lineweave man`: the manual pages.

use crate::error::CliError;
use crate::session::Session;
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
    clap_mangen::generate_to(crate::command(), directory).map_err(error)?;
    let mut pages = vec![directory.join("lineweave.1")];
    name_pages(&crate::command(), "lineweave", directory, &mut pages);
    pages.sort();
    for page in &pages {
        match session.out.is_json() {
            true => session.out.object("page", &Page { file: page })?,
            false => session.out.line(&page.display().to_string())?,
        }
    }
    Ok(())
}

/// The pages of what can be asked for below `command`, as the generator names them.
fn name_pages(command: &clap::Command, name: &str, directory: &Path, pages: &mut Vec<PathBuf>) {
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        let name = format!("{name}-{}", below.get_name());
        pages.push(directory.join(format!("{name}.1")));
        name_pages(below, &name, directory, pages);
    }
}

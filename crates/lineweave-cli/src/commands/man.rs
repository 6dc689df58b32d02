//! `lineweave man`: the manual pages.

use super::examples;
use crate::error::CliError;
use crate::session::Session;
use clap::Command;
use clap_mangen::roff::{bold, roman, Roff};
use lineweave::settings::VARIABLES;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};

/// The exit statuses of the commands.
const STATUS: &str = "0 when all was done; 1 when it could not be done, or was refuted; 2 when the command line means nothing. \
    `lineweave run` ends with the status of the program, or of the rank that failed.";

/// Arguments of `lineweave man`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// The directory, made when it does not exist
    directory: PathBuf,
}

/// A manual page. Printed as `page` by `lineweave man`.
#[derive(Serialize)]
struct Page<'a> {
    file: &'a Path,
}

/// Writes the pages and prints their paths.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let directory = &arguments.directory;
    let error = |reason| CliError::Write { path: directory.clone(), option: "the argument", reason };
    std::fs::create_dir_all(directory).map_err(error)?;
    let mut command = crate::command().disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    write_pages(&command, "lineweave", directory, &mut pages).map_err(error)?;
    pages.sort();
    for page in &pages {
        session.out.object("page", &Page { file: page })?;
        session.out.line(&page.display().to_string())?;
    }
    Ok(())
}

/// Writes the page of a command, and those of the commands below it.
fn write_pages(command: &Command, name: &str, directory: &Path, pages: &mut Vec<PathBuf>) -> io::Result<()> {
    for below in command.get_subcommands().filter(|c| !c.is_hide_set()) {
        write_pages(below, &format!("{name} {}", below.get_name()), directory, pages)?;
    }
    let page = directory.join(format!("{}.1", name.replace(' ', "-")));
    std::fs::write(&page, text_of(command, name)?)?;
    pages.push(page);
    Ok(())
}

/// Returns the page of a command.
fn text_of(command: &Command, name: &str) -> io::Result<Vec<u8>> {
    let generated = clap_mangen::Man::new(command.clone())
        .source(concat!("lineweave ", env!("CARGO_PKG_VERSION")))
        .manual("lineweave");
    let mut page = Vec::new();
    generated.render_title(&mut page)?;
    generated.render_name_section(&mut page)?;
    // The generated synopsis leaves out the values of options.
    let usage = command.clone().render_usage().to_string();
    let mut synopsis = Roff::new();
    synopsis.control("SH", ["SYNOPSIS"]).text([roman(usage.trim_start_matches("Usage: "))]);
    synopsis.to_writer(&mut page)?;
    generated.render_options_section(&mut page)?;
    if command.get_subcommands().any(|c| !c.is_hide_set()) {
        generated.render_subcommands_section(&mut page)?;
    }
    let mut rest = Roff::new();
    let examples = examples::of(name);
    if !examples.is_empty() {
        rest.control("SH", ["EXAMPLES"]);
    }
    for (what, line) in examples {
        rest.control("PP", []).text([roman(format!("{what}:"))]);
        rest.control("PP", []).control("RS", ["4"]).control("nf", []).text([roman(line)]);
        rest.control("fi", []).control("RE", []);
    }
    if name == "lineweave" {
        rest.control("SH", ["ENVIRONMENT"]);
        for variable in VARIABLES {
            let about =
                format!("{}. Takes {} [default: {}]", variable.about, variable.values, variable.default);
            rest.control("TP", []).text([bold(variable.name)]).text([roman(about)]);
        }
    }
    rest.control("SH", ["EXIT STATUS"]).text([roman(STATUS)]);
    if name != "lineweave" {
        rest.control("SH", ["SEE ALSO"])
            .text([bold("lineweave"), roman("(1), for the environment variables")]);
    }
    rest.to_writer(&mut page)?;
    Ok(page)
}

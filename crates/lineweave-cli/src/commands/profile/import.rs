//! `lineweave profile import`: a matrix of latencies from another source, made into a machine's description.

use crate::error::CliError;
use crate::files::{replace, replace_bytes, to_write};
use crate::machines::{read_matrix, told, MATRIX};
use crate::output::table;
use crate::session::Session;
use flate2::{Compression, GzBuilder};
use lineweave::topology::{Hardware, Source};
use lineweave_core::machine::{self, Machine};
use lineweave_core::topology::Level;
use lineweave_core::units::Nanos;
use lineweave_lab::matrix::{csv, describe, synthetic};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

/// Arguments of `lineweave profile import`.
#[derive(clap::Args, Debug)]
pub(super) struct Import {
    /// Latencies from core to core as CSV, which may be compressed by gzip: lower triangle or all, in ns
    #[arg(value_name = "FILE.csv[.gz]")]
    file: PathBuf,
    /// The description to write; the matrix is written beside it, as .csv.gz
    #[arg(long, short, value_name = "FILE.toml", value_parser = description)]
    output: PathBuf,
    /// What the machine is, in words [default: the matrix's file]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// The described machine whose rates and caches stand in for what no matrix tells [default: the generic one of this machine's
    /// instruction set]
    #[arg(long, value_name = "NAME")]
    like: Option<String>,
}

/// A description made of a matrix. Printed as `profile-import` by `lineweave profile import`.
#[derive(Serialize)]
struct Imported<'a> {
    /// The description; the matrix lies beside it.
    file: String,
    cpus: usize,
    /// Synthetic form; `None` where groups differ in size.
    topology: Option<&'a str>,
    distances: Vec<Distance>,
    /// Assumptions about the matrix.
    remarks: &'a [String],
    /// Things that no matrix tells, and whose values stand in.
    assumed: &'a [String],
}

#[derive(Serialize)]
struct Distance {
    level: Level,
    value_ns: f64,
    ci_low_ns: f64,
    ci_high_ns: f64,
}

/// Reads the name of a description that is to be written.
fn description(name: &str) -> Result<PathBuf, String> {
    match name.ends_with(".toml") {
        true => to_write(name),
        false => Err(format!("expected a name that ends in .toml, found {name}")),
    }
}

pub(super) fn run(arguments: &Import, session: &mut Session) -> Result<(), CliError> {
    let readout = read_matrix(&arguments.file)?;
    let text = text(arguments, session)?;
    let unread = |e: machine::MachineError| CliError::malformed(&arguments.output, "machine description", e);
    let machine: Machine = text.parse().map_err(unread)?;
    let content = compressed(&csv(&readout.matrix));
    let machine = describe(machine, readout).map_err(|e| CliError::malformed(&arguments.file, MATRIX, e))?;
    replace_bytes(&arguments.output.with_extension("csv.gz"), &content, "-o")?;
    replace(&arguments.output, &text, "-o")?;
    report(arguments, &machine, session)
}

/// Returns the description: the names, and the facts that are known besides the matrix.
fn text(arguments: &Import, session: &mut Session) -> Result<String, CliError> {
    let stem = arguments.output.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let source = arguments.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let like = match &arguments.like {
        None => None,
        Some(name) => Some(machine::shipped().iter().find(|m| m.name == *name).ok_or_else(|| {
            let known = machine::shipped().iter().map(|m| m.name.clone()).collect();
            CliError::UnknownMachine { name: name.clone(), known }
        })?),
    };
    let quoted = |text: &str| toml::Value::from(text).to_string();
    let mut out = format!(
        "schema = 1\nname = {}\ntitle = {}\narch = {}\n",
        quoted(&stem),
        quoted(arguments.title.as_deref().unwrap_or(&source)),
        quoted(like.map_or(std::env::consts::ARCH, |m| m.arch.as_str()))
    );
    let form = match session.settings()?.0.topology {
        Source::Machine => None,
        Source::Synthetic(form) => {
            Hardware::load(&Source::Synthetic(form.clone()))?;
            Some(form)
        }
        source @ Source::Xml(_) => {
            let form = synthetic(&Hardware::load(&source)?.topology);
            if form.is_none() {
                session.out.warn("--topology has no effect: its groups differ in size");
            }
            form
        }
    };
    if let Some(form) = form.map(|form| quoted(&form)) {
        out.push_str(&format!(
            "topology = {{ value = {form}, status = \"cited\", source = \"given when the matrix was imported\" }}\n"
        ));
    }
    out.push_str(&format!(
        "\n[matrix]\nfile = {}\nsource = {}\n",
        quoted(&format!("{stem}.csv.gz")),
        quoted(&format!("imported from {source}"))
    ));
    if let Some(like) = like {
        out.push_str(&format!("like = {}\n", quoted(&like.name)));
    }
    Ok(out)
}

/// Compresses a text. The same text gives the same bytes: the header has no time and no name.
fn compressed(text: &str) -> Vec<u8> {
    let mut encoder = GzBuilder::new().write(Vec::new(), Compression::best());
    // Writing to memory cannot fail.
    let written = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    written.unwrap_or_default()
}

fn report(arguments: &Import, machine: &Machine, session: &mut Session) -> Result<(), CliError> {
    let Some(measured) = &machine.measured else { return Ok(()) };
    let levels = Level::ALL.into_iter().filter_map(|level| {
        let value = machine.transfer(level);
        let ns = value.value?;
        let (low, high) = (value.low.unwrap_or(ns), value.high.unwrap_or(ns));
        Some(Distance { level, value_ns: ns, ci_low_ns: low, ci_high_ns: high })
    });
    let found = Imported {
        file: arguments.output.display().to_string(),
        cpus: measured.topology.cpus.len(),
        topology: machine.topology.value.as_deref(),
        distances: levels.collect(),
        remarks: &measured.remarks,
        assumed: &measured.assumed,
    };
    for remark in found.remarks {
        session.out.warn(remark);
    }
    session.out.object("profile-import", &found)?;
    let form = found.topology.unwrap_or("groups of different size");
    session.out.line(&format!("{}: {} CPUs, {form}", found.file, found.cpus))?;
    let mut rows = table(&["the same", "one line", "from", "to"], &[1, 2, 3]);
    for d in &found.distances {
        let times = [d.value_ns, d.ci_low_ns, d.ci_high_ns].map(|ns| Nanos(ns).to_string());
        rows.add_row([d.level.to_string()].into_iter().chain(times));
    }
    session.out.table(&rows)?;
    told(machine).iter().skip(1).take(1).try_for_each(|note| session.out.line(note))?;
    session.out.line(&format!("lineweave explain barrier --machine {}", found.file))?;
    session.out.line(&format!("lineweave profile adopt {}", found.file))
}

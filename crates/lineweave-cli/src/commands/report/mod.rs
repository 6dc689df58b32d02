//! `lineweave report`: a machine and what is chosen on it as one page to look at.

mod choices;
mod fitted;
mod page;
mod pixels;
mod plots;
mod predicted;
mod simulated;
mod subject;
mod sure;
mod trees;

use crate::error::CliError;
use crate::files::{replace, replace_bytes, to_write};
use crate::session::Session;
use crate::threads::both;
use choices::Tree;
use clap::ValueEnum;
use lineweave_core::select::SelectError;
use lineweave_core::topology::Cpu;
use lineweave_core::units::Nanos;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::PathBuf;
use subject::Subject;

/// What of.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Also compare predicted with measured times of this bench record, on whose machine ranks are placed
    #[arg(long, value_name = "BENCH.jsonl")]
    record: Option<PathBuf>,
    /// Of the machine as it is simulated: --machine measured in virtual time, and what is chosen played on it
    #[arg(long, conflicts_with = "record")]
    simulate: bool,
    /// One page, all pictures in one, that as pixels, or text and tables
    #[arg(long, value_enum, default_value_t = Format::Html)]
    format: Format,
    /// Where to [default: standard output]
    #[arg(long, short, value_name = "FILE", value_parser = to_write)]
    output: Option<PathBuf>,
}

/// What the report is written as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Html,
    Svg,
    Png,
    Md,
}

/// Part of a report.
#[derive(Debug, Default)]
struct Section {
    /// Its anchor.
    id: &'static str,
    /// What stands above it.
    title: &'static str,
    /// Paragraphs.
    text: Vec<String>,
    /// Pictures, as SVG.
    figures: Vec<String>,
    /// Tables: headings and rows.
    tables: Vec<(Vec<&'static str>, Vec<Vec<String>>)>,
    /// What is not known, and how to get it, where that leaves nothing to show.
    missing: Option<String>,
}

impl Section {
    fn new(id: &'static str, title: &'static str) -> Section {
        Section { id, title, ..Section::default() }
    }

    fn missing(self, why: impl Into<String>) -> Section {
        Section { missing: Some(why.into()), ..self }
    }
}

#[derive(Serialize)]
struct SectionObject<'a> {
    section: &'a str,
    title: &'a str,
    figures: usize,
    missing: Option<&'a str>,
}

#[derive(Serialize)]
struct ReportObject<'a> {
    origin: &'a str,
    format: Format,
    file: Option<String>,
    text: Option<&'a str>,
}

/// Computes and writes it.
///
/// # Errors
/// A [`CliError`]: costs or a record that cannot be read, a machine without a topology, or a file that cannot be
/// written.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    if arguments.format == Format::Png && arguments.output.is_none() {
        return Err(CliError::NoFile);
    }
    let subject = match arguments.simulate {
        true => simulated::load(session)?,
        false => subject::load(arguments.record.as_deref(), session)?,
    };
    let (drawn, map) = both(|| drawn(&subject), || choices::section(&subject, session));
    let ((tree, mut sections), map) = (drawn?, map?);
    sections.extend([
        fitted::section(&subject),
        predicted::section(&subject, session)?,
        map,
        sure::unidentified(&subject),
        sure::parameters(&subject),
    ]);
    let text = match arguments.format {
        Format::Html => page::html(&subject.title, &subject.origin, &facts(&subject, &tree), &sections),
        Format::Svg | Format::Png => page::svg(&subject.title, &sections),
        Format::Md => page::md(&subject.title, &subject.origin, &sections),
    };
    if let Some(file) = &arguments.output {
        match arguments.format {
            Format::Png => replace_bytes(file, &pixels::png(&text)?, "-o")?,
            Format::Html | Format::Svg | Format::Md => replace(file, &text, "-o")?,
        }
    }
    let file = arguments.output.as_ref().map(|f| f.display().to_string());
    if session.out.is_json() {
        let whole = file.is_none().then_some(text.as_str());
        let head = ReportObject { origin: &subject.origin, format: arguments.format, file, text: whole };
        session.out.object("report", &head)?;
        for s in &sections {
            let missing = s.missing.as_deref();
            let part = SectionObject { section: s.id, title: s.title, figures: s.figures.len(), missing };
            session.out.object("report-section", &part)?;
        }
        return Ok(());
    }
    match file {
        Some(file) => session.out.line(&file),
        None => session.out.text(&text),
    }
}

/// The tree, or why there is none.
fn tree(subject: &Subject) -> Result<Result<Tree, String>, CliError> {
    match choices::tree(subject) {
        Err(CliError::Select(why @ SelectError::NothingFits { .. })) => Ok(Err(why.to_string())),
        Err(other) => Err(other),
        Ok(tree) => Ok(Ok(tree)),
    }
}

/// What a person asks first: names and values.
fn facts(subject: &Subject, tree: &Result<Tree, String>) -> Vec<(String, String)> {
    let count = |of: fn(&Cpu) -> usize| {
        subject.topology.cpus.iter().map(of).collect::<BTreeSet<_>>().len().to_string()
    };
    let mut facts = vec![
        ("CPUs".to_owned(), subject.topology.cpus.len().to_string()),
        ("cores".to_owned(), count(|c| c.core)),
        ("packages".to_owned(), count(|c| c.package)),
    ];
    for level in subject.levels() {
        let read = subject.model.level(level).0.read.value;
        facts.push((format!("a line from the same {level}"), Nanos(read).to_string()));
    }
    if let Ok(tree) = tree {
        facts.push((format!("8 bytes to {} ranks: {}", tree.ranks, tree.name), tree.predicted.to_string()));
    }
    facts
}

/// The machine, its distances and trees.
fn drawn(subject: &Subject) -> Result<(Result<Tree, String>, Vec<Section>), CliError> {
    let tree = tree(subject)?;
    let mut sections = vec![plots::machine(subject), plots::distances(subject, &tree)];
    sections.extend(trees::section(subject)?);
    Ok((tree, sections))
}

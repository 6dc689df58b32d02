//! `lineweave report`: a machine and what is chosen on it as one page to look at.

mod choices;
mod page;
mod plots;
mod predicted;
mod subject;
mod sure;

use crate::error::CliError;
use crate::files::replace;
use crate::session::Session;
use clap::ValueEnum;
use lineweave_core::select::SelectError;
use serde::Serialize;
use std::path::PathBuf;
use subject::Subject;

/// What of.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Also compare predicted with measured times of this bench record, on whose machine ranks are placed
    #[arg(long, value_name = "BENCH.jsonl")]
    record: Option<PathBuf>,
    /// One page, all pictures in one, or text and tables
    #[arg(long, value_enum, default_value_t = Format::Html)]
    format: Format,
    /// Where to [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What the report is written as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Html,
    Svg,
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
    let subject = subject::load(arguments.record.as_deref(), session)?;
    let sections = sections(&subject, session)?;
    let text = match arguments.format {
        Format::Html => page::html(&subject.title, &subject.origin, &sections),
        Format::Svg => page::svg(&subject.title, &sections),
        Format::Md => page::md(&subject.title, &subject.origin, &sections),
    };
    if let Some(file) = &arguments.output {
        replace(file, &text, "-o")?;
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

fn sections(subject: &Subject, session: &mut Session) -> Result<Vec<Section>, CliError> {
    let tree = match choices::tree(subject) {
        Err(CliError::Select(why @ SelectError::NothingFits { .. })) => Err(why.to_string()),
        Err(other) => return Err(other),
        Ok(tree) => Ok(tree),
    };
    Ok(vec![
        plots::machine(subject),
        plots::distances(subject, &tree),
        plots::fitted(subject),
        predicted::section(subject, session)?,
        choices::section(subject, session)?,
        sure::unidentified(subject),
        sure::parameters(subject),
    ])
}

//! `lineweave report`: a machine and the choices on it, as one page.

mod answers;
mod choices;
mod fitted;
mod page;
mod pixels;
mod plots;
mod predicted;
mod record;
mod simulated;
mod subject;
mod sure;
mod trees;

use crate::error::CliError;
use crate::files::{replace, replace_bytes, to_write};
use crate::output::name_of;
use crate::session::Session;
use crate::threads::both;
use clap::ValueEnum;
use serde::Serialize;
use std::path::{Path, PathBuf};
use subject::Subject;

/// Arguments of `lineweave report`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Also compare predicted with measured times of this bench record, on whose machine ranks are placed
    #[arg(long, value_name = "BENCH.jsonl")]
    record: Option<PathBuf>,
    /// Of the machine as it is simulated: --machine measured in virtual time, and what is chosen played on it
    #[arg(long, conflicts_with = "record")]
    simulate: bool,
    /// One page, all pictures in one, that as pixels, or text and tables [default: by the file's ending, else html]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Where to; its ending says the format: .html, .svg, .png or .md [default: standard output]
    #[arg(long, short, value_name = "FILE", value_parser = to_write)]
    output: Option<PathBuf>,
}

impl Arguments {
    /// Returns the format that `--format` and the file's ending agree on.
    fn format(&self) -> Result<Format, CliError> {
        let ending =
            self.output.as_deref().and_then(Path::extension).map(|e| e.to_string_lossy().to_lowercase());
        let of_ending = ending.as_deref().map(|e| match e {
            "htm" => Ok(Format::Html),
            other => Format::from_str(other, true),
        });
        let refused = |asked: Option<Format>| CliError::Format {
            path: self.output.clone().unwrap_or_default(),
            why: match asked {
                Some(asked) => {
                    let name = name_of(&asked);
                    format!("its ending is not that of --format {name}; leave one of the two out")
                }
                None => "expected a name that ends in .html, .svg, .png or .md, or the format by --format"
                    .to_owned(),
            },
        };
        match (self.format, of_ending) {
            (Some(Format::Png), None) if self.output.is_none() => Err(CliError::NoFile),
            (Some(asked), Some(Ok(of_ending))) if asked != of_ending => Err(refused(Some(asked))),
            (Some(asked), _) => Ok(asked),
            (None, Some(of_ending)) => of_ending.map_err(|_| refused(None)),
            (None, None) => Ok(Format::Html),
        }
    }
}

/// The format of a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    Html,
    Svg,
    Png,
    Md,
}

/// A picture, and its description for readers who cannot see it.
#[derive(Debug)]
struct Figure {
    svg: String,
    says: String,
}

impl Figure {
    fn new(svg: String, says: impl Into<String>) -> Figure {
        Figure { svg, says: says.into() }
    }
}

/// A section of a report.
#[derive(Debug, Default)]
struct Section {
    /// Anchor of the section in the page.
    id: &'static str,
    title: &'static str,
    text: Vec<String>,
    figures: Vec<Figure>,
    /// Tables: headings and rows.
    tables: Vec<(Vec<&'static str>, Vec<Vec<String>>)>,
    /// The missing facts, and how to get them, where nothing can be shown without them.
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

/// A section. Printed as `report-section` by `lineweave report`.
#[derive(Serialize)]
struct SectionObject<'a> {
    /// Its anchor: `map`, `machine`, `distances`, `trees`, `predicted`, `fitted`, `unidentified` or `parameters`.
    section: &'a str,
    title: &'a str,
    /// Number of pictures.
    figures: usize,
    /// Things that are not known, where there is nothing to show.
    missing: Option<&'a str>,
}

/// An answer of the first screen. Printed as `report-answer` by `lineweave report`.
#[derive(Serialize)]
struct AnswerObject<'a> {
    /// Its anchor: `health`, `costs`, `gain` or `advice`.
    answer: &'a str,
    question: &'a str,
    /// The answer.
    sentence: &'a str,
    /// Further sentences.
    more: &'a [String],
}

/// The report as a whole. Printed as `report` by `lineweave report`, first.
#[derive(Serialize)]
struct ReportObject<'a> {
    /// Source of the costs.
    origin: &'a str,
    format: Format,
    file: Option<String>,
    text: Option<&'a str>,
}

/// Computes and writes the report.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let format = arguments.format()?;
    let subject = match arguments.simulate {
        true => simulated::load(session)?,
        false => subject::load(arguments.record.as_deref(), session)?,
    };
    let bar = session.out.progress_of_work(0);
    let others = || (drawn(&subject), answers::answers(&subject));
    let ((drawn, answers), map) = both(others, || choices::section(&subject, &bar));
    let (mut sections, answers, map) = (drawn?, answers?, map?);
    bar.finish_and_clear();
    sections.insert(0, map);
    sections.extend([
        predicted::section(&subject, session)?,
        fitted::section(&subject),
        sure::unidentified(&subject),
        sure::parameters(&subject),
    ]);
    let (title, origin) = (&subject.title, &subject.origin);
    let text = match format {
        Format::Html => page::html(title, origin, &answers, &sections),
        Format::Svg | Format::Png => page::svg(title, &answers, &sections),
        Format::Md => page::md(title, origin, &answers, &sections),
    };
    if let Some(file) = &arguments.output {
        match format {
            Format::Png => replace_bytes(file, &pixels::png(&text)?, "-o")?,
            Format::Html | Format::Svg | Format::Md => replace(file, &text, "-o")?,
        }
    }
    let file = arguments.output.as_ref().map(|f| f.display().to_string());
    match &file {
        Some(file) => session.out.line(file)?,
        None => session.out.text(&text)?,
    }
    let whole = file.is_none().then_some(text.as_str());
    session.out.object("report", &ReportObject { origin: &subject.origin, format, file, text: whole })?;
    for a in &answers {
        let part = AnswerObject { answer: a.id, question: a.question, sentence: &a.sentence, more: &a.more };
        session.out.object("report-answer", &part)?;
    }
    for s in &sections {
        let missing = s.missing.as_deref();
        let part = SectionObject { section: s.id, title: s.title, figures: s.figures.len(), missing };
        session.out.object("report-section", &part)?;
    }
    Ok(())
}

/// Returns the sections about the machine, its distances and its trees.
fn drawn(subject: &Subject) -> Result<Vec<Section>, CliError> {
    let tree = choices::tree(subject)?;
    let mut sections = vec![plots::machine(subject), plots::distances(subject, &tree)];
    sections.extend(trees::section(subject)?);
    Ok(sections)
}

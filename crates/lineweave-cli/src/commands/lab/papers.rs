//! `lineweave lab papers`: the results that papers print beside the results here, item by item.

use crate::commands::lab::LabError;
use crate::error::CliError;
use crate::files::{directory, replace};
use crate::output::{table, width};
use crate::session::Session;
use comfy_table::{ContentArrangement, Table};
use lineweave_lab::paper::limit::{Judged, Limit, LIMITS};
use lineweave_lab::paper::{Claim, Figure, Finding, Item, Paper, Verdict, TABLE};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Arguments of `lineweave lab papers`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Only papers whose key contains this: `petrovic`
    paper: Option<String>,
    /// Draw the figures and tables that can be simulated instead, with the points that the papers print: DIR/KEY/ITEM.svg
    #[arg(long, value_name = "DIR", value_parser = directory)]
    figures: Option<PathBuf>,
}

/// A series of a figure. Printed as `figure` by `lineweave lab papers --figures DIR`.
#[derive(Serialize)]
struct Drawn<'a> {
    paper: &'static str,
    item: &'a str,
    file: &'a Path,
    chart: &'a str,
    series: &'a str,
    /// `simulated`, `model` (a closed form), `published` (in the paper's text) or `band` (best to worst case of a model).
    source: &'static str,
    /// The abscissa of each point, and the lower and upper end of its ordinate.
    points: Vec<[f64; 3]>,
}

/// Computes and prints the papers' items, or draws them.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let asked = arguments.paper.as_deref().unwrap_or("");
    let papers: Vec<&Paper> = TABLE.iter().copied().filter(|p| p.key.contains(asked)).collect();
    if papers.is_empty() {
        let known = TABLE.iter().map(|p| p.key).collect::<Vec<_>>().join(", ");
        return Err(LabError::UnknownPaper { name: asked.to_owned(), known }.into());
    }
    let bar = session.out.progress_of_work(papers.len() as u64);
    for paper in papers {
        bar.set_message(paper.key);
        if let Some(directory) = &arguments.figures {
            for figure in (paper.figures)() {
                bar.suspend(|| draw(&figure, directory, session))?;
            }
            bar.inc(1);
            continue;
        }
        let findings = (paper.findings)();
        bar.inc(1);
        objects(&findings, session)?;
        bar.suspend(|| report(paper, &findings, session))?;
    }
    bar.finish_and_clear();
    if arguments.figures.is_none() {
        let mut rows = within(table(&["limit", "share", "by the words of a claim"], &[1]));
        for Limit { name, share, why } in LIMITS {
            rows.add_row([(*name).to_owned(), format!("{:.0} %", 100.0 * share), (*why).to_owned()]);
        }
        session.out.table(&rows)?;
    }
    Ok(())
}

/// Writes a figure, and prints the path of the file or the figure's data.
fn draw(figure: &Figure, directory: &Path, session: &mut Session) -> Result<(), CliError> {
    let directory = directory.join(figure.paper);
    std::fs::create_dir_all(&directory).map_err(|reason| CliError::Write {
        path: directory.clone(),
        option: "--figures",
        reason,
    })?;
    let file = directory.join(figure.file());
    replace(&file, &figure.svg(), "--figures")?;
    session.out.line(&format!("{}: {}: {}", file.display(), figure.item, figure.title))?;
    for chart in &figure.charts {
        for series in &chart.series {
            session.out.object(
                "figure",
                &Drawn {
                    paper: figure.paper,
                    item: &figure.item,
                    file: &file,
                    chart: &chart.title,
                    series: &series.name,
                    source: series.mark.name(),
                    points: series.spots.iter().map(|s| [s.x, s.low, s.high]).collect(),
                },
            )?;
        }
    }
    Ok(())
}

fn objects(findings: &[Finding], session: &mut Session) -> Result<(), CliError> {
    findings.iter().try_for_each(|finding| match finding {
        Finding::Item(item) => session.out.object("paper", item),
        Finding::Claim(claim) => session.out.object("claim", claim),
    })
}

/// Columns that reports have at most.
const WIDTH: usize = 100;

fn report(paper: &Paper, findings: &[Finding], session: &mut Session) -> Result<(), CliError> {
    wrapped(&format!("{}: {}", paper.cite, paper.about), session)?;
    session.out.line(&format!("  data and findings: papers/{}/", paper.key))?;
    session.out.line(&format!("  {}\n", counted(findings)))?;
    let mut items = within(table(&["  agree", "of", "item", "basis", "how, and what differs"], &[0, 1]));
    let mut claims = within(table(&["  verdict", "claim", "claimed", "ours", "basis and limit"], &[]));
    for finding in findings {
        match finding {
            Finding::Item(Item { item, agree, of, remark, basis, .. }) => {
                items.add_row([&agree.to_string(), &of.to_string(), item, basis.name(), remark]);
            }
            Finding::Claim(Claim { item, claimed, ours, verdict, judged, basis, .. }) => {
                let limit = judged.map_or(String::new(), |Judged { limit, off, turns }| {
                    let turns = if turns { "; half or twice the limit turns it" } else { "" };
                    let (off, share) = (100.0 * off, 100.0 * limit.share);
                    format!("; off {off:.1} %, limit {share:.0} % ({}){turns}", limit.name)
                });
                let verdict = format!("  {}", verdict.name());
                claims.add_row([&verdict, item, claimed, ours, &format!("{}{limit}", basis.name())]);
            }
        }
    }
    for rows in [claims, items] {
        if rows.row_iter().next().is_some() {
            session.out.table(&rows)?;
            session.out.line("")?;
        }
    }
    Ok(())
}

/// Prints words, wrapped as tables are; further lines are indented.
fn wrapped(text: &str, session: &mut Session) -> Result<(), CliError> {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if line.len() + 1 + word.len() > columns() {
            session.out.line(&line)?;
            line = " ".to_owned();
        }
        line += if line.is_empty() { "" } else { " " };
        line += word;
    }
    session.out.line(&line)
}

/// Returns [`WIDTH`], or that of a narrower terminal.
fn columns() -> usize {
    width().map_or(WIDTH, |width| width.min(WIDTH))
}

/// Returns the table wrapped to [`WIDTH`], or to a narrower terminal.
pub(super) fn within(mut table: Table) -> Table {
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(columns() as u16);
    table
}

/// Returns how many claims hold and how many do not.
fn counted(findings: &[Finding]) -> String {
    let claims = |wanted: Verdict| {
        findings.iter().filter(|f| matches!(f, Finding::Claim(c) if c.verdict == wanted)).count()
    };
    let [holds, differs, open] = [Verdict::Holds, Verdict::Differs, Verdict::NotReproduced].map(claims);
    format!("claims: {holds} hold, {differs} differ, {open} not reproduced")
}

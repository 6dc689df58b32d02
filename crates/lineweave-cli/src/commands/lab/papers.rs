//! `lineweave lab papers`: what the papers print beside what comes out here, item by item.

use crate::error::CliError;
use crate::files::{directory, replace};
use crate::output::table;
use crate::session::Session;
use lineweave_lab::paper::limit::{Judged, Limit, LIMITS};
use lineweave_lab::paper::{Claim, Figure, Finding, Item, Paper, TABLE};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Which.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Only papers whose key contains this: `petrovic`
    paper: Option<String>,
    /// Draw the figures and tables that can be simulated instead, with the points that the papers print: DIR/KEY/ITEM.svg
    #[arg(long, value_name = "DIR", value_parser = directory)]
    figures: Option<PathBuf>,
}

/// A series of a figure, as JSON.
#[derive(Serialize)]
struct Drawn<'a> {
    paper: &'static str,
    item: &'a str,
    file: &'a Path,
    chart: &'a str,
    series: &'a str,
    source: &'static str,
    /// To the right, and the lower and upper end of what is there.
    points: Vec<[f64; 3]>,
}

/// Computes and prints them, or draws them.
///
/// # Errors
/// [`CliError::UnknownPaper`] when no key contains what was asked for, [`CliError::Write`], [`CliError::Output`].
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let asked = arguments.paper.as_deref().unwrap_or("");
    let papers: Vec<&Paper> = TABLE.iter().copied().filter(|p| p.key.contains(asked)).collect();
    if papers.is_empty() {
        let known = TABLE.iter().map(|p| p.key).collect::<Vec<_>>().join(", ");
        return Err(CliError::UnknownPaper { name: asked.to_owned(), known });
    }
    let bar = session.out.progress(papers.len() as u64);
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
        match session.out.is_json() {
            true => objects(&findings, session)?,
            false => bar.suspend(|| report(paper, &findings, session))?,
        }
    }
    bar.finish_and_clear();
    if !session.out.is_json() && arguments.figures.is_none() {
        session.out.line("limits, by the words of a claim:")?;
        for Limit { name, share, why } in LIMITS {
            session.out.line(&format!("  {name}, {:.0} %: {why}", 100.0 * share))?;
        }
    }
    Ok(())
}

/// Writes a figure, and says where to or what is in it.
fn draw(figure: &Figure, directory: &Path, session: &mut Session) -> Result<(), CliError> {
    let directory = directory.join(figure.paper);
    std::fs::create_dir_all(&directory).map_err(|reason| CliError::Write {
        path: directory.clone(),
        option: "--figures",
        reason,
    })?;
    let file = directory.join(figure.file());
    replace(&file, &figure.svg(), "--figures")?;
    if !session.out.is_json() {
        return session.out.line(&format!("{}: {}: {}", file.display(), figure.item, figure.title));
    }
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

fn report(paper: &Paper, findings: &[Finding], session: &mut Session) -> Result<(), CliError> {
    session.out.line(&format!("{}: {}", paper.cite, paper.about))?;
    session.out.line(&format!("  data and findings: papers/{}/\n", paper.key))?;
    let mut items = table(&["  item", "agree", "of", "remark"], &[1, 2]);
    let mut claims = table(&["  claim", "claimed", "ours", "verdict"], &[]);
    for finding in findings {
        match finding {
            Finding::Item(Item { item, agree, of, remark, .. }) => {
                items.add_row([format!("  {item}"), agree.to_string(), of.to_string(), remark.clone()]);
            }
            Finding::Claim(Claim { item, claimed, ours, verdict, judged, .. }) => {
                let verdict = match judged {
                    None => verdict.name().to_owned(),
                    Some(Judged { limit, off, turns }) => format!(
                        "{}: off {:.1} %, limit {:.0} % ({}){}",
                        verdict.name(),
                        100.0 * off,
                        100.0 * limit.share,
                        limit.name,
                        if *turns { ", turns within a factor of 2 of it" } else { "" }
                    ),
                };
                claims.add_row([&format!("  {item}"), claimed, ours, &verdict]);
            }
        }
    }
    for rows in [items, claims] {
        if rows.row_iter().next().is_some() {
            session.out.table(&rows)?;
            session.out.line("")?;
        }
    }
    Ok(())
}

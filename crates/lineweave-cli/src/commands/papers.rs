//! `lineweave papers`: what the papers print beside what comes out here, item by item.

use crate::error::CliError;
use crate::output::table;
use crate::session::Session;
use lineweave_core::paper::{Claim, Finding, Item, Paper, TABLE};

/// Which.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Only papers whose key contains this: `petrovic`
    paper: Option<String>,
}

/// Computes and prints them.
///
/// # Errors
/// [`CliError::UnknownPaper`] when no key contains what was asked for, [`CliError::Output`].
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
        let findings = (paper.findings)();
        bar.inc(1);
        match session.out.is_json() {
            true => objects(&findings, session)?,
            false => bar.suspend(|| report(paper, &findings, session))?,
        }
    }
    bar.finish_and_clear();
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
            Finding::Claim(Claim { item, claimed, ours, verdict, .. }) => {
                claims.add_row([&format!("  {item}"), claimed, ours, verdict.name()]);
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

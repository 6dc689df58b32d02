//! `lineweave doctor`: what keeps lineweave from its best here, and what to do about it; with a program, the settings of its libraries that
//! would make it faster.

mod program;

use crate::doctor::{examine, Finding, Verdict};
use crate::error::CliError;
use crate::node::NodeInfo;
use crate::session::Session;
use console::style;

/// Arguments of `lineweave doctor`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    #[command(flatten)]
    program: program::Program,
}

/// Examines the node, or a program.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    if arguments.program.is_given() {
        return program::run(&arguments.program, session);
    }
    let (mut settings, warnings) = session.settings()?;
    if let Some(file) = session.profile_option() {
        settings.profile = Some(file.to_owned());
    }
    let node = NodeInfo::gather(&settings, &warnings)?;
    let mut findings = examine(&node, &settings);
    findings.extend(warnings.iter().map(Finding::of_setting));
    for finding in &findings {
        session.out.object("finding", finding)?;
        let mark = match finding.verdict {
            Verdict::Good => format!("{}     ", style("ok").green()),
            Verdict::Advice => format!("{} ", style("advice").yellow()),
            Verdict::Problem => style("PROBLEM").red().bold().to_string(),
        };
        session.out.line(&format!("{mark}  {}: {}", finding.what, finding.found))?;
        if !finding.advice.is_empty() {
            session.out.line(&format!("         -> {}", finding.advice))?;
        }
    }
    match findings.iter().filter(|f| f.verdict == Verdict::Problem).count() {
        0 => Ok(()),
        problems => Err(CliError::Unwell { problems }),
    }
}

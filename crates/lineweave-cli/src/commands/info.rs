//! `lineweave info`: a description of the node for people.

use crate::error::CliError;
use crate::node::NodeInfo;
use crate::session::{mixed, Session};
use lineweave::topology::Source;
use lineweave::tuning::Tuning;

/// Arguments of `lineweave info`: the global options alone.
#[derive(clap::Args, Debug)]
pub struct Arguments {}

/// Shows the node.
pub fn run(_: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let (mut settings, warnings) = session.settings()?;
    if let Some(file) = session.profile_option() {
        settings.profile = Some(file.to_owned());
    }
    let given = session.topology_option().is_some();
    let mut node = NodeInfo::gather(&settings, &warnings)?;
    // What is chosen by belongs to this machine, whatever stands in its place above.
    if session.machine_option().is_some() {
        let costs = session.costs()?;
        let whose = costs.machine.map_or_else(|| costs.tuning.model.machine.cpu.clone(), |m| m.title);
        (node.profile, node.costs_of) = (Some(format!("{} (--machine)", costs.origin)), Some(whose));
    } else {
        let here = match settings.topology {
            Source::Machine => None,
            Source::Xml(_) | Source::Synthetic(_) => {
                let here = lineweave::settings::Settings { topology: Source::Machine, ..settings.clone() };
                Some(NodeInfo::gather(&here, &[])?)
            }
        };
        let of = here.as_ref().unwrap_or(&node);
        // A profile that cannot be used is something to show here, not a reason to show nothing.
        match Tuning::load(&settings, &of.hardware, &of.fingerprint) {
            Ok(tuning) => {
                node.profile = Some(tuning.origin.to_string());
                node.attach = Some(tuning.about_attach(settings.attach));
                node.kept_plans = Some(tuning.about_kept().unwrap_or_else(|why| why));
                node = node.warn(mixed(&tuning)).warn(tuning.aside);
            }
            Err(e) => {
                node.profile = Some("cannot be used".to_owned());
                node.warnings.push(e.to_string());
            }
        }
    }
    let overridden = |option: bool, name: &str| {
        let set = node
            .settings
            .iter()
            .any(|r| r.name == name && r.origin == lineweave::settings::Origin::Environment);
        (option && set).then(|| format!("{name} has no effect: the command line says otherwise"))
    };
    let profile = session.profile_option().is_some();
    let more = [overridden(given, "LINEWEAVE_TOPOLOGY"), overridden(profile, "LINEWEAVE_PROFILE")];
    let node = node.warn(more.into_iter().flatten());
    session.out.object("info", &node)?;
    node.render().lines().try_for_each(|line| session.out.line(line))
}

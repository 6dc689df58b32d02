//! Teams of this machine that time algorithms of the table.

use crate::commands::rank_job;
use crate::error::CliError;
use crate::node::NodeInfo;
use crate::session::Session;
use lineweave::settings::Settings;
use lineweave::team::TeamConfig;
use lineweave::tuning::{Origin, Tuning};
use lineweave_core::collective::{Association, Collective};
use lineweave_core::model::Values;
use lineweave_core::select::Question;
use lineweave_core::topology::Shape;
use lineweave_tune::trial::TrialTeam;

/// Starts a team of so many ranks, as threads or processes.
///
/// # Errors
/// A [`CliError`] when this machine cannot run such a team.
pub fn team(ranks: usize, processes: bool, session: &mut Session) -> Result<TrialTeam, CliError> {
    let settings = session.settings_of_this_machine()?;
    let node = NodeInfo::gather(&settings, &[])?;
    // Every trial names its algorithm, so the source of choices makes no difference.
    let origin = Origin::Machine { name: "none".to_owned(), why: "every algorithm is named".to_owned() };
    let tuning = Tuning::of_model(Values::default().model(), origin);
    let config = TeamConfig::with(ranks, &settings, &node.placement(), node.usable.effective, tuning);
    Ok(match processes {
        true => TrialTeam::processes(config, rank_job::command()?)?,
        false => TrialTeam::threads(config)?,
    })
}

/// Returns the question that a call of a team of threads poses.
pub fn question(collective: Collective, shape: &Shape, bytes: usize, settings: &Settings) -> Question {
    Question {
        collective,
        shape: shape.clone(),
        root: 0,
        bytes,
        grain: if collective.folds() { 8 } else { 1 },
        association: Association::Free,
        direct: false,
        attach: false,
        box_bytes: settings.box_bytes,
        counter_bytes: usize::MAX,
        acc_bytes: None,
        uneven: None,
    }
}

//! Teams of this machine that time algorithms of the table.

use crate::bench::Team;
use crate::commands::rank_job;
use crate::error::CliError;
use crate::node::NodeInfo;
use crate::session::Session;
use lineweave::settings::Settings;
use lineweave::team::TeamConfig;
use lineweave::tuning::{Origin, Tuning};
use lineweave_core::collective::Collective;
use lineweave_core::model::Values;
use lineweave_core::select::Question;
use lineweave_core::topology::{Placement, Shape};
use lineweave_tune::trial::TrialTeam;

/// Starts a team of so many ranks, as threads or processes, placed so.
pub fn team(
    ranks: usize,
    processes: bool,
    place: Placement,
    session: &mut Session,
) -> Result<TrialTeam, CliError> {
    let settings = session.settings_of_this_machine()?;
    let node = NodeInfo::gather(&settings, &[])?;
    // Every trial names its algorithm, so the source of choices makes no difference.
    let origin = Origin::Machine { name: "none".to_owned(), why: "every algorithm is named".to_owned() };
    let tuning = Tuning::of_model(Values::default().model(), origin);
    let config =
        TeamConfig::with(ranks, &settings, &node.placement().placed(place), node.usable.effective, tuning);
    rank_job::crew(if processes { Team::Processes } else { Team::Threads }, config)
}

/// Returns the question that a call of a team of threads poses.
pub fn question(collective: Collective, shape: &Shape, bytes: usize, settings: &Settings) -> Question {
    let grain = if collective.folds() { 8 } else { 1 };
    Question {
        shape: shape.clone(),
        box_bytes: settings.box_bytes,
        ..Question::flat(collective, shape.ranks(), bytes, grain)
    }
}

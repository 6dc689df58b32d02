//! The profile of this machine: measured, and kept with the choices that exist already.

use super::programme::Programme;
use crate::commands::measure::{in_passes, probed, probes};
use crate::error::CliError;
use crate::files::{fuller, replace};
use crate::session::Session;
use lineweave::settings::Settings;
use lineweave::tuning::remove_kept;
use lineweave_core::profile::Profile;
use lineweave_core::select::Choices;
use lineweave_tune::measure::ProbeSet;
use std::path::Path;

/// Measures this machine, with a progress bar.
pub fn measured(
    programme: &Programme,
    quick: bool,
    settings: &Settings,
    session: &Session,
) -> Result<Profile, CliError> {
    let set = probes(settings, quick)?;
    let set = ProbeSet { budget: programme.probing().min(set.budget), ..set };
    probed(&set, session, in_passes)
}

/// Keeps the profile, unless the existing one has more samples.
pub fn save_profile(file: &Path, profile: &Profile, session: &Session) -> Result<(), CliError> {
    if fuller(file, profile) {
        session.out.warn(&format!("{} has more samples and stays", file.display()));
        return Ok(());
    }
    // Choices by the previous profile are useless now.
    file.parent().iter().for_each(|directory| remove_kept(directory));
    replace(file, &profile.to_toml(), "XDG_CACHE_HOME")
}

/// Returns the choices that exist already, to be replaced case by case.
pub fn known(file: &Path, profile: &Profile) -> Choices {
    let id = profile.machine.id();
    let text = lineweave::cache::text_of_either(file).ok();
    let there = text.and_then(|text| Choices::from_toml(&text).ok()).filter(|c| c.machine == id);
    there.unwrap_or_else(|| Choices::new(id))
}

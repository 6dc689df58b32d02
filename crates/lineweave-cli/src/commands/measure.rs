//! `lineweave measure`: the costs of this machine, as a profile; or those of a described machine, in virtual time.

mod simulated;

use super::fit::{show, Head};
use crate::error::CliError;
use crate::files::{fuller, make_room, replace, to_write};
use crate::room::expect_room;
use crate::session::Session;
use lineweave::settings::Settings;
use lineweave_core::model::fit;
use lineweave_core::profile::Profile;
use lineweave_core::units::Nanos;
use lineweave_tune::measure::{measure, ProbeSet, Progress};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Steps of the progress bar.
const STEPS: u64 = 1000;

/// Arguments of `lineweave measure`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Where to keep the profile [default: the cache, by machine fingerprint, where programs find it; with --machine
    /// nowhere]
    #[arg(long, short, value_name = "FILE", value_parser = to_write)]
    output: Option<PathBuf>,
    /// Take a few seconds, with wider intervals
    #[arg(long)]
    quick: bool,
}

/// The profile as a whole. Printed as `profile` by `lineweave measure`, first; the objects of `lineweave fit` follow.
#[derive(Serialize)]
struct ProfileObject<'a> {
    file: String,
    fingerprint_id: String,
    measured_at: &'a str,
    cells: usize,
    /// Cells that the plausibility gate found odd.
    flagged: usize,
    /// Number of things that this machine cannot tell.
    unidentified: usize,
}

/// A cell that the plausibility gate found implausible. Printed as `flagged` by `lineweave measure`.
#[derive(Serialize)]
struct Flagged<'a> {
    probe: &'a str,
    factors: &'a BTreeMap<String, String>,
    /// The reasons, in words.
    flags: &'a [String],
}

/// Measures, saves and shows the profile.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    if let Some(name) = session.machine_option().map(str::to_owned) {
        return simulated::run(&name, arguments, session);
    }
    let settings = session.settings_of_this_machine()?;
    let set = probes(&settings, arguments.quick)?;
    let file = match &arguments.output {
        Some(file) => file.clone(),
        None => {
            let file = session.cached_profile()?.1;
            make_room(&file)?;
            file
        }
    };
    // A pipe or a device is written without that check.
    if file.is_file() || !file.exists() {
        expect_room(&file, "-o")?;
    }
    let profile = probed(&set, session, in_passes)?;
    let file = save(&file, &profile, session)?;
    let flagged: Vec<_> = profile.cells.iter().filter(|c| !c.flagged.is_empty()).collect();
    let object = ProfileObject {
        file: file.display().to_string(),
        fingerprint_id: profile.machine.id(),
        measured_at: &profile.measured_at,
        cells: profile.cells.len(),
        flagged: flagged.len(),
        unidentified: profile.unidentified.len(),
    };
    session.out.object("profile", &object)?;
    if !flagged.is_empty() {
        session.out.line(&format!("{} of {} cells are odd:", flagged.len(), profile.cells.len()))?;
        for cell in flagged {
            let object = Flagged { probe: &cell.probe, factors: &cell.factors, flags: &cell.flagged };
            session.out.object("flagged", &object)?;
            let factors: Vec<String> = cell.factors.iter().map(|(k, v)| format!("{k}={v}")).collect();
            let what = format!("  {} {}: {}", cell.probe, factors.join(" "), cell.flagged.join("; "));
            session.out.line(&what)?;
        }
        session.out.line("")?;
    }
    let model = fit(&profile).map_err(|e| CliError::malformed(&file, "profile that can be fitted", e))?;
    show(&Head::of(&file, &profile, session), &model, false, session)
}

/// Returns the probes of this machine's CPUs.
pub fn probes(settings: &Settings, quick: bool) -> Result<ProbeSet, CliError> {
    let set = ProbeSet::of_this_machine(settings)?;
    Ok(if quick { set.quick() } else { set })
}

/// Measures with a progress bar, beside which stands what `says` returns.
pub fn probed(set: &ProbeSet, session: &Session, says: fn(&Progress) -> String) -> Result<Profile, CliError> {
    let bar = session.out.progress(STEPS);
    let profile = measure(set, &mut |progress| {
        bar.set_position((progress.fraction.clamp(0.0, 1.0) * STEPS as f64) as u64);
        bar.set_message(says(&progress));
    });
    bar.finish_and_clear();
    Ok(profile?)
}

/// Returns the pass and the cell that was just visited, with its time.
pub fn in_passes(progress: &Progress) -> String {
    format!("pass {}: {} {}", progress.pass, progress.cell, Nanos(progress.median_ns))
}

/// Keeps the profile; if there is a fuller one of the same machine, beside it rather than in its place.
fn save(file: &Path, profile: &Profile, session: &Session) -> Result<PathBuf, CliError> {
    let file = match fuller(file, profile) {
        true => {
            let beside = file.with_extension("quick.toml");
            session.out.warn(&format!(
                "{} has more samples and stays; this measurement is in {}",
                file.display(),
                beside.display()
            ));
            beside
        }
        false => file.to_owned(),
    };
    replace(&file, &profile.to_toml(), "-o")?;
    Ok(file)
}

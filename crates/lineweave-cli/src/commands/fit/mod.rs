//! `lineweave fit`: the parameters of a model, their certainty, and what is missing.

mod distances;
pub(super) mod parameters;

use crate::error::CliError;
use crate::output::table;
use crate::session::{load_profile, Session};
use distances::Distances;
use lineweave_core::model::Model;
use lineweave_core::profile::{Fingerprint, Profile};
use parameters::{parameters, Parameter};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Arguments of `lineweave fit`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// The profile [default: --profile, else this machine's, as `lineweave measure` saved it]
    #[arg(value_name = "PROFILE", conflicts_with = "machine")]
    file: Option<PathBuf>,
    /// Show every point of the copy and fold surfaces, not only the sizes that powers of 16 make
    #[arg(long)]
    full: bool,
}

/// The profile that the parameters are from. Printed as `fit` by `lineweave fit`, first.
#[derive(Serialize)]
pub(super) struct Head {
    /// The profile's file, or the machine's description.
    source: String,
    machine: Option<Fingerprint>,
    measured_at: Option<String>,
    cells: Option<usize>,
    #[serde(skip)]
    distances: Option<Distances>,
}

/// Fits and shows a model.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let (head, model) = load(arguments, session)?;
    show(&head, &model, arguments.full, session)
}

/// Shows a model: all points of its surfaces, or the typical ones.
pub(super) fn show(head: &Head, model: &Model, full: bool, session: &mut Session) -> Result<(), CliError> {
    // JSON always has all points: programs filter for themselves.
    let all = full || session.out.is_json();
    let list: Vec<Parameter> = parameters(model).into_iter().filter(|p| all || p.is_typical()).collect();
    objects(head, model, &list, session)?;
    text(head, model, &list, session)
}

impl Head {
    /// Describes a profile. If the profile is this machine's, its distances have the names that the topology gives
    /// them.
    pub(super) fn of(file: &Path, profile: &Profile, session: &mut Session) -> Head {
        let here = session.cached_profile().is_ok_and(|(here, _)| profile.matches(&here).is_ok());
        let topology = if here { session.topology().ok() } else { None };
        Head {
            distances: Distances::of(profile, topology.as_ref()),
            source: file.display().to_string(),
            machine: Some(profile.machine.clone()),
            measured_at: Some(profile.measured_at.clone()),
            cells: Some(profile.cells.len()),
        }
    }
}

fn load(arguments: &Arguments, session: &mut Session) -> Result<(Head, Model), CliError> {
    if let Some(machine) = session.machine()? {
        let source = format!("machine description {}: {}", machine.name, machine.title);
        let head = Head { source, machine: None, measured_at: None, cells: None, distances: None };
        return Ok((head, Model::from_machine(&machine)));
    }
    let option = session.profile_option().map(PathBuf::from);
    let file = match arguments.file.clone() {
        Some(file) => {
            if option.is_some() {
                session.out.warn("--profile has no effect: the argument names another");
            }
            file
        }
        None => match option.or(session.settings_warned()?.profile) {
            Some(file) => file,
            None => {
                let (_, file) = session.cached_profile()?;
                if !file.exists() {
                    return Err(CliError::NoProfile { looked: format!("{} does not exist", file.display()) });
                }
                file
            }
        },
    };
    let (profile, model) = load_profile(&file)?;
    Ok((Head::of(&file, &profile, session), model))
}

fn objects(head: &Head, model: &Model, list: &[Parameter], session: &mut Session) -> Result<(), CliError> {
    session.out.object("fit", head)?;
    for parameter in list {
        session.out.object("parameter", parameter)?;
    }
    if let Some(distances) = &head.distances {
        distances.objects(session)?;
    }
    for residual in &model.residuals {
        session.out.object("residual", residual)?;
    }
    for unidentified in &model.unidentified {
        session.out.object("unidentified", unidentified)?;
    }
    Ok(())
}

fn text(head: &Head, model: &Model, list: &[Parameter], session: &mut Session) -> Result<(), CliError> {
    session.out.line(&head.source)?;
    if let Some(machine) = &head.machine {
        let at = head.measured_at.as_deref().unwrap_or("an unknown time");
        let cells = head.cells.unwrap_or(0);
        session
            .out
            .line(&format!("{}, {} CPUs, measured at {at}: {cells} cells", machine.cpu, machine.cpus))?;
    }
    session.out.line("")?;
    let mut rows =
        table(&["parameter", "where", "value", "95 % interval", "unit", "known by", "meaning"], &[2, 3]);
    for p in list {
        rows.add_row([
            p.parameter.clone(),
            p.place(),
            p.value(),
            p.interval(),
            p.unit(),
            p.provenance.to_string(),
            p.about.to_owned(),
        ]);
    }
    session.out.table_without(&rows, &["known by", "95 % interval"])?;
    if let Some(distances) = &head.distances {
        distances.text(session)?;
    }
    if !model.residuals.is_empty() {
        session.out.line("\nresiduals by segment of the range (a bias far from 0 % means another shape)")?;
        let mut rows = table(&["fit", "from", "to", "bias", "worst"], &[1, 2, 3, 4]);
        for r in &model.residuals {
            let percent = |x: f64| format!("{:.1} %", x * 100.0);
            let (from, to) = (format!("{}", r.from), format!("{}", r.to));
            rows.add_row([r.of.clone(), from, to, percent(r.bias), percent(r.worst)]);
        }
        session.out.table(&rows)?;
    }
    if !model.unidentified.is_empty() {
        session
            .out
            .line("\nnot identifiable from this, and what stands in is marked inferred or assumed:")?;
        for u in &model.unidentified {
            session.out.line(&format!("  {}: {}", u.what, u.because))?;
        }
    }
    Ok(())
}

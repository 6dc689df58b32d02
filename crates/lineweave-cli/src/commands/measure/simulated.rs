//! `lineweave measure --machine`: the probes in virtual time, and a comparison of the fitted parameters with the
//! described ones.

use super::Arguments;
use crate::error::CliError;
use crate::files::replace;
use crate::output::table;
use crate::session::{load_machine, Session};
use lineweave_core::model::fit;
use lineweave_core::units::Nanos;
use lineweave_lab::simulate::measuring::{measure, recovered, Recovered};
use serde::Serialize;
use std::path::PathBuf;

/// One described parameter, and its fitted value. Printed as `recovered` by `lineweave measure --machine NAME`.
#[derive(Serialize)]
struct RecoveredObject<'a> {
    machine: &'a str,
    parameter: &'a str,
    described_ns: f64,
    /// The value in the fit of simulated probes.
    found_ns: f64,
    off: f64,
}

/// Measures the description of this name, keeps the profile if that is asked for, and shows described values beside
/// fitted ones.
pub(super) fn run(name: &str, arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let machine = load_machine(name)?;
    if arguments.quick {
        session.out.warn("--quick has no effect: virtual time costs nothing");
    }
    let profile = measure(&machine)?;
    let file = arguments.output.clone();
    if let Some(file) = &file {
        replace(file, &profile.to_toml(), "-o")?;
    }
    let shown = file.clone().unwrap_or_else(|| PathBuf::from(format!("simulated {}", machine.name)));
    let model = fit(&profile).map_err(|e| CliError::malformed(&shown, "profile that can be fitted", e))?;
    let list = recovered(&machine, &model);
    session.out.line(&format!(
        "{}, {} cores, in virtual time: {} cells\n",
        machine.title,
        profile.machine.cpus,
        profile.cells.len()
    ))?;
    let mut rows = table(&["parameter", "described", "fitted", "off"], &[1, 2, 3]);
    for r @ Recovered { name, described, found } in &list {
        let object = RecoveredObject {
            machine: &machine.name,
            parameter: name,
            described_ns: *described,
            found_ns: *found,
            off: r.off(),
        };
        session.out.object("recovered", &object)?;
        rows.add_row([
            name.clone(),
            Nanos(*described).to_string(),
            Nanos(*found).to_string(),
            format!("{:+.2} %", (found / described - 1.0) * 100.0),
        ]);
    }
    session.out.table(&rows)?;
    match &file {
        Some(file) => {
            session.out.line(&format!("\nprofile: {}; `lineweave fit {0}` shows all of it", file.display()))
        }
        None => session.out.line("\n-o FILE keeps the profile"),
    }
}

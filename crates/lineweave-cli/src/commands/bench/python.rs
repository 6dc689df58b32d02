//! `lineweave bench python`: the Python package beside mpi4py, gloo, and DeepSpeed's and vLLM's operators.

use super::{begun, here, written, Arguments};
use crate::bench::python::measure;
use crate::error::CliError;
use crate::output::table;
use crate::session::Session;
use lineweave_core::units::{Bytes, Nanos};

/// Measures and shows.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let (_, node, tuning) = here(session)?;
    let (provenance, mut report) = begun(arguments, &node, &tuning, session)?;
    let mut shown = table(&["ranks", "call", "bytes", "subject", "median", "95 % interval"], &[0, 2, 4]);
    let mut remarks = Vec::new();
    let out = &mut session.out;
    measure(&arguments.ranks, &arguments.only, arguments.quick, |value| {
        let text = |key: &str| value[key].as_str().unwrap_or("").to_owned();
        let time = |key: &str| Nanos(value[key].as_f64().unwrap_or(0.0)).to_string();
        report.lines.push(value.to_string());
        out.value(&value)?;
        if value["kind"] == "skipped" {
            remarks.push(format!("  {} among {}: {}", text("subject"), value["ranks"], text("because")));
            return Ok(());
        }
        shown.add_row([
            value["ranks"].to_string(),
            format!("{} {}", text("collective"), text("element")).trim_end().to_owned(),
            Bytes(value["bytes"].as_u64().unwrap_or(0)).to_string(),
            text("subject"),
            time("median_ns"),
            format!("{} .. {}", time("ci_low_ns"), time("ci_high_ns")),
        ]);
        Ok::<(), CliError>(())
    })?;
    out.table(&shown)?;
    if !remarks.is_empty() {
        out.line("\nnot measured:")?;
    }
    for remark in &remarks {
        out.line(remark)?;
    }
    written(arguments, "python", &provenance, &report, out)
}

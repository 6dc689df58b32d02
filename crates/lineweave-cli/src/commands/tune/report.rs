//! Output of `lineweave tune`.

use super::choice::{Best, ChoiceObject};
use super::figures::{Errors, Family, Figures, NotKept};
use super::programme::Programme;
use crate::bench::Team;
use crate::error::CliError;
use crate::node::{self, NodeInfo};
use crate::output::{table, Output};
use lineweave_core::algorithm::spec::Named;
use lineweave_core::model::Model;
use lineweave_core::plan::Params;
use lineweave_core::profile::{Profile, Stats};
use lineweave_core::units::{Bytes, Nanos};
use lineweave_tune::measure::of_another_state;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

/// The summary. Printed as `tune` by `lineweave tune`, last.
#[derive(Serialize)]
struct Summary<'a> {
    /// Choices that were measured.
    cases: usize,
    /// Candidates that ran; each rank proved its plans before.
    plans: usize,
    /// Candidates that the errors are over: neither `calibrated`, nor given up while they were costed.
    candidates: usize,
    /// Candidates that repeat a probe.
    calibrated: usize,
    #[serde(flatten)]
    model: ModelErrors,
    #[serde(flatten)]
    regret: Regret,
    /// Sizes that were not raced because one plan won at both neighbours.
    interpolated: usize,
    not_kept: Vec<NotKept>,
    /// Things that were left out of races to keep the time.
    given_up: Option<String>,
    seconds: f64,
    profile_file: String,
    choices_file: String,
    /// Candidates that could not be run, and why.
    remarks: &'a [String],
}

/// The errors of the model.
#[derive(Serialize)]
struct ModelErrors {
    mean_proportional_error: Option<f64>,
    mean_relative_error: Option<f64>,
    /// Errors for teams that fit the CPUs.
    within_cpus: Errors,
    /// Errors for larger teams.
    beyond_cpus: Errors,
    families: Vec<Family>,
}

/// Factors by which choices are slower than the fastest measured algorithm.
#[derive(Serialize)]
struct Regret {
    mean_regret: f64,
    median_regret: f64,
    worst_regret: f64,
}

/// Shows the machine, and the time that tuning will take.
pub fn head(node: &NodeInfo, programme: &Programme, out: &mut Output) -> Result<(), CliError> {
    let machine = &node.fingerprint;
    out.line(&format!(
        "{}: {} usable CPUs, {} B lines, {}",
        machine.cpu, node.usable.effective, machine.line_bytes, machine.topology
    ))?;
    if let Some(load) = node::load().filter(|load| *load > 0.5) {
        out.line(&format!("  note: {load:.1} other programs are running on average; expect wide intervals"))?;
    }
    for warning in &node.warnings {
        out.line(&format!("  note: {warning}"))?;
    }
    let ranks: Vec<String> = programme.ranks.iter().map(ToString::to_string).collect();
    out.line(&format!(
        "takes {:.0} s: {:.0} s of probes, then races among {} ranks, threads and processes",
        programme.seconds,
        programme.probing().as_secs_f64(),
        ranks.join(", ")
    ))?;
    out.flush()
}

/// The measurement of the machine. Printed as `measured` by `lineweave tune`, first.
#[derive(Serialize)]
struct Measured<'a> {
    measured_at: &'a str,
    cells: usize,
    flagged: usize,
    seconds: f64,
}

/// Shows the few measured numbers that decide most, and names those that could not be measured.
pub fn measured(profile: &Profile, model: &Model, took: Duration, out: &mut Output) -> Result<(), CliError> {
    let flagged = profile.cells.iter().filter(|c| !c.flagged.is_empty()).count();
    let seconds = took.as_secs_f64();
    let cells = profile.cells.len();
    out.object("measured", &Measured { measured_at: &profile.measured_at, cells, flagged, seconds })?;
    profile.unidentified.iter().try_for_each(|unidentified| out.object("unidentified", unidentified))?;
    out.line(&format!("\nMEASURED in {:.0} s: {} cells", took.as_secs_f64(), profile.cells.len()))?;
    for (probe, layout, meaning) in [
        ("exchange", "paired", "two ranks signal each other, flags on one line"),
        ("exchange", "alone", "the same, each flag on a line of its own"),
        ("signal", "alone", "one rank signals another, one way"),
    ] {
        for cell in profile.probe(probe).filter(|c| c.factors.get("layout").is_some_and(|l| l == layout)) {
            let level = cell.factors.get("level").map_or("", String::as_str);
            let s = &cell.stats;
            out.line(&format!(
                "  {:>9}  {meaning} ({level}; 95 %: {} .. {})",
                Nanos(s.median).to_string(),
                Nanos(s.ci_low),
                Nanos(s.ci_high)
            ))?;
        }
    }
    for (bytes, where_from) in [(32 << 10, "in the nearest cache"), (16 << 20, "beyond the caches of a core")]
    {
        let rate = bytes as f64 / model.copy.at(bytes, 1).nanos;
        out.line(&format!(
            "  {:>9}  a copy of {}, {where_from}",
            format!("{rate:.1} GB/s"),
            Bytes(bytes as u64)
        ))?;
    }
    let mut said = BTreeSet::new();
    for cell in profile.probe("gauge") {
        let level = cell.factors.get("level").map_or("", String::as_str);
        for flag in cell.flagged.iter().filter(|flag| said.insert((*flag, level))) {
            out.line(&format!("  note: {flag} ({level})"))?;
        }
    }
    let (mixed, missing): (Vec<_>, Vec<_>) = profile.unidentified.iter().partition(|u| of_another_state(u));
    for u in mixed {
        out.line(&format!("  note: {}: {}", u.what, u.because))?;
    }
    if !missing.is_empty() {
        let told =
            format!("  {} costs cannot be told on this machine, and assumed values stand in", missing.len());
        out.line(&format!("{told}: `lineweave fit` lists them"))?;
    }
    out.line("\nRACES (m/p: measured by predicted; regret: how much slower the model's choice is than the fastest measured)")?;
    out.flush()
}

/// Shows the choices of one team.
pub fn choices(
    ranks: usize,
    team: Team,
    cpus: usize,
    rows: &[ChoiceObject],
    out: &mut Output,
) -> Result<(), CliError> {
    let beyond = if ranks > cpus { format!(", beyond the {cpus} CPUs") } else { String::new() };
    out.line(&format!("\n{ranks} {}{beyond}", team.name().to_uppercase()))?;
    if rows.is_empty() {
        out.line("no race is kept: the notes of the summary say why")?;
        return out.flush();
    }
    let mut shown = table(
        &[
            "collective",
            "bytes",
            "chosen by the model",
            "predicted",
            "measured",
            "95 % interval",
            "m/p",
            "regret",
            "fastest measured",
        ],
        &[1, 3, 4, 5, 6, 7],
    );
    for row in rows {
        shown.add_row([
            row.collective.to_string(),
            if row.collective.moves_data() { Bytes(row.bytes as u64).to_string() } else { "-".to_owned() },
            described(row.algorithm, &row.params, row.window_bytes, row.bytes),
            Nanos(row.predicted_ns).to_string(),
            Nanos(row.measured.measured_ns).to_string(),
            row.spread(),
            match row.calibrated {
                true => "calibrated".to_owned(),
                false => format!("{:.2}", row.measured_to_predicted),
            },
            percent(row.regret),
            match row.is_best() {
                true => "the choice".to_owned(),
                false => {
                    let Best { best_algorithm, best_params, best_window_bytes, .. } = &row.best;
                    described(best_algorithm, best_params, *best_window_bytes, row.bytes)
                }
            },
        ]);
    }
    out.table_without(&shown, &["95 % interval", "m/p", "predicted", "fastest measured"])?;
    let near = rows.iter().filter(|r| r.regret < 0.05).count();
    out.line(&format!("{near} of {} choices within 5 % of the fastest measured", rows.len()))?;
    out.flush()
}

/// Returns a choice as other commands and `LINEWEAVE_ALGORITHM` take it.
fn described(algorithm: &str, params: &Params, window: usize, bytes: usize) -> String {
    Named::new(algorithm, params).by(window, bytes).to_string()
}

fn percent(share: f64) -> String {
    match share {
        s if s < 0.005 => "0 %".to_owned(),
        s => format!("{:.0} %", s * 100.0),
    }
}

/// Factor from which an algorithm's mean error is named, and the most algorithms that are named.
const OFF: f64 = 1.25;
const NAMED: usize = 8;

/// Shows the summary of the whole run.
pub fn summary(
    figures: &Figures,
    took: Duration,
    profile: &Path,
    choices: &Path,
    out: &mut Output,
) -> Result<(), CliError> {
    let regrets = &figures.regrets;
    let all = Errors::of(&figures.pairs.concat());
    let [within_cpus, beyond_cpus] = [0, 1].map(|i| Errors::of(&figures.pairs[i]));
    let remarks = figures.remarks();
    let [mean_proportional_error, mean_relative_error] = all.means();
    let summary = Summary {
        cases: regrets.len(),
        plans: figures.plans,
        candidates: all.candidates,
        calibrated: figures.calibrated,
        model: ModelErrors {
            mean_proportional_error,
            mean_relative_error,
            within_cpus,
            beyond_cpus,
            families: figures.families(),
        },
        regret: Regret {
            mean_regret: regrets.iter().sum::<f64>() / regrets.len().max(1) as f64,
            median_regret: Stats::of(regrets, 0).map_or(0.0, |s| s.median),
            worst_regret: regrets.iter().copied().fold(0.0, f64::max),
        },
        interpolated: figures.interpolated,
        not_kept: figures.not_kept_because(),
        given_up: figures.given_up(),
        seconds: took.as_secs_f64(),
        profile_file: profile.display().to_string(),
        choices_file: choices.display().to_string(),
        remarks: &remarks,
    };
    out.object("tune", &summary)?;
    let none = regrets.iter().filter(|r| **r < 0.05).count();
    out.line("\nSUMMARY")?;
    let mut line = |what: &str, found: &str| out.line(&format!("  {what:<8} {found}"));
    line("plans", &format!("{} ran, each proved before", summary.plans))?;
    line(
        "choices",
        &format!(
            "by the model {} slower than the fastest measured in the median, {} at worst; {none} of {} within 5 %",
            percent(summary.regret.median_regret),
            percent(summary.regret.worst_regret),
            summary.cases
        ),
    )?;
    if summary.interpolated > 0 {
        line(
            "between",
            &format!(
                "{} sizes were not raced: one plan won below and above, and is taken",
                summary.interpolated
            ),
        )?;
    }
    line(
        "kept",
        &format!(
            "{} and {} beside it: programs use them from now on",
            summary.profile_file,
            file_name(choices)
        ),
    )?;
    line("took", &format!("{:.0} s", summary.seconds))?;
    for (errors, on) in
        [(&summary.model.within_cpus, "within the CPUs"), (&summary.model.beyond_cpus, "beyond them")]
    {
        if let Some(text) = errors.text(on) {
            line("model", &text)?;
        }
    }
    if summary.calibrated > 0 {
        line(
            "model",
            &format!("without {} calibrated candidates, which repeat a probe", summary.calibrated),
        )?;
    }
    let off = |f: &&Family| f.mean_factor.ln().abs() > OFF.ln();
    for family in summary.model.families.iter().filter(off).take(NAMED) {
        line(
            "off",
            &format!(
                "{}/{}: predicted at {:.2} times what it takes, mean of {}; at worst {:.2} ({})",
                family.collective,
                family.algorithm,
                family.mean_factor,
                family.candidates,
                family.worst_factor,
                family.worst
            ),
        )?;
    }
    for NotKept { races, because } in &summary.not_kept {
        line("note", &format!("{races} races not kept: {because}"))?;
    }
    for note in summary.given_up.iter().chain(summary.remarks) {
        line("note", note)?;
    }
    Ok(())
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

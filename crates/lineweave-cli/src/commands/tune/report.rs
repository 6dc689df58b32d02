//! What `lineweave tune` shows.

use crate::bench::Team;
use crate::error::CliError;
use crate::output::{table, Output};
use lineweave::node::NodeInfo;
use lineweave::trial::{Race, Runner};
use lineweave_core::collective::Collective;
use lineweave_core::model::Model;
use lineweave_core::plan::Params;
use lineweave_core::profile::Profile;
use lineweave_core::units::{Bytes, Nanos};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// A choice, what it was predicted to cost, what it did, and what it is beside its rivals.
#[derive(Serialize)]
pub struct ChoiceObject {
    collective: Collective,
    ranks: usize,
    bytes: usize,
    team: Team,
    algorithm: &'static str,
    params: Params,
    window_bytes: usize,
    predicted_ns: f64,
    measured_ns: f64,
    ci_low_ns: f64,
    ci_high_ns: f64,
    samples: usize,
    /// Measured by predicted.
    measured_to_predicted: f64,
    regret: f64,
    rivals: usize,
    best_algorithm: &'static str,
    best_params: Params,
    best_window_bytes: usize,
    best_measured_ns: f64,
}

impl ChoiceObject {
    /// Of a race.
    pub fn of(collective: Collective, ranks: usize, bytes: usize, team: Team, race: &Race) -> ChoiceObject {
        let (chosen, best) = (race.chosen(), race.best());
        ChoiceObject {
            collective,
            ranks,
            bytes,
            team,
            algorithm: chosen.candidate.name,
            params: chosen.candidate.params.clone(),
            window_bytes: chosen.candidate.window,
            predicted_ns: chosen.candidate.predicted.0,
            measured_ns: chosen.stats.median,
            ci_low_ns: chosen.stats.ci_low,
            ci_high_ns: chosen.stats.ci_high,
            samples: chosen.stats.samples,
            measured_to_predicted: chosen.stats.median / chosen.candidate.predicted.0,
            regret: race.regret(),
            rivals: race.runners.len() - 1,
            best_algorithm: best.candidate.name,
            best_params: best.candidate.params.clone(),
            best_window_bytes: best.candidate.window,
            best_measured_ns: best.stats.median,
        }
    }

    /// The wider half of the 95 % interval of the median, as a share of it.
    fn spread(&self) -> String {
        let half = (self.ci_high_ns - self.measured_ns).max(self.measured_ns - self.ci_low_ns);
        match self.samples {
            // No interval exists of so few.
            0..6 => format!("n={}", self.samples),
            _ => format!("{:.0} %", half / self.measured_ns * 100.0),
        }
    }

    fn is_best(&self) -> bool {
        self.algorithm == self.best_algorithm
            && self.params == self.best_params
            && self.window_bytes == self.best_window_bytes
    }
}

/// The summary's figures, as they come in.
#[derive(Default)]
pub struct Figures {
    /// Measured and predicted of every candidate that was run, on teams within the CPUs and beyond them.
    pairs: [Vec<(f64, f64)>; 2],
    regrets: Vec<f64>,
    proved: usize,
    moved: Vec<String>,
    readings: Vec<f64>,
    remarks: Vec<String>,
}

/// The summary.
#[derive(Serialize)]
struct Summary<'a> {
    cases: usize,
    plans: usize,
    candidates: usize,
    mean_proportional_error: Option<f64>,
    mean_relative_error: Option<f64>,
    within_cpus: Errors,
    beyond_cpus: Errors,
    median_regret: f64,
    worst_regret: f64,
    seconds: f64,
    profile_file: String,
    choices_file: String,
    moved: &'a [String],
    remarks: &'a [String],
}

/// A model's errors over some candidates; nothing without any.
#[derive(Serialize)]
struct Errors {
    candidates: usize,
    mean_proportional: Option<f64>,
    median_proportional: Option<f64>,
    mean_relative: Option<f64>,
}

impl Errors {
    fn of(pairs: &[(f64, f64)]) -> Errors {
        let proportional = |&(m, p): &(f64, f64)| m.max(p) / m.min(p);
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| {
            (!pairs.is_empty()).then(|| pairs.iter().map(of).sum::<f64>() / pairs.len() as f64)
        };
        let mut sorted: Vec<f64> = pairs.iter().map(proportional).collect();
        sorted.sort_by(f64::total_cmp);
        Errors {
            candidates: pairs.len(),
            mean_proportional: mean(&proportional),
            median_proportional: sorted.get(sorted.len() / 2).copied(),
            mean_relative: mean(&|&(m, p)| (m - p).abs() / m),
        }
    }

    fn text(&self, on: &str) -> Option<String> {
        Some(format!(
            "measured / predicted is off by a factor of {:.2} ({:.2} on average; mean relative error {}) {on}",
            self.median_proportional?,
            self.mean_proportional?,
            percent(self.mean_relative?)
        ))
    }
}

impl Figures {
    /// Counts a race; `beyond`: of more ranks than CPUs.
    pub fn take(&mut self, race: &Race, beyond: bool) {
        let pair = |r: &Runner| (r.stats.median, r.candidate.predicted.0);
        // Where costing was given up the prediction is a bound, not a prediction.
        self.pairs[usize::from(beyond)]
            .extend(race.runners.iter().filter(|r| !r.candidate.given_up).map(pair));
        self.regrets.push(race.regret());
        self.proved += race.proved;
        self.remarks.extend(race.refused.iter().map(|why| format!("not run: {why}")));
    }

    /// A race at a time when a barrier took so many times what the profile says.
    pub fn moved(&mut self, collective: Collective, ranks: usize, bytes: usize, team: Team, reading: f64) {
        self.moved.push(format!("{collective} of {} among {ranks} {team}", Bytes(bytes as u64)));
        self.readings.push(reading);
    }

    /// Why a case has no choice.
    pub fn remark(
        &mut self,
        collective: Collective,
        ranks: usize,
        bytes: usize,
        team: Team,
        why: &dyn std::fmt::Display,
    ) {
        self.remarks.push(format!("{collective} of {} among {ranks} {team}: {why}", Bytes(bytes as u64)));
    }
}

/// The machine, in two lines.
pub fn head(node: &NodeInfo, out: &mut Output) -> Result<(), CliError> {
    if out.is_json() {
        return Ok(());
    }
    let machine = &node.fingerprint;
    out.line(&format!(
        "{}: {} usable CPUs, {} B lines, {}",
        machine.cpu, node.usable.effective, machine.line_bytes, machine.topology
    ))?;
    if let Some(load) = load().filter(|load| *load > 0.5) {
        out.line(&format!("  note: {load:.1} other programs are running on average; expect wide intervals"))?;
    }
    for warning in &node.warnings {
        out.line(&format!("  note: {warning}"))?;
    }
    out.flush()
}

/// Programs that ran at a time over the last minute.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split_whitespace().next()?.parse().ok()
}

/// What was measured, in the few numbers that decide most, and what could not be.
pub fn measured(profile: &Profile, model: &Model, took: Duration, out: &mut Output) -> Result<(), CliError> {
    if out.is_json() {
        #[derive(Serialize)]
        struct Measured<'a> {
            measured_at: &'a str,
            cells: usize,
            flagged: usize,
            seconds: f64,
        }
        let flagged = profile.cells.iter().filter(|c| !c.flagged.is_empty()).count();
        let seconds = took.as_secs_f64();
        let cells = profile.cells.len();
        out.object("measured", &Measured { measured_at: &profile.measured_at, cells, flagged, seconds })?;
        for unidentified in &profile.unidentified {
            out.object("unidentified", unidentified)?;
        }
        return Ok(());
    }
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
    for cell in profile.cells.iter().filter(|c| c.probe == "drift" && !c.flagged.is_empty()) {
        out.line(&format!("  note: {}", cell.flagged.join("; ")))?;
    }
    if !profile.unidentified.is_empty() {
        out.line("NOT IDENTIFIABLE on this machine (assumed values stand in; `lineweave fit` shows them):")?;
        for u in &profile.unidentified {
            out.line(&format!("  {}: {}", u.what, u.because))?;
        }
    }
    out.flush()
}

/// The choices of one team.
pub fn choices(
    ranks: usize,
    team: Team,
    cpus: usize,
    rows: &[ChoiceObject],
    out: &mut Output,
) -> Result<(), CliError> {
    let beyond = if ranks > cpus { format!(", beyond the {cpus} CPUs") } else { String::new() };
    out.line(&format!("\n{ranks} {}{beyond}", team.name().to_uppercase()))?;
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
            Nanos(row.measured_ns).to_string(),
            row.spread(),
            format!("{:.2}", row.measured_to_predicted),
            percent(row.regret),
            match row.is_best() {
                true => "the choice".to_owned(),
                false => described(row.best_algorithm, &row.best_params, row.best_window_bytes, row.bytes),
            },
        ]);
    }
    out.table(&shown)?;
    let near = rows.iter().filter(|r| r.regret < 0.05).count();
    out.line(&format!("{near} of {} choices within 5 % of the fastest measured", rows.len()))?;
    out.flush()
}

/// An algorithm with its parameters, and its window where the message takes several.
fn described(algorithm: &str, params: &Params, window: usize, bytes: usize) -> String {
    let mut text = algorithm.to_owned();
    if !params.0.is_empty() {
        text += &format!(" {params}");
    }
    if window < bytes {
        text += &format!(" by {}", Bytes(window as u64));
    }
    text
}

fn percent(share: f64) -> String {
    match share {
        s if s < 0.005 => "0 %".to_owned(),
        s => format!("{:.0} %", s * 100.0),
    }
}

/// What it all came to.
pub fn summary(
    figures: &Figures,
    took: Duration,
    profile: &Path,
    choices: &Path,
    out: &mut Output,
) -> Result<(), CliError> {
    let mut regrets = figures.regrets.clone();
    regrets.sort_by(f64::total_cmp);
    let all = Errors::of(&figures.pairs.concat());
    let [within_cpus, beyond_cpus] = [0, 1].map(|i| Errors::of(&figures.pairs[i]));
    let summary = Summary {
        cases: regrets.len(),
        plans: figures.proved,
        candidates: all.candidates,
        mean_proportional_error: all.mean_proportional,
        mean_relative_error: all.mean_relative,
        within_cpus,
        beyond_cpus,
        median_regret: regrets.get(regrets.len() / 2).copied().unwrap_or(0.0),
        worst_regret: regrets.last().copied().unwrap_or(0.0),
        seconds: took.as_secs_f64(),
        profile_file: profile.display().to_string(),
        choices_file: choices.display().to_string(),
        moved: &figures.moved,
        remarks: &figures.remarks,
    };
    if out.is_json() {
        return out.object("tune", &summary);
    }
    let none = regrets.iter().filter(|r| **r < 0.05).count();
    out.line("\nSUMMARY")?;
    for (what, found) in [
        ("plans", format!("{} proved before they ran", summary.plans)),
        (
            "choices",
            format!(
                "median regret {}, worst {}; {none} of {} within 5 % of the fastest measured",
                percent(summary.median_regret),
                percent(summary.worst_regret),
                summary.cases
            ),
        ),
        (
            "kept",
            format!(
                "{} and {} beside it: programs use them from now on",
                summary.profile_file,
                file_name(choices)
            ),
        ),
        ("took", format!("{:.0} s", summary.seconds)),
    ] {
        out.line(&format!("  {what:<8} {found}"))?;
    }
    for (errors, on) in [(&summary.within_cpus, "within the CPUs"), (&summary.beyond_cpus, "beyond them")] {
        if let Some(text) = errors.text(on) {
            out.line(&format!("  model    {text}"))?;
        }
    }
    if !figures.moved.is_empty() {
        let of = |pick: fn(f64, f64) -> f64| figures.readings.iter().copied().reduce(pick).unwrap_or(1.0);
        out.line(&format!(
            "  note     not kept: {}; beside them a barrier took {:.2} to {:.2} times what the profile says: tune again at another time",
            figures.moved.join(", "),
            of(f64::min),
            of(f64::max),
        ))?;
    }
    for remark in &figures.remarks {
        out.line(&format!("  note     {remark}"))?;
    }
    Ok(())
}

fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

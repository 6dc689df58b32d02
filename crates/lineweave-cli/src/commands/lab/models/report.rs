//! Tables, JSON objects and the drawing of `lineweave lab models`.

use super::{because, Case};
use crate::curve::curve;
use crate::error::CliError;
use crate::output::table;
use crate::session::Session;
use lineweave_core::collective::Collective;
use lineweave_core::plan::Params;
use lineweave_core::units::{Bytes, Nanos};
use lineweave_lab::closed_form::PLAYED;
use lineweave_lab::draw::{compared, Axis, Chart, Scale};
use lineweave_lab::models::cache_line::{BEST, WORST};
use lineweave_lab::models::error::{mean_proportional, mean_relative, regret};
use lineweave_lab::models::Estimates;
use serde::Serialize;

/// Mean errors that a paper printed for such a comparison.
const PRINTED: [(&str, f64); 2] =
    [("tau-Lop, in segments (Eq. 10)", 0.138), ("tau-Lop, whole (Eq. 11)", 0.302)];
const PRINTED_OF: &str =
    "Rico-Gallego & Diaz-Martin 2015, Fig. 7: messages of 64 KiB to 2 MiB, MPICH on Metropolis";

/// The time of an algorithm by a model. Printed as `prediction` by `lineweave lab models`, one object an algorithm, with default parameters, message
/// and model.
#[derive(Serialize)]
struct PredictionObject<'a> {
    collective: Collective,
    algorithm: &'a str,
    params: &'a Params,
    /// The closed form in words: the printed one, else the messages of its plan.
    form: String,
    ranks: usize,
    bytes: usize,
    /// `Hockney`, `LogP`, `LogGP`, `PLogP`, `log_nP`, `mlog_nP`, `tau-Lop`, `put/get`, `min-max, best`, `min-max, worst`, `tau-Lop, whole messages`
    /// (Eq. 11), `played, alone` or `played`: the plan itself, op by op. `played` is of calls back to back, all others of one call alone.
    model: &'a str,
    predicted_ns: Option<f64>,
    /// True beyond the measured sizes or concurrency, which only `--extrapolate` permits.
    extrapolated: bool,
    /// Reason why the model has no number.
    because: Option<String>,
    /// Time from call to call: with `--measure`, or where `tune` kept this very case.
    measured_ns: Option<f64>,
    /// Time of one call alone, with `--measure`: followed by a barrier, whose time is taken off.
    measured_alone_ns: Option<f64>,
}

/// The errors of a model over everything that was measured: of `played` beside calls back to back, of others beside calls alone. Printed as `error`
/// by `lineweave lab models`.
#[derive(Serialize)]
struct ErrorObject {
    model: &'static str,
    /// Number of pairs of a measured and a predicted time.
    pairs: usize,
    /// Mean of max(R/E, E/R), R measured and E predicted; 1 is perfect.
    mean_proportional: f64,
    /// Mean of abs(R - E) / R.
    mean_relative: f64,
    /// Number of sizes at which the model could choose among measured algorithms.
    choices: usize,
    /// Share by which its choices were slower than the fastest.
    mean_regret: Option<f64>,
    worst_regret: Option<f64>,
}

/// The error of a model that a paper prints. Printed as `printed` by `lineweave lab models`.
#[derive(Serialize)]
struct PrintedObject {
    model: &'static str,
    mean_relative: f64,
    source: &'static str,
}

/// The facts that all rows have in common. Printed as `models` by `lineweave lab models`, first.
#[derive(Serialize)]
pub struct Head<'a> {
    pub costs: &'a str,
    /// Placement of ranks, where cores have several hardware threads.
    pub placed: Option<&'a str>,
    /// Distance between the ranks.
    pub level: &'a str,
    pub file: Option<&'a str>,
}

/// Shows everything.
pub fn report(
    head: &Head,
    estimates: &Estimates,
    cases: &[Case],
    session: &mut Session,
) -> Result<(), CliError> {
    let errors = errors(cases);
    objects(head, estimates, cases, &errors, session)?;
    text(head, estimates, cases, &errors, session)
}

fn objects(
    head: &Head,
    estimates: &Estimates,
    cases: &[Case],
    errors: &[ErrorObject],
    session: &mut Session,
) -> Result<(), CliError> {
    let out = &mut session.out;
    out.object("models", head)?;
    for case in cases {
        for row in &case.rows {
            for p in &row.predictions {
                let object = PredictionObject {
                    collective: case.question.collective,
                    algorithm: row.algorithm.name,
                    params: &row.params,
                    form: row.form.to_string(),
                    ranks: case.question.shape.ranks(),
                    bytes: case.question.bytes,
                    model: p.model,
                    predicted_ns: p.time.as_ref().ok().map(|t| t.nanos),
                    extrapolated: p.time.as_ref().is_ok_and(|t| t.extrapolated),
                    because: p.time.as_ref().err().map(because),
                    measured_ns: case.times.get(row.algorithm.name),
                    measured_alone_ns: case.times.alone(row.algorithm.name),
                };
                out.object("prediction", &object)?;
            }
        }
    }
    cases.iter().flat_map(|case| &case.bounds).try_for_each(|row| out.object("bounds", row))?;
    for error in errors {
        out.object("error", error)?;
    }
    if !errors.is_empty() {
        for (model, mean_relative) in PRINTED {
            out.object("printed", &PrintedObject { model, mean_relative, source: PRINTED_OF })?;
        }
    }
    for unidentified in &estimates.unidentified {
        out.object("unidentified", unidentified)?;
    }
    Ok(())
}

fn text(
    head: &Head,
    estimates: &Estimates,
    cases: &[Case],
    errors: &[ErrorObject],
    session: &mut Session,
) -> Result<(), CliError> {
    let out = &mut session.out;
    out.line(&format!("costs: {}, between ranks at distance {}", head.costs, head.level))?;
    head.placed.iter().try_for_each(|placed| out.line(&format!("  {placed}")))?;
    out.line("  one call alone by every model; calls back to back in the last two columns")?;
    let models: Vec<&str> =
        cases.iter().flat_map(|c| &c.rows).take(1).flat_map(|r| &r.predictions).map(|p| p.model).collect();
    let mut why: Vec<String> = Vec::new();
    let mut marked = false;
    for case in cases {
        let q = &case.question;
        out.line(&format!(
            "\n{} of {} among {} ranks",
            q.collective,
            Bytes(q.bytes as u64),
            q.shape.ranks()
        ))?;
        let alone = case.rows.iter().any(|r| case.times.alone(r.algorithm.name).is_some());
        let (last, latencies) =
            models.split_last().map_or((None, &[][..]), |(last, rest)| (Some(*last), rest));
        let heading: Vec<&str> = ["algorithm"]
            .into_iter()
            .chain(latencies.iter().copied())
            .chain(alone.then_some("measured, alone"))
            .chain(last)
            .chain(["measured"])
            .collect();
        let numbers: Vec<usize> = (1..heading.len()).collect();
        let mut rows = table(&heading, &numbers);
        for row in &case.rows {
            let mut cells = vec![row.algorithm.name.to_owned()];
            let measured = |ns: Option<f64>| ns.map_or("-".to_owned(), |ns| Nanos(ns).to_string());
            for p in &row.predictions {
                if alone && p.model == last.unwrap_or_default() {
                    cells.push(measured(case.times.alone(row.algorithm.name)));
                }
                cells.push(match &p.time {
                    Ok(t) => {
                        marked |= t.extrapolated;
                        format!("{}{}", Nanos(t.nanos), if t.extrapolated { "*" } else { "" })
                    }
                    Err(e) => {
                        let reason = because(e);
                        if !why.contains(&reason) {
                            why.push(reason);
                        }
                        "-".to_owned()
                    }
                });
            }
            cells.push(measured(case.times.get(row.algorithm.name)));
            rows.add_row(cells);
        }
        out.table(&rows)?;
    }
    cases.iter().try_for_each(|case| super::bounds::text(&case.question, &case.bounds, out))?;
    if let Some(line) = worst_below_best(cases) {
        out.line(&format!("\n{line}"))?;
    }
    if marked {
        out.line("\n* extrapolated beyond what was measured")?;
    }
    if !why.is_empty() {
        out.line("\nnot there (-):")?;
        why.iter().try_for_each(|reason| out.line(&format!("  {reason}")))?;
    }
    if !errors.is_empty() {
        out.line("\nhow wrong: mean of max(R/E, E/R), mean of |R - E| / R, and how much slower its choice is than the best measured")?;
        let mut rows = table(
            &["model", "pairs", "proportional", "relative", "regret", "worst regret"],
            &[1, 2, 3, 4, 5],
        );
        let percent = |x: f64| format!("{:.1} %", 100.0 * x);
        for e in errors {
            rows.add_row([
                e.model.to_owned(),
                e.pairs.to_string(),
                format!("{:.3}", e.mean_proportional),
                percent(e.mean_relative),
                e.mean_regret.map_or("-".to_owned(), percent),
                e.worst_regret.map_or("-".to_owned(), percent),
            ]);
        }
        for (model, relative) in PRINTED {
            rows.add_row([format!("printed: {model}"), String::new(), String::new(), percent(relative)]);
        }
        out.table(&rows)?;
        out.line(&format!("printed in {PRINTED_OF}"))?;
    }
    if !estimates.unidentified.is_empty() {
        out.line("\nnot identifiable from this:")?;
        for u in &estimates.unidentified {
            out.line(&format!("  {}: {}", u.what, u.because))?;
        }
    }
    match head.file {
        Some(file) => out.line(&format!("\n{file}")),
        None => Ok(()),
    }
}

/// Returns a remark where the worst case is below the best one.
fn worst_below_best(cases: &[Case]) -> Option<String> {
    let below = cases.iter().flat_map(|case| &case.rows).filter_map(|row| {
        let of = |model| row.predictions.iter().find(|p| p.model == model)?.time.as_ref().ok();
        let (best, worst) = (of(BEST)?.nanos, of(WORST)?.nanos);
        (worst < best).then(|| format!("{} ({} below {})", row.algorithm.name, Nanos(worst), Nanos(best)))
    });
    let found: Vec<String> = below.collect();
    let more = match found.len() {
        0 => return None,
        1 => String::new(),
        n => format!(" and {} more", n - 1),
    };
    Some(format!(
        "{WORST} below {BEST}: {}{more}. As printed: the best case of a notification reads its line from\nmemory (R_I, Eq. 4.6), the \
         worst case from another cache (R_R) and once more; among few ranks R_I is dearer. Neither bounds the other.",
        found[0]
    ))
}

/// Returns the errors of every model over all measured cases: latencies beside single calls, times from call to call
/// beside calls back to back.
fn errors(cases: &[Case]) -> Vec<ErrorObject> {
    let models: Vec<&'static str> =
        cases.iter().flat_map(|c| &c.rows).take(1).flat_map(|r| &r.predictions).map(|p| p.model).collect();
    let mut list = Vec::new();
    for model in models {
        let mut pairs = Vec::new();
        let mut regrets = Vec::new();
        for case in cases {
            // The (measured, predicted) times of each row that has both.
            let both: Vec<(f64, f64)> = case
                .rows
                .iter()
                .filter_map(|row| {
                    let p = row.predictions.iter().find(|p| p.model == model)?;
                    let measured = match model {
                        PLAYED => case.times.get(row.algorithm.name),
                        _ => case.times.alone(row.algorithm.name),
                    };
                    Some((measured?, p.time.as_ref().ok()?.nanos))
                })
                .collect();
            let chosen = both.iter().min_by(|a, b| a.1.total_cmp(&b.1));
            if let Some(&(measured, _)) = chosen.filter(|_| both.len() > 1) {
                regrets.extend(regret(measured, &case.times.all(model == PLAYED)));
            }
            pairs.extend(both);
        }
        if let (Some(proportional), Some(relative)) = (mean_proportional(&pairs), mean_relative(&pairs)) {
            list.push(ErrorObject {
                model,
                pairs: pairs.len(),
                mean_proportional: proportional,
                mean_relative: relative,
                choices: regrets.len(),
                mean_regret: (!regrets.is_empty())
                    .then(|| regrets.iter().sum::<f64>() / regrets.len() as f64),
                worst_regret: regrets.iter().copied().reduce(f64::max),
            });
        }
    }
    list
}

/// Draws one panel for each algorithm.
pub fn drawing(origin: &str, cases: &[Case]) -> String {
    let Some(first) = cases.first() else { return compared("no case", origin, &[]) };
    let panels: Vec<Chart> = first
        .rows
        .iter()
        .map(|row| {
            let name = row.algorithm.name;
            let mut list = Vec::new();
            let of = |case: &Case, model: &str| {
                let row = case.rows.iter().find(|r| r.algorithm.name == name)?;
                let p = row.predictions.iter().find(|p| p.model == model)?;
                Some((case.question.bytes.max(1) as f64, p.time.as_ref().ok()?.nanos))
            };
            for p in &row.predictions {
                let points: Vec<(f64, f64)> = cases.iter().filter_map(|c| of(c, p.model)).collect();
                if !points.is_empty() {
                    list.push(curve(p.model, points, false));
                }
            }
            let measured = |c: &Case| Some((c.question.bytes.max(1) as f64, c.times.get(name)?));
            let points: Vec<(f64, f64)> = cases.iter().filter_map(measured).collect();
            if !points.is_empty() {
                list.push(curve("measured", points, true));
            }
            Chart {
                title: name.to_owned(),
                x: Axis::new("bytes", Scale::Bytes),
                y: Axis::new("time", Scale::Times),
                series: list,
            }
        })
        .collect();
    let q = &first.question;
    compared(&format!("{} among {} ranks, by model", q.collective, q.shape.ranks()), origin, &panels)
}

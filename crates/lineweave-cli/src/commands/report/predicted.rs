//! Comparison of predicted with measured times.

use super::subject::{question, Subject, Timed};
use super::{Figure, Section};
use crate::curve::{curve, extend, spot};
use crate::error::CliError;
use crate::session::Session;
use lineweave_core::algorithm::spec::Named;
use lineweave_core::plan::Params;
use lineweave_core::select::predict;
use lineweave_core::topology::Shape;
use lineweave_core::units::{Bytes, Nanos};
use lineweave_lab::draw::{charts, Axis, Chart, Scale};
use lineweave_lab::models::error::{mean_proportional, mean_relative};

/// Returns the section: a scatter plot with its diagonal, and a table of the calls.
pub fn section(subject: &Subject, session: &mut Session) -> Result<Section, CliError> {
    let mut section = Section::new("predicted", "Predicted against measured");
    let mut pairs: Vec<Timed> = Vec::new();
    for t in subject.tuning.choices.iter().flat_map(|c| &c.choices).filter(|t| !t.simulated) {
        pairs.push(Timed {
            collective: t.collective.to_string(),
            ranks: t.ranks,
            bytes: t.bytes,
            team: t.team.clone(),
            algorithm: Named::new(&t.algorithm, &t.params).to_string(),
            predicted_ns: t.predicted_ns,
            measured_ns: t.measured_ns,
        });
    }
    pairs.extend(subject.timed.iter().cloned());
    section.text.extend(subject.timed_by.clone());
    if let Some(record) = &subject.record {
        let mut refused = 0;
        for row in &record.rows {
            let (name, params) = split(&row.algorithm);
            let shape = Shape::place(row.ranks, &subject.topology);
            let question = question(row.collective, shape, row.bytes, row.team == "threads");
            let window = if row.window_bytes == 0 { row.bytes } else { row.window_bytes };
            match predict(subject.model(), &question, name, &params, window) {
                Ok(found) => pairs.push(Timed {
                    collective: row.collective.to_string(),
                    ranks: row.ranks,
                    bytes: row.bytes,
                    team: row.team.clone(),
                    algorithm: Named::new(name, &params).to_string(),
                    predicted_ns: found.predicted.0,
                    measured_ns: row.median_ns,
                }),
                Err(_) => refused += 1,
            }
        }
        section
            .text
            .push(format!("Measured: {}, {} at {}.", record.name, record.head.cpu, record.head.measured_at));
        if refused > 0 {
            session
                .out
                .warn(&format!("{refused} rows of the record have algorithms that cannot be planned here"));
            section.text.push(format!(
                "{refused} rows have algorithms that cannot be planned here, and are left out."
            ));
        }
    }
    pairs.retain(|p| p.predicted_ns > 0.0 && p.measured_ns > 0.0);
    if pairs.is_empty() {
        return Ok(section.missing(
            "No measured times: `lineweave tune` keeps some beside the profile of this machine, and --record names a bench \
             record (`lineweave bench --record`).",
        ));
    }
    let both: Vec<(f64, f64)> = pairs.iter().map(|p| (p.predicted_ns, p.measured_ns)).collect();
    if let (Some(mp), Some(mr)) = (mean_proportional(&both), mean_relative(&both)) {
        section.text.push(format!(
            "{} times: predicted and measured differ by a factor of {mp:.2} on average (mean relative error {:.0} %).",
            both.len(),
            mr * 100.0
        ));
    }
    let least = both.iter().flat_map(|p| [p.0, p.1]).fold(f64::INFINITY, f64::min);
    let most = both.iter().flat_map(|p| [p.0, p.1]).fold(0.0, f64::max);
    let line = vec![(least, least), (most, most)];
    let mut series = vec![curve("as measured", line, false)];
    for p in &pairs {
        extend(&mut series, p.collective.clone(), spot((p.measured_ns, p.predicted_ns)), true);
    }
    let time = |n: f64| Nanos(n).to_string();
    let [x, y] = ["measured", "predicted"].map(|title| Axis::new(title, Scale::Times));
    let chart = Chart { title: String::new(), x, y, series };
    let detail = "points on the line are predicted as measured; below it the prediction is too low";
    let title = "Predicted against measured";
    let svg = charts(title, detail, &[chart]);
    section.figures.push(Figure::new(
        svg,
        "Predicted time by measured time of each call; the table below has the numbers.",
    ));
    let rows = pairs.iter().map(|p| {
        let ratio = format!("{:.2}", p.predicted_ns / p.measured_ns);
        let message = Bytes(p.bytes as u64).to_string();
        let [predicted, measured] = [p.predicted_ns, p.measured_ns].map(time);
        let (collective, team, algorithm) = (p.collective.clone(), p.team.clone(), p.algorithm.clone());
        vec![collective, p.ranks.to_string(), message, team, algorithm, predicted, measured, ratio]
    });
    let head = vec!["collective", "ranks", "message", "team", "algorithm", "predicted", "measured", "ratio"];
    section.tables.push((head, rows.collect()));
    Ok(section)
}

/// Splits a text such as `exchange layout=paired` into a name and its parameters.
fn split(algorithm: &str) -> (&str, Params) {
    let mut words = algorithm.split_whitespace();
    let name = words.next().unwrap_or_default();
    let params = words.filter_map(|w| w.split_once('=')).fold(Params::new(), |p, (k, v)| p.with(k, v));
    (name, params)
}

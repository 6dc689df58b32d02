//! One renderer for all studies: figures, a table of points, and the page.

use super::points::pairs;
use super::{Here, Judgement, Picture, Point, Study, MEASURED};
use crate::draw::{charts, dark_style, escape, Axis, Chart, Mark, Scale, Series, Spot};
use crate::models::cache_line::{BEST, WORST};
use crate::paper::{Paper, Verdict};
use std::fmt::Write as _;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1f2937;--soft:#5b6472;--paper:#f6f7f9;--rule:#e2e5ea}\
body{margin:0 auto;max-width:70rem;padding:1.5rem;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,sans-serif}\
p,figcaption{color:var(--soft)}figure{margin:1rem 0;overflow-x:auto}svg{max-width:100%;height:auto}\
table{border-collapse:collapse;font-size:.9rem}th,td{text-align:left;vertical-align:top;padding:.3rem .8rem .3rem 0;\
border-bottom:1px solid var(--rule)}th{color:var(--soft)}";
const DARK: &str = ":root{--ink:#e5e7eb;--soft:#a3acb9;--paper:#14171c;--rule:#333a45}";

/// Returns the name and the drawing of each picture that has points.
pub fn figures(study: &Study, here: &Here, points: &[Point]) -> Vec<(String, String)> {
    let with_points = study.pictures.iter().filter(|p| points.iter().any(|q| q.picture == p.name));
    with_points
        .map(|picture| {
            let own: Vec<Point> = points.iter().filter(|p| p.picture == picture.name).cloned().collect();
            let scale = (picture.scale)(&own);
            let chart = |title: &str, series: Vec<Series>| Chart {
                title: title.to_owned(),
                x: Axis::new(picture.x, scale.clone()),
                y: Axis::new("ns", Scale::Log),
                series,
            };
            // Bands of several series would hide each other: each has a chart of its own, beside all without bands.
            let (bands, others): (Vec<Series>, Vec<Series>) =
                series(&own).into_iter().partition(|s| s.mark == Mark::Band);
            let mut list = vec![chart(picture.title, others.clone())];
            for band in bands {
                let own = others.iter().filter(|s| s.colour_of == band.colour_of).cloned();
                list.push(chart(&band.colour_of.clone(), own.chain([band.clone()]).collect()));
            }
            let detail = format!(
                "medians with their 95 % intervals, boxes of quartiles, whiskers from 5 to 95 %; {}",
                here.machine
            );
            (format!("{}.svg", picture.name), charts(&heading(picture), &detail, &list))
        })
        .collect()
}

fn heading(picture: &Picture) -> String {
    format!("{}: {}", picture.name.replace('-', " "), picture.title)
}

/// Returns the measured series, each behind its boxes, then the predictions of models for each; best and worst case are one band.
fn series(points: &[Point]) -> Vec<Series> {
    let mut list: Vec<Series> = Vec::new();
    let mut add = |name: String, mark: Mark, point: &Point, low: f64, high: f64| {
        let spot = Spot { x: point.x, low, high };
        match list.iter_mut().find(|s| s.name == name && s.mark == mark) {
            Some(series) => series.spots.push(spot),
            None => list.push(Series { name, mark, colour_of: point.series.clone(), spots: vec![spot] }),
        }
    };
    let (measured, models): (Vec<&Point>, Vec<&Point>) = points.iter().partition(|p| p.source == MEASURED);
    for p in measured {
        for (ends, mark) in [(p.whiskers_ns, Mark::Whiskers), (p.quartiles_ns, Mark::Quartiles)] {
            ends.iter().for_each(|ends| add(p.series.clone(), mark, p, ends[0], ends[1]));
        }
        add(p.series.clone(), Mark::Measured, p, p.low_ns, p.high_ns);
    }
    for p in &models {
        let other = |q: &&&Point| q.source == WORST && q.series == p.series && q.x == p.x;
        match p.source.as_str() {
            BEST => {
                let worst = models.iter().find(other).map_or(p.median_ns, |q| q.median_ns);
                let (low, high) = (p.median_ns.min(worst), p.median_ns.max(worst));
                add(format!("{}: {BEST} to {WORST}", p.series), Mark::Band, p, low, high);
            }
            WORST => {}
            model => add(format!("{}: {model}", p.series), Mark::Model, p, p.low_ns, p.high_ns),
        }
    }
    list.iter_mut().for_each(|s| s.spots.sort_by(|a, b| a.x.total_cmp(&b.x)));
    list
}

/// Returns the points as CSV.
pub fn csv(points: &[Point]) -> String {
    let mut out = "picture,series,x,label,source,median_ns,low_ns,high_ns,samples,disturbed,p5_ns,p25_ns,p75_ns,p95_ns\n".to_owned();
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    for p in points {
        let number =
            |ends: Option<[f64; 2]>, i: usize| ends.map_or_else(String::new, |e| format!("{:.3}", e[i]));
        let _ = writeln!(
            out,
            "{},{},{},{},{},{:.3},{:.3},{:.3},{},{},{},{},{},{}",
            quoted(&p.picture),
            quoted(&p.series),
            p.x,
            quoted(p.label.as_deref().unwrap_or("")),
            quoted(&p.source),
            p.median_ns,
            p.low_ns,
            p.high_ns,
            p.samples,
            p.disturbed,
            number(p.whiskers_ns, 0),
            number(p.quartiles_ns, 0),
            number(p.quartiles_ns, 1),
            number(p.whiskers_ns, 1)
        );
    }
    out
}

/// The verdict as the page says it.
fn verdict(judgement: &Judgement) -> String {
    match (judgement.verdict, judgement.judged) {
        (Verdict::Holds, _) => "holds".to_owned(),
        (Verdict::Differs, Some(judged)) => format!("differs by {:.0} %", 100.0 * judged.off),
        (Verdict::Differs, None) => "differs".to_owned(),
        (Verdict::NotReproduced, _) => "cannot be asked here".to_owned(),
    }
}

/// Returns a table of the models' relative errors by picture, series and value on the axis to the right; nothing without predictions.
/// Best and worst case are no predictions of one time.
fn errors(points: &[Point]) -> String {
    let mut rows: Vec<[&str; 3]> = Vec::new();
    let all: Vec<_> = pairs(points).filter(|(_, p)| p.source != BEST && p.source != WORST).collect();
    for (_, p) in &all {
        let key = [p.picture.as_str(), p.series.as_str(), p.source.as_str()];
        if !rows.contains(&key) {
            rows.push(key);
        }
    }
    let cells = |key: &[&str; 3]| -> String {
        let of = all.iter().filter(|(_, p)| [p.picture.as_str(), &p.series, &p.source] == *key);
        let each = of.map(|(m, p)| {
            let at = m.label.clone().unwrap_or_else(|| m.x.to_string());
            format!("{at}: {:+.0} %", 100.0 * (p.median_ns / m.median_ns - 1.0))
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let row = |key: &[&str; 3]| {
        let cells = key.iter().map(|cell| escape(cell)).chain([cells(key)]);
        format!("<tr>{}</tr>\n", cells.map(|cell| format!("<td>{cell}</td>")).collect::<String>())
    };
    match rows.is_empty() {
        true => String::new(),
        false => format!(
            "<h2>Models</h2>\n<p>Predicted less measured, as a share of what was measured.</p>\n<table>\n\
             <tr><th>Figure</th><th>Series</th><th>Model</th><th>Errors</th></tr>\n{}</table>\n",
            rows.iter().map(row).collect::<String>()
        ),
    }
}

/// Returns the page: figures, and every claim with its verdict. `notes` are sentences about how it was measured.
pub fn html(
    paper: &Paper,
    here: &Here,
    notes: &[String],
    figures: &[(String, String)],
    judgements: &[Judgement],
    points: &[Point],
) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}, here</title>\n\
         <style>{STYLE}@media screen and (prefers-color-scheme:dark){{{DARK}{1}}}</style>\n</head>\n<body>\n\
         <h1>{0}, on this machine</h1>\n<p>{2}.</p>\n<p>{3}: {4} CPUs, {5} cores, {6} NUMA nodes, {7} packages.</p>\n",
        escape(paper.cite),
        dark_style("figure"),
        escape(paper.about),
        escape(&here.machine),
        here.cpus,
        here.cores,
        here.numa,
        here.packages,
    );
    for note in notes {
        let _ = writeln!(out, "<p>{}</p>", escape(note));
    }
    out.push_str("<h2>Claims</h2>\n<table>\n<tr><th>Here</th><th>Where</th><th>Claimed</th><th>What came out</th></tr>\n");
    for judgement in judgements {
        let cells = [&verdict(judgement), &judgement.item, &judgement.claimed, &judgement.here];
        let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", escape(cell))).collect();
        let _ = writeln!(out, "<tr>{cells}</tr>");
    }
    out.push_str("</table>\n");
    out.push_str(&errors(points));
    out.push_str("<h2>Figures</h2>\n");
    for (name, svg) in figures {
        let _ = writeln!(out, "<figure>\n{svg}<figcaption>{}</figcaption>\n</figure>", escape(name));
    }
    out.push_str("<p>Points: data.jsonl, data.csv.</p>\n</body>\n</html>\n");
    out
}

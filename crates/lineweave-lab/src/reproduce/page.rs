//! One renderer for all studies: figures, a table of points, and the page.

use super::{Here, Judgement, Picture, Point, Study, MEASURED};
use crate::draw::{charts, dark_style, escape, Axis, Chart, Mark, Scale, Series, Spot};
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
            let chart = Chart {
                title: picture.title.to_owned(),
                x: Axis::new(picture.x, (picture.scale)(&own)),
                y: Axis::new("ns", Scale::Log),
                series: series(&own),
            };
            let detail = format!("medians with their 95 % intervals; {}", here.machine);
            (format!("{}.svg", picture.name), charts(&heading(picture), &detail, &[chart]))
        })
        .collect()
}

fn heading(picture: &Picture) -> String {
    format!("{}: {}", picture.name.replace('-', " "), picture.title)
}

/// Returns the measured series, then the predictions of models for each.
fn series(points: &[Point]) -> Vec<Series> {
    let mut list: Vec<Series> = Vec::new();
    let (measured, models): (Vec<&Point>, Vec<&Point>) = points.iter().partition(|p| p.source == MEASURED);
    for point in measured.into_iter().chain(models) {
        let (name, mark) = match point.source.as_str() {
            MEASURED => (point.series.clone(), Mark::Measured),
            model => (format!("{}: {model}", point.series), Mark::Model),
        };
        let spot = Spot { x: point.x, low: point.low_ns, high: point.high_ns };
        match list.iter_mut().find(|s| s.name == name) {
            Some(series) => series.spots.push(spot),
            None => list.push(Series { name, mark, colour_of: point.series.clone(), spots: vec![spot] }),
        }
    }
    list.iter_mut().for_each(|s| s.spots.sort_by(|a, b| a.x.total_cmp(&b.x)));
    list
}

/// Returns the points as CSV.
pub fn csv(points: &[Point]) -> String {
    let mut out = "picture,series,x,label,source,median_ns,low_ns,high_ns,samples,disturbed\n".to_owned();
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    for p in points {
        let _ = writeln!(
            out,
            "{},{},{},{},{},{:.3},{:.3},{:.3},{},{}",
            quoted(&p.picture),
            quoted(&p.series),
            p.x,
            quoted(p.label.as_deref().unwrap_or("")),
            quoted(&p.source),
            p.median_ns,
            p.low_ns,
            p.high_ns,
            p.samples,
            p.disturbed
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

/// Returns the page: figures, and every claim with its verdict. `notes` are sentences about how it was measured.
pub fn html(
    paper: &Paper,
    here: &Here,
    notes: &[String],
    figures: &[(String, String)],
    judgements: &[Judgement],
) -> String {
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{0}, here</title>\n\
         <style>{STYLE}@media screen and (prefers-color-scheme:dark){{{DARK}{1}}}</style>\n</head>\n<body>\n\
         <h1>{0}, on this machine</h1>\n<p>{2}.</p>\n<p>{3}: {4} CPUs, {5} cores, {6} packages.</p>\n",
        escape(paper.cite),
        dark_style("figure"),
        escape(paper.about),
        escape(&here.machine),
        here.cpus,
        here.cores,
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
    out.push_str("</table>\n<h2>Figures</h2>\n");
    for (name, svg) in figures {
        let _ = writeln!(out, "<figure>\n{svg}<figcaption>{}</figcaption>\n</figure>", escape(name));
    }
    out.push_str("<p>Points: data.jsonl, data.csv.</p>\n</body>\n</html>\n");
    out
}

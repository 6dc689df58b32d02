//! The fitted costs: curves with intervals, residuals, and L(m, tau).

use super::subject::Subject;
use super::{Figure, Section};
use crate::curve::{curve, extend};
use lineweave_core::model::{LevelCosts, Surface};
use lineweave_lab::draw::{self, Axis, Chart, Mark, Sampled, Scale, Series, Span, Spot};

/// Lengths at which surfaces are read: from a line to 4 MiB.
const SIZES: [usize; 9] = [64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Rows of residuals that are drawn; the table has all.
const RESIDUALS: usize = 40;

/// Returns the section: curves, residuals and surfaces.
pub fn section(subject: &Subject) -> Section {
    let mut section = Section::new("fitted", "Fitted costs");
    lines(subject, &mut section);
    transfers(subject, &mut section);
    residuals(subject, &mut section);
    surfaces(subject, &mut section);
    section
}

/// Returns a share with two significant digits.
fn percent(x: f64) -> String {
    let digits = match x.abs() {
        0.0 => 0,
        x => (-1.0 - x.log10().floor()).clamp(0.0, 4.0) as usize,
    };
    format!("{:.digits$} %", x * 100.0)
}

/// Adds T_N: the cost of several lines.
fn lines(subject: &Subject, section: &mut Section) {
    let mut curves = Vec::new();
    let mut left = Vec::new();
    for costs in subject.model().levels.iter().filter(|c| subject.levels().contains(&c.level)) {
        let Some(fit) = &costs.lines else { continue };
        let points = (0..=10).map(|i| f64::from(1 << i)).map(|n| (n, fit.at(n))).collect();
        let name = format!("T_N, {}", costs.level);
        curves.push(curve(name, points, false));
    }
    // The measured points are drawn under the fitted line. Cells are of half a round trip, as the fit takes them.
    for cell in subject.profile.iter().flat_map(|p| p.probe("pingpong")) {
        let n = cell.factors.get("lines").and_then(|n| n.parse::<f64>().ok());
        let (Some(n), Some(level)) = (n, cell.factors.get("level")) else { continue };
        let (name, s) = (format!("measured, {level}"), &cell.stats);
        extend(&mut curves, name, Spot { x: n, low: s.ci_low, high: s.ci_high }, true);
        let fit =
            subject.model().levels.iter().find(|c| c.level.name() == level).and_then(|c| c.lines.as_ref());
        if let Some(fitted) = fit.map(|f| f.at(n)).filter(|f| *f > 0.0) {
            let off = |ns: f64| ns / fitted - 1.0;
            let name = format!("{level}, {n:.0} lines");
            left.push(Span { name, low: off(s.ci_low), value: off(s.median), high: off(s.ci_high) });
        }
    }
    if curves.is_empty() {
        let how = "Transfers of several lines: not known; `lineweave measure` without --quick times them.";
        section.text.push(how.to_owned());
        return;
    }
    let (x, y) = (Axis::new("lines", Scale::Doubling), Axis::new("T_N(N)", Scale::Times));
    let chart = Chart { title: String::new(), x, y, series: curves };
    let detail = "half a round trip; bars are 95 % intervals of what was measured";
    let svg = draw::charts("Handing over N lines", detail, &[chart]);
    section.figures.push(Figure::new(
        svg,
        "Time to hand over N cache lines, by distance; the table of residuals has the numbers.",
    ));
    if !left.is_empty() {
        let detail = "measured over fitted, with its interval; 0 % is as fitted";
        left.truncate(RESIDUALS);
        let svg = draw::spans("Residuals of T_N", detail, &left, percent);
        let says =
            left.iter().map(|s| format!("{}: {}", s.name, percent(s.value))).collect::<Vec<_>>().join("; ");
        section.figures.push(Figure::new(svg, format!("Measured over fitted: {says}.")));
    }
}

/// Adds copies, gets and puts of one pair at a time, with a curve for each distance.
fn transfers(subject: &Subject, section: &mut Section) {
    let curves = |name: String, surface: &Surface| {
        let nodes = || surface.bytes.iter().zip(&surface.cost).map(|(b, row)| (*b as f64, row[0]));
        let apart = nodes().filter(|(b, c)| *b > 0.0 && c.ci_low < c.ci_high);
        // The curve ends with the measured lengths, so that no interval stands where there is no line.
        let beyond = surface.bytes.iter().map(|b| *b as usize).filter(|b| SIZES.iter().all(|m| m < b));
        let sizes = SIZES.iter().copied().chain(beyond);
        let line = curve(name, sizes.map(|m| (m as f64, surface.at(m, 1).nanos)).collect(), false);
        let spots = apart.map(|(x, c)| Spot { x, low: c.ci_low, high: c.ci_high }).collect();
        [Series { mark: Mark::Whiskers, spots, ..line.clone() }, line]
    };
    let model = subject.model();
    let levels = || model.levels.iter().filter(|c| subject.levels().contains(&c.level));
    let chart = |title: &str, of: fn(&LevelCosts) -> &Surface| {
        let all = levels().flat_map(|c| curves(c.level.to_string(), of(c)));
        Chart {
            title: title.to_owned(),
            x: Axis::new("bytes", Scale::Bytes),
            y: Axis::new("L(m, 1)", Scale::Times),
            series: curves("private memory".to_owned(), &model.copy).into_iter().chain(all).collect(),
        }
    };
    let panels = [
        chart("get: reading what a peer wrote", |c| &c.get),
        chart("put: writing where a peer read", |c| &c.put),
    ];
    let detail = "one transfer at a time, m bytes, by distance; bars are 95 % intervals";
    let svg = draw::compared("L(m, 1)", detail, &panels);
    section.figures.push(Figure::new(svg, "Time of one get and one put by length and distance; the tables of L(m, tau) have the numbers in their first rows."));
}

/// Adds the residuals of the fits, segment by segment.
fn residuals(subject: &Subject, section: &mut Section) {
    let residuals = &subject.model().residuals;
    if residuals.is_empty() {
        let why = "No residuals: these costs were described, and not fitted to measurements.";
        section.text.push(why.to_owned());
        return;
    }
    let spans = residuals.iter().take(RESIDUALS).map(|r| Span {
        name: format!("{}, {} to {}", r.of, r.from, r.to),
        low: -r.worst,
        value: r.bias,
        high: r.worst,
    });
    let detail = "mean of (measured - fitted) / measured in each segment; bars reach to the worst cell";
    let title = "What the fits leave unexplained";
    let svg = draw::spans(title, detail, &spans.collect::<Vec<_>>(), percent);
    section
        .figures
        .push(Figure::new(svg, "What each fit leaves unexplained; the table below has the numbers."));
    let rows = residuals
        .iter()
        .map(|r| vec![r.of.clone(), r.from.to_string(), r.to.to_string(), percent(r.bias), percent(r.worst)]);
    section.tables.push((vec!["fit", "from", "to", "bias", "worst"], rows.collect()));
}

/// Adds L(m, tau), with a table for each surface.
fn surfaces(subject: &Subject, section: &mut Section) {
    let model = subject.model();
    let sampled = |title: String, surface: &Surface| {
        let largest = surface.bytes.last().copied().unwrap_or(0);
        let smallest = surface.bytes.first().copied().unwrap_or(0);
        let row = |m: &usize| {
            let known = (smallest..=largest).contains(&(*m as u64)) && surface.bytes.len() > 1;
            surface.taus.iter().map(|tau| (surface.at(*m, *tau as usize).nanos, known)).collect()
        };
        Sampled { title, taus: surface.taus.clone(), cost: SIZES.iter().map(row).collect() }
    };
    let mut tables = vec![sampled("copy, private memory".to_owned(), &model.copy)];
    tables.extend(model.streamed.as_ref().map(|s| sampled("copy, past the caches".to_owned(), s)));
    for costs in model.levels.iter().filter(|c| subject.levels().contains(&c.level)) {
        tables.push(sampled(format!("get, {}", costs.level), &costs.get));
        tables.push(sampled(format!("put, {}", costs.level), &costs.put));
        tables.extend(costs.stream.as_ref().map(|s| sampled(format!("stream, {}", costs.level), s)));
    }
    if tables.iter().all(|t| t.taus == [1]) {
        section.text.push(
            "How transfers slow each other down (tau above 1) is not known of this machine: nobody published it, or it was \
             not measured. The tables have one row each."
                .to_owned(),
        );
    }
    let detail = "time of m bytes while tau such transfers run; darker is more ns a byte; in brackets: continued beyond what is known";
    let svg = draw::surfaces("L(m, tau)", detail, &SIZES, &tables);
    section.figures.push(Figure::new(
        svg,
        "Time of m bytes (columns) while tau such transfers run (rows); each cell has its number.",
    ));
}

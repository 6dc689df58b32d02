//! Charts with axes of their own: what was simulated as lines, what was published as diamonds, ranges as bands.

use super::axis::{number, Axis, Range, Scale};
use super::colours::SERIES;
use super::legend::in_order;
use super::series::{Mark, Series, Spot};
use super::svg::{width_of, Anchor, Point, Stroke, Svg};
use super::{INK, PAPER, RULE, SOFT};

const BAND: &str = "#dbe9f6";
const WIDTH: f64 = 430.0;
const HEIGHT: f64 = 270.0;
const LEFT: f64 = 78.0;
const TOP: f64 = 92.0;
/// Room between two charts of a row, and room for numbers and title of the axis below one.
const GAP: f64 = 96.0;
const BELOW: f64 = 48.0;
const LEGEND: f64 = 18.0;

/// One pair of axes, and what is drawn on it.
#[derive(Clone, PartialEq, Debug)]
pub struct Chart {
    /// Title: the subject of the chart.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Series, drawn in this order, bands first.
    pub series: Vec<Series>,
}

/// Draws charts side by side, two a row, each with a legend below it. What has no place on a scale (not finite, or not
/// positive by powers) is left out.
pub fn charts(title: &str, detail: &str, charts: &[Chart]) -> String {
    draw(title, detail, charts, false)
}

/// Draws charts that are compared as [`charts`] does, all of them on axes of one length, with one legend for all.
pub fn compared(title: &str, detail: &str, charts: &[Chart]) -> String {
    draw(title, detail, charts, true)
}

fn draw(title: &str, detail: &str, charts: &[Chart], compared: bool) -> String {
    let mut svg = Svg::default();
    svg.heading(title, detail);
    let coloured = charts.iter().flat_map(|c| &c.series).filter(|s| s.mark != Mark::Band);
    let keys = in_order(coloured.map(|s| s.colour_of.as_str()));
    let style = |series: &Series| {
        let nth = keys.iter().position(|k| *k == series.colour_of).unwrap_or(0);
        stroke(series.mark, SERIES[nth % SERIES.len()], nth / SERIES.len() % 2 == 1)
    };
    let columns = charts.len().clamp(1, 2);
    let mut top = TOP;
    for row in charts.chunks(2) {
        for (i, chart) in row.iter().enumerate() {
            let corner = (LEFT + i as f64 * (WIDTH + GAP), top);
            one(&mut svg, corner, chart, if compared { charts } else { std::slice::from_ref(chart) }, &style);
            if !compared {
                legend(&mut svg, (corner.0, corner.1 + HEIGHT + BELOW), &in_legend([chart]), &style);
            }
        }
        let rows = |chart| legend_rows(&in_legend([chart]));
        let below = if compared { 0 } else { row.iter().map(rows).max().unwrap_or(0) };
        top += HEIGHT + BELOW + below as f64 * LEGEND + 34.0;
    }
    if compared {
        let all = in_legend(charts);
        legend(&mut svg, (LEFT, top - 34.0), &all, &style);
        top += legend_rows(&all) as f64 * LEGEND;
    }
    let width = (LEFT + columns as f64 * (WIDTH + GAP) - GAP + 30.0)
        .max(width_of(detail, 12.0) + 40.0)
        .max(width_of(title, 17.0) + 40.0);
    svg.finish(width, top - 14.0, title)
}

/// Draws a chart, whose axes hold all points of the charts `beside` it.
fn one(svg: &mut Svg, corner: Point, chart: &Chart, beside: &[Chart], style: &dyn Fn(&Series) -> Stroke) {
    let spots = || beside.iter().flat_map(|c| &c.series).flat_map(|s| &s.spots);
    let x = Range::of(&chart.x, spots().map(|s| s.x));
    let y = Range::of(&chart.y, spots().flat_map(|s| [s.low, s.high]));
    let at = |across: f64, up: f64| {
        Some((corner.0 + x.place(across)? * WIDTH, corner.1 + (1.0 - y.place(up)?) * HEIGHT))
    };
    svg.text((corner.0, corner.1 - 10.0), 13.0, INK, Anchor::Start, true, &chart.title);
    let (bands, others): (Vec<&Series>, Vec<&Series>) =
        chart.series.iter().partition(|s| s.mark == Mark::Band);
    for series in &bands {
        let low = series.spots.iter().filter_map(|s| at(s.x, s.low));
        let high = series.spots.iter().rev().filter_map(|s| at(s.x, s.high));
        svg.open(&tip(series, None));
        svg.polygon(&low.chain(high).collect::<Vec<_>>(), BAND);
        svg.close();
    }
    rules(svg, corner, &x, &y);
    // Hollow, so that a dot at the same place is seen within.
    for series in others.iter().filter(|s| s.mark == Mark::Published) {
        for spot in &series.spots {
            if let (Some(low), Some(high)) = (at(spot.x, spot.low), at(spot.x, spot.high)) {
                svg.open(&tip(series, Some(spot)));
                published(svg, low, high, style(series).colour);
                svg.close();
            }
        }
    }
    for series in others.iter().filter(|s| s.mark.is_spread()) {
        for spot in &series.spots {
            if let (Some(low), Some(high)) = (at(spot.x, spot.low), at(spot.x, spot.high)) {
                svg.open(&tip(series, Some(spot)));
                spread(svg, series.mark, low, high, style(series));
                svg.close();
            }
        }
    }
    let named = matches!(chart.x.scale, Scale::Names(_));
    for series in others.iter().filter(|s| s.mark != Mark::Published && !s.mark.is_spread()) {
        let stroke = style(series);
        let points: Vec<(Point, &Spot)> =
            series.spots.iter().filter_map(|s| Some((at(s.x, dot(series.mark, s))?, s))).collect();
        for pair in points.windows(2).filter(|_| !named && series.mark != Mark::Dots) {
            svg.line(pair[0].0, pair[1].0, stroke);
        }
        for (point, spot) in points {
            svg.open(&tip(series, Some(spot)));
            if let (Mark::Measured | Mark::Dots, Some(low), Some(high)) =
                (series.mark, at(spot.x, spot.low), at(spot.x, spot.high))
            {
                svg.line(low, high, Stroke { dashed: false, ..stroke });
            }
            let radius = if series.mark.is_line() { 1.2 } else { 2.8 };
            svg.circle(point, radius, stroke.colour, Stroke { width: 0.0, ..stroke });
            svg.close();
        }
    }
}

/// Returns the value at which a dot is drawn: the middle of a measured interval, the upper end of any other spot.
fn dot(mark: Mark, spot: &Spot) -> f64 {
    match mark {
        Mark::Measured | Mark::Dots => (spot.low + spot.high) / 2.0,
        _ => spot.high,
    }
}

fn stroke(mark: Mark, colour: &'static str, again: bool) -> Stroke {
    match mark {
        Mark::Model => Stroke { colour, width: 1.4, dashed: true },
        Mark::Quartiles | Mark::Whiskers => Stroke { colour, width: 0.9, dashed: false },
        _ => Stroke { colour, width: 1.6, dashed: again && mark == Mark::Line },
    }
}

/// Returns the tooltip of a mark: name and kind of its series, and the values of its spot, if it has one.
fn tip(series: &Series, spot: Option<&Spot>) -> String {
    let kind = series.mark.name();
    match spot {
        None => format!("{} ({kind})", series.name),
        Some(s) if s.low < s.high => {
            format!("{} ({kind}): {}, {} to {}", series.name, number(s.x), number(s.low), number(s.high))
        }
        Some(s) => format!("{} ({kind}): {}, {}", series.name, number(s.x), number(s.high)),
    }
}

/// A box from quartile to quartile, or a line with ends.
fn spread(svg: &mut Svg, mark: Mark, low: Point, high: Point, stroke: Stroke) {
    let half = if mark == Mark::Quartiles { 4.5 } else { 2.5 };
    for end in [low, high] {
        svg.line((end.0 - half, end.1), (end.0 + half, end.1), stroke);
    }
    let sides = if mark == Mark::Quartiles { &[-half, half][..] } else { &[0.0] };
    for side in sides {
        svg.line((low.0 + side, low.1), (high.0 + side, high.1), stroke);
    }
}

/// A hollow diamond, or a bar with one at each end.
fn published(svg: &mut Svg, low: Point, high: Point, colour: &'static str) {
    let ends = if low == high { vec![high] } else { vec![low, high] };
    if let [low, high] = ends[..] {
        svg.line(low, high, Stroke { colour, width: 2.0, dashed: false });
    }
    for (x, y) in ends {
        let diamond = |r: f64| [(x, y - r), (x + r, y), (x, y + r), (x - r, y)];
        svg.polygon(&diamond(7.5), PAPER);
        svg.polygon(&diamond(6.5), colour);
        svg.polygon(&diamond(3.6), PAPER);
    }
}

/// Rules, numbers and titles of both axes.
fn rules(svg: &mut Svg, corner: Point, x: &Range, y: &Range) {
    let rule = Stroke { colour: RULE, width: 1.0, dashed: false };
    let inside = |place: &f64| (-1e-9..=1.0 + 1e-9).contains(place);
    let mut free = f64::NEG_INFINITY;
    for (value, label) in x.ticks() {
        let Some(place) = x.place(value).filter(inside) else { continue };
        let at = corner.0 + place * WIDTH;
        svg.line((at, corner.1), (at, corner.1 + HEIGHT), rule);
        // A name that would touch the one before is left out.
        let half = width_of(&label, 11.0) / 2.0;
        if at - half > free {
            svg.text((at, corner.1 + HEIGHT + 16.0), 11.0, SOFT, Anchor::Middle, false, &label);
            free = at + half + 4.0;
        }
    }
    let mut free = f64::INFINITY;
    for (value, label) in y.ticks() {
        let Some(place) = y.place(value).filter(inside) else { continue };
        let at = corner.1 + (1.0 - place) * HEIGHT;
        svg.line((corner.0, at), (corner.0 + WIDTH, at), rule);
        if at < free {
            svg.text((corner.0 - 6.0, at + 4.0), 11.0, SOFT, Anchor::End, false, &label);
            free = at - 12.0;
        }
    }
    let middle = (corner.0 + WIDTH / 2.0, corner.1 + HEIGHT + 32.0);
    svg.text(middle, 11.5, INK, Anchor::Middle, false, &x.axis.title);
    svg.text_up((corner.0 - 58.0, corner.1 + HEIGHT / 2.0), 11.5, INK, &y.axis.title);
}

/// Returns the series that a legend names, those of one name, mark and colour once.
fn in_legend<'a>(charts: impl IntoIterator<Item = &'a Chart>) -> Vec<&'a Series> {
    let mut list: Vec<&Series> = Vec::new();
    for series in charts.into_iter().flat_map(|c| &c.series).filter(|s| !s.mark.is_spread()) {
        let same =
            |s: &&Series| (&s.name, s.mark, &s.colour_of) == (&series.name, series.mark, &series.colour_of);
        if !list.iter().any(same) {
            list.push(series);
        }
    }
    list
}

/// One column where a name is too long for two.
fn legend_columns(all: &[&Series]) -> usize {
    let room = WIDTH / 2.0 - 40.0;
    if all.iter().all(|s| width_of(&s.name, 11.5) < room) {
        2
    } else {
        1
    }
}

fn legend_rows(all: &[&Series]) -> usize {
    all.len().div_ceil(legend_columns(all))
}

fn legend(svg: &mut Svg, corner: Point, all: &[&Series], style: &dyn Fn(&Series) -> Stroke) {
    let columns = legend_columns(all);
    for (i, series) in all.iter().enumerate() {
        let x = corner.0 + (i % columns) as f64 * (WIDTH / 2.0);
        let y = corner.1 + (i / columns) as f64 * LEGEND;
        let middle = (x + 13.0, y - 4.0);
        let stroke = style(series);
        match series.mark {
            Mark::Band => svg.rect((x, y - 10.0), (26.0, 12.0), BAND, 1.0),
            Mark::Published => published(svg, middle, middle, stroke.colour),
            mark => {
                if mark != Mark::Dots {
                    svg.line((x, y - 4.0), (x + 26.0, y - 4.0), stroke);
                }
                if !mark.is_line() {
                    svg.circle(middle, 2.6, stroke.colour, Stroke { width: 0.0, ..stroke });
                }
            }
        }
        svg.text((x + 33.0, y), 11.5, INK, Anchor::Start, false, &series.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, mark: Mark, spots: &[(f64, f64, f64)]) -> Series {
        let spots = spots.iter().map(|&(x, low, high)| Spot { x, low, high }).collect();
        Series { name: name.to_owned(), mark, colour_of: "one".to_owned(), spots }
    }

    fn chart(scale: Scale, series: Vec<Series>) -> Chart {
        Chart {
            title: "a < b".to_owned(),
            x: Axis::new("cores", scale),
            y: Axis::new("us", Scale::Log),
            series,
        }
    }

    #[test]
    fn every_mark_tells_its_value_and_what_it_is() {
        let one = chart(
            Scale::Linear,
            vec![
                series("ours", Mark::Simulated, &[(1.0, 2.5, 2.5), (4.0, 20.0, 20.0)]),
                series("theirs", Mark::Published, &[(4.0, 16.6, 16.6), (2.0, 3.0, 5.0)]),
                series("allowed", Mark::Band, &[(1.0, 2.0, 3.0), (4.0, 10.0, 30.0)]),
            ],
        );
        let svg = charts("t", "d", &[one]);
        for tip in [
            "ours (simulated): 1, 2.5",
            "ours (simulated): 4, 20",
            "theirs (published): 4, 16.6",
            "theirs (published): 2, 3 to 5",
            "allowed (band)",
        ] {
            assert_eq!(svg.matches(&format!("<title>{tip}</title>")).count(), 1, "{tip}");
        }
        assert!(svg.contains("a &lt; b") && svg.contains(">cores<") && svg.contains("rotate(-90"));
    }

    #[test]
    fn what_has_no_place_is_left_out() {
        let bad = [(0.0, f64::NAN, f64::NAN), (1.0, 0.0, 0.0), (1.0, -3.0, -3.0)];
        for scale in
            [Scale::Linear, Scale::Log, Scale::Bytes, Scale::Doubling, Scale::Names(vec!["A".to_owned()])]
        {
            let svg = charts("t", "d", &[chart(scale, vec![series("s", Mark::Simulated, &bad)])]);
            assert!(
                !svg.contains("NaN") && !svg.contains("inf") && !svg.contains("<g><title>s (sim"),
                "{svg}"
            );
        }
        assert!(charts("t", "d", &[]).ends_with("</svg>\n"));
    }

    #[test]
    fn compared_charts_have_one_legend_and_axes_of_one_length() {
        let many = |mark| (0..9).map(|i| series(&format!("model {i}"), mark, &[(1.0, 2.0, 2.0)])).collect();
        let far = vec![series("far", Mark::Dots, &[(64.0, 900.0, 1100.0), (1.0, 2.0, 2.0)])];
        let all = [chart(Scale::Times, many(Mark::Line)), chart(Scale::Times, far)];
        let svg = compared("t", "d", &all);
        assert_eq!(svg.matches(">model 0<").count(), 1);
        assert_eq!(svg.matches(">100 ns<").count(), 2, "both axes go as far: {svg}");
        assert!(svg.contains("far (measured): 64, 900 to 1100"), "{svg}");
    }
}

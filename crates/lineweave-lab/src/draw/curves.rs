//! Times over sizes, both axes by logarithm: one panel an algorithm, one curve a model, points for what was measured.

use super::colours::SERIES;
use super::legend::in_order;
use super::svg::{Anchor, Stroke, Svg};
use super::{INK, PAPER, RULE, SOFT};
use lineweave_core::units::{Bytes, Nanos};

const WIDTH: f64 = 420.0;
/// Width of a panel that stands alone.
const ALONE: f64 = 860.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const TOP: f64 = 90.0;
const GAP: f64 = 70.0;

/// One line.
#[derive(Clone, PartialEq, Debug)]
pub struct Curve {
    /// Name of the curve in the legend.
    pub name: String,
    /// Bytes and ns.
    pub points: Vec<(f64, f64)>,
    /// Points without a line between them: what was measured.
    pub measured: bool,
    /// Intervals, as bars: x, lower and upper end.
    pub intervals: Vec<(f64, f64, f64)>,
}

/// One picture.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// Title: the subject of the panel.
    pub title: String,
    /// Curves of the panel; equal names have equal colours in all panels.
    pub curves: Vec<Curve>,
}

/// Format of the numbers on the axes.
#[derive(Clone, Copy, Debug)]
pub struct Axes {
    /// Base of the powers on the horizontal axis: 2 for lengths, 10 for times.
    pub base: f64,
    /// Format of the numbers on the horizontal axis.
    pub x: fn(f64) -> String,
    /// Format of the numbers on the vertical axis, which are powers of ten.
    pub y: fn(f64) -> String,
}

/// Draws times over sizes: panels side by side, two a row, all with the same axes. Points that are not positive and
/// finite are left out.
pub fn curves(title: &str, detail: &str, panels: &[Panel]) -> String {
    let bytes = |n: f64| Bytes(n.round() as u64).to_string();
    curves_on(title, detail, panels, Axes { base: 2.0, x: bytes, y: |n| Nanos(n).to_string() })
}

/// [`curves`] of other things.
pub fn curves_on(title: &str, detail: &str, panels: &[Panel], labels: Axes) -> String {
    let mut svg = Svg::default();
    svg.heading(title, detail);
    let sound = |p: &&(f64, f64)| p.0 > 0.0 && p.1 > 0.0 && p.0.is_finite() && p.1.is_finite();
    let ends = |c: &Curve| {
        let bars = c.intervals.iter().flat_map(|&(x, low, high)| [(x, low), (x, high)]);
        c.points.iter().copied().chain(bars).collect::<Vec<_>>()
    };
    let all: Vec<(f64, f64)> =
        panels.iter().flat_map(|p| &p.curves).flat_map(ends).filter(|p| sound(&p)).collect();
    let range = |of: fn(&(f64, f64)) -> f64, base: f64| {
        let low = all.iter().map(of).fold(f64::INFINITY, f64::min);
        let high = all.iter().map(of).fold(0.0, f64::max);
        match low <= high {
            true => (low.log(base).floor(), (high.log(base).ceil()).max(low.log(base).floor() + 1.0)),
            false => (0.0, 1.0),
        }
    };
    let (x, y) = (range(|p| p.0, labels.base), range(|p| p.1, 10.0));
    let wide = if panels.len() == 1 { ALONE } else { WIDTH };
    let names = in_order(panels.iter().flat_map(|p| &p.curves).map(|c| c.name.as_str()));
    for (i, panel) in panels.iter().enumerate() {
        let corner = (LEFT + (i % 2) as f64 * (WIDTH + GAP), TOP + (i / 2) as f64 * (HEIGHT + GAP));
        let at = |p: &(f64, f64)| {
            let fx = (p.0.log(labels.base) - x.0) / (x.1 - x.0);
            let fy = (p.1.log10() - y.0) / (y.1 - y.0);
            (corner.0 + fx * wide, corner.1 + (1.0 - fy) * HEIGHT)
        };
        axes(&mut svg, corner, wide, (x, y), labels);
        svg.text((corner.0, corner.1 - 8.0), 13.0, INK, Anchor::Start, true, &panel.title);
        for curve in &panel.curves {
            let (colour, dashed) = style(names.iter().position(|n| *n == curve.name).unwrap_or(0));
            let stroke = Stroke { colour, width: 1.6, dashed };
            svg.open(&curve.name);
            let points: Vec<(f64, f64)> = curve.points.iter().filter(sound).map(at).collect();
            let bar = Stroke { width: 0.9, ..stroke };
            for &(x, low, high) in &curve.intervals {
                let (low, high) = ((x, low), (x, high));
                if sound(&&low) && sound(&&high) {
                    svg.line(at(&low), at(&high), bar);
                }
            }
            for pair in points.windows(2).filter(|_| !curve.measured) {
                svg.line(pair[0], pair[1], stroke);
            }
            for &point in points.iter().filter(|_| curve.measured || points.len() == 1) {
                svg.circle(point, 3.5, colour, Stroke { colour: PAPER, width: 0.7, dashed: false });
            }
            svg.close();
        }
    }
    let rows = panels.len().div_ceil(2).max(1) as f64;
    let bottom = TOP + rows * (HEIGHT + GAP);
    let measured = |name: &str| panels.iter().flat_map(|p| &p.curves).any(|c| c.name == name && c.measured);
    for (i, name) in names.iter().enumerate() {
        let place = (LEFT + (i % 4) as f64 * 220.0, bottom + (i / 4) as f64 * 22.0);
        let (colour, dashed) = style(i);
        let stroke = Stroke { colour, width: 1.6, dashed };
        match measured(name) {
            true => svg.circle((place.0 + 14.0, place.1 - 4.0), 4.0, colour, stroke),
            false => svg.line((place.0, place.1 - 4.0), (place.0 + 28.0, place.1 - 4.0), stroke),
        }
        svg.text((place.0 + 34.0, place.1), 12.0, INK, Anchor::Start, false, name);
    }
    let height = bottom + names.len().div_ceil(4) as f64 * 22.0 + 10.0;
    svg.finish(LEFT + 2.0 * WIDTH + GAP + 30.0, height, title)
}

/// The colour of a curve, and whether it is dashed: the second time round.
fn style(i: usize) -> (&'static str, bool) {
    (SERIES[i % SERIES.len()], i / SERIES.len() % 2 == 1)
}

/// Rules and numbers.
fn axes(svg: &mut Svg, corner: (f64, f64), wide: f64, (x, y): ((f64, f64), (f64, f64)), labels: Axes) {
    let rule = Stroke { colour: RULE, width: 1.0, dashed: false };
    let step = ((x.1 - x.0) / 6.0).ceil().max(1.0);
    let mut power = x.0;
    while power <= x.1 + 1e-9 {
        let at = corner.0 + (power - x.0) / (x.1 - x.0) * wide;
        svg.line((at, corner.1), (at, corner.1 + HEIGHT), rule);
        let label = (labels.x)(labels.base.powf(power));
        svg.text((at, corner.1 + HEIGHT + 16.0), 11.0, SOFT, Anchor::Middle, false, &label);
        power += step;
    }
    let mut power = y.0;
    while power <= y.1 + 1e-9 {
        let at = corner.1 + (1.0 - (power - y.0) / (y.1 - y.0)) * HEIGHT;
        svg.line((corner.0, at), (corner.0 + wide, at), rule);
        let label = (labels.y)(10f64.powf(power));
        svg.text((corner.0 - 6.0, at + 4.0), 11.0, SOFT, Anchor::End, false, &label);
        power += 1.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel(title: &str, points: Vec<(f64, f64)>) -> Panel {
        let curve = |name: &str, measured| Curve {
            name: name.to_owned(),
            points: points.clone(),
            measured,
            intervals: Vec::new(),
        };
        Panel { title: title.to_owned(), curves: vec![curve("Hockney & co", false), curve("measured", true)] }
    }

    #[test]
    fn every_curve_is_named_and_marks_stay_in_the_picture() {
        let points = vec![(8192.0, 900.0), (65536.0, 7e3), (1e6, 1e5)];
        let svg = curves("t", "d", &[panel("one", points.clone()), panel("two <3>", points)]);
        assert!(svg.starts_with("<svg") && svg.contains("two &lt;3&gt;") && svg.contains("Hockney &amp; co"));
        assert_eq!(svg.matches("<circle").count(), 2 * 3 + 1, "measured points and their legend");
        for part in svg.split("cx=\"").skip(1) {
            let x: f64 = part.split('"').next().unwrap().parse().unwrap();
            assert!((0.0..1100.0).contains(&x), "{x}");
        }
    }

    #[test]
    fn times_from_left_to_right_go_by_tens() {
        let time = |n: f64| Nanos(n).to_string();
        let panels = [panel("times", vec![(30.0, 40.0), (2000.0, 3000.0)])];
        let svg = curves_on("t", "d", &panels, Axes { base: 10.0, x: time, y: time });
        for n in [10.0, 100.0, 1000.0, 10000.0] {
            assert_eq!(svg.matches(&format!(">{}<", time(n))).count(), 2, "once on each axis: {n}");
        }
    }

    #[test]
    fn nothing_to_draw_is_an_empty_picture() {
        for points in [vec![], vec![(0.0, 5.0), (f64::NAN, 1.0), (5.0, f64::INFINITY)]] {
            assert!(!curves("t", "d", &[panel("none", points)]).contains("NaN"));
        }
        assert!(curves("t", "d", &[]).ends_with("</svg>\n"));
    }
}

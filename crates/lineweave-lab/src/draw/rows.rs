//! A few values a row on one axis, by logarithm: narrow enough for a phone, with its numbers beside it.

use super::axis::round;
use super::colours::SERIES;
use super::legend::{in_order, Legend};
use super::svg::{room_of, Anchor, Point, Stroke, Svg};
use super::{FOLD, INK, PALE, PAPER, RULE, SOFT, TRANSFER, WRONG};

const WIDTH: f64 = 420.0;
const TOP: f64 = 34.0;
const ROW: f64 = 24.0;
const FONT: f64 = 12.0;
/// The least room for the axis.
const AXIS: f64 = 150.0;

/// A value in a row.
#[derive(Clone, PartialEq, Debug)]
pub enum Sign {
    /// Band in which most values are.
    Band(f64, f64),
    /// Predicted value.
    Bar(f64),
    /// Measured: the value and its interval.
    Dot(f64, f64, f64),
    /// Value below which nothing is known to go.
    Floor(f64),
    /// A value outside of the band.
    Odd(f64),
    /// Value of something else, with its name.
    Other(String, f64),
}

impl Sign {
    fn values(&self) -> Vec<f64> {
        match *self {
            Sign::Band(low, high) => vec![low, high],
            Sign::Dot(value, low, high) => vec![value, low, high],
            Sign::Bar(value) | Sign::Floor(value) | Sign::Odd(value) | Sign::Other(_, value) => vec![value],
        }
    }
}

/// A row.
#[derive(Clone, PartialEq, Debug)]
pub struct Row {
    /// Label: the subject of the row.
    pub label: String,
    /// Values of the row; those that are not positive and finite are left out.
    pub signs: Vec<Sign>,
    /// Text at the end of the row: the value that counts.
    pub note: String,
}

/// Draws `rows`; `unit` writes the numbers of the axis.
pub fn rows(title: &str, rows: &[Row], unit: fn(f64) -> String) -> String {
    let sound = |v: &f64| *v > 0.0 && v.is_finite();
    let values = || rows.iter().flat_map(|r| &r.signs).flat_map(Sign::values).filter(sound);
    let low = round(values().fold(f64::INFINITY, f64::min), false);
    let high = round(values().fold(0.0, f64::max), true).max(low * 2.0);
    let widest = |of: fn(&Row) -> &String| rows.iter().map(|r| room_of(of(r), FONT)).fold(0.0, f64::max);
    let (left, notes) = (12.0 + widest(|r| &r.label) + 10.0, widest(|r| &r.note) + 20.0);
    let width = WIDTH.max(left + AXIS + notes).max(room_of(title, 13.0) * 1.08 + 24.0);
    let axis = width - left - notes;
    let x = |value: f64| left + (value / low).ln() / (high / low).ln() * axis;
    let bottom = TOP + rows.len() as f64 * ROW;

    let mut svg = Svg::default();
    svg.text((12.0, 20.0), 13.0, INK, Anchor::Start, true, title);
    let mut free = f64::NEG_INFINITY;
    for value in rules(low, high) {
        let (at, text) = (x(value), unit(value));
        svg.line((at, TOP), (at, bottom + 3.0), Stroke { colour: RULE, width: 1.0, dashed: false });
        let half = room_of(&text, 10.0) / 2.0;
        if at - half > free {
            svg.text((at, bottom + 16.0), 10.0, SOFT, Anchor::Middle, false, &text);
            free = at + half + 6.0;
        }
    }
    let others = in_order(rows.iter().flat_map(|r| &r.signs).filter_map(|s| match s {
        Sign::Other(name, _) => Some(name.as_str()),
        _ => None,
    }));
    for (i, row) in rows.iter().enumerate() {
        let y = TOP + (i as f64 + 0.5) * ROW;
        svg.open(&format!("{}: {}", row.label, row.note));
        svg.text((left - 10.0, y + 4.0), FONT, INK, Anchor::End, false, &row.label);
        for sign in row.signs.iter().filter(|s| s.values().iter().all(sound)) {
            let at = |value: f64| (x(value), y);
            match sign {
                Sign::Band(from, to) => {
                    svg.rect((x(*from), y - 7.0), ((x(*to) - x(*from)).max(2.0), 14.0), PALE, 2.0)
                }
                Sign::Bar(value) => {
                    svg.rect((left, y - 5.0), ((x(*value) - left).max(1.5), 10.0), TRANSFER, 1.5)
                }
                Sign::Dot(value, from, to) => {
                    let bar = Stroke { colour: INK, width: 1.4, dashed: false };
                    svg.line(at(*from), at(*to), bar);
                    dot(&mut svg, at(*value));
                }
                Sign::Floor(value) => floor(&mut svg, at(*value)),
                Sign::Odd(value) => odd(&mut svg, at(*value)),
                Sign::Other(name, value) => {
                    other(&mut svg, at(*value), others.iter().position(|n| n == name).unwrap_or(0));
                }
            }
        }
        svg.text((width - 12.0, y + 4.0), FONT, INK, Anchor::End, false, &row.note);
        svg.close();
    }
    let any = |of: fn(&Sign) -> bool| rows.iter().flat_map(|r| &r.signs).any(of);
    let mut legend = Legend::default();
    legend.entry(any(|s| matches!(s, Sign::Bar(_))), "predicted", |svg, (x, y)| {
        svg.rect((x, y - 5.0), (24.0, 10.0), TRANSFER, 1.5)
    });
    legend.entry(any(|s| matches!(s, Sign::Dot(..))), "measured", |svg, (x, y)| dot(svg, (x + 12.0, y)));
    legend.entry(any(|s| matches!(s, Sign::Floor(_))), "floor", |svg, (x, y)| floor(svg, (x + 12.0, y)));
    legend.entry(any(|s| matches!(s, Sign::Band(..))), "where most are", |svg, (x, y)| {
        svg.rect((x, y - 7.0), (24.0, 14.0), PALE, 2.0)
    });
    legend.entry(any(|s| matches!(s, Sign::Odd(_))), "off", |svg, (x, y)| odd(svg, (x + 12.0, y)));
    for (i, name) in others.iter().enumerate() {
        legend.entry(true, name, move |svg, (x, y)| other(svg, (x + 12.0, y), i));
    }
    let height = bottom + 36.0 + legend.draw(&mut svg, (12.0, bottom + 34.0), width - 24.0);
    svg.finish(width, height, title)
}

fn dot(svg: &mut Svg, at: Point) {
    svg.circle(at, 4.5, PAPER, Stroke { colour: INK, width: 2.0, dashed: false });
}

fn floor(svg: &mut Svg, (x, y): Point) {
    svg.line((x, y - 9.0), (x, y + 9.0), Stroke { colour: FOLD, width: 3.0, dashed: false });
}

fn odd(svg: &mut Svg, (x, y): Point) {
    let stroke = Stroke { colour: WRONG, width: 2.0, dashed: false };
    svg.line((x - 4.0, y - 4.0), (x + 4.0, y + 4.0), stroke);
    svg.line((x - 4.0, y + 4.0), (x + 4.0, y - 4.0), stroke);
}

/// Shapes that differ, whatever their colours.
fn other(svg: &mut Svg, (x, y): Point, i: usize) {
    let colour = SERIES[1 + i % (SERIES.len() - 1)];
    match i % 3 {
        0 => svg.polygon(&[(x, y - 6.0), (x + 6.0, y), (x, y + 6.0), (x - 6.0, y)], colour),
        1 => svg.rect((x - 4.5, y - 4.5), (9.0, 9.0), colour, 0.0),
        _ => svg.polygon(&[(x, y - 6.0), (x + 6.0, y + 5.0), (x - 6.0, y + 5.0)], colour),
    }
}

/// Returns the values of the rules: powers of ten, and 2 and 5 times them on a short axis.
fn rules(low: f64, high: f64) -> Vec<f64> {
    let short = high / low < 200.0;
    let mut found = Vec::new();
    let mut power = 10f64.powf((low * 1.001).log10().floor());
    while power <= high * 1.001 && found.len() < 64 {
        let steps: &[f64] = if short { &[1.0, 2.0, 5.0] } else { &[1.0] };
        found.extend(steps.iter().map(|s| s * power).filter(|v| *v >= low * 0.999 && *v <= high * 1.001));
        power *= 10.0;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_legend_has_what_is_drawn_and_nothing_else() {
        let row = |signs| Row { label: "a < b".to_owned(), signs, note: "12 ns".to_owned() };
        let unit = |v: f64| format!("{v:.0}");
        let svg = rows("t", &[row(vec![Sign::Bar(12.0), Sign::Other("MPICH".into(), 90.0)])], unit);
        assert!(
            svg.contains(">predicted<") && svg.contains(">MPICH<") && svg.contains(">a &lt; b<"),
            "{svg}"
        );
        assert!(!svg.contains(">measured<") && !svg.contains(">floor<") && !svg.contains("NaN"));
        let svg = rows("t", &[row(vec![Sign::Dot(f64::NAN, 1.0, 2.0), Sign::Band(3.0, 4.0)])], unit);
        assert!(svg.contains(">where most are<") && !svg.contains("NaN"), "{svg}");
        assert!(rows("t", &[], unit).ends_with("</svg>\n"));
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (value, low, high) in
            [(3.0, 2.0, 5.0), (70.0, 50.0, 100.0), (1.0, 1.0, 1.0), (450.0, 200.0, 500.0)]
        {
            assert!(
                (round(value, false) / low - 1.0).abs() < 1e-9
                    && (round(value, true) / high - 1.0).abs() < 1e-9,
                "{value}"
            );
        }
        assert_eq!(rules(10.0, 1000.0), [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0]);
        assert_eq!(rules(1.0, 1e4).len(), 5);
    }
}

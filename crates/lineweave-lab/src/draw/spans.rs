//! Values with their intervals around zero, a row each: what a fit leaves unexplained.

use super::axis::round;
use super::svg::{room_of, Anchor, Stroke, Svg};
use super::{INK, PAPER, RULE, SOFT, SYNC, TRANSFER};

const TOP: f64 = 84.0;
const ROW: f64 = 20.0;
const WIDTH: f64 = 480.0;

/// One value.
#[derive(Clone, PartialEq, Debug)]
pub struct Span {
    /// Name of the thing that the value belongs to.
    pub name: String,
    /// Lower end of the span.
    pub low: f64,
    /// The value.
    pub value: f64,
    /// Upper end of the span.
    pub high: f64,
}

/// Draws `spans` on one linear axis that has zero in its middle; those that do not reach zero have another colour. Numbers
/// that are not finite are left out.
pub fn spans(title: &str, detail: &str, spans: &[Span], label: fn(f64) -> String) -> String {
    let sound = |s: &&Span| s.low.is_finite() && s.value.is_finite() && s.high.is_finite();
    let known: Vec<&Span> = spans.iter().filter(sound).collect();
    let most = known.iter().flat_map(|s| [s.low.abs(), s.value.abs(), s.high.abs()]).fold(0.0, f64::max);
    let reach = round(most, true);
    let left = known.iter().map(|s| room_of(&s.name, 11.0)).fold(40.0, f64::max) + 28.0;
    let bottom = TOP + known.len() as f64 * ROW;
    let at = |x: f64| left + (x / reach + 1.0) / 2.0 * WIDTH;
    let mut svg = Svg::default();
    svg.heading(title, detail);
    for quarter in -2..=2 {
        let x = f64::from(quarter) / 2.0 * reach;
        let colour = if quarter == 0 { SOFT } else { RULE };
        svg.line((at(x), TOP - 6.0), (at(x), bottom), Stroke { colour, width: 1.0, dashed: false });
        svg.text((at(x), TOP - 12.0), 11.0, SOFT, Anchor::Middle, false, &label(x));
    }
    for (i, span) in known.iter().enumerate() {
        let y = TOP + (i as f64 + 0.5) * ROW;
        let apart = span.low > 0.0 || span.high < 0.0;
        let colour = if apart { SYNC } else { TRANSFER };
        svg.open(&format!(
            "{}: {} ({} .. {})",
            span.name,
            label(span.value),
            label(span.low),
            label(span.high)
        ));
        svg.text((left - 10.0, y + 4.0), 11.0, INK, Anchor::End, false, &span.name);
        svg.line((at(span.low), y), (at(span.high), y), Stroke { colour, width: 2.0, dashed: false });
        svg.circle((at(span.value), y), 3.5, PAPER, Stroke { colour, width: 2.0, dashed: false });
        svg.close();
    }
    svg.finish((left + WIDTH + 40.0).max(Svg::heading_width(title, detail)), bottom + 16.0, title)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_the_picture_and_coloured_by_whether_it_reaches_zero() {
        let span = |name: &str, low, value, high| Span { name: name.to_owned(), low, value, high };
        let list =
            [span("a < b", -0.02, 0.01, 0.03), span("c", 0.1, 0.2, 0.31), span("d", 0.0, f64::NAN, 0.0)];
        let svg = spans("t", "d", &list, |x| format!("{:.0} %", x * 100.0));
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(
            svg.contains("a &lt; b") && svg.contains(">50 %<") && svg.contains(SYNC) && !svg.contains("NaN")
        );
    }
}

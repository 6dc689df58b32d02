//! The few shapes that drawings are made of, as SVG text.

use super::{INK, PAPER, SOFT};
use std::fmt::Write as _;

/// A point.
pub(super) type Point = (f64, f64);

/// Anchor of a text: the part of the text that lies at its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// Style of a stroke.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stroke {
    pub(super) colour: &'static str,
    pub(super) width: f64,
    pub(super) dashed: bool,
}

/// A picture in the making.
#[derive(Debug, Default)]
pub(super) struct Svg {
    body: String,
}

/// Text as XML content or attribute. Characters that XML 1.0 has no way to write become U+FFFD.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            '\n' => out.push('\n'),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

impl Svg {
    /// Begins a group whose marks show `title` as a tooltip.
    pub(super) fn open(&mut self, title: &str) {
        let _ = write!(self.body, "<g><title>{}</title>", escape(title));
    }

    /// Ends the group.
    pub(super) fn close(&mut self) {
        self.body.push_str("</g>\n");
    }

    pub(super) fn rect(&mut self, at: Point, size: Point, fill: &str, radius: f64) {
        let (x, y, w, h) = (at.0, at.1, size.0, size.1);
        let _ = write!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.2}\" height=\"{h:.1}\" rx=\"{radius}\" fill=\"{fill}\"/>"
        );
    }

    /// Begins a group in which a unit is `scale` long, from `at` on.
    pub(super) fn open_scaled(&mut self, at: Point, scale: f64) {
        let _ = write!(
            self.body,
            "<g transform=\"translate({:.1} {:.1}) scale({scale:.4})\" shape-rendering=\"crispEdges\">",
            at.0, at.1
        );
    }

    /// A square of one unit, in few bytes: a picture can have thousands.
    pub(super) fn square(&mut self, (column, row): (usize, usize), fill: &str, title: &str) {
        let _ = write!(
            self.body,
            "<path fill=\"{fill}\" d=\"M{column} {row}h1v1h-1z\"><title>{}</title></path>",
            escape(title)
        );
    }

    /// A rectangle within a border of its own colour.
    pub(super) fn framed(&mut self, at: Point, size: Point, fill: &str, edge: &str, radius: f64) {
        let (x, y, w, h) = (at.0 + 0.5, at.1 + 0.5, size.0 - 1.0, size.1 - 1.0);
        let _ = write!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" rx=\"{radius}\" fill=\"{fill}\" stroke=\"{edge}\"/>"
        );
    }

    pub(super) fn circle(&mut self, at: Point, radius: f64, fill: &str, stroke: Stroke) {
        let _ = write!(
            self.body,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"{radius:.1}\" fill=\"{fill}\" stroke=\"{}\" stroke-width=\"{}\"/>",
            at.0, at.1, stroke.colour, stroke.width
        );
    }

    pub(super) fn line(&mut self, from: Point, to: Point, stroke: Stroke) {
        let dash = if stroke.dashed { " stroke-dasharray=\"4 3\"" } else { "" };
        let _ = write!(
            self.body,
            "<line x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"{}\" stroke-width=\"{}\"{dash}/>",
            from.0, from.1, to.0, to.1, stroke.colour, stroke.width
        );
    }

    pub(super) fn polygon(&mut self, points: &[Point], fill: &str) {
        let list: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = write!(self.body, "<polygon points=\"{}\" fill=\"{fill}\"/>", list.join(" "));
    }

    /// A line with a head. The head is a polygon of its own, because not every viewer draws markers.
    pub(super) fn arrow(&mut self, from: Point, to: Point, stroke: Stroke) {
        let (neck, head) = head(from, to, stroke.width);
        self.line(from, neck, stroke);
        self.polygon(&head, stroke.colour);
    }

    /// An arrow that bends to its right by `bend` of its length, so that the way back does not lie on it.
    pub(super) fn arc(&mut self, from: Point, to: Point, bend: f64, stroke: Stroke) {
        let (dx, dy) = (to.0 - from.0, to.1 - from.1);
        let control = ((from.0 + to.0) / 2.0 - dy * bend, (from.1 + to.1) / 2.0 + dx * bend);
        let (neck, head) = head(control, to, stroke.width);
        let _ = write!(
            self.body,
            "<path d=\"M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>",
            from.0, from.1, control.0, control.1, neck.0, neck.1, stroke.colour, stroke.width
        );
        self.polygon(&head, stroke.colour);
    }

    /// A rectangle that is outlined, and not filled.
    pub(super) fn outline(&mut self, at: Point, size: Point, stroke: Stroke) {
        let (x, y, w, h) = (at.0, at.1, size.0, size.1);
        let _ = write!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.2}\" height=\"{h:.1}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"/>",
            stroke.colour, stroke.width
        );
    }

    /// Returns the least width of a picture with this heading, in px.
    pub(super) fn heading_width(title: &str, detail: &str) -> f64 {
        // Bold letters are wider.
        (room_of(title, 17.0) * 1.08).max(room_of(detail, 12.0)) + 32.0
    }

    /// Text on its baseline.
    pub(super) fn text(&mut self, at: Point, size: f64, fill: &str, anchor: Anchor, bold: bool, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if bold { " font-weight=\"600\"" } else { "" };
        let _ = write!(
            self.body,
            "<text x=\"{:.1}\" y=\"{:.1}\" font-size=\"{size:.1}\" fill=\"{fill}\" text-anchor=\"{anchor}\"{weight}>{}</text>",
            at.0, at.1, escape(text)
        );
    }

    /// Text that runs upwards, its middle at `at`.
    pub(super) fn text_up(&mut self, at: Point, size: f64, fill: &str, text: &str) {
        let (x, y) = at;
        let _ = write!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size:.1}\" fill=\"{fill}\" text-anchor=\"middle\" transform=\"rotate(-90 {x:.1} {y:.1})\">{}</text>",
            escape(text)
        );
    }

    /// Text over lines, on a patch of the background, around `at`.
    pub(super) fn label(&mut self, at: Point, size: f64, fill: &str, text: &str) {
        let width = room_of(text, size) + 4.0;
        let patch = (at.0 - width / 2.0, at.1 - size * 0.85);
        let _ = write!(
            self.body,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{:.1}\" rx=\"2\" fill=\"{PAPER}\" fill-opacity=\"0.85\"/>",
            patch.0, patch.1, size * 1.15
        );
        self.text(at, size, fill, Anchor::Middle, false, text);
    }

    /// The title at the top left and a line of detail below it.
    pub(super) fn heading(&mut self, title: &str, detail: &str) {
        self.text((16.0, 26.0), 17.0, INK, Anchor::Start, true, title);
        self.text((16.0, 45.0), 12.0, SOFT, Anchor::Start, false, detail);
    }

    /// The finished document.
    pub(super) fn finish(self, width: f64, height: f64, title: &str) -> String {
        let title = escape(title);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"system-ui, Helvetica, Arial, sans-serif\" \
             role=\"img\" aria-label=\"{title}\">\n<title>{title}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"{PAPER}\"/>\n{}</svg>\n",
            self.body
        )
    }
}

/// The head of an arrow of this width that comes from `from`: where its line ends, and the head's corners.
fn head(from: Point, to: Point, width: f64) -> (Point, [Point; 3]) {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let length = dx.hypot(dy).max(1e-6);
    let (ux, uy) = (dx / length, dy / length);
    let long = (4.0 + 2.0 * width).min(length);
    let neck = (to.0 - ux * long, to.1 - uy * long);
    let wing = |side: f64| (neck.0 - uy * long * 0.45 * side, neck.1 + ux * long * 0.45 * side);
    (neck, [to, wing(1.0), wing(-1.0)])
}

/// Returns an upper limit of a text's width, in px, in the usual sans-serif fonts: texts that are placed by it do not overlap.
pub(super) fn room_of(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.62
}

/// About how wide a text is: sans-serif digits and letters are a little over half as wide as they are high.
pub(super) fn width_of(text: &str, size: f64) -> f64 {
    text.chars().count() as f64 * size * 0.56
}

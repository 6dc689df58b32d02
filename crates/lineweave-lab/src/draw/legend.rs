//! The legend of a drawing: what is drawn in it, and nothing else.

use super::svg::{room_of, Anchor, Point, Svg};
use super::INK;

/// Room for a mark.
const MARK: f64 = 28.0;
/// Distance between two entries, and from row to row.
const GAP: f64 = 18.0;
const ROW: f64 = 20.0;
const SIZE: f64 = 11.0;

/// Returns what is named, each once, in the order of first use.
pub(super) fn in_order<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

/// Draws a mark within the 24 units to the right of a point, in the middle of its height.
type Draw<'a> = dyn Fn(&mut Svg, Point) + 'a;

/// Entries in the order in which they were added.
#[derive(Default)]
pub(super) struct Legend<'a> {
    entries: Vec<(String, Box<Draw<'a>>)>,
}

impl<'a> Legend<'a> {
    /// Adds an entry, where its mark is drawn at all.
    pub(super) fn entry(&mut self, drawn: bool, text: &str, mark: impl Fn(&mut Svg, Point) + 'a) {
        if drawn {
            self.entries.push((text.to_owned(), Box::new(mark)));
        }
    }

    /// Draws the entries from `at` on, in rows of this width; returns what height they take.
    pub(super) fn draw(&self, svg: &mut Svg, at: Point, width: f64) -> f64 {
        let mut place = at;
        for (text, mark) in &self.entries {
            let needs = MARK + room_of(text, SIZE);
            if place.0 > at.0 && place.0 + needs > at.0 + width {
                place = (at.0, place.1 + ROW);
            }
            mark(svg, place);
            svg.text((place.0 + MARK, place.1 + 4.0), SIZE, INK, Anchor::Start, false, text);
            place.0 += needs + GAP;
        }
        if self.entries.is_empty() {
            0.0
        } else {
            place.1 - at.1 + ROW
        }
    }
}

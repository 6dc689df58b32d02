//! Curves of pictures, from their points.

use lineweave_lab::draw::{Mark, Series, Spot};

/// Returns a line, or the dots of what was measured.
pub fn curve(name: impl Into<String>, points: Vec<(f64, f64)>, measured: bool) -> Series {
    let mark = if measured { Mark::Dots } else { Mark::Line };
    let name = name.into();
    Series { colour_of: name.clone(), name, mark, spots: points.into_iter().map(spot).collect() }
}

/// Returns the spot of one value.
pub fn spot((x, y): (f64, f64)) -> Spot {
    Spot { x, low: y, high: y }
}

/// Adds a spot to the curve of this name, which begins with it if it is not there.
pub fn extend(curves: &mut Vec<Series>, name: String, spot: Spot, measured: bool) {
    match curves.iter_mut().find(|curve| curve.name == name) {
        Some(known) => known.spots.push(spot),
        None => curves.push(Series { spots: vec![spot], ..curve(name, Vec::new(), measured) }),
    }
}

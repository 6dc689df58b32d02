//! Curves of pictures, from their points.

use lineweave_lab::draw::Curve;

/// Returns a curve without intervals.
pub fn curve(name: impl Into<String>, points: Vec<(f64, f64)>, measured: bool) -> Curve {
    Curve { name: name.into(), points, measured, intervals: Vec::new() }
}

/// Adds a point to the curve of this name, which begins with it if it is not there; returns that curve.
pub fn extend(curves: &mut Vec<Curve>, name: String, point: (f64, f64), measured: bool) -> &mut Curve {
    let known = curves.iter().position(|curve| curve.name == name);
    let at = known.unwrap_or_else(|| {
        curves.push(curve(name, Vec::new(), measured));
        curves.len() - 1
    });
    curves[at].points.push(point);
    &mut curves[at]
}

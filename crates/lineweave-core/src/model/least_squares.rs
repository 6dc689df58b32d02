//! Weighted linear least squares with confidence intervals.
//!
//! Some dozen observations and at most three coefficients: orthogonal columns by Gram and Schmidt, and Student's t by its sum for a whole
//! number of degrees of freedom. Every program that uses lineweave compiles this; the libraries of linear algebra and statistics that
//! it stands for are larger than all of the rest.

use super::fitted::{Fitted, Provenance};
use std::f64::consts::{FRAC_2_PI, FRAC_PI_2};

/// One observation: the regressors, the value and its standard error.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Values of the basis functions.
    pub basis: Vec<f64>,
    /// Observed value.
    pub value: f64,
    /// Standard error of `value`, positive.
    pub sigma: f64,
}

/// The outcome: coefficients with intervals, and what they leave unexplained.
#[derive(Clone, Debug)]
pub struct LeastSquares {
    /// One coefficient a basis function.
    pub coefficients: Vec<Fitted>,
    /// Observed minus fitted, in the order of the observations.
    pub residuals: Vec<f64>,
}

/// 97.5 % quantile of the normal distribution.
const NORMAL: f64 = 1.959_964;

/// Least remainder of a column of length 1 beside those before it, for the observations to determine its coefficient.
const LEFT: f64 = 1e-6;

/// P(|T| < t) of Student's t with so many degrees of freedom, t = sqrt(freedom) tan(angle): Abramowitz & Stegun 26.7.3 and 26.7.4.
fn within(freedom: usize, angle: f64) -> f64 {
    let (sine, cosine) = angle.sin_cos();
    let even = freedom % 2 == 0;
    let mut term = if even { 1.0 } else { cosine };
    let mut sum = 0.0;
    for power in (usize::from(!even)..freedom.saturating_sub(1)).step_by(2) {
        sum += term;
        term *= cosine * cosine * (power + 1) as f64 / (power + 2) as f64;
    }
    match even {
        true => sine * sum,
        false => FRAC_2_PI * (angle + sine * sum),
    }
}

/// The 97.5 % quantile of Student's t with so many degrees of freedom, by bisection.
fn student_t(freedom: usize) -> f64 {
    let (mut low, mut high) = (0.0, FRAC_PI_2);
    while (high - low) > 1e-14 {
        let middle = 0.5 * (low + high);
        match within(freedom, middle) < 0.95 {
            true => low = middle,
            false => high = middle,
        }
    }
    (freedom as f64).sqrt() * low.tan()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

/// `x` of `r x = y`, where `r` is upper triangular.
fn backwards(r: &[Vec<f64>], y: &[f64]) -> Vec<f64> {
    let mut x = y.to_vec();
    for i in (0..x.len()).rev() {
        for j in i + 1..x.len() {
            x[i] -= r[i][j] * x[j];
        }
        x[i] /= r[i][i];
    }
    x
}

/// Solves `min sum ((value - basis . x) / sigma)^2`.
///
/// The covariance is `(X' W X)^-1`, scaled by the reduced chi-square where that exceeds 1: intervals grow when
/// the model does not fit as well as the observations' own errors say it should, and never shrink below them.
/// `None` when the observations do not determine the coefficients.
pub fn weighted(observations: &[Observation]) -> Option<LeastSquares> {
    let n = observations.len();
    let k = observations.first()?.basis.len();
    if n < k || k == 0 {
        return None;
    }
    let column = |j: usize| observations.iter().map(|o| o.basis[j] / o.sigma).collect::<Vec<f64>>();
    let mut columns: Vec<Vec<f64>> = (0..k).map(column).collect();
    // Columns are scaled to unit norm: bytes and lines differ by orders of magnitude.
    let scale: Vec<f64> = columns.iter().map(|c| dot(c, c).sqrt()).collect();
    if scale.iter().any(|s| !s.is_finite() || *s <= 0.0) {
        return None;
    }
    for (column, s) in columns.iter_mut().zip(&scale) {
        column.iter_mut().for_each(|x| *x /= s);
    }
    // X = Q R, and the rest of the values beside all columns is what they leave unexplained.
    let mut rest: Vec<f64> = observations.iter().map(|o| o.value / o.sigma).collect();
    let mut r = vec![vec![0.0; k]; k];
    let mut along = vec![0.0; k];
    for j in 0..k {
        let (done, others) = columns.split_at_mut(j + 1);
        let q = &mut done[j];
        r[j][j] = dot(q, q).sqrt();
        if r[j][j] <= LEFT {
            return None;
        }
        q.iter_mut().for_each(|x| *x /= r[j][j]);
        let take = |from: &mut [f64]| {
            let part = dot(q, from);
            from.iter_mut().zip(q.iter()).for_each(|(x, q)| *x -= part * q);
            part
        };
        for (l, other) in others.iter_mut().enumerate() {
            r[j][j + 1 + l] = take(other);
        }
        along[j] = take(&mut rest);
    }
    let solution = backwards(&r, &along);
    // The rows of R's inverse have the variances' roots as their lengths.
    let mut variance = vec![0.0; k];
    for j in 0..k {
        let unit: Vec<f64> = (0..k).map(|i| if i == j { 1.0 } else { 0.0 }).collect();
        backwards(&r, &unit).iter().zip(&mut variance).for_each(|(x, v)| *v += x * x);
    }
    let freedom = n - k;
    let spread = if freedom > 0 { (dot(&rest, &rest) / freedom as f64).max(1.0) } else { 1.0 };
    // Where the spread was estimated from the residuals; else the standard errors of the observations are believed.
    let t = if spread > 1.0 { student_t(freedom) } else { NORMAL };
    let coefficients = (0..k)
        .map(|j| {
            let value = solution[j] / scale[j];
            let half = t * (variance[j] * spread).sqrt() / scale[j];
            Fitted { value, ci_low: value - half, ci_high: value + half, provenance: Provenance::Measured }
        })
        .collect();
    let residuals = rest.iter().zip(observations).map(|(r, o)| r * o.sigma).collect();
    Some(LeastSquares { coefficients, residuals })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: &[(f64, f64)], sigma: f64) -> Vec<Observation> {
        points.iter().map(|&(x, value)| Observation { basis: vec![x, 1.0], value, sigma }).collect()
    }

    #[test]
    fn an_exact_line_is_recovered() {
        let fit = weighted(&line(&[(1.0, 5.0), (2.0, 7.0), (4.0, 11.0)], 0.1)).unwrap();
        assert!((fit.coefficients[0].value - 2.0).abs() < 1e-9);
        assert!((fit.coefficients[1].value - 3.0).abs() < 1e-9);
        assert!(fit.residuals.iter().all(|r| r.abs() < 1e-9));
    }

    #[test]
    fn what_is_not_determined_is_not_answered() {
        assert!(weighted(&line(&[(1.0, 5.0)], 0.1)).is_none());
        assert!(weighted(&line(&[(2.0, 5.0), (2.0, 5.1)], 0.1)).is_none());
        assert!(weighted(&[]).is_none());
    }

    #[test]
    fn intervals_grow_with_misfit() {
        let good = weighted(&line(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 4.0)], 0.1)).unwrap();
        let bad = weighted(&line(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 4.0)], 0.1)).unwrap();
        let width = |f: &LeastSquares| f.coefficients[0].ci_high - f.coefficients[0].ci_low;
        assert!(width(&bad) > 3.0 * width(&good));
    }

    /// The printed table of every textbook.
    #[test]
    fn student_t_is_as_printed() {
        let table = [(1, 12.706), (2, 4.303), (3, 3.182), (4, 2.776), (10, 2.228), (30, 2.042), (120, 1.980)];
        for (freedom, printed) in table {
            assert!((student_t(freedom) - printed).abs() < 6e-4, "{freedom}: {}", student_t(freedom));
        }
        assert!((student_t(100_000) - NORMAL).abs() < 1e-4);
    }

    /// T_N = o N + q - p / N through eight points, as the normal equations give it in fractions.
    #[test]
    fn three_coefficients_are_those_of_exact_arithmetic() {
        let points =
            [(1, 320, 10), (2, 540, 10), (4, 790, 20), (8, 1400, 20), (16, 2100, 40), (32, 3900, 50)];
        let long = [(64, 7300, 90), (128, 14400, 150)];
        let observe = |&(n, value, sigma): &(i32, i32, i32)| {
            let n = f64::from(n);
            Observation { basis: vec![n, 1.0, -1.0 / n], value: f64::from(value), sigma: f64::from(sigma) }
        };
        let observations: Vec<Observation> = points.iter().chain(&long).map(observe).collect();
        let fit = weighted(&observations).unwrap();
        let exact = [
            (108.179_391_644_110_23, 6.100_175_136_162_61),
            (468.768_827_652_073_3, 110.856_578_849_249_06),
            (263.711_876_953_364_3, 146.755_095_096_529_32),
        ];
        for (found, (value, half)) in fit.coefficients.iter().zip(exact) {
            assert!((found.value / value - 1.0).abs() < 1e-9, "{found:?} where {value} is right");
            assert!(((found.ci_high - found.value) / half - 1.0).abs() < 1e-9, "{found:?}: {half}");
        }
    }
}

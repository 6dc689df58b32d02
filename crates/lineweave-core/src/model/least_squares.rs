//! Weighted linear least squares with confidence intervals.

use super::fitted::{Fitted, Provenance};
use nalgebra::{DMatrix, DVector};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// One observation: the regressors, the value and its standard error.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Values of the basis functions.
    pub basis: Vec<f64>,
    /// What was seen.
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

/// 97.5 % quantile of Student's t where the spread was estimated from the residuals; the normal quantile where the
/// standard errors of the observations are believed.
fn quantile(freedom: usize, estimated: bool) -> f64 {
    match estimated {
        true => StudentsT::new(0.0, 1.0, freedom as f64).map_or(NORMAL, |t| t.inverse_cdf(0.975)),
        false => NORMAL,
    }
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
    // Columns are scaled to unit norm: bytes and lines differ by orders of magnitude.
    let mut x = DMatrix::from_fn(n, k, |i, j| observations[i].basis[j] / observations[i].sigma);
    let y = DVector::from_fn(n, |i, _| observations[i].value / observations[i].sigma);
    let scale: Vec<f64> = (0..k).map(|j| x.column(j).norm()).collect();
    if scale.iter().any(|s| !s.is_finite() || *s <= 0.0) {
        return None;
    }
    for (j, s) in scale.iter().enumerate() {
        x.column_mut(j).scale_mut(1.0 / s);
    }
    let normal = x.transpose() * &x;
    let condition = normal.clone().symmetric_eigenvalues();
    if condition.min() <= 1e-12 * condition.max() {
        return None;
    }
    let inverse = normal.try_inverse()?;
    let solution = &inverse * (x.transpose() * &y);
    let fitted = &x * &solution;
    let chi2 = (&y - &fitted).norm_squared();
    let freedom = n - k;
    let spread = if freedom > 0 { (chi2 / freedom as f64).max(1.0) } else { 1.0 };
    let t = quantile(freedom, spread > 1.0);
    let coefficients = (0..k)
        .map(|j| {
            let value = solution[j] / scale[j];
            let half = t * (inverse[(j, j)] * spread).sqrt() / scale[j];
            Fitted { value, ci_low: value - half, ci_high: value + half, provenance: Provenance::Measured }
        })
        .collect();
    let residuals = observations.iter().enumerate().map(|(i, o)| o.value - fitted[i] * o.sigma).collect();
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
}

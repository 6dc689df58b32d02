//! Error of a prediction, and cost of a choice (docs/explanation/measuring.md, rule 12).

/// Mean of max(R/E, E/R) over pairs of (real, estimated): 1 is perfect. Pairs with a value that is not
/// positive and finite are left out; `None` when none is left.
pub fn mean_proportional(pairs: &[(f64, f64)]) -> Option<f64> {
    mean(pairs, |real, estimated| (real / estimated).max(estimated / real))
}

/// Mean of |R - E| / R over pairs of (real, estimated): 0 is perfect. The same pairs are left out.
pub fn mean_relative(pairs: &[(f64, f64)]) -> Option<f64> {
    mean(pairs, |real, estimated| (real - estimated).abs() / real)
}

/// Returns the share by which the chosen candidate is slower than the best measured one: 0 when it is the best, 1 when it takes
/// twice as long. `None` without a positive finite measurement.
pub fn regret(chosen: f64, measured: &[f64]) -> Option<f64> {
    let best = measured.iter().copied().filter(|t| usable(*t)).fold(f64::INFINITY, f64::min).min(chosen);
    (usable(chosen) && usable(best)).then(|| chosen / best - 1.0)
}

fn usable(x: f64) -> bool {
    x.is_finite() && x > 0.0
}

fn mean(pairs: &[(f64, f64)], f: impl Fn(f64, f64) -> f64) -> Option<f64> {
    let terms: Vec<f64> =
        pairs.iter().filter(|(r, e)| usable(*r) && usable(*e)).map(|&(r, e)| f(r, e)).collect();
    (!terms.is_empty()).then(|| terms.iter().sum::<f64>() / terms.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proportional_error_does_not_favour_underestimates() {
        assert_eq!(mean_proportional(&[(100.0, 50.0), (100.0, 200.0)]), Some(2.0));
        assert_eq!(mean_relative(&[(100.0, 50.0), (100.0, 200.0)]), Some(0.75));
    }

    #[test]
    fn what_is_not_a_time_does_not_count() {
        assert_eq!(mean_relative(&[(0.0, 5.0), (f64::NAN, 1.0)]), None);
        assert_eq!(mean_proportional(&[(10.0, 10.0), (0.0, 5.0)]), Some(1.0));
    }

    #[test]
    fn regret_is_relative_to_the_best_measured() {
        assert_eq!(regret(150.0, &[100.0, 150.0, 300.0]), Some(0.5));
        assert_eq!(regret(100.0, &[100.0, 150.0]), Some(0.0));
        assert_eq!(regret(90.0, &[100.0]), Some(0.0));
        assert_eq!(regret(f64::NAN, &[1.0]), None);
    }
}

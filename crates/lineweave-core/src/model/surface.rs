//! L(m, tau): the cost of moving m bytes while tau such transfers run (Rico-Gallego & Diaz-Martin, section
//! 3), kept as the measured grid made monotone in both directions.
//!
//! The published surfaces are not monotone (13-30 % of adjacent tau pairs decrease), which lets a model
//! choose a plan because more traffic looks cheaper. The projection on monotone surfaces (weighted least
//! squares) is Dykstra's algorithm over pool-adjacent-violators along m and along tau (Dykstra & Robertson
//! 1982).

use super::fitted::{Fitted, Provenance};
use serde::{Deserialize, Serialize};

/// A monotone surface over bytes and concurrent transfers; values in nanoseconds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Surface {
    /// Sizes, ascending, in bytes.
    pub bytes: Vec<u64>,
    /// Numbers of concurrent transfers, ascending.
    pub taus: Vec<u32>,
    /// For each size, for each tau, the cost.
    pub cost: Vec<Vec<Fitted>>,
}

/// A value read off a surface.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reading {
    /// Nanoseconds.
    pub nanos: f64,
    /// True if it lies beyond what was measured, in size or in concurrency.
    pub extrapolated: bool,
}

/// One measured point of a surface.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Point {
    /// Size in bytes.
    pub bytes: u64,
    /// Concurrent transfers.
    pub tau: u32,
    /// The cost.
    pub cost: Fitted,
    /// Its weight: one over the square of its standard error.
    pub weight: f64,
}

impl Surface {
    /// The monotone surface nearest to these points. Grid nodes that were not measured take the value of
    /// their nearest measured neighbour in size with no weight. `None` without a point.
    pub fn from_points(points: &[Point]) -> Option<Surface> {
        let mut bytes: Vec<u64> = points.iter().map(|p| p.bytes).collect();
        bytes.sort_unstable();
        bytes.dedup();
        let mut taus: Vec<u32> = points.iter().map(|p| p.tau).collect();
        taus.sort_unstable();
        taus.dedup();
        if points.is_empty() {
            return None;
        }
        let at = |b: u64, t: u32| points.iter().find(|p| p.bytes == b && p.tau == t);
        let nearest = |b: u64, t: u32| {
            let gap = |p: &&Point| ((p.bytes as f64 + 1.0) / (b as f64 + 1.0)).ln().abs();
            let tau_gap = |p: &&Point| f64::from(p.tau.abs_diff(t));
            points
                .iter()
                .min_by(|p, q| (tau_gap(p), gap(p)).partial_cmp(&(tau_gap(q), gap(q))).expect("finite gaps"))
                .expect("there is a point")
        };
        let mut raw = Vec::with_capacity(bytes.len());
        for &b in &bytes {
            let row: Vec<(Fitted, f64)> = taus
                .iter()
                .map(|&t| match at(b, t) {
                    Some(p) => (p.cost, p.weight),
                    None => {
                        let p = nearest(b, t);
                        let ratio = (b.max(1) as f64 / p.bytes.max(1) as f64).clamp(0.25, 4.0);
                        (Fitted { provenance: Provenance::Inferred, ..p.cost.inferred(ratio) }, 0.0)
                    }
                })
                .collect();
            raw.push(row);
        }
        let top = raw.iter().flatten().map(|r| r.1).fold(0.0, f64::max).max(f64::MIN_POSITIVE);
        let values: Vec<Vec<f64>> = raw.iter().map(|r| r.iter().map(|c| c.0.value).collect()).collect();
        // A node without a measurement must yield to any that has one, but keep the problem well posed.
        let weights: Vec<Vec<f64>> =
            raw.iter().map(|r| r.iter().map(|c| (c.1 / top).max(1e-9)).collect()).collect();
        let smooth = isotonic_grid(&values, &weights);
        let cost = raw
            .iter()
            .zip(&smooth)
            .map(|(row, new)| {
                row.iter()
                    .zip(new)
                    .map(|(&(old, _), &value)| Fitted {
                        value,
                        ci_low: old.ci_low.min(value),
                        ci_high: old.ci_high.max(value),
                        provenance: old.provenance,
                    })
                    .collect()
            })
            .collect();
        Some(Surface { bytes, taus, cost })
    }

    /// ns a byte of a transfer alone, as it is at the nearest measured size.
    pub fn per_byte(&self, bytes: u64) -> Option<f64> {
        let nearest = bytes.clamp(*self.bytes.first()?, *self.bytes.last()?);
        Some(self.at(nearest as usize, 1).nanos / nearest as f64)
    }

    /// Returns whether the axes ascend and the grid is full: what every function here relies on.
    pub fn is_well_formed(&self) -> bool {
        let ascends = |n: usize, less: &dyn Fn(usize) -> bool| n > 0 && (1..n).all(less);
        ascends(self.bytes.len(), &|i| self.bytes[i - 1] < self.bytes[i])
            && ascends(self.taus.len(), &|i| self.taus[i - 1] < self.taus[i])
            && self.cost.len() == self.bytes.len()
            && self.cost.iter().all(|row| row.len() == self.taus.len())
    }

    /// A straight line `alpha + beta m`, for machines of which only that is known.
    pub fn line(alpha: Fitted, beta: Fitted) -> Surface {
        let bytes = vec![0, 1 << 20];
        let cost = bytes.iter().map(|&b| vec![alpha.plus(beta.inferred(b as f64))]).collect();
        Surface { bytes, taus: vec![1], cost }
    }

    /// L(m, tau). Piecewise linear in both; beyond the largest size the last slope goes on, below the smallest
    /// the smallest value holds (a line costs a line), and beyond the largest tau the last slope in tau goes
    /// on. Values beyond the grid are marked.
    pub fn at(&self, bytes: usize, tau: usize) -> Reading {
        let (row, mut extrapolated) = bracket(&self.bytes, bytes as u64, false);
        let t = u32::try_from(tau.max(1)).unwrap_or(u32::MAX);
        let (column, beyond) = bracket(&self.taus, t, true);
        extrapolated |= beyond;
        let cell = |i: usize, j: usize| self.cost[i][j].value;
        let along = |i: usize| {
            let (a, b, f) = column;
            cell(i, a) + (cell(i, b) - cell(i, a)) * f
        };
        let (a, b, f) = row;
        let nanos = along(a) + (along(b) - along(a)) * f;
        Reading { nanos: nanos.max(0.0), extrapolated }
    }

    /// The cost of one transfer alone with its interval, for reports: the interval of the nearest measured
    /// size, in proportion.
    pub fn reported(&self, bytes: usize) -> Fitted {
        let value = self.at(bytes, 1).nanos;
        let gap = |i: &usize| self.bytes[*i].abs_diff(bytes as u64);
        let node = (0..self.bytes.len()).min_by_key(gap).map(|i| self.cost[i][0]);
        match node {
            Some(n) if n.value > 0.0 => {
                let ratio = value / n.value;
                Fitted { value, ci_low: n.ci_low * ratio, ci_high: n.ci_high * ratio, ..n }
            }
            Some(n) => Fitted::new(value, n.provenance),
            None => Fitted::assumed(value),
        }
    }
}

/// Indices around `x` and the fraction between them; above the range the last segment goes on, below it the
/// first value holds. The flag says whether `x` lies beyond the axis (below it counts only when `strict`).
fn bracket<T: Copy + Ord + Into<u64>>(axis: &[T], x: T, strict: bool) -> ((usize, usize, f64), bool) {
    let last = axis.len() - 1;
    if x <= axis[0] {
        return ((0, 0, 0.0), strict && x < axis[0]);
    }
    if last == 0 {
        return ((0, 0, 0.0), true);
    }
    let hi = axis.partition_point(|&a| a < x).min(last);
    let lo = hi - 1;
    let gap = |a: T, b: T| (b.into() - a.into()) as f64;
    ((lo, hi, gap(axis[lo], x) / gap(axis[lo], axis[hi])), x > axis[last])
}

/// Weighted isotonic regression of a sequence: pool adjacent violators.
pub fn isotonic(values: &[f64], weights: &[f64]) -> Vec<f64> {
    // Blocks of (mean, weight, length), merged while they decrease.
    let mut blocks: Vec<(f64, f64, usize)> = Vec::with_capacity(values.len());
    for (&v, &w) in values.iter().zip(weights) {
        blocks.push((v, w, 1));
        while let [.., a, b] = blocks[..] {
            if a.0 <= b.0 {
                break;
            }
            let w = a.1 + b.1;
            blocks.pop();
            blocks.pop();
            blocks.push(((a.0 * a.1 + b.0 * b.1) / w, w, a.2 + b.2));
        }
    }
    blocks.iter().flat_map(|&(v, _, n)| std::iter::repeat_n(v, n)).collect()
}

/// The grid nearest to `values` (weighted) that grows along rows and along columns.
pub fn isotonic_grid(values: &[Vec<f64>], weights: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let (n, k) = (values.len(), values.first().map_or(0, Vec::len));
    let mut now = values.to_vec();
    let (mut by_row, mut by_column) = (vec![vec![0.0; k]; n], vec![vec![0.0; k]; n]);
    let scale = values.iter().flatten().fold(0.0_f64, |a, v| a.max(v.abs())).max(1e-300);
    for _ in 0..500 {
        let before = now.clone();
        for i in 0..n {
            let aim: Vec<f64> = (0..k).map(|j| now[i][j] - by_row[i][j]).collect();
            let fit = isotonic(&aim, &weights[i]);
            for j in 0..k {
                by_row[i][j] = fit[j] - aim[j];
                now[i][j] = fit[j];
            }
        }
        for j in 0..k {
            let aim: Vec<f64> = (0..n).map(|i| now[i][j] - by_column[i][j]).collect();
            let w: Vec<f64> = (0..n).map(|i| weights[i][j]).collect();
            let fit = isotonic(&aim, &w);
            for i in 0..n {
                by_column[i][j] = fit[i] - aim[i];
                now[i][j] = fit[i];
            }
        }
        let moved = now.iter().flatten().zip(before.iter().flatten());
        if moved.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max) <= 1e-9 * scale {
            break;
        }
    }
    // What is left of a violation is rounding: close it upwards.
    for i in 0..n {
        for j in 0..k {
            let above = if i > 0 { now[i - 1][j] } else { f64::MIN };
            let left = if j > 0 { now[i][j - 1] } else { f64::MIN };
            now[i][j] = now[i][j].max(above).max(left);
        }
    }
    now
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn measured(bytes: u64, tau: u32, value: f64) -> Point {
        let cost = Fitted { value, ci_low: value, ci_high: value, provenance: Provenance::Measured };
        Point { bytes, tau, cost, weight: 1.0 }
    }

    #[test]
    fn violators_are_pooled_by_weight() {
        assert_eq!(isotonic(&[1.0, 3.0, 2.0], &[1.0, 1.0, 1.0]), vec![1.0, 2.5, 2.5]);
        assert_eq!(isotonic(&[4.0, 1.0], &[3.0, 1.0]), vec![3.25, 3.25]);
    }

    #[test]
    fn readings_interpolate_and_mark_what_lies_beyond() {
        let s = Surface::from_points(&[
            measured(64, 1, 10.0),
            measured(128, 1, 20.0),
            measured(64, 2, 12.0),
            measured(128, 2, 30.0),
        ])
        .unwrap();
        assert_eq!(s.at(96, 1), Reading { nanos: 15.0, extrapolated: false });
        assert_eq!(s.at(96, 2), Reading { nanos: 21.0, extrapolated: false });
        assert_eq!(s.at(192, 1), Reading { nanos: 30.0, extrapolated: true });
        assert_eq!(s.at(128, 3), Reading { nanos: 40.0, extrapolated: true });
        assert_eq!(s.at(8, 1), Reading { nanos: 10.0, extrapolated: false });
    }

    #[test]
    fn a_decreasing_pair_in_tau_is_levelled() {
        let s = Surface::from_points(&[measured(64, 1, 12.0), measured(64, 2, 10.0)]).unwrap();
        assert_eq!(s.at(64, 1).nanos, 11.0);
        assert_eq!(s.at(64, 2).nanos, 11.0);
    }

    proptest! {
        #[test]
        fn grids_become_monotone_and_monotone_grids_stay(
            values in proptest::collection::vec(proptest::collection::vec(1.0..100.0f64, 4), 5),
            weights in proptest::collection::vec(proptest::collection::vec(0.1..10.0f64, 4), 5),
        ) {
            let fit = isotonic_grid(&values, &weights);
            for i in 0..5 {
                for j in 0..4 {
                    prop_assert!(i == 0 || fit[i][j] >= fit[i - 1][j]);
                    prop_assert!(j == 0 || fit[i][j] >= fit[i][j - 1]);
                }
            }
            let again = isotonic_grid(&fit, &weights);
            for (a, b) in fit.iter().flatten().zip(again.iter().flatten()) {
                prop_assert!((a - b).abs() < 1e-6);
            }
        }
    }
}

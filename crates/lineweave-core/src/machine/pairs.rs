//! Latencies of every pair of a machine's CPUs, as somebody measured them.

use super::read;
use crate::topology::Topology;
use serde::Deserialize;

/// Costs of moving a line between each two CPUs, in ns, the same both ways.
#[derive(Clone, PartialEq, Debug)]
pub struct Matrix {
    /// The operating system's numbers, ascending.
    cpus: Vec<usize>,
    /// Row by row, zero on the diagonal.
    ns: Vec<f64>,
}

impl Matrix {
    /// `ns(i, j)` of each two of these CPUs by their indices, i > j. CPUs may be in any order and occur once.
    pub fn new(cpus: &[usize], ns: impl Fn(usize, usize) -> f64) -> Matrix {
        let mut order: Vec<usize> = (0..cpus.len()).collect();
        order.sort_by_key(|&i| cpus[i]);
        let n = cpus.len();
        let mut matrix = Matrix { cpus: order.iter().map(|&i| cpus[i]).collect(), ns: vec![0.0; n * n] };
        for (row, &a) in order.iter().enumerate() {
            for (column, &b) in order[..row].iter().enumerate() {
                let value = ns(a.max(b), a.min(b));
                matrix.ns[row * n + column] = value;
                matrix.ns[column * n + row] = value;
            }
        }
        matrix
    }

    /// The CPUs' numbers, ascending.
    pub fn cpus(&self) -> &[usize] {
        &self.cpus
    }

    /// Between the CPUs of these numbers; `None` for one that is not in the matrix, and for one and the same.
    pub fn between(&self, a: usize, b: usize) -> Option<f64> {
        let (i, j) = (self.cpus.binary_search(&a).ok()?, self.cpus.binary_search(&b).ok()?);
        (i != j).then(|| self.ns[i * self.cpus.len() + j])
    }

    /// Every two CPUs once, with what lies between them.
    pub fn pairs(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let n = self.cpus.len();
        (0..n).flat_map(move |i| (i + 1..n).map(move |j| (self.cpus[i], self.cpus[j], self.ns[i * n + j])))
    }
}

/// The matrix that a description names, and what stands in for what no matrix tells.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MatrixFile {
    /// The file, from where the description lies.
    #[serde(deserialize_with = "read::words")]
    pub file: String,
    /// Origin of the measurements.
    #[serde(deserialize_with = "read::words")]
    pub source: String,
    /// The description whose other values are taken; the generic one of the instruction set where none is named.
    pub like: Option<String>,
}

/// Facts of a machine that its matrix tells.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// The matrix.
    pub matrix: Matrix,
    /// Its CPUs with their numbers, neighbours first.
    pub topology: Topology,
    /// The package in which the lines lay that were timed, where pairs in other packages took longer.
    pub home: Option<usize>,
    /// Assumptions about the matrix: sentences.
    pub remarks: Vec<String>,
    /// Values that were taken from other descriptions: what, how much, and whose.
    pub assumed: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_found_by_their_numbers_in_whatever_order_they_came() {
        let matrix = Matrix::new(&[8, 0, 4], |i, j| (10 * i + j) as f64);
        assert_eq!(matrix.cpus(), [0, 4, 8]);
        let between = |a, b| (matrix.between(a, b), matrix.between(b, a));
        assert_eq!(between(8, 0), (Some(10.0), Some(10.0)));
        assert_eq!(between(8, 4), (Some(20.0), Some(20.0)));
        assert_eq!(between(0, 4), (Some(21.0), Some(21.0)));
        assert_eq!((matrix.between(0, 1), matrix.between(4, 4)), (None, None));
        assert_eq!(matrix.pairs().collect::<Vec<_>>(), [(0, 4, 21.0), (0, 8, 10.0), (4, 8, 20.0)]);
    }
}

//! Pairs whose latency is so low that they would pass for neighbours, and are none.
//!
//! CPUs that share a core or a cache are as far from any other CPU as each other. Where of two that are nearest to each other the next one of each is
//! far from the other, the pair was timed wrongly: for finding groups, what the third CPU that is nearest to both of them says stands in. One such
//! pair would bring two caches together, or part a core. Other wrong latencies do not: groups are joined by averages.

use crate::models::classes::ODD;
use lineweave_core::machine::Matrix;

/// Fewest CPUs of a matrix whose pairs are judged: of fewer, the others are too few to say.
const FEWEST: usize = 8;

/// Two CPUs, and what lies between them.
type Pair = (usize, usize, f64);

/// All pairs, for finding groups, and those whose latency is not believed.
pub(super) fn believed(matrix: &Matrix) -> (Vec<Pair>, Vec<(usize, usize)>) {
    let (cpus, n) = (matrix.cpus(), matrix.cpus().len());
    let mut ns = vec![f64::INFINITY; n * n];
    for (at, ns) in ns.iter_mut().enumerate() {
        *ns = matrix.between(cpus[at / n], cpus[at % n]).unwrap_or(*ns);
    }
    let mut wrong = Vec::new();
    for i in (0..n).filter(|_| n >= FEWEST) {
        // Its nearest one; then the next, if that was none.
        while let Some(j) = (0..n).min_by(|&a, &b| ns[i * n + a].total_cmp(&ns[i * n + b])) {
            let others = (0..n).filter(|&k| k != i && k != j);
            let third =
                others.clone().map(|k| ns[i * n + k].max(ns[j * n + k])).fold(f64::INFINITY, f64::min);
            let parted = |a: usize, b: usize| {
                let nearest = others.clone().min_by(|&k, &l| ns[a * n + k].total_cmp(&ns[a * n + l]));
                nearest.is_some_and(|k| ns[b * n + k] > ODD * ns[a * n + k])
            };
            if third <= ns[i * n + j] || !parted(i, j) || !parted(j, i) {
                break;
            }
            (ns[i * n + j], ns[j * n + i]) = (third, third);
            wrong.push((cpus[i.min(j)], cpus[i.max(j)]));
        }
    }
    let pairs = (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j)));
    (pairs.map(|(i, j)| (cpus[i], cpus[j], ns[i * n + j])).collect(), wrong)
}

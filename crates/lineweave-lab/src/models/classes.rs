//! Classes of CPU pairs from a matrix of latencies: which distances a machine has, found and not assumed.
//!
//! 1. The pairs' latencies, by logarithm, are split into the K intervals of least squared error (Fisher 1958; Jenks), for
//!    each K. K is the one of least BIC, n ln(SSE / n) + 2 K ln n, a class being no tighter than its pairs were measured.
//!    Neighbours whose means differ by less than [`APART`] are one: no plan would do otherwise for so little.
//! 2. The CPUs are joined to a tree by average linkage, which a few wrong pairs cannot bend. Each border between two
//!    intervals cuts it into groups. A border was made by outliers, and goes, when it regroups fewer than a share
//!    [`REGROUPED`] of the CPUs beside the one before it, or when as many CPUs are not grouped with those that are nearer to
//!    them than the border (Jaccard index below [`ALIKE`]).
//! 3. A pair's class is the first border under which its CPUs are together. Pairs that are far from the median of their
//!    class are listed: many of them mean that the machine is no hierarchy, as a mesh is none.
//!
//! Valid for up to some hundred CPUs (the tree is built in cubic time).

use lineweave_core::model::{Fitted, Provenance};
use lineweave_core::profile::{Profile, Stats};
use lineweave_core::topology::{Level, Topology};

/// Classes whose means differ by less than this share are one.
pub const APART: f64 = 0.10;
/// A pair is odd when it is so many times off the median of its class, either way.
pub const ODD: f64 = 1.3;
/// More odd pairs than this share, and the classes do not describe the machine.
pub const ODD_SHARE: f64 = 0.1;
/// A border must put this share of the CPUs into other groups than the one before it.
pub const REGROUPED: f64 = 0.2;
/// A CPU's group, and the CPUs nearer to it than the border, must be as alike as this.
pub const ALIKE: f64 = 0.7;
/// The share of CPUs that may be in another group than a level's, for a class to have its name.
const MISNAMED: f64 = 0.1;
/// The most classes looked for: five levels, and as many for outliers.
const MOST: usize = 10;
/// Sorted latencies are bundled to so many before they are split.
const BUNDLES: usize = 400;

/// The latencies between CPUs, in ns, symmetric.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Latencies {
    cpus: Vec<usize>,
    /// Pairs a < b of indices, each with the median and its standard error.
    pairs: Vec<(usize, usize, f64, f64)>,
}

/// Reason why a profile has no matrix of latencies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LatenciesError {
    /// A pair is missing.
    #[error("no latency between CPUs {a} and {b}: expected every pair of {cpus} CPUs to be measured")]
    Missing {
        /// A CPU.
        a: usize,
        /// Another CPU.
        b: usize,
        /// CPUs that occur.
        cpus: usize,
    },
    /// A latency that no measurement gives.
    #[error("latency between CPUs {a} and {b}: expected a number above 0, found {found}")]
    Bad {
        /// A CPU.
        a: usize,
        /// Another CPU.
        b: usize,
        /// Value that was found.
        found: String,
    },
    /// No pair at all.
    #[error("expected the latencies of pairs of CPUs (probe `pair` with factors a and b), found none")]
    None,
}

impl Latencies {
    /// Builds latencies from the pairs (a, b, ns, standard error in ns); of a pair given both ways the mean counts.
    ///
    /// # Errors
    /// [`LatenciesError`] when a pair of the CPUs that occur is missing or no positive number.
    pub fn new(list: &[(usize, usize, f64, f64)]) -> Result<Latencies, LatenciesError> {
        let mut cpus: Vec<usize> = list.iter().flat_map(|p| [p.0, p.1]).collect();
        cpus.sort_unstable();
        cpus.dedup();
        let n = cpus.len();
        let mut sums = vec![(0.0, 0.0, 0u32); n * n];
        for &(a, b, ns, sigma) in list {
            if !ns.is_finite() || ns <= 0.0 || a == b {
                return Err(LatenciesError::Bad { a, b, found: ns.to_string() });
            }
            let index = |cpu| cpus.partition_point(|&c| c < cpu);
            let (i, j) = (index(a).min(index(b)), index(a).max(index(b)));
            let sum = &mut sums[i * n + j];
            *sum = (sum.0 + ns, sum.1 + sigma.abs(), sum.2 + 1);
        }
        let mut pairs = Vec::new();
        for i in 0..n {
            for j in i + 1..n {
                match sums[i * n + j] {
                    (_, _, 0) => return Err(LatenciesError::Missing { a: cpus[i], b: cpus[j], cpus: n }),
                    (ns, sigma, count) => {
                        pairs.push((i, j, ns / f64::from(count), sigma / f64::from(count)));
                    }
                }
            }
        }
        match pairs.is_empty() {
            true => Err(LatenciesError::None),
            false => Ok(Latencies { cpus, pairs }),
        }
    }

    /// The cells of probe `pair`: factors `a` and `b`, CPU numbers.
    ///
    /// # Errors
    /// [`LatenciesError`] as of [`Latencies::new`].
    pub fn of(profile: &Profile) -> Result<Latencies, LatenciesError> {
        let mut list = Vec::new();
        for cell in profile.probe("pair") {
            let cpu = |name: &str| cell.factors.get(name).and_then(|t| t.parse().ok());
            let (Some(a), Some(b)) = (cpu("a"), cpu("b")) else { return Err(LatenciesError::None) };
            let s = &cell.stats;
            list.push((a, b, s.median, (s.ci_high - s.ci_low) / 3.92));
        }
        Latencies::new(&list)
    }
}

/// Pairs that are equally far apart.
#[derive(Clone, PartialEq, Debug)]
pub struct Class {
    /// Median of the pairs' latencies, with the rank-based interval.
    pub latency: Fitted,
    /// Number of pairs.
    pub pairs: usize,
    /// The CPUs that are together at this distance or a nearer one.
    pub groups: Vec<Vec<usize>>,
}

/// Classes of CPU pairs that were found.
#[derive(Clone, PartialEq, Debug)]
pub struct Classes {
    /// Classes, nearest first.
    pub classes: Vec<Class>,
    /// Pairs of CPUs whose latency is not that of their class.
    pub odd: Vec<(usize, usize)>,
    /// True if the classes describe the machine: at most a share [`ODD_SHARE`] of its pairs are odd.
    pub hierarchical: bool,
}

impl Classes {
    /// The level of a topology whose groups a class's groups are, class by class: the name that the topology gives to what
    /// was found. One CPU in ten may be elsewhere, since of two hardware threads of a core a single pair tells. `None`
    /// where no level groups the CPUs so.
    pub fn named(&self, topology: &Topology) -> Vec<Option<Level>> {
        let name = |class: &Class| {
            Level::ALL.into_iter().find(|&level| {
                let together = |a: usize, b: usize| {
                    let find = |os| topology.cpus.iter().find(|c| c.os == os);
                    find(a).zip(find(b)).is_some_and(|(a, b)| a.common(b) <= level)
                };
                let all: Vec<usize> = class.groups.iter().flatten().copied().collect();
                let astray = class.groups.iter().flat_map(|group| group.iter().map(move |&a| (group, a)));
                let astray =
                    astray.filter(|&(group, a)| all.iter().any(|&b| together(a, b) != group.contains(&b)));
                astray.count() as f64 <= MISNAMED * all.len() as f64
            })
        };
        self.classes.iter().map(name).collect()
    }
}

/// The classes of a machine's pairs.
pub fn classes(latencies: &Latencies) -> Classes {
    let n = latencies.cpus.len();
    let mut matrix = vec![0.0; n * n];
    for &(i, j, ns, _) in &latencies.pairs {
        matrix[i * n + j] = ns.ln();
        matrix[j * n + i] = ns.ln();
    }
    let joins = tree(&matrix, n);
    let mut cuts: Vec<Vec<usize>> = Vec::new();
    let singles: Vec<usize> = (0..n).collect();
    for border in borders(latencies) {
        let groups = cut(&joins, n, border);
        if !follows(&matrix, &groups, border) {
            continue;
        }
        match cuts.last_mut() {
            // A little more of the same level: a pair whose latency is wild joins late.
            Some(last) if !regroups(last, &groups) => *last = groups,
            Some(_) => cuts.push(groups),
            None if regroups(&singles, &groups) => cuts.push(groups),
            None => {}
        }
    }
    let whole = cut(&joins, n, f64::INFINITY);
    if cuts.last().is_some_and(|last| !regroups(last, &whole)) {
        cuts.pop();
    }
    cuts.push(whole);
    let mut samples = vec![Vec::new(); cuts.len()];
    let class_of = |i: usize, j: usize| cuts.iter().position(|c| c[i] == c[j]).unwrap_or(cuts.len() - 1);
    for &(i, j, ns, _) in &latencies.pairs {
        samples[class_of(i, j)].push(ns);
    }
    let stats: Vec<Option<Stats>> = samples.iter().map(|s| Stats::of(s, 0)).collect();
    let mut odd = Vec::new();
    for &(i, j, ns, _) in &latencies.pairs {
        let typical = stats[class_of(i, j)].map_or(ns, |s| s.median);
        if (ns / typical).max(typical / ns) > ODD {
            odd.push((latencies.cpus[i], latencies.cpus[j]));
        }
    }
    let groups = |cut: &Vec<usize>| {
        let mut list: Vec<Vec<usize>> = vec![Vec::new(); n];
        (0..n).for_each(|i| list[cut[i]].push(latencies.cpus[i]));
        list.into_iter().filter(|g| !g.is_empty()).collect()
    };
    let classes = cuts.iter().zip(&stats).filter_map(|(cut, stats)| {
        let s = (*stats)?;
        let latency = Fitted {
            value: s.median,
            ci_low: s.ci_low,
            ci_high: s.ci_high,
            provenance: Provenance::Measured,
        };
        Some(Class { latency, pairs: s.samples, groups: groups(cut) })
    });
    let hierarchical = odd.len() as f64 <= ODD_SHARE * latencies.pairs.len() as f64;
    Classes { classes: classes.collect(), odd, hierarchical }
}

/// Returns whether most CPUs are grouped with those that are nearer to them than the border.
fn follows(matrix: &[f64], groups: &[usize], border: f64) -> bool {
    let n = groups.len();
    let alike = |&i: &usize| {
        let (mut both, mut either) = (0, 0);
        for j in (0..n).filter(|&j| j != i) {
            let (near, mate) = (matrix[i * n + j] < border, groups[i] == groups[j]);
            both += usize::from(near && mate);
            either += usize::from(near || mate);
        }
        both as f64 >= ALIKE * either as f64
    };
    (0..n).filter(alike).count() as f64 > (1.0 - REGROUPED) * n as f64
}

/// Returns whether enough CPUs are in a group of another size.
fn regroups(before: &[usize], after: &[usize]) -> bool {
    let sizes = |groups: &[usize]| {
        let mut sizes = vec![0usize; groups.len()];
        groups.iter().for_each(|&g| sizes[g] += 1);
        sizes
    };
    let (b, a) = (sizes(before), sizes(after));
    let changed = before.iter().zip(after).filter(|(&x, &y)| b[x] != a[y]).count();
    changed as f64 >= REGROUPED * before.len() as f64 && changed > 0
}

/// Sums over some consecutive values, of which the squared error follows.
#[derive(Clone, Copy, Default)]
struct Sums {
    n: f64,
    x: f64,
    xx: f64,
}

impl Sums {
    fn error(a: Sums, b: Sums) -> f64 {
        let (n, x, xx) = (b.n - a.n, b.x - a.x, b.xx - a.xx);
        (xx - x * x / n.max(1.0)).max(0.0)
    }

    fn mean(a: Sums, b: Sums) -> f64 {
        (b.x - a.x) / (b.n - a.n).max(1.0)
    }
}

/// The borders between intervals of log latency: step 1.
fn borders(latencies: &Latencies) -> Vec<f64> {
    let mut values: Vec<f64> = latencies.pairs.iter().map(|p| p.2.ln()).collect();
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let mut errors: Vec<f64> = latencies.pairs.iter().map(|p| p.3 / p.2).collect();
    errors.sort_by(f64::total_cmp);
    let floor = errors[errors.len() / 2].max(1e-3).powi(2);
    let middle = values[values.len() / 2]; // Sums about the middle lose no digits.
    let mut sums = vec![Sums::default()];
    for bundle in values.chunks(values.len().div_ceil(BUNDLES)) {
        let mut sum = sums[sums.len() - 1];
        for v in bundle.iter().map(|v| v - middle) {
            sum = Sums { n: sum.n + 1.0, x: sum.x + v, xx: sum.xx + v * v };
        }
        sums.push(sum);
    }
    let m = sums.len() - 1;
    // best[k][i]: least error of the first i bundles in k + 1 intervals; from[k][i]: where the last begins.
    let mut best: Vec<Vec<f64>> = vec![(0..=m).map(|i| Sums::error(sums[0], sums[i])).collect()];
    let mut from: Vec<Vec<usize>> = vec![vec![0; m + 1]];
    for k in 1..MOST.min(m) {
        let (mut row, mut begin) = (vec![0.0; m + 1], vec![0; m + 1]);
        for i in 1..=m {
            let all = (k.min(i - 1)..i).map(|j| (best[k - 1][j] + Sums::error(sums[j], sums[i]), j));
            let least = all.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or((0.0, 0));
            (row[i], begin[i]) = least;
        }
        best.push(row);
        from.push(begin);
    }
    let bic = |k: usize| n * (best[k][m] / n).max(floor).ln() + 2.0 * (k + 1) as f64 * n.max(2.0).ln();
    let k = (0..best.len()).min_by(|&a, &b| bic(a).total_cmp(&bic(b))).unwrap_or(0);
    let mut ends = vec![m];
    for k in (1..=k).rev() {
        ends.push(from[k][ends[ends.len() - 1]]);
    }
    ends.push(0);
    ends.reverse();
    ends.dedup();
    let means: Vec<f64> = ends.windows(2).map(|w| Sums::mean(sums[w[0]], sums[w[1]]) + middle).collect();
    means.windows(2).filter(|w| w[1] - w[0] > APART.ln_1p()).map(|w| (w[0] + w[1]) / 2.0).collect()
}

/// A join of two groups of CPUs at a mean log latency.
struct Join {
    a: usize,
    b: usize,
    height: f64,
}

/// The average-linkage tree: step 2.
fn tree(matrix: &[f64], n: usize) -> Vec<Join> {
    let mut distance = matrix.to_vec();
    let mut size = vec![1.0; n];
    let mut alive: Vec<usize> = (0..n).collect();
    let mut joins = Vec::new();
    // The nearest of those behind each: looked for again only where a join may have changed it.
    let nearest_of = |distance: &[f64], alive: &[usize], i: usize| {
        let behind = &alive[alive.partition_point(|&j| j <= i)..];
        let all = behind.iter().map(|&j| (distance[i * n + j], j));
        all.fold((f64::INFINITY, n), |best, this| if this.0 < best.0 { this } else { best })
    };
    let mut nearest: Vec<(f64, usize)> = (0..n).map(|i| nearest_of(&distance, &alive, i)).collect();
    while alive.len() > 1 {
        let first = alive.iter().copied().min_by(|&i, &j| nearest[i].0.total_cmp(&nearest[j].0));
        let a = first.unwrap_or(0);
        let (height, b) = nearest[a];
        joins.push(Join { a, b, height });
        for &c in alive.iter().filter(|&&c| c != a && c != b) {
            let mean = (distance[a * n + c] * size[a] + distance[b * n + c] * size[b]) / (size[a] + size[b]);
            distance[a * n + c] = mean;
            distance[c * n + a] = mean;
        }
        size[a] += size[b];
        alive.retain(|&c| c != b);
        for &c in alive.iter().take_while(|&&c| c < b) {
            let (least, partner) = nearest[c];
            let to_a = distance[c * n + a];
            if c == a || partner == a || partner == b {
                nearest[c] = nearest_of(&distance, &alive, c);
            } else if c < a && (to_a < least || (to_a == least && a < partner)) {
                nearest[c] = (to_a, a);
            }
        }
    }
    joins
}

/// Returns the first CPU of each CPU's group, with all joins below the border done.
fn cut(joins: &[Join], n: usize, border: f64) -> Vec<usize> {
    let mut group: Vec<usize> = (0..n).collect();
    for join in joins.iter().filter(|j| j.height < border) {
        let (a, b) = (group[join.a], group[join.b]);
        let (keep, drop) = (a.min(b), a.max(b));
        group.iter_mut().filter(|g| **g == drop).for_each(|g| *g = keep);
    }
    group
}

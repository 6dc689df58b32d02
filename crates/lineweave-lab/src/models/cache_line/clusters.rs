//! Clusters of states and places that cost the same: the step from Table 1.6 to 1.5b and from 1.7 to 1.8.
//!
//! The paper groups by eye what differs by less than the noise of its measurements. Here that is agglomerative
//! clustering: the two nearest clusters are joined until no two are within one standard deviation of each other.

use super::{symbol, CacheLineError};
use lineweave_core::machine::{Location, Machine, State};

/// Clusters nearer than this many standard deviations are one: a difference within the noise.
pub const NOISE: f64 = 1.0;

/// One measured R.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cell {
    /// Place of the line.
    pub location: Location,
    /// State of the line.
    pub state: State,
    /// Mean, ns.
    pub mean: f64,
    /// Standard deviation, ns.
    pub stdev: f64,
}

impl Cell {
    /// The difference of two cells in units of their common standard deviation (Cohen's d for samples of one size).
    fn distance(&self, other: &Cell) -> f64 {
        let noise = ((self.stdev * self.stdev + other.stdev * other.stdev) / 2.0).sqrt();
        (self.mean - other.mean).abs() / noise.max(f64::MIN_POSITIVE)
    }
}

/// Cells that cost the same.
#[derive(Clone, PartialEq, Debug)]
pub struct Cluster {
    /// Cells of the cluster, in the order of the machine's table.
    pub cells: Vec<Cell>,
}

impl Cluster {
    /// The cell that stands for all: as in the paper, the line's nearest place if it is invalid, else the middle
    /// of the ring where there is such a cell, and of states the exclusive one, else the first.
    pub fn representative(&self) -> &Cell {
        let rank = |cell: &Cell| {
            let middle = cell.location == Location::Middle && cell.state != State::I;
            (!middle, cell.location, cell.state != State::E, cell.state)
        };
        // A cluster is made of at least one cell.
        self.cells.iter().min_by_key(|c| rank(c)).unwrap_or(&self.cells[0])
    }

    /// Mean distance between the cells of two clusters.
    fn distance(&self, other: &Cluster) -> f64 {
        let pairs = self.cells.iter().flat_map(|a| other.cells.iter().map(move |b| a.distance(b)));
        pairs.sum::<f64>() / (self.cells.len() * other.cells.len()) as f64
    }
}

/// The cells of a machine's table of states.
///
/// # Errors
/// [`CacheLineError`] when it has none, or a cell of it is unknown.
pub fn cells(machine: &Machine) -> Result<Vec<Cell>, CacheLineError> {
    if machine.reads.is_empty() {
        return Err(CacheLineError::unknown("R by state", machine, "measured only for modified lines"));
    }
    let cell = |read: &lineweave_core::machine::LineRead| match (read.mean_ns.value, read.stdev_ns.value) {
        (Some(mean), Some(stdev)) => Ok(Cell { location: read.location, state: read.state, mean, stdev }),
        (None, _) | (_, None) => {
            Err(CacheLineError::unknown(symbol(read.location, read.state), machine, &read.mean_ns.source))
        }
    };
    machine.reads.iter().map(cell).collect()
}

/// The clusters of some cells, cheapest first: average linkage, until the nearest two are `noise` standard
/// deviations apart ([`NOISE`] gives the paper's tables).
pub fn clusters(cells: &[Cell], noise: f64) -> Vec<Cluster> {
    let mut clusters: Vec<Cluster> = cells.iter().map(|&c| Cluster { cells: vec![c] }).collect();
    loop {
        let pairs = (0..clusters.len()).flat_map(|a| (a + 1..clusters.len()).map(move |b| (a, b)));
        let nearest = pairs
            .map(|(a, b)| (clusters[a].distance(&clusters[b]), a, b))
            .min_by(|x, y| x.0.total_cmp(&y.0).then((x.1, x.2).cmp(&(y.1, y.2))));
        match nearest {
            Some((distance, a, b)) if distance < noise => {
                let joined = clusters.remove(b);
                clusters[a].cells.extend(joined.cells);
            }
            Some(_) | None => break,
        }
    }
    let place = |c: &Cell| cells.iter().position(|x| x == c);
    clusters.iter_mut().for_each(|cluster| cluster.cells.sort_by_key(place));
    clusters.sort_by(|a, b| a.representative().mean.total_cmp(&b.representative().mean));
    clusters
}

//! Times by task and length, each the median of several launches.

use super::Line;
use crate::bench::mpi::median;
use std::collections::BTreeMap;

/// The key of a time: a collective or a task of the channel, and its length.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cell {
    /// The name of the task in `channel.c`.
    pub task: String,
    /// Length of the message, or of a block.
    pub bytes: u64,
}

impl Cell {
    /// Makes the key of this task and length.
    pub fn new(task: &str, bytes: u64) -> Cell {
        Cell { task: task.to_owned(), bytes }
    }
}

/// Medians of launches, ns.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Curves(BTreeMap<Cell, Vec<f64>>);

impl Curves {
    /// Adds the times of one launch: for each case, the median of its batches.
    pub fn add(&mut self, lines: &[Line]) {
        for line in lines {
            self.0.entry(Cell::new(&line.task, line.bytes)).or_default().push(median(&line.times));
        }
    }

    /// Adds the launches of other curves.
    pub fn extend(&mut self, other: &Curves) {
        for (cell, launches) in &other.0 {
            self.0.entry(cell.clone()).or_default().extend(launches);
        }
    }

    /// Adds one time of a launch.
    #[cfg(test)]
    pub fn push(&mut self, cell: Cell, nanos: f64) {
        self.0.entry(cell).or_default().push(nanos);
    }

    /// Returns the median of the launches.
    pub fn at(&self, task: &str, bytes: u64) -> Option<f64> {
        self.launches(task, bytes).map(median)
    }

    /// Returns each launch's time, in the order of launches.
    pub fn launches(&self, task: &str, bytes: u64) -> Option<&[f64]> {
        self.0.get(&Cell::new(task, bytes)).map(Vec::as_slice)
    }

    /// Returns the timed cases, each with its median.
    pub fn cells(&self) -> impl Iterator<Item = (&Cell, f64)> {
        self.0.iter().map(|(cell, times)| (cell, median(times)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_and_a_launch_that_were_disturbed_do_not_count() {
        let line = |times: &[f64]| Line { task: "bcast".into(), bytes: 8, times: times.to_vec() };
        let mut curves = Curves::default();
        curves.add(&[line(&[10.0, 900.0, 11.0])]);
        curves.add(&[line(&[5000.0])]);
        curves.add(&[line(&[12.0])]);
        assert_eq!((curves.at("bcast", 8), curves.at("bcast", 9)), (Some(12.0), None));
        assert_eq!(curves.launches("bcast", 8), Some(&[11.0, 5000.0, 12.0][..]));
    }
}

//! Times by task and length, each the median of several launches.

use super::Line;
use crate::bench::mpi::{median, quantile};
use std::collections::BTreeMap;

/// The prefix of tasks whose lines tell code instead of times.
pub const CODE: &str = "code-";

/// The share of a case's batches below whose times its time lies: other work, which comes and goes, makes batches longer and none shorter.
const QUIET: f64 = 0.25;

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
    /// Adds the times of one launch: for each case, the lower quartile of its batches. Of code the first launch's is kept, whole.
    pub fn add(&mut self, lines: &[Line]) {
        for line in lines {
            if line.task.starts_with(CODE) {
                self.0.entry(Cell::new(&line.task, line.bytes)).or_insert_with(|| line.times.clone());
                continue;
            }
            self.0.entry(Cell::new(&line.task, line.bytes)).or_default().push(quantile(&line.times, QUIET));
        }
    }

    /// Adds the launches of other curves.
    pub fn extend(&mut self, other: &Curves) {
        for (cell, launches) in &other.0 {
            self.0.entry(cell.clone()).or_default().extend(launches);
        }
    }

    /// Scales the times of each launch so that the default's of the same launch would have been its median, in cells that the same launches timed.
    pub fn level(&mut self, default: &Curves) {
        for (cell, times) in self.0.iter_mut().filter(|(cell, _)| !cell.task.starts_with(CODE)) {
            let Some(defaults) = default.0.get(cell).filter(|d| d.len() == times.len()) else { continue };
            let usual = median(defaults);
            times.iter_mut().zip(defaults).for_each(|(time, default)| *time *= usual / default);
        }
    }

    /// Returns the times of one launch alone, by its place among the launches.
    pub fn launch(&self, place: usize) -> Curves {
        let one = |(cell, times): (&Cell, &Vec<f64>)| Some((cell.clone(), vec![*times.get(place)?]));
        Curves(self.0.iter().filter_map(one).collect())
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
        self.all().map(|(cell, times)| (cell, median(times)))
    }

    /// Returns the cases, each with its launches or its code.
    pub fn all(&self) -> impl Iterator<Item = (&Cell, &[f64])> {
        self.0.iter().map(|(cell, times)| (cell, times.as_slice()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_and_a_launch_that_were_disturbed_do_not_count() {
        let line = |times: &[f64]| Line { task: "bcast".into(), bytes: 8, times: times.to_vec() };
        let mut curves = Curves::default();
        curves.add(&[line(&[900.0, 11.0, 900.0, 10.0])]);
        curves.add(&[line(&[5000.0])]);
        curves.add(&[line(&[12.0])]);
        assert_eq!((curves.at("bcast", 8), curves.at("bcast", 9)), (Some(12.0), None));
        assert_eq!(curves.launches("bcast", 8), Some(&[11.0, 5000.0, 12.0][..]));
    }
}

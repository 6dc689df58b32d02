//! The best times of other libraries, measured elsewhere and shipped as data (`bench/field/`), beside lineweave's own
//! times.

use super::definition::Team;
use super::row::Row;
use super::subject::Subject;
use lineweave_core::collective::Collective;
use lineweave_tune::trial::Buffers;
use serde::{Deserialize, Serialize};

const SHIPPED: &str = include_str!("../../bench/field/xeon-2cpu-vm.toml");

/// Largest share of the best library's time that lineweave's processes may take: of long messages, and (`MOST_SHORT`) of
/// short ones and the barrier.
const MOST: f64 = 0.9;
const MOST_SHORT: f64 = 0.5;
/// Longest short message, in bytes.
const SHORT: u64 = 1024;

/// Times of other libraries.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    pub schema: u32,
    /// The machine that the others were measured on.
    pub machine: String,
    /// The way in which they were measured, and the libraries.
    pub source: String,
    /// Collective, ranks, bytes, and nanoseconds of the fastest library.
    best: Vec<(Collective, usize, u64, f64)>,
}

/// Lineweave's time beside that of the fastest other library. Printed as `field` by `lineweave bench`, one object a case that the best of Open MPI,
/// MPICH and Intel MPI were measured for (`bench/field/`).
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Beside {
    pub collective: Collective,
    pub ranks: usize,
    /// Message length, of a block where ranks exchange blocks.
    pub bytes: u64,
    /// Lineweave's median between processes, with the same buffers each time, as others' benchmarks have it.
    pub median_ns: f64,
    /// The fastest of the others.
    pub best_ns: f64,
    /// Lineweave's time divided by the other's.
    pub ratio: f64,
    /// Largest ratio that is aimed at; `None` beyond two ranks.
    pub target: Option<f64>,
    /// The machine that the other library was measured on.
    pub machine: String,
}

impl Field {
    /// Returns the times that ship with lineweave. A file that cannot be read is a mistake in the sources, which a test
    /// finds.
    pub fn shipped() -> Option<Field> {
        toml::from_str(SHIPPED).ok()
    }

    /// Compares those rows of processes for which other libraries were measured, too.
    pub fn beside(&self, rows: &[Row]) -> Vec<Beside> {
        let comparable = |r: &&Row| {
            (r.subject, r.team, r.buffers) == (Subject::Lineweave, Team::Processes, Buffers::Reuse)
        };
        let mut found = Vec::new();
        for row in rows.iter().filter(comparable) {
            let same = |b: &&(Collective, usize, u64, f64)| {
                (b.0, b.1, b.2) == (row.collective, row.ranks, row.bytes)
            };
            let Some(&(.., best_ns)) = self.best.iter().find(same) else { continue };
            found.push(Beside {
                collective: row.collective,
                ranks: row.ranks,
                bytes: row.bytes,
                median_ns: row.times.median_ns,
                best_ns,
                ratio: row.times.median_ns / best_ns,
                target: (row.ranks == 2).then(|| target(row.collective, row.bytes)),
                machine: self.machine.clone(),
            });
        }
        found
    }
}

fn target(collective: Collective, bytes: u64) -> f64 {
    let short = match collective {
        Collective::Barrier => true,
        Collective::Bcast | Collective::Reduce | Collective::Allreduce => bytes <= SHORT,
        _ => false,
    };
    if short {
        MOST_SHORT
    } else {
        MOST
    }
}

#[cfg(test)]
mod tests {
    use super::super::guidelines::tests::row;
    use super::*;

    #[test]
    fn the_shipped_field_reads_and_is_complete() {
        let field = Field::shipped().expect("a field that reads");
        assert_eq!(field.schema, 1);
        let count =
            |collective, ranks| field.best.iter().filter(|b| (b.0, b.1) == (collective, ranks)).count();
        for (ranks, sizes) in [(2, 7), (4, 3), (8, 3)] {
            assert_eq!(count(Collective::Barrier, ranks), 1);
            for collective in [
                Collective::Bcast,
                Collective::Reduce,
                Collective::Allreduce,
                Collective::Allgather,
                Collective::Alltoall,
            ] {
                assert_eq!(count(collective, ranks), sizes, "{collective} among {ranks}");
            }
        }
        assert!(field.best.iter().all(|b| b.3 >= 100.0), "all in ns");
    }

    #[test]
    fn rows_of_processes_are_set_beside_it() {
        let processes = |r: Row| Row { team: Team::Processes, ..r };
        let rows = [
            row(Collective::Allreduce, 2, 8, 100.0),
            processes(row(Collective::Allreduce, 2, 8, 54.0)),
            processes(row(Collective::Allreduce, 2, 16, 54.0)),
            processes(row(Collective::Allgather, 4, 8192, 7700.0)),
        ];
        let beside = Field::shipped().expect("a field").beside(&rows);
        assert_eq!(beside.len(), 2);
        assert_eq!((beside[0].best_ns, beside[0].ratio, beside[0].target), (270.0, 0.2, Some(0.5)));
        assert_eq!((beside[1].ratio, beside[1].target), (1.0, None));
    }
}

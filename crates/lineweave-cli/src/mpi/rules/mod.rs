//! Choices of algorithms in the form that a library of MPI reads: `export` lines, and files that they name.
//!
//! All rules are for one number of ranks on one node. Lengths that were not measured keep the library's own choice.

mod intel;
mod mpich;
mod openmpi;

use super::{Algorithm, Flavour, HostError};
use crate::bench::installed::Mpi;
use crate::script::Variables;
use lineweave_core::collective::Collective;
use std::path::{Path, PathBuf};

/// A range of lengths with one choice.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    /// Shortest length, in bytes of the message or of a block.
    pub from: u64,
    /// Longest length.
    pub to: u64,
    /// The algorithm; `None` leaves the choice to the library.
    pub choice: Option<Algorithm>,
}

/// The rules of a collective, from length 0 on without a gap.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// The collective.
    pub collective: Collective,
    /// The rules of the collective, by length.
    pub rules: Vec<Rule>,
}

impl Table {
    /// Returns whether no algorithm is chosen.
    pub fn is_empty(&self) -> bool {
        self.rules.iter().all(|rule| rule.choice.is_none())
    }
}

/// The files and settings to be written.
#[derive(Clone, PartialEq, Debug)]
pub struct Written {
    /// The variables of the `export` lines.
    pub variables: Variables,
    /// Files that the variables name.
    pub files: Vec<(PathBuf, String)>,
}

/// Returns whether rules of this flavour can name this algorithm.
pub fn can_say(flavour: Flavour, algorithm: &Algorithm) -> bool {
    match flavour {
        Flavour::Openmpi | Flavour::Intel => true,
        Flavour::Mpich => mpich::can_say(algorithm),
    }
}

/// Returns the settings and files that make a library choose by these tables: files lie beside `script`, which will
/// hold the `export` lines.
///
/// # Errors
/// [`HostError::Nothing`] where the library lacks the data that its rules are made from.
pub fn write(
    flavour: Flavour,
    mpi: &Mpi,
    tables: &[Table],
    ranks: usize,
    script: &Path,
) -> Result<Written, HostError> {
    let tables: Vec<&Table> = tables.iter().filter(|t| !t.is_empty()).collect();
    if tables.is_empty() {
        return Ok(Written { variables: Vec::new(), files: Vec::new() });
    }
    match flavour {
        Flavour::Openmpi => Ok(openmpi::write(&tables, ranks, script)),
        Flavour::Mpich => mpich::write(mpi, &tables, ranks, script),
        Flavour::Intel => Ok(intel::write(&tables, ranks)),
    }
}

/// Returns a file beside the script, by its absolute path, since programs are started in other directories.
fn beside(script: &Path, ending: &str) -> PathBuf {
    let whole = std::path::absolute(script).unwrap_or_else(|_| script.to_owned());
    whole.with_extension(ending)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns rules of a broadcast and an allgather, for the writers' tests.
    pub fn tables() -> Vec<Table> {
        let choice = |collective, name: &str, value: &str| {
            Some(Algorithm {
                collective,
                name: name.into(),
                value: value.into(),
                form: None,
                calls: &[],
                least: 0,
            })
        };
        let rule = |from, to, choice| Rule { from, to, choice };
        let (bcast, allgather, barrier) = (Collective::Bcast, Collective::Allgather, Collective::Barrier);
        vec![
            Table { collective: barrier, rules: vec![rule(0, 0, choice(barrier, "k_dissemination", "4"))] },
            Table {
                collective: bcast,
                rules: vec![
                    rule(0, 181, choice(bcast, "binomial", "6")),
                    rule(182, 5792, None),
                    rule(5793, 1 << 20, choice(bcast, "chain", "2")),
                ],
            },
            Table { collective: allgather, rules: vec![rule(0, 64, choice(allgather, "ring", "4"))] },
        ]
    }

    #[test]
    fn nothing_is_written_where_nothing_is_chosen() {
        let none =
            Table { collective: Collective::Bcast, rules: vec![Rule { from: 0, to: 8, choice: None }] };
        assert!(none.is_empty());
        assert!(!tables()[1].is_empty());
        assert!(beside(Path::new("t.sh"), "rules").is_absolute());
    }
}

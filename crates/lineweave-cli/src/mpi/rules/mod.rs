//! Choices of algorithms in the form that a library of MPI reads: `export` lines, and files that they name.
//!
//! All rules are for one node. Lengths and numbers of ranks that were not measured keep the library's own choice, except Intel MPI's
//! (`intel.rs`).

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
    pub to: u64,
    /// The algorithm; `None` leaves the choice to the library.
    pub choice: Option<Algorithm>,
}

/// The rules for a number of ranks, from length 0 on without a gap.
#[derive(Clone, PartialEq, Debug)]
pub struct Team {
    pub ranks: usize,
    pub rules: Vec<Rule>,
}

/// The rules of a collective.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    pub collective: Collective,
    /// The rules by number of ranks, the least first.
    pub teams: Vec<Team>,
}

impl Table {
    /// Makes the table of a collective from rules for several numbers of ranks. Where no algorithm is chosen, nothing is ruled.
    pub fn new(collective: Collective, teams: impl IntoIterator<Item = Team>) -> Table {
        let mut teams: Vec<Team> =
            teams.into_iter().filter(|team| team.rules.iter().any(|rule| rule.choice.is_some())).collect();
        teams.sort_by_key(|team| team.ranks);
        Table { collective, teams }
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
        Flavour::Unknown => false,
    }
}

/// Returns the settings and files that make a library choose by these tables: files lie beside `script`, which will
/// hold the `export` lines.
pub fn write(flavour: Flavour, mpi: &Mpi, tables: &[Table], script: &Path) -> Result<Written, HostError> {
    let tables: Vec<&Table> = tables.iter().filter(|t| !t.teams.is_empty()).collect();
    if tables.is_empty() {
        return Ok(Written { variables: Vec::new(), files: Vec::new() });
    }
    match flavour {
        Flavour::Openmpi => Ok(openmpi::write(&tables, script)),
        Flavour::Mpich => mpich::write(mpi, &tables, script),
        Flavour::Intel => Ok(intel::write(&tables)),
        Flavour::Unknown => Err(HostError::Unknown(mpi.name.clone())),
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
                copies: None,
                least: 0,
            })
        };
        let rule = |from, to, choice| Rule { from, to, choice };
        let (bcast, allgather, barrier) = (Collective::Bcast, Collective::Allgather, Collective::Barrier);
        let team = |ranks, rules| Team { ranks, rules };
        vec![
            Table::new(barrier, [team(4, vec![rule(0, 0, choice(barrier, "k_dissemination", "4"))])]),
            Table::new(
                bcast,
                [
                    team(5, vec![rule(0, 64, choice(bcast, "binomial", "6"))]),
                    team(
                        4,
                        vec![
                            rule(0, 181, choice(bcast, "binomial", "6")),
                            rule(182, 5792, None),
                            rule(5793, 1 << 20, choice(bcast, "chain", "2")),
                        ],
                    ),
                    team(2, vec![rule(0, 64, None)]),
                ],
            ),
            Table::new(allgather, [team(4, vec![rule(0, 64, choice(allgather, "ring", "4"))])]),
        ]
    }

    #[test]
    fn only_numbers_of_ranks_with_a_choice_are_ruled() {
        let teams: Vec<usize> = tables()[1].teams.iter().map(|team| team.ranks).collect();
        assert_eq!(teams, [4, 5]);
        assert!(beside(Path::new("t.sh"), "rules").is_absolute());
    }
}

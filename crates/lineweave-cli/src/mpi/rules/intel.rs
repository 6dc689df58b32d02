//! Rules for Intel MPI: `I_MPI_ADJUST_*` as presets with lengths and numbers of ranks,
//! `6:0-181@4-4;2:5793-1048576@4-4`.

use super::{Table, Written};
use crate::mpi::intel::variable;
use lineweave_core::collective::Collective;

/// Longest message that a preset can name.
const LONGEST: u64 = i32::MAX as u64;

pub(super) fn write(tables: &[&Table]) -> Written {
    let line = |table: &&Table| {
        let all = table.teams.iter().flat_map(|team| team.rules.iter().map(|rule| (team.ranks, rule)));
        let chosen = all.filter_map(|(ranks, rule)| {
            let choice = rule.choice.as_ref()?;
            // The length of a barrier is not documented.
            let to = if table.collective == Collective::Barrier { LONGEST } else { rule.to };
            Some(format!("{}:{}-{to}@{ranks}-{ranks}", choice.value, rule.from))
        });
        (variable(table.collective), chosen.collect::<Vec<_>>().join(";"))
    };
    Written { variables: tables.iter().map(line).collect(), files: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::tests::tables;
    use super::*;

    #[test]
    fn presets_have_their_lengths_and_ranks() {
        let tables = tables();
        let found = write(&tables.iter().collect::<Vec<_>>());
        let golden = [
            ("I_MPI_ADJUST_BARRIER", "4:0-2147483647@4-4"),
            ("I_MPI_ADJUST_BCAST", "6:0-181@4-4;2:5793-1048576@4-4;6:0-64@5-5"),
            ("I_MPI_ADJUST_ALLGATHER", "4:0-64@4-4"),
        ];
        let golden: Vec<(String, String)> = golden.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
        assert_eq!((found.variables, found.files.len()), (golden, 0));
    }
}

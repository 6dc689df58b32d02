//! Rules for Intel MPI: `I_MPI_ADJUST_*` as presets with lengths, `6:0-181;2:182-2147483647`.
//!
//! A preset may have a number of ranks as well, `@4-4`. Of several presets with one, Intel MPI 2021.18 keeps the last, so the presets are for
//! all communicators of a job.

use super::{Table, Written};
use crate::mpi::intel::variable;

/// Longest message that a preset can name.
const LONGEST: u64 = i32::MAX as u64;

pub(super) fn write(tables: &[&Table]) -> Written {
    let line = |table: &&Table| {
        let rules = table.teams.first().map_or(&[][..], |team| &team.rules);
        let last = rules.last().map(|rule| rule.to);
        let chosen = rules.iter().filter_map(|rule| {
            let choice = rule.choice.as_ref()?;
            // What no rule is for is not left to the library's default, but to a choice that may be far slower. The length of a barrier
            // is not documented.
            let to = if Some(rule.to) == last { LONGEST } else { rule.to };
            Some(format!("{}:{}-{to}", choice.value, rule.from))
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
    fn presets_have_their_lengths() {
        let tables = tables();
        let found = write(&tables.iter().collect::<Vec<_>>());
        let golden = [
            ("I_MPI_ADJUST_BARRIER", "4:0-2147483647"),
            ("I_MPI_ADJUST_BCAST", "6:0-181;2:5793-2147483647"),
            ("I_MPI_ADJUST_ALLGATHER", "4:0-2147483647"),
        ];
        let golden: Vec<(String, String)> = golden.map(|(n, v)| (n.to_owned(), v.to_owned())).into();
        assert_eq!((found.variables, found.files.len()), (golden, 0));
    }
}

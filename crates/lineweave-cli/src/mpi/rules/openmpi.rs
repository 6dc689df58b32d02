//! Rules for Open MPI 4 and 5: the text form of `coll_tuned_dynamic_rules_filename`.
//!
//! For each collective, the file has its number, then the numbers of communicator sizes; for each size the rules, each from a length
//! on: length, algorithm, fan, segment. A size holds up to the next one, and algorithm 0 is the library's own choice. For collectives
//! with blocks, a length is that of all blocks together.

use super::{beside, Rule, Table, Team, Written};
use crate::mpi::openmpi::ruled;
use lineweave_core::collective::Collective;
use std::fmt::Write;
use std::path::Path;

/// Default number of chains of a broadcast or reduce by chains.
const CHAINS: u32 = 4;

/// Returns the collective's number in `ompi/mca/coll/base`.
fn number(collective: Collective) -> Option<u32> {
    match collective {
        Collective::Allgather => Some(0),
        Collective::Allreduce => Some(2),
        Collective::Alltoall => Some(3),
        Collective::Barrier => Some(6),
        Collective::Bcast => Some(7),
        Collective::Reduce => Some(11),
        _ => None,
    }
}

pub(super) fn write(tables: &[&Table], script: &Path) -> Written {
    let file = beside(script, "rules");
    let mut variables = ruled();
    variables.push(("OMPI_MCA_coll_tuned_dynamic_rules_filename".into(), file.display().to_string()));
    Written { variables, files: vec![(file, text(tables))] }
}

fn text(tables: &[&Table]) -> String {
    let known: Vec<(&&Table, u32)> =
        tables.iter().filter_map(|table| Some((table, number(table.collective)?))).collect();
    let mut text = format!("{} # collectives\n", known.len());
    for (table, number) in known {
        let mut sizes = vec!["0 1 # its own choice\n0 0 0 0".to_owned()];
        for (i, team) in table.teams.iter().enumerate() {
            sizes.push(size(table.collective, team));
            if table.teams.get(i + 1).is_none_or(|next| next.ranks > team.ranks + 1) {
                sizes.push(format!("{} 1 # its own choice\n0 0 0 0", team.ranks + 1));
            }
        }
        let _ = writeln!(text, "{number} # {}\n{} # communicator sizes", table.collective, sizes.len());
        sizes.iter().for_each(|size| text += &format!("{size}\n"));
    }
    text
}

/// Returns the rules of a communicator size.
fn size(collective: Collective, team: &Team) -> String {
    let Team { ranks, rules } = team;
    let blocks = match collective {
        Collective::Allgather | Collective::Alltoall => *ranks as u64,
        _ => 1,
    };
    let mut lines: Vec<String> =
        rules.iter().map(|rule| format!("{} {}", rule.from * blocks, chosen(rule))).collect();
    if collective != Collective::Barrier {
        let last = rules.last().map(|rule| rule.to).unwrap_or_default();
        lines.push(format!("{} 0 0 0 # not measured", last * blocks + 1));
    }
    format!("{ranks} {} # {ranks} ranks\n{}", lines.len(), lines.join("\n"))
}

fn chosen(rule: &Rule) -> String {
    let Some(choice) = &rule.choice else { return "0 0 0".to_owned() };
    let fan = if choice.name == "chain" { CHAINS } else { 0 };
    format!("{} {fan} 0 # {}", choice.value, choice.name)
}

#[cfg(test)]
mod tests {
    use super::super::tests::tables;
    use super::*;

    #[test]
    fn rules_are_those_that_the_library_reads() {
        let tables = tables();
        let golden = "3 # collectives\n\
            6 # barrier\n3 # communicator sizes\n0 1 # its own choice\n0 0 0 0\n\
            4 1 # 4 ranks\n0 4 0 0 # k_dissemination\n5 1 # its own choice\n0 0 0 0\n\
            7 # bcast\n4 # communicator sizes\n0 1 # its own choice\n0 0 0 0\n\
            4 4 # 4 ranks\n0 6 0 0 # binomial\n182 0 0 0\n5793 2 4 0 # chain\n1048577 0 0 0 # not measured\n\
            5 2 # 5 ranks\n0 6 0 0 # binomial\n65 0 0 0 # not measured\n6 1 # its own choice\n0 0 0 0\n\
            0 # allgather\n3 # communicator sizes\n0 1 # its own choice\n0 0 0 0\n\
            4 2 # 4 ranks\n0 4 0 0 # ring\n257 0 0 0 # not measured\n5 1 # its own choice\n0 0 0 0\n";
        assert_eq!(text(&tables.iter().collect::<Vec<_>>()), golden);
        let written = write(&tables.iter().collect::<Vec<_>>(), Path::new("/tmp/t.sh"));
        let named = ("OMPI_MCA_coll_tuned_dynamic_rules_filename".to_owned(), "/tmp/t.rules".to_owned());
        assert!(written.variables.contains(&named) && written.files.len() == 1);
    }
}

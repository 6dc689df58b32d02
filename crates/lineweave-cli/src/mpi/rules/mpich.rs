//! Rules for MPICH: the trees of `MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE` and of CH4's POSIX part, made from those inside the library.
//!
//! A tree in a file replaces the shipped one, and a collective that it lacks cannot be called. So the shipped trees are copied from the
//! library's file, and for each ruled collective the branch `comm_type=intra` gets a branch for each number of ranks. For all lengths
//! without a rule such a branch repeats the shipped one. Operators that do not commute or are user-defined, and buffers in place, keep the
//! shipped branch.

use super::{beside, Rule, Table, Team, Written};
use crate::bench::installed::Mpi;
use crate::mpi::{mpich, Algorithm, HostError};
use lineweave_core::collective::Collective;
use std::path::Path;

/// First bytes of the two shipped trees, and the marks that tell MPICH's own tree from CH4's.
const BEGIN: &[u8] = b"{\"collective=";
const OWN: &str = "algorithm=MPIR_Bcast_intra_binomial";
const POSIX: &str = "algorithm=MPIDI_POSIX_mpi_bcast_release_gather";

/// Parameters of a tree's shape that fit the topology of a network.
macro_rules! topology {
    () => {
        "\"topo_overhead=200\":{},\"topo_diff_groups=2800\":{},\"topo_diff_switches=1900\":{},\"topo_same_switches=1600\":{}"
    };
}
/// Parameters of a recursive exchange.
const EXCHANGE: &str = "\"k=2\":{},\"single_phase_recv=0\":{}";
/// Parameters of the algorithms that a tree names with some, as MPICH has them by default and so where one is forced.
const PARAMETERS: [(Collective, &str, &str); 11] = [
    (Collective::Allgather, "k_brucks", "\"k=2\":{}"),
    (Collective::Allgather, "recexch_doubling", EXCHANGE),
    (Collective::Allgather, "recexch_halving", EXCHANGE),
    (Collective::Allreduce, "k_reduce_scatter_allgather", EXCHANGE),
    (Collective::Allreduce, "recexch", EXCHANGE),
    (Collective::Allreduce, "recursive_multiplying", "\"k=2\":{}"),
    (
        Collective::Allreduce,
        "tree",
        concat!(
            "\"tree_type=kary\":{},\"k=2\":{},\"chunk_size=0\":{},\"buffer_per_child=0\":{},",
            topology!()
        ),
    ),
    (Collective::Alltoall, "k_brucks", "\"k=2\":{}"),
    (Collective::Barrier, "k_dissemination", "\"k=2\":{}"),
    (Collective::Barrier, "recexch", EXCHANGE),
    (
        Collective::Bcast,
        "tree",
        concat!("\"tree_type=kary\":{},\"k=2\":{},\"is_non_blocking=1\":{},", topology!()),
    ),
];
/// An algorithm that no rule names: a launch that forced it probably did not end by itself, once.
const UNSAID: &str = "pipelined_tree";

/// Returns whether rules can name an algorithm. CH4's shared memory is the library's own choice and needs no rule.
pub(super) fn can_say(algorithm: &Algorithm) -> bool {
    algorithm.value != UNSAID && !mpich::is_shared(algorithm)
}

pub(super) fn write(mpi: &Mpi, tables: &[&Table], script: &Path) -> Result<Written, HostError> {
    let library = std::fs::read(mpi.library()).map_err(|e| lacks(mpi, &e.to_string()))?;
    let shipped =
        |mark: &str| tree(&library, mark).ok_or_else(|| lacks(mpi, "it has no tree of choices within"));
    let (mut own, mut posix) = (shipped(OWN)?, shipped(POSIX)?);
    for table in tables {
        let rest = |why: &str| lacks(mpi, why);
        own = ruled(&own, table, &|rule, shipped| said(table.collective, rule, shipped))
            .ok_or_else(|| rest("its tree has a collective in another form"))?;
        // CH4's shared memory is asked first; it passes other calls on.
        if let Some(changed) = ruled(&posix, table, &|rule, shipped| handed_on(rule, shipped)) {
            posix = changed;
        }
    }
    let (first, second) = (beside(script, "json"), beside(script, "posix.json"));
    let variable = |name: &str, file: &Path| (name.to_owned(), file.display().to_string());
    Ok(Written {
        variables: vec![
            variable("MPIR_CVAR_COLL_SELECTION_TUNING_JSON_FILE", &first),
            variable("MPIR_CVAR_CH4_POSIX_COLL_SELECTION_TUNING_JSON_FILE", &second),
        ],
        files: vec![(first, whole(own)), (second, whole(posix))],
    })
}

fn lacks(mpi: &Mpi, why: &str) -> HostError {
    HostError::Nothing(format!("{}: {why}", mpi.library().display()))
}

/// Returns the text of a file. The library maps the file and finds its end by a zero byte, which is missing if the file fills its last page.
fn whole(mut text: String) -> String {
    text.push('\n');
    if text.len() % 4096 == 0 {
        text.push('\n');
    }
    text
}

/// Returns the text in the library that begins as a tree does and contains a mark.
fn tree(library: &[u8], mark: &str) -> Option<String> {
    let mut at = 0;
    while let Some(found) = library[at..].windows(BEGIN.len()).position(|w| w == BEGIN) {
        let text = &library[at + found..];
        let end = text.iter().position(|&b| b == 0).unwrap_or(text.len());
        let text = std::str::from_utf8(&text[..end]).ok().filter(|t| t.contains(mark));
        if let Some(text) = text.filter(|t| object(t).is_some_and(|o| o.len() == t.len())) {
            return Some(text.to_owned());
        }
        at += found + BEGIN.len();
    }
    None
}

/// Returns the object that a text begins with.
fn object(text: &str) -> Option<&str> {
    let mut depth = 0;
    for (i, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ if depth == 0 => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[..=i]);
        }
    }
    None
}

/// Returns the tree with the rules of a table, or `None` where it does not have the collective. `of` makes the branch of a rule from the
/// shipped one.
fn ruled(tree: &str, table: &Table, of: &dyn Fn(&Rule, &str) -> String) -> Option<String> {
    let key = format!("\"collective={}\":{{\"comm_type=intra\":", table.collective.name());
    let at = tree.find(&key)? + key.len();
    let shipped = object(&tree[at..])?;
    let team = |team: &Team| {
        let ours = by_length(table.collective, team, shipped, of);
        format!("\"comm_size<{0}\":{shipped},\"comm_size<={0}\":{ours},", team.ranks)
    };
    let teams: String = table.teams.iter().map(team).collect();
    let branch = format!("{{{teams}\"comm_size=any\":{shipped}}}");
    Some(format!("{}{branch}{}", &tree[..at], &tree[at + shipped.len()..]))
}

/// Returns the branch of a number of ranks.
fn by_length(
    collective: Collective,
    team: &Team,
    shipped: &str,
    of: &dyn Fn(&Rule, &str) -> String,
) -> String {
    let mut lengths = Vec::new();
    for rule in &team.rules {
        let branch = of(rule, shipped);
        lengths.push(match collective {
            Collective::Barrier => return branch,
            Collective::Allgather => format!("\"total_msg_size<={}\":{branch}", rule.to * team.ranks as u64),
            _ => format!("\"avg_msg_size<={}\":{branch}", rule.to),
        });
    }
    let size = if collective == Collective::Allgather { "total_msg_size" } else { "avg_msg_size" };
    lengths.push(format!("\"{size}=any\":{shipped}"));
    format!("{{{}}}", lengths.join(","))
}

/// Returns the branch of MPICH's own tree for a rule.
fn said(collective: Collective, rule: &Rule, shipped: &str) -> String {
    let Some(choice) = &rule.choice else { return shipped.to_owned() };
    let name = collective.name();
    let name = format!("{}{}", name[..1].to_uppercase(), &name[1..]);
    let parameters = PARAMETERS.iter().find(|(c, n, _)| (*c, *n) == (collective, &choice.value));
    let parameters = parameters.map_or("", |(_, _, p)| *p);
    let ours = format!("{{\"algorithm=MPIR_{name}_intra_{}\":{{{parameters}}}}}", choice.value);
    match collective {
        Collective::Reduce | Collective::Allreduce => format!(
            "{{\"is_commutative=yes\":{{\"is_op_built_in=yes\":{{\"count<pow2\":{shipped},\"count=any\":{ours}}},\
             \"is_op_built_in=no\":{shipped}}},\"is_commutative=no\":{shipped}}}"
        ),
        Collective::Alltoall => {
            format!("{{\"is_sendbuf_inplace=yes\":{shipped},\"is_sendbuf_inplace=no\":{ours}}}")
        }
        _ => ours,
    }
}

/// Returns the branch of CH4's tree for a rule. A branch that never holds passes the call on to MPICH's own tree; only a condition with the
/// values true and false may stand without another branch beside it.
fn handed_on(rule: &Rule, shipped: &str) -> String {
    match rule.choice {
        Some(_) => format!("{{\"is_multi_threaded=yes\":{{\"is_multi_threaded=no\":{shipped}}}}}"),
        None => shipped.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::tables;
    use super::*;

    const TREE: &str = "{\"collective=bcast\":{\"comm_type=intra\":{\"algorithm=MPIR_Bcast_intra_binomial\":{}},\
        \"comm_type=inter\":{\"algorithm=x\":{}}},\"collective=barrier\":{\"comm_type=intra\":{\"algorithm=y\":{}}},\
        \"collective=allgather\":{\"comm_type=intra\":{\"algorithm=z\":{}}}}";

    #[test]
    fn trees_are_found_within_a_library() {
        let mut library = b"\x7fELF{\"collective=%s\"\0junk".to_vec();
        library.extend_from_slice(TREE.as_bytes());
        library.extend_from_slice(b"\0more");
        assert_eq!(tree(&library, OWN).as_deref(), Some(TREE));
        assert_eq!(tree(&library, POSIX), None);
        assert_eq!(object("{\"a\":{\"b\":{}},\"c\":{}}rest"), Some("{\"a\":{\"b\":{}},\"c\":{}}"));
        assert_eq!(object("{\"a\":{"), None);
    }

    #[test]
    fn a_collectives_branch_gets_the_numbers_of_ranks() {
        let all = tables();
        let of = |i: usize| {
            let table = &all[i];
            ruled(TREE, table, &|rule, shipped| said(table.collective, rule, shipped)).unwrap()
        };
        let shipped = "{\"algorithm=MPIR_Bcast_intra_binomial\":{}}";
        let golden = format!(
            "{{\"collective=bcast\":{{\"comm_type=intra\":{{\"comm_size<4\":{shipped},\"comm_size<=4\":{{\
             \"avg_msg_size<=181\":{{\"algorithm=MPIR_Bcast_intra_6\":{{}}}},\"avg_msg_size<=5792\":{shipped},\
             \"avg_msg_size<=1048576\":{{\"algorithm=MPIR_Bcast_intra_2\":{{}}}},\"avg_msg_size=any\":{shipped}}},\
             \"comm_size<5\":{shipped},\"comm_size<=5\":{{\"avg_msg_size<=64\":{{\"algorithm=MPIR_Bcast_intra_6\":{{}}}},\
             \"avg_msg_size=any\":{shipped}}},\"comm_size=any\":{shipped}}},\"comm_type=inter\""
        );
        assert!(of(1).starts_with(&golden), "{}", of(1));
        assert!(of(2).contains("\"total_msg_size<=256\":{\"algorithm=MPIR_Allgather_intra_4\":{}}"));
        assert!(of(0).contains("\"comm_size<=4\":{\"algorithm=MPIR_Barrier_intra_4\":{}},\"comm_size=any\""));
        for i in 0..3 {
            assert!(serde_json::from_str::<serde_json::Value>(&of(i)).is_ok());
        }
        let mut other = all[1].clone();
        other.collective = Collective::Alltoall;
        assert_eq!(ruled(TREE, &other, &|_, _| String::new()), None);
    }

    #[test]
    fn sums_keep_the_shipped_branch_for_operators_of_programs() {
        let mut rule = tables()[1].teams[0].rules[0].clone();
        let text = said(Collective::Allreduce, &rule, "{\"s\":{}}");
        assert!(
            text.starts_with("{\"is_commutative=yes\":{\"is_op_built_in=yes\":{\"count<pow2\":{\"s\":{}},"),
            "{text}"
        );
        assert!(text.contains("\"is_commutative=no\":{\"s\":{}}"), "{text}");
        assert_eq!(handed_on(&rule, "s"), "{\"is_multi_threaded=yes\":{\"is_multi_threaded=no\":s}}");
        rule.choice = None;
        assert_eq!((said(Collective::Bcast, &rule, "s"), handed_on(&rule, "s")), ("s".into(), "s".into()));
    }

    #[test]
    fn no_file_fills_its_last_page() {
        assert_eq!(whole("x".repeat(4095)).len(), 4097);
        assert_eq!(whole("x".repeat(4094)).len(), 4095);
    }
}

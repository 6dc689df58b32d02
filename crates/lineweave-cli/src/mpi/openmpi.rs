//! Open MPI's component `tuned`: its algorithms by number, as `ompi_info --param coll tuned` lists them.

use super::algorithm::For::{All, Even, Powers, Two, UpTo};
use super::algorithm::{of_rows, Algorithm, Row};
use crate::bench::installed::Mpi;
use crate::script::Variables;
use lineweave_core::collective::Collective;
use lineweave_lab::models::Form;
use std::collections::BTreeMap;
use std::process::{Command, Stdio};

const PAIR: Form = Form::DisseminationBarrier;

fn rows(collective: Collective) -> &'static [Row] {
    match collective {
        Collective::Barrier => &[
            ("1", "linear", All, Some((All, Form::FlatBarrier))),
            ("2", "double_ring", All, Some((All, Form::DoubleRingBarrier))),
            ("3", "recursive_doubling", All, Some((Powers, PAIR))),
            ("4", "bruck", All, Some((All, PAIR))),
            ("5", "two_proc", Two, Some((All, PAIR))),
            ("6", "tree", All, Some((All, Form::BinomialBarrier))),
        ],
        Collective::Bcast => &[
            ("1", "basic_linear", All, Some((All, Form::FlatBcast))),
            // Open MPI uses four chains.
            ("2", "chain", All, Some((UpTo(5), Form::TreeBcast { degree: 4 }))),
            ("3", "pipeline", All, Some((All, Form::TreeBcast { degree: 1 }))),
            ("4", "split_binary_tree", All, None),
            ("5", "binary_tree", All, Some((All, Form::TreeBcast { degree: 2 }))),
            ("6", "binomial", All, Some((All, Form::BinomialBcast))),
            ("7", "knomial", All, Some((All, Form::KnomialBcast { radix: 4 }))),
            ("8", "scatter_allgather", All, Some((All, Form::ScatterDoublingBcast))),
            ("9", "scatter_allgather_ring", All, Some((All, Form::ScatterRingBcast))),
        ],
        Collective::Reduce => &[
            ("1", "linear", All, Some((All, Form::FlatReduce))),
            ("2", "chain", All, Some((UpTo(5), Form::TreeReduce { degree: 4 }))),
            ("3", "pipeline", All, Some((All, Form::TreeReduce { degree: 1 }))),
            ("4", "binary", All, Some((All, Form::TreeReduce { degree: 2 }))),
            ("5", "binomial", All, Some((All, Form::BinomialReduce))),
            ("6", "in-order_binary", All, Some((All, Form::TreeReduce { degree: 2 }))),
            ("7", "rabenseifner", All, Some((All, Form::RabenseifnerReduce))),
            ("8", "knomial", All, Some((All, Form::KnomialReduce { radix: 4 }))),
        ],
        Collective::Allreduce => &[
            ("1", "basic_linear", All, Some((Two, Form::ReduceBcast))),
            ("2", "nonoverlapping", All, Some((All, Form::ReduceBcast))),
            ("3", "recursive_doubling", All, Some((All, Form::DoublingAllreduce))),
            ("4", "ring", All, Some((All, Form::RingAllreduce))),
            ("5", "segmented_ring", All, Some((All, Form::RingAllreduce))),
            ("6", "rabenseifner", All, Some((All, Form::Rabenseifner))),
            ("7", "allgather_reduce", All, None),
        ],
        Collective::Allgather => &[
            ("1", "linear", All, Some((All, Form::GatherBcast))),
            ("2", "bruck", All, Some((All, Form::BruckAllgather))),
            ("3", "recursive_doubling", Powers, Some((All, Form::DoublingAllgather))),
            ("4", "ring", All, Some((All, Form::RingAllgather))),
            ("5", "neighbor", Even, Some((All, Form::NeighbourAllgather))),
            ("6", "two_proc", Two, Some((All, Form::RingAllgather))),
            ("7", "sparbit", All, None),
            ("8", "direct-messaging", All, None),
        ],
        Collective::Alltoall => &[
            ("1", "linear", All, Some((All, Form::PairwiseAlltoall))),
            ("2", "pairwise", All, Some((All, Form::PairwiseAlltoall))),
            ("3", "modified_bruck", All, Some((All, Form::BruckAlltoall))),
            ("4", "linear_sync", All, Some((All, Form::PairwiseAlltoall))),
            ("5", "two_proc", Two, Some((All, Form::PairwiseAlltoall))),
        ],
        _ => &[],
    }
}

/// Returns the algorithms of a collective that this installation lists itself, or all of the table where it cannot be
/// asked.
pub(super) fn algorithms(mpi: &Mpi, collective: Collective, ranks: usize) -> Vec<Algorithm> {
    let mut all = of_rows(collective, rows(collective).iter().copied(), ranks);
    if let Some(listed) = listed(mpi) {
        all.retain_mut(|algorithm| {
            match listed.get(&(collective.name().to_owned(), algorithm.value.clone())) {
                Some(name) => {
                    algorithm.name.clone_from(name);
                    true
                }
                None => false,
            }
        });
    }
    for algorithm in &mut all {
        algorithm.calls = match (collective, algorithm.value.as_str()) {
            (Collective::Allreduce, "1" | "2") => &[Collective::Reduce, Collective::Bcast],
            (Collective::Allgather, "1") => &[Collective::Bcast],
            _ => &[],
        };
        // The allgather of two sends each rank's block from where the caller has it.
        algorithm.copies = (collective == Collective::Allgather && algorithm.value == "6").then_some(false);
    }
    all
}

/// Returns the names that the installation's `ompi_info` lists, by collective and number.
fn listed(mpi: &Mpi) -> Option<BTreeMap<(String, String), String>> {
    let mut command = Command::new(mpi.tool("ompi_info"));
    mpi.environment(&mut command);
    command.args(["--all", "--parsable", "--param", "coll", "tuned", "--level", "9"]);
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let found = enumerators(&String::from_utf8_lossy(&output.stdout));
    (!found.is_empty()).then_some(found)
}

/// Reads lines such as `mca:coll:tuned:param:coll_tuned_bcast_algorithm:enumerator:value:6:binomial`.
fn enumerators(text: &str) -> BTreeMap<(String, String), String> {
    let line = |line: &str| {
        let rest = line.strip_prefix("mca:coll:tuned:param:coll_tuned_")?;
        let (collective, rest) = rest.split_once("_algorithm:enumerator:value:")?;
        let (number, name) = rest.split_once(':')?;
        Some(((collective.to_owned(), number.to_owned()), name.to_owned()))
    };
    text.lines().filter_map(line).collect()
}

/// Returns the settings that let the component `tuned` decide, and read rules.
pub(super) fn ruled() -> Variables {
    vec![
        // Higher than that of any other component, which would be asked first.
        ("OMPI_MCA_coll_tuned_priority".into(), "100".into()),
        ("OMPI_MCA_coll_tuned_use_dynamic_rules".into(), "1".into()),
    ]
}

/// Returns the settings that force an algorithm.
pub(super) fn force(algorithm: &Algorithm) -> Variables {
    let name = format!("OMPI_MCA_coll_tuned_{}_algorithm", algorithm.collective.name());
    ruled().into_iter().chain([(name, algorithm.value.clone())]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_installations_own_list_is_read() {
        let text = "mca:coll:tuned:param:coll_tuned_allgather_algorithm:value:ignore\n\
                    mca:coll:tuned:param:coll_tuned_allgather_algorithm:enumerator:value:2:bruck-k-fanout\n\
                    mca:coll:tuned:param:coll_tuned_allgather_algorithm_segmentsize:value:0\n";
        let found = enumerators(text);
        assert_eq!(found.len(), 1);
        assert_eq!(found[&("allgather".to_owned(), "2".to_owned())], "bruck-k-fanout");
    }

    #[test]
    fn algorithms_are_for_their_ranks() {
        let names = |ranks| {
            let all = of_rows(Collective::Allgather, rows(Collective::Allgather).iter().copied(), ranks);
            all.iter().map(|a| a.value.clone()).collect::<Vec<_>>().join("")
        };
        assert_eq!(
            (names(2).as_str(), names(3).as_str(), names(6).as_str()),
            ("12345678", "12478", "124578")
        );
        let bcast = of_rows(Collective::Bcast, rows(Collective::Bcast).iter().copied(), 6);
        let form = |value: &str| bcast.iter().find(|a| a.value == value).and_then(|a| a.form);
        assert_eq!((form("8"), form("6"), form("2")), (None, Some(Form::BinomialBcast), None));
    }
}

//! Intel MPI's algorithms by the numbers of `I_MPI_ADJUST_*`, as Intel's Developer Reference lists them. A version that does not have a
//! number ignores the setting, so each algorithm is measured, and none is trusted by its name.

use super::algorithm::For::{All, Powers, Two};
use super::algorithm::{of_rows, Algorithm, Does};
use crate::script::Variables;
use lineweave_core::collective::Collective;
use lineweave_lab::models::Form;

// Two ranks have no topology, and one message or exchange for each level of a tree.
fn rows(collective: Collective) -> &'static [(&'static str, &'static str, Does)] {
    match collective {
        Collective::Barrier => &[
            ("1", "dissemination", Some((All, Form::DisseminationBarrier))),
            ("2", "recursive doubling", Some((Powers, Form::DisseminationBarrier))),
            ("3", "topology aware dissemination", Some((Two, Form::DisseminationBarrier))),
            ("4", "topology aware recursive doubling", Some((Two, Form::DisseminationBarrier))),
            ("5", "binomial gather + scatter", Some((All, Form::BinomialBarrier))),
            ("6", "topology aware binomial gather + scatter", Some((Two, Form::BinomialBarrier))),
            ("7", "SHM-based flat", None),
            ("8", "SHM-based k-nomial", None),
            ("9", "SHM-based k-nary", None),
        ],
        Collective::Bcast => &[
            ("1", "binomial", Some((All, Form::BinomialBcast))),
            ("2", "recursive doubling", Some((All, Form::ScatterDoublingBcast))),
            ("3", "ring", Some((All, Form::ScatterRingBcast))),
            ("4", "topology aware binomial", Some((Two, Form::BinomialBcast))),
            ("5", "topology aware recursive doubling", Some((Two, Form::ScatterDoublingBcast))),
            ("6", "topology aware ring", Some((Two, Form::ScatterRingBcast))),
            ("7", "Shumilin's", None),
            ("8", "k-nomial", Some((Two, Form::BinomialBcast))),
            ("9", "SHM-based flat", None),
            ("10", "SHM-based k-nomial", None),
            ("11", "SHM-based k-nary", None),
            ("12", "NUMA aware SHM-based flat", None),
            ("13", "NUMA aware SHM-based k-nomial", None),
            ("14", "NUMA aware SHM-based k-nary", None),
        ],
        Collective::Reduce => &[
            ("1", "Shumilin's", None),
            ("2", "binomial", Some((All, Form::BinomialReduce))),
            ("3", "topology aware Shumilin's", None),
            ("4", "topology aware binomial", Some((Two, Form::BinomialReduce))),
            ("5", "Rabenseifner's", Some((All, Form::RabenseifnerReduce))),
            ("6", "topology aware Rabenseifner's", Some((Two, Form::RabenseifnerReduce))),
            ("7", "k-nomial", Some((Two, Form::BinomialReduce))),
            ("8", "SHM-based flat", None),
            ("9", "SHM-based k-nomial", None),
            ("10", "SHM-based k-nary", None),
            ("11", "SHM-based binomial", None),
        ],
        Collective::Allreduce => &[
            ("1", "recursive doubling", Some((All, Form::DoublingAllreduce))),
            ("2", "Rabenseifner's", Some((All, Form::Rabenseifner))),
            ("3", "reduce + bcast", Some((All, Form::ReduceBcast))),
            ("4", "topology aware reduce + bcast", Some((Two, Form::ReduceBcast))),
            ("5", "binomial gather + scatter", None),
            ("6", "topology aware binomial gather + scatter", None),
            ("7", "Shumilin's ring", Some((All, Form::RingAllreduce))),
            ("8", "ring", Some((All, Form::RingAllreduce))),
            ("9", "k-nomial", None),
            ("10", "SHM-based flat", None),
            ("11", "SHM-based k-nomial", None),
            ("12", "SHM-based k-nary", None),
        ],
        Collective::Allgather => &[
            ("1", "recursive doubling", Some((All, Form::DoublingAllgather))),
            ("2", "Bruck's", Some((All, Form::BruckAllgather))),
            ("3", "ring", Some((All, Form::RingAllgather))),
            ("4", "topology aware gatherv + bcast", None),
            ("5", "k-nomial", Some((Two, Form::RingAllgather))),
        ],
        Collective::Alltoall => &[
            ("1", "Bruck's", Some((All, Form::BruckAlltoall))),
            ("2", "isend/irecv + waitall", Some((All, Form::PairwiseAlltoall))),
            ("3", "pairwise exchange", Some((All, Form::PairwiseAlltoall))),
            ("4", "Plum's", None),
        ],
        _ => &[],
    }
}

/// Returns the algorithms of a collective.
pub(super) fn algorithms(collective: Collective, ranks: usize) -> Vec<Algorithm> {
    let mut all = of_rows(
        collective,
        rows(collective).iter().map(|&(value, name, does)| (value, name, All, does)),
        ranks,
    );
    for algorithm in all.iter_mut().filter(|a| a.collective == Collective::Allreduce && a.value == "3") {
        algorithm.calls = &[Collective::Reduce, Collective::Bcast];
    }
    all
}

/// Returns the variable of a collective.
pub fn variable(collective: Collective) -> String {
    format!("I_MPI_ADJUST_{}", collective.name().to_uppercase())
}

/// Returns the settings that force an algorithm.
pub(super) fn force(algorithm: &Algorithm) -> Variables {
    vec![(variable(algorithm.collective), algorithm.value.clone())]
}

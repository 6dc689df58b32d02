//! Intel MPI's algorithms by the numbers of `I_MPI_ADJUST_*`, as Intel's Developer Reference lists them. A version that does not have a
//! number ignores the setting, so each algorithm is measured, and none is trusted by its name.

use super::algorithm::{always, never, of_rows, of_two, Algorithm, For, Row};
use crate::script::Variables;
use lineweave_core::collective::Collective;
use lineweave_lab::models::Form;

// Two ranks have no topology, and one message or exchange for each level of a tree.
fn rows(collective: Collective) -> &'static [Row] {
    match collective {
        Collective::Barrier => &[
            ("1", "dissemination", For::All, always!(Form::DisseminationBarrier)),
            ("2", "recursive doubling", For::All, |n| {
                n.is_power_of_two().then_some(Form::DisseminationBarrier)
            }),
            ("3", "topology aware dissemination", For::All, of_two!(Form::DisseminationBarrier)),
            ("4", "topology aware recursive doubling", For::All, of_two!(Form::DisseminationBarrier)),
            ("5", "binomial gather + scatter", For::All, always!(Form::BinomialBarrier)),
            ("6", "topology aware binomial gather + scatter", For::All, of_two!(Form::BinomialBarrier)),
            ("7", "SHM-based flat", For::All, never!()),
            ("8", "SHM-based k-nomial", For::All, never!()),
            ("9", "SHM-based k-nary", For::All, never!()),
        ],
        Collective::Bcast => &[
            ("1", "binomial", For::All, always!(Form::BinomialBcast)),
            ("2", "recursive doubling", For::All, always!(Form::ScatterDoublingBcast)),
            ("3", "ring", For::All, always!(Form::ScatterRingBcast)),
            ("4", "topology aware binomial", For::All, of_two!(Form::BinomialBcast)),
            ("5", "topology aware recursive doubling", For::All, of_two!(Form::ScatterDoublingBcast)),
            ("6", "topology aware ring", For::All, of_two!(Form::ScatterRingBcast)),
            ("7", "Shumilin's", For::All, never!()),
            ("8", "k-nomial", For::All, of_two!(Form::BinomialBcast)),
            ("9", "SHM-based flat", For::All, never!()),
            ("10", "SHM-based k-nomial", For::All, never!()),
            ("11", "SHM-based k-nary", For::All, never!()),
            ("12", "NUMA aware SHM-based flat", For::All, never!()),
            ("13", "NUMA aware SHM-based k-nomial", For::All, never!()),
            ("14", "NUMA aware SHM-based k-nary", For::All, never!()),
        ],
        Collective::Reduce => &[
            ("1", "Shumilin's", For::All, never!()),
            ("2", "binomial", For::All, always!(Form::BinomialReduce)),
            ("3", "topology aware Shumilin's", For::All, never!()),
            ("4", "topology aware binomial", For::All, of_two!(Form::BinomialReduce)),
            ("5", "Rabenseifner's", For::All, always!(Form::RabenseifnerReduce)),
            ("6", "topology aware Rabenseifner's", For::All, of_two!(Form::RabenseifnerReduce)),
            ("7", "k-nomial", For::All, of_two!(Form::BinomialReduce)),
            ("8", "SHM-based flat", For::All, never!()),
            ("9", "SHM-based k-nomial", For::All, never!()),
            ("10", "SHM-based k-nary", For::All, never!()),
            ("11", "SHM-based binomial", For::All, never!()),
        ],
        Collective::Allreduce => &[
            ("1", "recursive doubling", For::All, always!(Form::DoublingAllreduce)),
            ("2", "Rabenseifner's", For::All, always!(Form::Rabenseifner)),
            ("3", "reduce + bcast", For::All, always!(Form::ReduceBcast)),
            ("4", "topology aware reduce + bcast", For::All, of_two!(Form::ReduceBcast)),
            ("5", "binomial gather + scatter", For::All, never!()),
            ("6", "topology aware binomial gather + scatter", For::All, never!()),
            ("7", "Shumilin's ring", For::All, always!(Form::RingAllreduce)),
            ("8", "ring", For::All, always!(Form::RingAllreduce)),
            ("9", "k-nomial", For::All, never!()),
            ("10", "SHM-based flat", For::All, never!()),
            ("11", "SHM-based k-nomial", For::All, never!()),
            ("12", "SHM-based k-nary", For::All, never!()),
        ],
        Collective::Allgather => &[
            ("1", "recursive doubling", For::All, always!(Form::DoublingAllgather)),
            ("2", "Bruck's", For::All, always!(Form::BruckAllgather)),
            ("3", "ring", For::All, always!(Form::RingAllgather)),
            ("4", "topology aware gatherv + bcast", For::All, never!()),
            ("5", "k-nomial", For::All, of_two!(Form::RingAllgather)),
        ],
        Collective::Alltoall => &[
            ("1", "Bruck's", For::All, always!(Form::BruckAlltoall)),
            ("2", "isend/irecv + waitall", For::All, always!(Form::PairwiseAlltoall)),
            ("3", "pairwise exchange", For::All, always!(Form::PairwiseAlltoall)),
            ("4", "Plum's", For::All, never!()),
        ],
        _ => &[],
    }
}

/// Returns the algorithms of a collective.
pub(super) fn algorithms(collective: Collective, ranks: usize) -> Vec<Algorithm> {
    let mut all = of_rows(collective, rows(collective), ranks);
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

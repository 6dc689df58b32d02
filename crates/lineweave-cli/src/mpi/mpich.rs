//! MPICH's algorithms by name, as its control variables take them. CH4's own collectives are switched off to force another algorithm:
//! MPICH asks them first, and where all ranks are on one node they use shared memory without messages.

use super::algorithm::{always, never, of_rows, Algorithm, For, Row};
use crate::script::Variables;
use lineweave_core::collective::Collective;
use lineweave_lab::models::Form;

/// The collectives of CH4's shared memory, without messages.
const SHARED: &str = "release_gather";

fn rows(collective: Collective) -> &'static [Row] {
    match collective {
        Collective::Barrier => &[
            ("k_dissemination", "k_dissemination", For::All, always!(Form::DisseminationBarrier)),
            ("recexch", "recexch", For::All, |n| n.is_power_of_two().then_some(Form::DisseminationBarrier)),
            (SHARED, SHARED, For::All, never!()),
        ],
        Collective::Bcast => &[
            ("binomial", "binomial", For::All, always!(Form::BinomialBcast)),
            (
                "scatter_recursive_doubling_allgather",
                "scatter_recursive_doubling_allgather",
                For::Powers,
                always!(Form::ScatterDoublingBcast),
            ),
            ("scatter_ring_allgather", "scatter_ring_allgather", For::All, always!(Form::ScatterRingBcast)),
            ("tree", "tree", For::All, always!(Form::TreeBcast { degree: 2 })),
            ("pipelined_tree", "pipelined_tree", For::All, never!()),
            (SHARED, SHARED, For::All, never!()),
        ],
        Collective::Reduce => &[
            ("binomial", "binomial", For::All, always!(Form::BinomialReduce)),
            ("reduce_scatter_gather", "reduce_scatter_gather", For::All, always!(Form::RabenseifnerReduce)),
            (SHARED, SHARED, For::All, never!()),
        ],
        Collective::Allreduce => &[
            ("recursive_doubling", "recursive_doubling", For::All, always!(Form::DoublingAllreduce)),
            ("recursive_multiplying", "recursive_multiplying", For::All, never!()),
            ("reduce_scatter_allgather", "reduce_scatter_allgather", For::All, always!(Form::Rabenseifner)),
            ("tree", "tree", For::All, never!()),
            ("recexch", "recexch", For::All, always!(Form::DoublingAllreduce)),
            ("ring", "ring", For::All, always!(Form::RingAllreduce)),
            (
                "k_reduce_scatter_allgather",
                "k_reduce_scatter_allgather",
                For::All,
                always!(Form::Rabenseifner),
            ),
            (SHARED, SHARED, For::All, never!()),
        ],
        Collective::Allgather => &[
            ("brucks", "brucks", For::All, always!(Form::BruckAllgather)),
            ("k_brucks", "k_brucks", For::All, always!(Form::BruckAllgather)),
            ("recursive_doubling", "recursive_doubling", For::Powers, always!(Form::DoublingAllgather)),
            ("ring", "ring", For::All, always!(Form::RingAllgather)),
            ("recexch_doubling", "recexch_doubling", For::All, always!(Form::DoublingAllgather)),
            ("recexch_halving", "recexch_halving", For::All, always!(Form::DoublingAllgather)),
        ],
        Collective::Alltoall => &[
            ("brucks", "brucks", For::All, always!(Form::BruckAlltoall)),
            ("k_brucks", "k_brucks", For::All, always!(Form::BruckAlltoall)),
            ("pairwise", "pairwise", For::All, always!(Form::PairwiseAlltoall)),
            ("scattered", "scattered", For::All, always!(Form::PairwiseAlltoall)),
        ],
        _ => &[],
    }
}

/// Returns the algorithms of a collective.
pub(super) fn algorithms(collective: Collective, ranks: usize) -> Vec<Algorithm> {
    let mut all = of_rows(collective, rows(collective), ranks);
    // MPICH makes the shared memory of these by an allreduce, which fails where an algorithm is forced that is not for its length.
    for algorithm in all.iter_mut().filter(|_| collective != Collective::Allreduce) {
        algorithm.calls = &[Collective::Allreduce];
    }
    all
}

/// Returns whether an algorithm is one of CH4's shared memory.
pub fn is_shared(algorithm: &Algorithm) -> bool {
    algorithm.value == SHARED
}

/// Returns the settings that switch CH4's own collective off.
pub(super) fn aside(collective: Collective) -> Variables {
    let name = format!("MPIR_CVAR_{}_DEVICE_COLLECTIVE", collective.name().to_uppercase());
    vec![("MPIR_CVAR_DEVICE_COLLECTIVES".into(), "percoll".into()), (name, "0".into())]
}

/// Returns the settings that force an algorithm; a call for which the algorithm is unsuitable then fails instead of using another.
pub(super) fn force(algorithm: &Algorithm) -> Variables {
    let collective = algorithm.collective.name().to_uppercase();
    let mut variables = match is_shared(algorithm) {
        true => vec![(format!("MPIR_CVAR_{collective}_POSIX_INTRA_ALGORITHM"), SHARED.into())],
        false => {
            let mut aside = aside(algorithm.collective);
            aside.push((format!("MPIR_CVAR_{collective}_INTRA_ALGORITHM"), algorithm.value.clone()));
            aside
        }
    };
    variables.push(("MPIR_CVAR_COLLECTIVE_FALLBACK".into(), "error".into()));
    variables
}

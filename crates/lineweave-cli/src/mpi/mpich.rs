//! MPICH's algorithms by name, as its control variables take them. CH4's own collectives are switched off to force another algorithm:
//! MPICH asks them first, and where all ranks are on one node they use shared memory without messages.

use super::algorithm::For::{self, All, Powers};
use super::algorithm::{of_rows, Algorithm, Does};
use crate::script::Variables;
use lineweave_core::collective::Collective;
use lineweave_lab::models::Form;

/// The collectives of CH4's shared memory, without messages.
const SHARED: &str = "release_gather";

fn rows(collective: Collective) -> &'static [(&'static str, For, Does)] {
    match collective {
        Collective::Barrier => &[
            ("k_dissemination", All, Some((All, Form::DisseminationBarrier))),
            ("recexch", All, Some((Powers, Form::DisseminationBarrier))),
            (SHARED, All, None),
        ],
        Collective::Bcast => &[
            ("binomial", All, Some((All, Form::BinomialBcast))),
            ("scatter_recursive_doubling_allgather", Powers, Some((All, Form::ScatterDoublingBcast))),
            ("scatter_ring_allgather", All, Some((All, Form::ScatterRingBcast))),
            ("tree", All, Some((All, Form::TreeBcast { degree: 2 }))),
            ("pipelined_tree", All, None),
            (SHARED, All, None),
        ],
        Collective::Reduce => &[
            ("binomial", All, Some((All, Form::BinomialReduce))),
            ("reduce_scatter_gather", All, Some((All, Form::RabenseifnerReduce))),
            (SHARED, All, None),
        ],
        Collective::Allreduce => &[
            ("recursive_doubling", All, Some((All, Form::DoublingAllreduce))),
            ("recursive_multiplying", All, None),
            ("reduce_scatter_allgather", All, Some((All, Form::Rabenseifner))),
            ("tree", All, None),
            ("recexch", All, Some((All, Form::DoublingAllreduce))),
            ("ring", All, Some((All, Form::RingAllreduce))),
            ("k_reduce_scatter_allgather", All, Some((All, Form::Rabenseifner))),
            (SHARED, All, None),
        ],
        Collective::Allgather => &[
            ("brucks", All, Some((All, Form::BruckAllgather))),
            ("k_brucks", All, Some((All, Form::BruckAllgather))),
            ("recursive_doubling", Powers, Some((All, Form::DoublingAllgather))),
            ("ring", All, Some((All, Form::RingAllgather))),
            ("recexch_doubling", All, Some((All, Form::DoublingAllgather))),
            ("recexch_halving", All, Some((All, Form::DoublingAllgather))),
        ],
        Collective::Alltoall => &[
            ("brucks", All, Some((All, Form::BruckAlltoall))),
            ("k_brucks", All, Some((All, Form::BruckAlltoall))),
            ("pairwise", All, Some((All, Form::PairwiseAlltoall))),
            ("scattered", All, Some((All, Form::PairwiseAlltoall))),
        ],
        _ => &[],
    }
}

/// Returns the algorithms of a collective.
pub(super) fn algorithms(collective: Collective, ranks: usize) -> Vec<Algorithm> {
    let mut all = of_rows(
        collective,
        rows(collective).iter().map(|&(name, ranks, does)| (name, name, ranks, does)),
        ranks,
    );
    // MPICH makes the shared memory of these by an allreduce, which fails where an algorithm is forced that is not for its length.
    for algorithm in all.iter_mut().filter(|_| collective != Collective::Allreduce) {
        algorithm.calls = &[Collective::Allreduce];
    }
    // A rank's vector is copied before it is sent or folded.
    for algorithm in all.iter_mut().filter(|_| collective == Collective::Reduce) {
        algorithm.copies = Some(true);
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

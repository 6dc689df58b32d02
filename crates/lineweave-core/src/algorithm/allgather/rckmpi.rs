//! RCKMPI's allgather: MPICH's recursive doubling or ring over message buffers that are split among all senders.
//!
//! Comprés Ureña, Riepen & Konow 2011; Thakur, Rabenseifner & Gropp 2005; in shared memory, with two slots of 8 KiB, the
//! allgathers of Rico-Gallego & Diaz-Martin 2015, Eq. 18 and 21. MPICH doubles where P is a power of two and all blocks
//! together are shorter than 512 KiB. Any P. A baseline: not among the candidates for selection.

use super::super::pieces::{keep_own, output, whole};
use super::super::split_box::{Channel, CHUNK, LAYOUT, SLOTS};
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Params, PlanError, Region};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Allgather,
    name: "rckmpi",
    about: "MPICH's recursive doubling or ring over message buffers split among senders",
    source: "Comprés Ureña, Riepen & Konow 2011; Thakur, Rabenseifner & Gropp 2005",
    params: &[CHUNK, SLOTS, METHOD, LAYOUT],
    candidates: |_| Vec::new(),
    emit,
};

const METHOD: ParamSpec = ParamSpec {
    name: "method",
    default: "auto",
    about: "auto, as MPICH chooses; doubling, for powers of two; or ring",
};

/// From so many bytes of all blocks on MPICH takes the ring.
const LONG: usize = 512 << 10;

fn emit(b: &mut Builder, problem: &Problem, _: &Participants, params: &Params) -> Result<(), PlanError> {
    let (p, grid) = (b.ranks(), problem.grid());
    let total: usize = (0..p).map(|i| grid.len(i, i)).sum();
    let auto = p.is_power_of_two() && total < LONG;
    let doubles = params.one_of(METHOD.name, auto, &[("auto", auto), ("doubling", true), ("ring", false)])?;
    if doubles && !p.is_power_of_two() {
        let expected = "auto or ring where ranks are no power of two";
        return Err(PlanError::bad(METHOD.name, "doubling", expected));
    }
    (0..p).for_each(|rank| keep_own(b, &grid, rank));
    if p < 2 || grid.bytes == 0 {
        return Ok(());
    }
    let mut link = Channel::new(b, params, total)?;
    let block = |rank: usize, j: usize| output(grid.taken(rank, j));
    if !doubles {
        for rank in 0..p {
            let (right, left) = ((rank + 1) % p, (rank + p - 1) % p);
            for n in 0..p - 1 {
                let (give, take) = (block(rank, (rank + p - n) % p), block(rank, (left + p - n) % p));
                link.exchange(b, rank, Some((right, give)), Some((left, take)));
            }
        }
        link.finish(b);
        return Ok(());
    }
    for have in (0..p.ilog2()).map(|r| 1 << r) {
        for rank in 0..p {
            let peer = rank ^ have;
            let blocks = |of: usize| -> Vec<Region> {
                let start = of / have * have;
                (start..start + have).map(|j| block(rank, j)).collect()
            };
            // Blocks that lie apart go one by one.
            match (whole(blocks(rank)), whole(blocks(peer))) {
                (Some(give), Some(take)) => link.exchange(b, rank, Some((peer, give)), Some((peer, take))),
                _ => {
                    for (give, take) in blocks(rank).into_iter().zip(blocks(peer)) {
                        link.exchange(b, rank, Some((peer, give)), Some((peer, take)));
                    }
                }
            }
        }
    }
    link.finish(b);
    Ok(())
}

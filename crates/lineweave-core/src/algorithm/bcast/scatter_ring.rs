//! Scatter, then a ring allgather: van de Geijn's broadcast for long messages.
//!
//! Rico-Gallego & Diaz-Martin 2015, Eqs. 16 and 21 model it as MPICH has it. After a binomial scatter of P
//! blocks, virtual rank `v` copies block after block, its left neighbour's first, from that neighbour's box to
//! its own and then out. What the scatter left in a box is not fetched again, and the last block, which
//! nobody fetches from here, goes straight out. Any P and root; blocks are empty where there are more ranks
//! than elements.

use super::super::{Algorithm, Participants, Problem};
use super::scatter::Scatter;
use super::settings;
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "scatter-ring",
    about: "binomial scatter of P blocks, then a ring allgather",
    source: "van de Geijn; Rico-Gallego & Diaz-Martin 2015, Eqs. 16, 21",
    params: &[settings::LAYOUT],
    candidates,
    emit,
};

pub(super) fn candidates(problem: &Problem) -> Vec<Params> {
    if problem.ranks() < 3 || problem.bytes < 64 * problem.ranks() {
        return Vec::new(); // Less than a line a block.
    }
    vec![Params::new(), Params::new().with("layout", Layout::Paired)]
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    let p = s.len();
    if s.bytes == 0 || p < 2 {
        return Ok(());
    }
    let ranks = s.virtual_ranks();
    let scatter = Scatter::new(b, s, ranks.clone(), layout);
    // At each rank: how many blocks its left neighbour has, counted backwards from that neighbour's own
    // (index 0), and that this rank has left its left neighbour's box (index 1).
    let ring = b.flags("ring", layout, 2);
    for v in 0..p {
        let rank = ranks[v];
        let right = (v + 1 < p).then(|| ranks[v + 1]);
        let readers: Vec<_> = right.iter().map(|&r| ring.at(r, 1)).collect();
        scatter.emit(b, s, v, &readers);
        if v == 0 {
            if let Some(right) = right {
                b.set(rank, ring.at(right, 0), count(p - 1));
            }
            continue;
        }
        let held = scatter.held(v);
        for t in 0..p {
            let i = (v + p - t) % p;
            if !held.contains(&i) {
                b.wait(rank, ring.at(rank, 0), count(t));
                // The last block is nobody's to fetch: the right neighbour has it already.
                let last = t == p - 1 || right.is_none();
                let src = scatter.boxed(v - 1, i..i + 1);
                if last {
                    b.mov(rank, src, s.to.at(scatter.range(i..i + 1)));
                } else {
                    b.mov(rank, src, scatter.boxed(v, i..i + 1));
                }
            }
            if let Some(right) = right.filter(|_| t < p - 1) {
                b.set(rank, ring.at(right, 0), count(t + 1));
            }
            if held.contains(&i) || (t < p - 1 && right.is_some()) {
                b.mov(rank, scatter.boxed(v, i..i + 1), s.to.at(scatter.range(i..i + 1)));
            }
        }
        b.set(rank, ring.at(rank, 1), 1);
    }
    Ok(())
}

/// A number of blocks as a flag value.
fn count(blocks: usize) -> i32 {
    i32::try_from(blocks).unwrap_or(i32::MAX)
}

//! Scatter, then a recursive-doubling allgather.
//!
//! Rico-Gallego & Diaz-Martin 2015, Eqs. 16 and 18. Let Q be the largest power of two up to P. Q blocks are
//! scattered over Q ranks; in round `r` rank `v` copies the 2^r blocks of partner `v xor 2^r` from that one's
//! box to its own, unless the scatter left them there, and then out. Rank `Q + i` copies each run of blocks
//! out of rank `i`'s box as soon as it is there. Any P and root; blocks are empty where there are more
//! ranks than elements.

use super::super::{Algorithm, Participants, Problem};
use super::scatter::Scatter;
use super::scatter_ring;
use super::settings;
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};
use std::ops::Range;

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "scatter-doubling",
    about: "binomial scatter, then a recursive-doubling allgather; surplus ranks follow a partner",
    source: "Rico-Gallego & Diaz-Martin 2015, Eqs. 16, 18",
    params: &[settings::LAYOUT],
    candidates: scatter_ring::candidates,
    emit,
};

/// The blocks that the group of `v` of size `size` holds together.
fn group(v: usize, size: usize) -> Range<usize> {
    let start = v / size * size;
    start..start + size
}

fn within(inner: &Range<usize>, outer: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    let p = s.len();
    if s.bytes == 0 || p < 2 {
        return Ok(());
    }
    let ranks = s.virtual_ranks();
    let rounds = p.ilog2() as usize;
    let q = 1usize << rounds;
    let scatter = Scatter::new(b, s, ranks[..q].to_vec(), layout);
    // At the reader, per round: its partner's blocks are there (2r), and it has fetched them (2r + 1).
    let link = b.flags("double", layout, 2 * rounds);
    // At a surplus rank: rounds finished by its partner plus one (0), and all fetched (1).
    let follow = b.flags("follow", layout, if p > q { 2 } else { 0 });
    // Whether rank v fetches from its partner in round r.
    let fetches = |v: usize, r: usize| !within(&group(v ^ (1 << r), 1 << r), &scatter.held(v));

    for v in 0..q {
        let rank = ranks[v];
        let surplus = (v + q < p).then(|| ranks[v + q]);
        let mut readers: Vec<_> = (0..rounds)
            .filter(|&r| fetches(v ^ (1 << r), r))
            .map(|r| link.at(ranks[v ^ (1 << r)], 2 * r + 1))
            .collect();
        readers.extend(surplus.map(|f| follow.at(f, 1)));
        scatter.emit(b, s, v, &readers);
        // What is in the box and has yet to be copied out, which is left until others have been told.
        let mut pending = scatter.held(v);
        if let Some(f) = surplus {
            b.set(rank, follow.at(f, 0), 1);
        }
        for r in 0..rounds {
            let partner = v ^ (1 << r);
            if fetches(partner, r) {
                b.set(rank, link.at(ranks[partner], 2 * r), 1);
            }
            if v > 0 {
                b.mov(rank, scatter.boxed(v, pending.clone()), s.to.at(scatter.range(pending.clone())));
            }
            pending = 0..0;
            if fetches(v, r) {
                let blocks = group(partner, 1 << r);
                let src = scatter.boxed(partner, blocks.clone());
                b.wait(rank, link.at(rank, 2 * r), 1);
                if r + 1 == rounds && surplus.is_none() {
                    b.mov(rank, src, s.to.at(scatter.range(blocks)));
                } else {
                    b.mov(rank, src, scatter.boxed(v, blocks.clone()));
                    pending = blocks;
                }
                b.set(rank, link.at(rank, 2 * r + 1), 1);
                if let Some(f) = surplus {
                    b.set(rank, follow.at(f, 0), 2 + i32::try_from(r).unwrap_or(i32::MAX - 2));
                }
            }
        }
        if v > 0 {
            b.mov(rank, scatter.boxed(v, pending.clone()), s.to.at(scatter.range(pending)));
        }
    }
    for (partner, &rank) in ranks[q..].iter().enumerate() {
        let fetch = |b: &mut Builder, value: i32, blocks: Range<usize>| {
            b.wait(rank, follow.at(rank, 0), value);
            b.mov(rank, scatter.boxed(partner, blocks.clone()), s.to.at(scatter.range(blocks)));
        };
        fetch(b, 1, scatter.held(partner));
        for r in 0..rounds {
            if fetches(partner, r) {
                fetch(b, 2 + i32::try_from(r).unwrap_or(i32::MAX - 2), group(partner ^ (1 << r), 1 << r));
            }
        }
        b.set(rank, follow.at(rank, 1), 1);
    }
    Ok(())
}

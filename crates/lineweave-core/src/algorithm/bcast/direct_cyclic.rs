//! Cyclic pipelined slices without boxes: slices are fetched from the root's buffer and then from each other's.
//!
//! Ramos & Hoefler 2013, 4.1.3, Eq. 4.8, as published: virtual rank `i` copies slice `i - 1` of P - 1 from the root
//! in stage 0 and publishes its output buffer; in stage `j` it copies slice `(i - 1 + j) mod (P - 1)` from the rank that
//! fetched that. Everybody's buffer is in use by everybody, so all learn at the end that all are done, up and
//! down a k-ary tree. Needs direct access; any P above 1 and any root.

use super::super::ranks::block;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::direct::{self, Ack, Done, Public};
use super::settings;
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

const K: ParamSpec = ParamSpec { name: "k", default: "4", about: "degree of the tree that ends it" };

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "direct-cyclic",
    about: "P-1 slices, fetched from the root and then from each other's buffers (threads, shared heap)",
    source: "Ramos & Hoefler 2013, 4.1.3, Eq. 4.8",
    params: &[settings::LAYOUT, K],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    let p = problem.ranks();
    if !direct::applies(problem) || p < 3 || problem.bytes < 64 * p {
        return Vec::new(); // With one reader, or under a line a slice, there is nothing to pass around.
    }
    [2, 4, 8].into_iter().filter(|&k| k < p).map(|k| Params::new().with("k", k)).collect()
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    let k = params.int("k", 4, 1..129)?;
    direct::check_room(layout)?;
    let ranks = s.virtual_ranks();
    let p = ranks.len();
    let source = Public::new(&ALGORITHM, problem, ranks[0], s.from[s.root])?;
    if s.bytes == 0 || p < 2 {
        return Ok(());
    }
    b.direct();
    let grain = b.grain();
    let slice = |i: usize| block(s.bytes, grain, p - 1, i);
    let ready = b.flags("ready", layout, 1);
    let go = b.flags("go", layout, 1);
    let done = Done::new(b, Ack::Tree(k), layout, &ranks, None);
    b.set_address(ranks[0], ready.at(ranks[0], 0), 1, source.own);
    for (v, &rank) in ranks.iter().enumerate() {
        // Stage 0: from the root.
        if v > 0 {
            let own = Public::new(&ALGORITHM, problem, rank, s.to)?;
            b.wait_address(rank, ready.at(ranks[0], 0), 1, source.peer());
            b.mov(rank, source.at(slice(v - 1)), s.to.at(slice(v - 1)));
            b.set_address(rank, ready.at(rank, 0), 1, own.own);
            // Stage j: from the rank j further on.
            for j in 1..p - 1 {
                let i = (v - 1 + j) % (p - 1);
                let owner = Public::new(&ALGORITHM, problem, ranks[i + 1], s.to)?;
                if !slice(i).is_empty() {
                    b.wait_address(rank, ready.at(ranks[i + 1], 0), 1, owner.peer());
                    b.mov(rank, owner.at(slice(i)), s.to.at(slice(i)));
                }
            }
        }
        done.emit(b, v);
        done.release(b, go, v);
    }
    Ok(())
}

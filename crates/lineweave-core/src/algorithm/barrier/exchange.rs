//! Pairwise exchange (butterfly): in round `i` ranks that differ in bit `i` exchange flags.
//!
//! Both flags of a pair lie at the lower rank's home, next to each other, so that with the layout `paired` they
//! share a line and one transfer of it serves both (docs/explanation/measuring.md, "Which flags share a line"). Ranks beyond the largest power
//! of two arrive at a partner before the first round and are released by it after the last. Any P. Runs follow
//! each other in the same lines.

use super::super::{Algorithm, Participants, Problem};
use super::release::{layout_param, layouts, undivided};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Barrier,
    name: "exchange",
    about: "pairs exchange flags, twice as far apart each round",
    source: "Brooks 1986 (butterfly barrier)",
    params: &[layout_param("paired")],
    candidates,
    emit,
};

fn candidates(_: &Problem) -> Vec<Params> {
    layouts(&Params::new())
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Paired)?;
    undivided(b, s, layout, |b| full(b, s, layout));
    Ok(())
}

fn full(b: &mut Builder, s: &Participants, layout: Layout) {
    let p = s.len();
    if p < 2 {
        return;
    }
    let rounds = p.ilog2() as usize;
    let core = 1 << rounds;
    // Pairs of flags: one a round, and one for the surplus rank that a member of the core looks after.
    let pairs = rounds + usize::from(p > core);
    let pair = b.flags("pair", layout, 2 * pairs);
    for i in 0..p {
        let rank = s.members[i];
        if i >= core {
            let host = s.members[i - core];
            b.set(rank, pair.at(host, 2 * rounds + 1), 1);
            b.wait(rank, pair.at(host, 2 * rounds), 1);
            continue;
        }
        if i + core < p {
            b.wait(rank, pair.at(rank, 2 * rounds + 1), 1);
        }
        for round in 0..rounds {
            let bit = 1 << round;
            let home = s.members[i & !bit];
            let side = usize::from(i & bit != 0);
            b.set(rank, pair.at(home, 2 * round + side), 1);
            b.wait(rank, pair.at(home, 2 * round + 1 - side), 1);
        }
        if i + core < p {
            b.set(rank, pair.at(rank, 2 * rounds), 1);
        }
    }
}

//! Cyclic pipelined slices: the message in P - 1 slices, each fetched once from the root and then passed around.
//!
//! Ramos & Hoefler 2013, section 4.1.3, Eq. 4.8, through boxes: virtual rank `i` copies slice `i - 1` from the
//! root's box to its own in stage 0, and in stage `j` slice `(i - 1 + j) mod (P - 1)` from the box of the rank that
//! fetched that. In every stage each box has one reader. With `via=push` the root puts each slice straight into
//! its rank's box: one copy less, but all lines then come from the root's cache. Any P above 1 and any root;
//! slices are empty where there are more ranks than elements. The zero-copy form is `direct-cyclic`.

use super::super::ranks::block;
use super::super::trees::boxed;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::settings;
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

const VIA: ParamSpec = ParamSpec {
    name: "via",
    default: "pull",
    about: "pull: a rank fetches its slice from the root's box; push: the root puts it into the rank's",
};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "cyclic",
    about: "P-1 slices, each fetched from the root once and then passed around, one reader a box",
    source: "Ramos & Hoefler 2013, 4.1.3, Eq. 4.8",
    params: &[settings::LAYOUT, VIA],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    // Below a line a slice, and with one reader, there is nothing to pass around.
    if problem.ranks() < 3 || problem.bytes < 64 * problem.ranks() {
        return Vec::new();
    }
    vec![Params::new(), Params::new().with("via", "push")]
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    let push = params.one_of("via", false, &[("pull", false), ("push", true)])?;
    let p = s.len();
    if s.bytes == 0 || p < 2 {
        return Ok(());
    }
    b.ring();
    let grain = b.grain();
    let ranks = s.virtual_ranks();
    let slice = |i: usize| block(s.bytes, grain, p - 1, i);
    let longest = (0..p - 1).map(|i| slice(i).len()).max().unwrap_or(0);
    // `cut[i]` says that slice i-1 is in the root's box, `ready[i]` that it is in that of virtual rank i.
    let (whole, cut) = match push {
        false => (Some(b.slot(s.bytes)), Some(b.flags("cut", layout, 1))),
        true => (None, None),
    };
    let own = b.slot(longest);
    let ready = b.flags("ready", layout, 1);
    let slice_box = |i: usize| boxed(ranks[i + 1], own, 0..slice(i).len());
    // The root hands out the slices in the order of the ranks.
    for i in 0..p - 1 {
        let src = s.from[s.root].at(slice(i));
        match (whole, cut) {
            (Some(whole), Some(cut)) => {
                b.mov(ranks[0], src, boxed(ranks[0], whole, slice(i)));
                b.set(ranks[0], cut.at(ranks[i + 1], 0), 1);
            }
            _ => {
                b.mov(ranks[0], src, slice_box(i));
                b.set(ranks[0], ready.at(ranks[i + 1], 0), 1);
            }
        }
    }
    for v in 1..p {
        let rank = ranks[v];
        // Stage 0: the rank's own slice. Others are told before it is copied out.
        if let (Some(whole), Some(cut)) = (whole, cut) {
            b.wait(rank, cut.at(rank, 0), 1);
            b.mov(rank, boxed(ranks[0], whole, slice(v - 1)), slice_box(v - 1));
            b.set(rank, ready.at(rank, 0), 1);
        }
        // Stage j: the slice of the rank j further on.
        for j in 0..p - 1 {
            let i = (v - 1 + j) % (p - 1);
            if j > 0 || push {
                b.wait(rank, ready.at(ranks[i + 1], 0), 1);
            }
            b.mov(rank, slice_box(i), s.to.at(slice(i)));
        }
    }
    Ok(())
}

//! Root and receivers copy at the same time: the root writes part of the message into everybody's output
//! buffer while each copies the rest out of the root's input.
//!
//! At P = 2 both CPUs move half of the bytes each. The root writes `share` percent of the message to each
//! rank; 100 / P lets everybody finish together when all copy alike. Zero-copy as in Ramos & Hoefler 2013, 4.1.1;
//! needs direct access; any P and root, meant for few ranks.

use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::direct::{self, Ack, Done, Public};
use super::settings;
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};
use crate::units::LINE;

const SHARE: ParamSpec = ParamSpec {
    name: "share",
    default: "auto",
    about: "percent of the message that the root writes; auto: 100/P",
};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "direct-split",
    about: "the root writes part of the message while receivers read the rest (threads, shared heap)",
    source: "after Ramos & Hoefler 2013, 4.1.1 (zero copy), both sides copying",
    params: &[settings::LAYOUT, SHARE],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if !direct::applies(problem) || problem.ranks() > 8 || problem.bytes < 1024 {
        return Vec::new();
    }
    let even = 100 / problem.ranks();
    let mut out = Vec::new();
    for share in [even, even * 4 / 5, even * 3 / 5] {
        for layout in [Layout::Alone, Layout::Paired] {
            out.push(Params::new().with("share", share).with("layout", layout));
        }
    }
    out
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    let share = match params.get("share") {
        None | Some("auto") => 100 / s.len().max(1),
        Some(_) => params.int("share", 0, 0..101)?,
    };
    direct::check_room(layout)?;
    let ranks = s.virtual_ranks();
    let source = Public::new(&ALGORITHM, problem, ranks[0], s.from[s.root])?;
    if s.bytes == 0 || ranks.len() < 2 {
        return Ok(());
    }
    b.direct();
    // The root's part ends on a line (and an element), so that no line is written from both sides.
    let unit = if LINE % b.grain() == 0 { LINE } else { b.grain() };
    let cut = (s.bytes / 100 * share + s.bytes % 100 * share / 100) / unit * unit;
    // At each receiver, in pairs that root and receiver exchange: addresses (the root's, its own), and that
    // what had to be copied has been (by the root, by itself).
    let hello = b.flags("hello", layout, 2);
    let copied = b.flags("copied", layout, 2);
    let done = Done::new(b, Ack::Flags, layout, &ranks, Some(copied));
    let root = ranks[0];
    for &rank in &ranks[1..] {
        b.set_address(root, hello.at(rank, 0), 1, source.own);
    }
    for (v, &rank) in ranks.iter().enumerate().skip(1) {
        let target = Public::new(&ALGORITHM, problem, rank, s.to)?;
        if cut > 0 {
            b.set_address(rank, hello.at(rank, 1), 1, target.own);
            b.wait_address(root, hello.at(rank, 1), 1, target.peer());
            b.mov(root, s.from[s.root].at(0..cut), target.at(0..cut));
            b.set(root, copied.at(rank, 0), 1);
        }
        b.wait_address(rank, hello.at(rank, 0), 1, source.peer());
        b.mov(rank, source.at(cut..s.bytes), s.to.at(cut..s.bytes));
        done.emit(b, v);
        if cut > 0 {
            b.wait(rank, copied.at(rank, 0), 1);
        }
    }
    done.emit(b, 0);
    Ok(())
}

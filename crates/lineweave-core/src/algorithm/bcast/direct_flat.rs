//! Everybody copies straight out of the root's buffer, whose address travels in a flag's line.
//!
//! The zero-copy flat tree of Ramos & Hoefler 2013, 4.1.3, Eq. 4.10: the best for long messages in their measurements.
//! The root waits until everybody is done, by a flag a rank, one counter (their choice, Eq. 4.1) or a tree of
//! acknowledgements. Needs direct access; any P and root.

use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::direct::{self, Ack, Done, Public};
use super::settings::{self, Notify};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "direct-flat",
    about: "everybody copies out of the root's buffer (threads, shared heap)",
    source: "Ramos & Hoefler 2013, 4.1.1, Eq. 4.10",
    params: &[settings::LAYOUT, ParamSpec { default: "shared", ..settings::NOTIFY }, direct::ACK],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    if !direct::applies(problem) {
        return Vec::new();
    }
    let p = problem.ranks();
    let mut out = vec![Params::new(), Params::new().with("notify", "each")];
    out.push(Params::new().with("notify", "each").with("layout", Layout::Paired));
    if p > 2 {
        out.push(Params::new().with("ack", "counter"));
    }
    for k in [2, 4, 8].into_iter().filter(|k| k + 2 < p) {
        out.push(Params::new().with("ack", k));
        out.push(Params::new().with("ack", k).with("notify", "each"));
    }
    out
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let layout = params.read("layout", Layout::Alone)?;
    let notify = direct::notify(params, Notify::Shared)?;
    let ack = params.read("ack", Ack::Flags)?;
    direct::check_room(layout)?;
    let ranks = s.virtual_ranks();
    let source = Public::new(&ALGORITHM, problem, ranks[0], s.from[s.root])?;
    if s.bytes == 0 || ranks.len() < 2 {
        return Ok(());
    }
    b.direct();
    // With a flag a rank, its done flag may share the line.
    let pair = notify == Notify::Each && ack != Ack::Counter;
    let ready = b.flags("ready", layout, if pair { 2 } else { 1 });
    let done = Done::new(b, ack, layout, &ranks, pair.then_some(ready));
    let flag = |v: usize| match notify {
        Notify::Shared => ready.at(ranks[0], 0),
        Notify::Each | Notify::Binary => ready.at(ranks[v], 0),
    };
    let told = if notify == Notify::Shared { 1 } else { ranks.len() - 1 };
    for v in 1..=told {
        b.set_address(ranks[0], flag(v), 1, source.own);
    }
    for (v, &rank) in ranks.iter().enumerate() {
        if v > 0 {
            b.wait_address(rank, flag(v), 1, source.peer());
            b.mov(rank, source.at(0..s.bytes), s.to.at(0..s.bytes));
        }
        done.emit(b, v);
    }
    Ok(())
}

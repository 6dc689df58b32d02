//! All to all: one round in which everybody learns of everybody.
//!
//! With `flags=one` each rank sets a single flag and reads everybody else's: one store and P - 1 loads, and when
//! ranks outnumber CPUs one turn of the scheduler suffices. `home=root` puts all flags side by side at the
//! root's home (with the layout `packed` eight ranks a line), `home=own` each at its writer's. With `flags=each`
//! a rank sets a flag at every other rank's home and polls its own memory only: dissemination with m = P - 1. Any P.

use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::release::{layout_param, layouts, undivided};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Barrier,
    name: "all-to-all",
    about: "each rank sets its flag, then reads everybody's",
    source: "Ramos & Hoefler 2013, section 4.2, with m = P - 1",
    params: &[
        ParamSpec {
            name: "flags",
            default: "one",
            about: "one: a flag a rank; each: a flag for every other rank",
        },
        ParamSpec {
            name: "home",
            default: "root",
            about: "of flags=one: root, all in one place; own, each at its rank",
        },
        layout_param("packed"),
    ],
    candidates,
    emit,
};

fn candidates(_: &Problem) -> Vec<Params> {
    let mut out = layouts(&Params::new());
    out.push(Params::new().with("home", "own").with("layout", Layout::Alone));
    out.push(Params::new().with("home", "own").with("layout", Layout::Spread(2)));
    out.extend(layouts(&Params::new().with("flags", "each")));
    out
}

/// At whose home the flags are.
#[derive(Clone, Copy)]
enum Flags {
    Root,
    Writers,
    Readers,
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let each = params.one_of("flags", false, &[("one", false), ("each", true)])?;
    let home = params.one_of("home", Flags::Root, &[("root", Flags::Root), ("own", Flags::Writers)])?;
    let flags = if each { Flags::Readers } else { home };
    let layout = params.read("layout", Layout::Packed)?;
    undivided(b, s, layout, |b| full(b, s, flags, layout));
    Ok(())
}

fn full(b: &mut Builder, s: &Participants, flags: Flags, layout: Layout) {
    let p = s.len();
    if p < 2 {
        return;
    }
    let count = match flags {
        Flags::Root | Flags::Readers => p,
        Flags::Writers => 1,
    };
    let arrived = b.flags("arrived", layout, count);
    for i in 0..p {
        let rank = s.members[i];
        // Starting after itself, each rank meets the others in another order: no line is everybody's first.
        let others = (1..p).map(|d| (i + d) % p);
        match flags {
            Flags::Root => b.set(rank, arrived.at(s.members[s.root], i), 1),
            Flags::Writers => b.set(rank, arrived.at(rank, 0), 1),
            Flags::Readers => others.clone().for_each(|j| b.set(rank, arrived.at(s.members[j], i), 1)),
        }
        for j in others {
            let flag = match flags {
                Flags::Root => arrived.at(s.members[s.root], j),
                Flags::Writers => arrived.at(s.members[j], 0),
                Flags::Readers => arrived.at(rank, j),
            };
            b.wait(rank, flag, 1);
        }
    }
}

//! A k-nomial tree in which each rank copies out of its parent's buffer.
//!
//! The zero-copy form of the tree algorithms (Ramos & Hoefler 2013, 4.1.1 and 4.1.2): fewer readers of one
//! buffer than `direct-flat`, and a parent waits for its own children only. Chunks let a rank's children
//! start before it has everything. Needs direct access; any P and root.

use super::super::pieces::value;
use super::super::ranks::{ceil_log, chunks};
use super::super::trees::Tree;
use super::super::{Algorithm, ParamSpec, Participants, Problem, MAX_RANKS};
use super::direct::{self, Public};
use super::settings::{self, chunk_grid, Notify};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

const K: ParamSpec = ParamSpec { name: "k", default: "4", about: "base of the tree: k-1 children a round" };

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Bcast,
    name: "direct-tree",
    about: "a k-nomial tree; each rank copies out of its parent's buffer (threads, shared heap)",
    source: "Ramos & Hoefler 2013, 4.1.1",
    params: &[K, settings::LAYOUT, settings::NOTIFY, settings::CHUNK],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    let p = problem.ranks();
    if !direct::applies(problem) || p < 4 {
        return Vec::new(); // With fewer ranks the tree is all but flat.
    }
    let mut ks: Vec<usize> = [2, 3, 4, 8].into_iter().filter(|&k| k < p).collect();
    ks.dedup_by_key(|k| ceil_log(p, *k));
    let mut out = Vec::new();
    for k in ks {
        out.push(Params::new().with("k", k));
        for chunk in chunk_grid(problem.bytes).into_iter().skip(1) {
            out.push(Params::new().with("k", k).with("chunk", chunk));
        }
    }
    out
}

fn emit(b: &mut Builder, problem: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let k = params.int("k", 4, 2..MAX_RANKS + 1)?;
    let layout = params.read("layout", Layout::Alone)?;
    let notify = direct::notify(params, Notify::Each)?;
    let chunk = params.int("chunk", 0, 0..usize::MAX)?;
    direct::check_room(layout)?;
    let ranks = s.virtual_ranks();
    let p = ranks.len();
    let tree = Tree::knomial(p, k);
    let mut buffers = Vec::with_capacity(p);
    for (v, &rank) in ranks.iter().enumerate() {
        buffers.push(Public::new(&ALGORITHM, problem, rank, if v == 0 { s.from[s.root] } else { s.to })?);
    }
    if s.bytes == 0 || p < 2 {
        return Ok(());
    }
    b.direct();
    // `ready` carries the address when the first chunk is there; `more` counts the chunks after it.
    let parts = chunks(0..s.bytes, if chunk == 0 { s.bytes } else { chunk }, b.grain());
    let ready = b.flags("ready", layout, 1);
    let more = b.flags("more", layout, usize::from(parts.len() > 1));
    let done = b.flags("done", layout, 1);
    let homes = |v: usize| -> Vec<usize> {
        match notify {
            Notify::Shared if tree.children[v].is_empty() => Vec::new(),
            Notify::Shared => vec![ranks[v]],
            Notify::Each | Notify::Binary => tree.children[v].iter().map(|&c| ranks[c]).collect(),
        }
    };
    for (v, &rank) in ranks.iter().enumerate() {
        let parent = tree.parent[v];
        // The root's buffer is complete from the start: one chunk says so.
        let steps = if v == 0 { &parts[..1] } else { &parts[..] };
        for (i, part) in steps.iter().enumerate() {
            if let Some(parent) = parent {
                let home = if notify == Notify::Shared { ranks[parent] } else { rank };
                match i {
                    0 => b.wait_address(rank, ready.at(home, 0), 1, buffers[parent].peer()),
                    _ if parent == 0 => {}
                    _ => b.wait(rank, more.at(home, 0), value(i)),
                }
                b.mov(rank, buffers[parent].at(part.clone()), s.to.at(part.clone()));
            }
            for home in homes(v) {
                match i {
                    0 => b.set_address(rank, ready.at(home, 0), 1, buffers[v].own),
                    _ => b.set(rank, more.at(home, 0), value(i)),
                }
            }
        }
        if v > 0 {
            b.set(rank, done.at(rank, 0), 1);
        }
        for &child in &tree.children[v] {
            b.wait(rank, done.at(ranks[child], 0), 1);
        }
    }
    Ok(())
}

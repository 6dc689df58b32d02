//! Probe `copy`: L(m, tau), copies of m bytes while tau of them run (Rico-Gallego & Diaz-Martin 2015, section
//! 3), by the engine's own kernels.
//!
//! - `local`: within private memory. `get`: out of a box that its owner has just written; `put`: into the own box,
//!   which a peer has read last.
//! - Set-ups: `ring`, each rank gets from its neighbour (tau = P); `ping`, the odd rank of each pair gets (tau =
//!   P / 2); `bcast`, all others get from rank 0 (tau = P - 1).
//!
//! Short copies are done many times a sample, at random places; those that fetch from a peer one by one.

use super::cache;
use super::cell::{ProbeContext, ProbeTasks, ProbeTeam, Role, SampleKey, Task};
use super::clock::Clock;
use super::timing::{collect_timed, Rules, Samples};
use lineweave::kernel::{copy, copy_nt};
use lineweave::Error;

/// From a line to beyond most last-level caches' share of a core.
const SIZES: [usize; 10] =
    [64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20];
/// Bytes copied in a sample, at least: some microseconds.
const SAMPLE: usize = 32 << 10;
/// Non-temporal stores are tried from here on: below, a line's fence alone costs more than the copy.
const NT_FROM: usize = 1 << 10;
/// And by several ranks at once from here on: shorter ones never leave the caches.
const NT_BESIDE_FROM: usize = 64 << 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pattern {
    Local,
    /// `tau` ranks get, each from the next one.
    Get,
    /// `tau` ranks put what each next one has read last.
    Put,
    /// Odd ranks get from even ones.
    Ping,
    /// All get from rank 0.
    Bcast,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Setup {
    pattern: Pattern,
    tau: usize,
    bytes: usize,
    nt: bool,
}

pub fn offer(crew: &ProbeTeam, largest: usize, offer: &mut ProbeTasks) {
    let ranks = crew.cpus.len();
    for bytes in SIZES.into_iter().filter(|&b| b <= largest) {
        for nt in [false, true] {
            if nt && (bytes < NT_FROM || cfg!(not(target_arch = "x86_64"))) {
                continue;
            }
            for (names, pattern, tau) in set_ups(crew.role, ranks, nt) {
                if nt && tau > 1 && bytes < NT_BESIDE_FROM {
                    continue;
                }
                let setup = Setup { pattern, tau, bytes, nt };
                let key = |name: &str| {
                    let level = if name == "local" { "local" } else { crew.level.name() };
                    SampleKey::new("copy")
                        .with("pattern", name)
                        .with("kind", if nt { "nt" } else { "plain" })
                        .with("bytes", bytes)
                        .with("tau", tau)
                        .with("level", level)
                };
                let weight = if bytes < 64 << 10 { 0.7 } else { 1.0 };
                let mut task =
                    Task::new(key(names[0]), weight, move |hand, rules| samples(hand, rules, setup));
                task.keys.extend(names[1..].iter().map(|name| key(name)));
                offer.tasks.push(task);
            }
        }
    }
}

/// The set-ups of a crew, each with the names under which it is known: of two ranks several are the same.
fn set_ups(role: Role, ranks: usize, nt: bool) -> Vec<(Vec<&'static str>, Pattern, usize)> {
    match role {
        Role::SameCpu | Role::Trio => Vec::new(),
        Role::Solo => vec![(vec!["local"], Pattern::Local, 1)],
        Role::Pair => {
            let mut list =
                vec![(vec!["get", "ping", "bcast"], Pattern::Get, 1), (vec!["put"], Pattern::Put, 1)];
            list.push((vec!["local"], Pattern::Local, 2));
            if !nt {
                list.push((vec!["get", "ring"], Pattern::Get, 2));
                list.push((vec!["put"], Pattern::Put, 2));
            }
            list
        }
        Role::Crowd => {
            let mut taus: Vec<usize> = (2..).map(|i| 1 << i).take_while(|&t| t < ranks).collect();
            taus.push(ranks);
            if nt {
                return taus.into_iter().map(|tau| (vec!["local"], Pattern::Local, tau)).collect();
            }
            let mut list =
                vec![(vec!["ping"], Pattern::Ping, ranks / 2), (vec!["bcast"], Pattern::Bcast, ranks - 1)];
            for tau in taus {
                list.push((vec!["local"], Pattern::Local, tau));
                list.push((if tau == ranks { vec!["get", "ring"] } else { vec!["get"] }, Pattern::Get, tau));
                list.push((vec!["put"], Pattern::Put, tau));
            }
            list
        }
    }
}

/// Lists what machines of fewer CPUs cannot tell.
pub fn beyond(cpus: usize, offer: &mut ProbeTasks) {
    let because = format!("tau copies at once need tau CPUs, and {cpus} can be used");
    offer.missing(format!("L(m, tau > {cpus})"), because);
}

fn samples(hand: &mut ProbeContext<'_>, rules: &Rules, setup: Setup) -> Result<Samples, Error> {
    let (rank, ranks) = (hand.comm.rank(), hand.comm.ranks());
    let Setup { pattern, tau, bytes, nt } = setup;
    let count = (SAMPLE / bytes).max(1);
    let next = (rank + 1) % ranks;
    let before = (rank + ranks - 1) % ranks;
    // Of two ranks, rank 1 gets and rank 0 puts: both deal with the lines whose home is rank 0.
    let acts = match pattern {
        Pattern::Local | Pattern::Put => rank < tau,
        Pattern::Get => before < tau,
        Pattern::Ping => rank % 2 == 1 && rank / 2 < tau,
        Pattern::Bcast => rank > 0,
    };
    let from = match pattern {
        Pattern::Local | Pattern::Put => hand.input,
        Pattern::Get | Pattern::Ping => hand.shared[before],
        Pattern::Bcast => hand.shared[0],
    };
    let to = if pattern == Pattern::Put { hand.shared[rank] } else { hand.output };
    // What peers do first, so that lines are where the pattern says: write them, or read them all.
    let (own, input, output) = (hand.shared[rank], hand.input, hand.output);
    let peer = hand.shared[next];
    let prepares = match pattern {
        Pattern::Local => false,
        Pattern::Get => rank < tau,
        Pattern::Ping => rank % 2 == 0,
        Pattern::Bcast => rank == 0,
        Pattern::Put => next < tau,
    };
    let (clock, random) = (Clock::get(), &mut hand.random);
    let total = count * bytes;
    let mut order: Vec<usize> = (0..count).collect();
    collect_timed(hand.comm, rules, &mut |comm| {
        random.shuffle(&mut order);
        // SAFETY: all three buffers of a rank hold `total` bytes at least; before the barrier each rank writes
        // only its own buffers and reads a peer's that nobody writes; after it likewise.
        unsafe {
            if prepares && pattern == Pattern::Put {
                copy(peer, output, total);
            } else if prepares {
                copy(input, own, total);
            }
        }
        comm.barrier()?;
        let mut nanos = 0.0;
        if acts {
            let start = clock.now();
            for &i in &order {
                // SAFETY: as above.
                unsafe {
                    let (src, dst) = (from.add(i * bytes), to.add(i * bytes));
                    if nt {
                        copy_nt(src, dst, bytes);
                    } else {
                        copy(src, dst, bytes);
                    }
                }
                if pattern != Pattern::Local {
                    cache::serialize();
                }
            }
            nanos = clock.since(start) / count as f64;
        }
        comm.barrier()?;
        Ok(nanos)
    })
}

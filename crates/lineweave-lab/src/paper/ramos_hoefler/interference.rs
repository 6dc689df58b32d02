//! Looks at a line by several threads at once: Figure 4.1, acknowledgements of section 4.1.1, and parameters of the worst case.

use super::simulated::{acknowledged, of_table, threads, time};
use super::Numbers;
use crate::models::cache_line::{barrier as barrier_model, small_broadcast_level};
use crate::optimise::radix::{uniform, Growth};
use crate::optimise::{levels, ramos_hoefler as optimise};
use crate::paper::limit::ALMOST;
use crate::paper::{claim, Finding, Verdict};
use lineweave_core::algorithm::trees::Tree;
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Builder, Layout, Params};

pub(super) fn claims() -> Vec<Finding> {
    let n = Numbers::of_phi();
    vec![orders(&n), acknowledgements(&n), worst_case(&n), libraries()]
}

/// Two writers and a poller of one line from memory: ns until the poller knows of both, by the local accesses before each begins.
fn polled(n: &Numbers, before: [i32; 3]) -> f64 {
    let mut b = Builder::new(Collective::Barrier, "polled", &Params::new(), 3, 0, 0, 1);
    let (line, own) = (b.counters("line", Layout::Alone, 1), b.flags("own", Layout::Alone, 1));
    for (rank, &before) in before.iter().enumerate() {
        (0..=before).for_each(|i| b.set(rank, own.at(rank, 0), 1 + i));
        match rank {
            2 => b.wait(rank, line.at(2, 0), 2),
            _ => b.add(rank, line.at(2, 0)),
        }
    }
    time(&b.finish()) - n.reads.local
}

/// Figure 4.1: the poller last, between the writers, and first.
fn orders(n: &Numbers) -> Finding {
    let found = [[0, 1, 2], [0, 2, 1], [5, 50, 0]].map(|before| polled(n, before));
    let printed = [2.0, 3.0, 4.0].map(|reads| n.reads.invalid + reads * n.reads.remote);
    let off = found.iter().zip(printed).map(|(ours, printed)| (ours / printed - 1.0).abs());
    claim(
        "fig 4.1, simulated",
        "two writers and a poller of a line cost R_I + 2, 3 or 4 R_R: the poller last, between them, and first",
        format!("{:.0}, {:.0} and {:.0} ns; the sums are {:.0}, {:.0} and {:.0}", found[0], found[1], found[2], printed[0], printed[1], printed[2]),
        ALMOST.of(off.fold(0.0, f64::max)),
    )
}

/// Degrees of the small broadcast by the best and by the worst case.
fn degrees(n: &Numbers, p: usize) -> [Vec<usize>; 2] {
    let worst = levels::degrees(p, |k| small_broadcast_level(&n.reads, &n.t_c, k).max).0;
    [optimise::small_broadcast(&n.reads, &n.t_c, p).choice, worst]
}

/// Children acknowledge on one line of their parent's, or on a line each.
fn acknowledgements(n: &Numbers) -> Finding {
    let at = |p: usize| {
        let tree = Tree::by_degrees(p, &degrees(n, p)[0]);
        [true, false].map(|one| time(&acknowledged(&tree, true, one)))
    };
    let all: Vec<[f64; 2]> = threads().map(at).collect();
    let faster = all.iter().filter(|[one, each]| one < each).count();
    let [one, each] = all[all.len() - 1];
    claim(
        "section 4.1.1",
        "acknowledgements on one line are faster than on a line each, by the model and measured",
        format!(
            "small broadcasts of the optimised trees, simulated: one line is faster with {faster} of {} numbers of threads; with 60 {one:.0} and \
             {each:.0} ns. Writers of one line follow each other, and so do the parent's reads of a line each; the model's best cases are equal, \
             R_I + k R_R",
            all.len()
        ),
        faster == all.len(),
    )
}

/// Section 4.4: minimising the worst case instead of the best.
fn worst_case(n: &Numbers) -> Finding {
    let broadcast = |p: usize| {
        let [best, worst] = degrees(n, p).map(|d| time(&acknowledged(&Tree::by_degrees(p, &d), true, true)));
        worst / best - 1.0
    };
    let barrier = |p: usize| {
        let of = |m: usize| {
            time(&of_table(Collective::Barrier, "dissemination", p, 0, &Params::new().with("m", m)))
        };
        let best = optimise::barrier(&n.reads, p, Growth::Published).choice.m;
        of(uniform(p, Growth::Published, |m| barrier_model(&n.reads, m, 1).max).0.m) / of(best) - 1.0
    };
    let range = |of: &dyn Fn(usize) -> f64| {
        threads().map(of).fold((f64::MAX, f64::MIN), |(low, high), off| (low.min(off), high.max(off)))
    };
    let (b, s) = (range(&broadcast), range(&barrier));
    let same = (2..=60).filter(|&p| degrees(n, p)[0] == degrees(n, p)[1]).count();
    claim(
        "section 4.4, worst case",
        "parameters that minimise the worst case give similar results",
        format!(
            "the same degrees of the small broadcast with {same} of 59 numbers of threads; simulated, those of the worst case take {:+.0} to {:+.0} % \
             longer, barriers {:+.0} to {:+.0} %",
            100.0 * b.0,
            100.0 * b.1,
            100.0 * s.0,
            100.0 * s.1
        ),
        ALMOST.of(b.1.max(s.1).max(-b.0).max(-s.0)),
    )
}

fn libraries() -> Finding {
    let why = "needs the machine with Intel's MPI and OpenMP, whose times are pictures; `lab reproduce` compares on the machine at hand";
    claim("section 5.2", "up to 4.3 times as fast as Intel's MPI and OpenMP", why, Verdict::NotReproduced)
}

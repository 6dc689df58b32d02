//! Figures of measurements on the Xeon Phi, simulated: Figures 3.6 and 4.4 to 4.8.
//!
//! The paper prints these as curves; what it says of them in words is put to the test. Bands are the min-max models of
//! Table 4.1 with the paper's parameters.

use super::{phi, Numbers};
use crate::models::cache_line::{
    barrier as barrier_model, reduction as reduction_model, small_broadcast, Folding, MinMax, Reads, SameLine,
};
use crate::optimise::list;
use crate::optimise::radix::Growth;
use crate::optimise::ramos_hoefler::{self as optimise, Large};
use crate::paper::given::{planned, played};
use crate::paper::limit::NUMBER;
use crate::paper::{claim, Basis, Finding};
use crate::simulate::{coherent, moves, slot, Options};
use lineweave_core::algorithm::trees::Tree;
use lineweave_core::algorithm::Problem;
use lineweave_core::collective::Collective;
use lineweave_core::machine::State;
use lineweave_core::plan::{Builder, Layout, Params, Plan, Region, Space};
use lineweave_core::units::Rank;

/// Numbers of threads of the figures' points looked at.
pub(super) fn threads() -> impl Iterator<Item = usize> {
    (4..=60).step_by(4)
}

pub(super) fn claims() -> Vec<Finding> {
    let n = Numbers::of_phi();
    let mut out = vec![contention(), contention_in_memory()];
    out.extend(small_trees(&n));
    out.extend([small_band(&n), large(&n), barriers(&n), reductions(&n)]);
    out
}

/// The first run of a plan, alone, in ns.
pub(super) fn time(plan: &Plan) -> f64 {
    played(phi(), plan, &Options::default()).first.nanos()
}

pub(super) fn of_table(
    collective: Collective,
    name: &str,
    ranks: usize,
    bytes: usize,
    params: &Params,
) -> Plan {
    let mut problem = Problem::flat(collective, ranks, bytes);
    problem.shape = coherent::placed(phi(), ranks).unwrap_or_else(|e| panic!("{e}"));
    problem.direct = true;
    problem.grain = if collective.folds() { 8 } else { 1 };
    planned(name, &problem, params)
}

/// Returns the time, in ns, at which the last of `n` threads has read one line, which is in a cache (E) or in memory (I).
pub(super) fn last_reader(n: usize, state: State) -> f64 {
    let space = match state {
        State::I => slot(0, 0),
        State::M | State::E | State::S | State::F => Space::PeerIn(Rank(0)),
    };
    time(&moves(n + 1, 64, 1, (1..=n).map(|rank| (rank, space, Space::Out))))
}

/// Figure 3.6a: when the last of `n` threads has read one line.
fn contention() -> Finding {
    let last = |n: usize| last_reader(n, State::E);
    let (one, all) = (last(1), last(59));
    let slope = (all - one) / 58.0;
    // The slope is the description's own, taken from this figure; where the line begins is not.
    let fit = |n: usize| 56.2 * n as f64 + 320.5;
    let off = |n: usize| last(n) / fit(n) - 1.0;
    let worst = (1..60).map(|n| off(n).abs()).fold(0.0, f64::max);
    claim(
        "fig 3.6a, simulated",
        "the last of n readers of one line has it after 56.2 n + 320.5 ns",
        format!(
            "{:+.0} % with 1 reader, {:+.0} % with 59: {slope:.1} ns a reader, which the description has from there, and {one:.0} ns for one, \
             where the fit has {:.0} and R_L + R_R are 244",
            off(1) * 100.0,
            off(59) * 100.0,
            fit(1)
        ),
        NUMBER.of(worst),
    )
    .on(Basis::Calibrated)
}

/// Figure 3.6b: the line is in memory at first.
fn contention_in_memory() -> Finding {
    let fit = SameLine::of(phi(), State::I, State::I).expect("Table 3.2 is in the machine file");
    let off = |n: usize| last_reader(n, State::I) / fit.fitted(n as f64) - 1.0;
    claim(
        "fig 3.6b, simulated",
        "Table 3.2's fit, from memory",
        format!(
            "{:+.0} % with 1 reader, {:+.0} % with 30, {:+.0} % with 59: once the first has it, readers are served from a cache",
            off(1) * 100.0,
            off(30) * 100.0,
            off(59) * 100.0
        ),
        NUMBER.of([1, 30, 59].into_iter().map(|n| off(n).abs()).fold(0.0, f64::max)),
    )
}

/// A small broadcast with acknowledgements as section 4.1 has it. Children take the message from a line of their parent's
/// that all of them poll (`shared`, the paper's own tree), or each from a line of its own.
pub(super) fn small(tree: &Tree, shared: bool) -> Plan {
    acknowledged(tree, shared, true)
}

/// Such a broadcast whose children acknowledge on one line of their parent's, or on a line each.
pub(super) fn acknowledged(tree: &Tree, shared: bool, one_line: bool) -> Plan {
    let mut b = Builder::new(Collective::Bcast, "small", &Params::new(), tree.len(), 0, 8, 1);
    let ready = b.flags("ready", Layout::Alone, 1);
    let done = match one_line {
        true => b.counters("done", Layout::Alone, 1),
        false => b.flags("done", Layout::Alone, tree.degree()),
    };
    let taken = b.flags("taken", Layout::Alone, 1);
    b.ring();
    // The root marks the structure as taken: the one R_I more of Eq. 4.6.
    b.set(0, taken.at(0, 0), 1);
    for v in 0..tree.len() {
        let here = Region::new(if v == 0 { Space::In } else { Space::Out }, 0..8);
        if let Some(parent) = tree.parent[v] {
            b.wait_taking(v, ready.at(if shared { parent } else { v }, 0), 1, here);
        }
        let children = &tree.children[v];
        match (shared, children.is_empty()) {
            (_, true) => {}
            (true, false) => b.set_carrying(v, ready.at(v, 0), 1, here),
            (false, false) => children.iter().for_each(|&c| b.set_carrying(v, ready.at(c, 0), 1, here)),
        }
        match one_line {
            true if children.is_empty() => {}
            true => b.wait(v, done.at(v, 0), children.len() as i32),
            false => (0..children.len()).for_each(|i| b.wait(v, done.at(v, i), 1)),
        }
        if let Some(parent) = tree.parent[v] {
            match tree.children[parent].iter().position(|&c| c == v) {
                Some(i) if !one_line => b.set(v, done.at(parent, i), 1),
                _ => b.add(v, done.at(parent, 0)),
            }
        }
    }
    b.finish()
}

/// The trees that the optimised one is compared with.
pub(super) fn usual(p: usize) -> [(&'static str, Tree); 5] {
    [
        ("flat", Tree::flat(p)),
        ("binomial", Tree::binomial(p)),
        ("3-nomial", Tree::knomial(p, 3)),
        ("Fibonacci, o = L/2", Tree::fibonacci(p, 0.5)),
        ("Fibonacci, o = L/4", Tree::fibonacci(p, 0.25)),
    ]
}

/// The optimised tree's small broadcast, in ns.
pub(super) fn optimised(n: &Numbers, p: usize) -> f64 {
    let degrees = optimise::small_broadcast(&n.reads, &n.t_c, p).choice;
    time(&small(&Tree::by_degrees(p, &degrees), true))
}

/// Judges the claims of Figure 4.4: optimised trees against usual ones.
fn small_trees(n: &Numbers) -> Vec<Finding> {
    let ours = |p: usize| optimised(n, p);
    let fastest = |p: usize| usual(p).iter().map(|(_, t)| time(&small(t, false))).fold(f64::MAX, f64::min);
    let (mut beaten, mut most) = (Vec::new(), 0.0f64);
    for p in threads() {
        let lost = ours(p) / fastest(p) - 1.0;
        if lost > 0.0 {
            beaten.push(p.to_string());
            most = most.max(lost);
        }
    }
    let at_60: Vec<String> =
        usual(60).iter().map(|(name, tree)| format!("{name} {:.0}", time(&small(tree, false)))).collect();
    vec![
        claim(
            "fig 4.4, simulated, 60",
            "with 60 threads the optimised tree is faster than flat, binomial, 3-nomial and Fibonacci trees",
            format!("optimised {:.0} ns, {}", ours(60), at_60.join(", ")),
            ours(60) < fastest(60),
        ),
        claim(
            "fig 4.4, simulated",
            "so it is with any number of threads",
            format!(
                "slower than the best of them with {} of 15 numbers of threads ({}), by at most {:.1} %: their children have \
                 flags of their own, which the model does not tell from one line that all poll",
                beaten.len(),
                beaten.join(", "),
                most * 100.0
            ),
            beaten.is_empty(),
        ),
    ]
}

/// Returns the number of times that lie within their bands, and the farthest outside as a fraction of the band's end.
fn within(times: &[(f64, MinMax)]) -> (usize, f64) {
    let off = |&(t, band): &(f64, MinMax)| (1.0 - t / band.min).max(t / band.max - 1.0).max(0.0);
    (times.iter().filter(|t| off(t) == 0.0).count(), times.iter().map(off).fold(0.0, f64::max))
}

/// Judges the claim of Figure 4.5: small broadcasts against the band of their model.
fn small_band(n: &Numbers) -> Finding {
    // A rank that polls early has its line in its cache, not in memory.
    let polled = Reads { invalid: n.reads.remote, ..n.reads };
    let (times, printed): (Vec<_>, Vec<_>) = threads()
        .map(|p| {
            let degrees = optimise::small_broadcast(&n.reads, &n.t_c, p).choice;
            let printed = small_broadcast(&n.reads, &n.t_c, &degrees);
            let band = MinMax { min: small_broadcast(&polled, &n.t_c, &degrees).min, ..printed };
            let time = optimised(n, p);
            ((time, band), (time, printed))
        })
        .unzip();
    let ((inside, outside), (as_printed, off)) = (within(&times), within(&printed));
    claim(
        "fig 4.5, simulated",
        "small broadcasts lie between best and worst case",
        format!(
            "{inside} of {} do where polled lines are in a cache, the others within {:.1} %; {as_printed} of the band as \
             printed, the others within {:.1} %",
            times.len(),
            outside * 100.0,
            off * 100.0
        ),
        inside == times.len(),
    )
}

/// Bytes of the broadcasts of Figure 4.6: 8 KiB.
pub(super) const LARGE: usize = 8192;

/// A large broadcast, in ns.
pub(super) fn large_time(way: Large, p: usize) -> f64 {
    time(&of_table(Collective::Bcast, way.algorithm(), p, LARGE, &Params::new()))
}

fn large(n: &Numbers) -> Finding {
    let run = |way: Large, p: usize| large_time(way, p) / 1e3;
    let from =
        threads().find(|&p| (p..=60).step_by(4).all(|q| run(Large::Flat, q) < run(Large::Pipelined, q)));
    let (flat, piped) = (run(Large::Flat, 60), run(Large::Pipelined, 60));
    let band = Large::Flat.model(&n.reads, &n.t_c, &n.t_n, 60, LARGE / 64);
    claim(
        "fig 4.6, simulated",
        "for 8 kb the flat tree is faster than the pipelined broadcast, which takes no advantage of prefetching",
        format!(
            "{flat:.0} and {piped:.0} us at 60 threads (the flat tree's model has {:.0} to {:.0}); flat is faster {}",
            band.min / 1e3,
            band.max / 1e3,
            from.map_or("nowhere throughout".to_owned(), |p| format!("from {p} threads on"))
        ),
        flat < piped,
    )
}

/// A dissemination barrier, in ns, and its model.
pub(super) fn barrier_of(n: &Numbers, p: usize) -> (f64, MinMax) {
    let radix = optimise::barrier(&n.reads, p, Growth::Full).choice;
    let params = Params::new().with("m", radix.m);
    let plan = of_table(Collective::Barrier, "dissemination", p, 0, &params);
    (time(&plan), barrier_model(&n.reads, radix.m, radix.rounds))
}

/// Judges a claim that times lie in the bands of their models.
fn in_band(item: &str, claimed: &str, times: impl Iterator<Item = (f64, MinMax)>, with: &str) -> Finding {
    let times: Vec<(f64, MinMax)> = times.collect();
    let (inside, off) = within(&times);
    let (last, band) = times[times.len() - 1];
    claim(
        item,
        claimed,
        format!(
            "{inside} of {} do, the others by at most {:.1} % outside; at 60 threads {last:.0} ns, {:.0} to {:.0}{with}",
            times.len(),
            off * 100.0,
            band.min,
            band.max
        ),
        inside == times.len(),
    )
}

fn barriers(n: &Numbers) -> Finding {
    let claimed = "dissemination barriers lie between best and worst case";
    let with = "; with the rounds that suffice, ceil(log_(m+1) n)";
    in_band("fig 4.7, simulated", claimed, threads().map(|p| barrier_of(n, p)), with)
}

/// A small reduction, in ns, and its model.
pub(super) fn reduction_of(n: &Numbers, p: usize) -> (f64, MinMax) {
    let degrees = optimise::reduction(&n.reads, &n.t_c, &n.t_n, Folding::Slope, p).choice;
    let params = Params::new().with("degrees", list(&degrees));
    // A line, which does not fit the flag's.
    let plan = of_table(Collective::Reduce, "tree", p, 64, &params);
    (time(&plan), reduction_model(&n.reads, &n.t_c, &n.t_n, Folding::Slope, &degrees))
}

fn reductions(n: &Numbers) -> Finding {
    let claimed = "small reductions lie between best and worst case";
    in_band("fig 4.8, simulated", claimed, threads().map(|p| reduction_of(n, p)), "")
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::verify::verify;

    #[test]
    fn small_broadcasts_are_correct() {
        for (name, tree) in usual(60) {
            for shared in [false, true] {
                assert!(verify(&small(&tree, shared)).is_ok(), "{name}, shared {shared}");
            }
        }
    }
}

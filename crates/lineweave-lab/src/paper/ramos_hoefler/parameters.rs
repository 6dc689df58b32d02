//! Tables of Appendix B: parameters that minimise the min models.

use super::data::{self, Degrees};
use super::Numbers;
use crate::models::cache_line::{barrier, reduction_level, small_broadcast_level, Folding};
use crate::optimise::levels::{self, holds};
use crate::optimise::radix::Growth;
use crate::optimise::ramos_hoefler as optimise;
use crate::paper::{item, Finding};

pub(super) fn items() -> Vec<Finding> {
    let printed = data::parameters();
    let n = Numbers::of_phi();
    let broadcast = |k: usize| small_broadcast_level(&n.reads, &n.t_c, k).min;
    let slope = |k: usize| reduction_level(&n.reads, &n.t_c, &n.t_n, Folding::Slope, k).min;
    let full = |k: usize| reduction_level(&n.reads, &n.t_c, &n.t_n, Folding::Full, k).min;
    let (cheapest, remark) = degrees(&printed.broadcast, broadcast);
    let damaged: Vec<String> = printed.broadcast_damaged.iter().map(usize::to_string).collect();
    let remark = format!("{remark}; rows {} are damaged in the scan and left out", damaged.join(", "));
    let b1 = item("table B.1 (small broadcast)", cheapest, printed.broadcast.len(), remark);
    let ((cheapest, remark), of) = (degrees(&printed.reduction, slope), printed.reduction.len());
    let full = degrees(&printed.reduction, full).0;
    let remark = format!("{remark}; T_k taken as o k, with the whole T_N(k) it is {full} of {of}");
    let b3 = item("table B.3 (small reduction)", cheapest, of, remark);
    vec![b1, barriers(&printed, &n), better_barriers(&printed, &n), b3, section_4_4(&n)]
}

/// Printed degrees that hold all threads and cost the least there is, and a remark.
fn degrees(printed: &[Degrees], level: impl Fn(usize) -> f64) -> (usize, String) {
    let (mut agree, mut same, mut ties) = (0, 0, 0);
    for row in printed {
        let best = levels::all(row.threads, &level);
        let cheapest = best.iter().any(|(degrees, _)| *degrees == row.degrees);
        agree += usize::from(cheapest && holds(&row.degrees) >= row.threads);
        same += usize::from(best[0].0 == row.degrees);
        ties += usize::from(cheapest && best.len() > 1);
    }
    let remark = format!(
        "least cost; {ties} rows have others of the same cost, and of those the most even one is printed in {} rows",
        same + ties - agree
    );
    (agree, remark)
}

fn barriers(printed: &data::Parameters, n: &Numbers) -> Finding {
    let agrees = |row: &&data::Rounds| {
        let found = optimise::barrier(&n.reads, row.threads, Growth::Published).choice;
        (found.m, found.rounds) == (row.radix, row.rounds)
    };
    let agree = printed.barrier.iter().filter(agrees).count();
    item(
        "table B.2 (barrier)",
        agree,
        printed.barrier.len(),
        "r = ceil(log_m n), 2 <= m < n; m = 1 for two threads",
    )
}

/// The radix with which fewer rounds suffice, beside the printed one.
fn better_barriers(printed: &data::Parameters, n: &Numbers) -> Finding {
    let saved = |row: &data::Rounds| {
        let theirs = barrier(&n.reads, row.radix, row.rounds).min;
        1.0 - optimise::barrier(&n.reads, row.threads, Growth::Full).cost_ns / theirs
    };
    let all: Vec<(usize, f64)> = printed.barrier.iter().map(|r| (r.threads, saved(r))).collect();
    let better = all.iter().filter(|(_, s)| *s > 0.0).count();
    let usual = all.iter().filter(|(threads, _)| *threads > 5);
    let low = usual.clone().map(|x| x.1).fold(f64::INFINITY, f64::min) * 100.0;
    let high = usual.map(|x| x.1).fold(0.0, f64::max) * 100.0;
    let few: Vec<String> = all
        .iter()
        .filter(|(threads, _)| (3..=5).contains(threads))
        .map(|(threads, s)| format!("{:.0} % for {threads}", s * 100.0))
        .collect();
    let sixty = optimise::barrier(&n.reads, 60, Growth::Full);
    let remark = format!(
        "rows where r = ceil(log_(m+1) n), as the pseudo-code of fig. 4.3 needs, costs less: {low:.0} to {high:.0} % \
         less from 6 threads on, {}; 60 threads: {:.0} ns with m = {}, r = {}; two threads have nothing to save",
        few.join(", "),
        sixty.cost_ns,
        sixty.choice.m,
        sixty.choice.rounds
    );
    item("table B.2, improved radix", better, all.len(), remark)
}

/// Section 4.4 names the parameters of 30 and 60 threads: among the optimisers' best.
fn section_4_4(n: &Numbers) -> Finding {
    let broadcast = |k: usize| small_broadcast_level(&n.reads, &n.t_c, k).min;
    let reduction = |k: usize| reduction_level(&n.reads, &n.t_c, &n.t_n, Folding::Slope, k).min;
    let best = |threads: usize, level: &dyn Fn(usize) -> f64, degrees: &[usize]| {
        levels::all(threads, level).iter().any(|(found, _)| found == degrees)
    };
    let radix = |threads: usize| {
        let found = optimise::barrier(&n.reads, threads, Growth::Published).choice;
        (found.m, found.rounds)
    };
    let said = [
        best(30, &broadcast, &[5, 5]),
        best(30, &reduction, &[3, 3, 2]),
        radix(30) == (6, 2),
        best(60, &broadcast, &[4, 4, 3]),
        best(60, &reduction, &[4, 4, 3]),
        radix(60) == (4, 3),
    ];
    let agree = said.iter().filter(|s| **s).count();
    item(
        "section 4.4, parameters named",
        agree,
        said.len(),
        "30 and 60 threads: the text against what the models' optimisers find",
    )
}

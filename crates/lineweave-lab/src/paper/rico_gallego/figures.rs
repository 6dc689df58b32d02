//! Figs. 6, 13, 14 and 18: what they print, as data, against the plan and the pipeline.

use super::super::given::printed;
use super::super::{item, Finding};
use crate::models::tau_lop::{pipeline, Transfers, Way};
use lineweave_core::algorithm::bcast::two_segment_tree::{transfers, Target, Transfer};
use lineweave_core::algorithm::trees::Tree;
use serde::Deserialize;

const FIG14: &str = include_str!("../../../papers/rico-gallego-2015/fig14.toml");
const FIG18: &str = include_str!("../../../papers/rico-gallego-2015/fig18.toml");

#[derive(Deserialize)]
struct Figure14 {
    ranks: usize,
    degree: usize,
    segments: usize,
    row: Vec<Row>,
    caption: Caption,
}

#[derive(Deserialize)]
struct Row {
    level: usize,
    tau: Vec<usize>,
}

#[derive(Deserialize)]
struct Caption {
    b00_written_in_stages: Vec<usize>,
    in_stage_3: Vec<String>,
    stage_4_tau: u64,
}

#[derive(Deserialize)]
struct Figure18 {
    segment_bytes: u64,
    mean_ns: f64,
    row: Vec<Timing>,
}

#[derive(Deserialize)]
struct Timing {
    k: u64,
    bytes: u64,
    total_ns: f64,
    segment_ns: f64,
}

pub(super) fn items() -> Vec<Finding> {
    let figure: Figure14 = printed("rico-gallego-2015/fig14.toml", FIG14);
    let timings = printed("rico-gallego-2015/fig18.toml", FIG18);
    vec![figure_6(), figure_13(&figure), figure_14(&figure), plan_and_pipeline(), figure_18(&timings)]
}

fn figure_6() -> Finding {
    let message = Way { segment: 1, transfers: 2, back_to_back: false }.message(3);
    let (mut stages, mut moved) = (0, 0);
    for (term, n) in message.terms() {
        stages += n;
        moved += n * term.tau;
    }
    let pairs = message == Transfers::one(1, 1).times(2).then(&Transfers::one(1, 2).times(2));
    let agree = [stages == 4, moved == 6, pairs].into_iter().filter(|h| *h).count();
    item(
        "fig 6",
        agree,
        3,
        "3 segments over 2 transfers: 6 transfers in 4 stages, the first and last alone, the others in pairs",
    )
}

/// A segment as the figure names it: b of a rank's box, by slot; u of its user buffer.
fn name(t: &Transfer) -> String {
    match t.target {
        Target::Box => format!("b{}{}", t.rank, t.segment % 2),
        Target::User => format!("u{}{}", t.rank, t.segment),
    }
}

fn figure_13(figure: &Figure14) -> Finding {
    let all = transfers(figure.ranks, figure.degree, figure.segments);
    let mut b00: Vec<usize> = all.iter().filter(|t| name(t) == "b00").map(|t| t.stage).collect();
    b00.sort_unstable();
    let third: Vec<String> = all.iter().filter(|t| t.stage == 3).map(name).collect();
    let caption = &figure.caption;
    let labels = |list: &[String]| {
        let mut list = list.to_vec();
        list.sort();
        list
    };
    let fourth = all.iter().filter(|t| t.stage == 4).count() as u64;
    let agree = [
        b00 == caption.b00_written_in_stages,
        labels(&third) == labels(&caption.in_stage_3),
        fourth == caption.stage_4_tau,
    ];
    let agree = agree.into_iter().filter(|h| *h).count();
    item("fig 13", agree, 3, "labels that the captions name: when b00 is written, what is written in stage 3, how often label 4 occurs; from the plan bcast/two-segment-tree")
}

fn figure_14(figure: &Figure14) -> Finding {
    let tree = Tree::kary(figure.ranks, figure.degree);
    let levels = tree.levels();
    let all = transfers(figure.ranks, figure.degree, figure.segments);
    let last = all.iter().map(|t| t.stage).max().unwrap_or(0);
    let (mut agree, mut of) = (0, 0);
    for row in &figure.row {
        let in_stage = |s| all.iter().filter(|t| t.stage == s && levels[t.rank] == row.level).count();
        let ours: Vec<usize> = (1..=last).map(in_stage).filter(|&n| n > 0).collect();
        of += row.tau.len();
        agree += ours.iter().zip(&row.tau).filter(|(a, b)| a == b).count();
    }
    let flight: Vec<u64> = pipeline::in_flight(figure.ranks, figure.degree, figure.segments as u64);
    let stages: Vec<String> = flight.iter().map(u64::to_string).collect();
    let remark = format!(
        "legible cost cells, row by row, against the plan's transfers; in flight by stage: {} (stage 4: L(S, 7)); the eleventh column is empty",
        stages.join(", ")
    );
    item("fig 14", agree, of, remark)
}

/// The formula of the pipeline against the transfers of the plan, beyond the figure.
fn plan_and_pipeline() -> Finding {
    let (mut agree, mut of) = (0, 0);
    for (g, p) in [2, 3, 4, 8].into_iter().flat_map(|g| (2..=48usize).map(move |p| (g, p))) {
        for k in [1usize, 4, 9] {
            let mut by_stage = vec![0u64; 2 * k + p];
            transfers(p, g, k).iter().for_each(|t| by_stage[t.stage - 1] += 1);
            while by_stage.last() == Some(&0) {
                by_stage.pop();
            }
            of += 1;
            agree += usize::from(by_stage == pipeline::in_flight(p, g, k as u64));
        }
    }
    item("fig 14, general", agree, of, "transfers in flight by stage, from the widths of the tree's levels alone, against the plan's: degrees 2, 3, 4, 8, P = 2 to 48, 1, 4 and 9 segments")
}

fn figure_18(figure: &Figure18) -> Finding {
    let near = |a: f64, b: f64| (a - b).abs() <= 1.0;
    let agree = figure
        .row
        .iter()
        .filter(|r| near(r.total_ns / r.k as f64, r.segment_ns) && r.bytes == r.k * figure.segment_bytes);
    let shown: f64 = figure.row.iter().map(|r| r.segment_ns).sum::<f64>() / figure.row.len() as f64;
    let remark = format!(
        "L = l / k within a nanosecond; of the four rows that are printed the mean is {shown:.0} ns, of all rows {} ns is printed",
        figure.mean_ns
    );
    item("fig 18b", agree.count(), figure.row.len(), remark)
}

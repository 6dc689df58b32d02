//! Figures 3, 4 and 8, simulated.

use super::contention::{alone, first_done, mean, traced, Use};
use super::{Study, CHIP, KEY};
use crate::draw::{Chart, Series};
use crate::paper::figure::{chart, linear, log, model, published, simulated};
use crate::paper::Figure;
use crate::simulate::mesh::{FlagCost, Settings};
use crate::simulate::{moves, slot, Fidelity};
use lineweave_core::plan::{Plan, Space};

pub(super) fn figures(study: &Study) -> Vec<Figure> {
    vec![figure_3(study), figure_4(study), figure_8a(study), figure_8b(study)]
}

fn figure(item: &str, title: &str, detail: &str, charts: Vec<Chart>) -> Figure {
    Figure::new(KEY, item, title, detail, charts)
}

/// Get or put of core 0, by the memory at its own end: message buffer or private memory.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    GetToBox,
    GetToMemory,
    PutFromBox,
    PutFromMemory,
}

impl Way {
    pub(super) const ALL: [Way; 4] = [Way::GetToBox, Way::GetToMemory, Way::PutFromBox, Way::PutFromMemory];

    fn title(self) -> &'static str {
        match self {
            Way::GetToBox => "get, buffer to buffer",
            Way::GetToMemory => "get, buffer to memory",
            Way::PutFromBox => "put, buffer to buffer",
            Way::PutFromMemory => "put, memory to buffer",
        }
    }

    /// Eq. 7, 8, 11 and 12, in ns.
    pub(super) fn model(self, study: &Study, lines: usize, d: u32) -> f64 {
        let m = lines as u32;
        match self {
            Way::GetToBox => study.model.c_get_mpb(m, d).0,
            Way::GetToMemory => study.model.c_get_mem(m, d, 1).0,
            Way::PutFromBox => study.model.c_put_mpb(m, d).0,
            Way::PutFromMemory => study.model.c_put_mem(m, 1, d).0,
        }
    }

    /// One such access, alone on the chip, in ns.
    pub(super) fn played(self, study: &Study, lines: usize, other: usize, fidelity: Fidelity) -> f64 {
        let setup = &study.printed.setup;
        let (src, dst) = match self {
            Way::GetToBox => (slot(other, 0), slot(0, 0)),
            Way::GetToMemory => (slot(other, 0), Space::Out),
            Way::PutFromBox => (slot(0, 0), slot(other, 0)),
            Way::PutFromMemory => (Space::In, slot(other, 0)),
        };
        let plan = moves(setup.cores, lines * setup.line_bytes, 1, [(0, src, dst)]);
        study.play(&plan, fidelity, 1, CHIP).first.nanos()
    }
}

/// A core at each number of routers from core 0: its own tile, along the first row, then up the last column.
fn at_distance(d: usize) -> usize {
    match d {
        1 => 1,
        2..=6 => 2 * (d - 1),
        _ => 2 * (6 * (d - 6) + 5),
    }
}

/// Completion time over distance.
fn figure_3(study: &Study) -> Figure {
    let chart_of = |way: Way| {
        let mut series = Vec::new();
        for lines in [1, 4, 8, 16] {
            let name = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
            let played = |d| way.played(study, lines, at_distance(d), Fidelity::Line);
            let times =
                |of: &dyn Fn(usize) -> f64| (1..=9).map(|d| (d as f64, of(d) / 1e3)).collect::<Vec<_>>();
            series.push(simulated(&name, times(&played)));
            let formula = times(&|d| way.model(study, lines, d as u32));
            series.push(model(&format!("{name}, by formula"), &name, formula));
        }
        if way == Way::GetToBox {
            let near = way.played(study, 16, at_distance(1), Fidelity::Line) / 1e3;
            series.push(published("printed: 30 % more", "16 lines", [(9.0, near * 1.3)]));
        }
        chart(way.title(), linear("distance, routers"), linear("time, us"), series)
    };
    figure(
        "fig 3",
        "puts and gets on an idle SCC",
        "core 0 and one other; lines are Eq. 7, 8, 11 and 12, which the simulation meets to the picosecond",
        Way::ALL.into_iter().map(chart_of).collect(),
    )
}

/// Cores at one message buffer: mean, slowest and fastest.
fn figure_4(study: &Study) -> Figure {
    let cores = study.printed.setup.cores;
    let of = |puts: bool| {
        // Calls long enough that all overlap, and as many as it takes to average out how they begin.
        let (lines, times) = if puts { (1, 60) } else { (128, 4) };
        let mut rows = Vec::new();
        for n in [1, 6, 12, 18, 24, 30, 36, 42, 48] {
            let uses: Vec<Use> = (cores - n..cores).map(|c| (c, 0, puts, times)).collect();
            let trace = traced(study, lines, &uses);
            let until = first_done(&trace, cores);
            let each = uses.iter().map(|u| mean(&trace, u.0, until) / 1e3).filter(|m| m.is_finite());
            let each: Vec<f64> = each.collect();
            let average = each.iter().sum::<f64>() / each.len() as f64;
            let (least, most) = each.iter().fold((f64::MAX, 0.0f64), |(l, m), &x| (l.min(x), m.max(x)));
            rows.push((n as f64, average, most, least));
        }
        let idle = alone(study, puts, lines, cores - 1) / 1e3;
        let times = if puts { 4.0 } else { 2.0 };
        let least = rows.last().map_or(f64::NAN, |r| r.3);
        let series: Vec<Series> = vec![
            simulated("mean of the cores", rows.iter().map(|r| (r.0, r.1))),
            simulated("slowest core", rows.iter().map(|r| (r.0, r.2))),
            simulated("fastest core", rows.iter().map(|r| (r.0, r.3))),
            published("printed: as alone up to 24 cores", "mean of the cores", [(24.0, idle)]),
            published(
                &format!("printed: slowest above {times:.0} x fastest at 48"),
                "slowest core",
                [(48.0, least * times)],
            ),
        ];
        let title = if puts { "puts of 1 line (fig 4b)" } else { "gets of 128 lines (fig 4a)" };
        chart(title, linear("cores at one message buffer"), linear("time of a call, us"), series)
    };
    figure(
        "fig 4",
        "many cores at one message buffer of the SCC",
        "line by line; the farthest n cores use the buffer of core 0, again and again",
        vec![of(false), of(true)],
    )
}

/// Latency up to two chunks.
fn figure_8a(study: &Study) -> Figure {
    let bit = Settings { flags: FlagCost::Bit, ..CHIP };
    let sizes = [1, 16, 32, 48, 64, 96, 112, 128, 160, 192];
    let mean = |plan: &Plan, settings| study.play(plan, Fidelity::Line, 4, settings).latency.nanos() / 1e3;
    let mut series = Vec::new();
    for k in [2, 7, 47] {
        let at = |&lines: &usize| (lines as f64, mean(&study.oc_bcast(k, lines), CHIP));
        series.push(simulated(&format!("OC-Bcast, k = {k}"), sizes.iter().map(at)));
    }
    let at = |&lines: &usize| (lines as f64, mean(&study.binomial(FlagCost::Bit, lines), bit));
    series.push(simulated("binomial, bit flags", sizes.iter().map(at)));
    let measured = &study.printed.measured;
    series.push(published("k = 7, printed", "OC-Bcast, k = 7", [(1.0, measured.oc_bcast_k7)]));
    series.push(published("binomial, printed", "binomial, bit flags", [(1.0, measured.binomial)]));
    figure(
        "fig 8a",
        "latency of broadcasts on the SCC",
        "48 cores, line by line, four broadcasts that follow each other; OC-Bcast with flags of a line",
        vec![chart("", linear("message, lines of 32 bytes"), log("latency, us"), series)],
    )
}

/// Throughput of long messages.
fn figure_8b(study: &Study) -> Figure {
    let sizes = [1, 4, 16, 48, 96, 97, 192, 384, 768, 1536];
    // Table 2 is of long messages; side by side, so that all can be seen.
    let printed = |k: usize| {
        let at = match k {
            2 => 2_500.0,
            7 => 4_000.0,
            47 => 6_400.0,
            _ => 4_000.0,
        };
        let rows = study.printed.table_2.iter().filter(move |t| t.k == k);
        rows.map(move |t| (at, t.throughput)).collect::<Vec<_>>()
    };
    let mut series = Vec::new();
    for k in [2, 7, 47] {
        let at = |&lines: &usize| {
            (lines as f64, study.throughput(&study.oc_bcast(k, lines), Fidelity::Line, CHIP))
        };
        series.push(simulated(&format!("OC-Bcast, k = {k}"), sizes.iter().map(at)));
    }
    let at = |&lines: &usize| {
        (lines as f64, study.throughput(&study.scatter_allgather(lines), Fidelity::Chunk, CHIP))
    };
    // Shorter messages leave some ranks without a line.
    series.push(simulated("scatter-allgather", sizes.iter().filter(|&&l| l >= 48).map(at)));
    for k in [2, 7, 47] {
        series.push(published(&format!("k = {k}, Table 2"), &format!("OC-Bcast, k = {k}"), printed(k)));
    }
    series.push(published("scatter-allgather, Table 2", "scatter-allgather", printed(0)));
    figure(
        "fig 8b",
        "throughput of broadcasts on the SCC",
        "48 cores, from broadcast to broadcast; Table 2 is of long messages, and k = 47 was measured 16 % below it",
        vec![chart("", log("message, lines of 32 bytes"), linear("throughput, MB/s"), series)],
    )
}

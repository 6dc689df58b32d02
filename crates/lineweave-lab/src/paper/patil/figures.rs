//! Figures 1.2, 1.3 and 6.1 to 6.9, simulated.

use super::contention::{cycles, put_lines, without_others, CORES, LINES};
use super::{Study, KEY, MHZ, ROOT};
use crate::draw::{Chart, Series};
use crate::paper::figure::{bytes, chart, linear, log, model, published, published_ranges, simulated};
use crate::paper::petrovic::Study as Chip;
use crate::paper::Figure;
use lineweave_core::collective::Collective;

const HOW: &str =
    "a simulated SCC at 533 and 800 MHz, flags of a byte; the thesis ran it at 800 and 1066 MHz";
const LIBRARIES: [&str; 3] = ["noc-msg", "rcce", "rckmpi"];
/// Lengths of figures 6.2, 6.4 and 6.5.
const SIZES: [usize; 7] = [4, 32, 256, 1024, 4096, 32 << 10, 256 << 10];
const RANKS: [usize; 7] = [2, 8, 16, 24, 32, 40, 48];

pub(super) fn figures(study: &Study) -> Vec<Figure> {
    let m = &study.printed.measured;
    let order = |size: f64| ("printed: an order of magnitude", vec![(size, 3.2, 32.0)]);
    let at = |name: &'static str, size: usize, ratio: f64| (name, vec![(size as f64, ratio, ratio)]);
    vec![
        gets(study),
        puts(study),
        roots(study),
        lengths(
            study,
            ("fig 6.2", "broadcasts"),
            Collective::Bcast,
            [order(4.0), at("printed: 2.5 times", m.bcast_bytes, m.bcast_throughput)],
            vec![cores(
                study,
                "256 KiB by cores (c)",
                Collective::Bcast,
                m.bcast_bytes,
                &["noc-msg", "rcce"],
            )],
        ),
        beside_oc_bcast(study),
        lengths(
            study,
            ("fig 6.4", "reductions"),
            Collective::Reduce,
            [
                at("printed: 5 times", m.bcast_bytes, m.reduce_throughput),
                at("printed: 12 % of the cycles", m.bcast_bytes, 1.0 / m.reduce_cycles),
            ],
            vec![cores(
                study,
                "256 KiB by cores (c)",
                Collective::Reduce,
                m.bcast_bytes,
                &["noc-msg", "rcce"],
            )],
        ),
        lengths(
            study,
            ("fig 6.5", "allreduces"),
            Collective::Allreduce,
            [order(4.0), at("printed: 3 times", m.allreduce_bytes, m.allreduce_throughput)],
            Vec::new(),
        ),
        alltoall(study),
        alltoallv(study),
        leaving(study),
        barriers(study),
    ]
}

fn figure(item: &str, title: &str, charts: Vec<Chart>) -> Figure {
    Figure::new(KEY, item, title, HOW, charts)
}

fn gets(study: &Study) -> Figure {
    let (chip, all) = (Chip::new(), study.printed.setup.cores);
    let mut series = Vec::new();
    for lines in LINES {
        let name = if lines == 1 { "get of 1 line".to_owned() } else { format!("get of {lines} lines") };
        series.push(simulated(&name, CORES.map(|n| (n as f64, cycles(&chip, false, lines, n, all)))));
        let alone = CORES.map(|n| (n as f64, without_others(&chip, study, lines, n)));
        series.push(model("each get alone", &name, alone));
    }
    let charts = vec![chart("each core from the one opposite", linear("cores"), log("cycles"), series)];
    figure("fig 1.2", "gets across the mesh; the thesis prints +1200 cycles a core, and no length", charts)
}

fn puts(study: &Study) -> Figure {
    let (chip, all, c) = (Chip::new(), study.printed.setup.cores, &study.printed.contention);
    let lines = put_lines(&chip, study);
    let name = format!("put of {lines} lines");
    let points = CORES.map(|n| (n as f64, cycles(&chip, true, lines, n, all)));
    let series =
        vec![simulated(&name, points), published("printed", &name, [(2.0, c.put_2), (all as f64, c.put_48)])];
    let charts = vec![chart("all to core 0", linear("cores"), linear("cycles"), series)];
    figure("fig 1.3", "puts to one core; the length is the one that takes 650 cycles with 2 cores", charts)
}

fn roots(study: &Study) -> Figure {
    let setup = &study.printed.setup;
    let of = |name: &str| {
        let took = |root| {
            let plan = study.plan(Collective::Barrier, name, setup.cores, root, 0);
            study.play(&plan, 1).first.nanos() / 1e3 * MHZ
        };
        (0..setup.cores).map(|root| (root as f64, took(root))).collect::<Vec<_>>()
    };
    let published_as = of("noc-msg-published");
    let least = published_as.iter().map(|p| p.1).fold(f64::INFINITY, f64::min);
    // Right middle of the second and third row.
    let best = [1, 2].map(|y| ((2 * (y * setup.columns + 3)) as f64, least));
    let series = vec![
        simulated("as printed", published_as),
        simulated("with a release", of("noc-msg")),
        published("printed: the best roots", "as printed", best),
    ];
    figure("fig 6.1", "the root of the barrier", vec![chart("", linear("root"), linear("cycles"), series)])
}

/// Value on the axis to the right, and the lower and upper end of the printed range.
type Ranges = Vec<(f64, f64, f64)>;

/// Cycles and ratios over lengths, and more charts.
fn lengths(
    study: &Study,
    (item, title): (&str, &str),
    collective: Collective,
    printed: [(&str, Ranges); 2],
    more: Vec<Chart>,
) -> Figure {
    let of = |library: &str| SIZES.map(|size| (size as f64, study.library(library, collective, size) * MHZ));
    let [noc, rcce, mpich] = LIBRARIES.map(of);
    let ratio =
        |other: [(f64, f64); 7]| other.iter().zip(noc).map(|(o, n)| (o.0, o.1 / n.1)).collect::<Vec<_>>();
    let mut ratios = vec![simulated("RCCE", ratio(rcce)), simulated("RCKMPI", ratio(mpich))];
    ratios.extend(printed.into_iter().map(|(name, points)| published_ranges(name, "RCCE", points)));
    let times = [("NoC_Msg", noc), ("RCCE", rcce), ("RCKMPI", mpich)];
    let times = times.into_iter().map(|(name, points)| simulated(name, points)).collect();
    let rate = |points: [(f64, f64); 7]| points.map(|(size, cycles)| (size, size * MHZ / cycles));
    let rates = [("NoC_Msg", noc), ("RCCE", rcce), ("RCKMPI", mpich)];
    let rates = rates.into_iter().map(|(name, points)| simulated(name, rate(points))).collect();
    let mut charts = vec![
        chart("48 cores (a)", bytes("message"), log("cycles"), times),
        chart("throughput (b)", bytes("message"), log("MB/s"), rates),
        chart("times as long as NoC_Msg", bytes("message"), log("ratio"), ratios),
    ];
    charts.extend(more);
    figure(item, title, charts)
}

/// Cycles over numbers of cores.
fn cores(study: &Study, title: &str, collective: Collective, size: usize, libraries: &[&str]) -> Chart {
    let named = |library: &str| match library {
        "noc-msg" => "NoC_Msg".to_owned(),
        other => other.to_uppercase(),
    };
    let of = |library: &&str| {
        let name = Study::of_library(library, collective);
        let points = RANKS.map(|p| (p as f64, study.us(collective, name, p, size) * MHZ));
        simulated(&named(library), points)
    };
    chart(title, linear("cores"), log("cycles"), libraries.iter().map(of).collect())
}

fn beside_oc_bcast(study: &Study) -> Figure {
    let panel =
        |title: &str, size: usize| cores(study, title, Collective::Bcast, size, &["noc-msg", "oc-bcast"]);
    let charts = vec![panel("a line (a)", 32), panel("256 KiB (b)", 256 << 10)];
    figure("fig 6.3", "broadcasts of NoC_Msg and OC-Bcast by cores", charts)
}

/// Times and ratios of an alltoall.
fn exchange(
    (item, title): (&str, &str),
    blocks: &[usize],
    us: impl Fn(&str, usize) -> f64,
    printed: Vec<Series>,
) -> Figure {
    let of = |library: &str| blocks.iter().map(|&b| (b as f64, us(library, b) * MHZ)).collect::<Vec<_>>();
    let (noc, mpich) = (of("noc-msg"), of("rckmpi"));
    let ratio: Vec<(f64, f64)> = mpich.iter().zip(&noc).map(|(o, n)| (o.0, o.1 / n.1)).collect();
    let mut ratios = vec![simulated("RCKMPI", ratio)];
    ratios.extend(printed);
    let times = vec![simulated("NoC_Msg", noc), simulated("RCKMPI", mpich)];
    let charts = vec![
        chart("48 cores (a)", bytes("block for each core"), log("cycles"), times),
        chart("times as long as NoC_Msg (b)", bytes("block for each core"), linear("ratio"), ratios),
    ];
    figure(item, title, charts)
}

fn alltoall(study: &Study) -> Figure {
    let m = &study.printed.measured;
    let printed = vec![
        published("printed: half the cycles below 8 KB", "RCKMPI", [(64.0, 1.0 / m.alltoall_cycles)]),
        published("printed: at most 2.5 times", "most", [(4096.0, m.alltoall_throughput)]),
    ];
    let blocks = [4, 16, 64, 256, 1024, 4096];
    exchange(("fig 6.6", "alltoall"), &blocks, |library, block| study.alltoall(library, block), printed)
}

fn alltoallv(study: &Study) -> Figure {
    let m = &study.printed.measured;
    let printed =
        vec![published("printed: half the cycles below 8 KB", "RCKMPI", [(32.0, 1.0 / m.alltoall_cycles)])];
    let us = |library: &str, mean: usize| study.alltoallv(library, mean);
    exchange(("fig 6.7", "alltoallv, blocks of half, all and 1.5 times as much"), &[8, 16, 32], us, printed)
}

fn leaving(study: &Study) -> Figure {
    let cores = study.printed.setup.cores;
    let of = |title: &str, name: &str| {
        let plan = study.plan(Collective::Barrier, name, cores, ROOT, 0);
        let ends = study.play(&plan, 1).per_rank;
        let cycles = ends.iter().enumerate().map(|(core, end)| (core as f64, end.nanos() / 1e3 * MHZ));
        simulated(title, cycles.collect::<Vec<_>>())
    };
    let noc = of("NoC_Msg as printed", "noc-msg-published");
    let fastest = noc.spots.iter().map(|s| s.high).fold(0.0, f64::max);
    let m = &study.printed.measured;
    let last = (cores - 1) as f64;
    let series = vec![
        noc,
        of("NoC_Msg with a release", "noc-msg"),
        of("RCCE", Study::of_library("rcce", Collective::Barrier)),
        of("RCKMPI", Study::of_library("rckmpi", Collective::Barrier)),
        published("printed: RCCE, 100 times NoC_Msg", "RCCE", [(last, fastest * m.barrier_rcce)]),
        published("printed: RCKMPI, almost 1000 times", "RCKMPI", [(last, fastest * m.barrier_rckmpi)]),
    ];
    let charts = vec![chart("when each core leaves", linear("core"), log("cycles"), series)];
    figure("fig 6.8", "barriers, core by core", charts)
}

fn barriers(study: &Study) -> Figure {
    let us = |name: &str, p: usize| study.us(Collective::Barrier, name, p, 0) * MHZ;
    let names = [
        ("NoC_Msg as printed", "noc-msg-published"),
        ("NoC_Msg with a release", "noc-msg"),
        ("RCCE", "centralized"),
        ("RCKMPI", "dissemination"),
    ];
    let series = names
        .into_iter()
        .map(|(title, name)| simulated(title, RANKS.map(|p| (p as f64, us(name, p)))))
        .collect();
    figure("fig 6.9", "barriers by cores", vec![chart("", linear("cores"), log("cycles"), series)])
}

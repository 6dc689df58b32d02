//! Figures 3.6 and 4.4 to 4.8, simulated on the Xeon Phi, in the bands of the min-max models, and A.5, A.8 and A.12 by Eq. A.1.

use super::claims::rate;
use super::simulated::{
    barrier_of, large_time, last_reader, optimised, reduction_of, small, threads, time, usual, LARGE,
};
use super::{phi, Numbers, KEY};
use crate::draw::{Chart, Series};
use crate::models::cache_line::{small_broadcast, MinMax, SameLine};
use crate::optimise::ramos_hoefler::{self as optimise, Large};
use crate::paper::figure::{band, bytes, chart, linear, log, model, published, simulated};
use crate::paper::Figure;
use lineweave_core::machine::{Location, State};

const HOW: &str =
    "a simulated Xeon Phi 5110P, one thread a core, first run of a plan alone; bands are Table 4.1's \
                   models with the paper's parameters";

pub(super) fn figures() -> Vec<Figure> {
    let n = Numbers::of_phi();
    let mut list = vec![contention(), trees(&n), small_band(&n), large(&n), barriers(&n), reductions(&n)];
    let within = [(4, "2 or 4 threads"), (16, "8 or 16 threads")];
    let across = [(4, "2 or 4 threads"), (8, "8 threads"), (16, "16 threads")];
    list.push(rates(
        "fig A.5",
        "bandwidth within a processor of Sandy Bridge",
        (Location::Package, true),
        &within,
    ));
    list.push(rates("fig A.8", "bandwidth across QPI, Sandy Bridge", (Location::Machine, true), &across));
    list.push(rates(
        "fig A.12",
        "bandwidth on Xeon Phi",
        (Location::Package, false),
        &[(60, "2 to 60 threads")],
    ));
    list
}

fn figure(item: &str, title: &str, charts: Vec<Chart>) -> Figure {
    Figure::new(KEY, item, title, HOW, charts)
}

fn over_threads(of: impl Fn(usize) -> f64) -> Vec<(f64, f64)> {
    threads().map(|p| (p as f64, of(p) / 1e3)).collect()
}

fn bands(of: impl Fn(usize) -> MinMax) -> Series {
    let ends = threads().map(|p| (p, of(p))).map(|(p, b)| (p as f64, b.min / 1e3, b.max / 1e3));
    band("best to worst case of the model", ends)
}

fn axes(title: &str, series: Vec<Series>) -> Chart {
    chart(title, linear("threads"), linear("time, us"), series)
}

fn contention() -> Figure {
    let of = |state: State, title: &str| {
        let at = (1..60).step_by(4).map(|n| (n as f64, last_reader(n, state) / 1e3));
        let mut series = vec![simulated("last of n readers", at)];
        if let Ok(fit) = SameLine::of(phi(), state, state) {
            let points = [1, 15, 30, 45, 59].map(|n| (f64::from(n), fit.fitted(f64::from(n)) / 1e3));
            series.push(published("printed fit, Table 3.2", "last of n readers", points));
        }
        chart(title, linear("readers of one line"), linear("time, us"), series)
    };
    let charts = vec![of(State::E, "line exclusive in a cache (a)"), of(State::I, "line in memory (b)")];
    figure("fig 3.6", "contention for one line", charts)
}

fn trees(n: &Numbers) -> Figure {
    let mut series = vec![simulated("optimised", over_threads(|p| optimised(n, p)))];
    for (i, (name, _)) in usual(2).iter().enumerate() {
        series.push(simulated(name, over_threads(|p| time(&small(&usual(p)[i].1, false)))));
    }
    let charts = vec![chart("", linear("threads"), log("time, us"), series)];
    figure("fig 4.4", "small broadcasts by tree", charts)
}

fn small_band(n: &Numbers) -> Figure {
    let form = |p: usize| {
        let degrees = optimise::small_broadcast(&n.reads, &n.t_c, p).choice;
        small_broadcast(&n.reads, &n.t_c, &degrees)
    };
    let series = vec![bands(form), simulated("optimised tree", over_threads(|p| optimised(n, p)))];
    figure("fig 4.5", "small broadcast in its band", vec![axes("", series)])
}

fn large(n: &Numbers) -> Figure {
    let of = |way: Large, title: &str| {
        let form = |p: usize| way.model(&n.reads, &n.t_c, &n.t_n, p, LARGE / 64);
        axes(title, vec![bands(form), simulated(title, over_threads(|p| large_time(way, p)))])
    };
    figure("fig 4.6", "broadcast of 8 KiB", vec![of(Large::Flat, "flat"), of(Large::Pipelined, "pipelined")])
}

fn barriers(n: &Numbers) -> Figure {
    let times = over_threads(|p| barrier_of(n, p).0);
    let series = vec![bands(|p| barrier_of(n, p).1), simulated("dissemination, best radix", times)];
    figure("fig 4.7", "barrier in its band", vec![axes("", series)])
}

fn reductions(n: &Numbers) -> Figure {
    let times = over_threads(|p| reduction_of(n, p).0);
    let series = vec![bands(|p| reduction_of(n, p).1), simulated("optimised tree", times)];
    figure("fig 4.8", "small reduction in its band", vec![axes("", series)])
}

/// Rates by Eq. A.1 of messages of a line to 16 MiB. What was measured is a picture.
fn rates(
    item: &str,
    title: &str,
    (location, bridged): (Location, bool),
    threads: &[(usize, &str)],
) -> Figure {
    let of = |&(threads, name): &(usize, &str)| {
        let rate = rate(location, threads, bridged);
        model(name, name, (6..=24).map(|i| f64::from(1 << i)).map(|bytes| (bytes, 1e3 * rate.of(bytes))))
    };
    let chart = chart("", bytes("bytes"), linear("MB/s of each pair"), threads.iter().map(of).collect());
    Figure::new(
        KEY,
        item,
        title,
        "Eq. A.1 with the printed P, F and reads; what the paper measured is a picture",
        vec![chart],
    )
}

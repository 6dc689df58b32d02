//! Figures 2 to 7 and Tables II to V, simulated.

use super::printed::{printed, ByChip, Chip};
use super::simulated::{
    by_chip, chosen, kary, laid_out, named, with_threads, BINOMIAL, DISSEMINATION, INTEGERS, OFF, ON,
    SPACINGS, TOURNAMENT,
};
use super::{on_cores, KEY};
use crate::draw::{Chart, Series};
use crate::paper::figure::{chart, linear, log, names, published, published_ranges, simulated};
use crate::paper::Figure;

/// Origin of the points in all figures.
const HOW: &str = "barriers on a simulated POWER8, calibrated on Table II alone";
/// Without prefetching, the paper's choice.
const CHOSEN: &str = "k-ary tree, degree 5";

pub(super) fn figures() -> Vec<Figure> {
    vec![
        figure_2(),
        figure_3(),
        figure_4(),
        figure_5(),
        figure_6(),
        figure_7(),
        tables_2_and_4(),
        table_3(),
        table_5(),
    ]
}

fn figure(item: &str, title: &str, charts: Vec<Chart>) -> Figure {
    Figure::new(KEY, item, title, HOW, charts)
}

fn by_degree(name: &str, time: impl Fn(usize) -> f64) -> Series {
    simulated(name, (2..=12).chain([16, 20, 23]).map(|k| (k as f64, time(k))))
}

fn figure_2() -> Figure {
    let name = "one line a flag, prefetching";
    let text = &printed().text;
    let best = text.best_degrees.iter().map(|&k| (k as f64, text.one_line_a_flag_us));
    let series = vec![
        by_degree(name, |k| kary(24, k, ON)),
        published("printed: best, about 1.81 us", name, best.collect::<Vec<_>>()),
    ];
    figure(
        "fig 2",
        "degree of the k-ary tree",
        vec![chart("24 processes", linear("degree k"), linear("us"), series)],
    )
}

fn figure_3() -> Figure {
    let name = "degree 5, prefetching";
    let text = &printed().text;
    let times = SPACINGS.map(|(lines, layout)| (lines as f64, laid_out(layout, ON)));
    let series = vec![
        simulated(name, times),
        published("printed: 1.81 us with one line", name, [(1.0, text.one_line_a_flag_us)]),
        published("printed: best with 5 and 7", name, [5.0, 7.0].map(|n| (n, text.five_lines_a_flag_us))),
    ];
    let lines = chart("24 processes, by lines a flag", linear("lines a process"), linear("us"), series);
    let names_of = ["one integer", "one line", "five lines"];
    let ours = [laid_out("packed", INTEGERS), laid_out("paired", ON), laid_out("spread5", ON)];
    let theirs = [text.one_integer_a_flag_us, text.one_line_a_flag_us, text.five_lines_a_flag_us];
    let numbered =
        |times: [f64; 3]| times.into_iter().enumerate().map(|(i, t)| (i as f64, t)).collect::<Vec<_>>();
    let series =
        vec![simulated("simulated", numbered(ours)), published("printed", "simulated", numbered(theirs))];
    let kinds =
        chart("24 processes, sections VI.B and VI.D", names("a flag is", names_of), log("us"), series);
    figure("fig 3", "lines of a flag", vec![lines, kinds])
}

fn figure_4() -> Figure {
    let five = |k: usize| {
        let shape = on_cores(24);
        let degree = k.to_string();
        let params = [("k", degree.as_str()), ("home", "root"), ("layout", "spread5")];
        named(&shape, ("tree", &params), ON)
    };
    let text = &printed().text;
    let series = vec![
        by_degree("one line, prefetching", |k| kary(24, k, ON)),
        by_degree("five lines, prefetching", five),
        by_degree("one line, no prefetching", |k| kary(24, k, OFF)),
        published("printed, one line", "one line, prefetching", [(5.0, text.one_line_a_flag_us)]),
        published("printed, five lines", "five lines, prefetching", [(5.0, text.five_lines_a_flag_us)]),
    ];
    figure(
        "fig 4",
        "flags and prefetching by degree",
        vec![chart("24 processes", linear("degree k"), linear("us"), series)],
    )
}

fn figure_5() -> Figure {
    let text = &printed().text;
    let first = |rows: &[ByChip], chip| rows.iter().find(|r| r.remote == chip).map_or(f64::NAN, |r| r.us);
    let theirs = [
        (2.0, first(&printed().barrier_of_two, Chip::A)),
        (6.0, printed().barrier_of_six.average_us),
        (7.0, first(&printed().barrier_of_seven, Chip::B)),
        (24.0, text.five_lines_a_flag_us),
    ];
    let series = vec![
        simulated(CHOSEN, (2..=24).map(|p| (p as f64, chosen(p, OFF)))),
        published("printed (Tables II to IV, section VI.E)", CHOSEN, theirs),
    ];
    figure(
        "fig 5",
        "the jump at 7 processes",
        vec![chart("", linear("processes, one a core"), linear("us"), series)],
    )
}

fn figure_6() -> Figure {
    let shape = on_cores(24);
    let all = [
        chosen(24, OFF),
        named(&shape, DISSEMINATION, OFF),
        named(&shape, BINOMIAL, OFF),
        named(&shape, TOURNAMENT, OFF),
    ];
    let kinds = ["k-ary tree", "dissemination", "binomial", "tournament"];
    let series = vec![
        simulated("simulated", all.into_iter().enumerate().map(|(i, t)| (i as f64, t))),
        published("printed", "simulated", [(0.0, printed().text.five_lines_a_flag_us)]),
    ];
    figure(
        "fig 6",
        "four algorithms",
        vec![chart("24 processes", names("algorithm", kinds), linear("us"), series)],
    )
}

fn figure_7() -> Figure {
    let times: Vec<[f64; 3]> = (1..=8).map(with_threads).collect();
    let of =
        |i: usize| times.iter().enumerate().map(move |(n, t)| ((n + 1) as f64, t[i])).collect::<Vec<_>>();
    let series = vec![
        simulated(CHOSEN, of(0)),
        simulated("binomial", of(1)),
        simulated("centralized", of(2)),
        published("printed, 192 processes", CHOSEN, [(8.0, printed().text.processes_192_us)]),
    ];
    figure(
        "fig 7",
        "processes a core",
        vec![chart("24 cores", linear("processes a core"), linear("us"), series)],
    )
}

fn tables_2_and_4() -> Figure {
    let panel = |title: &str, near: usize, rows: &[ByChip]| {
        let pairs = by_chip(near, rows);
        let chips: Vec<String> = rows.iter().map(|r| format!("{:?}", r.remote)).collect();
        let numbered = |of: &dyn Fn(&(f64, f64)) -> f64| {
            pairs.iter().enumerate().map(|(i, p)| (i as f64, of(p))).collect::<Vec<_>>()
        };
        let series = vec![
            simulated("simulated", numbered(&|p| p.1)),
            published("printed", "simulated", numbered(&|p| p.0)),
        ];
        chart(
            title,
            names("chip of the last process", chips.iter().map(String::as_str)),
            linear("us"),
            series,
        )
    };
    figure(
        "tables II and IV",
        "barriers of two (calibration) and of seven",
        vec![
            panel("two processes (Table II)", 1, &printed().barrier_of_two),
            panel("seven processes (Table IV)", 6, &printed().barrier_of_seven),
        ],
    )
}

fn table_3() -> Figure {
    let six = &printed().barrier_of_six;
    let flying = |n: usize| {
        let settings = crate::simulate::coherent::Settings { accesses_in_flight: Some(n), ..OFF };
        chosen(6, settings)
    };
    let series = vec![
        simulated("simulated", (1..=8).map(|n| (n as f64, flying(n)))),
        published_ranges("printed, all placements", "simulated", [(4.0, six.min_us, six.max_us)]),
    ];
    figure(
        "table III",
        "six processes on a chip; the description has 4 misses in flight",
        vec![chart("", linear("misses in flight"), linear("us"), series)],
    )
}

fn table_5() -> Figure {
    let rows = &printed().threads;
    let series = vec![
        simulated(CHOSEN, rows.iter().map(|r| (r.smt as f64, with_threads(r.smt)[0]))),
        published("tree, printed", CHOSEN, rows.iter().map(|r| (r.smt as f64, r.tree_us))),
        published("POSIX barrier, printed", "POSIX barrier", rows.iter().map(|r| (r.smt as f64, r.posix_us))),
    ];
    figure("table V", "threads a core", vec![chart("24 cores", linear("threads a core"), log("us"), series)])
}

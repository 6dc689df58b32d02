//! Figures 10, 11, 12, 15, 17 and 21, drawn.

use super::equations::S;
use super::setups::{Setup, TAUS};
use super::simulated::{bears, errors, ratio, Bench, Errors, DEARER, RANKS};
use super::KEY;
use crate::models::Form;
use crate::paper::figure::{bytes, chart, doubling, linear, log, model, published_ranges, simulated};
use crate::paper::Figure;

const HOW: &str =
    "simulated on Lusitania's shape by copies alone; how many at once a cell bears is taken from Fig. 17, not printed";

pub(super) fn figures() -> Vec<Figure> {
    let mut list: Vec<Figure> = errors().iter().map(of_errors).collect();
    list.extend([dearer(), set_ups()]);
    list
}

fn of_errors(figure: &Errors) -> Figure {
    let charts = bears().into_iter().zip(&figure.found).map(|(bears, found)| {
        let of = |i: usize| RANKS.iter().zip(found).map(move |(&p, e)| (p as f64, 100.0 * e[i]));
        let mut series = vec![simulated("tau-Lop", of(0)), simulated("log_nP", of(1))];
        // The paper has none of LogGP in Fig. 10; elsewhere it can hide log_nP.
        if figure.form != Form::BinomialBcast {
            series.push(model("LogGP", "LogGP", of(2)));
        }
        let title = format!("a cell bears {bears} copies");
        chart(&title, doubling("ranks"), linear("mean relative error, %"), series)
    });
    Figure::new(KEY, figure.item, &format!("errors of models, {}", figure.what), HOW, charts.collect())
}

fn dearer() -> Figure {
    let benches = bears().map(|bears| (bears, Bench::lusitania(bears)));
    let ranks = DEARER;
    let mut ratios: Vec<_> = benches
        .iter()
        .map(|(bears, bench)| {
            let points = ranks.map(|p| (p as f64, ratio(bench, p, 1)));
            simulated(&format!("a cell bears {bears}"), points)
        })
        .collect();
    let printed = ranks.map(|p| (p as f64, 2.5, 3.5));
    ratios.push(published_ranges("printed: 2.5 to 3.5", "printed", printed));
    let mut times = Vec::new();
    for p in [32, 64] {
        for (name, form) in [("scatter", Form::Scatter), ("doubling", Form::DoublingAllgather)] {
            let bench = &benches[1].1;
            let points = [1, 2, 4].map(|k| ((k * S) as f64, bench.mpich(form, p, k) / 1e3));
            times.push(simulated(&format!("{name}, P = {p}"), points));
        }
    }
    let charts = vec![
        chart("recursive doubling by scatter", doubling("ranks"), linear("times as long"), ratios),
        chart(
            &format!("a cell bears {} copies", benches[1].0),
            bytes("a rank's part"),
            log("time, in reads of a segment of 8 KiB"),
            times,
        ),
    ];
    Figure::new(KEY, "fig 17", "scatter and recursive-doubling allgather", HOW, charts)
}

/// Figure 21: L(8 KiB, tau) by set-up, for each number of copies that a cell may bear.
fn set_ups() -> Figure {
    let charts = bears().map(|bears| {
        let bench = Bench::lusitania(bears);
        let of = |(name, setup): (&str, Setup)| {
            simulated(name, TAUS.map(|tau| (tau as f64, bench.by(setup, tau) / 1e3)))
        };
        let series = [("-bcast", Setup::Bcast), ("-ping", Setup::Ping), ("-ring", Setup::Ring)].map(of);
        let title = format!("a cell bears {bears} copies");
        chart(&title, doubling("tau"), log("L(8 KiB, tau), in reads of a segment"), series.into())
    });
    Figure::new(KEY, "fig 21", "L(8 KiB, tau) by three set-ups, Lusitania", HOW, charts.into())
}

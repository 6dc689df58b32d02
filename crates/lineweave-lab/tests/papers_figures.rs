//! The figures under `papers/`: what is drawn is what is simulated and what the papers print.

use lineweave_core::algorithm::{find, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::machine::shipped;
use lineweave_core::plan::Params;
use lineweave_lab::draw::{number, Mark, Series};
use lineweave_lab::paper::{Figure, TABLE};
use lineweave_lab::simulate::{simulate, Options};
use std::path::PathBuf;

fn figures(key: &str) -> Vec<Figure> {
    let paper = TABLE.iter().find(|p| p.key == key).expect("the paper is in the table");
    (paper.figures)()
}

/// What marks say when they are pointed at.
fn tips(svg: &str) -> Vec<&str> {
    let marks = svg.split("<g><title>").skip(1);
    let mut tips: Vec<&str> = marks.filter_map(|rest| rest.split("</title>").next()).collect();
    tips.sort_unstable();
    tips
}

/// The committed picture has the marks of one drawn now, and those are the figure's data.
fn held(key: &str, items: &[&str]) -> Vec<Figure> {
    let figures = figures(key);
    let names: Vec<&str> = figures.iter().map(|f| f.item.as_str()).collect();
    assert_eq!(names, items);
    for figure in &figures {
        let svg = figure.svg();
        let series = || figure.charts.iter().flat_map(|c| &c.series);
        for one in series() {
            assert!(!one.spots.is_empty(), "{key} {}: {} is empty", figure.item, one.name);
            for spot in one.spots.iter().filter(|_| one.mark != Mark::Band) {
                assert!(0.0 <= spot.low && spot.low <= spot.high, "{key} {}: {spot:?}", figure.item);
                let start = format!(
                    "<title>{} ({}): {}",
                    one.name.replace('<', "&lt;"),
                    one.mark.name(),
                    number(spot.x)
                );
                assert!(svg.contains(&start), "{key} {}: {start}", figure.item);
            }
        }
        let path =
            PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers")).join(key).join(figure.file());
        let committed = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert_eq!(
            tips(&committed),
            tips(&svg),
            "{} is not what is simulated now: make figures",
            path.display()
        );
    }
    figures
}

fn points<'a>(figures: &'a [Figure], item: &str, name: &str) -> &'a Series {
    let figure = figures.iter().find(|f| f.item == item).expect("the figure");
    figure.charts.iter().flat_map(|c| &c.series).find(|s| s.name == name).expect("the series")
}

fn pairs(series: &Series) -> Vec<(f64, f64)> {
    series.spots.iter().map(|s| (s.x, s.high)).collect()
}

#[test]
fn petrovic() {
    let all = held("petrovic-2012", &["fig 3", "fig 4", "fig 8a", "fig 8b"]);
    assert_eq!(pairs(points(&all, "fig 8a", "k = 7, printed")), [(1.0, 16.6)]);
    assert_eq!(pairs(points(&all, "fig 8a", "binomial, printed")), [(1.0, 21.6)]);
    for (name, printed) in
        [("k = 2", 35.22), ("k = 7", 34.30), ("k = 47", 35.88), ("scatter-allgather", 13.38)]
    {
        assert_eq!(points(&all, "fig 8b", &format!("{name}, Table 2")).spots[0].high, printed);
    }
    // A point, simulated once more.
    let machine = shipped().iter().find(|m| m.name == "intel-scc").unwrap();
    let plan = find(Collective::Bcast, "oc-bcast")
        .and_then(|a| a.plan(&Problem::flat(Collective::Bcast, 48, 97 * 32), &Params::new().with("k", 7)));
    let each = simulate(machine, &plan.unwrap(), &Options { runs: 2, ..Options::default() }).unwrap().each;
    let rate = 97.0 * 32.0 / each.nanos() * 1e3;
    assert!(pairs(points(&all, "fig 8b", "OC-Bcast, k = 7")).contains(&(97.0, rate)), "{rate}");
}

#[test]
fn chunduri() {
    let items =
        ["fig 2", "fig 3", "fig 4", "fig 5", "fig 6", "fig 7", "tables II and IV", "table III", "table V"];
    let all = held("chunduri-2015", &items);
    let printed = points(&all, "fig 5", "printed (Tables II to IV, section VI.E)");
    assert_eq!(pairs(printed), [(2.0, 0.33), (6.0, 0.303), (7.0, 0.81), (24.0, 1.04)]);
}

#[test]
fn ramos_hoefler() {
    let items =
        ["fig 3.6", "fig 4.4", "fig 4.5", "fig 4.6", "fig 4.7", "fig 4.8", "fig A.5", "fig A.8", "fig A.12"];
    let all = held("ramos-hoefler-2013", &items);
    for item in ["fig 4.5", "fig 4.6", "fig 4.7", "fig 4.8"] {
        let band = points(&all, item, "best to worst case of the model");
        assert!(band.mark == Mark::Band && band.spots.iter().all(|s| s.low < s.high), "{item}");
    }
    // T_C = c n + b of Table 3.2.
    let fit = points(&all, "fig 3.6", "printed fit, Table 3.2");
    assert!((fit.spots[0].high - 0.3767).abs() < 1e-9, "{:?}", fit.spots[0]);
    // Eq. A.1 of 16 lines: P = 38, F = 5.8, R_I = 277.7, R_R,M = 235.8.
    let rate = pairs(points(&all, "fig A.12", "2 to 60 threads"))[4];
    let expected = 1024.0 / ((32.0 / 38.0 * 277.7 + 235.8) * 5.8) * 1e3;
    assert!(rate.0 == 1024.0 && (rate.1 / expected - 1.0).abs() < 1e-3, "{rate:?} {expected}");
}

#[test]
fn patil() {
    let items =
        ["fig 1.2", "fig 1.3", "fig 6.1", "fig 6.2", "fig 6.3", "fig 6.4", "fig 6.5", "fig 6.6", "fig 6.7"];
    let all = held("patil-2014", &[&items[..], &["fig 6.8", "fig 6.9"]].concat());
    assert_eq!(pairs(points(&all, "fig 1.3", "printed")), [(2.0, 650.0), (48.0, 900.0)]);
    assert_eq!(pairs(points(&all, "fig 6.5", "printed: 3 times")), [(4096.0, 3.0)]);
}

#[test]
fn rico_gallego() {
    let all = held("rico-gallego-2015", &["fig 10", "fig 11", "fig 12", "fig 15", "fig 17", "fig 21"]);
    let printed = points(&all, "fig 17", "printed: 2.5 to 3.5");
    assert!(printed.spots.iter().all(|s| (s.low, s.high) == (2.5, 3.5)) && printed.spots.len() == 3);
}

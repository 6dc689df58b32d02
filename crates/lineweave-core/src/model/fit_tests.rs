//! Profiles made from known parameters: the fit must find them, and its intervals must hold them.

use super::*;
use crate::profile::{Cell, Profile, Stats, Unidentified};
use crate::topology::Level;
use std::collections::BTreeMap;

/// A reproducible stream of standard normal numbers (xorshift and a sum of twelve).
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}

fn cell(probe: &str, factors: &[(&str, String)], truth: f64, relative: f64, noise: &mut Noise) -> Cell {
    let sigma = truth * relative;
    let median = truth + sigma * noise.normal();
    let factors: BTreeMap<String, String> =
        factors.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    let stats = Stats {
        median,
        ci_low: median - 1.96 * sigma,
        ci_high: median + 1.96 * sigma,
        p5: median,
        p95: median,
        min: median,
        samples: 1000,
        disturbed: 0,
    };
    Cell { probe: probe.to_owned(), factors, unit: "ns".to_owned(), stats, flagged: Vec::new() }
}

fn s(x: impl ToString) -> String {
    x.to_string()
}

const O: f64 = 76.0;
const Q: f64 = 1521.0;
const P: f64 = 1096.0;
const C: f64 = 56.2;
const B: f64 = 188.2;
/// Between stores to polled lines, between loads of flags, and between writers of one line.
const STORES: f64 = 110.0;
const ROW: f64 = 60.0;
const WRITERS: f64 = 230.0;

/// Xeon Phi's parameters (Ramos & Hoefler Tables 3.1, 3.2) as a profile.
fn profile(noise: &mut Noise, relative: f64) -> Profile {
    let l3 = || ("level", s("l3"));
    let mut cells = vec![
        cell("line", &[("access", s("read")), ("state", s("modified")), l3()], 235.8, relative, noise),
        cell("line", &[("access", s("own")), ("state", s("shared")), l3()], 240.0, relative, noise),
        cell(
            "line",
            &[("access", s("read")), ("state", s("exclusive")), ("level", s("local"))],
            8.6,
            relative,
            noise,
        ),
        cell("line", &[("access", s("read")), ("state", s("invalid")), l3()], 277.7, relative, noise),
        cell("signal", &[("layout", s("alone")), ("pollers", s(1)), l3()], 470.0, relative, noise),
        cell("exchange", &[("layout", s("alone")), l3()], 480.0, relative, noise),
        cell("exchange", &[("layout", s("paired")), l3()], 250.0, relative, noise),
        cell("counter", &[("ranks", s(2))], 500.0, relative, noise),
        cell("wake", &[("kind", s("yield")), ("where", s("same"))], 700.0, relative, noise),
        cell("wake", &[("kind", s("futex")), ("where", s("other"))], 9000.0, relative, noise),
    ];
    for n in [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128] {
        let truth = O * f64::from(n) + Q - P / f64::from(n);
        cells.push(cell("pingpong", &[("lines", s(n)), l3()], truth, relative, noise));
    }
    for n in [1, 2, 4, 8, 16, 32] {
        cells.push(cell("contention", &[("readers", s(n))], C * f64::from(n) + B, relative, noise));
    }
    for others in [1, 2, 3, 7, 15, 31] {
        for (call, answers, each) in
            [("each", "apart", STORES), ("one", "apart", ROW), ("one", "line", WRITERS)]
        {
            let f = [("call", s(call)), ("answers", s(answers)), ("others", s(others)), l3()];
            cells.push(cell("star", &f, 960.0 + each * f64::from(others - 1), relative, noise));
        }
    }
    for rounds in [1, 3, 7] {
        let f = [("rounds", s(rounds)), ("layout", s("alone")), l3()];
        cells.push(cell("partners", &f, 240.0 + 235.8, relative, noise));
    }
    for m in [64, 256, 1024, 4096, 16384] {
        for tau in [1, 2, 4] {
            let source = if tau == 1 { ("slot", None) } else { ("peers", Some(("tau", s(tau)))) };
            let mut f =
                vec![("type", s("f64")), ("op", s("sum")), ("bytes", s(m)), ("source", s(source.0)), l3()];
            f.extend(source.1);
            let truth = (250.0 + 1.3 * f64::from(m)) * (1.0 + 0.2 * f64::from(tau - 1));
            cells.push(cell("fold", &f, truth, relative, noise));
            for (pattern, per_byte) in [("get", 1.2), ("put", 1.3)] {
                let truth = (240.0 + per_byte * f64::from(m)) * (1.0 + 0.1 * f64::from(tau - 1));
                let f =
                    [("pattern", s(pattern)), ("kind", s("plain")), ("bytes", s(m)), ("tau", s(tau)), l3()];
                cells.push(cell("copy", &f, truth, relative, noise));
            }
        }
        let f = [("pattern", s("local")), ("kind", s("plain")), ("bytes", s(m)), ("tau", s(1))];
        cells.push(cell("copy", &f, 10.0 + 0.1 * f64::from(m), relative, noise));
        let f = [("type", s("f64")), ("op", s("sum")), ("bytes", s(m)), ("source", s("private"))];
        cells.push(cell("fold", &f, 12.0 + 0.2 * f64::from(m), relative, noise));
    }
    for op in ["set", "wait", "move", "fold", "run"] {
        cells.push(cell("overhead", &[("op", s(op))], 3.0, relative, noise));
    }
    Profile {
        schema: 1,
        version: s("0"),
        measured_at: s("2026-01-01T00:00:00Z"),
        machine: crate::profile::Fingerprint { cpu: s("x"), cpus: 60, line_bytes: 64, topology: s("pu:60") },
        unidentified: Vec::new(),
        cells,
    }
}

#[test]
fn known_parameters_are_found_and_the_intervals_hold_them_at_their_rate() {
    let mut noise = Noise(0x9e37_79b9_7f4a_7c15);
    let runs = 200;
    let mut held = [0usize; 5];
    for _ in 0..runs {
        let model = fit(&profile(&mut noise, 0.01)).unwrap();
        let lines = model.levels[0].lines.unwrap();
        let pairs =
            [(lines.o, O), (lines.q, Q), (lines.p, P), (model.contention.c, C), (model.contention.b, B)];
        for (i, (f, truth)) in pairs.iter().enumerate() {
            held[i] += usize::from(f.covers(*truth));
        }
        assert!((lines.o.value / O - 1.0).abs() < 0.05, "{}", lines.o);
        assert!((model.contention.c.value / C - 1.0).abs() < 0.05, "{}", model.contention.c);
    }
    // 95 % intervals, widened where the noise happens to look like misfit; three standard errors of 200 draws
    // allowed below.
    for (i, h) in held.iter().enumerate() {
        let rate = *h as f64 / f64::from(runs);
        assert!(rate >= 0.95 - 3.0 * (0.95f64 * 0.05 / 200.0).sqrt(), "parameter {i}: {rate}");
    }
}

#[test]
fn what_was_measured_is_taken_as_measured() {
    let model = fit(&profile(&mut Noise(7), 1e-6)).unwrap();
    let l3 = model.level(Level::L3).0;
    assert!((l3.read.value - 235.8).abs() < 0.01);
    assert_eq!(l3.read.provenance, Provenance::Measured);
    assert!((model.local.value - 8.6).abs() < 0.01);
    assert!((l3.get.at(2560, 1).nanos - (240.0 + 1.2 * 2560.0)).abs() < 1.0);
    assert!((l3.get.at(1024, 2).nanos - 1.1 * (240.0 + 1.2 * 1024.0)).abs() < 1.0);
    assert!(model.unidentified.is_empty(), "{:?}", model.unidentified);
    assert!(model.residuals.iter().any(|r| r.of == "T_N@l3" && r.worst < 1e-3));
}

/// A line whose memory is a third rank's, where that was seen to matter.
#[test]
fn a_home_in_another_package_is_found_where_it_costs_more() {
    let away = |ns: f64| {
        let mut noise = Noise(7);
        let mut profile = profile(&mut noise, 1e-3);
        let home = |home: &str| {
            [("access", s("read")), ("state", s("modified")), ("level", s("l3")), ("home", s(home))]
        };
        // Before the cell at home, which is not to be taken for it.
        profile.cells.insert(0, cell("line", &home("machine"), ns, 1e-3, &mut noise));
        profile.cells.insert(0, cell("line", &home("package"), 999.0, 1e-3, &mut noise));
        let model = fit(&profile).unwrap();
        assert!((model.levels[0].read.value / 235.8 - 1.0).abs() < 0.01, "{}", model.levels[0].read);
        model.levels[0].clone()
    };
    let farther = away(2.0 * 235.8);
    assert!(farther.away.is_some_and(|a| a.covers(2.0 * 235.8) && a.provenance == Provenance::Measured));
    assert!((farther.farther_away() - 2.0).abs() < 0.02);
    for same in [235.8, 200.0] {
        assert_eq!((away(same).away, away(same).farther_away()), (None, 1.0));
    }
}

#[test]
fn what_many_ranks_tell_is_read_and_derived_where_it_is_missing() {
    let mut p = profile(&mut Noise(7), 1e-6);
    let model = fit(&p).unwrap();
    let near = |found: Fitted, truth: f64| {
        assert!((found.value / truth - 1.0).abs() < 1e-3, "{found} for {truth}");
        assert_eq!(found.provenance, Provenance::Measured);
    };
    near(model.stores.unwrap(), STORES);
    near(model.issue, ROW);
    let folded = |model: &Model, tau| model.folds[0].slot.as_ref().unwrap().at(1024, tau).nanos;
    assert!((folded(&model, 4) / (1.6 * (250.0 + 1.3 * 1024.0)) - 1.0).abs() < 1e-3);
    let rounds = model.residuals.iter().find(|r| r.of.contains("partners")).unwrap();
    assert!(rounds.from == 3.0 && rounds.to == 7.0 && rounds.worst < 1e-3, "{rounds:?}");
    // What a line with several writers tells stands in for a line that a peer has modified.
    assert!((model.levels[0].own_modified.unwrap().value / WRITERS - 1.0).abs() < 1e-3);

    let peers = |c: &Cell| c.factors.get("source").is_some_and(|source| source == "peers");
    p.cells.retain(|c| !["star", "partners"].contains(&c.probe.as_str()) && !peers(c));
    let model = fit(&p).unwrap();
    assert_eq!(model.stores, None);
    assert!((model.between_stores(Level::L3).value / (0.5 * 240.0) - 1.0).abs() < 1e-3);
    assert!((model.issue.value / O - 1.0).abs() < 1e-3);
    assert_eq!(model.issue.provenance, Provenance::Inferred);
    assert_eq!(model.folds[0].slot.as_ref().unwrap().taus, [1]);
    let why = |what: &str| model.unidentified.iter().find(|u| u.what == what).map(|u| u.because.as_str());
    assert!(why("stores").is_some_and(|w| w.contains("half of an ownership transfer")));
    assert!(why("fold[tau > 1]").is_some_and(|w| w.contains("slowed as copies are")));
}

/// The extra cost of a page for several readers comes out of cells of some sizes, beside one reader's, which stay as they are.
#[test]
fn pages_that_several_attach_to_are_found_and_derived_where_they_are_missing() {
    let mut p = profile(&mut Noise(7), 1e-6);
    let alone = |bytes: u32| 600.0 + 0.1 * f64::from(bytes);
    let page = |readers: u32| 90.0 + 25.0 * f64::from(readers);
    for bytes in [64 << 10, 256 << 10, 1 << 20] {
        let f = |readers: u32| [("bytes", s(bytes)), ("level", s("l3")), ("readers", s(readers))];
        for readers in [2, 3, 7] {
            let ns = alone(bytes) + page(readers) * f64::from(bytes) / PAGE as f64;
            p.cells.push(cell("attach", &f(readers), ns, 1e-6, &mut Noise(9)));
        }
        if bytes != 256 << 10 {
            p.cells.push(cell("attach", &f(1)[..2], alone(bytes), 1e-6, &mut Noise(9)));
        }
    }
    let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-2, "{a} is not {b}");
    let missing =
        |model: &Model| model.unidentified.iter().find(|u| u.what == "attach[readers > 1]").cloned();
    let model = fit(&p).unwrap();
    let attach = model.attach.as_ref().unwrap();
    assert_eq!((attach.taus.as_slice(), attach.bytes.len()), ([1].as_slice(), 2));
    close(attach.at(1 << 20, 1).nanos, alone(1 << 20));
    let measured = model.pinning.as_ref().unwrap();
    assert_eq!(measured.taus, [2, 3, 7]);
    [2, 3, 5, 7]
        .into_iter()
        .for_each(|readers| close(measured.at(PAGE, readers).nanos, page(readers as u32)));
    assert_eq!(missing(&model), None);
    assert_eq!(Model::from_json(&model.to_json()).as_ref(), Ok(&model));

    // A profile of one reader, and its model's text, which has no such key.
    p.cells.retain(|c| !c.factors.contains_key("readers") || c.probe != "attach");
    let older = fit(&p).unwrap();
    assert_eq!((&older.attach, &older.pinning), (&model.attach, &None));
    assert!(missing(&older).is_some_and(|u| u.because.contains("two ownership transfers a page stand in")));
    assert!(!older.to_json().contains("pinning"));
    assert_eq!(Model::from_json(&older.to_json()).as_ref(), Ok(&older));
}

/// Every number with an interval in a model's text: value, ends, and where it stands.
fn numbers(value: &serde_json::Value, at: &str, out: &mut Vec<(String, [f64; 3])>) {
    let number = |key: &str| value.get(key).and_then(serde_json::Value::as_f64);
    if let (Some(v), Some(low), Some(high)) = (number("value"), number("ci_low"), number("ci_high")) {
        out.push((at.to_owned(), [low, v, high]));
    }
    match value {
        serde_json::Value::Object(map) => map.iter().for_each(|(k, v)| numbers(v, &format!("{at}.{k}"), out)),
        serde_json::Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, v)| numbers(v, &format!("{at}[{i}]"), out))
        }
        _ => {}
    }
}

/// `add` once had its value lowered by the engine's own cost and its interval left where it was.
#[test]
fn every_value_lies_in_its_own_interval() {
    let check = |model: &Model| {
        let text = serde_json::from_str(&model.to_json()).unwrap();
        let mut found = Vec::new();
        numbers(&text, "", &mut found);
        assert!(found.len() > 50);
        for (at, [low, value, high]) in found {
            assert!(low <= value && value <= high, "{at}: {value} outside [{low}, {high}]");
        }
    };
    for (seed, relative) in [(1, 1e-6), (2, 0.01), (3, 0.2)] {
        check(&fit(&profile(&mut Noise(seed), relative)).unwrap());
    }
    // Overheads that make up much of a counter's barrier, or all of it; readers that seem to cost less than none.
    for counter in [40.0, 6.0, 1.0] {
        let mut p = profile(&mut Noise(5), 1e-3);
        for cell in &mut p.cells {
            let scale = match cell.probe.as_str() {
                "counter" => counter / 500.0,
                "contention" if cell.factors["readers"] != "1" => 0.01,
                _ => continue,
            };
            let s = &mut cell.stats;
            (s.median, s.ci_low, s.ci_high) = (s.median * scale, s.ci_low * scale, s.ci_high * scale);
        }
        check(&fit(&p).unwrap());
    }
}

#[test]
fn what_is_missing_is_named_and_its_stand_in_marked() {
    let mut p = profile(&mut Noise(7), 0.01);
    p.cells.retain(|c| !["contention", "pingpong", "wake"].contains(&c.probe.as_str()));
    p.unidentified.push(Unidentified { what: s("T_C"), because: s("needs 3 CPUs and 2 are usable") });
    let model = fit(&p).unwrap();
    assert_eq!(model.contention.c.provenance, Provenance::Assumed);
    assert_eq!(model.wake.yielding.provenance, Provenance::Assumed);
    assert!(model.levels[0].lines.is_none());
    let why = |what: &str| model.unidentified.iter().find(|u| u.what == what).map(|u| u.because.as_str());
    assert_eq!(why("T_C"), Some("needs 3 CPUs and 2 are usable"));
    assert!(why("T_N@l3").is_some_and(|w| w.contains("at least 3")));
    assert!(why("wake[yield]").is_some());
}

#[test]
fn non_temporal_stores_are_used_from_where_they_win_everywhere_above() {
    let mut p = profile(&mut Noise(7), 1e-6);
    assert_eq!(fit(&p).unwrap().nt_from, None);
    for (m, ratio) in [(256, 0.5), (1024, 0.9), (4096, 0.7), (16384, 0.75)] {
        for (pattern, plain) in [("local", 10.0 + 0.1 * f64::from(m)), ("get", 240.0 + 1.2 * f64::from(m))] {
            let f = [("pattern", s(pattern)), ("kind", s("nt")), ("bytes", s(m)), ("tau", s(1))];
            p.cells.push(cell("copy", &f, ratio * plain, 1e-6, &mut Noise(9)));
        }
    }
    assert_eq!(fit(&p).unwrap().nt_from, Some((1024 + 4096) / 2));
    p.cells.last_mut().unwrap().stats.ci_high = 1e9;
    assert_eq!(fit(&p).unwrap().nt_from, None);
}

#[test]
fn copies_past_the_caches_are_kept_apart_and_slow_each_other_as_others_do() {
    let mut p = profile(&mut Noise(7), 1e-6);
    assert_eq!(fit(&p).unwrap().streamed, None);
    let local = |kind: &str, m: i32, tau: i32, ns: f64| {
        let f = [("pattern", s("local")), ("kind", s(kind)), ("bytes", s(m)), ("tau", s(tau))];
        cell("copy", &f, ns, 1e-6, &mut Noise(9))
    };
    for m in [1024, 4096, 16384] {
        p.cells.push(local("plain", m, 2, 2.0 * (10.0 + 0.1 * f64::from(m))));
        p.cells.push(local("nt", m, 1, 0.05 * f64::from(m)));
    }
    let missing = |model: &Model| model.unidentified.iter().any(|u| u.what == "copy[nt, tau > 1]");
    let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-3, "{a} is not {b}");
    let model = fit(&p).unwrap();
    close(model.copy.at(16384, 1).nanos, 10.0 + 0.1 * 16384.0);
    let streamed = model.streamed.as_ref().unwrap();
    close(streamed.at(16384, 1).nanos, 0.05 * 16384.0);
    close(streamed.at(16384, 2).nanos, 2.0 * 0.05 * 16384.0);
    assert!(missing(&model));
    p.cells.push(local("nt", 16384, 2, 3.0 * 0.05 * 16384.0));
    let model = fit(&p).unwrap();
    close(model.streamed.as_ref().unwrap().at(16384, 2).nanos, 3.0 * 0.05 * 16384.0);
    assert!(!missing(&model));
}

#[test]
fn surfaces_stay_monotone_under_noise() {
    let model = fit(&profile(&mut Noise(3), 0.2)).unwrap();
    let get = &model.levels[0].get;
    for i in 0..get.bytes.len() {
        for j in 0..get.taus.len() {
            assert!(i == 0 || get.cost[i][j].value >= get.cost[i - 1][j].value);
            assert!(j == 0 || get.cost[i][j].value >= get.cost[i][j - 1].value);
        }
    }
}

#[test]
fn a_profile_without_transfers_or_with_nonsense_is_refused() {
    let mut p = profile(&mut Noise(7), 0.01);
    p.cells.retain(|c| ["copy", "fold", "overhead"].contains(&c.probe.as_str()));
    assert_eq!(fit(&p), Err(FitError::NoTransfers));
    // Unless there are no two CPUs to move a line between.
    p.machine.cpus = 1;
    let model = fit(&p).unwrap();
    assert_eq!(model.levels[0].read.provenance, Provenance::Assumed);
    assert!(model.unidentified.iter().any(|u| u.what == "R_R" && u.because.contains("one CPU")));
    let mut p = profile(&mut Noise(7), 0.01);
    p.cells[0].stats.median = f64::NAN;
    assert!(matches!(fit(&p), Err(FitError::BadCell { .. })));
    let mut p = profile(&mut Noise(7), 0.01);
    p.cells[4].factors.insert(s("layout"), s("sideways"));
    let error = fit(&p).unwrap_err().to_string();
    assert!(error.contains("signal") && error.contains("sideways"), "{error}");
}

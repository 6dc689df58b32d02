use super::*;
use crate::paper::{Basis, Claim, Finding, Verdict, TABLE};
use lineweave_core::machine::shipped;
use lineweave_core::profile::Stats;

fn claims(paper: &str) -> Vec<Claim> {
    let paper = TABLE.iter().find(|p| p.key == paper).expect("a study is of a paper of the table");
    let of = |finding| match finding {
        Finding::Claim(claim) => Some(claim),
        Finding::Item(_) => None,
    };
    (paper.findings)().into_iter().filter_map(of).collect()
}

fn here(cpus: usize) -> Here {
    let (machine, filled, simulated) = ("a test".to_owned(), false, false);
    Here { machine, cpus, cores: cpus, numa: 1, packages: 1, filled, simulated }
}

fn point(picture: &str, series: &str, x: f64, source: &str, ns: f64) -> Point {
    let stats = Stats::of(&[ns], 0).unwrap();
    Point::at((picture.to_owned(), series.to_owned(), x), None, source, &stats)
}

/// References in a study name things that exist, every series has points on a large machine, and every claim is judged.
#[test]
fn studies_are_sound() {
    for study in STUDIES {
        let known = |picture: &str| study.pictures.iter().any(|p| p.name == picture);
        let large = Here { cpus: 48, ..here(24) };
        let mut all = tasks(study, &large, None);
        all.extend(tasks(study, &Here { simulated: true, ..large }, None));
        for series in study.series {
            assert!(known(series.picture), "{}: {}", study.paper, series.picture);
            let has = all.iter().any(|t| t.picture == series.picture && t.series == series.name);
            let later = match series.how {
                How::Probe { .. } => true,
                How::Calls { algorithm, .. } => algorithm.starts_with('@'),
            };
            assert!(has || later, "{}: {}", study.paper, series.name);
        }
        for picture in study.pictures {
            let has = study.series.iter().any(|s| s.picture == picture.name);
            assert!(has || picture.name == states::PICTURE, "{}", picture.name);
        }
        let claims = claims(study.paper);
        for rule in study.rules {
            let of = |c: &&Claim| c.item == rule.item && c.claimed.starts_with(rule.begins);
            assert!(claims.iter().any(|c| of(&c)), "{}: {} {}", study.paper, rule.item, rule.begins);
        }
        // Every claim has a verdict or a reason, whatever was measured.
        let judgements = judge(study, &claims, &here(2), &[]);
        assert_eq!(judgements.len(), claims.len());
        for (judgement, claim) in judgements.iter().zip(&claims) {
            assert_eq!(judgement.verdict, Verdict::NotReproduced, "{}", judgement.item);
            assert!(!judgement.here.is_empty());
            let reason = judgement.here.contains("of which this machine is no part");
            assert!(!reason || claim.basis == Basis::ByConstruction, "{}", claim.item);
        }
        // One CPU measures nothing between ranks.
        assert!(tasks(study, &here(1), None).is_empty());
    }
}

#[test]
fn claims_are_judged_by_what_was_measured() {
    let study = STUDIES.iter().find(|s| s.paper == "chunduri-2015").unwrap();
    let claims = claims(study.paper);
    let verdict = |points: &[Point], cpus, item: &str| {
        let judgements = judge(study, &claims, &here(cpus), points);
        judgements.into_iter().find(|j| j.item == item).unwrap()
    };
    let times = |tree: f64| {
        [
            point("barriers", "k-ary tree", 8.0, MEASURED, tree),
            point("barriers", "binomial", 8.0, MEASURED, 100.0),
        ]
    };
    assert_eq!(verdict(&times(104.0), 8, "fig 6").verdict, Verdict::Holds);
    let slow = verdict(&times(150.0), 8, "fig 6");
    assert_eq!(slow.verdict, Verdict::Differs);
    assert_eq!(slow.here, "50.0 % behind the fastest at 8: binomial 100 ns, k-ary tree 150 ns");
    assert_eq!(verdict(&times(104.0), 2, "fig 6").here, "it needs 4 CPUs, and here are 2");
    // What other work has disturbed is no ground for a verdict.
    let mut shaken = times(150.0);
    shaken[0].high_ns = 400.0;
    let shaken = verdict(&shaken, 8, "fig 6");
    assert_eq!(shaken.verdict, Verdict::NotReproduced);
    assert!(shaken.here.starts_with("1 of the 2 points"), "{}", shaken.here);
    let study = STUDIES.iter().find(|s| s.paper == "ramos-hoefler-2013").unwrap();
    let claims = self::claims(study.paper);
    let band = |ns: f64| {
        let [best, worst] = [crate::models::cache_line::BEST, crate::models::cache_line::WORST];
        let points = [(MEASURED, ns), (best, 50.0), (worst, 200.0)]
            .map(|(source, ns)| point("barrier", "dissemination", 2.0, source, ns));
        let judgements = judge(study, &claims, &here(2), &points);
        judgements.into_iter().find(|j| j.item == "fig 4.7, simulated").unwrap().verdict
    };
    assert_eq!([100.0, 20.0, 300.0].map(band), [Verdict::Holds, Verdict::Differs, Verdict::Differs]);
}

#[test]
fn pages_hold_every_claim_and_figure() {
    let study = STUDIES.iter().find(|s| s.paper == "chunduri-2015").unwrap();
    let paper = TABLE.iter().find(|p| p.key == study.paper).unwrap();
    let points = [
        point("barriers", "k-ary tree", 2.0, MEASURED, 100.0),
        point("barriers", "a <b>", 2.0, MEASURED, 120.0),
    ];
    let judgements = judge(study, &claims(study.paper), &here(2), &points);
    let figures = figures(study, &here(2), &points);
    assert_eq!(figures.iter().map(|f| f.0.as_str()).collect::<Vec<_>>(), ["barriers.svg"]);
    assert!(figures[0].1.contains("k-ary tree (measured)"), "{}", figures[0].1);
    let page = html(paper, &here(2), &["two CPUs".to_owned()], &figures, &judgements, &points);
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("<svg") && page.contains("two CPUs"));
    assert_eq!(page.matches("<tr><td>").count(), judgements.len());
    assert!(!page.contains("a <b>"));
    let rows = csv(&points);
    assert_eq!(
        rows.lines().nth(1),
        Some("\"barriers\",\"k-ary tree\",2,\"\",\"measured\",100.000,100.000,100.000,1,0,,,,")
    );
}

#[test]
fn a_mesh_gives_its_parameters_back() {
    let (recovered, points) = put_get(shipped().iter().find(|m| m.name == "intel-scc").unwrap()).unwrap();
    assert_eq!(recovered.len(), 8);
    assert!(recovered.iter().all(|r| r.off().abs() < 1e-3), "{recovered:?}");
    let petrovic = STUDIES.iter().find(|s| s.paper == "petrovic-2012").unwrap();
    let judgements = judge(petrovic, &claims(petrovic.paper), &here(48), &points);
    let of = |item: &str| judgements.iter().find(|j| j.item == item).unwrap();
    assert_eq!(of("fig 3").verdict, Verdict::Holds, "{}", of("fig 3").here);
    assert!(put_get(shipped().iter().find(|m| m.mesh.is_none()).unwrap()).unwrap().0.is_empty());
}

#[test]
fn reads_by_state_are_clustered_and_summed() {
    const PROFILE: &str = include_str!("../../../../bench/record/xeon-16cpu/profile.toml");
    let profile = lineweave_core::profile::Profile::from_toml(PROFILE).unwrap();
    let ramos = STUDIES.iter().find(|s| s.paper == "ramos-hoefler-2013").unwrap();
    let said = said(ramos, &profile);
    assert!(said[0].contains("M local, E local (2.35 ns)"), "{said:?}");
    assert_eq!(said.len(), 1, "that profile has no ping-pongs by state: {said:?}");
}

/// Ping-pongs between simulated buffers in each state are given back: as measured, and as the sums of reads that they are.
#[test]
fn ping_pongs_by_state_are_measured_and_summed() {
    let machine = shipped().iter().find(|m| m.name == "sandy-bridge-e5-2670-2s").unwrap();
    let profile = crate::simulate::measuring::measure(machine).unwrap();
    let points = states::ping_pongs(&profile);
    let of = |series: &str, label: &str, source: &str| {
        let same = |p: &&Point| p.series == series && p.label.as_deref() == Some(label) && p.source == source;
        points.iter().find(same).map(|p| p.median_ns)
    };
    assert_eq!(points.iter().filter(|p| p.source == MEASURED).count(), 2 * 12);
    for series in ["l3", "machine"] {
        let [own, sum] = [MEASURED, "sum of reads"].map(|source| of(series, "M-E", source).unwrap());
        assert!((own / sum - 1.0).abs() < 0.05, "{series}: {own} {sum}");
        // A line in memory is dearer, whatever the receiver's state.
        assert!(["M", "E", "S"]
            .iter()
            .all(|r| of(series, &format!("I-{r}"), MEASURED) > of(series, &format!("M-{r}"), MEASURED)));
        assert_eq!(of(series, "M-I", MEASURED), None);
    }
    let page = html(TABLE[0], &here(2), &[], &[], &[], &points);
    assert!(page.contains("<td>sum of reads</td>"), "{page}");
}

#[test]
fn claims_say_what_they_need() {
    let ramos = STUDIES.iter().find(|s| s.paper == "ramos-hoefler-2013").unwrap();
    let judgements = judge(ramos, &claims(ramos.paper), &here(8), &[]);
    let across = judgements.iter().find(|j| j.claimed.starts_with("2 or 4")).unwrap();
    assert_eq!(across.here, "it needs 2 NUMA nodes, and here are 1");
}

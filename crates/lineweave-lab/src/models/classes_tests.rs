//! Matrices made from known machines: the classes must be their levels, whatever noise and outliers.

use super::classes::{classes, Latencies, LatenciesError};
use crate::chance::Draw;
use lineweave_core::machine::{shipped, topology};
use lineweave_core::topology::{Level, Topology};

/// A number of the standard normal distribution, nearly.
pub(super) fn normal(stream: &mut Draw) -> f64 {
    (0..12).map(|_| stream.unit()).sum::<f64>() - 6.0
}

/// Every pair with its level's latency, `noise` of it as standard deviation, and a share of wild pairs.
fn matrix(t: &Topology, ns: impl Fn(Level) -> f64, noise: f64, wild: f64, stream: &mut Draw) -> Latencies {
    let mut list = Vec::new();
    for (i, a) in t.cpus.iter().enumerate() {
        for b in &t.cpus[i + 1..] {
            let truth = ns(a.common(b));
            let factor = if stream.unit() < wild { 1.5 + 3.0 * stream.unit() } else { 1.0 };
            list.push((a.os, b.os, truth * factor * (1.0 + noise * normal(stream)), truth * noise));
        }
    }
    Latencies::new(&list).unwrap()
}

#[test]
fn shipped_machines_levels_are_found_in_noise_and_outliers() {
    let mut stream = Draw(0x2545_f491_4f6c_dd1d);
    let (mut tried, mut found) = (0, 0);
    for (name, shape) in [
        ("epyc-rome-7742-2s", "pack:2 numa:1 l3:4 core:4 pu:2"),
        ("epyc-milan-7763-2s", "pack:2 numa:1 l3:2 core:8 pu:2"),
        ("ice-lake-8375c-2s", "pack:2 numa:1 l3:1 core:16 pu:2"),
        ("power9-2s", "pack:2 numa:1 core:6 pu:4"),
    ] {
        let machine = shipped().iter().find(|m| m.name == name).unwrap();
        let t = topology(shape).unwrap();
        let levels: Vec<Level> = {
            let mut l: Vec<Level> = t.cpus[1..].iter().map(|c| t.cpus[0].common(c)).collect();
            l.sort_unstable();
            l.dedup();
            l
        };
        let ns = |level| machine.transfer(level).value.unwrap();
        for _ in 0..12 {
            let result = classes(&matrix(&t, ns, 0.05, 0.02, &mut stream));
            let named = result.named(&t);
            assert_eq!(result.classes.len(), levels.len(), "{name}: {named:?}");
            tried += 1;
            found += usize::from(named == levels.iter().map(|&l| Some(l)).collect::<Vec<_>>());
            assert!(result.hierarchical, "{name}: {} odd pairs", result.odd.len());
            for (class, level) in result.classes.iter().zip(&levels) {
                assert!((class.latency.value / ns(*level) - 1.0).abs() < 0.06, "{name}: {}", class.latency);
            }
        }
    }
    assert_eq!(found, tried);
}

#[test]
fn equal_pairs_are_one_class_and_wild_ones_are_listed() {
    let t = topology("core:12").unwrap();
    let result = classes(&matrix(&t, |_| 50.0, 0.04, 0.0, &mut Draw(3)));
    assert_eq!((result.classes.len(), result.odd.len()), (1, 0));
    assert_eq!(result.classes[0].pairs, 66);
    assert!(result.classes[0].latency.covers(50.0));
    let result = classes(&matrix(&t, |_| 50.0, 0.04, 0.05, &mut Draw(5)));
    assert_eq!(result.classes.len(), 1, "outliers make no class");
    assert!(!result.odd.is_empty() && result.hierarchical);
}

/// On a mesh time grows with the way: no hierarchy, and that is said.
#[test]
fn a_mesh_is_no_hierarchy() {
    let mut list = Vec::new();
    for a in 0..48usize {
        for b in a + 1..48 {
            let hops = (a % 8).abs_diff(b % 8) + (a / 8).abs_diff(b / 8);
            list.push((a, b, 20.0 + 30.0 * hops as f64, 1.0));
        }
    }
    let result = classes(&Latencies::new(&list).unwrap());
    assert!(!result.hierarchical, "{} odd of {}", result.odd.len(), list.len());
}

#[test]
fn incomplete_and_impossible_matrices_are_refused() {
    assert_eq!(Latencies::new(&[]), Err(LatenciesError::None));
    let error = Latencies::new(&[(0, 1, 5.0, 0.1), (1, 2, 5.0, 0.1)]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no latency between CPUs 0 and 2: expected every pair of 3 CPUs to be measured"
    );
    for bad in [0.0, -1.0, f64::NAN] {
        assert!(matches!(Latencies::new(&[(0, 1, bad, 0.1)]), Err(LatenciesError::Bad { .. })));
    }
}

//! Equations and tables.

use super::contention::distance;
use super::figures::Way;
use super::{Study, IDEAL};
use crate::models::put_get::PutGet;
use crate::paper::limit::SAME;
use crate::paper::{all_on, claim, item, Basis, Finding};
use crate::simulate::mesh::Settings;
use crate::simulate::Fidelity;
use lineweave_core::units::Nanos;
use std::collections::BTreeSet;

/// Lengths of Figure 3, in lines.
const LENGTHS: [usize; 5] = [1, 4, 8, 16, 96];

pub(super) fn findings(study: &Study) -> Vec<Finding> {
    let reasoned = [equations(study), latencies(study), forms(study)];
    // Which flags the formulas of Table 2 count was inferred from its numbers.
    let inferred = digits(study).on(Basis::Calibrated);
    all_on(Basis::ByConstruction, reasoned).chain([inferred, played(study)]).collect()
}

/// Puts and gets of core 0 to every distance, simulated line by line and by chunks, to the picosecond.
fn equations(study: &Study) -> Finding {
    let (mut agree, mut of) = (0, 0);
    let picos = |ns: f64| (ns * 1e3).round() as u64;
    for lines in LENGTHS {
        for other in (1..study.printed.setup.cores).step_by(3) {
            for way in Way::ALL {
                let expected = picos(way.model(study, lines, distance(other)));
                for fidelity in [Fidelity::Line, Fidelity::Chunk] {
                    of += 1;
                    agree += usize::from(picos(way.played(study, lines, other, fidelity)) == expected);
                }
            }
        }
    }
    let remark =
        "Eq. 7, 8, 11, 12, which are sums of Eq. 1-6, beside puts and gets of 1 to 96 lines simulated \
                  without load, in picoseconds";
    item("equations 1-12", agree, of, remark)
}

/// Cores and degrees of section 5.2.
const DEGREES: [usize; 3] = [2, 7, 47];

/// Section 5.2.3: Eq. 13 stays below Eq. 14 wherever the message is one chunk.
fn latencies(study: &Study) -> Finding {
    let (m, setup) = (&study.model, &study.printed.setup);
    let (mut agree, mut of, mut lost) = (0, 0, BTreeSet::new());
    for k in DEGREES {
        for cores in (2..=setup.cores).filter(|p| *p > k) {
            for lines in LENGTHS {
                let (ours, theirs) =
                    (m.oc_bcast_latency(cores, lines as u32, k), m.binomial_latency(cores, lines as u32));
                of += 1;
                match ours.0 < theirs.0 {
                    true => agree += 1,
                    false => drop(lost.insert((k, cores))),
                }
            }
        }
    }
    let cores = setup.cores;
    let at = |k| m.oc_bcast_latency(cores, 1, k).0 / 1e3;
    let remark = format!(
        "(k, cores > k, lines) with OC-Bcast's latency below the binomial tree's, first forms; one line on {cores} cores: \
         {:.3}, {:.3} and {:.3} us with k = 2, 7, 47, {:.3} us binomial; not so for (k, cores) {lost:?}",
        at(2),
        at(7),
        at(47),
        m.binomial_latency(cores, 1).0 / 1e3,
    );
    item("equations 13, 14", agree, of, remark)
}

/// Figure 7 sets two forms of Eq. 13 and 14 equal. What is left of their difference without the calls' overheads?
fn forms(study: &Study) -> Finding {
    let (m, cores) = (&study.model, study.printed.setup.cores);
    let bare = PutGet { put_memory: Nanos(0.0), get_box: Nanos(0.0), get_memory: Nanos(0.0), ..*m };
    let oc = (bare.oc_bcast_latency(cores, 1, 7) - bare.oc_bcast_latency_simple(cores, 1, 7)).0;
    let tree = (bare.binomial_latency(cores, 1) - bare.binomial_latency_simple(cores, 1)).0;
    claim(
        "fig 7, Eq. 13 and 14",
        "both forms are equal, the overheads of calls left out",
        format!(
            "for a line on {cores} cores the first form of Eq. 13 has {oc:+.0} ns, of Eq. 14 {tree:+.0} ns; a read of a buffer \
             and a write of one take {:.0}, a read of memory {:.0}",
            (bare.c_r_mpb(1) + bare.c_w_mpb(1)).0,
            bare.c_r_mem(1).0
        ),
        oc.abs() < 1e-9 && tree.abs() < 1e-9,
    )
}

/// Printed throughputs, with ours.
fn beside(study: &Study, ours: impl Fn(usize) -> f64) -> Vec<(usize, f64, f64)> {
    study.printed.table_2.iter().map(|t| (t.k, t.throughput, ours(t.k))).collect()
}

fn listed(rows: &[(usize, f64, f64)]) -> String {
    let name = |k: usize| match k {
        0 => "scatter-allgather".to_owned(),
        k => format!("k = {k}"),
    };
    let rows: Vec<String> = rows.iter().map(|(k, p, o)| format!("{} {o:.2} ({p:.2})", name(*k))).collect();
    rows.join(", ")
}

fn from_formulas(study: &Study) -> Vec<(usize, f64, f64)> {
    let setup = &study.printed.setup;
    let m = setup.chunk_lines as u32;
    let mbps = |lines_per_ns: f64| lines_per_ns * setup.line_bytes as f64 * 1e3;
    beside(study, |k| {
        mbps(match k {
            0 => study.model.scatter_allgather_throughput_complete(setup.cores, m),
            k => study.model.oc_bcast_throughput_complete(setup.cores, m, k),
        })
    })
}

fn digits(study: &Study) -> Finding {
    let rows = from_formulas(study);
    let agree = rows.iter().filter(|(_, printed, ours)| (ours - printed).abs() <= 0.005 + 1e-9).count();
    let remark = format!(
        "complete Eq. 15 and 16, to the last digit, MB/s: {}. A flag is put from the own buffer and read by a get \
         that ends in a register; the paper's form of 16 is not known",
        listed(&rows)
    );
    item("table 2, formulas", agree, rows.len(), remark)
}

/// The plans themselves, every distance 1 and nothing contending.
fn played(study: &Study) -> Finding {
    let setup = &study.printed.setup;
    let lines = setup.cores * setup.chunk_lines;
    let rows = beside(study, |k| {
        let plan = match k {
            0 => study.scatter_allgather(lines),
            k => study.oc_bcast(k, lines),
        };
        study.throughput(&plan, Fidelity::Chunk, Settings { ..IDEAL })
    });
    let pairs: Vec<(f64, f64)> = rows.iter().map(|&(_, printed, ours)| (printed, ours)).collect();
    let (agree, limit) = SAME.count(&pairs);
    let remark =
        format!("{limit}; plans of {lines} lines at distance 1 without contention, MB/s: {}", listed(&rows));
    item("table 2, plans", agree, rows.len(), remark)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Data beside data: a test of the transcription, and no finding.
    #[test]
    fn the_machine_has_table_1() {
        let text = include_str!("../../../papers/petrovic-2012/tables.toml");
        let printed: toml::Table = toml::from_str(text).unwrap();
        let m = &Study::new().model;
        for (key, ns) in [
            ("hop", m.hop),
            ("on_box", m.on_box),
            ("memory_write", m.memory_write),
            ("memory_read", m.memory_read),
            ("put_box", m.put_box),
            ("get_box", m.get_box),
            ("put_memory", m.put_memory),
            ("get_memory", m.get_memory),
        ] {
            let us = printed["table_1"][key].as_float().unwrap();
            assert!((us * 1e3 - ns.0).abs() < 1e-9, "{key}: {us} us, {} ns", ns.0);
        }
    }
}

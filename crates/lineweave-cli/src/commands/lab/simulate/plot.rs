//! Curves of a sweep.

use super::report::Row;
use lineweave_core::machine::Machine;
use lineweave_lab::draw::{charts, Axis, Chart, Mark, Scale, Series, Spot};

/// A quantity that can be the horizontal axis: its title, its scale and its value in a row.
type Over = (&'static str, Scale, fn(&Row) -> f64);

fn degree(row: &Row) -> f64 {
    row.params.get("k").and_then(|k| k.parse().ok()).unwrap_or(f64::NAN)
}

/// Draws times over the quantity that has the most values, with a curve for each combination of the others.
pub fn sweep(machine: &Machine, rows: &[Row]) -> String {
    let all: [Over; 4] = [
        ("message", Scale::Bytes, |r| r.bytes as f64),
        ("ranks", Scale::Log, |r| r.ranks as f64),
        ("degree k", Scale::Linear, degree),
        ("root", Scale::Linear, |r| r.root as f64),
    ];
    let count = |of: fn(&Row) -> f64| {
        let mut values: Vec<f64> = rows.iter().map(of).filter(|v| v.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        values.len()
    };
    // Among quantities with as many values the first is taken.
    let over = (0..all.len()).max_by_key(|&i| (count(all[i].2), all.len() - i)).unwrap_or(0);
    let mut series: Vec<Series> = Vec::new();
    for row in rows {
        let mut name = row.algorithm.to_owned();
        let mut tell = |i: usize, text: String| {
            if i != over && count(all[i].2) > 1 {
                name += &text;
            }
        };
        tell(0, format!(", {} B", row.bytes));
        tell(1, format!(", {} ranks", row.ranks));
        tell(2, format!(", k = {}", degree(row)));
        tell(3, format!(", root {}", row.root));
        let at = all[over].2(row);
        let spot = Spot { x: at, low: row.times.time_ns / 1e3, high: row.times.time_ns / 1e3 };
        match series.iter_mut().find(|s| s.name == name) {
            Some(one) => one.spots.push(spot),
            None => series.push(Series {
                colour_of: name.clone(),
                name,
                mark: Mark::Simulated,
                spots: vec![spot],
            }),
        }
    }
    for one in &mut series {
        one.spots.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    let (title, scale, _) = &all[over];
    let collective = rows.first().map_or(String::new(), |r| r.collective.to_string());
    let chart = Chart {
        title: String::new(),
        x: Axis::new(title, scale.clone()),
        y: Axis::new("time, us", Scale::Log),
        series,
    };
    charts(&format!("{collective}, simulated"), &machine.title, &[chart])
}

#[cfg(test)]
mod tests {
    use super::super::report::{Busy, Effort, Times};
    use super::*;
    use lineweave_core::collective::Collective;
    use lineweave_core::plan::Params;

    fn row(ranks: usize, k: usize, bytes: usize, time_ns: f64) -> Row {
        Row {
            machine: "m".to_owned(),
            collective: Collective::Bcast,
            algorithm: "oc-bcast",
            params: Params::new().with("k", k),
            ranks,
            root: 0,
            bytes,
            window_bytes: None,
            runs: 1,
            fidelity: "line",
            flags: "line",
            place: None,
            times: Times {
                first_ns: time_ns,
                latency_ns: time_ns,
                time_ns,
                bound_ns: None,
                ratio: None,
                throughput_mbps: None,
            },
            busy: Busy::default(),
            effort: Effort { events: 1, seconds: 0.0 },
        }
    }

    #[test]
    fn curves_are_over_what_varies_most() {
        let machine = &lineweave_core::machine::shipped()[0];
        let rows = [row(4, 2, 64, 1e3), row(8, 2, 64, 2e3), row(16, 2, 64, 3e3), row(4, 7, 64, 4e3)];
        let svg = sweep(machine, &rows);
        assert!(svg.contains(">ranks<") && svg.contains("oc-bcast, k = 7 (simulated): 4, 4"), "{svg}");
        assert_eq!(svg.matches("oc-bcast, k = 2 (simulated)").count(), 3);
        assert!(sweep(machine, &[]).ends_with("</svg>\n"));
    }
}

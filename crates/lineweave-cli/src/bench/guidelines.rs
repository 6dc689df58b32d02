//! Self-consistent performance guidelines (docs/explanation/measuring.md, rule 13; Traeff, Gropp and Thakur, IEEE TPDS 2010). A
//! violated guideline shows that a better plan was available.

use super::definition::Team;
use super::row::Row;
use super::subject::Subject;
use lineweave_core::collective::Collective;
use lineweave_core::units::{Bytes, Nanos};
use serde::Serialize;

/// A guideline that lineweave's own times violate beyond their intervals, in cases beside which the exchange of two flags took alike. Printed as
/// `guideline` by `lineweave bench`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Violated {
    pub guideline: &'static str,
    /// The measurements that violate it, in words.
    pub found: String,
    /// Factor by which the slower case exceeds the case that bounds it.
    pub factor: f64,
}

/// Largest ratio between the times for exchanging two flags in two cases that are compared.
const MOVED: f64 = 1.5;

/// Returns the shortest and the longest exchange of two flags beside the cases of two ranks, if they differ by so much that CPUs must
/// have changed place in between, as those of a virtual machine do.
pub fn moved(rows: &[Row]) -> Option<(f64, f64)> {
    let exchanges = rows.iter().filter(|r| r.subject == Subject::Floor).map(|r| r.times.median_ns);
    let (low, high) = exchanges.fold((f64::INFINITY, 0.0f64), |(low, high), ns| (low.min(ns), high.max(ns)));
    (high > MOVED * low).then_some((low, high))
}

/// Returns whether two of lineweave's rows were measured with CPUs at the same places, as far as that is known.
fn alike(a: &Row, b: &Row, rows: &[Row]) -> bool {
    let gauge = |of: &Row| {
        let beside = |r: &&Row| {
            r.subject == Subject::Floor
                && (r.collective, r.ranks, r.bytes, r.team, r.buffers)
                    == (of.collective, of.ranks, of.bytes, of.team, of.buffers)
        };
        rows.iter().find(beside).map(|r| r.times.median_ns)
    };
    match (gauge(a), gauge(b)) {
        (Some(x), Some(y)) => x.max(y) <= MOVED * x.min(y),
        _ => true,
    }
}

/// Returns the guidelines that lineweave's rows violate. Differences within the intervals do not count, and rows between which CPUs
/// changed place are not compared.
pub fn violated(rows: &[Row]) -> Vec<Violated> {
    let ours: Vec<&Row> = rows.iter().filter(|r| r.subject == Subject::Lineweave).collect();
    let mut found = Vec::new();
    for a in &ours {
        let like = |b: &&&Row| b.team == a.team && b.buffers == a.buffers && alike(a, b, rows);
        for b in ours.iter().filter(like) {
            if let Some(rule) = bound(a, b) {
                found.extend(compare(rule, a, b.times.median_ns, b.times.ci_high_ns, &name(b)));
            }
        }
        let comparable: Vec<&Row> = ours.iter().copied().filter(|b| alike(a, b, rows)).collect();
        found.extend(composed(a, &comparable));
        found.extend(impatient(a, rows));
    }
    found
}

/// Returns the guideline by which `a` must not take longer than `b`, if there is one.
fn bound(a: &Row, b: &Row) -> Option<&'static str> {
    let same = a.collective == b.collective;
    match () {
        () if same && a.ranks == b.ranks && a.bytes < b.bytes => Some("time grows with the message"),
        () if same && a.bytes == b.bytes && a.ranks < b.ranks => Some("time grows with the ranks"),
        () if a.collective == Collective::Barrier
            && b.collective == Collective::Allreduce
            && (a.ranks, b.bytes) == (b.ranks, 8) =>
        {
            Some("barrier <= allreduce of 8 B")
        }
        () if a.collective == Collective::Reduce
            && b.collective == Collective::Allreduce
            && (a.ranks, a.bytes) == (b.ranks, b.bytes) =>
        {
            Some("reduce <= allreduce")
        }
        () => None,
    }
}

/// Length of the parts of a composition, relative to the message or block of the whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    /// As long as the whole.
    Same,
    /// The blocks of all ranks together.
    All,
    /// One rank's share of the length.
    Share,
}

impl Part {
    fn bytes(self, bytes: u64, ranks: u64) -> u64 {
        match self {
            Part::Same => bytes,
            Part::All => bytes * ranks,
            Part::Share => bytes.div_ceil(ranks),
        }
    }
}

/// A collective that others together can replace, each of the length given: it must not take longer than the others.
type Composition = (&'static str, Collective, &'static [(Collective, Part)]);

const COMPOSITIONS: [Composition; 11] = {
    use Collective::{
        Allgather, Allreduce, Alltoall, Bcast, Exscan, Gather, Reduce, ReduceScatter, Scan, Scatter,
    };
    use Part::{All, Same, Share};
    [
        ("allreduce <= reduce + bcast", Allreduce, &[(Reduce, Same), (Bcast, Same)]),
        ("allreduce <= reduce-scatter + allgather", Allreduce, &[(ReduceScatter, Share), (Allgather, Share)]),
        ("reduce <= reduce-scatter + gather", Reduce, &[(ReduceScatter, Share), (Gather, Share)]),
        ("bcast <= scatter + allgather", Bcast, &[(Scatter, Share), (Allgather, Share)]),
        ("scatter <= bcast", Scatter, &[(Bcast, All)]),
        ("gather <= allgather", Gather, &[(Allgather, Same)]),
        ("allgather <= gather + bcast", Allgather, &[(Gather, Same), (Bcast, All)]),
        ("allgather <= alltoall", Allgather, &[(Alltoall, Same)]),
        ("reduce-scatter <= reduce + scatter", ReduceScatter, &[(Reduce, All), (Scatter, Same)]),
        ("reduce-scatter <= allreduce", ReduceScatter, &[(Allreduce, All)]),
        ("exscan <= scan", Exscan, &[(Scan, Same)]),
    ]
};

/// Returns the compositions that take less time than `a`. For a length that was not measured, the next longer one stands: it only
/// takes longer.
fn composed(a: &Row, ours: &[&Row]) -> Vec<Violated> {
    let mut found = Vec::new();
    for (rule, _, parts) in COMPOSITIONS.iter().filter(|(_, whole, _)| *whole == a.collective) {
        let rows: Option<Vec<&Row>> = parts
            .iter()
            .map(|&(collective, part)| {
                let least = part.bytes(a.bytes, a.ranks as u64);
                let like = |r: &&&Row| {
                    r.collective == collective
                        && (r.ranks, r.team, r.buffers) == (a.ranks, a.team, a.buffers)
                        && r.bytes >= least
                };
                ours.iter().filter(like).min_by_key(|r| r.bytes).copied()
            })
            .collect();
        let Some(rows) = rows else { continue };
        let (median, high) =
            rows.iter().fold((0.0, 0.0), |(m, h), r| (m + r.times.median_ns, h + r.times.ci_high_ns));
        let names: Vec<String> =
            rows.iter().map(|r| format!("{} of {}", r.collective, Bytes(r.bytes))).collect();
        found.extend(compare(rule, a, median, high, &names.join(" + ")));
    }
    found
}

/// Most that the library's way of waiting may cost, as a multiple of the best way.
const WAITING: f64 = 3.0;

/// Returns a violation where `a` takes more than 3 times as long as the best way of waiting, if all ways were measured.
fn impatient(a: &Row, rows: &[Row]) -> Option<Violated> {
    let same = |r: &&Row| {
        (r.collective, r.ranks, r.bytes, r.team, r.buffers)
            == (a.collective, a.ranks, a.bytes, a.team, a.buffers)
    };
    let waits = rows.iter().filter(same).filter(|r| Subject::WAITS.contains(&r.subject));
    let best = waits.min_by(|x, y| x.times.median_ns.total_cmp(&y.times.median_ns))?;
    let (median, high) = (WAITING * best.times.median_ns, WAITING * best.times.ci_high_ns);
    compare("time <= 3 x the best way of waiting", a, median, high, &format!("3 x {}", best.subject))
}

fn compare(guideline: &'static str, a: &Row, median: f64, high: f64, what: &str) -> Option<Violated> {
    (a.times.ci_low_ns > high).then(|| Violated {
        guideline,
        found: format!("{} takes {}, {what} {}", name(a), Nanos(a.times.median_ns), Nanos(median)),
        factor: a.times.median_ns / median,
    })
}

fn name(row: &Row) -> String {
    let team = match row.team {
        Team::Threads => "threads",
        Team::Processes => "processes",
    };
    format!("{} of {} among {} {team}", row.collective, Bytes(row.bytes), row.ranks)
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::row::Times;
    use super::*;
    use lineweave_tune::trial::Buffers;

    pub fn row(collective: Collective, ranks: usize, bytes: u64, median_ns: f64) -> Row {
        Row {
            collective,
            ranks,
            bytes,
            team: Team::Threads,
            subject: Subject::Lineweave,
            buffers: Buffers::Reuse,
            times: Times {
                median_ns,
                ci_low_ns: median_ns * 0.98,
                ci_high_ns: median_ns * 1.02,
                p5_ns: median_ns,
                p95_ns: median_ns,
                min_ns: median_ns,
                samples: 100,
                disturbed: 0,
            },
            rounds: 3,
            ratio_to_floor: None,
            floor: None,
            algorithm: None,
            window_bytes: None,
            because: None,
            setting: None,
            runtime: None,
        }
    }

    #[test]
    fn each_violation_is_named_and_consistent_tables_have_none() {
        use Collective::{Allreduce, Barrier, Bcast, Reduce};
        let sound = [
            row(Barrier, 2, 0, 50.0),
            row(Allreduce, 2, 8, 60.0),
            row(Reduce, 2, 8, 40.0),
            row(Bcast, 2, 8, 30.0),
            row(Bcast, 2, 64, 30.5),
        ];
        assert_eq!(violated(&sound), []);
        let broken = |at: usize, median: f64| {
            let mut rows = sound.clone();
            rows[at] = row(rows[at].collective, 2, rows[at].bytes, median);
            violated(&rows).into_iter().map(|v| v.guideline).collect::<Vec<_>>()
        };
        assert_eq!(broken(0, 70.0), ["barrier <= allreduce of 8 B"]);
        assert_eq!(broken(1, 90.0), ["allreduce <= reduce + bcast"]);
        assert_eq!(broken(2, 66.0), ["reduce <= allreduce"]);
        assert_eq!(broken(4, 20.0), ["time grows with the message"]);
        let slept = |median| Row { subject: Subject::Sleep, ..row(Barrier, 2, 0, median) };
        assert_eq!(violated(&[sound[0].clone(), slept(20.0)]), []);
        let impatient = violated(&[sound[0].clone(), slept(10.0)]);
        assert_eq!(impatient[0].guideline, "time <= 3 x the best way of waiting");
        let parts = |allgather: f64| {
            [
                row(Bcast, 2, 1024, 500.0),
                row(Collective::Scatter, 2, 1024, 100.0),
                row(Collective::Allgather, 2, 8, 10.0),
                row(Collective::Allgather, 2, 1024, allgather),
            ]
        };
        // A share of 512 bytes was not measured: blocks of 1 KiB stand for it, and those of 8 bytes do not.
        let said = violated(&parts(200.0));
        assert_eq!(said[0].guideline, "bcast <= scatter + allgather");
        assert!(said[0].found.ends_with("scatter of 1 KiB + allgather of 1 KiB 300 ns"), "{}", said[0].found);
        assert_eq!(violated(&parts(450.0)), []);
        // Rows are not compared when CPUs changed place in between.
        let mut drifted = parts(200.0).to_vec();
        for (i, ns) in [(0, 160.0), (1, 30.0)] {
            let mut row = Row { subject: Subject::Floor, ..drifted[i].clone() };
            row.times.median_ns = ns;
            drifted.push(row);
        }
        assert_eq!((violated(&drifted), moved(&drifted)), (Vec::new(), Some((30.0, 160.0))));
        assert_eq!(moved(&parts(1.0)), None);
        let scatter = [row(Bcast, 2, 64, 50.0), row(Collective::Scatter, 2, 32, 60.0)];
        assert_eq!(violated(&scatter)[0].guideline, "scatter <= bcast");
        // Differences within the intervals are not reported.
        assert_eq!(broken(4, 29.5), [] as [&str; 0]);
        let more = [row(Barrier, 4, 0, 40.0), sound[0].clone()];
        assert_eq!(violated(&more)[0].guideline, "time grows with the ranks");
    }
}

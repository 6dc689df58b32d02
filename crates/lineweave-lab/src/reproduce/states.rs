//! Reads of a line by state, as Ramos & Hoefler 2013, chapters 1 and 2 compare them: clusters of equal cost, and ping-pongs as sums.
//!
//! A profile keeps percentiles 5 and 95 of each read; the standard deviation is theirs under a normal distribution. Ping-pongs are
//! measured with buffers that both sides have written, so of all pairs of states that one has a measured time.

use super::{Point, Study, MEASURED};
use crate::models::cache_line::{clusters, Cell, Comparison, Sample, NOISE};
use lineweave_core::machine::{Location, State};
use lineweave_core::profile::{self, Profile, Stats};
use lineweave_core::units::Nanos;

/// The figure of ping-pongs by pairs of states.
pub(super) const PICTURE: &str = "state-ping-pong";
/// Source of their estimates.
const SUM: &str = "sum of reads";
/// Distance of the percentiles 5 and 95 of a normal distribution, in standard deviations.
const APART: f64 = 3.29;
/// Distances, as a profile calls them, and places of the paper's tables, nearest first.
const PLACES: [(&str, Location); 6] = [
    ("local", Location::Core),
    ("core", Location::Adjacent),
    ("l3", Location::Middle),
    ("numa", Location::Farthest),
    ("package", Location::Package),
    ("machine", Location::Machine),
];
const STATES: [(&str, State); 4] =
    [("modified", State::M), ("exclusive", State::E), ("shared", State::S), ("invalid", State::I)];

fn factor<'a, T: Copy>(cell: &profile::Cell, name: &str, of: &[(&'a str, T)]) -> Option<(&'a str, T)> {
    of.iter().find(|(known, _)| cell.factors.get(name).is_some_and(|v| v == known)).copied()
}

fn deviation(stats: &Stats) -> f64 {
    (stats.p95 - stats.p5) / APART
}

/// Reads, each with its number of samples; the nearest home of a line comes first and stands for it.
fn reads(profile: &Profile) -> Vec<(Cell, usize)> {
    let mut list: Vec<(Cell, usize)> = Vec::new();
    for cell in profile.probe("line").filter(|c| c.factors.get("access").is_some_and(|a| a == "read")) {
        let (Some((_, location)), Some((_, state))) =
            (factor(cell, "level", &PLACES), factor(cell, "state", &STATES))
        else {
            continue;
        };
        if !list.iter().any(|(c, _)| (c.location, c.state) == (location, state)) {
            let (mean, stdev) = (cell.stats.median, deviation(&cell.stats));
            list.push((Cell { location, state, mean, stdev }, cell.stats.samples));
        }
    }
    list
}

/// Half a round trip of one line between buffers in these states (Eq. 2.1, 2.2).
fn estimate(reads: &[(Cell, usize)], location: Location, send: State, recv: State) -> Option<Sample> {
    let of = |at: Location, state: State| reads.iter().find(|(c, _)| (c.location, c.state) == (at, state));
    let terms = [of(Location::Core, send)?, of(location, recv)?, of(location, State::M)?];
    Some(Sample {
        mean: terms.iter().map(|t| t.0.mean).sum(),
        stdev: terms.iter().map(|t| t.0.stdev.powi(2)).sum::<f64>().sqrt(),
        n: terms.iter().map(|t| t.1).min()?,
    })
}

/// Measured ping-pongs of one line, by distance.
fn measured(profile: &Profile) -> impl Iterator<Item = (&'static str, Location, &Stats)> {
    profile.probe("pingpong").filter(|c| c.factors.get("lines").is_some_and(|l| l == "1")).filter_map(
        |cell| {
            let (name, location) = factor(cell, "level", &PLACES)?;
            Some((name, location, &cell.stats))
        },
    )
}

/// Returns the ping-pongs of one line by the states of both buffers: as sums of reads, and as measured.
pub(super) fn ping_pongs(profile: &Profile) -> Vec<Point> {
    let (reads, mut points) = (reads(profile), Vec::new());
    for (name, location, stats) in measured(profile) {
        let mut x = 0.0;
        for (send, recv) in STATES.iter().flat_map(|s| STATES.iter().map(move |r| (s.1, r.1))) {
            let Some(sum) = estimate(&reads, location, send, recv) else { continue };
            let mut add = |source: &str, stats: &Stats| {
                let at = (PICTURE.to_owned(), name.to_owned(), x);
                points.push(Point::at(at, Some(format!("{send}-{recv}")), source, stats));
            };
            if (send, recv) == (State::M, State::M) {
                add(MEASURED, stats);
            }
            Stats::of(&[sum.mean], 0).iter().for_each(|stats| add(SUM, stats));
            x += 1.0;
        }
    }
    points
}

/// Returns sentences for the page: the clusters of reads, and Welch's test of ping-pongs against their sums.
pub fn said(study: &Study, profile: &Profile) -> Vec<String> {
    if !study.pictures.iter().any(|p| p.name == PICTURE) {
        return Vec::new();
    }
    let reads = reads(profile);
    let cells: Vec<Cell> = reads.iter().map(|r| r.0).collect();
    let named = |c: &Cell| {
        let place = PLACES.iter().find(|p| p.1 == c.location).map_or("", |p| p.0);
        format!("{} {place}", c.state)
    };
    let list = clusters(&cells, NOISE).into_iter().map(|cluster| {
        let names: Vec<String> = cluster.cells.iter().map(named).collect();
        format!("{} ({})", names.join(", "), Nanos(cluster.representative().mean))
    });
    let list: Vec<String> = list.collect();
    let mut said = Vec::new();
    if !list.is_empty() {
        said.push(format!(
            "reads that cost the same, clustered until no two groups are within a standard deviation: {}",
            list.join("; ")
        ));
    }
    for (name, location, stats) in measured(profile) {
        let Some(sum) = estimate(&reads, location, State::M, State::M) else { continue };
        let own = Sample { mean: stats.median, stdev: deviation(stats), n: stats.samples };
        let at = (PICTURE.to_owned(), name.to_owned(), 0.0);
        if own.n < 2 || sum.n < 2 || !Point::at(at, None, MEASURED, stats).is_steady() {
            continue;
        }
        let test = Comparison::welch(&sum, &own);
        said.push(format!(
            "a ping-pong of one line, both buffers modified ({name}): {} measured, {} by the sum of its reads; Welch's t is {:.1}, and \
             with equal means so large a one has probability {:.2}. Pairs of other states are not measured",
            Nanos(own.mean),
            Nanos(sum.mean),
            test.t,
            test.p
        ));
    }
    said
}

//! Reads of a line by state, as Ramos & Hoefler 2013, chapters 1 and 2 compare them: clusters of equal cost, and ping-pongs as sums.
//!
//! A profile keeps percentiles 5 and 95 of each read; the standard deviation is theirs under a normal distribution. A receiver polls
//! its line, which is therefore never invalid.

use super::points::APART;
use super::{Point, Study, MEASURED};
use crate::models::cache_line::{clusters, Cell, Comparison, Sample, NOISE};
use crate::simulate::measuring::STATES;
use lineweave_core::machine::{Location, State};
use lineweave_core::profile::{self, Profile, Stats};
use lineweave_core::units::Nanos;

/// The figure of ping-pongs by pairs of states.
pub(super) const PICTURE: &str = "state-ping-pong";
/// Source of their estimates.
const SUM: &str = "sum of reads";
/// Distances, as a profile calls them, and places of the paper's tables, nearest first.
const PLACES: [(&str, Location); 6] = [
    ("local", Location::Core),
    ("core", Location::Adjacent),
    ("l3", Location::Middle),
    ("numa", Location::Farthest),
    ("package", Location::Package),
    ("machine", Location::Machine),
];

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

/// Half a round trip of one line between buffers in these states (Eq. 2.1, 2.2). A line that the sender has costs the same in each state
/// (chapter 2), and one that no cache has comes from memory whoever reads it.
fn estimate(reads: &[(Cell, usize)], location: Location, (send, recv): (State, State)) -> Option<Sample> {
    let of = |at: Location, state: State| reads.iter().find(|(c, _)| (c.location, c.state) == (at, state));
    let own = match send {
        State::I => of(Location::Core, send).or(of(location, send)),
        _ => of(Location::Core, send).or(of(Location::Core, State::E)),
    };
    let terms = [own?, of(location, recv)?, of(location, State::M)?];
    Some(Sample {
        mean: terms.iter().map(|t| t.0.mean).sum(),
        stdev: terms.iter().map(|t| t.0.stdev.powi(2)).sum::<f64>().sqrt(),
        n: terms.iter().map(|t| t.1).min()?,
    })
}

/// A ping-pong of one line: where, in which states of the buffers to send from and to receive in, and its time.
type PingPong<'a> = ((&'static str, Location), (State, State), &'a Stats);

/// Measured ping-pongs of one line.
fn measured(profile: &Profile) -> impl Iterator<Item = PingPong<'_>> {
    profile.probe("states").filter_map(|cell| {
        let [send, recv] = ["send", "recv"].map(|name| factor(cell, name, &STATES));
        Some((factor(cell, "level", &PLACES)?, (send?.1, recv?.1), &cell.stats))
    })
}

/// Returns the ping-pongs of one line by the states of both buffers: as measured, and as sums of reads.
pub(super) fn ping_pongs(profile: &Profile) -> Vec<Point> {
    let (reads, mut points) = (reads(profile), Vec::new());
    let mut pairs: Vec<(State, State)> = Vec::new();
    for ((name, location), pair, stats) in measured(profile) {
        let known = pairs.iter().position(|p| *p == pair);
        let x = known.unwrap_or(pairs.len()) as f64;
        if known.is_none() {
            pairs.push(pair);
        }
        let mut add = |source: &str, stats: &Stats| {
            let at = (PICTURE.to_owned(), name.to_owned(), x);
            points.push(Point::at(at, Some(format!("{}-{}", pair.0, pair.1)), source, stats));
        };
        add(MEASURED, stats);
        let sum = estimate(&reads, location, pair).and_then(|sum| Stats::of(&[sum.mean], 0));
        sum.iter().for_each(|stats| add(SUM, stats));
    }
    points
}

/// Returns sentences for the page: the clusters of reads, and Welch's test of ping-pongs beside their sums.
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
    let tests = measured(profile).filter_map(|((name, location), (send, recv), stats)| {
        let sum = estimate(&reads, location, (send, recv))?;
        let own = Sample { mean: stats.median, stdev: deviation(stats), n: stats.samples };
        let at = (PICTURE.to_owned(), name.to_owned(), 0.0);
        let test = Comparison::welch(&sum, &own);
        (own.n > 1 && sum.n > 1 && Point::at(at, None, MEASURED, stats).is_steady()).then(|| {
            let [own, sum] = [own, sum].map(|s| Nanos(s.mean));
            format!("{send}-{recv} {name}: {own} and {sum}, t = {:.1}, p = {:.2}", test.t, test.p)
        })
    });
    let tests: Vec<String> = tests.collect();
    if !tests.is_empty() {
        said.push(format!(
            "a ping-pong of one line, measured and as the sum of its reads, with Welch's t and the probability of so large a one if their means were \
             equal: {}",
            tests.join("; ")
        ));
    }
    said
}

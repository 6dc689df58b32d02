//! Points: which a study measures on a machine, and what probes and models say of them.

use super::{states, By, How, Series, Study, Task};
use crate::closed_form::farthest;
use crate::models::{Call, Estimates, Form, Schedule};
use lineweave_core::algorithm::{self, Problem};
use lineweave_core::profile::{Profile, Stats};
use lineweave_core::topology::{Level, Shape, Topology};
use serde::{Deserialize, Serialize};

/// One point, measured or predicted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Point {
    /// The picture.
    pub picture: String,
    /// The series.
    pub series: String,
    /// Value on the axis to the right.
    pub x: f64,
    /// The label on the x axis, where that is not a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// `measured`, or the name of a model.
    pub source: String,
    /// Median, in ns.
    pub median_ns: f64,
    /// Lower end of the median's 95 % interval.
    pub low_ns: f64,
    /// Upper end of it.
    pub high_ns: f64,
    /// Samples.
    pub samples: usize,
    /// Samples set aside because something disturbed them.
    pub disturbed: usize,
    /// True if other programs ran beside all of its samples.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub busy: bool,
    /// Percentiles 5 and 95, where they are of several samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whiskers_ns: Option<[f64; 2]>,
    /// Quartiles, where single samples are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quartiles_ns: Option<[f64; 2]>,
}

/// The upper end of an interval by its lower, up to which a point is compared with others.
const WIDEST: f64 = 1.5;

/// Distance of the percentiles 5 and 95 of a normal distribution, in standard deviations.
pub(super) const APART: f64 = 3.29;

/// Samples from which on percentiles are shown.
const FEW: usize = 8;

/// The source of what was measured.
pub const MEASURED: &str = "measured";

impl Point {
    /// Returns the point of a task from its samples.
    pub fn of(task: &Task, samples: &[f64], disturbed: usize) -> Option<Point> {
        let at = (task.picture.to_owned(), task.series.to_owned(), task.x);
        let point = Point::at(at, None, MEASURED, &Stats::of(samples, disturbed)?);
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let quartile = |i: usize| sorted[i * (sorted.len() - 1) / 4];
        Some(Point { quartiles_ns: point.whiskers_ns.map(|_| [1, 3].map(quartile)), ..point })
    }

    pub(super) fn at(at: (String, String, f64), label: Option<String>, source: &str, stats: &Stats) -> Point {
        Point {
            picture: at.0,
            series: at.1,
            x: at.2,
            label,
            source: source.to_owned(),
            median_ns: stats.median,
            low_ns: stats.ci_low,
            high_ns: stats.ci_high,
            samples: stats.samples,
            disturbed: stats.disturbed,
            busy: false,
            whiskers_ns: (stats.samples >= FEW).then_some([stats.p5, stats.p95]),
            quartiles_ns: None,
        }
    }

    /// Returns whether its median is known well enough to be compared: its interval is at most half as wide as it is long, and nothing else
    /// ran beside it.
    pub fn is_steady(&self) -> bool {
        !self.busy && self.low_ns > 0.0 && self.high_ns <= WIDEST * self.low_ns
    }

    /// Returns whether another is the same point, of the same source.
    pub fn is_as(&self, other: &Point) -> bool {
        self.source == other.source
            && self.picture == other.picture
            && self.series == other.series
            && self.x == other.x
    }

    /// Returns whether it is the point of this task.
    pub fn is_of(&self, task: &Task) -> bool {
        self.source == MEASURED
            && self.picture == task.picture
            && self.series == task.series
            && self.x == task.x
    }
}

/// Returns a sentence on points that were disturbed, if there are any.
pub fn disturbed(points: &[Point]) -> Option<String> {
    let count = points.iter().filter(|p| p.source == MEASURED && !p.is_steady()).count();
    (count > 0).then(|| {
        format!(
            "other work disturbed {count} of {} points that were measured: they are drawn and not judged, and the same command \
             repeats them on a quieter machine",
            points.iter().filter(|p| p.source == MEASURED).count()
        )
    })
}

/// Returns a sentence that names the series without points, if there are any.
pub fn missing(study: &Study, points: &[Point]) -> Option<String> {
    let has = |s: &Series| points.iter().any(|p| p.picture == s.picture && p.series.starts_with(s.name));
    let none = study.series.iter().filter(|s| !has(s));
    let names: Vec<String> = none.map(|s| format!("{} ({})", s.name, s.picture)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "without points, since they need more CPUs or hardware threads, another kind of machine or program, or a parameter that was \
             not fitted: {}",
            names.join(", ")
        )
    })
}

/// Returns each predicted point beside the measured one.
pub(super) fn pairs(points: &[Point]) -> impl Iterator<Item = (&Point, &Point)> {
    points.iter().filter(|p| p.source != MEASURED).filter_map(|predicted| {
        let same = |q: &&Point| Point { source: MEASURED.to_owned(), ..predicted.clone() }.is_as(q);
        Some((points.iter().find(same)?, predicted))
    })
}

/// Returns the points that a profile's cells are, a series for each distance between CPUs.
pub fn from_profile(study: &Study, profile: &Profile) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
    if study.pictures.iter().any(|p| p.name == states::PICTURE) {
        points = states::ping_pongs(profile);
    }
    for series in study.series {
        let How::Probe { probe, factors, over } = &series.how else { continue };
        let mut labels: Vec<String> = Vec::new();
        for cell in profile.probe(probe) {
            let has = |(name, value): &(&str, &str)| cell.factors.get(*name).is_some_and(|v| v == value);
            let Some(x) = cell.factors.get(*over).filter(|_| factors.iter().all(has)) else { continue };
            let number = x.parse::<f64>().ok();
            let place = number.unwrap_or_else(|| {
                let known = labels.iter().position(|label| label == x);
                known.unwrap_or_else(|| {
                    labels.push(x.clone());
                    labels.len() - 1
                }) as f64
            });
            let level = cell.factors.get("level").map(|level| format!(", {level}")).unwrap_or_default();
            let at = (series.picture.to_owned(), format!("{}{level}", series.name), place);
            let label = number.is_none().then(|| x.clone());
            let point = Point::at(at, label, MEASURED, &cell.stats);
            // A cell for each home of a line: the nearest, which comes first, stands for it.
            if !points.iter().any(|p| p.is_as(&point)) {
                points.push(point);
            }
        }
    }
    points
}

/// Returns what the models of a study's pictures say of its tasks.
pub fn predicted(study: &Study, tasks: &[Task], estimates: &Estimates) -> Vec<Point> {
    let mut points = Vec::new();
    for task in tasks.iter().filter(|t| !matches!(t.by, By::Peer | By::Mpi | By::Uneven)) {
        let Some(picture) = study.pictures.iter().find(|p| p.name == task.picture) else { continue };
        let problem = Problem::flat(task.collective, task.ranks, task.bytes);
        let made = algorithm::find(task.collective, &task.spec.name);
        let Ok(plan) = made.and_then(|a| a.plan(&problem, &task.spec.params)) else { continue };
        let schedule = Schedule::of(&plan);
        let form = match task.spec.params.0.is_empty() {
            true => Form::of(task.collective, &task.spec.name),
            false => Form::Plan,
        };
        let mut call = Call::new(form, task.ranks, task.bytes as u64);
        call.gamma = estimates.gamma.as_ref();
        let call = Call { schedule: Some(&schedule), ..call };
        for (name, model) in estimates.all().iter().filter(|(name, _)| picture.models.contains(name)) {
            let Some(time) = model.as_ref().ok().and_then(|m| m.collective(&call).ok()) else { continue };
            let at = (task.picture.to_owned(), task.series.to_owned(), task.x);
            let Some(exact) = Stats::of(&[time.nanos], 0) else { continue };
            points.push(Point::at(at, None, name, &exact));
        }
    }
    points
}

/// Returns the distance of the farthest two CPUs, for which models are fitted.
pub fn level(topology: &Topology) -> Level {
    farthest(&Shape::on(topology.cpus.clone()))
}

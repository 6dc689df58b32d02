//! Points: which a study measures on a machine, and what probes and models say of them.

use super::{Here, How, Over, Study};
use crate::closed_form::farthest;
use crate::models::{Call, Estimates, Form, Schedule};
use lineweave_core::algorithm::{self, spec::Spec, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::profile::{Profile, Stats};
use lineweave_core::topology::{Level, Shape, Topology};
use serde::{Deserialize, Serialize};

/// One point to be measured.
#[derive(Clone, PartialEq, Debug)]
pub struct Task {
    /// Picture and series.
    pub picture: &'static str,
    /// The series within the picture.
    pub series: &'static str,
    /// Value on the axis to the right.
    pub x: f64,
    /// The collective.
    pub collective: Collective,
    /// Algorithm and parameters.
    pub spec: Spec,
    /// Length of the message.
    pub bytes: usize,
    /// Ranks.
    pub ranks: usize,
    /// True if they are processes.
    pub processes: bool,
}

impl Task {
    /// Returns whether each call is timed with a barrier behind it, less the time of a barrier: calls with a root overlap back to back.
    pub fn alone(&self) -> bool {
        self.collective.rooted()
    }
}

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
}

/// The upper end of an interval by its lower, up to which a point is compared with others.
const WIDEST: f64 = 1.5;

/// The source of what was measured.
pub const MEASURED: &str = "measured";

impl Point {
    /// Returns the point of a task from what was measured.
    pub fn of(task: &Task, stats: &Stats) -> Point {
        let at = (task.picture.to_owned(), task.series.to_owned(), task.x);
        Point::at(at, None, MEASURED, stats)
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
        }
    }

    /// Returns whether its median is known well enough to be compared: its interval is at most half as wide as it is long. Other
    /// work on the machine makes it wider.
    pub fn is_steady(&self) -> bool {
        self.low_ns > 0.0 && self.high_ns <= WIDEST * self.low_ns
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

/// Returns what a study measures on a machine: none where ranks cannot be apart.
pub fn tasks(study: &Study, here: &Here) -> Vec<Task> {
    let mut list = Vec::new();
    for series in study.series {
        let How::Calls { collective, algorithm, bytes, over, processes } = &series.how else { continue };
        let points: Vec<(f64, usize, usize, usize)> = match over {
            Over::Ranks => ranks(here.cpus).into_iter().map(|n| (n as f64, n, *bytes, 0)).collect(),
            Over::Bytes(all) => all.iter().map(|&bytes| (bytes as f64, here.cpus, bytes, 0)).collect(),
            // A tree of more children than other ranks is the flat one.
            Over::Degrees(all) => {
                let fewer = all.iter().filter(|&&k| k < here.cpus.max(2));
                fewer.map(|&k| (k as f64, here.cpus, *bytes, k)).collect()
            }
        };
        for (x, ranks, bytes, degree) in points.into_iter().filter(|p| p.1 >= 2) {
            let Ok(spec) = algorithm.replace("{}", &degree.to_string()).parse::<Spec>() else { continue };
            let problem = Problem::flat(*collective, ranks, bytes);
            let made = algorithm::find(*collective, &spec.name).and_then(|a| a.plan(&problem, &spec.params));
            if made.is_ok() {
                let (picture, series, processes) = (series.picture, series.name, *processes);
                list.push(Task {
                    picture,
                    series,
                    x,
                    collective: *collective,
                    spec,
                    bytes,
                    ranks,
                    processes,
                });
            }
        }
    }
    list
}

/// Powers of two up to the CPUs, and all of them.
fn ranks(cpus: usize) -> Vec<usize> {
    let mut list: Vec<usize> = (1..).map(|i| 1usize << i).take_while(|&n| n < cpus).collect();
    list.push(cpus);
    list
}

/// Returns the points that a profile's cells are, a series for each distance between CPUs.
pub fn from_profile(study: &Study, profile: &Profile) -> Vec<Point> {
    let mut points: Vec<Point> = Vec::new();
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
    for task in tasks {
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

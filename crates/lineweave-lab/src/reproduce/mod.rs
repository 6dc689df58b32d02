//! The papers' experiments on a machine at hand: what is measured, how each claim is judged, and the page that shows it.
//!
//! 1. A [`Study`] is data: series of points that an experiment of the paper has, and rules by which its claims are judged.
//! 2. [`tasks`] makes of a study what this machine can measure. Whoever has a clock measures, and hands back [`Point`]s.
//! 3. [`from_profile`] and [`predicted`] add what probes and fitted models say of the same points.
//! 4. [`judge`] gives every claim of the paper a verdict or a reason; [`html`] and [`figures`] draw everything.
//!
//! A claim of the paper without a rule is one that no machine can turn, or one that says why it cannot be asked.

mod judge;
mod page;
mod points;
mod studies;

pub use judge::{judge, Judgement};
pub use page::{csv, figures, html};
pub use points::{from_profile, level, predicted, tasks, Point, Task, MEASURED};
pub use studies::STUDIES;

use crate::draw::Scale;
use lineweave_core::collective::Collective;
use lineweave_core::topology::{Level, Shape, Topology};
use serde::{Deserialize, Serialize};

/// A paper's experiments, and the rules by which its claims are judged.
pub struct Study {
    /// Key of the paper.
    pub paper: &'static str,
    /// Figures of the paper, one picture each.
    pub pictures: &'static [Picture],
    /// The measured series.
    pub series: &'static [Series],
    /// Rules by which claims are judged.
    pub rules: &'static [Rule],
    /// Reason why a claim without a rule cannot be asked, unless it follows from what is printed.
    pub otherwise: &'static str,
}

impl Study {
    /// Returns whether probes are needed: some series are of a profile, or models are to be fitted.
    pub fn needs_profile(&self) -> bool {
        self.series.iter().any(|s| matches!(s.how, How::Probe { .. }))
            || self.pictures.iter().any(|p| !p.models.is_empty())
    }
}

/// A figure of the paper, of this machine.
pub struct Picture {
    /// Short name, by which series and rules refer to it.
    pub name: &'static str,
    /// The title of the picture.
    pub title: &'static str,
    /// Title of the horizontal axis.
    pub x: &'static str,
    /// Scale of that axis, for these points.
    pub scale: fn(&[Point]) -> Scale,
    /// Models beside what was measured, by their names in `lab models`.
    pub models: &'static [&'static str],
}

/// Points of one thing.
pub struct Series {
    /// The picture.
    pub picture: &'static str,
    /// The name of the series.
    pub name: &'static str,
    /// Source of its points.
    pub how: How,
}

/// Source of the points of a series.
pub enum How {
    /// Cells of a profile.
    Probe {
        /// The probe.
        probe: &'static str,
        /// Factors that a cell must have.
        factors: &'static [(&'static str, &'static str)],
        /// Factor on the horizontal axis.
        over: &'static str,
    },
    /// Calls of an algorithm: alone where there is a root, else back to back.
    Calls {
        /// The collective.
        collective: Collective,
        /// The algorithm as it is written: `tree(k={})`, where the degree takes the place of the braces.
        algorithm: &'static str,
        /// Length of the message.
        bytes: usize,
        /// The quantity that varies.
        over: Over,
        /// True if ranks are processes.
        processes: bool,
    },
}

/// The quantity that varies.
pub enum Over {
    /// Ranks, up to the CPUs.
    Ranks,
    /// Lengths, among as many ranks as there are CPUs.
    Bytes(&'static [usize]),
    /// Degrees, among as many ranks as there are CPUs.
    Degrees(&'static [usize]),
}

/// The properties of this machine that experiments ask for.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Here {
    /// The name of the machine.
    pub machine: String,
    /// CPUs that can be used.
    pub cpus: usize,
    /// Cores of them.
    pub cores: usize,
    /// NUMA nodes of them.
    pub numa: usize,
    /// Packages of them.
    pub packages: usize,
}

impl Here {
    /// Returns what a topology has.
    pub fn of(machine: &str, topology: &Topology) -> Here {
        let shape = Shape::on(topology.cpus.clone());
        let groups = |level| shape.groups(level).len();
        Here {
            machine: machine.to_owned(),
            cpus: topology.cpus.len(),
            cores: topology.cores(),
            numa: groups(Level::Numa),
            packages: groups(Level::Package),
        }
    }
}

/// The test that a claim makes of the points.
pub enum Ask {
    /// `who` is the fastest of its picture, or within 5 % of it.
    Fastest {
        /// The picture.
        picture: &'static str,
        /// The series.
        who: &'static str,
        /// True if `who` is asked for at the largest x alone, false for every x.
        at_last: bool,
    },
    /// The least of a series is at one of these x.
    Best {
        /// The picture.
        picture: &'static str,
        /// The series.
        series: &'static str,
        /// The values that the paper prints.
        printed: &'static [f64],
    },
    /// At every x each of these series is faster than the one before.
    Order {
        /// The picture.
        picture: &'static str,
        /// The slowest first.
        series: &'static [&'static str],
    },
    /// At the largest x one series is so many times as fast as another, within 10 %.
    Times {
        /// The picture.
        picture: &'static str,
        /// The faster one, as claimed, and the slower one.
        series: [&'static str; 2],
        /// The factor that the claim names.
        factor: f64,
    },
    /// Every point lies between what two models say.
    Within {
        /// The picture.
        picture: &'static str,
        /// Models of the least and the most.
        models: [&'static str; 2],
    },
    /// One model's mean relative error is the least.
    LeastError {
        /// The picture.
        picture: &'static str,
        /// The model.
        model: &'static str,
    },
    /// All series of a picture are equal at each x, within 5 %.
    Alike {
        /// The picture.
        picture: &'static str,
    },
    /// It cannot be asked of any machine but one of the paper's kind, or not by these experiments.
    Cannot(&'static str),
}

/// The properties that a claim needs of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// CPUs.
    pub cpus: usize,
    /// Hardware threads a core.
    pub threads: usize,
    /// Packages.
    pub packages: usize,
}

/// Rule by which one claim of the paper is judged here.
pub struct Rule {
    /// Place of the claim in the paper.
    pub item: &'static str,
    /// Beginning of the claim, in the words of `lab papers`.
    pub begins: &'static str,
    /// The properties that the claim needs.
    pub needs: Needs,
    /// The test that the claim makes.
    pub ask: Ask,
}

#[cfg(test)]
mod tests;

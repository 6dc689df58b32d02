//! The papers' experiments on a machine at hand: what is measured, how each claim is judged, and the page that shows it.
//!
//! 1. A [`Study`] is data: series of points that an experiment of the paper has, and rules by which its claims are judged.
//! 2. [`tasks`] makes of a study what this machine can measure. Whoever has a clock measures, and hands back [`Point`]s.
//! 3. [`from_profile`] and [`predicted`] add what probes and fitted models say of the same points.
//! 4. [`judge`] gives every claim of the paper a verdict or a reason; [`html`] and [`figures`] draw everything.
//!
//! A claim of the paper without a rule is one that no machine can turn, or one that says why it cannot be asked.

mod judge;
mod mesh;
mod page;
mod points;
mod states;
mod studies;
mod tasks;

pub use judge::{judge, Judgement};
pub use mesh::put_get;
pub use page::{csv, figures, html};
pub use points::{disturbed, from_profile, level, missing, predicted, Point, MEASURED};
pub use states::said;
pub use studies::STUDIES;
pub use tasks::{tasks, Costs, Task};

use crate::draw::Scale;
use crate::paper::limit::Limit;
use lineweave_core::collective::Collective;
use lineweave_core::topology::{Level, Placement, Shape, Topology};
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
        /// The algorithm as it is written: `tree(k={})`, where the degree or root takes the place of the braces; `@published` is what the
        /// optimiser of that name chooses by fitted costs. For a peer its name.
        algorithm: &'static str,
        /// Length of the message.
        bytes: usize,
        /// The quantity that varies.
        over: Over,
        /// The caller.
        by: By,
    },
}

/// The caller of what is timed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum By {
    /// Threads of lineweave's.
    Threads,
    /// Threads that fill core after core, whatever the placement of the others.
    Filling,
    /// Processes of lineweave's.
    Processes,
    /// A program of `lineweave bench` on this machine: OpenMP's or POSIX threads' barrier.
    Peer,
    /// The MPI in the PATH on this machine.
    Mpi,
    /// Threads of lineweave's whose blocks are of half, all and one and a half times the length.
    Uneven,
}

/// The quantity that varies.
pub enum Over {
    /// Ranks, up to [`Here::most`].
    Ranks,
    /// Hardware threads a core, with a rank on each.
    Threads,
    /// Roots, all of them.
    Roots,
    /// Lengths, among [`Here::most`] ranks.
    Bytes(&'static [usize]),
    /// Degrees, among [`Here::most`] ranks.
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
    /// True if ranks fill core after core, false if each has a core.
    pub filled: bool,
    /// True if the machine is described and played in virtual time.
    pub simulated: bool,
}

impl Here {
    /// Returns the most ranks of a sweep: one a core, or one a hardware thread where cores are filled.
    pub fn most(&self) -> usize {
        if self.filled {
            self.cpus
        } else {
            self.cores
        }
    }

    /// Returns the placement of ranks.
    pub fn place(&self) -> Placement {
        if self.filled {
            Placement::Thread
        } else {
            Placement::Core
        }
    }

    /// Returns what a topology has.
    pub fn of(machine: &str, topology: &Topology, place: Placement, simulated: bool) -> Here {
        let shape = Shape::on(topology.cpus.clone());
        let groups = |level| shape.groups(level).len();
        Here {
            machine: machine.to_owned(),
            cpus: topology.cpus.len(),
            cores: topology.cores(),
            numa: groups(Level::Numa),
            packages: groups(Level::Package),
            filled: place == Placement::Thread,
            simulated,
        }
    }
}

/// The test that a claim makes of the points of a picture.
pub enum Ask {
    /// `who` is the fastest of its picture or of some series, or within 5 % of that.
    Fastest {
        /// The series.
        who: &'static str,
        /// The others; all of the picture where there are none.
        than: &'static [&'static str],
        /// True if `who` is asked for at the largest x alone, false for every x.
        at_last: bool,
    },
    /// The least of a series is at one of these x.
    Best {
        /// The series.
        series: &'static str,
        /// The values that the paper prints.
        printed: &'static [f64],
    },
    /// Each of these series is faster than the one before.
    Order {
        /// The slowest first.
        series: &'static [&'static str],
        /// The x at which they are compared; every one where there are none.
        at: &'static [f64],
    },
    /// One series is so many times as fast as another.
    Times {
        /// The faster one, as claimed, and the slower one.
        series: [&'static str; 2],
        /// The x at which they are compared; the largest where it is infinite.
        at: f64,
        /// The factor that the claim names.
        factor: Factor,
    },
    /// A series does not change with x, within 10 %, from this x on.
    Constant {
        /// The series.
        series: &'static str,
        /// The least x.
        from: f64,
    },
    /// Every point lies between what two models say.
    Within {
        /// Models of the least and the most.
        models: [&'static str; 2],
    },
    /// Predictions are off by less than the standard deviation of what was measured, but for points of these names.
    Off {
        /// Beginning of the names that are left out.
        but: &'static str,
    },
    /// One model's mean relative error is the least.
    LeastError {
        /// The model.
        model: &'static str,
    },
    /// All series of a picture are equal at each x, within 5 %.
    Alike,
    /// It cannot be asked of any machine but one of the paper's kind, or not by these experiments.
    Cannot(&'static str),
}

/// A factor as a claim names it.
pub enum Factor {
    /// So many times, within a limit.
    About(f64, &'static Limit),
    /// From the one to the other.
    Between(f64, f64),
}

/// The properties that a claim needs of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Needs {
    /// CPUs.
    pub cpus: usize,
    /// Hardware threads a core.
    pub threads: usize,
    /// NUMA nodes.
    pub numa: usize,
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
    /// The picture whose points are compared; empty where it cannot be asked.
    pub picture: &'static str,
    /// The test that the claim makes.
    pub ask: Ask,
}

#[cfg(test)]
mod tests;

//! A tree within each group of the machine, and one among the groups' leaders, level by level.
//!
//! Which levels to tell apart is tried in every combination, the degrees at each are optimal for its largest group
//! (`levels`). The choice is the parameter `levels` of `bcast/hierarchical` and `reduce/hierarchical`.

use super::costs::Steps;
use super::matrix::{self, Latencies};
use super::{less, levels, list, Optimum};
use lineweave_core::model::Model;
use lineweave_core::topology::{Level, Shape};

/// Down from a root or up to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// Broadcast: children poll their parent's line.
    Down,
    /// Reduce: a parent folds what its children leave.
    Up,
}

/// The degrees at each level that is told apart, nearest first; the last is the machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hierarchy {
    /// Direction of the messages: broadcast or reduce.
    pub way: Way,
    /// Level and degrees; no degrees where groups are of one.
    pub stages: Vec<(Level, Vec<usize>)>,
}

impl Hierarchy {
    /// The value of the parameter `levels`.
    pub fn param(&self) -> String {
        let algorithm = match self.way {
            Way::Down => "degrees",
            Way::Up => "tree",
        };
        let stage = |(level, degrees): &(Level, Vec<usize>)| match degrees.is_empty() {
            true => format!("{level}:flat"),
            false => format!("{level}:{algorithm}(degrees={})", list(degrees)),
        };
        self.stages.iter().map(stage).collect::<Vec<_>>().join(",")
    }
}

/// The cheapest hierarchy for ranks that sit like this. Stages follow each other, so groups of unequal sizes wait for the
/// largest; in a real plan a small group's leader goes on earlier, which the sum leaves out.
///
/// Bound: that of any tree over the latencies between ranks ([`matrix::bound`]).
pub fn hierarchy(model: &Model, shape: &Shape, way: Way) -> Optimum<Hierarchy> {
    let useful = shape.useful_levels();
    let mut best: Option<(Hierarchy, f64)> = None;
    for chosen in 0..1u32 << useful.len() {
        let told: Vec<Level> =
            useful.iter().enumerate().filter(|(i, _)| chosen & 1 << i != 0).map(|(_, &l)| l).collect();
        let (stages, cost) = stages(model, shape, way, &told);
        if best.as_ref().is_none_or(|b| less(cost, b.1)) {
            best = Some((Hierarchy { way, stages }, cost));
        }
    }
    let empty = (Hierarchy { way, stages: Vec::new() }, 0.0);
    let (choice, cost_ns) = best.unwrap_or(empty);
    let latencies = match way {
        Way::Down => Latencies::of(model, shape),
        Way::Up => Latencies::folding_in_a_row(model, shape),
    };
    // Polled lines serve readers every c where stores leave every gap: the bound takes the faster.
    let latencies = latencies.with_gap_at_most(match way {
        Way::Down => model.contention.c.value,
        Way::Up => f64::INFINITY,
    });
    Optimum { choice, cost_ns, bound_ns: matrix::bound(&latencies, 0), exact: true }
}

fn stages(model: &Model, shape: &Shape, way: Way, told: &[Level]) -> (Vec<(Level, Vec<usize>)>, f64) {
    let (mut out, mut sum) = (Vec::new(), 0.0);
    let mut inner: Option<Level> = None;
    for &level in told.iter().chain([&Level::Machine]) {
        // Leaders of inner groups that meet at this level, and how far apart they can be.
        let groups = shape.groups(level);
        let leaders = |group: &[usize]| match inner {
            None => group.len(),
            Some(inner) => {
                let all = shape.groups(inner);
                all.iter().filter(|g| g.iter().any(|r| group.contains(r))).count()
            }
        };
        let most = groups.iter().map(|g| leaders(g)).max().unwrap_or(0);
        let steps = Steps::of(model, farthest(shape, level));
        let (degrees, cost) = levels::degrees(most, |k| match way {
            Way::Down => steps.shared(k),
            Way::Up => steps.gather(k),
        });
        sum += cost;
        out.push((level, degrees));
        inner = Some(level);
    }
    (out, sum)
}

/// The largest distance that occurs between ranks of one group.
fn farthest(shape: &Shape, level: Level) -> Level {
    let from_first = |g: &Vec<usize>| {
        g.iter().map(|&r| shape.distance(g[0].into(), r.into())).max().unwrap_or(Level::Core)
    };
    shape.groups(level).iter().map(from_first).max().unwrap_or(level)
}

//! Steps and transfers, counted on the plans themselves: no machine is needed for these.

use super::{barrier, on_cores, tree};
use crate::paper::{claim, item, Finding, Verdict};
use lineweave_core::algorithm::ranks::ceil_log;
use lineweave_core::plan::{Op, Params, Plan};
use lineweave_core::topology::{Level, Shape};
use lineweave_core::verify::verify;

/// Ranks of a barrier of one process a core, and of eight.
const SIZES: [usize; 2] = [24, 192];
/// Degrees of Fig. 2 and beyond: at 23 everybody is a child of the root (section VI.G).
const DEGREES: std::ops::RangeInclusive<usize> = 2..=23;

/// Returns findings about the number of steps in section V, and about transfers between chips in section VI.
pub(super) fn findings() -> Vec<Finding> {
    vec![dissemination(), kary(), tournament(), centralized(), transfers_between_chips(), chips_on_the_way()]
}

/// Signals that follow one another, as the checker counts them; `None` when it refutes the plan.
fn steps(plan: &Plan) -> Option<usize> {
    verify(plan).ok().map(|proof| proof.depth as usize)
}

fn dissemination() -> Finding {
    let sizes = 2..=64usize;
    let agree = sizes
        .clone()
        .filter(|&p| {
            let plan = barrier("dissemination", &Shape::flat(p), &Params::new());
            steps(&plan) == Some(ceil_log(p, 2))
        })
        .count();
    item(
        "section V: steps of dissemination",
        agree,
        sizes.count(),
        "ceil(log2 P) against the longest chain of signals in proved plans of 2 to 64 ranks",
    )
}

/// Steps as a formula has them beside those of plans, by ranks and degree: `of` returns both.
fn beside(name: &str, what: &str, of: impl Fn(usize, usize) -> (usize, usize)) -> Finding {
    let all: Vec<(usize, usize)> = SIZES.into_iter().flat_map(|p| DEGREES.map(move |k| (p, k))).collect();
    let differs = |&(p, k): &(usize, usize)| {
        let (printed, ours) = of(p, k);
        (ours != printed).then(|| format!("P={p} k={k}: {ours} not {printed}"))
    };
    let differ: Vec<String> = all.iter().filter_map(differs).collect();
    item(name, all.len() - differ.len(), all.len(), format!("{what}. {}", differ.join(", ")))
}

fn kary() -> Finding {
    let what = "2 ceil(log_k P) counts a tree whose ranks are all leaves; here inner ranks are processes too, and the depth is \
                that of 1 + k + k^2 + ... >= P";
    beside("section V: steps of the k-ary tree", what, |p, k| {
        (2 * ceil_log(p, k), steps(&barrier("tree", &Shape::flat(p), &tree(k))).unwrap_or(0))
    })
}

fn tournament() -> Finding {
    let what = "ceil(log2 P) rounds, which the champion's waits are, and ceil(log_k P) for the release, which is the k-ary \
                tree's again";
    beside("section V: steps of the tournament", what, |p, k| {
        let shape = Shape::flat(p);
        let plan = barrier("tournament", &shape, &Params::new().with("release", "kary").with("k", k));
        // The champion meets somebody in every round.
        let rounds = plan.programs[0].iter().filter(|op| matches!(op, Op::Wait { .. })).count();
        let release = steps(&barrier("tree", &shape, &tree(k))).map_or(0, |up_and_down| up_and_down / 2);
        (ceil_log(p, 2) + ceil_log(p, k), rounds + release)
    })
}

/// Returns whether two plans do the same on the same flags.
fn same(a: &Plan, b: &Plan) -> bool {
    a.programs == b.programs && a.flags == b.flags
}

fn centralized() -> Finding {
    let alike = SIZES.into_iter().all(|p| {
        let shape = Shape::flat(p);
        let each = Params::new().with("release", "each").with("home", "root").with("layout", "paired");
        same(&barrier("centralized", &shape, &each), &barrier("tree", &shape, &tree(p - 1)))
    });
    claim(
        "section VI.G",
        "centralized is the k-ary tree of degree 23 at 24 processes, and of 191 at 192",
        if alike { "op by op the same plans" } else { "the plans differ" },
        Verdict::of(alike),
    )
}

/// Edges of the k-ary tree between ranks that share no `level`.
fn crossing(shape: &Shape, k: usize, level: Level) -> usize {
    let plan = barrier("tree", shape, &tree(k));
    // Each edge is one arrival, set by the child at flag 2 c.
    let parent_of = |child: usize| {
        plan.programs.iter().position(|ops| {
            ops.iter().any(|op| matches!(op, Op::Wait { flag, .. } if usize::from(flag.index) == 2 * child))
        })
    };
    (1..shape.ranks())
        .filter_map(|child| Some((child, parent_of(child)?)))
        .filter(|&(child, parent)| shape.distance(child.into(), parent.into()) > level)
        .count()
}

fn transfers_between_chips() -> Finding {
    let shape = on_cores(24);
    let counts: Vec<usize> = DEGREES.map(|k| crossing(&shape, k, Level::L3)).collect();
    let equal = counts.iter().all(|&c| c == counts[0]);
    let ours = format!(
        "cores filled chip by chip, {} of 23 edges join chips at every degree from 2 to 23",
        counts[0]
    );
    claim(
        "fig 2",
        "degrees 5, 7 and 8 are best, possibly because fewer transfers go between chips",
        if equal { &ours } else { "the number of edges between chips depends on the degree" },
        Verdict::of(!equal),
    )
}

/// The most edges between chips on any way from a leaf to the root.
fn most_on_a_way(shape: &Shape, k: usize) -> usize {
    let crosses = |child: usize| {
        let parent = (child - 1) / k;
        usize::from(shape.distance(child.into(), parent.into()) > Level::L3)
    };
    let mut on_way = vec![0; shape.ranks()];
    for child in 1..shape.ranks() {
        on_way[child] = on_way[(child - 1) / k] + crosses(child);
    }
    on_way.into_iter().max().unwrap_or(0)
}

fn chips_on_the_way() -> Finding {
    let shape = on_cores(24);
    let counts: Vec<(usize, usize)> = (2..=8).map(|k| (k, most_on_a_way(&shape, k))).collect();
    let shown: Vec<String> = counts.iter().map(|(k, n)| format!("k={k}: {n}")).collect();
    let low = counts.iter().filter(|&&(k, _)| k < 4).all(|&(_, n)| n > 1);
    let high = counts.iter().filter(|&&(k, _)| k >= 5).all(|&(_, n)| n == 1);
    claim(
        "section VI.C",
        "with low degrees more transfers between chips follow each other than with 5, 7 or 8",
        format!("edges between chips on the longest way from a leaf to the root: {}", shown.join(", ")),
        Verdict::of(low && high),
    )
}

//! Open MPI's shared-memory broadcast as a pipeline: Rico-Gallego & Diaz-Martin 2015, section 4.2, Figs. 13 and 14.
//!
//! The root fills a segment of its box every second stage, each level follows a stage later, and copies to its user
//! buffer in the stage after that; the deepest level has no box to fill and copies at once. The cost of a stage is L(S,
//! tau), tau being all its transfers together. Rank numbers are not needed: only how many ranks, and how many of them with
//! children, each level has.

use super::transfers::Transfers;

/// A level of a complete tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LevelWidth {
    /// Ranks.
    pub ranks: u64,
    /// Ranks of the level that have children.
    pub inner: u64,
}

/// The levels of the complete tree of `p` ranks and this degree, the root's first.
pub fn widths(p: usize, degree: usize) -> Vec<LevelWidth> {
    let g = degree.max(1) as u64;
    let p = p as u64;
    let (mut out, mut first, mut width) = (Vec::new(), 0u64, 1u64);
    while first < p {
        let ranks = width.min(p - first);
        // The children of v are g v + 1 to g v + g: v is inner when g v + 1 < p.
        let inner = (first..first + ranks).take_while(|v| g * v + 1 < p).count() as u64;
        out.push(LevelWidth { ranks, inner });
        first += ranks;
        width = ranks * g;
    }
    out
}

/// Transfers in each stage of a broadcast of `k` segments, stages from 1.
pub fn in_flight(p: usize, degree: usize, k: u64) -> Vec<u64> {
    let levels = widths(p, degree);
    let deepest = levels.len() as u64 - 1;
    if k == 0 || deepest == 0 {
        return Vec::new();
    }
    (1..2 * k + deepest).map(|stage| transfers_in(&levels, stage, k)).collect()
}

/// Transfers of one stage: level l fills its box with segment j in stage 1 + 2 j + l, and its user buffer one stage
/// later, the deepest level at once.
fn transfers_in(levels: &[LevelWidth], stage: u64, k: u64) -> u64 {
    let deepest = levels.len() as u64 - 1;
    let active = |first: u64| stage >= first && (stage - first) % 2 == 0 && (stage - first) / 2 < k;
    let mut sum = 0;
    for (l, width) in (0u64..).zip(levels) {
        if active(1 + l) {
            sum += width.inner;
        }
        if l > 0 && active(1 + l + u64::from(l < deepest)) {
            sum += width.ranks;
        }
    }
    sum
}

/// The whole broadcast: the sum of L(S, tau) over its stages.
pub fn tree(p: usize, degree: usize, k: u64, segment: u64) -> Transfers {
    in_flight(p, degree, k)
        .into_iter()
        .fold(Transfers::none(), |sum, tau| sum.then(&Transfers::one(segment, tau)))
}

/// The body of the pipeline: what its odd and its even stages have in flight once all levels are at work, and how many
/// such stages there are, 2 k - D + 1 from stage D on, D being the depth in edges; none when the message is too short for
/// all levels ever to be at work together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Body {
    /// Transfers of an odd stage: boxes of even levels, user buffers of odd ones.
    pub odd: u64,
    /// Transfers of an even stage: the other way round.
    pub even: u64,
    /// The first steady stage.
    pub from: u64,
    /// Steady stages.
    pub stages: u64,
}

/// The body for `k` segments.
pub fn body(p: usize, degree: usize, k: u64) -> Body {
    let levels = widths(p, degree);
    let deepest = levels.len() as u64 - 1;
    let mut by_parity = [0u64; 2];
    for (l, width) in (0u64..).zip(&levels) {
        by_parity[(l % 2) as usize] += width.inner;
        if l > 0 {
            by_parity[((l + u64::from(l < deepest)) % 2) as usize] += width.ranks;
        }
    }
    // Level l fills boxes in stages of parity 1 + l: even levels in odd stages.
    let stages = (2 * k + 1).saturating_sub(deepest);
    Body { odd: by_parity[0], even: by_parity[1], from: deepest, stages }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The general formula: from stage D to stage 2 k the body repeats; what is before and after never exceeds it.
    #[test]
    fn the_body_is_steady_where_it_says_and_holds_the_most() {
        for (g, p, k) in [2, 3, 4, 8]
            .into_iter()
            .flat_map(|g| (2..140usize).flat_map(move |p| (1..13u64).map(move |k| (g, p, k))))
        {
            let flight = in_flight(p, g, k);
            let body = body(p, g, k);
            let per_segment = p as u64 - 1 + widths(p, g).iter().map(|w| w.inner).sum::<u64>();
            assert_eq!(flight.iter().sum::<u64>(), k * per_segment, "all transfers: p {p} g {g} k {k}");
            assert_eq!(body.odd + body.even, per_segment);
            for (i, &n) in flight.iter().enumerate() {
                let stage = i as u64 + 1;
                let most = if stage % 2 == 1 { body.odd } else { body.even };
                assert!(n <= most, "p {p} g {g} k {k} stage {stage}");
                if stage >= body.from && stage < body.from + body.stages {
                    assert_eq!(n, most, "p {p} g {g} k {k} stage {stage}");
                }
            }
        }
    }
}

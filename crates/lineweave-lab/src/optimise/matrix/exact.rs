//! The best tree of few ranks, by dynamic programming over who is still to be told.
//!
//! T(r, S), the least time in which `r` gets word to all of S: its first message goes to some `c` in S, who then serves
//! some A within S; the rest is `r`'s again after its gap. So
//! `T(r, S) = min over c and A of max(latency(r, c) + T(c, A), gap(r, c) + T(r, S - A - c))`.

use super::{Latencies, Schedule};

pub(super) fn tree(l: &Latencies, root: usize) -> Schedule {
    let n = l.ranks();
    let full = (1usize << n) - 1;
    // For each rank and set: the time, the first to be told, and whom that one serves.
    let mut best = vec![vec![(0.0f64, 0usize, 0usize); full + 1]; n];
    for set in 1..=full {
        for r in (0..n).filter(|&r| set & 1 << r == 0) {
            let mut found = (f64::INFINITY, 0, 0);
            for c in (0..n).filter(|&c| set & 1 << c != 0) {
                let rest = set & !(1 << c);
                let mut served = rest;
                loop {
                    let theirs = l.latency(r, c) + best[c][served].0;
                    let left = rest & !served;
                    let mine = if left == 0 { 0.0 } else { l.gap(r, c) + best[r][left].0 };
                    let time = theirs.max(mine);
                    if time < found.0 {
                        found = (time, c, served);
                    }
                    if served == 0 {
                        break;
                    }
                    served = (served - 1) & rest;
                }
            }
            best[r][set] = found;
        }
    }
    let mut schedule = Schedule::alone(n, root);
    let mut open = vec![(root, full & !(1 << root))];
    while let Some((r, set)) = open.pop() {
        if set == 0 {
            continue;
        }
        let (_, c, served) = best[r][set];
        schedule.children[r].push(c);
        open.push((c, served));
        open.push((r, set & !(1 << c) & !served));
    }
    schedule
}

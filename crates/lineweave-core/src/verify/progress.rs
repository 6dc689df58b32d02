//! Why ranks wait for ever.

use super::machine::{Machine, Need};
use super::text::site;
use super::violation::{Cause, Site, Step, Violation};
use crate::plan::Op;

/// The counter-example when not every rank came to its end.
pub(super) fn deadlock(m: &Machine) -> Violation {
    let stuck: Vec<usize> = (0..m.plan.ranks).filter(|&r| m.at[r].0 < m.runs).collect();
    let sites = stuck.iter().map(|&r| here(m, r)).collect();
    Violation::Deadlock { stuck: sites, cause: cause(m, stuck[0]) }
}

fn here(m: &Machine, rank: usize) -> Site {
    let (run, step) = m.at[rank];
    let step = match step {
        0 => Step::Enter,
        s if s <= m.plan.programs[rank].len() => Step::Op(s - 1),
        _ => Step::Leave,
    };
    site(m.plan, rank, run, step)
}

/// Follows from a rank to the one it waits for, until nothing can help or a rank comes up again.
fn cause(m: &Machine, start: usize) -> Cause {
    let mut path: Vec<usize> = Vec::new();
    let mut rank = start;
    loop {
        if let Some(i) = path.iter().position(|&r| r == rank) {
            return Cause::Cycle(path[i..].iter().map(|&r| here(m, r)).collect());
        }
        path.push(rank);
        match helper(m, rank) {
            Ok(next) => rank = next,
            Err(reached) => return Cause::NothingSets { wait: here(m, rank), reached },
        }
    }
}

/// The rank whose later op would let `rank` go on; or how far the flag gets when there is none.
fn helper(m: &Machine, rank: usize) -> Result<usize, Option<i32>> {
    let (run, step) = m.at[rank];
    let op = step.checked_sub(1).and_then(|i| m.plan.programs[rank].get(i));
    let Some(Op::Wait { flag, value, .. }) = op else {
        // It waits to enter a bank that somebody has not left.
        let late = (0..m.plan.ranks).find(|&r| m.at[r].0 + 2 <= run);
        return late.ok_or(None);
    };
    let w = &m.writers[m.index.of(*flag)];
    let behind = |r: usize, op: usize| m.at[r] <= (run, op + 1);
    match m.need(run, *flag, *value) {
        Need::Never => Err(w.sets.last().map(|s| s.value)),
        Need::Sets(_) | Need::Nothing => Ok(w.rank),
        Need::Adds(_) => w
            .adds
            .iter()
            .find(|&&(r, op)| r != rank && behind(r, op))
            .map(|a| a.0)
            .ok_or(Some(w.adds.len() as i32)),
    }
}

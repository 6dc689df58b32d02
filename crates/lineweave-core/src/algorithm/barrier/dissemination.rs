//! Dissemination with `m` peers a round: after round `i` a rank knows of `(m+1)^(i+1)` ranks. Rounds may differ in `m`:
//! what is known grows by the product of `m+1`.
//!
//! Hensgen, Finkel & Manber 1988 for `m = 1`; Ramos & Hoefler 2013, section 4.2, for any `m`, with
//! `(m+1)^r >= P` rounds as their pseudo-code plays them (their tables count `m^r`). Any P. Runs follow each other
//! in the same lines: flags only grow, and a later run's value satisfies an earlier wait.

use super::super::ranks::ceil_log;
use super::super::{Algorithm, ParamSpec, Participants, Problem};
use super::release::{layout_param, layouts, undivided};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, PlanError};

pub(super) static ALGORITHM: Algorithm = Algorithm {
    collective: Collective::Barrier,
    name: "dissemination",
    about: "in each round every rank informs m others, farther each round",
    source: "Hensgen et al. 1988; Ramos & Hoefler 2013, section 4.2",
    params: &[
        ParamSpec { name: "m", default: "1", about: "peers informed in a round; round by round: 3,2" },
        layout_param("alone"),
    ],
    candidates,
    emit,
};

fn candidates(problem: &Problem) -> Vec<Params> {
    let p = problem.ranks();
    let mut last = usize::MAX;
    let mut ms = Vec::new();
    // More peers are worth a try only where they save a round.
    for m in 1..p.max(2) {
        let rounds = ceil_log(p, m + 1);
        if rounds < last {
            last = rounds;
            ms.push(m);
        }
    }
    ms.into_iter().take(6).flat_map(|m| layouts(&Params::new().with("m", m))).collect()
}

fn emit(b: &mut Builder, _: &Problem, s: &Participants, params: &Params) -> Result<(), PlanError> {
    let m = peers(params)?;
    let layout = params.read("layout", Layout::Alone)?;
    undivided(b, s, layout, |b| full(b, s, &m, layout));
    Ok(())
}

/// Peers in each round; rounds beyond the list have as many as the last.
fn peers(params: &Params) -> Result<Vec<usize>, PlanError> {
    let text = params.get("m").unwrap_or("1");
    let number = |m: &str| m.trim().parse().ok().filter(|m| (1..super::super::MAX_RANKS).contains(m));
    text.split(',').map(number).collect::<Option<Vec<usize>>>().ok_or_else(|| {
        let expected = "a whole number from 1, or one a round with commas between them, such as 3,2";
        PlanError::bad("m", text, expected)
    })
}

fn full(b: &mut Builder, s: &Participants, m: &[usize], layout: Layout) {
    let p = s.len();
    // The distances of each round: j times what is known by then, for j = 1 ..= m, as far as they are not all the
    // way round.
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    let mut step = 1;
    while step < p {
        let m = m.get(rounds.len()).or(m.last()).copied().unwrap_or(1);
        rounds.push((1..=m).map(|j| j * step).take_while(|&d| d < p).collect());
        step *= m + 1;
    }
    if rounds.is_empty() {
        return;
    }
    let flags = b.flags("round", layout, rounds.iter().map(Vec::len).sum());
    for i in 0..p {
        let rank = s.members[i];
        let mut first = 0;
        for distances in &rounds {
            // 1. Tell m ranks ahead. 2. Hear from m ranks behind.
            for (j, d) in distances.iter().enumerate() {
                b.set(rank, flags.at(s.members[(i + d) % p], first + j), 1);
            }
            for j in 0..distances.len() {
                b.wait(rank, flags.at(rank, first + j), 1);
            }
            first += distances.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Op;

    #[test]
    fn rounds_are_the_logarithm_to_base_m_plus_one() {
        for p in 2..=64 {
            for m in 1..p {
                let problem = Problem::flat(Collective::Barrier, p, 0);
                let plan = ALGORITHM.plan(&problem, &Params::new().with("m", m)).expect("a plan");
                // A round begins where a set follows a wait.
                let ops = &plan.programs[p - 1];
                let changes =
                    ops.windows(2).filter(|w| matches!(w, [Op::Wait { .. }, Op::Set { .. }])).count();
                assert_eq!(changes + 1, ceil_log(p, m + 1), "p={p} m={m}");
            }
        }
    }

    #[test]
    fn rounds_may_have_peers_of_their_own() {
        let problem = Problem::flat(Collective::Barrier, 10, 0);
        let plan = |m: &str| ALGORITHM.plan(&problem, &Params::new().with("m", m));
        // 4 x 3 >= 10: five peers, where two rounds of three are six less those that go all the way round.
        assert_eq!(plan("3,2").unwrap().programs[0].len(), 2 * 5);
        assert_eq!(plan("1,1,1,1").unwrap().programs, plan("1").unwrap().programs);
        for bad in ["0", "3,", "x", "2,0"] {
            assert!(plan(bad).is_err(), "{bad}");
        }
    }
}

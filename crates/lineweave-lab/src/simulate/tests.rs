//! The interpreter on a fabric of constants: no distances, no contention.

use super::*;
use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Footprint, Params};
use lineweave_core::trace::Kind;

/// Everything takes a fixed time: a line 10, a call 3, a flag's set 5 (visible after 7), its read 2.
struct Constant {
    lanes: u32,
    polls: Vec<(u32, Picos)>,
}

impl Fabric for Constant {
    fn line_bytes(&self) -> usize {
        64
    }

    fn lanes(&self) -> Lanes {
        Lanes { count: self.lanes, gap: Picos(1) }
    }

    fn step(&mut self, now: Picos, _: Agent, _: u32, access: &Access, stage: u8, _: &mut Agenda) -> Step {
        let lines = |len: usize| len.div_ceil(64) as u64;
        let after = |t: u64| Step::Done { at: Picos(now.0 + t), visible: Picos(now.0 + t) };
        match *access {
            Access::Call(call) => after(if call.kind == Kind::Move { 3 } else { 0 }),
            Access::Read { len, .. } | Access::Write { len, .. } => after(5 * lines(len)),
            Access::Combine { .. } => after(0),
            Access::Set { .. } if stage == 0 => Step::Later { at: Picos(now.0 + 4), stage: 1 },
            Access::Set { .. } | Access::Add { .. } => {
                Step::Done { at: Picos(now.0 + 1), visible: Picos(now.0 + 3) }
            }
            Access::Poll { .. } => after(2),
        }
    }

    fn wait(&mut self, _: Picos, sampled: Picos, rank: u32, _: FlagAt, _: &mut Agenda) {
        self.polls.push((rank, sampled));
    }

    fn wake(&mut self, visible: Picos, rank: u32, _: FlagAt) -> Option<Picos> {
        let (_, since) = *self.polls.iter().rfind(|p| p.0 == rank).unwrap();
        Some(Picos(since.0.max(visible.0) + 2))
    }
}

fn plan(collective: Collective, name: &str, ranks: usize, bytes: usize, params: &Params) -> Plan {
    let mut problem = Problem::flat(collective, ranks, bytes);
    problem.grain = if collective.folds() { 8 } else { 1 };
    algorithm::find(collective, name).unwrap().plan(&problem, params).unwrap()
}

fn played(plan: &Plan, lanes: u32, runs: usize, fidelity: Fidelity) -> Outcome {
    let program = Playable::compile(plan, &Footprint::of(plan, 64), 2).unwrap();
    let mut fabric = Constant { lanes, polls: Vec::new() };
    let played = play(&mut fabric, &program, runs, fidelity, true).unwrap();
    Outcome::of(plan, played, true)
}

#[test]
fn a_broadcast_takes_what_its_ops_take() {
    // put: 3 + 10 lines * 10; set: 5, visible after 7; seen 2 later; get: 103.
    let plan = plan(Collective::Bcast, "flat", 2, 640, &Params::new());
    let outcome = played(&plan, 1, 1, Fidelity::Line);
    assert_eq!(outcome.first, Picos(103 + 7 + 2 + 103));
    assert_eq!(outcome.each, outcome.first);
    assert_eq!(outcome.per_rank, [Picos(103 + 5), Picos(215)]);
    let trace = outcome.trace.unwrap();
    assert_eq!(trace.events.len(), 4);
    assert_eq!((trace.events[0].start, trace.events[0].end), (Picos(0), Picos(103)));
    // Five lines on each of two lanes, the second of which begins one later.
    assert_eq!(played(&plan, 2, 1, Fidelity::Line).per_rank[0], Picos(3 + 50 + 1 + 5));
    // A chunk is a read of all and a write of all.
    assert_eq!(played(&plan, 1, 1, Fidelity::Chunk).first, outcome.first);
}

#[test]
fn a_rank_that_waits_for_ever_is_named() {
    let mut plan = plan(Collective::Bcast, "flat", 2, 640, &Params::new());
    plan.programs[0].pop();
    let program = Playable::compile(&plan, &Footprint::of(&plan, 64), 2).unwrap();
    let mut fabric = Constant { lanes: 1, polls: Vec::new() };
    let error = play(&mut fabric, &program, 1, Fidelity::Line, false).unwrap_err();
    assert_eq!(error, SimulateError::Stuck { rank: Rank(1), op: 0 });
}

#[test]
fn an_op_that_names_nothing_is_refused() {
    let mut plan = plan(Collective::Bcast, "flat", 2, 640, &Params::new());
    plan.slots.clear();
    let error = Playable::compile(&plan, &Footprint::of(&plan, 64), 2).unwrap_err();
    assert_eq!(error, SimulateError::Malformed { rank: Rank(0), op: 0 });
}

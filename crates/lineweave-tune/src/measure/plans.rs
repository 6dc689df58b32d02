//! Plans made for measuring: no collective of the table, but proven and run like one.

use super::cell::ProbeContext;
use super::timing::{collect_samples, Rules, Samples};
use lineweave::communicator::Buffers;
use lineweave::Error;
use lineweave_core::algorithm::{find, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Params, Plan};
use lineweave_core::probe::{streamed, STREAMED};

pub use lineweave_core::probe::{call_and_answer, ping_pong};

/// A barrier of the table.
pub fn barrier(algorithm: &str, ranks: usize, params: &Params) -> Result<Plan, Error> {
    of_table(algorithm, &Problem::flat(Collective::Barrier, ranks, 0), params)
}

/// As many bytes as a ring of slots holds, from rank 0 to rank 1, a slot at a time.
pub fn stream(ring: usize) -> Result<Plan, Error> {
    of_table("flat", &Problem::flat(Collective::Bcast, 2, ring), &streamed(ring / STREAMED))
}

/// So many bytes from rank 0 to all others, through its box.
pub fn handed(ranks: usize, bytes: usize) -> Result<Plan, Error> {
    of_table("flat", &Problem::flat(Collective::Bcast, ranks, bytes), &Params::new())
}

/// A block from each of two ranks to the other, through boxes.
pub fn exchange_of_blocks(bytes: usize) -> Result<Plan, Error> {
    of_table("all-read-all", &Problem::flat(Collective::Allgather, 2, bytes), &Params::new())
}

fn of_table(algorithm: &str, problem: &Problem, params: &Params) -> Result<Plan, Error> {
    let &Problem { collective, bytes, .. } = problem;
    let no_plan = |why: String| Error::NoPlan { collective, bytes, ranks: problem.ranks(), why };
    let algorithm = find(collective, algorithm).map_err(|e| no_plan(e.to_string()))?;
    algorithm.plan(problem, params).map_err(|e| no_plan(e.to_string()))
}

/// Times a plan's runs back to back.
pub fn time(hand: &mut ProbeContext<'_>, rules: &Rules, plan: &Plan) -> Result<Samples, Error> {
    assert!(plan.bytes <= hand.bytes, "{} is longer than the buffers for measuring", plan.name());
    let id = hand.comm.prepare(plan)?;
    let buffers = Buffers { input: hand.input, output: hand.output, ..Buffers::NONE };
    collect_samples(hand.comm, rules, &mut |comm, count| {
        // SAFETY: the buffers hold the message, private to this rank and alive as
        // long as the team; no plan here folds; every rank runs the same cells in the same order.
        (0..count).try_for_each(|_| unsafe { comm.run(id, buffers) })
    })
}

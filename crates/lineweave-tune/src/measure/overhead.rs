//! Probe `overhead`: what the engine itself costs an op when everything is near, from plans of many ops.

use super::cell::{ProbeContext, ProbeTasks, ProbeTeam, Role, SampleKey, Task};
use super::clock::Clock;
use super::timing::{collect_timed, Rules, Samples};
use lineweave::communicator::Buffers;
use lineweave::communicator::PlanId;
use lineweave::kernel::{fold_fn, ElementType, Operator};
use lineweave::Error;
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Builder, Layout, Params, Plan, Region, Space};

/// Ops in the long plan; the short one has none.
const OPS: usize = 64;
/// Runs of each plan in a sample.
const RUNS: usize = 40;
/// Elements of the moves and folds: one, so that bytes do not count.
const BYTES: usize = 8;

pub fn offer(crew: &ProbeTeam, offer: &mut ProbeTasks) {
    if crew.role != Role::Solo {
        return;
    }
    for op in ["set", "wait", "move", "fold"] {
        let key = SampleKey::new("overhead").with("op", op);
        offer.tasks.push(Task::new(key, 1.0, move |hand, rules| {
            let long = hand.comm.prepare(&plan(op, OPS))?;
            let short = hand.comm.prepare(&plan(op, 0))?;
            let slope =
                |hand: &mut ProbeContext<'_>| Ok((runs(hand, long)? - runs(hand, short)?) / OPS as f64);
            each(hand, rules, slope)
        }));
    }
    offer.tasks.push(Task::new(SampleKey::new("overhead").with("op", "run"), 1.0, |hand, rules| {
        let empty = hand.comm.prepare(&plan("run", 0))?;
        each(hand, rules, |hand| runs(hand, empty))
    }));
}

/// Samples of something that a rank times by itself; what noise makes negative is nothing.
fn each(
    hand: &mut ProbeContext<'_>,
    rules: &Rules,
    sample: impl Fn(&mut ProbeContext<'_>) -> Result<f64, Error>,
) -> Result<Samples, Error> {
    let ProbeContext { comm, input, output, bytes, shared, random } = hand;
    collect_timed(comm, rules, &mut |comm| {
        let random = random.clone();
        let mut hand = ProbeContext { comm, input: *input, output: *output, bytes: *bytes, shared, random };
        Ok(sample(&mut hand)?.max(0.0))
    })
}

/// ns a run.
fn runs(hand: &mut ProbeContext<'_>, plan: PlanId) -> Result<f64, Error> {
    let fold = fold_fn(Operator::Sum, ElementType::U64).map_err(|e| Error::Operator(e.to_string()))?;
    let buffers = Buffers { input: hand.input, output: hand.output, fold: fold.into() };
    let clock = Clock::get();
    // SAFETY: the buffers are longer than a message of `BYTES` bytes and private; elements are words.
    unsafe { hand.comm.run(plan, buffers) }?;
    let start = clock.now();
    for _ in 0..RUNS {
        // SAFETY: as above.
        unsafe { hand.comm.run(plan, buffers) }?;
    }
    Ok(clock.since(start) / RUNS as f64)
}

/// One rank that does one thing `count` times.
fn plan(op: &str, count: usize) -> Plan {
    let params = Params::new().with("op", op).with("count", count);
    let mut b = Builder::new(Collective::Bcast, "overhead", &params, 1, 0, BYTES, BYTES);
    let flag = b.flags("flag", Layout::Alone, 1).at(0, 0);
    let at = b.acc(2 * BYTES);
    let region = |i: usize| Region::new(Space::Acc, at + i * BYTES..at + (i + 1) * BYTES);
    let input = Region::new(Space::In, 0..BYTES);
    if op == "wait" {
        b.set(0, flag, 1);
    }
    if op == "fold" {
        b.mov(0, input, region(0));
        b.mov(0, input, region(1));
    }
    for i in 0..count {
        match op {
            "set" => b.set(0, flag, i as i32 + 1),
            "wait" => b.wait(0, flag, 1),
            "move" => b.mov(0, input, region(i % 2)),
            "fold" => b.fold(0, region(0), region(1), region(1)),
            _ => {}
        }
    }
    b.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::verify::verify;

    #[test]
    fn each_plan_is_proven_and_has_its_ops() {
        for op in ["set", "wait", "move", "fold", "run"] {
            for count in [0, OPS] {
                let plan = plan(op, count);
                let proof = verify(&plan).unwrap_or_else(|v| panic!("{op}: {v}"));
                assert!(proof.ops >= if op == "run" { 0 } else { count }, "{op}");
            }
        }
    }
}

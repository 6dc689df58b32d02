//! Plans made for measuring: no collective of the table, but proved, run and simulated like one.

use crate::algorithm::{self, Problem};
use crate::collective::Collective;
use crate::plan::{Builder, Layout, Params, Plan, Region, Space};
use crate::units::LINE;

/// Rank 0 calls and rank 1 answers, each by one flag of a pair: two signals that follow each other.
pub fn call_and_answer(layout: Layout) -> Plan {
    let params = Params::new().with("layout", layout);
    let mut b = Builder::new(Collective::Barrier, "call-and-answer", &params, 2, 0, 0, 1);
    let pair = b.flags("pair", layout, 2);
    b.set(0, pair.at(0, 0), 1);
    b.wait(0, pair.at(0, 1), 1);
    b.wait(1, pair.at(0, 0), 1);
    b.set(1, pair.at(0, 1), 1);
    b.finish()
}

/// `lines` lines go from rank 0 to rank 1 through the box of rank 0, and back through that of rank 1.
pub fn ping_pong(lines: usize) -> Plan {
    let bytes = lines * LINE;
    let params = Params::new().with("lines", lines);
    let mut b = Builder::new(Collective::Bcast, "ping-pong", &params, 2, 0, bytes, 1);
    let there = b.flags("there", Layout::Alone, 1);
    let back = b.flags("back", Layout::Alone, 1);
    let slot = b.slot(bytes);
    let acc = b.acc(bytes);
    let region = |space| Region::new(space, 0..bytes);
    let of = |rank: usize| region(Space::Slot { rank: rank.into(), slot });
    b.mov(0, region(Space::In), of(0));
    b.set(0, there.at(1, 0), 1);
    b.wait(1, there.at(1, 0), 1);
    b.mov(1, of(0), region(Space::Out));
    b.mov(1, region(Space::Out), of(1));
    b.set(1, back.at(0, 0), 1);
    b.wait(0, back.at(0, 0), 1);
    b.mov(0, of(1), Region::new(Space::Acc, acc..acc + bytes));
    b.finish()
}

/// Rank 0 calls `others` ranks, and waits for their answers: by one flag that all of them poll, or by one for each, set one after the
/// other while they are polled; answers come on one line, which then has `others` writers, or on a line each. Ranks beyond look on: a broadcast
/// of nothing, since a barrier would wait for them.
pub fn star(ranks: usize, others: usize, one: bool, answers: Layout) -> Plan {
    let params = Params::new().with("others", others).with("call", if one { "one" } else { "each" });
    let params = params.with("answers", answers);
    let mut b = Builder::new(Collective::Bcast, "star", &params, ranks, 0, 0, 1);
    let call = b.flags("call", Layout::Alone, 1);
    let answer = b.flags("answer", answers, others);
    let of = |rank: usize| call.at(if one { 0 } else { rank }, 0);
    if one {
        b.set(0, of(0), 1);
    }
    for rank in 1..=others {
        if !one {
            b.set(0, of(rank), 1);
        }
        b.wait(rank, of(rank), 1);
        b.set(rank, answer.at(0, rank - 1), 1);
    }
    for rank in 1..=others {
        b.wait(0, answer.at(0, rank - 1), 1);
    }
    b.finish()
}

/// In round i of `rounds` rank r exchanges flags with rank r ^ i, each pair on a line of its own or on two: a butterfly whose partners
/// change from round to round. Fewer rounds than ranks, which are a power of two; ranks beyond look on.
pub fn partners(ranks: usize, rounds: usize, layout: Layout) -> Plan {
    let params = Params::new().with("rounds", rounds).with("layout", layout);
    let mut b = Builder::new(Collective::Bcast, "partners", &params, ranks, 0, 0, 1);
    let meeting = (rounds + 1).next_power_of_two().min(ranks);
    for round in 1..=rounds {
        let pair = b.flags("pair", layout, 2);
        for rank in 0..meeting {
            let peer = rank ^ round;
            let home = rank.min(peer);
            b.set(rank, pair.at(home, usize::from(rank > peer)), 1);
            b.wait(rank, pair.at(home, usize::from(rank < peer)), 1);
        }
    }
    b.finish()
}

/// Returns whether a plan is one that the profile's probes time as a whole: a prediction of it repeats a measurement, and says nothing of
/// the model. These are the barriers of two ranks in `exchange` and `counter`, and messages of two ranks through a ring in `stream`.
pub fn repeated_by(plan: &Plan) -> bool {
    let bare = |plan: Plan| Plan { algorithm: String::new(), params: Params::new(), ..plan };
    let of = |name: &str, params: &Params| {
        let problem = Problem::flat(plan.collective, 2, plan.bytes);
        let made = algorithm::find(plan.collective, name).ok()?.plan(&problem, params).ok()?;
        Some(bare(made) == bare(plan.clone()))
    };
    match (plan.ranks, plan.collective) {
        (2, Collective::Barrier) => {
            let exchanges = EXCHANGED.iter().map(|layout| ("exchange", Params::new().with("layout", layout)));
            exchanges.chain([("counter", Params::new())]).any(|(name, p)| of(name, &p) == Some(true))
        }
        (2, Collective::Bcast) => {
            let slots = plan.bytes / STREAMED;
            slots > 1 && plan.bytes % STREAMED == 0 && of("flat", &streamed(slots)) == Some(true)
        }
        _ => false,
    }
}

/// Layouts of flags that the probe `exchange` times.
pub const EXCHANGED: [Layout; 5] =
    [Layout::Packed, Layout::Paired, Layout::Alone, Layout::Spread(2), Layout::Spread(4)];

/// Bytes of a slot of the probe `stream`.
pub const STREAMED: usize = 16 << 10;

/// The parameters by which a flat broadcast is the probe `stream` of so many slots.
pub fn streamed(slots: usize) -> Params {
    let params = Params::new().with("chunk", STREAMED).with("slots", slots);
    params.with("notify", "each").with("layout", Layout::Paired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_that_a_probe_times_as_a_whole_is_known_whatever_its_name() {
        let plan = |collective, ranks, bytes, name: &str, params: &Params| {
            let problem = Problem::flat(collective, ranks, bytes);
            algorithm::find(collective, name).and_then(|a| a.plan(&problem, params)).expect("a plan")
        };
        let layout = |name: &str| Params::new().with("layout", name);
        let barrier = |ranks, name, params: &Params| plan(Collective::Barrier, ranks, 0, name, params);
        assert!(repeated_by(&barrier(2, "exchange", &layout("paired"))));
        assert!(repeated_by(&barrier(2, "counter", &Params::new())));
        assert!(!repeated_by(&barrier(2, "centralized", &Params::new())));
        assert!(!repeated_by(&barrier(4, "exchange", &layout("paired"))), "no probe has four ranks");
        let flat = |slots, bytes| plan(Collective::Bcast, 2, bytes, "flat", &streamed(slots));
        assert!(repeated_by(&flat(4, 4 * STREAMED)));
        assert!(!repeated_by(&flat(4, 8 * STREAMED)), "the ring of the probe holds the message");
    }
    use crate::verify::verify;

    #[test]
    fn plans_for_measuring_are_proven_too() {
        for layout in [Layout::Packed, Layout::Paired, Layout::Alone, Layout::Spread(4)] {
            let proof = verify(&call_and_answer(layout)).expect("a proof");
            assert!(proof.synchronizing);
        }
        for lines in [1, 2, 64] {
            assert_eq!(verify(&ping_pong(lines)).map(|p| p.depth), Ok(2));
        }
        for (ranks, others) in [(2, 1), (4, 3), (16, 4), (16, 15)] {
            for one in [true, false] {
                for answers in [Layout::Packed, Layout::Alone] {
                    verify(&star(ranks, others, one, answers)).expect("a proof");
                }
            }
        }
        for (ranks, rounds) in [(2, 1), (4, 3), (16, 3), (16, 15)] {
            for layout in [Layout::Paired, Layout::Alone] {
                verify(&partners(ranks, rounds, layout)).expect("a proof");
            }
        }
    }
}

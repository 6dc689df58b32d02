//! Small plans whose cost can be counted by hand.

use super::*;
use crate::algorithm::{find, Algorithm, Problem};
use crate::collective::Collective;
use crate::model::{Fitted, Values};
use crate::plan::{Builder, Layout, Params};
use crate::topology::{Cpu, Level, Topology};
use shared_cpus::on_cpus;

mod shared_cpus;

/// Round numbers: R_R 30, ownership 20, so a signal 50; a read takes a modified line over for nothing; overheads 1, a run 2;
/// contention 7; one more line 8; R_L nothing.
fn values() -> Values {
    Values {
        levels: vec![(Level::L3, 30.0, 20.0)],
        overhead: 1.0,
        exchange_paired: 30.0,
        exchange_alone: 52.0,
        contention: 7.0,
        per_line: 8.0,
        local: 0.0,
        ..Values::default()
    }
}

fn binomial() -> &'static Algorithm {
    find(Collective::Bcast, "binomial").unwrap()
}

/// Two ranks set a flag for each other and wait.
fn exchange(layout: Layout) -> Plan {
    let mut b = Builder::new(Collective::Barrier, "exchange", &Params::new(), 2, 0, 0, 1);
    let f = b.flags("here", layout, 2);
    for r in 0..2 {
        // Both flags live at rank 0, so that `Paired` puts them on one line.
        b.set(r, f.at(0, r), 1);
        b.wait(r, f.at(0, 1 - r), 1);
    }
    b.finish()
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-6, "{a} is not {b}");
}

/// Each possession of the line carries both flags and lets its rank go two runs on: one transfer a run, and two where each
/// flag has a line of its own.
#[test]
fn two_ranks_alone_on_one_line_pay_one_transfer_a_run() {
    let model = values().model();
    let shape = Shape::flat(2);
    let options = Options { runs: 40, ..Options::default() };
    let of = |layout| cost_with(&model, &shape, &exchange(layout), &options).total.0;
    let (together, apart) = (of(Layout::Paired), of(Layout::Alone));
    // Two runs with their overheads fit into the half of a transfer in which the line is still there.
    assert!((30.0..33.0).contains(&together), "{together}");
    // A set, and a signal.
    near(apart, 1.0 + 20.0 + 30.0);
}

/// A run that takes longer than half of a transfer by itself would give the line away before the store of the next run. Where an exchange
/// is all there is to a call, nothing lies between the two.
#[test]
fn two_ranks_ride_on_one_transfer_however_long_a_run_takes_by_itself() {
    let mut model = values().model();
    model.overhead.run.value = 16.0;
    let shape = Shape::flat(2);
    let options = Options { runs: 40, ..Options::default() };
    let of = |layout| cost_with(&model, &shape, &exchange(layout), &options).total.0;
    let (together, apart) = (of(Layout::Paired), of(Layout::Alone));
    assert!((30.0..33.0).contains(&together), "{together}");
    near(apart, 1.0 + 20.0 + 30.0);
    // An allreduce of a word is such an exchange, whatever looking up its ops would take.
    let sum = |bytes| {
        let problem = Problem { grain: 8, ..Problem::flat(Collective::Allreduce, 2, bytes) };
        let algorithm =
            crate::algorithm::find(Collective::Allreduce, "recursive-doubling").expect("it is there");
        algorithm.plan(&problem, &Params::new().with("layout", "paired")).expect("a plan")
    };
    let costs = |model: &Model, bytes| cost_with(model, &shape, &sum(bytes), &options).total.0;
    let before = [8, 16].map(|bytes| costs(&model, bytes));
    (model.overhead.mov.value, model.overhead.fold.value) = (100.0, 100.0);
    near(costs(&model, 8), before[0]);
    assert!(costs(&model, 16) > before[1] + 100.0);
}

/// In a butterfly of four the partner of the round before has the line: each round pays what two lines do.
#[test]
fn a_butterfly_on_shared_lines_does_not_ride_on_one_transfer() {
    let model = values().model();
    let plan = |ranks| {
        let problem = Problem::flat(Collective::Barrier, ranks, 0);
        let params = Params::new().with("layout", Layout::Packed);
        crate::algorithm::find(Collective::Barrier, "exchange").unwrap().plan(&problem, &params).unwrap()
    };
    let options = Options { runs: 40, ..Options::default() };
    let of = |ranks| cost_with(&model, &Shape::flat(ranks), &plan(ranks), &options).total.0;
    assert!(of(4) > 3.0 * of(2), "{} {}", of(4), of(2));
}

#[test]
fn critical_steps_add_up_to_the_total() {
    let model = values().model();
    let c = cost(&model, &Shape::flat(2), &exchange(Layout::Alone));
    near(c.critical.iter().map(|s| s.nanos.0).sum(), c.total.0);
    assert!(c.critical.iter().any(|s| s.why == Term::Own(Level::L3, false)));
    assert!(c.critical.iter().any(|s| s.why == Term::Read(Level::L3, false)));
}

/// Answers on one line cost a transfer of ownership each; on lines of their own they come in a row.
#[test]
fn writers_of_one_line_follow_each_other() {
    let model = values().model();
    let answers = |layout| {
        let ranks = 9;
        let mut b = Builder::new(Collective::Barrier, "answers", &Params::new(), ranks, 0, 0, 1);
        let f = b.flags("answer", layout, ranks - 1);
        for r in 1..ranks {
            b.set(r, f.at(0, r - 1), 1);
        }
        for r in 1..ranks {
            b.wait(0, f.at(0, r - 1), 1);
        }
        b.ring();
        let plan = b.finish();
        cost_with(&model, &Shape::flat(ranks), &plan, &Options { runs: 1, ..Options::default() }).first.0
    };
    // Run, set, ownership one after the other, and the root's reads in between.
    assert!(answers(Layout::Packed) > 2.0 + 1.0 + 8.0 * 20.0, "{}", answers(Layout::Packed));
    // All are owned at once; the first is seen, the second read, and the others follow in a row.
    near(answers(Layout::Alone), 2.0 + 1.0 + 20.0 + 30.0 + 30.0 + 6.0 * 8.0);
}

/// Stores to lines that others poll leave one after the other.
#[test]
fn a_setter_of_many_polled_lines_pays_for_each() {
    let model = values().model();
    let last = |ranks: usize| {
        let mut b = Builder::new(Collective::Barrier, "set", &Params::new(), ranks, 0, 0, 1);
        let f = b.flags("go", Layout::Alone, ranks - 1);
        for r in 1..ranks {
            b.set(0, f.at(r, r - 1), 1);
        }
        for r in 1..ranks {
            b.wait(r, f.at(r, r - 1), 1);
        }
        b.ring();
        let plan = b.finish();
        cost_with(&model, &Shape::flat(ranks), &plan, &Options { runs: 1, ..Options::default() }).first.0
    };
    // Two are under way at once, so half an ownership apart.
    near(last(10) - last(2), 8.0 * 10.0);
}

/// Rank 0 and rank 1 set in turn.
#[test]
fn an_alternating_pair_pays_two_signals_a_run() {
    let model = values().model();
    let mut b = Builder::new(Collective::Barrier, "ping-pong", &Params::new(), 2, 0, 0, 1);
    let f = b.flags("ball", Layout::Alone, 1);
    b.set(0, f.at(1, 0), 1);
    b.wait(0, f.at(0, 0), 1);
    b.wait(1, f.at(1, 0), 1);
    b.set(1, f.at(0, 0), 1);
    // Two sets and signals, and rank 0's own start of a run.
    near(cost(&model, &Shape::flat(2), &b.finish()).total.0, 2.0 * 51.0 + 2.0);
}

#[test]
fn a_flat_broadcast_of_two_ranks_is_a_put_a_signal_and_a_get() {
    let model = values().model();
    let shape = Shape::flat(2);
    let problem = Problem::flat(Collective::Bcast, 2, 64);
    let plan = binomial().plan(&problem, &Params::new()).unwrap();
    let c = cost_with(&model, &shape, &plan, &Options { runs: 1, ..Options::default() });
    // Private copies 0.05 ns a byte, get and put 8 ns a line beside a read of 30 or an ownership of 20.
    let put = 1.0 + 20.0 + 8.0;
    let signal = 1.0 + 50.0;
    let get = 1.0 + 30.0 + 8.0;
    near(c.first.0, 2.0 + put + signal + get);
}

#[test]
fn carrying_spares_the_put_and_the_get() {
    let model = values().model();
    let problem = Problem::flat(Collective::Bcast, 2, 8);
    let plan = binomial().plan(&problem, &Params::new()).unwrap();
    let c = cost_with(&model, &Shape::flat(2), &plan, &Options { runs: 1, ..Options::default() });
    // Run 2, set 1 and 1 for the bytes, signal 50, taking the bytes 1.
    near(c.first.0, 2.0 + 2.0 + 50.0 + 1.0);
}

#[test]
fn three_ranks_reading_one_slot_are_served_in_turn() {
    let model = values().model();
    let mut b = Builder::new(Collective::Bcast, "flat", &Params::new(), 3, 0, 640, 1);
    let f = b.flags("ready", Layout::Alone, 1);
    let slot = b.slot(640);
    use crate::plan::{Region, Space};
    let boxed = Region::new(Space::Slot { rank: Rank(0), slot }, 0..640);
    b.mov(0, Region::new(Space::In, 0..640), boxed);
    b.set(0, f.at(0, 0), 1);
    for r in 1..3 {
        b.wait(r, f.at(0, 0), 1);
        b.mov(r, boxed, Region::new(Space::Out, 0..640));
    }
    b.ring();
    let c = cost_with(&model, &Shape::flat(3), &b.finish(), &Options { runs: 1, ..Options::default() });
    let put = 1.0 + 20.0 + 80.0;
    let get = 1.0 + 30.0 + 80.0;
    // The first reader takes the flag's line over, so the second is served after it; and its ten lines after the first's.
    near(c.first.0, 2.0 + put + 51.0 + get + 10.0 * 7.0);
}

/// Stores take effect in order: bytes behind a flag wait for its line, however soon the flag has left the core.
#[test]
fn bytes_that_a_peer_has_wait_until_the_flag_before_them_has_landed() {
    let mut b = Builder::new(Collective::Bcast, "behind", &Params::new(), 3, 0, 64, 1);
    let f = b.flags("ready", Layout::Alone, 2);
    let slot = b.slot(64);
    use crate::plan::{Region, Space};
    let boxed = Region::new(Space::Slot { rank: Rank(0), slot }, 0..64);
    b.set(0, f.at(0, 0), 1);
    b.mov(0, Region::new(Space::In, 0..64), boxed);
    b.set(0, f.at(0, 1), 1);
    b.wait(1, f.at(0, 0), 1);
    b.wait(2, f.at(0, 1), 1);
    b.mov(2, boxed, Region::new(Space::Out, 0..64));
    b.ring();
    let plan = b.finish();
    let root = |own: f64| {
        let mut model = Values { levels: vec![(Level::L3, 30.0, own)], ..values() }.model();
        model.stores = Some(Fitted::assumed(1.0));
        let options = Options { runs: 9, banks: 64, ..Options::default() };
        cost_with(&model, &Shape::flat(3), &plan, &options).per_rank[0].0
    };
    // A put of a line takes ownership of it, too.
    near(root(520.0) - root(20.0), 1000.0);
}

#[test]
fn a_sum_in_the_place_of_its_operand_takes_its_lines_once() {
    let model = values().model();
    use crate::plan::{Region, Space};
    let plan = |back: bool| {
        let mut b = Builder::new(Collective::Reduce, "back", &Params::new(), 2, 0, 640, 1);
        let f = b.flags("ready", Layout::Alone, 1);
        let (given, other) = (b.slot(640), b.slot(640));
        let boxed = |rank: u32, slot| Region::new(Space::Slot { rank: Rank(rank), slot }, 0..640);
        b.mov(1, Region::new(Space::In, 0..640), boxed(1, given));
        b.set(1, f.at(1, 0), 1);
        b.wait(0, f.at(1, 0), 1);
        b.fold(
            0,
            Region::new(Space::In, 0..640),
            boxed(1, given),
            boxed(u32::from(back), if back { given } else { other }),
        );
        b.set(0, f.at(0, 0), 1);
        b.wait(1, f.at(0, 0), 1);
        let result = boxed(u32::from(back), if back { given } else { other });
        b.mov(1, result, Region::new(Space::Out, 0..640));
        b.ring();
        b.finish()
    };
    let cost = |back| {
        cost_with(&model, &Shape::flat(2), &plan(back), &Options { runs: 1, ..Options::default() }).first.0
    };
    // Ten lines that the other rank has to give up, given and taken back: an ownership of 20 and 80 of a put each time, where a
    // private copy takes 32. What comes back lies where it was given.
    near(cost(false) - cost(true), 2.0 * (20.0 + 80.0 - 32.0));
}

#[test]
fn a_late_waiter_pays_one_read() {
    let model = values().model();
    let mut b = Builder::new(Collective::Barrier, "late", &Params::new(), 2, 0, 1 << 20, 1);
    use crate::plan::{Region, Space};
    let f = b.flags("done", Layout::Alone, 1);
    b.set(0, f.at(1, 0), 1);
    let at = b.acc(4096);
    b.mov(1, Region::new(Space::Acc, at..at + 2048), Region::new(Space::Acc, at + 2048..at + 4096));
    b.wait(1, f.at(1, 0), 1);
    let c = cost_with(&model, &Shape::flat(2), &b.finish(), &Options { runs: 1, ..Options::default() });
    near(c.first.0, 2.0 + 1.0 + 2048.0 * 0.05 + 30.0);
}

#[test]
fn a_plan_that_cannot_finish_has_no_finite_cost() {
    let model = values().model();
    let mut b = Builder::new(Collective::Barrier, "stuck", &Params::new(), 2, 0, 0, 1);
    let f = b.flags("never", Layout::Alone, 1);
    b.wait(1, f.at(1, 0), 1);
    let plan = b.finish();
    let c = cost(&model, &Shape::flat(2), &plan);
    assert!(c.total.0.is_infinite());
    assert_eq!(c.stuck, Some((Rank(1), 0)));
    assert!(cost(&model, &Shape::flat(3), &plan).total.0.is_infinite());
}

#[test]
fn a_plan_that_names_what_it_lacks_is_refused_not_played() {
    let mut plan = exchange(Layout::Alone);
    plan.flags[0].count = 1;
    let c = cost(&values().model(), &Shape::flat(2), &plan);
    assert_eq!(c.stuck, Some((Rank(0), 1)));
}

#[test]
fn deferred_acknowledgements_let_the_next_run_start_early() {
    let model = values().model();
    // Rank 1 acknowledges; rank 0 waits for it either at once or one run later.
    let plan = |value| {
        let mut b = Builder::new(Collective::Bcast, "ack", &Params::new(), 2, 0, 8, 1);
        let f = b.flags("ready", Layout::Alone, 1);
        let done = b.flags("done", Layout::Alone, 1);
        if value <= 0 {
            b.wait(0, done.at(0, 0), value);
        }
        b.set(0, f.at(1, 0), 1);
        b.wait(1, f.at(1, 0), 1);
        b.set(1, done.at(0, 0), 1);
        if value > 0 {
            b.wait(0, done.at(0, 0), value);
        }
        b.finish()
    };
    let shape = Shape::flat(2);
    let of = |v| cost(&model, &shape, &plan(v)).total.0;
    near(of(1), 2.0 * 51.0 + 2.0);
    assert!(of(-1) < of(1), "{} {}", of(-1), of(1));
}

#[test]
fn costing_is_deterministic() {
    let model = values().model();
    let problem = Problem::flat(Collective::Bcast, 13, 4096);
    let plan = binomial().plan(&problem, &Params::new()).unwrap();
    let shape = on_cpus(13, 3);
    assert_eq!(cost(&model, &shape, &plan), cost(&model, &shape, &plan));
}

#[test]
fn a_run_alone_is_traced_op_by_op() {
    let model = values().model();
    let plan = exchange(Layout::Alone);
    let shape = Shape::flat(2);
    let trace = timeline(&model, &shape, &plan, &Options::default()).unwrap();
    assert_eq!(trace.events.len(), plan.ops().count());
    let alone = cost_with(&model, &shape, &plan, &Options { runs: 1, ..Options::default() }).first.0;
    near(trace.end().nanos(), alone);
    for pair in trace.events.windows(2).filter(|pair| pair[0].rank == pair[1].rank) {
        assert_eq!(pair[0].end, pair[1].start);
    }
    // Who waits for ever has no times.
    let mut b = Builder::new(Collective::Barrier, "stuck", &Params::new(), 2, 0, 0, 1);
    let f = b.flags("here", Layout::Alone, 2);
    b.wait(0, f.at(0, 1), 1);
    assert_eq!(timeline(&model, &shape, &b.finish(), &Options::default()), None);
}

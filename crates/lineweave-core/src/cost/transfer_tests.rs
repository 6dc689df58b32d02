//! Cost of bytes that are far away: beyond the caches, in a ring that is walked through, in another process.

use super::*;
use crate::collective::Collective;
use crate::model::{Fitted, Surface, Values, PAGE};
use crate::plan::{Builder, Layout, Params, Region, Space};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Costs of sizes by one copy at a time, and by two.
fn surface(rows: &[(usize, f64, f64)]) -> Surface {
    let cost = |&(_, one, two): &(usize, f64, f64)| vec![Fitted::assumed(one), Fitted::assumed(two)];
    Surface {
        bytes: rows.iter().map(|row| row.0 as u64).collect(),
        taus: vec![1, 2],
        cost: rows.iter().map(cost).collect(),
    }
}

/// A byte takes 1 ns up to 1 MiB, and in 16 MiB 10 ns, twice as long for two at once; past the caches 4 ns; overheads nothing.
fn model() -> Model {
    let mut model = Values { overhead: 0.0, local: 0.0, ..Values::default() }.model();
    let (near, far) = (MIB as f64, 160.0 * MIB as f64);
    model.copy = surface(&[(0, 0.0, 0.0), (MIB, near, near), (16 * MIB, far, 2.0 * far)]);
    model.streamed = Some(surface(&[(0, 0.0, 0.0), (16 * MIB, 64.0 * MIB as f64, 64.0 * MIB as f64)]));
    model
}

/// Each rank copies its `in` to its `out`, in pieces.
fn copies(ranks: usize, bytes: usize, piece: usize) -> Plan {
    let mut b = Builder::new(Collective::Allreduce, "copies", &Params::new(), ranks, 0, bytes, 8);
    for rank in 0..ranks {
        for at in (0..bytes).step_by(piece) {
            b.mov(rank, Region::new(Space::In, at..at + piece), Region::new(Space::Out, at..at + piece));
        }
    }
    b.finish()
}

fn first(model: &Model, plan: &Plan, options: Options) -> f64 {
    cost_with(model, &Shape::flat(plan.ranks), plan, &options).first.0
}

fn near(a: f64, b: f64) {
    assert!((a / b - 1.0).abs() < 1e-3, "{a} is not {b}");
}

/// A piece costs its share of the whole message; both ranks' pieces slow each other however short they are.
#[test]
fn pieces_of_a_long_message_are_as_far_as_all_of_it() {
    let model = model();
    let once = Options { runs: 1, ..Options::default() };
    let far = 160.0 * MIB as f64;
    for piece in [16 * MIB, 64 * KIB] {
        near(first(&model, &copies(1, 16 * MIB, piece), once), far);
    }
    // The first run does not know what comes beside its copies; those after it do.
    let many = Options { runs: 5, ..Options::default() };
    for piece in [64 * KIB, 2 * KIB] {
        let plan = copies(2, 4 * MIB, piece);
        let of = Options { message: 16 * MIB, ..many };
        let total = cost_with(&model, &Shape::flat(2), &plan, &of).total.0;
        near(total, 2.0 * far / 4.0);
    }
    // What is near goes at its own pace.
    near(first(&model, &copies(2, MIB, 2 * KIB), once), MIB as f64);
}

/// Bytes that go into users' buffers past the caches cost as much as such copies were measured to: from the size on that the profile
/// says, in pieces of 4 KiB or more.
#[test]
fn long_messages_go_past_the_caches_where_that_wins() {
    let mut model = model();
    let once = Options { runs: 1, ..Options::default() };
    let (through, past) = (160.0 * MIB as f64, 64.0 * MIB as f64);
    near(first(&model, &copies(1, 16 * MIB, 16 * MIB), once), through);
    model.nt_from = Some(16 * MIB as u64);
    for (piece, cost) in [(16 * MIB, past), (4 * KIB, past), (2 * KIB, through)] {
        near(first(&model, &copies(1, 16 * MIB, piece), once), cost);
    }
    let half = Options { message: 8 * MIB, ..once };
    let short = model.copy.at(8 * MIB, 1).nanos;
    near(first(&model, &copies(1, 8 * MIB, 4 * KIB), half), short);
    model.streamed = None;
    near(first(&model, &copies(1, 16 * MIB, 4 * KIB), once), through);
}

/// A system call copies a piece no faster than its share of all that is copied.
#[test]
fn copies_by_attach_are_as_far_as_all_of_them() {
    let mut model = model();
    model.attach =
        Some(surface(&[(0, 0.0, 0.0), (MIB, 2.0 * MIB as f64, 0.0), (16 * MIB, 320.0 * MIB as f64, 0.0)]));
    let attached = |bytes: usize, message: usize| {
        let mut b = Builder::new(Collective::Bcast, "attached", &Params::new(), 2, 0, bytes, 1);
        b.direct();
        let f = b.flags("address", Layout::Alone, 1);
        b.set(0, f.at(1, 0), 1);
        b.wait(1, f.at(1, 0), 1);
        b.mov(1, Region::new(Space::PeerIn(Rank(0)), 0..bytes), Region::new(Space::Out, 0..bytes));
        first(&model, &b.finish(), Options { runs: 1, attach: true, message, ..Options::default() })
    };
    let signal = attached(0, 0);
    near(attached(MIB, MIB) - signal, 2.0 * MIB as f64);
    near(attached(MIB, 16 * MIB) - signal, 20.0 * MIB as f64);
}

/// Pages that several ranks copy from are pinned by each, and their counters were had by another in between; that costs what it was measured to.
#[test]
fn pages_that_several_attach_to_cost_what_was_measured_or_transfers_of_their_counters() {
    let mut model = model();
    model.attach = Some(surface(&[(0, 0.0, 0.0), (MIB, 2.0 * MIB as f64, 0.0)]));
    let attached = |model: &Model, by: &[usize], apart: bool| {
        let ranks = 1 + by.len();
        let mut b = Builder::new(Collective::Bcast, "attached", &Params::new(), ranks, 0, MIB, 1);
        b.direct();
        let f = b.flags("address", Layout::Alone, 1);
        for &rank in by {
            b.set(0, f.at(rank, 0), 1);
            b.wait(rank, f.at(rank, 0), 1);
            // All the same half first, or every other rank the other one.
            let earlier = usize::from(apart && rank % 2 == 0);
            for half in [earlier, 1 - earlier] {
                let bytes = half * MIB / 2..(half + 1) * MIB / 2;
                let from = Region::new(Space::PeerIn(Rank(0)), bytes.clone());
                b.mov(rank, from, Region::new(Space::Out, bytes));
            }
        }
        let options = Options { runs: 1, attach: true, concurrent: false, ..Options::default() };
        first(model, &b.finish(), options)
    };
    let own = model.levels[0].own_modified.unwrap_or(model.levels[0].own).value;
    let (alone, beside) = (attached(&model, &[1], false), attached(&model, &[1, 2], false));
    // 256 pages, two atomic operations for each.
    let pinned = 2.0 * own * 256.0;
    assert!((pinned..pinned + 1000.0).contains(&(beside - alone)), "{alone} {beside} {pinned}");
    // Where that was measured it takes what it did: by two, by four, and between them; by two where others copy something else meanwhile.
    let page = |nanos: f64| Fitted::assumed(nanos);
    model.pinning = Some(Surface {
        bytes: vec![PAGE as u64],
        taus: vec![2, 4],
        cost: vec![vec![page(100.0), page(500.0)]],
    });
    assert_eq!(attached(&model, &[1], false), alone);
    for (by, apart, each) in
        [(2, false, 100.0), (3, false, 300.0), (4, false, 500.0), (2, true, 100.0), (4, true, 100.0)]
    {
        let by: Vec<usize> = (1..=by).collect();
        let (pinned, more) = (256.0 * each, attached(&model, &by, apart) - alone);
        assert!((pinned..pinned + 1000.0).contains(&more), "{by:?} {apart} {more} {pinned}");
    }
}

/// Rank 0 puts 16 KiB into a slot of `size` bytes, and rank 1 gets them.
fn ring(size: usize) -> Plan {
    let mut b = Builder::new(Collective::Bcast, "ring", &Params::new(), 2, 0, 16 * KIB, 1);
    let f = b.flags("ready", Layout::Alone, 1);
    let slot = b.slot(size);
    let all = |space| Region::new(space, 0..16 * KIB);
    let boxed = all(Space::Slot { rank: Rank(0), slot });
    b.ring();
    b.mov(0, all(Space::In), boxed);
    b.set(0, f.at(0, 0), 1);
    b.wait(1, f.at(0, 0), 1);
    b.mov(1, boxed, all(Space::Out));
    b.finish()
}

/// Nanoseconds a byte, from run to run, when runs walk through 1 MiB.
fn walked(model: &Model, plan: &Plan) -> f64 {
    let walk = Options { runs: 9, walk: MIB as u64, ..Options::default() };
    cost_with(model, &Shape::flat(2), plan, &walk).total.0 / (16 * KIB) as f64
}

/// A rank that writes into a ring that is walked through waits no longer than the whole flow through such a ring takes.
#[test]
fn a_ring_that_is_walked_through_costs_what_it_was_measured_to() {
    let mut model = model();
    // The writer's pace: 20 ns a byte that a reader has, and by the ring's measurement half of that.
    let per_byte = |ns: f64| surface(&[(0, 0.0, 0.0), (MIB, ns * MIB as f64, ns * MIB as f64)]);
    model.levels[0].put = per_byte(20.0);
    model.levels[0].get = per_byte(2.0);
    let puts = walked(&model, &ring(16 * KIB));
    model.levels[0].stream = Some(per_byte(10.0));
    let streams = walked(&model, &ring(16 * KIB));
    assert!((18.0..22.0).contains(&puts) && (9.0..11.0).contains(&streams), "{puts} {streams}");
    // Rings are not measured up to all lengths: what is longer costs a byte what the longest did, whatever its slope was.
    let flat = |ns: f64| surface(&[(0, 0.0, 0.0), (256 * KIB, ns, ns), (512 * KIB, ns, ns)]);
    model.levels[0].stream = Some(flat(10.0 * (512 * KIB) as f64));
    assert!((9.0..11.0).contains(&walked(&model, &ring(16 * KIB))));
    // Unless so many bytes more of puts in a row cost less: peers' caches gave up what comes then.
    let put = 20.0 * MIB as f64;
    let more = |bytes: usize| put + 5.0 * (bytes - MIB) as f64;
    model.levels[0].put = surface(&[(0, 0.0, 0.0), (MIB, put, put), (4 * MIB, more(4 * MIB), more(4 * MIB))]);
    let beyond = walked(&model, &ring(16 * KIB));
    assert!((4.5..6.0).contains(&beyond), "{beyond}");
}

/// Bytes put into other slots meanwhile push lines out of peers' caches; the room of slots that stays unused does not.
#[test]
fn a_ring_is_as_long_as_what_is_put_into_it() {
    let mut model = model();
    let ns = |bytes: usize, per_byte: f64| per_byte * bytes as f64;
    let row = |bytes: usize, per_byte: f64| (bytes, ns(bytes, per_byte), ns(bytes, per_byte));
    model.levels[0].put = surface(&[(0, 0.0, 0.0), row(256 * KIB, 20.0), row(MIB, 6.0)]);
    model.levels[0].get = surface(&[(0, 0.0, 0.0), row(MIB, 2.0)]);
    let (full, quarter) = (walked(&model, &ring(16 * KIB)), walked(&model, &ring(64 * KIB)));
    assert!((5.0..7.0).contains(&full) && (18.0..22.0).contains(&quarter), "{full} {quarter}");
}

/// Two ranks write the same slot in turn, and each reads it before it does.
fn in_turn() -> Plan {
    let mut b = Builder::new(Collective::Allreduce, "in-turn", &Params::new(), 2, 0, 16 * KIB, 8);
    let f = b.flags("turn", Layout::Alone, 2);
    let slot = b.slot(16 * KIB);
    let all = |space| Region::new(space, 0..16 * KIB);
    let boxed = all(Space::Slot { rank: Rank(0), slot });
    for rank in 0..2 {
        if rank == 1 {
            b.wait(1, f.at(0, 0), 1);
            b.mov(1, boxed, all(Space::Out));
        }
        b.mov(rank, all(Space::In), boxed);
        b.set(rank, f.at(rank, rank), 1);
    }
    b.wait(0, f.at(1, 1), 1);
    b.mov(0, boxed, all(Space::Out));
    b.finish()
}

/// The rank that read a slot last writes it as if it were its own, where a read of modified lines takes them over.
#[test]
fn slots_that_are_read_before_they_are_written_cost_no_puts_where_reads_take_lines_over() {
    let mut model = model();
    let per_byte = |ns: f64| surface(&[(0, 0.0, 0.0), (MIB, ns * MIB as f64, ns * MIB as f64)]);
    model.levels[0].put = per_byte(20.0);
    model.levels[0].get = per_byte(2.0);
    let a_byte = |model: &Model| {
        let once = Options { runs: 5, ..Options::default() };
        cost_with(model, &Shape::flat(2), &in_turn(), &once).total.0 / (16 * KIB) as f64
    };
    // Four copies and what each of them meets: two reads of what the other wrote, and two puts into what both then have.
    assert!(model.levels[0].upgrade().is_some());
    let taken = a_byte(&model);
    model.levels[0].exchange.clear();
    model.levels[0].signal.clear();
    assert!(model.levels[0].upgrade().is_none());
    let shared = a_byte(&model);
    assert!((43.5..45.0).contains(&shared), "{shared}");
    assert!((5.5..7.0).contains(&taken), "{taken}");
}

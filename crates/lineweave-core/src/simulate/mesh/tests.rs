//! The mesh at zero load against Petrovic et al. 2012, Eq. 1-12, and under load.

use super::*;
use crate::algorithm::{self, Problem};
use crate::collective::Collective;
use crate::machine::{shipped, Dimensions, Routing};
use crate::model::put_get::PutGet;
use crate::plan::{Builder, FlagArrayId, Layout, Params, Region, Space};
use crate::simulate::{simulate, Outcome};
use crate::units::{Nanos, Rank};

const LINE: usize = 32;

fn scc() -> &'static Machine {
    shipped().iter().find(|m| m.name == "intel-scc").unwrap()
}

fn model() -> PutGet {
    PutGet::of(scc()).unwrap()
}

fn builder(ranks: usize, bytes: usize) -> Builder {
    Builder::new(Collective::Bcast, "test", &Params::new(), ranks, 0, bytes, 1)
}

fn slot(rank: usize, slot: u16, lines: usize) -> Region {
    Region::new(Space::Slot { rank: Rank::from(rank), slot }, 0..lines * LINE)
}

fn private(space: Space, lines: usize) -> Region {
    Region::new(space, 0..lines * LINE)
}

/// A flag of its own at `rank`, which somebody must raise.
fn flag(b: &mut Builder) -> FlagArrayId {
    b.flags("f", Layout::Alone, 1)
}

fn run(b: Builder, options: &Options) -> Outcome {
    simulate(scc(), &b.finish(), options).unwrap()
}

fn traced(fidelity: Fidelity) -> Options {
    Options { fidelity, trace: true, ..Options::default() }
}

fn picos(t: Nanos) -> u64 {
    (t.0 * 1e3).round() as u64
}

/// What the only op of a plan takes.
fn single(op: impl Fn(&mut Builder, usize, u16), lines: usize, fidelity: Fidelity) -> u64 {
    let mut b = builder(48, lines * LINE);
    let s = b.slot(lines * LINE);
    op(&mut b, 0, s);
    let trace = run(b, &traced(fidelity)).trace.unwrap();
    assert_eq!(trace.events.len(), 1);
    trace.events[0].end.0 - trace.events[0].start.0
}

fn distance(a: usize, b: usize) -> u32 {
    let at = |r: usize| ((r / 2 % 6) as u32, (r / 12) as u32);
    at(a).0.abs_diff(at(b).0) + at(a).1.abs_diff(at(b).1) + 1
}

/// Rank 0 sits on the tile of a controller.
const MEMORY: u32 = 1;

#[test]
fn equations_7_8_11_and_12_come_out_exactly() {
    let model = model();
    for fidelity in [Fidelity::Line, Fidelity::Chunk] {
        for lines in [1, 4, 8, 16, 96] {
            let m = lines as u32;
            for other in [1, 2, 13, 23, 36, 47] {
                let d = distance(0, other);
                let cases: [(u64, Nanos); 4] = [
                    (
                        single(|b, r, s| b.mov(r, slot(r, s, lines), slot(other, s, lines)), lines, fidelity),
                        model.c_put_mpb(m, d),
                    ),
                    (
                        single(
                            |b, r, s| b.mov(r, private(Space::In, lines), slot(other, s, lines)),
                            lines,
                            fidelity,
                        ),
                        model.c_put_mem(m, MEMORY, d),
                    ),
                    (
                        single(|b, r, s| b.mov(r, slot(other, s, lines), slot(r, s, lines)), lines, fidelity),
                        model.c_get_mpb(m, d),
                    ),
                    (
                        single(
                            |b, r, s| b.mov(r, slot(other, s, lines), private(Space::Out, lines)),
                            lines,
                            fidelity,
                        ),
                        model.c_get_mem(m, d, MEMORY),
                    ),
                ];
                for (i, (found, expected)) in cases.into_iter().enumerate() {
                    assert_eq!(found, picos(expected), "case {i}, {lines} lines, d = {d}, {fidelity}");
                }
            }
        }
    }
}

/// Eq. 1, 9: when a flag that is put becomes visible, seen by a core that polls it all the time. The reader
/// sees it with its next look; looks are 466 ns apart, so readers that begin at different times bracket it.
#[test]
fn a_flag_is_visible_after_its_latency() {
    let model = model();
    let visible = picos(model.l_put_mpb(1, distance(0, 47)));
    let mut seen = Vec::new();
    for delay in 0..24 {
        let mut b = builder(48, LINE);
        let f = flag(&mut b);
        let s = b.slot(LINE * 4);
        // The reader first reads lines of its own box, so that its looks fall elsewhere.
        for _ in 0..delay {
            b.mov(47, slot(47, s, 1), Region { offset: LINE, ..slot(47, s, 1) });
        }
        b.set(0, f.at(47, 0), 1);
        b.wait(47, f.at(47, 0), 1);
        let trace = run(b, &traced(Fidelity::Line)).trace.unwrap();
        let set = trace.events.iter().find(|e| e.rank == Rank(0)).unwrap();
        assert_eq!(set.end.0, picos(model.c_put_mpb(1, distance(0, 47))));
        let wait = trace.events.iter().find(|e| e.text.starts_with("wait")).unwrap();
        // Sampled one hop before its end.
        seen.push((wait.start.0, wait.end.0 - picos(model.hop)));
    }
    let first_look = picos(model.get_box + model.l_w_mpb(1));
    for (began, sampled) in seen {
        let period = picos(model.flag_read(1));
        assert!(sampled >= visible.max(began + first_look), "{began}: {sampled} before {visible}");
        assert!(sampled < visible.max(began + first_look) + period);
        assert_eq!((sampled - began - first_look) % period, 0);
    }
}

/// One move of the line between two cores, and its way back: Eq. 2, 3, 5 and 6 are the differences of moves of
/// one and of two lines.
#[test]
fn a_line_more_takes_a_read_and_a_write() {
    let model = model();
    let d = distance(0, 47);
    let get = |lines| {
        single(|b, r, s| b.mov(r, slot(47, s, lines), private(Space::Out, lines)), lines, Fidelity::Line)
    };
    assert_eq!(get(2) - get(1), picos(model.c_r_mpb(d) + model.c_w_mem(MEMORY)));
    let put =
        |lines| single(|b, r, s| b.mov(r, private(Space::In, lines), slot(47, s, lines)), lines, Fidelity::Line);
    assert_eq!(put(2) - put(1), picos(model.c_r_mem(MEMORY) + model.c_w_mpb(d)));
}

/// `readers` cores get `lines` lines from core 0 or put them there, all at once; the slowest and the fastest, in
/// units of what the same core takes alone.
fn contended(readers: usize, lines: usize, put: bool, arbiter: Arbiter) -> (f64, f64, f64) {
    // Many times, so that they run into each other whatever their distance.
    const TIMES: usize = 60;
    let mut b = builder(48, lines * LINE);
    let s = b.slot(lines * LINE);
    for rank in 48 - readers..48 {
        for _ in 0..TIMES {
            match put {
                true => b.mov(rank, slot(rank, s, lines), slot(0, s, lines)),
                false => b.mov(rank, slot(0, s, lines), slot(rank, s, lines)),
            }
        }
    }
    let mesh = Settings { arbiter: Some(arbiter), ..Settings::default() };
    let outcome = run(b, &Options { mesh, ..Options::default() });
    let model = model();
    let alone = |rank: usize| match put {
        true => model.c_put_mpb(lines as u32, distance(rank, 0)),
        false => model.c_get_mpb(lines as u32, distance(rank, 0)),
    };
    let took: Vec<f64> = (48 - readers..48).map(|r| outcome.per_rank[r].0 as f64 / TIMES as f64 / 1e3).collect();
    let slowed = (48 - readers..48).zip(&took).map(|(r, t)| t / alone(r).0).fold(0.0, f64::max);
    let (low, high) = took.iter().fold((f64::MAX, 0.0f64), |(l, h), &t| (l.min(t), h.max(t)));
    (slowed, low, high)
}

#[test]
fn print_contention() {
    for (lines, put) in [(128, false), (1, true)] {
        for arbiter in [Arbiter::Fifo, Arbiter::Inputs] {
            for readers in [1, 8, 16, 24, 32, 40, 48] {
                let (slowed, low, high) = contended(readers, lines, put, arbiter);
                println!("{lines} put={put} {arbiter} {readers}: slowed {slowed:.3} ratio {:.2} ({low:.0} .. {high:.0})", high / low);
            }
        }
    }
}

fn bcast(name: &str, ranks: usize, bytes: usize, params: &Params) -> Plan {
    let problem = Problem::flat(Collective::Bcast, ranks, bytes);
    algorithm::find(Collective::Bcast, name).unwrap().plan(&problem, params).unwrap()
}

#[test]
fn print_broadcasts() {
    for flags in FlagCost::ALL {
        let mesh = Settings { flags, ..Settings::default() };
        let k = |k: usize| Params::new().with("k", k);
        for (name, params) in [
            ("oc-bcast", k(2)),
            ("oc-bcast", k(7)),
            ("oc-bcast", k(47)),
            ("rcce-comm-binomial", Params::new().with("chunk", 157 * 32)),
        ] {
            for lines in [1, 96, 97, 192] {
                let plan = bcast(name, 48, lines * LINE, &params);
                for runs in [1, 10] {
                    let o = simulate(scc(), &plan, &Options { runs, mesh, ..Options::default() }).unwrap();
                    println!("{flags} {name} {params} {lines} runs {runs}: {:.2} us, each {:.2}", o.first.0 as f64 / 1e6, o.each.0 as f64 / 1e6);
                }
            }
        }
    }
    let ideal = Settings { distance: Some(1), ideal: true, ..Settings::default() };
    for (name, params) in [
        ("oc-bcast", Params::new().with("k", 2)),
        ("oc-bcast", Params::new().with("k", 7)),
        ("oc-bcast", Params::new().with("k", 47)),
        ("rcce-comm-scatter-allgather", Params::new().with("chunk", 157 * 32)),
    ] {
        for mesh in [ideal, Settings::default()] {
            for fidelity in [Fidelity::Line, Fidelity::Chunk] {
            let bytes = 48 * 96 * LINE;
            let plan = bcast(name, 48, bytes, &params);
            for runs in [1, 3] {
                let o = simulate(scc(), &plan, &Options { runs, mesh, fidelity, ..Options::default() }).unwrap();
                println!("{name} {params} ideal {} {fidelity} runs {runs}: first {:.2} each {:.2} MB/s events {}", mesh.ideal, bytes as f64 / o.first.0 as f64 * 1e6, bytes as f64 / o.each.0 as f64 * 1e6, o.events);
            }}
        }
    }
}

//! The closed loop: microbenchmarks played on a simulated Xeon Phi give a profile, from which the fit recovers the
//! parameters of the description that was simulated.

use lineweave_core::collective::Collective;
use lineweave_core::machine::{shipped, Machine};
use lineweave_core::model::fit;
use lineweave_core::plan::{Builder, Layout, Params, Plan, Region, Space};
use lineweave_core::profile::{Cell, Fingerprint, Profile, Stats};
use lineweave_core::simulate::{simulate, Options, Outcome};
use lineweave_core::units::Rank;

const LINE: usize = 64;

fn phi() -> &'static Machine {
    shipped().iter().find(|m| m.name == "xeon-phi-5110p").expect("it is shipped")
}

fn run(plan: &Plan, runs: usize) -> Outcome {
    simulate(phi(), plan, &Options { runs, ..Options::default() }).unwrap_or_else(|e| panic!("{e}"))
}

/// When the last of some ranks has moved `lines` lines from `src` to `dst`, all beginning at once.
fn moves(ranks: usize, who: std::ops::Range<usize>, lines: usize, src: Space, dst: Space) -> f64 {
    let bytes = lines * LINE;
    let mut b = Builder::new(Collective::Bcast, "probe", &Params::new(), ranks, 0, bytes, 1);
    b.slot(bytes);
    for rank in who {
        b.mov(rank, Region::new(src, 0..bytes), Region::new(dst, 0..bytes));
    }
    run(&b.finish(), 1).first.nanos()
}

/// Two signals that follow each other, each flag on a line (as `lineweave measure` does), halved.
fn signal() -> f64 {
    let mut b = Builder::new(Collective::Barrier, "probe", &Params::new(), 2, 0, 0, 1);
    let pair = b.flags("pair", Layout::Alone, 2);
    b.set(0, pair.at(0, 0), 1);
    b.wait(0, pair.at(0, 1), 1);
    b.wait(1, pair.at(0, 0), 1);
    b.set(1, pair.at(0, 1), 1);
    run(&b.finish(), 20).each.nanos() / 2.0
}

/// N lines written into the receiver's buffer, the last of which it then reads: Ramos & Hoefler 2013, section 3.1.
fn lines_one_way(lines: usize) -> f64 {
    let read = moves(2, 1..2, 1, Space::PeerIn(Rank(0)), Space::Acc) - local();
    moves(2, 0..1, lines, Space::In, Space::PeerOut(Rank(1))) + read
}

fn local() -> f64 {
    moves(2, 0..1, 1, Space::In, Space::Out) / 2.0
}

fn cell(probe: &str, factors: &[(&str, &str)], ns: f64) -> Cell {
    // The simulator resolves a picosecond.
    let stats = Stats {
        median: ns,
        ci_low: ns - 1e-3,
        ci_high: ns + 1e-3,
        p5: ns,
        p95: ns,
        min: ns,
        samples: 1,
        disturbed: 0,
    };
    let factors = factors.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Cell { probe: probe.to_owned(), factors, unit: "ns".to_owned(), stats, flagged: Vec::new() }
}

fn profile() -> Profile {
    let boxed = Space::Slot { rank: Rank(0), slot: 0 };
    let level = ("level", "numa");
    let read = |from| moves(2, 1..2, 1, from, Space::Out) - local();
    let mut cells = vec![
        cell("line", &[("access", "read"), ("state", "modified"), level], read(Space::PeerIn(Rank(0)))),
        cell("line", &[("access", "read"), ("state", "exclusive"), ("level", "local")], local()),
        cell("line", &[("access", "read"), ("state", "invalid"), level], read(boxed)),
        cell("signal", &[("layout", "alone"), ("pollers", "1"), level], signal()),
    ];
    for readers in [1usize, 2, 4, 8, 16, 32, 59] {
        let last = moves(readers + 1, 1..readers + 1, 1, Space::PeerIn(Rank(0)), Space::Out);
        cells.push(cell("contention", &[("readers", &readers.to_string()), level], last));
    }
    for lines in [1usize, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128] {
        cells.push(cell("pingpong", &[("lines", &lines.to_string()), level], lines_one_way(lines)));
    }
    for bytes in [64usize, 256, 1024, 4096, 16384] {
        for (pattern, src, dst, who) in [
            ("get", Space::PeerIn(Rank(0)), Space::Out, 1..2),
            ("put", Space::In, Space::PeerOut(Rank(1)), 0..1),
            ("local", Space::In, Space::Out, 0..1),
        ] {
            let text = bytes.to_string();
            let mut factors = vec![("pattern", pattern), ("kind", "plain"), ("bytes", &text), ("tau", "1")];
            if pattern != "local" {
                factors.push(level);
            }
            cells.push(cell("copy", &factors, moves(2, who, bytes / LINE, src, dst)));
        }
    }
    Profile {
        schema: 1,
        version: "0".to_owned(),
        measured_at: "2026-01-01T00:00:00Z".to_owned(),
        machine: Fingerprint {
            cpu: "simulated".to_owned(),
            cpus: 60,
            line_bytes: LINE,
            topology: "pu:60".to_owned(),
        },
        unidentified: Vec::new(),
        cells,
    }
}

#[test]
fn the_fit_recovers_what_was_simulated() {
    let model = fit(&profile()).unwrap_or_else(|e| panic!("{e}"));
    let machine = phi();
    let known = |v: &lineweave_core::machine::Value| v.value.expect("it is known");
    let (r_l, r_r) = (known(&machine.access.local_ns), known(&machine.transfer.numa_ns));
    let t_c = &machine.contention[0];
    let t_n = &machine.multi_line[0];
    let lines = model.levels[0].lines.expect("T_N is fitted");
    // T_C is simulated in the form R_R + R_L + c (n - 1) of Eq. 4.5, whose b is not the fitted one of Table 3.2;
    // q lacks the overhead O of a ping-pong, some 20 ns (section 2.4).
    for (what, found, truth, within) in [
        ("R_L", model.local.value, r_l, 0.001),
        ("R_R", model.levels[0].read.value, r_r, 0.001),
        ("signal", signal(), 2.0 * r_r, 0.02),
        ("c", model.contention.c.value, known(&t_c.c_ns), 0.01),
        ("b", model.contention.b.value, r_r + r_l - known(&t_c.c_ns), 0.01),
        ("o", lines.o.value, known(&t_n.o_ns), 0.02),
        ("q", lines.q.value, known(&t_n.q_ns), 0.02),
        ("p", lines.p.value, known(&t_n.p_ns), 0.02),
    ] {
        assert!((found / truth - 1.0).abs() < within, "{what}: {found} from the simulation of {truth}");
    }
}

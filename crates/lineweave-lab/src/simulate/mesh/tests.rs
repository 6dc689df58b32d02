//! Flags of the mesh at zero load against Petrovic et al. 2012, Eq. 1 and 9, and the mesh under load.

use super::*;
use crate::models::put_get::PutGet;
use crate::simulate::simulate;
use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::machine::{shipped, Dimensions, Routing};
use lineweave_core::plan::{Builder, Layout, Params, Region, Space};
use lineweave_core::units::{Nanos, Rank};

const LINE: usize = 32;

fn scc() -> &'static Machine {
    shipped().iter().find(|m| m.name == "intel-scc").unwrap()
}

fn model() -> PutGet {
    PutGet::of(scc()).unwrap()
}

fn picos(t: Nanos) -> u64 {
    (t.0 * 1e3).round() as u64
}

/// Eq. 1, 9: when a flag that is put becomes visible, seen by a core that polls it all the time. The reader
/// sees it with its next look; looks are 466 ns apart, so readers that begin at different times bracket it.
#[test]
fn a_flag_is_visible_after_its_latency() {
    let model = model();
    // From core 0 to core 47, 5 tiles and 3.
    let far = 9;
    let visible = picos(model.l_put_mpb(1, far));
    let slot = Space::Slot { rank: Rank(47), slot: 0 };
    let line = |at: usize| Region::new(slot, at * LINE..(at + 1) * LINE);
    let mut seen = Vec::new();
    for delay in 0..24 {
        let mut b = Builder::new(Collective::Bcast, "test", &Params::new(), 48, 0, LINE, 1);
        let f = b.flags("f", Layout::Alone, 1);
        b.slot(LINE * 4);
        // The reader first reads lines of its own box, so that its looks fall elsewhere.
        for _ in 0..delay {
            b.mov(47, line(0), line(1));
        }
        b.set(0, f.at(47, 0), 1);
        b.wait(47, f.at(47, 0), 1);
        let options = Options { trace: true, ..Options::default() };
        let trace = simulate(scc(), &b.finish(), &options).unwrap().trace.unwrap();
        let set = trace.events.iter().find(|e| e.rank == Rank(0)).unwrap();
        assert_eq!(set.end.0, picos(model.c_put_mpb(1, far)));
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

fn bcast(name: &str, ranks: usize, bytes: usize, params: &Params) -> Plan {
    let problem = Problem::flat(Collective::Bcast, ranks, bytes);
    algorithm::find(Collective::Bcast, name).unwrap().plan(&problem, params).unwrap()
}

#[test]
fn fidelities_agree_where_nothing_contends() {
    let ideal = Settings { ideal: true, ..Settings::default() };
    for (name, ranks, mesh) in [
        ("oc-bcast", 48, ideal),
        ("rcce-comm-binomial", 48, ideal),
        // Slices of whole lines.
        ("rcce-comm-scatter-allgather", 25, ideal),
        // Two cores of one tile that take turns: only the one's looks and the other's lines can meet.
        ("rcce", 2, Settings::default()),
    ] {
        let chunk = if name == "oc-bcast" { 3072 } else { 1024 };
        let plan = bcast(name, ranks, 200 * LINE, &Params::new().with("chunk", chunk));
        let [line, chunk] = [Fidelity::Line, Fidelity::Chunk].map(|fidelity| {
            simulate(scc(), &plan, &Options { fidelity, mesh, runs: 2, ..Options::default() }).unwrap()
        });
        if mesh.ideal {
            assert_eq!(line.per_rank, chunk.per_rank, "{name}");
        } else {
            let one_line = picos(model().c_r_mpb(1) + model().c_w_mem(1));
            assert!(line.first.0.abs_diff(chunk.first.0) <= one_line, "{name}: {line:?}");
        }
    }
}

#[test]
fn no_plan_beats_the_bound() {
    for algorithm in algorithm::all() {
        let mut problem = Problem::flat(algorithm.collective, 5, 1200);
        problem.grain = if algorithm.collective.folds() { 8 } else { 1 };
        if !algorithm.collective.moves_data() {
            problem.bytes = 0;
        }
        let small = Params::new().with("chunk", 400);
        let chunked = algorithm.params.iter().any(|p| p.name == "chunk");
        let Ok(plan) = algorithm.plan(&problem, &if chunked { small } else { Params::new() }) else {
            continue;
        };
        if plan.direct {
            continue;
        }
        let outcome = simulate(scc(), &plan, &Options::default()).unwrap();
        let bound = outcome.bound.unwrap();
        assert!(bound.0 > 0 && outcome.first >= bound, "{algorithm:?}: {:?} < {bound:?}", outcome.first);
    }
}

/// Several accesses in flight move lines faster, and then links are what is loaded.
#[test]
fn accesses_in_flight_shift_the_load_to_links() {
    let machine = scc();
    let plan = bcast("oc-bcast", 48, 192 * LINE, &Params::new());
    let with = |in_flight, fidelity| {
        let mesh = Settings { in_flight: Some(in_flight), ..Settings::default() };
        let outcome = simulate(machine, &plan, &Options { mesh, fidelity, ..Options::default() }).unwrap();
        (outcome.first, outcome.load.unwrap().busiest_link())
    };
    for fidelity in [Fidelity::Line, Fidelity::Chunk] {
        let (one, eight) = (with(1, fidelity), with(8, fidelity));
        assert!(eight.0 .0 * 2 < one.0 .0, "{fidelity}: {:?} {:?}", one.0, eight.0);
        assert!(eight.1 > one.1 * 2.0, "{fidelity}: {} {}", one.1, eight.1);
    }
}

#[test]
fn routings_and_dimensions_are_parameters() {
    let plan = bcast("oc-bcast", 240, 96 * LINE, &Params::new());
    let dimensions: Dimensions = "20x6x2".parse().unwrap();
    let time = |routing| {
        let mut machine = scc().with_dimensions(dimensions, Some(4)).unwrap();
        machine.mesh.as_mut().unwrap().network.routing.value = Some(routing);
        let options = Options { fidelity: Fidelity::Chunk, ..Options::default() };
        simulate(&machine, &plan, &options).unwrap().first
    };
    assert!(time(Routing::TorusXy) < time(Routing::Xy));
    assert!(time(Routing::Yx) > time(Routing::TorusXy));
}

#[test]
fn what_does_not_fit_is_refused_with_a_reason() {
    let refused = |machine: &Machine, plan: &Plan, mesh: Settings| {
        simulate(machine, plan, &Options { mesh, ..Options::default() }).unwrap_err()
    };
    let plain = Settings::default();
    // 2 x 96 lines leave room for 64 flags: k <= 63.
    let double = scc().with_dimensions("6x8x2".parse().unwrap(), None).unwrap();
    let wide = |k: usize| bcast("oc-bcast", 96, 200 * LINE, &Params::new().with("k", k));
    assert!(simulate(&double, &wide(63), &Options::default()).is_ok());
    let error = refused(&double, &wide(64), plain);
    let crate::simulate::SimulateError::BoxFull { flags: 65, flag_budget: 64, slot_lines: 192, .. } = error
    else {
        panic!("{error}")
    };
    assert!(error.to_string().contains("at most 64 flags fit (a tree's degree k is at most one less)"));
    // As bytes they fit.
    let byte = Settings { flags: FlagCost::Byte, ..plain };
    assert!(simulate(&double, &wide(64), &Options { mesh: byte, ..Options::default() }).is_ok());
    let k = |k: usize| bcast("oc-bcast", 48, 200 * LINE, &Params::new().with("k", k));

    let error = refused(scc(), &bcast("oc-bcast", 49, LINE, &Params::new()), plain);
    assert!(error.to_string().contains("has 48 cores"), "{error}");
    let error = refused(scc(), &bcast("binomial", 4, 40, &Params::new()), plain);
    assert!(error.to_string().contains("carry=0"), "{error}");
    let mut direct = Problem::flat(Collective::Bcast, 4, LINE);
    direct.direct = true;
    let plan = algorithm::find(Collective::Bcast, "direct-flat").unwrap().plan(&direct, &Params::new());
    let error = refused(scc(), &plan.unwrap(), plain);
    assert!(error.to_string().contains("private memory"), "{error}");

    let mut unknown = scc().clone();
    let mesh = unknown.mesh.as_mut().unwrap();
    (mesh.network.port_ns.value, mesh.network.port_ns.source) = (None, "nobody measured it".to_owned());
    let error = refused(&unknown, &k(2), plain);
    assert!(error.to_string().contains("`port_ns` is unknown") && error.to_string().contains("nobody"));
    let mut unknown = scc().clone();
    unknown.mesh.as_mut().unwrap().issue_ns.value = None;
    assert!(simulate(&unknown, &k(2), &Options::default()).is_ok());
    let error = refused(&unknown, &k(2), Settings { in_flight: Some(2), ..plain });
    assert!(error.to_string().contains("`issue_ns` is unknown"), "{error}");
    let other = shipped().iter().find(|m| m.mesh.is_none()).unwrap();
    assert!(refused(other, &k(2), plain).to_string().contains("neither [mesh] nor [coherent]"));
    let little = Options { memory_bytes: 1000, ..Options::default() };
    assert!(simulate(scc(), &k(2), &little).unwrap_err().to_string().contains("limit of 1000"));
}

#[test]
fn a_mesh_of_one_core_has_nobody_to_talk_to() {
    let machine = scc().with_dimensions("1x1".parse().unwrap(), None).unwrap();
    let plan = bcast("oc-bcast", 1, 10 * LINE, &Params::new());
    let error = simulate(&machine, &plan, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("mesh of one core") && error.contains("--mesh 2x1"), "{error}");
}

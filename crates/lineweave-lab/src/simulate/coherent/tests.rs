use super::*;
use crate::models::cache_line::{Reads, SameLine};
use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::machine::{shipped, State, SOURCES};
use lineweave_core::plan::{Builder, Layout, Params, Region, Space};
use lineweave_core::topology::Level;
use lineweave_core::trace::{Event, Kind, Picos};
use lineweave_core::units::Rank;

fn machine(name: &str) -> &'static Machine {
    shipped().iter().find(|m| m.name == name).unwrap()
}

fn phi() -> &'static Machine {
    machine("xeon-phi-5110p")
}

fn run(machine: &Machine, plan: &Plan, options: &Options) -> Outcome {
    super::super::simulate(machine, plan, options).unwrap_or_else(|e| panic!("{}: {e}", plan.name()))
}

fn once(machine: &Machine, plan: &Plan, fidelity: Fidelity) -> Outcome {
    run(machine, plan, &Options { fidelity, ..Options::default() })
}

/// A plan of one move a rank; ranks without one do nothing.
fn moves(ranks: usize, bytes: usize, moves: &[(usize, Space, Space)]) -> Plan {
    let mut b = Builder::new(Collective::Bcast, "test", &Params::new(), ranks, 0, bytes, 1);
    b.slot(bytes);
    for &(rank, src, dst) in moves {
        b.mov(rank, Region::new(src, 0..bytes), Region::new(dst, 0..bytes));
    }
    b.finish()
}

fn ns(picos: Picos) -> f64 {
    picos.nanos()
}

/// n threads copy one line that another core has: T_C(n) = R_R + R_L + c (n - 1), Eq. 3.2.
#[test]
fn readers_of_one_line_take_t_c() {
    let reads = Reads::of(phi(), Level::Machine).unwrap();
    let t_c = SameLine::of(phi(), State::E, State::E).unwrap();
    for n in [1, 2, 7, 30, 59] {
        let readers: Vec<_> = (1..=n).map(|r| (r, Space::PeerIn(Rank(0)), Space::Out)).collect();
        for fidelity in [Fidelity::Line, Fidelity::Chunk] {
            let ended = once(phi(), &moves(n + 1, 64, &readers), fidelity).first;
            assert!((ns(ended) - t_c.from_reads(&reads, n as f64)).abs() < 1e-6, "{n}: {ended:?}");
        }
    }
}

/// N lines of the own cache go to lines that another core has: what T_N(N) has over T_N(1), Eq. 3.1.
#[test]
fn lines_in_a_row_take_what_t_n_adds() {
    let fit = &phi().multi_line[0];
    let (o, q, p) = (fit.o_ns.value.unwrap(), fit.q_ns.value.unwrap(), fit.p_ns.value.unwrap());
    let t_n = |n: f64| o * n + q - p / n;
    for lines in [1, 2, 3, 10, 128] {
        let plan = moves(2, lines * 64, &[(0, Space::In, Space::PeerOut(Rank(1)))]);
        for fidelity in [Fidelity::Line, Fidelity::Chunk] {
            let ended = ns(once(phi(), &plan, fidelity).first);
            let expected = 235.8 + 8.6 + t_n(lines as f64) - t_n(1.0);
            assert!((ended - expected).abs() < 1e-3 * lines as f64, "{lines}: {ended} not {expected}");
        }
    }
}

/// A line that no cache has comes from memory; a line of a sibling's costs what an own one does.
#[test]
fn lines_come_from_where_they_are() {
    let boxed = |rank| Space::Slot { rank: Rank(rank), slot: 0 };
    let own = once(phi(), &moves(2, 64, &[(0, boxed(0), Space::Out)]), Fidelity::Line).first;
    assert!((ns(own) - (277.7 + 8.6)).abs() < 1e-6);
    let sandy = machine("sandy-bridge-e5-2670-2s");
    for (rank, expected) in [(1, 32.8 + 2.3), (8, 75.7 + 2.3), (16, 2.3 + 2.3)] {
        let plan = moves(32, 64, &[(rank, Space::PeerIn(Rank(0)), Space::Out)]);
        let ended = ns(once(sandy, &plan, Fidelity::Line).first);
        assert!((ended - expected).abs() < 1e-6, "{rank}: {ended} not {expected}");
    }
}

fn plan_of(algorithm: &algorithm::Algorithm, shape: &Shape, bytes: usize, params: &Params) -> Option<Plan> {
    let collective = algorithm.collective;
    let mut problem = Problem::flat(collective, shape.ranks(), 0);
    problem.shape = shape.clone();
    problem.grain = if collective.folds() { 8 } else { 1 };
    problem.bytes = if collective.moves_data() { bytes } else { 0 };
    problem.direct = true;
    algorithm.plan(&problem, params).ok()
}

/// Every algorithm of the table comes to its end on every machine that can be simulated, at both fidelities.
#[test]
fn every_plan_is_played_to_its_end() {
    for machine in shipped().iter().filter(|m| m.coherent.is_some()) {
        let shape = placed(machine, 13).unwrap();
        for algorithm in algorithm::all() {
            let Some(plan) = plan_of(algorithm, &shape, 13 * 80, &Params::new()) else { continue };
            for fidelity in [Fidelity::Line, Fidelity::Chunk] {
                let options = Options { fidelity, runs: 3, trace: true, ..Options::default() };
                let outcome = simulate(machine, &shape, &plan, &options).unwrap();
                let ops: usize = plan.programs.iter().map(Vec::len).sum();
                assert_eq!(outcome.trace.unwrap().events.len(), ops, "{algorithm:?} on {}", machine.name);
            }
        }
    }
}

/// Line by line and at once are the same where nobody asks for a line that somebody else is getting. (A prefetcher
/// does: a flag's next lines hold the message. So does a poll that wants the memory while a message does.)
#[test]
fn fidelities_agree_where_nothing_contends() {
    let chunked = Params::new().with("chunk", 4096);
    for (collective, name, ranks, params) in [
        (Collective::Bcast, "flat", 2, &Params::new()),
        (Collective::Bcast, "chain", 5, &Params::new()),
        (Collective::Bcast, "chain", 5, &chunked),
        (Collective::Reduce, "binomial", 4, &Params::new()),
        (Collective::Allreduce, "recursive-doubling", 4, &Params::new()),
    ] {
        let mut power8 = machine("power8-8247-42l").clone();
        power8.rates.memory_bytes_per_ns.value = None;
        for machine in [phi(), &power8] {
            let shape = placed(machine, ranks).unwrap();
            let algorithm = algorithm::find(collective, name).unwrap();
            let plan = plan_of(algorithm, &shape, 20_000, params).unwrap();
            let [line, chunk] = [Fidelity::Line, Fidelity::Chunk].map(|fidelity| {
                let coherent = Settings { prefetch_lines: Some(0), ..Settings::default() };
                run(machine, &plan, &Options { fidelity, coherent, ..Options::default() })
            });
            assert_eq!(line.per_rank, chunk.per_rank, "{collective}/{name} on {}", machine.name);
            assert!(chunk.events < line.events);
        }
    }
}

/// A rank that begins to wait before the flag is set has the line, so the setter takes it away and it comes back: two
/// transfers, however many other flags the rank polls meanwhile.
#[test]
fn nobody_sees_a_flag_before_its_line_can_be_there() {
    let machine = machine("power8-8247-42l");
    let shape = placed(machine, 24).unwrap();
    for (name, params) in [
        ("tree", Params::new().with("k", 7).with("home", "root")),
        ("centralized", Params::new().with("release", "each")),
        ("dissemination", Params::new().with("m", 3)),
    ] {
        let algorithm = algorithm::find(Collective::Barrier, name).unwrap();
        for layout in ["packed", "paired", "alone"] {
            let plan = plan_of(algorithm, &shape, 0, &params.clone().with("layout", layout)).unwrap();
            let options = Options { trace: true, ..Options::default() };
            let trace = simulate(machine, &shape, &plan, &options).unwrap().trace.unwrap();
            let what = |e: &Event| e.text.split_once(' ').map(|(_, f)| f.replace(">=", "="));
            let mut late = 0;
            for wait in trace.events.iter().filter(|e| e.kind == Kind::Wait) {
                let of = |e: &&Event| e.kind == Kind::Set && what(e) == what(wait);
                let set = trace.events.iter().find(of).unwrap();
                if wait.start < set.start {
                    late += 1;
                    assert!(wait.end.0 >= set.start.0 + 2 * 82_500, "{name} {layout}: {wait:?} {set:?}");
                }
            }
            assert!(late > 0, "{name} {layout}");
        }
    }
}

/// A machine whose lines nobody measured is refused, by the name of what is missing.
#[test]
fn what_is_unknown_is_not_made_up() {
    let plan = moves(2, 64, &[(0, Space::In, Space::Out)]);
    let error = super::super::simulate(machine("power9-2s"), &plan, &Options::default()).unwrap_err();
    assert!(matches!(error, SimulateError::NoFamily { .. }), "{error}");
    let mut vague = phi().clone();
    vague.access.memory_ns.value = None;
    let error = super::super::simulate(&vague, &plan, &Options::default()).unwrap_err();
    assert!(matches!(&error, SimulateError::Unknown { key, .. } if key == "access.memory_ns"), "{error}");
    let many = moves(241, 64, &[(0, Space::In, Space::Out)]);
    let error = super::super::simulate(phi(), &many, &Options::default()).unwrap_err();
    assert!(matches!(error, SimulateError::TooManyRanks { ranks: 241, cores: 240, .. }), "{error}");
    let long = moves(2, 1 << 32, &[(0, Space::In, Space::Out)]);
    let error = super::super::simulate(phi(), &long, &Options::default()).unwrap_err();
    assert!(matches!(error, SimulateError::TooLarge { .. }), "{error}");
}

/// Flags on one line disturb each other, and neighbours within reach of the prefetcher a little.
#[test]
fn layouts_matter() {
    let machine = machine("power8-8247-42l");
    let shape = placed(machine, 24).unwrap();
    let tree = algorithm::find(Collective::Barrier, "tree").unwrap();
    let time = |layout: Layout| {
        let params = Params::new().with("k", 5).with("home", "root").with("layout", layout);
        let plan = plan_of(tree, &shape, 0, &params).unwrap();
        run(machine, &plan, &Options { runs: 10, ..Options::default() }).each
    };
    let [packed, paired, spread] = [Layout::Packed, Layout::Paired, Layout::Spread(5)].map(time);
    assert!(packed.0 > 2 * paired.0 && paired > spread, "{packed:?} {paired:?} {spread:?}");
}

/// Calls back to back overlap, since the root runs ahead. Together each costs what one does that finds lines where the one before
/// left them.
#[test]
fn calls_together_cost_what_one_alone_does() {
    let plan = algorithm::find(Collective::Bcast, "binomial").unwrap();
    let plan = plan.plan(&Problem::flat(Collective::Bcast, 8, 8), &Params::new()).unwrap();
    let of =
        |together, banks, runs| run(phi(), &plan, &Options { runs, together, banks, ..Options::default() });
    let (few, many) = (of(true, 1, 3), of(true, 1, 9));
    assert_eq!(few.each, many.each);
    assert_eq!(many.total.0, many.first.0 + 8 * many.each.0);
    assert!(many.each > of(false, 4, 9).each, "{:?}", many.each);
}

/// The machines that are described with a mesh.
fn meshes() -> impl Iterator<Item = &'static Machine> {
    shipped().iter().filter(|m| m.mesh.is_none() && m.network().is_some())
}

/// One line at a time goes over the mesh at the described price: to a core, from it, and away from several that share it.
#[test]
fn an_idle_mesh_gives_the_described_transfers() {
    let mut seen = 0;
    for machine in meshes() {
        let shape = placed(machine, machine.topology().unwrap().cores()).unwrap();
        let local = machine.access.local_ns.value.unwrap();
        let (there, line) = (Space::PeerIn(Rank(0)), |space| Region::new(space, 0..64));
        for rank in 1..shape.ranks() {
            let transfer = machine.transfer_between(shape.cpu(Rank(0)), shape.cpu(rank.into())).unwrap();
            let plan = moves(shape.ranks(), 64, &[(rank, there, Space::Out)]);
            for fidelity in [Fidelity::Line, Fidelity::Chunk] {
                let ended = once(machine, &plan, fidelity);
                assert!((ns(ended.first) - transfer - local).abs() < 1e-6, "{}: {rank}", machine.name);
                seen += usize::from(ended.load.unwrap().ports.iter().any(|port| port.busy > Picos(0)));
            }
            let back = moves(shape.ranks(), 64, &[(rank, Space::In, Space::PeerOut(Rank(0)))]);
            assert_eq!(
                once(machine, &back, Fidelity::Line).first,
                once(machine, &plan, Fidelity::Line).first
            );
        }
        // All but the last read a line, one after the other, and the last takes it away from them all.
        let last = shape.ranks() - 1;
        let plan = |write: bool| {
            let mut b = Builder::new(Collective::Bcast, "test", &Params::new(), last + 1, 0, 64, 1);
            let passed = b.flags("passed", Layout::Alone, 1);
            for rank in 1..=last {
                if rank > 1 {
                    b.wait(rank, passed.at(rank, 0), 1);
                }
                match rank == last {
                    false => {
                        b.mov(rank, line(there), line(Space::Out));
                        b.set(rank, passed.at(rank + 1, 0), 1);
                    }
                    true if write => b.mov(rank, line(Space::In), line(there)),
                    true => {}
                }
            }
            b.finish()
        };
        let took = |plan: &Plan, ideal: bool| {
            let coherent = Settings { ideal, ..Settings::default() };
            run(machine, plan, &Options { coherent, ..Options::default() }).first
        };
        let farthest =
            (0..last).map(|r| machine.transfer_between(shape.cpu(last.into()), shape.cpu(r.into())));
        let farthest = farthest.map(Option::unwrap).fold(0.0, f64::max);
        let store = ns(took(&plan(true), false)) - ns(took(&plan(false), false));
        assert!((store - farthest - local).abs() < 1e-6, "{}: {store}", machine.name);
        // Flags go over the mesh meanwhile, and prefetched lines with them.
        assert!(took(&plan(true), false) >= took(&plan(true), true));
    }
    assert!(seen > 200, "{seen}");
}

/// A transfer keeps busy the ports of home and owner, and as many links as the line crosses; readers of one core wait for its port.
#[test]
fn transfers_keep_ports_and_links_busy() {
    for machine in meshes() {
        let network = machine.network().unwrap();
        let (columns, a_tile) =
            (network.columns.value.unwrap(), network.cores_per_tile.value.unwrap() as usize);
        let port = (network.port_ns.value.unwrap() * 1e3).round() as u64;
        let flits = (64.0 / network.link_bytes.value.unwrap()).ceil() + network.header_flits.value.unwrap();
        let line = (flits * 1e6 / network.mesh_mhz.value.unwrap()).round() as u64;
        let cores = {
            let topology = machine.topology().unwrap();
            topology.cores() / (1 + topology.cpus.iter().map(|cpu| cpu.package).max().unwrap())
        };
        let far = cores - 1;
        let plan = moves(cores, 64, &[(far, Space::PeerIn(Rank(0)), Space::Out)]);
        let load = once(machine, &plan, Fidelity::Line).load.unwrap();
        let tile = (far / a_tile) as f64;
        let hops = (tile % columns) as u64 + (tile / columns) as u64;
        assert_eq!(load.links.iter().flatten().map(|link| link.0).sum::<u64>(), hops * line);
        assert_eq!(load.ports.iter().map(|port| port.busy.0).sum::<u64>(), 2 * port);
        // Everybody reads other lines of core 0.
        let each = 64;
        let mut b = Builder::new(Collective::Bcast, "test", &Params::new(), cores, 0, cores * each * 64, 1);
        for rank in a_tile..cores {
            let lines = rank * each * 64..(rank + 1) * each * 64;
            b.mov(rank, Region::new(Space::PeerIn(Rank(0)), lines.clone()), Region::new(Space::Out, lines));
        }
        let plan = b.finish();
        let coherent = Settings { accesses_in_flight: Some(64), ..Settings::default() };
        for fidelity in [Fidelity::Line, Fidelity::Chunk] {
            let options = Options { fidelity, coherent, ..Options::default() };
            let waited = run(machine, &plan, &options);
            let ideal = Settings { ideal: true, ..coherent };
            let ideal = run(machine, &plan, &Options { coherent: ideal, ..options });
            let served = ((cores - a_tile) * each) as u64 * port;
            assert!(waited.first.0 >= served && ideal.first.0 < served, "{}, {fidelity}", machine.name);
            // Homes of other lines are there, too.
            assert!(
                waited.first.0 < served + served / 2,
                "{}, {fidelity}: {:?} {served}",
                machine.name,
                waited.first
            );
            assert_eq!(ideal.load, None);
        }
    }
}

#[test]
fn a_mesh_with_too_few_tiles_is_refused() {
    let (_, text) = SOURCES.iter().find(|(name, _)| *name == "altra-q80-30").unwrap();
    let small = text.replace("rows = { value = 4,", "rows = { value = 3,");
    assert_ne!(small, *text);
    let machine: Machine = small.parse().unwrap();
    let error = super::super::simulate(&machine, &moves(4, 64, &[]), &Options::default()).unwrap_err();
    assert!(error.to_string().contains("[coherent.mesh] have 60 cores"), "{error}");
}

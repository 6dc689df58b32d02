//! Machines that change while they are measured: their costs and readings are made up, passes, crews and statistics are real.

use super::cell::Task;
use super::*;
use lineweave_core::profile::Unidentified;
use lineweave_core::topology::{Cpu, Level};
use std::sync::{Arc, Mutex};

const NEAR: f64 = 33.0;
const FAR: f64 = 160.0;
/// Time that the subject of a cell takes while CPUs are near.
const COST: f64 = 7.0;
const CELLS: usize = 8;
const PASSES: usize = 4;

/// Time of a handshake on a machine now, in ns; all that it costs goes with it.
#[derive(Clone)]
struct Machine(Arc<Mutex<f64>>);

impl Machine {
    fn near() -> Machine {
        Machine(Arc::new(Mutex::new(NEAR)))
    }

    fn moves(&self, handshake: f64) {
        *self.0.lock().expect("no panic") = handshake;
    }

    fn handshake(&self) -> f64 {
        *self.0.lock().expect("no panic")
    }
}

/// One rank that visits cells, before each of which the machine is moved by how often that cell was visited.
fn measured(
    machine: &Machine,
    budget: Duration,
    moves: impl Fn(usize, usize) -> f64 + Send + Sync + Clone + 'static,
    read: &(dyn Fn() -> StateSample + Sync),
) -> (Vec<Cell>, Vec<Unidentified>, usize) {
    let cpu = UsableCpus::of_this_thread().cpus[0];
    let cpu = Cpu { os: cpu, core: 0, l3: 0, numa: 0, package: 0, kind: 0 };
    let crews = [ProbeTeam { role: Role::Solo, cpus: vec![cpu.clone()], level: Level::Core }];
    let set = ProbeSet { budget, passes: PASSES, largest: 4096, ..tests::brief(1) };
    let cells = (0..CELLS).map(|cell| {
        let (machine, moves, visits) = (machine.clone(), moves.clone(), Mutex::new(0));
        let take = move |_: &mut ProbeContext<'_>, _: &timing::Rules| {
            machine.moves(moves(cell, counted(&visits)));
            Ok(timing::Samples { values: vec![COST * machine.handshake() / NEAR; 10], disturbed: 0 })
        };
        let task = Task::new(SampleKey::new("copy").with("cell", cell), 1.0, take);
        Open { crew: 0, task, visits: Vec::new() }
    });
    let cells = cells.collect();
    let read = |_: &MachineStateProbe, _: &mut ProbeContext<'_>| Ok(read());
    let mut passes =
        Passes { set: &set, crews: &crews, cells, log: Log::default(), read: &read, start: Instant::now() };
    let mut most = 0;
    let mut pairs = Pairs::of(&Topology { cpus: Vec::new() });
    visit_all(&mut passes, &mut pairs, &mut |progress| most = most.max(progress.pass)).expect("passes");
    let log = &passes.log;
    let mut all: Vec<Cell> = passes.cells.iter().flat_map(|open| log.closed(open)).collect();
    all.extend(log.cells(&crews));
    (all, log.mixed(&passes.cells), most)
}

/// Counts a call, and returns the number of calls before it.
fn counted(times: &Mutex<usize>) -> usize {
    let mut times = times.lock().expect("no panic");
    *times += 1;
    *times - 1
}

fn reading(handshake: f64) -> StateSample {
    StateSample([Some(handshake), None, Some(1.3)])
}

fn copies(cells: &[Cell]) -> impl Iterator<Item = &Cell> {
    cells.iter().filter(|cell| cell.probe == "copy")
}

#[test]
fn what_was_measured_while_cpus_were_elsewhere_is_measured_again() {
    // Whenever one cell is visited in a pass the machine is far, and near again at the next.
    let machine = Machine::near();
    let moves = |cell, visits| if cell == 3 && visits < PASSES { FAR } else { NEAR };
    // A budget that makes each cell a section of its own.
    let (cells, mixed, passes) =
        measured(&machine, Duration::from_secs(100), moves, &|| reading(machine.handshake()));
    assert!(passes > PASSES, "cell 3 had no visit that counts");
    assert_eq!(mixed, []);
    assert_eq!(copies(&cells).count(), CELLS);
    for cell in copies(&cells) {
        assert_eq!((cell.stats.median, cell.stats.p95), (COST, COST), "of one state: {cell:?}");
        assert!(cell.flagged.is_empty() && cell.stats.samples >= 10 * state::ENOUGH, "{cell:?}");
    }
    let gauge = cells.iter().find(|cell| cell.probe == "gauge").expect("readings");
    assert!(gauge.factors["of"] == "handshake" && gauge.stats.median == NEAR && gauge.stats.p95 == NEAR);
    assert!(gauge.stats.disturbed >= PASSES && gauge.flagged[0].contains("4.85 times"), "{gauge:?}");
}

#[test]
fn what_a_machine_denies_is_named_with_its_state() {
    let machine = Machine::near();
    let moves = |cell, _| if cell == 3 { FAR } else { NEAR };
    let (cells, mixed, _) =
        measured(&machine, Duration::from_millis(400), moves, &|| reading(machine.handshake()));
    let [Unidentified { what, because }] = &mixed[..] else { panic!("{mixed:?}") };
    assert_eq!(what, "state[copy]");
    assert!(
        because.starts_with("1 cell could") && because.contains("a handshake took 4.85 times"),
        "{because}"
    );
    for cell in copies(&cells) {
        let other = cell.factors["cell"] == "3";
        assert_eq!(cell.stats.median, if other { COST * FAR / NEAR } else { COST });
        assert_eq!(cell.flagged.len(), usize::from(other), "{cell:?}");
    }
}

#[test]
fn a_machine_that_never_settles_ends_in_time_and_says_so() {
    let machine = Machine::near();
    let readings = Mutex::new(0);
    let restless = || reading(NEAR * 3f64.powi(counted(&readings) as i32 % 7));
    let (cells, mixed, passes) = measured(&machine, Duration::from_millis(200), |_, _| NEAR, &restless);
    assert!(passes > PASSES, "tried again");
    assert_eq!(mixed.len(), 1, "{mixed:?}");
    assert!(copies(&cells).all(|cell| !cell.flagged.is_empty()), "{cells:?}");
}

#[test]
fn a_machine_that_stays_is_measured_once() {
    let machine = Machine::near();
    let (cells, mixed, passes) =
        measured(&machine, Duration::from_secs(100), |_, _| NEAR, &|| reading(machine.handshake()));
    assert_eq!((passes, mixed.len()), (PASSES, 0));
    assert!(cells.iter().all(|cell| cell.flagged.is_empty() && cell.stats.disturbed == 0), "{cells:?}");
    assert!(copies(&cells).all(|cell| cell.stats.samples == 10 * PASSES));
}

#[test]
fn all_crews_describe_the_machine_of_one_pass() {
    let taken = |crew, pass, handshake| state::Taken { crew, pass, reading: reading(handshake) };
    // Both move after the second of five passes; the second crew reads more while it is near.
    let mut log = Log::default();
    for pass in 1..=5 {
        let now = if pass <= 2 { NEAR } else { FAR };
        log.taken.extend((0..10).map(|_| taken(0, pass, now)));
        log.taken.extend((0..if pass <= 2 { 8 } else { 5 }).map(|_| taken(1, pass, now)));
    }
    log.decide(2);
    assert_eq!(log.described, [reading(FAR); 2], "of two readings of it and three");
    // The last, which the races will find; but not what was seldom.
    for (last, described) in [(4, NEAR), (3, FAR)] {
        let mut log = Log::default();
        log.taken.extend((1..=10).map(|pass| taken(0, pass, if pass > 10 - last { NEAR } else { FAR })));
        log.decide(1);
        assert_eq!(log.described, [reading(described)], "{last} of ten");
    }
}

#[test]
fn each_figure_has_its_band() {
    let usual = StateSample([Some(33.0), Some(7_000.0), Some(1.35)]);
    let changed = |of: [f64; 3]| StateSample(of.map(Some)).change(&usual).map(|c| c.figure);
    assert_eq!(changed([26.0, 19_600.0, 1.45]), None, "siblings, other bytes in the caches, another turbo");
    assert_eq!(changed([157.0, 20_700.0, 1.35]), Some(Figure::Handshake));
    assert_eq!(changed([34.0, 21_700.0, 1.35]), Some(Figure::Copy));
    assert_eq!(changed([33.0, 7_000.0, 2.0]), Some(Figure::Clock), "throttled");
    assert_eq!(StateSample::default().change(&usual), None, "nothing to tell");
}

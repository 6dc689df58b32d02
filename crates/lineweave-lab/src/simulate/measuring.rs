//! Measuring a machine that need not be there: probes played on a machine with coherent caches give a profile, from which
//! a fit recovers what was described.
//!
//! `signal`, `exchange`, `counter` and `stream` are the very plans that the runtime measures with. What it measures with
//! loops over its kernels, because a line in a given state is no plan, is here the move of Ramos & Hoefler 2013,
//! section 3.1, that the loop stands for: `line` one line read, `states` one line there and back, `contention` one line read by many, `pingpong` N lines
//! written into the receiver's buffer of which it reads the last, `copy` bytes moved. Overheads of the engine, wakes,
//! folds and tricks are not simulated, and are listed so.

use super::{coherent, moves, slot, Options, Outcome, SimulateError};
use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::machine::{Machine, State};
use lineweave_core::model::Model;
use lineweave_core::plan::{Builder, FlagArrayId, Layout, Params, Plan, Region, Space};
use lineweave_core::probe::call_and_answer;
use lineweave_core::profile::{Cell, Fingerprint, Profile, Stats, Unidentified, SCHEMA};
use lineweave_core::topology::{Cpu, Level, Shape};
use lineweave_core::units::Rank;
use std::ops::Range;

/// Runs back to back of what is timed from run to run.
const RUNS: usize = 20;
/// Lines of ping-pongs.
const LINES: [usize; 11] = [1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128];
/// Bytes of copies.
const BYTES: [usize; 5] = [64, 256, 1024, 4096, 16384];
/// Layouts of two flags.
const LAYOUTS: [Layout; 5] =
    [Layout::Packed, Layout::Paired, Layout::Alone, Layout::Spread(2), Layout::Spread(4)];

/// Bytes that a flag carries in its line.
const CARRIED: usize = 8;
/// Offset in a box that no prefetcher reaches from the flags before it.
const APART: usize = 4096;

/// States of a line, as a profile calls them.
pub(crate) const STATES: [(&str, State); 4] =
    [("modified", State::M), ("exclusive", State::E), ("shared", State::S), ("invalid", State::I)];

/// Some ranks of a machine.
struct Crew<'a> {
    machine: &'a Machine,
    shape: Shape,
    line: usize,
}

impl Crew<'_> {
    fn play(&self, plan: &Plan, runs: usize) -> Result<Outcome, SimulateError> {
        coherent::simulate(self.machine, &self.shape, plan, &Options { runs, ..Options::default() })
    }

    /// Returns the mean time from run to run, in ns.
    fn each(&self, plan: &Plan) -> Result<f64, SimulateError> {
        Ok(self.play(plan, RUNS)?.each.nanos())
    }

    fn barrier(&self, name: &str, params: &Params) -> Result<f64, SimulateError> {
        let problem = Problem::flat(Collective::Barrier, self.shape.ranks(), 0);
        let plan = algorithm::find(Collective::Barrier, name).and_then(|a| a.plan(&problem, params));
        self.each(&plan.map_err(|_| SimulateError::Malformed { rank: Rank(0), op: 0 })?)
    }

    /// Returns the time, in ns, at which the last of some ranks has moved `lines` lines from `src` to `dst`, all beginning at once.
    fn moves(&self, who: Range<usize>, lines: usize, src: Space, dst: Space) -> Result<f64, SimulateError> {
        let plan = moves(self.shape.ranks(), lines * self.line, 1, who.map(|rank| (rank, src, dst)));
        Ok(self.play(&plan, 1)?.first.nanos())
    }

    /// R_L: half of a line read and written in the own cache.
    fn local(&self) -> Result<f64, SimulateError> {
        Ok(self.moves(0..1, 1, Space::In, Space::Out)? / 2.0)
    }

    /// A line of rank 0 that rank 1 reads.
    fn read(&self, from: Space) -> Result<f64, SimulateError> {
        Ok(self.moves(1..2, 1, from, Space::Out)? - self.local()?)
    }

    /// Returns the time, in ns, that rank 0 of two takes from the beginning of `timed` to its end, where `before` was done and both have met.
    /// The flag is a line at each rank, by which the other sends.
    fn after(
        &self,
        before: &dyn Fn(&mut Builder, FlagArrayId),
        timed: &dyn Fn(&mut Builder, FlagArrayId),
    ) -> Result<f64, SimulateError> {
        let until = |timed: &dyn Fn(&mut Builder, FlagArrayId)| {
            let mut b = Builder::new(Collective::Bcast, "probe", &Params::new(), 2, 0, CARRIED, 1);
            let [line, met] = ["line", "met"].map(|name| b.flags(name, Layout::Alone, 1));
            b.slot(APART + CARRIED);
            b.acc(CARRIED);
            before(&mut b, line);
            for rank in 0..2 {
                b.set(rank, met.at(1 - rank, 0), 1);
                b.wait(1 - rank, met.at(1 - rank, 0), 1);
            }
            timed(&mut b, line);
            Ok::<f64, SimulateError>(self.play(&b.finish(), 1)?.first.nanos())
        };
        Ok(until(timed)? - until(&|_, _| ())?)
    }

    /// A line that rank 1 has written, read by rank 0.
    fn read_modified(&self) -> Result<f64, SimulateError> {
        let before = |b: &mut Builder, _| b.mov(1, carried(Space::In), carried(Space::Out));
        let timed = |b: &mut Builder, _| b.mov(0, carried(Space::PeerOut(Rank(1))), carried(Space::Acc));
        Ok(self.after(&before, &timed)? - self.local()?)
    }

    /// Half a round trip of one line, which carries the flag that is polled: buffers to send from and to receive in are brought into these
    /// states before (Ramos & Hoefler 2013, chapter 2).
    fn there_and_back(&self, send: State, recv: State) -> Result<f64, SimulateError> {
        let before = |b: &mut Builder, line: FlagArrayId| {
            for rank in 0..2 {
                let other = 1 - rank;
                match send {
                    State::M => b.mov(rank, carried(Space::In), carried(Space::Out)),
                    State::S => b.mov(other, carried(Space::PeerOut(Rank::from(rank))), carried(Space::Acc)),
                    State::E | State::F | State::I => {}
                }
                match recv {
                    State::E => b.wait(rank, line.at(rank, 0), 0),
                    _ => b.set(rank, line.at(rank, 0), 1),
                }
            }
            for rank in (0..2).filter(|_| recv == State::S) {
                b.wait(1 - rank, line.at(rank, 0), 1);
            }
        };
        let timed = |b: &mut Builder, line: FlagArrayId| {
            for rank in 0..2 {
                let other = 1 - rank;
                let from = match send {
                    State::I => Region::new(slot(rank, 0), APART..APART + CARRIED),
                    _ => carried(Space::Out),
                };
                b.set_carrying(rank, line.at(other, 0), 2, from);
                b.wait(other, line.at(other, 0), 2);
            }
        };
        Ok(self.after(&before, &timed)? / 2.0)
    }

    /// N lines written into the receiver's buffer, the last of which it then reads.
    fn lines(&self, lines: usize) -> Result<f64, SimulateError> {
        Ok(self.moves(0..1, lines, Space::In, Space::PeerOut(Rank(1)))?
            + self.read(Space::PeerIn(Rank(0)))?)
    }
}

fn carried(space: Space) -> Region {
    Region::new(space, 0..CARRIED)
}

fn cell(probe: &str, factors: &[(&str, &str)], ns: f64) -> Cell {
    // The simulator resolves a picosecond.
    const TICK: f64 = 1e-3;
    let stats = Stats {
        median: ns,
        ci_low: (ns - TICK).max(0.0),
        ci_high: ns + TICK,
        p5: ns,
        p95: ns,
        min: ns,
        samples: 1,
        disturbed: 0,
    };
    let factors = factors.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    Cell { probe: probe.to_owned(), factors, unit: "ns".to_owned(), stats, flagged: Vec::new() }
}

/// The profile of a described machine with coherent caches, one rank a core.
///
/// # Errors
/// A [`SimulateError`] when the description has no `[coherent]`, has fewer than two cores, or does not say enough.
pub fn measure(machine: &Machine) -> Result<Profile, SimulateError> {
    let none = |lacks: &str| SimulateError::lacks(machine, lacks);
    if machine.coherent.is_none() {
        return Err(none("probes read and write other ranks' lines, and it has no [coherent]"));
    }
    let cpus = cores(machine);
    let line = machine.line_bytes.value.map_or(64, |l| l as usize);
    let crew = |cpus: &[Cpu]| Crew { machine, shape: Shape::on(cpus.to_vec()), line };
    let mut cells = Vec::new();
    let mut nearest = None;
    for level in Level::ALL {
        let Some(peer) = peer(&cpus, level) else { continue };
        let pair = crew(&[cpus[0].clone(), peer.clone()]);
        nearest = nearest.or(Some(level));
        at_a_distance(&pair, level, nearest == Some(level), &mut cells)?;
    }
    let Some(nearest) = nearest else { return Err(none("it has one core, and lines move between two")) };
    let all = cpus.len().min(64);
    let mut readers = 1;
    while readers < all {
        // One more than the readers: who has the line.
        let crowd = crew(&cpus[..readers + 1]);
        let last = crowd.moves(1..readers + 1, 1, Space::PeerIn(Rank(0)), Space::Out)?;
        let factors = [("readers", &*readers.to_string()), ("level", nearest.name())];
        cells.push(cell("contention", &factors, last));
        readers = if 2 * readers >= all && readers + 1 < all { all - 1 } else { 2 * readers };
    }
    let unidentified = ["overhead", "wake", "fold", "trick"].map(|what| Unidentified {
        what: what.to_owned(),
        because: "simulations have no instructions".to_owned(),
    });
    Ok(Profile {
        schema: SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        measured_at: "in virtual time".to_owned(),
        machine: Fingerprint {
            cpu: format!("simulated {}", machine.name),
            cpus: cpus.len(),
            line_bytes: line,
            topology: machine.topology.value.clone().unwrap_or_default(),
        },
        unidentified: unidentified.into(),
        cells,
    })
}

/// A hardware thread of each core.
fn cores(machine: &Machine) -> Vec<Cpu> {
    let mut cpus = machine.topology().unwrap_or_default().cpus;
    cpus.dedup_by_key(|cpu| cpu.core);
    cpus
}

/// The first core at this distance from the first of all.
fn peer(cpus: &[Cpu], level: Level) -> Option<&Cpu> {
    cpus.iter().skip(1).find(|cpu| cpus[0].common(cpu) == level)
}

/// Adds the cells that two ranks at distance `level` give.
fn at_a_distance(
    pair: &Crew<'_>,
    level: Level,
    nearest: bool,
    cells: &mut Vec<Cell>,
) -> Result<(), SimulateError> {
    let at = ("level", level.name());
    let mut add = |probe: &str, factors: &[(&str, &str)], ns: f64| cells.push(cell(probe, factors, ns));
    add("line", &[("access", "read"), ("state", "modified"), at], pair.read_modified()?);
    add("line", &[("access", "read"), ("state", "exclusive"), at], pair.read(Space::PeerIn(Rank(0)))?);
    for (send, s) in STATES {
        for (recv, r) in STATES.into_iter().filter(|(_, r)| *r != State::I) {
            add("states", &[("send", send), ("recv", recv), at], pair.there_and_back(s, r)?);
        }
    }
    if nearest {
        let local = [("access", "read"), ("state", "exclusive"), ("level", "local")];
        add("line", &local, pair.local()?);
        add("line", &[("access", "read"), ("state", "invalid"), at], pair.read(slot(0, 0))?);
    }
    for layout in LAYOUTS {
        let name = layout.to_string();
        let signal = pair.each(&call_and_answer(layout))? / 2.0;
        add("signal", &[("layout", &name), ("pollers", "1"), at], signal);
        let exchange = pair.barrier("exchange", &Params::new().with("layout", layout))?;
        add("exchange", &[("layout", &name), at], exchange);
    }
    add("counter", &[("ranks", "2"), at], pair.barrier("counter", &Params::new())?);
    for lines in LINES {
        add("pingpong", &[("lines", &lines.to_string()), at], pair.lines(lines)?);
    }
    for bytes in BYTES {
        let (text, lines) = (bytes.to_string(), bytes.div_ceil(pair.line));
        for (pattern, src, dst, who) in [
            ("get", Space::PeerIn(Rank(0)), Space::Out, 1..2),
            ("put", Space::In, Space::PeerOut(Rank(1)), 0..1),
            ("local", Space::In, Space::Out, 0..1),
        ] {
            let mut factors = vec![("pattern", pattern), ("kind", "plain"), ("bytes", &*text), ("tau", "1")];
            match (pattern, nearest) {
                ("local", false) => continue,
                ("local", true) => {}
                _ => factors.push(at),
            }
            add("copy", &factors, pair.moves(who, lines, src, dst)?);
        }
    }
    Ok(())
}

/// A parameter as described and as a fit found it.
#[derive(Clone, PartialEq, Debug)]
pub struct Recovered {
    /// Symbol of the parameter.
    pub name: String,
    /// The description's value, ns.
    pub described: f64,
    /// The fit's, ns.
    pub found: f64,
}

impl Recovered {
    /// Returns the relative error, as a fraction of the description's value.
    pub fn off(&self) -> f64 {
        self.found / self.described - 1.0
    }
}

/// Compares `model`, fitted from a profile of [`measure`], with the values that the description of `machine` knows.
///
/// T_C is simulated in the form R_R + R_L + c (n - 1) of Ramos & Hoefler 2013, Eq. 4.5: its b is R_R + R_L - c. The q of
/// T_N lacks the overhead of a ping-pong (section 2.4).
pub fn recovered(machine: &Machine, model: &Model) -> Vec<Recovered> {
    let mut out = Vec::new();
    let mut add = |name: String, described: Option<f64>, found: f64| {
        out.extend(described.map(|described| Recovered { name, described, found }));
    };
    let local = machine.access.local_ns.value;
    add("R_L".to_owned(), local, model.local.value);
    let cpus = cores(machine);
    let read = |level: Level| match peer(&cpus, level) {
        Some(peer) => machine.transfer_between(&cpus[0], peer),
        None => machine.transfer(level).value,
    };
    for costs in &model.levels {
        add(format!("R_R@{}", costs.level), read(costs.level), costs.read.value);
    }
    let near = model.levels.first();
    if let (Some(t), Some(near)) = (machine.contention.first(), near) {
        add("c of T_C".to_owned(), t.c_ns.value, model.contention.c.value);
        let b = || Some(read(near.level)? + local? - t.c_ns.value?);
        add("b of T_C".to_owned(), b(), model.contention.b.value);
    }
    if let (Some(t), Some(lines)) = (machine.multi_line.first(), near.and_then(|l| l.lines.as_ref())) {
        add("o of T_N".to_owned(), t.o_ns.value, lines.o.value);
        add("q of T_N".to_owned(), t.q_ns.value, lines.q.value);
        add("p of T_N".to_owned(), t.p_ns.value, lines.p.value);
    }
    out
}

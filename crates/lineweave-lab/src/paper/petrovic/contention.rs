//! Section 3.3: what a loaded link and a loaded port do.

use super::{Study, CHIP};
use crate::paper::given::played;
use crate::paper::limit::SAME;
use crate::paper::{all_on, claim, Basis, Finding};
use crate::simulate::{moves, slot, Options};
use lineweave_core::plan::Plan;
use lineweave_core::trace::Trace;

/// A core, the core whose box it uses, whether it puts there rather than gets, and how often.
pub(in crate::paper) type Use = (usize, usize, bool, usize);

pub(super) fn findings(study: &Study) -> Vec<Finding> {
    // A port's service time and the packets that it holds are set so that figure 4 comes out.
    let figure_4 = [port(study), unfair(study, false), unfair(study, true)];
    std::iter::once(link(study)).chain(all_on(Basis::Calibrated, figure_4)).collect()
}

/// Every core puts or gets `lines` lines again and again.
fn plan(study: &Study, lines: usize, uses: &[Use]) -> Plan {
    let setup = &study.printed.setup;
    let one = |&(core, at, puts, times): &Use| {
        let (own, other) = (slot(core, 0), slot(at, 1));
        let (src, dst) = if puts { (own, other) } else { (other, own) };
        std::iter::repeat_n((core, src, dst), times)
    };
    moves(setup.cores, lines * setup.line_bytes, 2, uses.iter().flat_map(one))
}

pub(in crate::paper) fn traced(study: &Study, lines: usize, uses: &[Use]) -> Trace {
    let options = Options { trace: true, mesh: CHIP, ..Options::default() };
    let plan = plan(study, lines, uses);
    played(study.machine, &plan, &options).trace.expect("it is asked for")
}

/// Mean time of a core's calls that ended before `until`, in ns.
pub(in crate::paper) fn mean(trace: &Trace, core: usize, until: u64) -> f64 {
    let ends: Vec<u64> =
        trace.events.iter().filter(|e| e.rank.index() == core && e.end.0 <= until).map(|e| e.end.0).collect();
    ends.last().map_or(f64::NAN, |&last| last as f64 / ends.len() as f64 / 1e3)
}

/// Returns the time at which the first core has done all its calls, in ps.
pub(in crate::paper) fn first_done(trace: &Trace, cores: usize) -> u64 {
    let done = |core: usize| {
        trace.events.iter().filter(|e| e.rank.index() == core).map(|e| e.end.0).max().unwrap_or(u64::MAX)
    };
    (0..cores).map(done).min().unwrap_or(0)
}

/// All cores but those at its ends get through the link from tile (2,2) to (3,2), and a get crosses it.
fn link(study: &Study) -> Finding {
    const LINES: usize = 64;
    let tile = |core: usize| (core / 2 % 6, core / 12);
    let core_of = |x: usize, y: usize| 2 * (y * 6 + x);
    let (from, to) = (core_of(2, 2), core_of(3, 2));
    let alone = mean(&traced(study, LINES, &[(from, to, false, 1)]), from, u64::MAX);
    // Opposite in the row of the link: what is got crosses it.
    let loads = (0..study.printed.setup.cores).filter(|&c| tile(c) != (2, 2) && tile(c) != (3, 2));
    let mut uses: Vec<Use> =
        loads.map(|c| (c, core_of(5 - tile(c).0, 2), false, 6)).filter(|u| tile(u.1) != tile(u.0)).collect();
    uses.push((from, to, false, 3));
    let loaded = mean(&traced(study, LINES, &uses), from, u64::MAX);
    let slower = loaded / alone - 1.0;
    claim(
        "section 3.3, link",
        "a get through the most loaded link is no slower than without load",
        format!("{:+.1} % ({:.2} us a get of {LINES} lines alone)", slower * 100.0, alone / 1e3),
        SAME.of(slower.abs()),
    )
}

/// Routers from core 0 to another.
pub(super) fn distance(core: usize) -> u32 {
    (core / 2 % 6 + core / 12 + 1) as u32
}

/// A get over `d` routers when no core does anything else, in ns.
pub(in crate::paper) fn get_alone(study: &Study, lines: usize, d: u32) -> f64 {
    study.model.c_get_mpb(lines as u32, d).0
}

/// A call of one core to core 0, when no other core does anything, in ns.
pub(super) fn alone(study: &Study, puts: bool, lines: usize, core: usize) -> f64 {
    match puts {
        true => study.model.c_put_mpb(lines as u32, distance(core)).0,
        false => get_alone(study, lines, distance(core)),
    }
}

/// Mean slowdown of 24 cores at one port.
fn port(study: &Study) -> Finding {
    let slowed = |puts: bool| {
        let lines = if puts { 1 } else { 32 };
        let cores: Vec<usize> = (24..48).collect();
        let uses: Vec<Use> = cores.iter().map(|&c| (c, 0, puts, 60)).collect();
        let trace = traced(study, lines, &uses);
        let until = first_done(&trace, study.printed.setup.cores);
        let each = |&core: &usize| mean(&trace, core, until) / alone(study, puts, lines, core) - 1.0;
        cores.iter().map(each).sum::<f64>() / cores.len() as f64
    };
    let (get, put) = (slowed(false), slowed(true));
    claim(
        "fig 4, 24 cores",
        "up to 24 cores at one message buffer there is no measurable contention",
        format!(
            "gets {:+.0} %, puts {:+.0} % on average, as requests run into each other",
            get * 100.0,
            put * 100.0
        ),
        SAME.of(get.max(put)),
    )
}

/// Slowest over fastest of all cores at one port.
fn unfair(study: &Study, puts: bool) -> Finding {
    let (lines, what, times) = if puts { (1, "puts of 1 line", 4.0) } else { (64, "gets of 128 lines", 2.0) };
    let cores = study.printed.setup.cores;
    let uses: Vec<Use> = (0..cores).map(|c| (c, 0, puts, if puts { 100 } else { 10 })).collect();
    let trace = traced(study, lines, &uses);
    let until = first_done(&trace, cores);
    let means: Vec<f64> = (0..cores).map(|c| mean(&trace, c, until)).filter(|m| m.is_finite()).collect();
    let (least, most) = means.iter().fold((f64::MAX, 0.0f64), |(l, m), &x| (l.min(x), m.max(x)));
    claim(
        if puts { "fig 4b, 48 cores" } else { "fig 4a, 48 cores" },
        &format!("{what} at 48 cores: the slowest core takes more than {times:.0} times the fastest"),
        format!("{:.1} times ({} lines a call here)", most / least, lines),
        most / least > times,
    )
}

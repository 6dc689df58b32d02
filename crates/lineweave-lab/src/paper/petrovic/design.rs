//! Sections 3.3, 4 and 6.1: what the design of OC-Bcast rests on.

use super::{Study, CHIP, IDEAL};
use crate::optimise::buffers::double_buffering;
use crate::optimise::notify::{best_degree, ideal_degree, siblings};
use crate::paper::given::planned;
use crate::paper::limit::{ALMOST, SAME};
use crate::paper::{claim, Finding};
use crate::simulate::{moves, slot, Fidelity};
use lineweave_core::algorithm::Problem;
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Builder, Layout, Params, Plan, Space};

pub(super) fn findings(study: &Study) -> Vec<Finding> {
    vec![private_memory(study), root(study), double(study), binary(study)]
}

/// All cores read or write their own memory, on average beside each alone.
fn private_memory(study: &Study) -> Finding {
    let setup = &study.printed.setup;
    let bytes = setup.chunk_lines * setup.line_bytes;
    let plan = |cores: &[usize], reads: bool| {
        let one = |&core: &usize| match reads {
            true => (core, Space::In, slot(core, 0)),
            false => (core, slot(core, 0), Space::Out),
        };
        moves(setup.cores, bytes, 1, cores.iter().map(one))
    };
    let slower = [true, false].map(|reads| {
        let time = |cores: &[usize]| study.play(&plan(cores, reads), Fidelity::Line, 1, CHIP).per_rank;
        let all: Vec<usize> = (0..setup.cores).collect();
        let alone: u64 = all.iter().map(|&core| time(&[core])[core].0).sum();
        time(&all).iter().map(|t| t.0).sum::<u64>() as f64 / alone as f64 - 1.0
    });
    claim(
        "section 3.3, memory",
        "48 cores that use their private memory at once show no measurable degradation",
        format!(
            "{} lines a core: reads {:+.1} %, writes {:+.1} % beside each core alone; {} controllers, 5 ns a line",
            setup.chunk_lines,
            100.0 * slower[0],
            100.0 * slower[1],
            study.machine.mesh.as_ref().and_then(|m| m.controllers.value.as_ref()).map_or(0, |c| c.0.len())
        ),
        SAME.of(slower[0].max(slower[1])),
    )
}

/// Every core as the root.
fn root(study: &Study) -> Finding {
    let setup = &study.printed.setup;
    let time = |root: usize, lines: usize| {
        let problem =
            Problem { root, ..Problem::flat(Collective::Bcast, setup.cores, lines * setup.line_bytes) };
        study.latency(&planned("oc-bcast", &problem, &Params::new()), CHIP)
    };
    let found = [1, setup.chunk_lines].map(|lines| {
        let zero = time(0, lines);
        let off = (0..setup.cores).map(|root| time(root, lines) / zero - 1.0);
        off.fold((0.0f64, 0.0f64), |(low, high), off| (low.min(off), high.max(off)))
    });
    let most = found.iter().map(|(low, high)| high.max(-low)).fold(0.0, f64::max);
    let [one, chunk] = found.map(|(low, high)| format!("{:+.1} to {:+.1} %", 100.0 * low, 100.0 * high));
    claim(
        "section 6.1, root",
        "core 0 is the root; another gives similar results",
        format!(
            "latency with k = 7 of all 48 roots beside core 0's: a line {one}, {} lines {chunk}",
            setup.chunk_lines
        ),
        ALMOST.of(most),
    )
}

/// OC-Bcast of 48 chunks: MB/s.
fn with(study: &Study, params: Params) -> f64 {
    let setup = &study.printed.setup;
    let plan = study.bcast("oc-bcast", &params, setup.cores * setup.chunk_lines);
    study.throughput(&plan, Fidelity::Line, CHIP)
}

/// One slot of double size beside two.
fn double(study: &Study) -> Finding {
    let setup = &study.printed.setup;
    let (lines, bytes) = (setup.chunk_lines as u32, setup.chunk_lines * setup.line_bytes);
    let two = with(study, Params::new());
    let one = with(study, Params::new().with("slots", 1).with("chunk", 2 * bytes));
    let half = with(study, Params::new().with("slots", 1));
    let m = &study.model;
    let (get, put, memory) = (m.c_get_mpb(lines, 1), m.c_put_mem(lines, 1, 1), m.c_get_mem(lines, 1, 1));
    claim(
        "section 4.2",
        "double buffering improves throughput, ideally by 2: a buffer is filled while children copy from it",
        format!(
            "{} lines, k = 7: two slots of {lines} lines {two:.2} MB/s, one of {} {one:.2} (one of {lines} {half:.2}). Children copy while a \
             core copies to its memory, with one slot too. It pays where max(G, P) > M + flags: here {:.0} (get to a buffer), {:.0} (put) and \
             {:.0} us (get to memory); by the model {:.2} times",
            setup.cores * setup.chunk_lines,
            2 * lines,
            get.0 / 1e3,
            put.0 / 1e3,
            memory.0 / 1e3,
            double_buffering(m, setup.cores, lines, 7)
        ),
        two > one,
    )
}

/// Most flags of its own that a core sets before it waits, so that cores do not look in step.
const APART: usize = 13;

/// A core tells `k` others, who pass it on to `n` each, after it has set `APART + phase` flags of its own.
fn told(k: usize, n: usize, phase: usize) -> Plan {
    let mut b = Builder::new(Collective::Barrier, "told", &Params::new(), k + 1, 0, 0, 1);
    let (ready, own) = (b.flags("ready", Layout::Alone, 1), b.flags("own", Layout::Alone, 1));
    for i in 0..=k {
        let before = if i == 0 { APART + phase } else { (5 * i + 3 * phase) % APART };
        (1..=before as i32).for_each(|value| b.set(i, own.at(i, 0), value));
        if i > 0 {
            b.wait(i, ready.at(i, 0), 1);
        }
        (n * i + 1..=(n * i + n).min(k)).for_each(|j| b.set(i, ready.at(j, 0), 1));
    }
    b.finish()
}

/// Time until `k` others know, in us, simulated at distance 1: on average over the phases of their looks.
fn until_told(study: &Study, k: usize, n: usize) -> f64 {
    const PHASES: usize = 40;
    let set = study.model.flag_set(1).0;
    let time = |phase: usize| {
        let all = study.play(&told(k, n, phase), Fidelity::Line, 1, IDEAL).first.nanos();
        all - (APART + phase) as f64 * set
    };
    (0..PHASES).map(time).sum::<f64>() / PHASES as f64 / 1e3
}

/// Degrees of the notification tree.
fn binary(study: &Study) -> Finding {
    let m = &study.model;
    let (set, read) = (m.flag_set(1).0, m.flag_read(1).0);
    let shown = [7, 15, 47].map(|k| {
        let two = until_told(study, k, 2);
        let each = (2..=7).map(|n| (n, until_told(study, k, n)));
        let (n, least) = each.fold((0, f64::MAX), |best, next| if next.1 < best.1 { next } else { best });
        (n, format!("k = {k} {two:.2} us, least {least:.2} with {n}"))
    });
    let whole = best_degree(set, set + read, 7);
    let latency =
        |n: usize| study.latency(&study.bcast("oc-bcast", &Params::new().with("siblings", n), 1), CHIP);
    let rate = |n: usize| with(study, Params::new().with("siblings", n));
    claim(
        "section 4.1, binary",
        "a binary tree has the lowest notification latency, beside trees of higher degree",
        format!(
            "simulated at distance 1, on average over the phases of looks: {}. If a look counts whole, as in Table 2, k = 7 takes {:.2} us, \
             {:.2} with {}. Large trees: n (ln n - 1) = read / set, {:.1} with half a look and {:.1} with a whole one, and never less than e. \
             OC-Bcast on the chip, k = 7: a line {:.1} us, with degree 5 {:.1}; {:.2} MB/s and {:.2}",
            shown.each_ref().map(|s| s.1.as_str()).join("; "),
            siblings(set, set + read, 7, 2) / 1e3,
            whole.1 / 1e3,
            whole.0,
            ideal_degree(set, read / 2.0),
            ideal_degree(set, read),
            latency(2),
            latency(5),
            rate(2),
            rate(5)
        ),
        shown.iter().all(|s| s.0 == 2),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::put_get::PutGet;
    use crate::paper::limit::NUMBER;
    use crate::paper::Verdict;
    use lineweave_core::machine::Machine;

    /// The closed form, in which a set is seen after half a look, beside the simulated time: within the limit for numbers.
    #[test]
    fn notifications_take_what_the_formula_says() {
        let study = Study::new();
        let (set, read) = (study.model.flag_set(1).0, study.model.flag_read(1).0);
        for (k, n) in [1, 7, 47].into_iter().flat_map(|k| (1..=8).map(move |n| (k, n))) {
            let ours = siblings(set, set + read / 2.0, k, n) / 1e3;
            let played = until_told(&study, k, n);
            println!("{k} children, {n} each: {ours:.3} us, simulated {played:.3}");
            assert_eq!(
                NUMBER.beside(ours, played).verdict,
                Verdict::Holds,
                "{k} children, {n} each: {ours} us, simulated {played}"
            );
        }
    }

    /// The condition beside simulated chips on which a line to memory takes less and less.
    #[test]
    fn double_buffering_pays_where_the_formula_says() {
        for write_ns in [461.0, 300.0, 100.0, 20.0] {
            let mut study = Study::new();
            let mut machine: Machine = study.machine.clone();
            machine.mesh.as_mut().unwrap().memory_write_ns.value = Some(write_ns);
            study.model = PutGet::of(&machine).unwrap();
            study.machine = Box::leak(Box::new(machine));
            let rate = |slots: usize, chunk: usize| {
                let params = Params::new().with("slots", slots).with("chunk", chunk);
                study.throughput(&study.bcast("oc-bcast", &params, 4608), Fidelity::Chunk, IDEAL)
            };
            let (played, ours) = (rate(2, 3072) / rate(1, 6144), double_buffering(&study.model, 48, 96, 7));
            println!("{write_ns} ns: simulated {played:.3}, by the formula {ours:.3}");
            assert!((played / ours - 1.0).abs() < 0.05, "{write_ns} ns: simulated {played}, formula {ours}");
            assert_eq!(played > 1.0, ours > 1.0, "{write_ns} ns: simulated {played}, formula {ours}");
        }
    }
}

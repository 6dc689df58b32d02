//! Claims of chapter 6 about broadcasts, reductions, barriers and exchanges, beside RCCE and RCKMPI.

use super::{Study, MHZ, ROOT};
use crate::models::mesh::{Rows, Work};
use crate::paper::limit::{ALMOST, NUMBER};
use crate::paper::{claim, item, Basis, Finding, Verdict};
use lineweave_core::collective::Collective;
use lineweave_core::verify::verify;

pub(super) fn findings(study: &Study) -> Vec<Finding> {
    let mut out = bcast(study);
    out.extend(reductions(study));
    out.extend(barrier(study));
    out.extend(alltoall(study));
    out.extend([improvements(study), second_cache()]);
    out
}

/// Counts a barrier's messages for each root, and judges the claim of Figure 6.1.
pub(super) fn roots(study: &Study) -> Vec<Finding> {
    let setup = &study.printed.setup;
    let farthest = |root: usize| {
        let (x, y) = (root / 2 % setup.columns, root / 2 / setup.columns);
        x.max(setup.columns - 1 - x) + y.max(setup.rows - 1 - y) + 1
    };
    let plans = |root: usize| study.plan(Collective::Barrier, "noc-msg-published", setup.cores, root, 0);
    let rows = Rows { columns: setup.columns, wavelet: 1 };
    let steps = |root: usize| Work::of_plan(&plans(root), rows).map_or(0, |w| w.depth as usize);
    let counted: Vec<usize> = (0..setup.cores).map(steps).collect();
    let agree = (0..setup.cores).filter(|&root| counted[root] == farthest(root)).count();
    let least = counted.iter().min().copied().unwrap_or(0);
    let most = counted.iter().max().copied().unwrap_or(0);
    let best: Vec<usize> = (0..setup.cores).filter(|&r| counted[r] == least).collect();
    let took: Vec<f64> = (0..setup.cores).map(|r| study.play(&plans(r), 1).first.nanos() / 1e3).collect();
    let quickest = (0..setup.cores).min_by(|&a, &b| took[a].total_cmp(&took[b])).unwrap_or(0);
    let slowest = took.iter().copied().fold(0.0, f64::max);
    let middle = [(3, 1), (3, 2)].map(|(x, y)| 2 * (y * setup.columns + x));
    vec![
        item(
            "section 5.5, steps",
            agree,
            setup.cores,
            format!(
                "messages one after the other in the plan, for each root, beside the way to the farthest tile and one \
                 within it: {least} to {most}"
            ),
        )
        .on(Basis::ByConstruction),
        claim(
            "fig 6.1",
            "the root is best in the right middle of the second or third row",
            format!(
                "fewest messages ({least}) from cores {best:?}, both middle columns alike; simulated, core {quickest} is \
                 best with {:.2} us, the worst root takes {slowest:.2}",
                took[quickest]
            ),
            middle.iter().all(|core| best.contains(core)),
        ),
    ]
}

/// Judges the claims of section 6.2.2, about broadcasts.
fn bcast(study: &Study) -> Vec<Finding> {
    let (m, setup) = (&study.printed.measured, &study.printed.setup);
    let small = study.beside_rcce(Collective::Bcast, 4);
    let large = study.beside_rcce(Collective::Bcast, m.bcast_bytes);
    let at = |ranks| study.us(Collective::Bcast, "noc-msg", ranks, m.bcast_bytes);
    let (eight, all) = (at(8), at(setup.cores));
    let comm = study.rcce_comm(m.bcast_bytes) / all;
    let line = setup.line_bytes;
    let oc = |ranks: usize, bytes: usize| study.us(Collective::Bcast, "oc-bcast", ranks, bytes);
    let ours = |ranks: usize, bytes: usize| study.us(Collective::Bcast, "noc-msg", ranks, bytes);
    let (few, many) = (oc(16, line) / ours(16, line), oc(setup.cores, 1 << 18) / all);
    vec![
        claim(
            "fig 6.2a",
            "a short broadcast is an order of magnitude (3.2 to 32 times) faster than RCCE's",
            format!("4 bytes on {} cores: {small:.1} times as fast", setup.cores),
            order_of(small) == 1,
        ),
        claim(
            "fig 6.2a, RCKMPI",
            "and half an order of magnitude (1.8 to 5.6 times) faster than RCKMPI's",
            {
                let ratio = study.beside_rckmpi(Collective::Bcast, 4);
                format!("4 bytes: {ratio:.1} times as fast")
            },
            half_order(study.beside_rckmpi(Collective::Bcast, 4)),
        ),
        claim(
            "fig 6.2b",
            &format!("throughput improves by almost 150 %, {} times RCCE's", m.bcast_throughput),
            format!("{} bytes: {large:.2} times", m.bcast_bytes),
            NUMBER.beside(large, m.bcast_throughput),
        ),
        claim(
            "fig 6.2b, RCCE_comm",
            "so it does beside RCCE's faster broadcasts, of RCCE_comm",
            format!(
                "{} bytes: {comm:.2} times the better of its binomial tree and scatter-allgather",
                m.bcast_bytes
            ),
            NUMBER.beside(comm, m.bcast_throughput),
        ),
        claim(
            "fig 6.2c",
            "time for 256 KB is almost constant for any number of cores",
            format!("{eight:.0} us on 8 cores, {all:.0} on {}", setup.cores),
            ALMOST.beside(all, eight),
        ),
        claim(
            "fig 6.3, few cores",
            "faster than OC-Bcast for short messages on fewer than 32 cores",
            format!("a line on 16 cores: OC-Bcast takes {few:.2} times as long"),
            few > 1.0,
        ),
        claim(
            "fig 6.3, many cores",
            "slightly less throughput than OC-Bcast for long messages on many cores",
            format!("256 KiB on {} cores: OC-Bcast takes {many:.2} times as long", setup.cores),
            ALMOST.of(1.0 - many).and(many < 1.0),
        ),
    ]
}

/// Sections 6.2.3 and 6.2.4.
fn reductions(study: &Study) -> Vec<Finding> {
    let m = &study.printed.measured;
    let long = study.beside_rcce(Collective::Reduce, m.bcast_bytes);
    let mpich = study.beside_rckmpi(Collective::Reduce, m.bcast_bytes);
    let short = study.beside_rcce(Collective::Allreduce, 4);
    let page = study.beside_rcce(Collective::Allreduce, m.allreduce_bytes);
    vec![
        claim(
            "fig 6.4b",
            &format!("a reduction has up to {} times the throughput of RCCE's", m.reduce_throughput),
            format!("{} bytes: {long:.2} times", m.bcast_bytes),
            NUMBER.beside(long, m.reduce_throughput),
        ),
        claim(
            "fig 6.4c",
            &format!("a reduction of 256 KB takes {:.0} % of RCCE's cycles", m.reduce_cycles * 100.0),
            format!("{:.1} % ({:.1} times as fast)", 100.0 / long, long),
            NUMBER.beside(1.0 / long, m.reduce_cycles),
        ),
        claim(
            "fig 6.4, RCKMPI",
            &format!("and up to {} times that of RCKMPI", m.reduce_rckmpi),
            format!("{} bytes: {mpich:.2} times", m.bcast_bytes),
            NUMBER.beside(mpich, m.reduce_rckmpi),
        ),
        claim(
            "fig 6.5a",
            "a short allreduce is an order of magnitude (3.2 to 32 times) faster than RCCE's",
            format!("4 bytes: {short:.1} times as fast"),
            order_of(short) == 1,
        ),
        claim(
            "fig 6.5b",
            &format!("at 4 KB an allreduce has {} times RCCE's throughput", m.allreduce_throughput),
            format!("{page:.2} times"),
            NUMBER.beside(page, m.allreduce_throughput),
        ),
    ]
}

/// Sections 5.5 and 6.2.6.
fn barrier(study: &Study) -> Vec<Finding> {
    let setup = &study.printed.setup;
    let cores = setup.cores;
    let made = study.plan(Collective::Barrier, "noc-msg-published", cores, ROOT, 0);
    let refuted = verify(&made);
    let played = study.play(&made, 1);
    let rcce = study.us(Collective::Barrier, "centralized", cores, 0);
    let (published, corrected) =
        (played.first.nanos() / 1e3, study.us(Collective::Barrier, "noc-msg", cores, 0));
    let rckmpi = study.library("rckmpi", Collective::Barrier, 0);
    let ends = played.per_rank.iter().map(|p| p.0);
    let spread = ends.clone().max().unwrap_or(0) - ends.min().unwrap_or(0);
    let cycles = spread as f64 / 1e6 * MHZ;
    let faster = |name: &str, p: usize| {
        study.us(Collective::Barrier, "centralized", p, 0) / study.us(Collective::Barrier, name, p, 0)
    };
    let counts = [2, 4, 8, 12, 16, 24, 32, 40, 48];
    let won = |name: &str| counts.into_iter().filter(|&p| faster(name, p) >= 1.0).collect::<Vec<_>>();
    let (released, printed) = (won("noc-msg"), won("noc-msg-published"));
    vec![
        claim(
            "section 5.5",
            "the barrier ensures that all cores have come to a point of the program",
            match &refuted {
                Ok(_) => "proved".to_owned(),
                Err(violation) => format!("refuted: {}", violation.to_string().lines().next().unwrap_or_default()),
            },
            refuted.is_ok(),
        )
        .on(Basis::ByConstruction),
        claim(
            "fig 6.8",
            &format!("two orders of magnitude ({} times) faster than RCCE's", study.printed.measured.barrier_rcce),
            format!(
                "RCCE's {rcce:.1} us; as printed {published:.1}, {:.1} times as fast; with a release {corrected:.1}, {:.1} times",
                rcce / published,
                rcce / corrected
            ),
            order_of(rcce / corrected) == 2,
        ),
        claim(
            "fig 6.8, RCKMPI",
            &format!("almost three orders of magnitude ({} times) faster than RCKMPI", study.printed.measured.barrier_rckmpi),
            format!("a dissemination barrier over split buffers takes {rckmpi:.1} us: {:.1} times as long", rckmpi / corrected),
            order_of(rckmpi / corrected) == 3,
        ),
        claim(
            "fig 6.8, spread",
            "cores leave within a few hundred cycles of each other, odd ones first",
            format!("{cycles:.0} cycles of {MHZ} MHz between the first and the last"),
            cycles < 1000.0,
        ),
        claim(
            "fig 6.9",
            "faster than RCCE's on 2 to 48 cores",
            format!("of {counts:?} cores, no slower on {released:?} with a release, on {printed:?} as printed"),
            released.len() == counts.len(),
        ),
    ]
}

/// Judges the claims of section 6.2.5, about alltoall.
fn alltoall(study: &Study) -> Vec<Finding> {
    let m = &study.printed.measured;
    // Total lengths of the thesis are of 48 blocks.
    let short = [4, 32, 64, 128];
    let share = short.map(|block| study.alltoall("noc-msg", block) / study.alltoall("rckmpi", block));
    let uneven = [8, 32].map(|mean| study.alltoallv("noc-msg", mean) / study.alltoallv("rckmpi", mean));
    let best = short.into_iter().chain([1024, 4096]);
    let best = best
        .map(|block| study.alltoall("rckmpi", block) / study.alltoall("noc-msg", block))
        .fold(0.0, f64::max);
    let listed = |shares: &[f64]| {
        let each: Vec<String> = shares.iter().map(|s| format!("{:.0}", 100.0 * s)).collect();
        each.join(", ")
    };
    // The farthest from what is claimed.
    let off = |shares: &[f64]| shares.iter().map(|s| (s / m.alltoall_cycles - 1.0).abs()).fold(0.0, f64::max);
    vec![
        claim(
            "fig 6.6a",
            "alltoall takes half of RCKMPI's cycles below 8 KB",
            format!("{} % with 4, 32, 64 and 128 bytes for each core (192 bytes to 6 KiB)", listed(&share)),
            NUMBER.of(off(&share)),
        ),
        claim(
            "fig 6.7a",
            "so does alltoallv",
            format!("{} % with 8 and 32 bytes for each core on average", listed(&uneven)),
            NUMBER.of(off(&uneven)),
        ),
        claim(
            "fig 6.6b and 6.7b",
            &format!("up to {} times the throughput of RCKMPI", m.alltoall_throughput),
            format!("{best:.2} times at most, with 4 bytes to 4 KiB for each core"),
            NUMBER.beside(best, m.alltoall_throughput),
        ),
    ]
}

/// Abstract and chapter 7, of all collectives with data.
fn improvements(study: &Study) -> Finding {
    let m = &study.printed.measured;
    let mut ratios = vec![(
        "bcast by RCCE_comm's",
        study.rcce_comm(m.bcast_bytes) / study.library("noc-msg", Collective::Bcast, m.bcast_bytes),
    )];
    for (rcce, rckmpi, collective) in [
        ("bcast by RCCE's", "by RCKMPI's", Collective::Bcast),
        ("reduce by RCCE's", "by RCKMPI's", Collective::Reduce),
        ("allreduce by RCCE's", "by RCKMPI's", Collective::Allreduce),
    ] {
        ratios.push((rcce, study.beside_rcce(collective, m.bcast_bytes)));
        ratios.push((rckmpi, study.beside_rckmpi(collective, m.bcast_bytes)));
    }
    let block = 4096;
    let alltoall = study.alltoall("rckmpi", block) / study.alltoall("noc-msg", block);
    ratios.push(("alltoall of 4 KiB a core by RCKMPI's", alltoall));
    let each: Vec<String> = ratios.iter().map(|(name, ratio)| format!("{name} {ratio:.1}")).collect();
    claim(
        "abstract",
        "collectives have 2 to 9 times the throughput of prior designs",
        format!("{} bytes, times: {}", m.bcast_bytes, each.join(", ")),
        ratios.iter().all(|(_, ratio)| (2.0..=9.0).contains(ratio)),
    )
}

fn second_cache() -> Finding {
    let claimed = "throughput of reductions and exchanges drops beyond 256 KB, which the second cache holds";
    let why =
        "the simulated cores have a first cache only: no paper prints the times of the SCC's second one";
    claim("sections 6.2.3, 6.2.5", claimed, why, Verdict::NotReproduced)
}

/// The order of magnitude of a ratio: 1 from 3.2 to 32.
fn order_of(ratio: f64) -> i32 {
    ratio.log10().round() as i32
}

/// Half an order of magnitude.
fn half_order(ratio: f64) -> bool {
    (0.25..0.75).contains(&ratio.log10())
}

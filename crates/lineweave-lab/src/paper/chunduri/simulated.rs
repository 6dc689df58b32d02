//! Latencies, simulated on the machine of `machines/power8-8247-42l.toml`.
//!
//! Its transfers come from Table II alone; everything else here is predicted. The paper's flag of one integer, set
//! and reset, is two flags here, which take turns on a line (`layout=paired`) where a flag has a line.

use super::printed::{printed, ByChip, Chip};
use super::{barrier, on_cores, power8, tree};
use crate::paper::limit::{ALMOST, NUMBER, SAME};
use crate::paper::{claim, item, Finding, Verdict};
use crate::simulate::coherent::{self, placed, Settings};
use crate::simulate::Options;
use lineweave_core::plan::{Params, Plan};
use lineweave_core::topology::Shape;

/// Runs that an average is taken over.
const RUNS: usize = 20;

/// Prefetching as the machine does by default, and switched off (DSCR 40).
pub(super) const ON: Settings = Settings {
    flags_per_line: None,
    prefetch_lines: None,
    accesses_in_flight: None,
    threads_first: false,
    ideal: false,
};
pub(super) const OFF: Settings = Settings { prefetch_lines: Some(0), ..ON };

/// 32 integers a line, each of which two flags stand for.
pub(super) const INTEGERS: Settings = Settings { flags_per_line: Some(64), ..ON };

/// The paper's dissemination: the flag of a process, one line, which another process sets in each round.
pub(super) const DISSEMINATION: (&str, &[(&str, &str)]) = ("dissemination", &[("layout", "packed")]);
pub(super) const BINOMIAL: (&str, &[(&str, &str)]) = ("binomial", &[("home", "root"), ("layout", "paired")]);
/// The paper does not say the degree of its release, but that it is low.
pub(super) const TOURNAMENT: (&str, &[(&str, &str)]) =
    ("tournament", &[("home", "root"), ("layout", "paired"), ("release", "kary"), ("k", "2")]);
const CENTRALIZED: (&str, &[(&str, &str)]) =
    ("centralized", &[("home", "root"), ("layout", "paired"), ("release", "each")]);

pub(super) fn findings() -> Vec<Finding> {
    let mut out = vec![six(), seven(), farther(), flags()];
    out.extend(degrees());
    out.extend([spacing(), prefetching(), jump(), seven_and_all(), algorithms()]);
    out.extend([threads(), scaling(), centralized(), processes_192(), ping_pong(), posix()]);
    out
}

/// Microseconds from barrier to barrier.
pub(super) fn us(shape: &Shape, plan: &Plan, settings: Settings) -> f64 {
    let options = Options { runs: RUNS, coherent: settings, ..Options::default() };
    let outcome = coherent::simulate(power8(), shape, plan, &options);
    outcome.unwrap_or_else(|e| panic!("{}: {e}", plan.name())).each.nanos() / 1e3
}

/// A k-ary tree of `ranks` ranks, one a core.
pub(super) fn kary(ranks: usize, k: usize, settings: Settings) -> f64 {
    let shape = on_cores(ranks);
    us(&shape, &barrier("tree", &shape, &tree(k)), settings)
}

pub(super) fn chosen(ranks: usize, settings: Settings) -> f64 {
    kary(ranks, printed().text.degree_chosen, settings)
}

pub(super) fn named(shape: &Shape, (name, params): (&str, &[(&str, &str)]), settings: Settings) -> f64 {
    let params = params.iter().fold(Params::new(), |p, (key, value)| p.with(key, value));
    us(shape, &barrier(name, shape, &params), settings)
}

/// The chosen tree of `near` processes on chip A and one on another.
fn with_remote(near: usize, remote: Chip) -> f64 {
    let all = on_cores(24);
    let mut cpus: Vec<_> = (0..near).map(|r| all.cpu(r.into()).clone()).collect();
    let core = match remote {
        Chip::A => near,
        Chip::B => 6,
        Chip::C => 12,
        Chip::D => 18,
    };
    cpus.push(all.cpu(core.into()).clone());
    let shape = Shape::on(cpus);
    us(&shape, &barrier("tree", &shape, &tree(printed().text.degree_chosen)), OFF)
}

/// The largest factor between printed and ours, either way, less one.
fn factor(pairs: &[(f64, f64)]) -> f64 {
    pairs.iter().map(|(printed, ours)| (ours / printed).max(printed / ours) - 1.0).fold(0.0, f64::max)
}

fn shown(pairs: &[(f64, f64)]) -> String {
    let each: Vec<String> = pairs.iter().map(|(printed, ours)| format!("{ours:.2} ({printed})")).collect();
    each.join(", ")
}

pub(super) fn by_chip(near: usize, rows: &[ByChip]) -> Vec<(f64, f64)> {
    rows.iter().map(|row| (row.us, with_remote(near, row.remote))).collect()
}

fn six() -> Finding {
    let six = &printed().barrier_of_six;
    let ours = chosen(6, OFF);
    let more = chosen(6, Settings { accesses_in_flight: Some(5), ..OFF });
    let text = format!(
        "{ours:.3} us, the same for every placement; the root polls 4 of its 5 children at once, and with 5 in flight \
         it takes {more:.3} us"
    );
    let claimed = format!(
        "a barrier of six on a chip takes {} us ({} to {} over all placements)",
        six.average_us, six.min_us, six.max_us
    );
    claim("table III", &claimed, &text, Verdict::of(six.min_us <= ours && ours <= six.max_us))
}

fn seven() -> Finding {
    let pairs = by_chip(6, &printed().barrier_of_seven);
    let (agree, limit) = ALMOST.count(&pairs);
    item(
        "table IV: barrier of seven",
        agree,
        pairs.len(),
        format!("{limit}; ours (printed), us: {}", shown(&pairs)),
    )
}

fn farther() -> Finding {
    let times: Vec<f64> = by_chip(6, &printed().barrier_of_seven).iter().map(|p| p.1).collect();
    let ours: Vec<String> = times.iter().map(|t| format!("{t:.3}")).collect();
    claim(
        "table IV",
        "the farther the seventh process, the slower",
        format!("chips B, C, D: {} us", ours.join(", ")),
        Verdict::of(times.windows(2).all(|w| w[0] < w[1])),
    )
}

/// One integer, one line, five lines a flag.
fn flags() -> Finding {
    let text = &printed().text;
    let packed = laid_out("packed", INTEGERS);
    let (line, five) = (laid_out("paired", ON), laid_out("spread5", ON));
    let printed = [text.one_integer_a_flag_us, text.one_line_a_flag_us, text.five_lines_a_flag_us];
    let pairs: Vec<(f64, f64)> = printed.into_iter().zip([packed, line, five]).collect();
    let order = packed > line && line > five;
    claim(
        "sections VI.B, VI.D",
        "24 processes: 21 us with one integer a flag, 1.81 with one line, 1.04 with five",
        format!(
            "ours (printed), us: {}; {} order",
            shown(&pairs),
            if order { "the same" } else { "another" }
        ),
        NUMBER.of(factor(&pairs)).and(order),
    )
}

/// The best of some degrees, and what each takes.
fn best(settings: Settings) -> (usize, String) {
    let times: Vec<(usize, f64)> = (2..=12).chain([16, 23]).map(|k| (k, kary(24, k, settings))).collect();
    let best = times.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |t| t.0);
    let each: Vec<String> = times.iter().map(|(k, t)| format!("{k}: {t:.2}")).collect();
    (best, each.join(", "))
}

fn degrees() -> [Finding; 2] {
    let (on, with) = best(ON);
    let (off, without) = best(OFF);
    let degrees = &printed().text.best_degrees;
    [
        claim(
            "fig 2",
            "prefetching, one line a flag: degrees 5, 7 and 8 are best",
            format!("best is {on}; us by degree {with}"),
            Verdict::of(degrees.contains(&on)),
        ),
        claim(
            "fig 4",
            "without prefetching degree 5 is best",
            format!("best is {off}; us by degree {without}"),
            Verdict::of(off == printed().text.degree_chosen),
        ),
    ]
}

/// Lines a process, with the layouts that give them. With a line or more a flag, arrival and release of a process are that far apart, and the next
/// process's twice as far.
pub(super) const SPACINGS: [(usize, &str); 6] =
    [(1, "paired"), (2, "alone"), (4, "spread2"), (6, "spread3"), (8, "spread4"), (10, "spread5")];

/// 24 processes, flags laid out so.
pub(super) fn laid_out(layout: &str, settings: Settings) -> f64 {
    let shape = on_cores(24);
    us(&shape, &barrier("tree", &shape, &tree(printed().text.degree_chosen).with("layout", layout)), settings)
}

fn spacing() -> Finding {
    let times = SPACINGS.map(|(n, layout)| (n, laid_out(layout, ON)));
    let least = times.iter().map(|t| t.1).fold(f64::INFINITY, f64::min);
    let reached = times.iter().find(|t| t.1 < least * (1.0 + SAME.share)).map(|t| t.0);
    let each: Vec<String> = times.iter().map(|(n, t)| format!("{n}: {t:.3}")).collect();
    claim(
        "fig 3",
        "5 and 7 lines a flag are best: beyond the prefetcher's 4",
        format!(
            "us by lines a process {}: from {} on it is within {:.0} % of the least",
            each.join(", "),
            reached.map_or("none".to_owned(), |n| n.to_string()),
            100.0 * SAME.share
        ),
        Verdict::of(reached == Some(6)),
    )
}

fn prefetching() -> Finding {
    let degrees = 2..=8usize;
    let worse: Vec<usize> = degrees.filter(|&k| kary(24, k, ON) <= kary(24, k, OFF)).collect();
    let (on, off) = (chosen(24, ON), chosen(24, OFF));
    claim(
        "fig 4",
        "with one line a flag, no prefetching is faster at every degree",
        format!("of degrees 2 to 8 not faster at {worse:?}; at 5: {off:.3} us against {on:.3}"),
        Verdict::of(worse.is_empty()),
    )
}

fn jump() -> Finding {
    let times: Vec<f64> = (2..=24).map(|p| chosen(p, OFF)).collect();
    let steps: Vec<(usize, f64)> = times.windows(2).enumerate().map(|(i, w)| (i + 3, w[1] - w[0])).collect();
    let largest = steps.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |s| s.0);
    let at = |p: usize| times[p - 2];
    claim(
        "fig 5",
        "latency jumps at 7 processes, the first of which is on another chip",
        format!(
            "the largest step of all from 2 to 24 is at {largest}: {:.3} us at 6, {:.3} at 7 (printed 0.303 and 0.81)",
            at(6),
            at(7)
        ),
        Verdict::of(largest == 7),
    )
}

fn seven_and_all() -> Finding {
    let (seven, all) = (chosen(7, OFF), chosen(24, OFF));
    claim(
        "section VI.E",
        "24 processes take little longer than 7 (1.04 us and 0.81)",
        format!("{all:.2} us and {seven:.2}: {:.0} % (printed 28 %)", 100.0 * (all / seven - 1.0)),
        ALMOST.of(all / seven - 1.0),
    )
}

fn algorithms() -> Finding {
    let shape = on_cores(24);
    let ours = chosen(24, OFF);
    let others = [DISSEMINATION, BINOMIAL, TOURNAMENT].map(|a| (a.0, named(&shape, a, OFF)));
    let each: Vec<String> = others.iter().map(|(name, t)| format!("{name} {t:.2}")).collect();
    let rounds = named(&shape, ("dissemination", &[("layout", "alone")]), OFF);
    claim(
        "fig 6",
        "the k-ary tree is the fastest of four",
        format!(
            "k-ary {ours:.2} us, {}; dissemination with a line for each round's flag, which the paper has not, {rounds:.2}",
            each.join(", ")
        ),
        Verdict::of(others.iter().all(|o| ours < o.1)),
    )
}

/// The chosen tree, binomial and centralized with `smt` processes a core.
pub(super) fn with_threads(smt: usize) -> [f64; 3] {
    let shape = placed(power8(), 24 * smt).unwrap_or_else(|e| panic!("{e}"));
    let kary = us(&shape, &barrier("tree", &shape, &tree(printed().text.degree_chosen)), OFF);
    [kary, named(&shape, BINOMIAL, OFF), named(&shape, CENTRALIZED, OFF)]
}

fn threads() -> Finding {
    let pairs: Vec<(f64, f64)> =
        printed().threads.iter().map(|row| (row.tree_us, with_threads(row.smt)[0])).collect();
    let (agree, limit) = ALMOST.count(&pairs);
    let remark = format!(
        "{limit}; ours (printed), us: {}. Threads of a core cost no time here but on its cache: what they take \
         from each other's pipelines is not in the description",
        shown(&pairs)
    );
    item("table V: k-ary tree of threads", agree, pairs.len(), remark)
}

fn scaling() -> Finding {
    let beaten: Vec<usize> = (1..=8)
        .filter(|&smt| {
            let [kary, others @ ..] = with_threads(smt);
            others.iter().any(|&other| other <= kary)
        })
        .collect();
    claim(
        "fig 7",
        "the k-ary tree is best with any number of processes a core",
        format!("of k-ary, binomial and centralized, with 1 to 8 a core, another is as fast with {beaten:?}"),
        Verdict::of(beaten.is_empty()),
    )
}

fn centralized() -> Finding {
    let behind = (1..=8).find(|&smt| {
        let [_, binomial, centralized] = with_threads(smt);
        centralized > binomial
    });
    claim(
        "fig 7",
        "centralized falls behind the others from 3 processes a core",
        &match behind {
            Some(smt) => format!("it falls behind binomial from {smt} a core"),
            None => "it never falls behind binomial".to_owned(),
        },
        Verdict::of(behind == Some(3)),
    )
}

fn processes_192() -> Finding {
    let [ours, ..] = with_threads(8);
    let printed = printed().text.processes_192_us;
    claim(
        "section VI.G",
        "192 processes take 4.5 us",
        format!("{ours:.2} us; see table V"),
        NUMBER.of(factor(&[(printed, ours)])),
    )
}

fn ping_pong() -> Finding {
    let rows: Vec<String> = printed().ping_pong.iter().map(|row| row.us.to_string()).collect();
    claim(
        "table I",
        &format!("an empty MPI message takes {} us to chips A to D", rows.join(", ")),
        "what of it is the MPI library's is not printed; a line's way is in table II",
        Verdict::NotReproduced,
    )
}

fn posix() -> Finding {
    let most = printed().threads.iter().map(|row| row.posix_us / row.tree_us).fold(0.0, f64::max);
    claim(
        "table V",
        &format!("the POSIX barrier takes up to {most:.0} times as long"),
        "it sleeps in the kernel, which is not simulated",
        Verdict::NotReproduced,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The machine's transfers were taken from these four numbers and from nothing else: a test of the description, and no
    /// finding.
    #[test]
    fn table_ii_is_the_calibration() {
        for (printed, ours) in by_chip(1, &printed().barrier_of_two) {
            assert!((ours - printed).abs() < 0.005, "{ours} us, printed {printed}");
        }
    }
}

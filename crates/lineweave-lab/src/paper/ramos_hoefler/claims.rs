//! Claims that the paper makes in words, and results of its model.

use super::data::{self, PingPongTable, Row};
use super::simulated::usual;
use super::states::{computed, measured};
use super::{bridge, phi, Numbers};
use crate::models::cache_line::{bandwidth, deepest, small_broadcast_level, Comparison, CopyRate, Sample};
use crate::optimise::ramos_hoefler::{large_broadcast, small_broadcast, Large};
use crate::paper::limit::{ALMOST, SAME};
use crate::paper::{claim, Finding, Verdict};
use lineweave_core::algorithm::trees::Tree;
use lineweave_core::machine::{Location, State};

pub(super) fn claims() -> Vec<Finding> {
    let ping_pong = data::ping_pong();
    let (tables, samples) = (&ping_pong.table[..], ping_pong.samples);
    vec![
        rejected_on_bridge(tables, samples),
        rejected_on_phi(tables, samples),
        distance(tables, samples),
        noise(tables, samples),
        degrees_down_the_tree(),
        best_tree(),
        large_messages(),
        rates_beside_each_other(),
        across_packages(),
        many_across_packages(),
        within_a_package(),
        falls_across_packages(),
        short_messages(),
    ]
}

/// Rows of the tables whose name is in `names`, with the table.
fn rows<'a>(tables: &'a [PingPongTable], names: &[&str]) -> Vec<(&'a PingPongTable, Row)> {
    let chosen = tables.iter().filter(|t| names.contains(&t.name.as_str()));
    chosen.flat_map(|t| t.rows().into_iter().map(move |r| (t, r))).collect()
}

fn welch(table: &PingPongTable, row: &Row, samples: usize) -> Comparison {
    Comparison::welch(&computed(table, row, samples), &measured(row, samples))
}

fn rejected_on_bridge(tables: &[PingPongTable], samples: usize) -> Finding {
    let rows = rows(tables, &["table 2.1", "table 2.2", "table 2.3"]);
    let kept: Vec<String> = rows
        .iter()
        .map(|(t, r)| (t, r, welch(t, r, samples).p))
        .filter(|(_, _, p)| *p >= 0.01)
        .map(|(t, r, p)| format!("{}-{} of {} (p = {p:.2})", r.send.name(), r.recv.name(), t.name))
        .collect();
    let only = kept.len() == 1 && kept[0].starts_with("I-S of table 2.2");
    claim(
        "section 2.2",
        "on Sandy Bridge equal means are rejected with over 99 % except for I-S within a processor",
        format!("not rejected of {}: {}", rows.len(), kept.join(", ")),
        only,
    )
}

fn rejected_on_phi(tables: &[PingPongTable], samples: usize) -> Finding {
    let rows = rows(tables, &["table 2.4", "table 2.5", "table 2.6", "table 2.7"]);
    let least = rows
        .iter()
        .map(|(t, r)| (welch(t, r, samples), t, r))
        .min_by(|a, b| a.0.t.abs().total_cmp(&b.0.t.abs()))
        .expect("tables have rows");
    let (test, table, row) = least;
    // 93 to 99 % would be a p between 0.01 and 0.07 somewhere.
    let within = (0.01..=0.07).contains(&test.p);
    claim(
        "section 2.2",
        "on Xeon Phi equal means are rejected with a confidence of about 93 to 99 % in all cases",
        format!(
            "rejected in all {} with far more: the least |t| is {:.1} ({}-{} of {}), p = {:.0e}",
            rows.len(),
            test.t.abs(),
            row.send.name(),
            row.recv.name(),
            table.name,
            test.p
        ),
        within,
    )
}

fn distance(tables: &[PingPongTable], samples: usize) -> Finding {
    let names = ["table 2.5", "table 2.6", "table 2.7"];
    let all = rows(tables, &names);
    let (mut pairs, mut rejected, mut worst) = (0, 0, 0.0f64);
    for (i, (a, x)) in all.iter().enumerate() {
        for (b, y) in &all[i + 1..] {
            if a.name == b.name || (x.send, x.recv) != (y.send, y.recv) {
                continue;
            }
            let (x, y): (Sample, Sample) = (measured(x, samples), measured(y, samples));
            pairs += 1;
            rejected += usize::from(Comparison::welch(&x, &y).p < 0.01);
            worst = worst.max((x.mean - y.mean).abs() / x.stdev.min(y.stdev));
        }
    }
    claim(
        "section 2.4",
        "on Xeon Phi the distance between cores makes no difference",
        format!(
            "no difference above {worst:.2} standard deviations of one measurement; but with {samples} each, Welch's \
             test tells {rejected} of {pairs} pairs of distances apart with 99 %"
        ),
        worst < 1.0,
    )
}

fn noise(tables: &[PingPongTable], samples: usize) -> Finding {
    let rows = rows(tables, &["table 2.5", "table 2.6", "table 2.7"]);
    let above: Vec<&(&PingPongTable, Row)> =
        rows.iter().filter(|(t, r)| welch(t, r, samples).difference.abs() >= r.measured[1].value).collect();
    let invalid = above.iter().filter(|(_, r)| r.send == State::I).count();
    claim(
        "section 2.4",
        "between cores of the Xeon Phi the estimate is off by less than the standard deviation, except for some \
         invalid lines",
        format!("{} of {} rows are off by more, {invalid} of them of invalid lines", above.len(), rows.len()),
        invalid == above.len(),
    )
}

fn degrees_down_the_tree() -> Finding {
    let printed = data::parameters();
    let rows = || printed.broadcast.iter().chain(&printed.reduction).map(|r| &r.degrees);
    let rising = rows().filter(|d| d.windows(2).all(|w| w[0] <= w[1])).count();
    let falling = rows().filter(|d| d.windows(2).all(|w| w[0] >= w[1])).count();
    let all = rows().count();
    claim(
        "Eq. 4.7",
        "the degrees obey k_i <= k_j for i < j",
        format!(
            "the wrong way round: {falling} of {all} rows of tables B.1 and B.3 do not rise downwards, {rising} (of \
             even degrees) do not fall; the text of 4.1.2 expects k to decrease"
        ),
        rising == all,
    )
}

fn best_tree() -> Finding {
    let n = Numbers::of_phi();
    let level = |k: usize| small_broadcast_level(&n.reads, &n.t_c, k);
    let cost = |tree: &Tree| n.reads.invalid + deepest(0, &tree.children, &level).min;
    let best = |p: usize| small_broadcast(&n.reads, &n.t_c, p).cost_ns;
    let beaten = (2..=60).filter(|&p| usual(p).iter().any(|(_, tree)| cost(tree) < best(p) - 1e-6)).count();
    let at_60: Vec<String> =
        usual(60).iter().map(|(name, tree)| format!("{name} {:.0}", cost(tree))).collect();
    claim(
        "fig 4.4",
        "the optimised tree is the fastest of flat, binomial, 3-nomial and Fibonacci trees",
        format!(
            "by the model of Eq. 4.7 beaten at {beaten} of 59 numbers of threads; at 60: optimised {:.0} ns, {}",
            best(60),
            at_60.join(", ")
        ),
        beaten == 0,
    )
}

fn large_messages() -> Finding {
    let n = Numbers::of_phi();
    let flat = |p: usize, lines: usize| {
        let ways = [Large::Flat, Large::Pipelined].map(|w| w.model(&n.reads, &n.t_c, &n.t_n, p, lines));
        ways[0].min <= ways[1].min && ways[0].max <= ways[1].max
    };
    let sizes = [1, 2, 4, 8, 16, 32, 64, 128, 1024, 16_384];
    let from = |lines: usize| (2..=60).find(|&p| (p..=60).all(|q| flat(q, lines)));
    let everywhere = (3..=60).all(|p| sizes.iter().all(|&lines| flat(p, lines)));
    let at = |way: Large| way.model(&n.reads, &n.t_c, &n.t_n, 60, 128);
    let choice = large_broadcast(&n.reads, &n.t_c, &n.t_n, 60, 128);
    let (a, b) = (at(Large::Flat), at(Large::Pipelined));
    claim(
        "section 4.1.3",
        "the flat tree is expected to be faster than the pipelined broadcast for large messages",
        format!(
            "for 8 kb and 60 threads {:.0} to {:.0} us flat, {:.0} to {:.0} us pipelined ({:.1} times the bound for \
             the flat one); flat is not slower, best and worst case, from {} threads on at 8 kb, {}at other sizes",
            a.min / 1e3,
            a.max / 1e3,
            b.min / 1e3,
            b.max / 1e3,
            choice.ratio(),
            from(128).map_or("no".to_owned(), |p| p.to_string()),
            if everywhere { "and so " } else { "not everywhere " },
        ),
        choice.choice == Large::Flat && (3..=60).all(|p| flat(p, 128)),
    )
}

pub(super) fn rate(location: Location, threads: usize, bridged: bool) -> CopyRate {
    let machine = if bridged { bridge() } else { phi() };
    bandwidth(machine, location, threads).expect("Appendix A's P and F are in the machine file")
}

/// MB/s as the paper has them, of very long messages.
fn megabytes(rate: &CopyRate) -> f64 {
    rate.asymptote() * 1e3
}

fn rates_beside_each_other() -> Finding {
    let (theirs, few, many) = (
        megabytes(&rate(Location::Package, 60, false)),
        megabytes(&rate(Location::Package, 4, true)),
        megabytes(&rate(Location::Package, 16, true)),
    );
    claim(
        "section A.3",
        "the Xeon Phi's bandwidth is almost five times lower than Sandy Bridge's",
        format!(
            "by Eq. A.1 with the printed P and F: {theirs:.0} MB/s beside {few:.0} (2 and 4 threads) and {many:.0} (8 and 16): \
             {:.1} and {:.1} times",
            few / theirs,
            many / theirs
        ),
        ALMOST.of([few, many].map(|rate| (rate / theirs / 5.0 - 1.0).abs()).into_iter().fold(f64::MAX, f64::min)),
    )
}

fn across_packages() -> Finding {
    let (within, across) =
        (megabytes(&rate(Location::Package, 4, true)), megabytes(&rate(Location::Machine, 4, true)));
    let less = 100.0 * (1.0 - across / within);
    claim(
        "section A.2",
        "2 or 4 communicating threads seem not to degrade bandwidth, even across QPI",
        format!("by Eq. A.1 with the printed P and F: {across:.0} MB/s across, {within:.0} within, {less:.0} % less"),
        SAME.of(less / 100.0),
    )
}

fn many_across_packages() -> Finding {
    let of = |threads: usize| megabytes(&rate(Location::Machine, threads, true));
    let less = |threads: usize| 100.0 * (1.0 - of(threads) / of(4));
    claim(
        "section A.2",
        "across QPI bandwidth degrades above 8 threads, severely with 16",
        format!(
            "by Eq. A.1 with the printed P and F: {:.0} MB/s with 4, {:.0} with 8 ({:.0} % less), {:.0} with 16 ({:.0} % \
             less)",
            of(4),
            of(8),
            less(8),
            of(16),
            less(16)
        ),
        less(8) > 0.0 && less(16) > 2.0 * less(8),
    )
}

fn within_a_package() -> Finding {
    let [few, many] = [4, 16].map(|threads| megabytes(&rate(Location::Package, threads, true)));
    claim(
        "fig A.5",
        "within a processor the curves of 2 or 4 and of 8 or 16 threads are very similar",
        format!(
            "by Eq. A.1 with the printed P and F: {few:.0} and {many:.0} MB/s, {:.0} % less",
            100.0 * (1.0 - many / few)
        ),
        ALMOST.of(1.0 - many / few),
    )
}

fn falls_across_packages() -> Finding {
    let of = |threads: usize| megabytes(&rate(Location::Machine, threads, true));
    claim(
        "fig A.8",
        "across QPI measured bandwidth falls at 2 MiB with 8 threads, at 1 MiB with 16; the model has no such fall",
        format!("the model tends to {:.0}, {:.0} and {:.0} MB/s with 4, 8 and 16; what was measured is a picture", of(4), of(8), of(16)),
        Verdict::NotReproduced,
    )
}

fn short_messages() -> Finding {
    let limit = megabytes(&rate(Location::Package, 60, false));
    claim(
        "fig A.12",
        "on the Xeon Phi the model with F = 5.8 fits, except for messages under 256 kb",
        format!("the model tends to {limit:.0} MB/s; what was measured is a picture"),
        Verdict::NotReproduced,
    )
}

//! Figures 7, 10 to 12, 15 and 17: MPICH's and Open MPI's algorithms on simulated machines of Lusitania's and
//! Metropolis' shape.
//!
//! The paper prints no time of either machine, so speeds are unknown. Errors and ratios do not depend on the speed of one
//! copy. They depend on how many copies at once memory bears at full speed, which is not printed either. For Lusitania it
//! is taken from what is printed of Fig. 17 ([`bears`]), and from nothing else; half as many, and so many that nothing
//! contends, show how much hangs on it. Each cell has a memory of its own: with one for all, Fig. 17's ratio would grow with P. Writing takes 1.5 and 2 times as long as reading (section 5). What is "measured" is simulated
//! (`simulate/copies.rs`); the models' parameters are measured on the same simulated machine, as the paper does it: L(S,
//! tau) by its ring, log_nP's o by half a message, LogGP's by messages of two lengths.

use super::equations::S;
use super::setups::{self, Setup};
use crate::models::tau_lop::{Transfers, Way};
use crate::models::{levels, Form};
use crate::paper::given::{machine, planned};
use crate::paper::{claim, Basis, Finding};
use crate::simulate::copies::{simulate, Rates};
use crate::simulate::Options;
use lineweave_core::algorithm::Problem;
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Params, Plan};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Copies that the memory of one of Lusitania's cells of eight cores might bear at full speed.
const TRIED: [f64; 11] = [1.0, 2.0, 3.0, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0, 8.0];
/// Copies that the memory of one of Metropolis' nodes of four cores might bear.
const METROPOLIS: [f64; 3] = [1.0, 2.0, 4.0];
/// Ranks of Fig. 17.
pub(super) const DEARER: [usize; 3] = [32, 64, 128];
/// Ranks of the figures.
pub(super) const RANKS: [usize; 7] = [2, 4, 8, 16, 32, 64, 128];

/// A simulated machine and what its models were given.
pub(super) struct Bench {
    rates: Rates,
    homes: Vec<usize>,
    /// L(S, tau), measured once.
    transfers: RefCell<BTreeMap<u64, f64>>,
}

impl Bench {
    /// The machine of this name, if its memory, or that of each node, bears so many copies.
    fn new(name: &str, interleaved: bool, bears: f64, write: f64) -> Bench {
        let topology = machine(name).topology().unwrap_or_default();
        let homes = topology.cpus.iter().map(|cpu| if interleaved { 0 } else { cpu.numa }).collect();
        // Segments a ns: the unit of time is that of reading a segment alone.
        Bench { rates: Rates { copy: S as f64 / 1e3, bears, write }, homes, transfers: RefCell::default() }
    }

    pub(super) fn lusitania(bears: f64) -> Bench {
        Bench::new("lusitania", false, bears, 1.5)
    }

    fn metropolis(bears: f64) -> Bench {
        Bench::new("metropolis", false, bears, 2.0)
    }

    /// Returns the time of a plan, in ns; 1,000 for reading a segment alone.
    pub(super) fn time(&self, plan: &Plan) -> f64 {
        let outcome = simulate(self.rates, &self.homes, plan, &Options::default());
        outcome.unwrap_or_else(|e| panic!("{} on copies alone: {e}", plan.name())).first.nanos()
    }

    fn of_table(&self, collective: Collective, name: &str, ranks: usize, bytes: u64, params: &Params) -> f64 {
        let problem = Problem::flat(collective, ranks, bytes as usize);
        self.time(&planned(name, &problem, params))
    }

    /// MPICH's collective of `k` segments: a rank's part, where ranks have parts.
    pub(super) fn mpich(&self, form: Form, ranks: usize, k: u64) -> f64 {
        let params = Params::new().with("chunk", S).with("slots", 2);
        let of = |collective, key: &str, method: &str| {
            let params =
                if method.is_empty() { params.clone() } else { params.clone().with("method", method) };
            self.of_table(collective, key, ranks, k * S, &params)
        };
        match form {
            Form::Scatter => of(Collective::Scatter, "rckmpi", ""),
            Form::DoublingAllgather => of(Collective::Allgather, "rckmpi", "doubling"),
            Form::RingAllgather => of(Collective::Allgather, "rckmpi", "ring"),
            Form::TwoSegmentTree { .. } => {
                self.of_table(Collective::Bcast, "two-segment-tree", ranks, k * S, &Params::new())
            }
            _ => of(Collective::Bcast, "rckmpi", "short"),
        }
    }

    /// A message of `k` segments.
    fn ping(&self, k: u64) -> f64 {
        self.mpich(Form::BinomialBcast, 2, k)
    }

    /// L(S, tau) by the ring of section 5.
    fn l(&self, tau: u64) -> f64 {
        *self.transfers.borrow_mut().entry(tau).or_insert_with(|| self.by(Setup::Ring, tau as usize))
    }

    /// L(S, tau) by one of the set-ups.
    pub(super) fn by(&self, setup: Setup, tau: usize) -> f64 {
        self.time(&setup.plan(tau.clamp(1, self.homes.len()))) / setup.stages() as f64
    }

    fn cost(&self, transfers: &Transfers) -> f64 {
        transfers.cost(|t| self.l(t.tau) * t.bytes as f64 / S as f64)
    }

    /// tau-Lop, log_nP and LogGP.
    fn models(&self, form: Form, ranks: usize, k: u64) -> [f64; 3] {
        let stages = f64::from(lineweave_core::units::ceil_log2(ranks));
        let (p, parts) = (ranks as u64, ranks as f64 - 1.0);
        // Everybody's parts together, where ranks have parts.
        let bytes = match form {
            Form::DoublingAllgather | Form::RingAllgather | Form::Scatter => p * k * S,
            _ => k * S,
        };
        let tau = self.cost(&Way::MPICH.collective(form, ranks, bytes).unwrap_or_default());
        // With o = g = 0 (S - 1) G is what a segment more takes, and L the rest of one alone.
        let (one, many) = (self.ping(1), self.ping(33));
        let (segment, latency) = ((many - one) / 32.0, one - (many - one) / 32.0);
        let loggp = |k: f64| latency + k * segment;
        let (logn, loggp) = match form {
            Form::DoublingAllgather => (parts * self.ping(k), parts * k as f64 * (segment + latency)),
            Form::RingAllgather => (parts * self.ping(k), parts * loggp(k as f64)),
            Form::TwoSegmentTree { degree } => {
                let height = levels(ranks, degree) as f64;
                (height * self.ping(k), height * loggp(k as f64))
            }
            _ => (stages * self.ping(k), stages * loggp(k as f64)),
        };
        [tau, logn, loggp]
    }

    /// The mean of |R - E| / R over lengths, of tau-Lop, log_nP and LogGP.
    fn errors(&self, form: Form, ranks: usize, lengths: &[u64]) -> [f64; 3] {
        let mut sums = [0.0; 3];
        for &k in lengths {
            let real = self.mpich(form, ranks, k);
            for (sum, model) in sums.iter_mut().zip(self.models(form, ranks, k)) {
                *sum += (real - model).abs() / real / lengths.len() as f64;
            }
        }
        sums
    }
}

/// Values of `bears` that were tried, with the ratios of Fig. 17, and the first and last of those with which all are within 2.5 to 3.5.
struct Calibration {
    ratios: Vec<(f64, [f64; 3])>,
    range: Option<(f64, f64)>,
}

fn calibration() -> &'static Calibration {
    static FOUND: LazyLock<Calibration> = LazyLock::new(|| {
        let at = |bears| (bears, DEARER.map(|p| ratio(&Bench::lusitania(bears), p, 1)));
        let ratios: Vec<(f64, [f64; 3])> = TRIED.into_iter().map(at).collect();
        let inside = ratios.iter().filter(|(_, r)| r.iter().all(|r| (2.5..=3.5).contains(r)));
        let inside: Vec<f64> = inside.map(|(bears, _)| *bears).collect();
        let range = inside.first().copied().zip(inside.last().copied());
        Calibration { ratios, range }
    });
    &FOUND
}

/// Half as many copies as a cell's memory bears by Fig. 17, as many, and those of all its cores. By Fig. 17 it is the number
/// whose ratios come nearest to 3 throughout.
pub(super) fn bears() -> [f64; 3] {
    let off = |r: &[f64; 3]| r.iter().map(|r| (r - 3.0).abs()).fold(0.0, f64::max);
    let nearest = calibration().ratios.iter().min_by(|a, b| off(&a.1).total_cmp(&off(&b.1)));
    let chosen = nearest.map_or(1.0, |n| n.0);
    [chosen / 2.0, chosen, 8.0]
}

/// A figure of errors.
pub(super) struct Errors {
    pub(super) item: &'static str,
    pub(super) what: &'static str,
    pub(super) form: Form,
    lengths: &'static [u64],
    /// Claim of the paper about the figure.
    claimed: &'static str,
    /// Errors of the three models, for each of [`bears`] and of [`RANKS`].
    pub(super) found: Vec<Vec<[f64; 3]>>,
}

/// Returns the errors of Figures 10, 11, 12 and 15.
pub(super) fn errors() -> &'static [Errors] {
    static FOUND: LazyLock<Vec<Errors>> = LazyLock::new(|| {
        let long: &'static [u64] = &[1, 4, 16, 64];
        let parts: &'static [u64] = &[1, 2];
        [
            (
                "fig 10",
                "binomial broadcast",
                Form::BinomialBcast,
                long,
                "tau-Lop's error falls with P, log_nP's ends up growing",
            ),
            (
                "fig 11",
                "recursive-doubling allgather",
                Form::DoublingAllgather,
                parts,
                "tau-Lop's error is less than log_nP's and LogGP's, and constant as P grows",
            ),
            (
                "fig 12",
                "ring allgather",
                Form::RingAllgather,
                parts,
                "tau-Lop's mean error is less than log_nP's and LogGP's",
            ),
            (
                "fig 15",
                "Open MPI's broadcast",
                Form::TwoSegmentTree { degree: 2 },
                long,
                "tau-Lop's error remains stable, log_nP's varies erratically with P",
            ),
        ]
        .into_iter()
        .map(|(item, what, form, lengths, claimed)| {
            let at = |bench: &Bench| RANKS.map(|p| bench.errors(form, p, lengths)).to_vec();
            let found = bears().map(|bears| at(&Bench::lusitania(bears))).to_vec();
            Errors { item, what, form, lengths, claimed, found }
        })
        .collect()
    });
    &FOUND
}

/// Recursive doubling by scatter, of `k` segments a rank.
pub(super) fn ratio(bench: &Bench, ranks: usize, k: u64) -> f64 {
    bench.mpich(Form::DoublingAllgather, ranks, k) / bench.mpich(Form::Scatter, ranks, k)
}

pub(super) fn claims() -> Vec<Finding> {
    let mut list = vec![message()];
    list.extend(errors().iter().map(compared));
    list.push(dearer());
    list.extend(setups::claims());
    list
}

/// Judges the claim of Figure 7, about the error of a message's cost.
fn message() -> Finding {
    let lengths = [8, 16, 32, 64, 128, 256];
    let of = |bears: f64| {
        let bench = Bench::metropolis(bears);
        let mean = |model: &dyn Fn(u64) -> f64| {
            let each = lengths.map(|k| (model(k) / bench.ping(k) - 1.0).abs());
            100.0 * each.iter().sum::<f64>() / each.len() as f64
        };
        let segmented = |k: u64| 2.0 * bench.l(1) + (k - 1) as f64 * bench.l(2);
        [mean(&segmented), mean(&|k| 2.0 * k as f64 * bench.l(1))]
    };
    let found = METROPOLIS.map(of);
    let each: Vec<String> =
        METROPOLIS.iter().zip(found).map(|(b, [s, w])| format!("{b}: {s:.1} and {w:.1} %")).collect();
    claim(
        "fig 7",
        "mean relative error of a message on Metropolis 13.8 % with segments (Eq. 10), 30.2 % without (Eq. 11)",
        format!(
            "by copies that a node's memory bears, which is not printed, {}: less with segments wherever two copies overlap",
            each.join(", ")
        ),
        found.iter().skip(1).all(|[segmented, whole]| segmented < whole),
    )
}

fn percent(errors: [f64; 3]) -> String {
    let [tau, logn, loggp] = errors.map(|e| (100.0 * e).round());
    format!("{tau} / {logn} / {loggp} %")
}

/// Judges the claim of one of Figures 10, 11, 12 and 15.
fn compared(figure: &Errors) -> Finding {
    let at = |errors: &[[f64; 3]], ranks: usize| errors[RANKS.iter().position(|&p| p == ranks).unwrap_or(0)];
    let (few, many) = (8, RANKS[RANKS.len() - 1]);
    let each: Vec<String> = bears()
        .iter()
        .zip(&figure.found)
        .map(|(b, e)| {
            format!("{b}: {} with 8 ranks, {} with {many}", percent(at(e, few)), percent(at(e, many)))
        })
        .collect();
    // With the number that Fig. 17 gives.
    let e = &figure.found[1];
    let (first, last) = (at(e, few), at(e, many));
    let beyond: Vec<[f64; 3]> = RANKS.iter().zip(e).filter(|(p, _)| **p >= few).map(|(_, e)| *e).collect();
    let spread = |i: usize| {
        beyond.iter().map(|e| e[i]).fold(0.0, f64::max)
            - beyond.iter().map(|e| e[i]).fold(f64::INFINITY, f64::min)
    };
    let holds = match figure.form {
        Form::BinomialBcast => last[0] <= first[0] && last[1] > first[1],
        Form::TwoSegmentTree { .. } => spread(0) < spread(1),
        _ => beyond.iter().all(|[tau, logn, loggp]| tau < logn && tau < loggp),
    };
    let segments: Vec<String> = figure.lengths.iter().map(u64::to_string).collect();
    claim(
        figure.item,
        figure.claimed,
        format!(
            "{} on Lusitania's shape, {} segments; tau-Lop / log_nP / LogGP by copies that a cell's memory bears (the middle one by Fig. 17), {}",
            figure.what,
            segments.join(", "),
            each.join("; ")
        ),
        holds,
    )
}

/// Judges the claim of Figure 17, that recursive doubling is dearer than scatter.
fn dearer() -> Finding {
    let found = calibration();
    let each: Vec<String> =
        found.ratios.iter().map(|(b, r)| format!("{b}: {:.1}, {:.1}, {:.1}", r[0], r[1], r[2])).collect();
    let range = match found.range {
        Some((low, high)) if low == high => {
            format!("so it is where a cell's memory bears {low} copies at full speed")
        }
        Some((low, high)) => {
            format!("so it is where a cell's memory bears {low} to {high} copies at full speed")
        }
        None => "so it is with no number of copies that a cell's memory bears at full speed".to_owned(),
    };
    let shared = DEARER.map(|p| ratio(&Bench::new("lusitania", true, 24.0, 1.5), p, 1));
    claim(
        "fig 17",
        "measured on Lusitania, recursive doubling is 2.5 to 3.5 times dearer than scatter for any m and P = 32, 64, 128",
        format!(
            "{range}; by that number {}. With one memory for all cells it grows with P ({:.1}, {:.1}, {:.1} for 24 copies). By \
             Eq. 8 the model permits 2 to 2 (P - 1) / log2 P (36.3 for 128)",
            each.join("; "),
            shared[0],
            shared[1],
            shared[2]
        ),
        found.range.is_some(),
    )
    // How many copies memory bears is taken from this figure.
    .on(Basis::Calibrated)
}

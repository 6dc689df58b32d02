//! The search over algorithms, parameters and windows.

use super::{ring_banks, walk, Candidate, Question};
use crate::algorithm::{self, Algorithm};
use crate::cost::{cost_with, Options};
use crate::model::Model;
use crate::plan::{Op, Params, Plan, PlanError, Reuse, Space};
use crate::units::{Nanos, Rank};
use std::cmp::Ordering;

/// Windows tried of one algorithm: the largest that fit.
const WINDOWS: usize = 3;
/// Smaller windows than this cost more in flags than they save.
const SMALLEST: usize = 4096;
/// How many of the first are played in full.
const FINALISTS: usize = 4;
/// Ops built and played in the first pass, at most, and as many more for each rank; an op takes some 200 ns.
const BUDGET: (usize, usize) = (200_000, 8_000);
/// So many ops are made in the time in which one is played.
const MADE: usize = 4;
/// Ops of a plan for each rank, at most: a longer one takes more time to make and to prove than it can save, and
/// the same algorithm has it in smaller windows.
const OPS_A_RANK: usize = 1024;
/// Plans of windows larger than this are made for a part of the window first, which tells how many ops the whole has.
const PROBED: usize = 64 << 10;
/// As many times smaller is that part.
const PART: usize = 16;
/// Ops that each rank may have for every other one, in the part: no plan of that is too long.
const FEW: usize = 4;
/// The first pass plays two runs; a candidate that needs longer than this many times the best is given up.
const GIVE_UP: f64 = 4.0;

/// How long calls follow each other without a pause, in ns: as long as a batch of `bench` and `tune`.
const BATCH: f64 = 50e3;

/// A search under way.
pub struct Search<'a> {
    model: &'a Model,
    question: &'a Question,
    found: Vec<Found>,
    /// Plans that did not apply or did not fit.
    unfit: usize,
    /// Ops that may still be played.
    budget: usize,
    best: f64,
}

/// A candidate that was costed.
#[derive(Clone)]
struct Found {
    candidate: Candidate,
    /// Its algorithm's place in the table.
    place: usize,
    /// Whether it was played in full.
    full: bool,
}

/// The plans of one algorithm that fit, one by one.
struct Walk {
    algorithm: &'static Algorithm,
    place: usize,
    /// Windows still to try, the largest last.
    windows: Vec<usize>,
    window: usize,
    /// Parameter sets still to try for this window.
    params: std::vec::IntoIter<Params>,
    /// Whether a plan for this window fitted.
    fits: bool,
    fitting: usize,
    /// Parameter sets that were asked about their brackets, and the answer.
    asked: Vec<(Params, bool)>,
}

impl Walk {
    fn associates(&mut self, question: &Question, params: &Params) -> bool {
        if let Some((_, answer)) = self.asked.iter().find(|(asked, _)| asked == params) {
            return *answer;
        }
        let answer = question.associates(self.algorithm, params);
        self.asked.push((params.clone(), answer));
        answer
    }

    /// Whether a plan would have more ops than is sensible, judged by one for a part of its window.
    fn is_too_long(&self, question: &Question, params: &Params, budget: &mut usize) -> bool {
        let part = self.window / PART / question.grain * question.grain;
        if self.window <= PROBED || part == 0 {
            return false;
        }
        let most = |plan: &Plan| plan.programs.iter().map(Vec::len).max().unwrap_or(0);
        let part = self.algorithm.plan(&question.window(part), params);
        spend(budget, &part);
        part.is_ok_and(|plan| most(&plan) * PART > OPS_A_RANK.max(PART * FEW * question.shape.ranks()))
    }

    fn new(algorithm: &'static Algorithm, place: usize, question: &Question) -> Walk {
        let mut windows = windows(question);
        windows.reverse();
        let params = Vec::new().into_iter();
        Walk { algorithm, place, windows, window: 0, params, fits: false, fitting: 0, asked: Vec::new() }
    }

    /// The next plan that fits; none when there is none, or when a search that `may_stop` has spent its budget.
    fn next(
        &mut self,
        question: &Question,
        line_bytes: usize,
        unfit: &mut usize,
        budget: &mut usize,
        may_stop: bool,
    ) -> Option<(Params, Plan)> {
        loop {
            if may_stop && *budget == 0 {
                return None;
            }
            let Some(params) = self.params.next() else {
                self.fitting += usize::from(std::mem::take(&mut self.fits));
                if self.fitting == WINDOWS {
                    return None;
                }
                self.window = self.windows.pop()?;
                self.params = question.candidates(self.algorithm, self.window).into_iter();
                continue;
            };
            if self.is_too_long(question, &params, budget) {
                *unfit += 1;
                continue;
            }
            let plan = self.algorithm.plan(&question.window(self.window), &params);
            spend(budget, &plan);
            match plan {
                Ok(plan) if question.fits(&plan, line_bytes) && self.associates(question, &params) => {
                    self.fits = true;
                    return Some((params, plan));
                }
                Ok(_) | Err(_) => *unfit += 1,
            }
        }
    }
}

/// Making an op takes a fraction of playing it.
fn spend(budget: &mut usize, plan: &Result<Plan, PlanError>) {
    if let Ok(plan) = plan {
        *budget = budget.saturating_sub(ops(plan) / MADE);
    }
}

fn ops(plan: &Plan) -> usize {
    plan.programs.iter().map(Vec::len).sum()
}

impl<'a> Search<'a> {
    /// Nothing searched yet.
    pub fn new(model: &'a Model, question: &'a Question) -> Search<'a> {
        let budget = BUDGET.0 + BUDGET.1 * question.shape.ranks();
        Search { model, question, found: Vec::new(), unfit: 0, budget, best: f64::INFINITY }
    }

    /// Costs every candidate roughly, then the best of them in full.
    pub fn run(&mut self) {
        let table = algorithm::table(self.question.collective);
        let mut walks: Vec<Walk> =
            table.iter().enumerate().map(|(place, a)| Walk::new(a, place, self.question)).collect();
        // Algorithms take turns, so that each has had its first candidates costed when the budget is spent.
        while !walks.is_empty() {
            walks.retain_mut(|walk| {
                let may_stop = self.best.is_finite();
                let line = self.model.line_bytes;
                let next = walk.next(self.question, line, &mut self.unfit, &mut self.budget, may_stop);
                let Some((params, plan)) = next else { return false };
                let candidate = self.rough(walk.algorithm, &params, &plan);
                if !candidate.given_up {
                    self.best = self.best.min(candidate.predicted.0);
                }
                self.found.push(Found { candidate, place: walk.place, full: false });
                self.budget > 0 || self.best.is_infinite()
            });
        }
        // Whoever leads must have been played in full, and so must those next to it.
        loop {
            self.found.sort_by(order);
            let leading = self.found.iter().take(FINALISTS);
            let Some(i) = leading.into_iter().position(|f| !f.full && !f.candidate.given_up) else { return };
            let Found { candidate, place, .. } = self.found[i].clone();
            let algorithm = table[place];
            let candidate = match algorithm.plan(&self.question.window(candidate.window), &candidate.params) {
                Ok(plan) => self.evaluate(algorithm, &candidate.params, &plan, 4, f64::INFINITY),
                Err(_) => Candidate { given_up: true, ..candidate },
            };
            self.found[i] = Found { candidate, place, full: true };
        }
    }

    /// Whether candidates were left out because the budget was spent.
    pub fn cut_short(&self) -> bool {
        self.budget == 0
    }

    /// What was found, best first, and how many plans did not fit.
    pub fn finish(self) -> (Vec<Candidate>, usize) {
        (self.found.into_iter().map(|f| f.candidate).collect(), self.unfit)
    }

    /// Two runs, unless even the busiest rank's own work takes longer than the best so far.
    fn rough(&mut self, algorithm: &'static Algorithm, params: &Params, plan: &Plan) -> Candidate {
        let repeats = repeats(self.question.bytes, plan.bytes);
        let ops = ops(plan);
        let floor = floor(self.model, plan, self.question.shape.oversubscription() <= 1);
        if floor * repeats > self.best {
            return Candidate {
                name: algorithm.name,
                params: params.clone(),
                window: plan.bytes,
                predicted: Nanos(floor * repeats),
                latency: Nanos(floor),
                ops,
                extrapolated: false,
                given_up: true,
            };
        }
        self.budget = self.budget.saturating_sub(2 * ops);
        self.evaluate(algorithm, params, plan, 2, self.best * GIVE_UP * 2.0 / repeats)
    }

    /// The cost of the whole message by windows of `plan`.
    pub fn evaluate(
        &self,
        algorithm: &'static Algorithm,
        params: &Params,
        plan: &Plan,
        runs: usize,
        limit: f64,
    ) -> Candidate {
        let question = self.question;
        let message = question.bytes;
        let attach = question.attach;
        let shape = &question.shape;
        let (banks, walk) =
            (ring_banks(plan, self.model, shape), walk(plan, self.model, shape, question.box_bytes));
        let options = Options { runs, message, banks, walk, limit, attach, ..Options::default() };
        let cost = cost_with(self.model, shape, plan, &options);
        let given_up = cost.total.0.is_infinite() && cost.stuck.is_none();
        let whole = message.checked_div(plan.bytes).unwrap_or(1);
        let each = self.per_run(plan, cost.total.0, cost.first.0);
        let tail = match message.checked_rem(plan.bytes) {
            None | Some(0) => 0.0,
            Some(left) => match algorithm.plan(&question.window(left), params) {
                Ok(tail) => {
                    let cost = cost_with(self.model, shape, &tail, &options);
                    self.per_run(&tail, cost.total.0, cost.first.0)
                }
                Err(_) => f64::INFINITY,
            },
        };
        let steady = each * whole as f64 + tail;
        // The first call of a batch begins when everybody is there and nothing is under way.
        let calls = (BATCH / steady.max(1.0)).ceil().max(1.0);
        let lead = (cost.first.0 - each).max(0.0);
        let predicted = if given_up { limit * whole as f64 / runs as f64 } else { steady + lead / calls };
        Candidate {
            name: algorithm.name,
            params: params.clone(),
            window: plan.bytes,
            predicted: Nanos(predicted),
            latency: if given_up { Nanos(limit) } else { cost.first },
            ops: ops(plan),
            extrapolated: cost.extrapolated,
            given_up,
        }
    }

    /// From run to run. A ring plan of a rooted collective, or of a scan, lets ranks run ahead by as many runs as there are
    /// banks and no more, so that many runs take at least one latency; and before it enters a bank a rank
    /// looks at what the others have left.
    fn per_run(&self, plan: &Plan, steady: f64, first: f64) -> f64 {
        match plan.reuse {
            Reuse::Ring if plan.collective.one_way() && plan.ranks > 1 => {
                let shape = &self.question.shape;
                let far = (1..plan.ranks).map(|r| shape.distance(Rank(0), Rank::from(r)));
                let scan: f64 = far.map(|l| self.model.level(l).0.read.value).sum();
                let banks = ring_banks(plan, self.model, shape) as f64;
                steady.max(first / banks) + scan / banks
            }
            Reuse::Ring | Reuse::Same => steady,
        }
    }
}

fn repeats(message: usize, window: usize) -> f64 {
    if window == 0 {
        1.0
    } else {
        (message as f64 / window as f64).max(1.0)
    }
}

/// The busiest rank's own work, whatever it waits for: no plan is faster than that. Bytes out of another rank's
/// box, which plans read once, cost at least a `get` at the nearest distance, unless both ranks may share a CPU. A fold costs what one of
/// private operands does.
fn floor(model: &Model, plan: &Plan, apart: bool) -> f64 {
    let o = &model.overhead;
    let near = model.levels.iter().map(|l| &l.get);
    let mut last = [(usize::MAX, 0.0); 2];
    let mut copy = |len: usize, fetched: bool| {
        let memo = &mut last[usize::from(fetched)];
        if memo.0 != len {
            let local = model.copy.at(len, 1).nanos;
            let get = near.clone().map(|s| s.at(len, 1).nanos).fold(f64::INFINITY, f64::min);
            *memo = (len, if fetched { local.max(get) } else { local });
        }
        memo.1
    };
    let costs = model.fold(plan.grain);
    let mut last_fold = (usize::MAX, 0.0);
    let mut folded = |len: usize| {
        if last_fold.0 != len {
            last_fold = (len, costs.map_or(0.0, |f| f.private.at(len, 1).nanos));
        }
        last_fold.1
    };
    let mut of = |rank: usize, op: &Op| match op {
        Op::Move { src, .. } => {
            let away = matches!(src.space, Space::Slot { rank: r, .. } if r.index() != rank);
            o.mov.value + copy(src.len, away && apart)
        }
        Op::Fold { dst, .. } => o.fold.value + folded(dst.len),
        Op::Set { .. } | Op::Add { .. } => o.set.value,
        Op::Wait { .. } => 0.0,
    };
    let busy = |(r, ops): (usize, &Vec<Op>)| o.run.value + ops.iter().map(|op| of(r, op)).sum::<f64>();
    plan.programs.iter().enumerate().map(busy).fold(0.0, f64::max)
}

/// Whole elements, whole lines where possible, from the whole message down by factors of four.
fn windows(question: &Question) -> Vec<usize> {
    let mut list = vec![question.bytes];
    let mut at = question.box_bytes.max(1).ilog2();
    let unit = if question.grain % 64 == 0 { question.grain } else { question.grain * 64 };
    loop {
        let size = 1usize << at;
        let window = if size >= unit { size / unit * unit } else { size / question.grain * question.grain };
        if window > 0 && window < question.bytes && list.last() != Some(&window) {
            list.push(window);
        }
        // Many slots a box need much smaller windows than one: keep going down until something fits.
        if size <= SMALLEST.min(question.box_bytes) / 64 || at < 2 {
            return list;
        }
        at -= 2;
    }
}

/// Best first.
fn order(a: &Found, b: &Found) -> Ordering {
    let ((a, i), (b, j)) = ((&a.candidate, a.place), (&b.candidate, b.place));
    a.given_up
        .cmp(&b.given_up)
        .then(a.predicted.0.total_cmp(&b.predicted.0))
        .then(a.latency.0.total_cmp(&b.latency.0))
        .then(a.ops.cmp(&b.ops))
        .then(i.cmp(&j))
        .then(a.params.cmp(&b.params))
        .then(b.window.cmp(&a.window))
}

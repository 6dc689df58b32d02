//! The search over algorithms, parameters and windows.

use super::{ring_banks, walk, Candidate, Question};
use crate::algorithm::{self, Algorithm};
use crate::cost::{cost_with, sketch, Cost, Options};
use crate::model::Model;
use crate::plan::{Params, Plan, PlanError, Reuse};
use crate::units::{Nanos, Rank};
use std::cmp::Ordering;

/// Windows tried of one algorithm: the largest that fit.
const WINDOWS: usize = 3;
/// Smaller windows than this cost more in flags than they save.
const SMALLEST: usize = 4096;
/// How many of the first are played in full.
const FINALISTS: usize = 4;
/// Ops played in the first pass, at most, and as many more for each rank.
const BUDGET: (usize, usize) = (200_000, 8_000);
/// So many ops are made and sketched in the time in which one is played.
const MADE: usize = 4;
/// Ops of a plan for each rank, at most: a longer one takes more time to make and to prove than it can save, and
/// the same algorithm has it in smaller windows.
const OPS_A_RANK: usize = 1024;
/// Plans of windows larger than this are made for parts of the window first, which tell how many ops the whole has.
const PROBED: usize = 64 << 10;
/// As many times smaller is the smaller part; the other one is twice as large.
const PART: usize = 16;
/// Ops that each rank may have for every other one: no plan of that is too long.
const FEW: usize = 4;
/// Plans of more ops for each rank than these, which grow with their window, are played for two parts of it.
const LONG: usize = 192;
/// As many times smaller is the smaller of these parts.
const PLAYED_PART: usize = 8;
/// The second pass plays two runs; a candidate that needs longer than this many times the best is given up.
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
    /// Whether candidates were left out.
    cut_short: bool,
    best: f64,
}

/// A candidate that was costed.
#[derive(Clone)]
struct Found {
    candidate: Candidate,
    /// Its algorithm's place in the table.
    place: usize,
    /// How far it was played.
    played: Played,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Played {
    /// It was sketched.
    Not,
    /// Two runs.
    Roughly,
    InFull,
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

    /// Whether a plan would have more ops than is sensible, judged by those for two parts of its window.
    fn is_too_long(&self, question: &Question, params: &Params, budget: &mut usize) -> bool {
        let Some(parts) = parts(self.window, question.grain, PART).filter(|_| self.window > PROBED) else {
            return false;
        };
        let mut most = |bytes: usize| {
            let plan = self.algorithm.plan(&question.window(bytes), params);
            spend(budget, &plan);
            plan.map_or(0, |plan| plan.programs.iter().map(Vec::len).max().unwrap_or(0)) as f64
        };
        let at = parts.map(|bytes| (bytes as f64, most(bytes)));
        if std::env::var_os("DBG2").is_some() { eprintln!("probe {} {} w{} {:?} -> {}", self.algorithm.name, params, self.window, at, extended(at, self.window)); }
        extended(at, self.window) > OPS_A_RANK.max(FEW * question.shape.ranks()) as f64
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

/// Making and sketching an op takes a fraction of playing it.
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
        Search { model, question, found: Vec::new(), unfit: 0, budget, cut_short: false, best: f64::INFINITY }
    }

    /// Sketches every candidate, plays those that may be the best, and the best of them in full.
    pub fn run(&mut self) {
        let t = std::time::Instant::now();
        self.sketch_all();
        if std::env::var_os("DBG").is_some() { eprintln!("sketched {} ops {} in {:?} cut {}", self.found.len(), self.found.iter().map(|f| f.candidate.ops).sum::<usize>(), t.elapsed(), self.cut_short); }
        self.found.sort_by(order);
        let table = algorithm::table(self.question.collective);
        let play = |search: &Search<'a>, found: &Found, runs: usize, limit: f64| {
            let Found { candidate, place, .. } = found;
            match table[*place].plan(&search.question.window(candidate.window), &candidate.params) {
                Ok(plan) => search.evaluate(table[*place], &candidate.params, &plan, runs, limit),
                Err(_) => candidate.clone(),
            }
        };
        for i in 0..self.found.len() {
            let Found { candidate, .. } = &self.found[i];
            if candidate.predicted.0 > self.best || (self.budget == 0 && self.best.is_finite()) {
                break;
            }
            let repeats = repeats(self.question.bytes, candidate.window);
            self.budget = self.budget.saturating_sub(2 * candidate.ops);
            let t = std::time::Instant::now();
            let sk = self.found[i].candidate.clone();
            let candidate = play(self, &self.found[i], 2, self.best * GIVE_UP * 2.0 / repeats);
            if std::env::var_os("DBG").is_some() { eprintln!("play {} {} w{} ops {} sketch {:.0}/{:.0} play {:.0}/{:.0} ratio {:.2} gave {} t {:?}", sk.name, sk.params, sk.window, sk.ops, sk.predicted.0, sk.latency.0, candidate.predicted.0, candidate.latency.0, candidate.predicted.0/sk.predicted.0, candidate.given_up, t.elapsed()); }
            if !candidate.given_up {
                self.best = self.best.min(candidate.predicted.0);
            }
            self.found[i] = Found { candidate, played: Played::Roughly, ..self.found[i].clone() };
        }
        // Whoever leads must have been played in full, and so must those next to it.
        loop {
            self.found.sort_by(order);
            let leading = self.found.iter().take(FINALISTS);
            let due = |f: &Found| f.played != Played::InFull && !f.candidate.given_up;
            let Some(i) = leading.into_iter().position(due) else { return };
            let candidate = play(self, &self.found[i], 4, f64::INFINITY);
            self.found[i] = Found { candidate, played: Played::InFull, ..self.found[i].clone() };
        }
    }

    /// What every candidate costs at least. Algorithms take turns, so that each has had its first candidates when the budget is spent.
    fn sketch_all(&mut self) {
        let table = algorithm::table(self.question.collective);
        let mut budget = self.budget;
        let mut walks: Vec<Walk> =
            table.iter().enumerate().map(|(place, a)| Walk::new(a, place, self.question)).collect();
        while !walks.is_empty() {
            walks.retain_mut(|walk| {
                let line = self.model.line_bytes;
                let may_stop = !self.found.is_empty();
                let next = walk.next(self.question, line, &mut self.unfit, &mut budget, may_stop);
                let Some((params, plan)) = next else { return false };
                let candidate = self.sketch(walk.algorithm, params, &plan);
                self.found.push(Found { candidate, place: walk.place, played: Played::Not });
                true
            });
        }
        self.cut_short = budget == 0;
    }

    /// Whether candidates were left out because the budget was spent.
    pub fn cut_short(&self) -> bool {
        self.cut_short
    }

    /// What was found, best first, and how many plans did not fit.
    pub fn finish(self) -> (Vec<Candidate>, usize) {
        (self.found.into_iter().map(|f| f.candidate).collect(), self.unfit)
    }

    /// What a plan costs at least.
    fn sketch(&self, algorithm: &'static Algorithm, params: Params, plan: &Plan) -> Candidate {
        let Question { shape, attach, .. } = self.question;
        let least = sketch(self.model, shape, plan, *attach);
        let (first, each) = least.map_or((f64::INFINITY, f64::INFINITY), |least| (least.first, least.each));
        let each = self.per_run(plan, each, first);
        Candidate {
            name: algorithm.name,
            params,
            window: plan.bytes,
            predicted: Nanos(whole_call(first, each * repeats(self.question.bytes, plan.bytes), each)),
            latency: Nanos(first),
            ops: ops(plan),
            extrapolated: false,
            given_up: true,
        }
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
        let cost = match self.play_parts(algorithm, params, plan, &options) {
            Some(cost) => cost,
            None => cost_with(self.model, shape, plan, &options),
        };
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
        let predicted = match given_up {
            true => limit * whole as f64 / runs as f64,
            false => whole_call(cost.first.0, each * whole as f64 + tail, each),
        };
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

    /// The cost of a long plan by those of two parts of its window, where its ops grow with the window: a pipeline's first chunks, and then
    /// one more for each chunk.
    fn play_parts(
        &self,
        algorithm: &'static Algorithm,
        params: &Params,
        plan: &Plan,
        options: &Options,
    ) -> Option<Cost> {
        let Question { shape, grain, .. } = self.question;
        if ops(plan) <= LONG * plan.ranks {
            return None;
        }
        let [a, b] = parts(plan.bytes, *grain, PLAYED_PART)?
            .map(|bytes| algorithm.plan(&self.question.window(bytes), params).ok());
        let (a, b) = (a?, b?);
        let grows = extended([&a, &b].map(|p| (p.bytes as f64, ops(p) as f64)), plan.bytes);
        // What has as many ops for a part has to be played whole.
        if 2 * ops(&b) > ops(plan) || (grows - ops(plan) as f64).abs() > 0.1 * grows {
            return None;
        }
        let [less, more] = [&a, &b].map(|part| cost_with(self.model, shape, part, options));
        let whole = |of: fn(&Cost) -> f64| {
            Nanos(extended([(a.bytes as f64, of(&less)), (b.bytes as f64, of(&more))], plan.bytes))
        };
        let (total, first) = (whole(|c| c.total.0), whole(|c| c.first.0));
        if !(total.0.is_finite() && first.0.is_finite()) {
            return None;
        }
        Some(Cost { total, first, ..more })
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

/// Two parts of a window in whole lines of elements, the first as many times smaller as said and the other twice as large.
fn parts(window: usize, grain: usize, smaller: usize) -> Option<[usize; 2]> {
    let part = window / smaller / grain * grain;
    (part > 0).then_some([part, 2 * part])
}

/// What two points say of a third one, on a line.
fn extended([(a, at_a), (b, at_b)]: [(f64, f64); 2], whole: usize) -> f64 {
    at_b + (at_b - at_a) / (b - a) * (whole as f64 - b)
}

/// A call of the whole message, one of a batch, the first of which begins when everybody is there and nothing is under way.
fn whole_call(first: f64, steady: f64, each: f64) -> f64 {
    let calls = (BATCH / steady.max(1.0)).ceil().max(1.0);
    steady + (first - each).max(0.0) / calls
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

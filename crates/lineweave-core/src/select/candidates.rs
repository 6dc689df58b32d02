//! The search over algorithms, parameters and windows.

use super::{Candidate, Question, RING_BANKS};
use crate::algorithm::{self, Algorithm};
use crate::cost::{cost_with, Options};
use crate::model::Model;
use crate::plan::{Op, Params, Plan, Reuse};
use crate::units::{Nanos, Rank};
use std::cmp::Ordering;

/// Windows tried of one algorithm: the largest that fit.
const WINDOWS: usize = 3;
/// Smaller windows than this cost more in flags than they save.
const SMALLEST: usize = 4096;
/// How many of the first pass are played in full.
const FINALISTS: usize = 12;
/// The first pass plays two runs; a candidate that needs longer than this many times the best is given up.
const GIVE_UP: f64 = 4.0;

/// A search under way.
pub struct Search<'a> {
    model: &'a Model,
    question: &'a Question,
    found: Vec<(Candidate, usize)>,
    /// Plans that did not apply or did not fit.
    unfit: usize,
    best: f64,
}

impl<'a> Search<'a> {
    /// Nothing searched yet.
    pub fn new(model: &'a Model, question: &'a Question) -> Search<'a> {
        Search { model, question, found: Vec::new(), unfit: 0, best: f64::INFINITY }
    }

    /// Costs every candidate roughly, then the best of them in full.
    pub fn run(&mut self) {
        for (place, algorithm) in algorithm::table(self.question.collective).iter().enumerate() {
            self.try_algorithm(algorithm, place);
        }
        self.found.sort_by(|a, b| order(a, b));
        for i in 0..self.found.len().min(FINALISTS) {
            let (rough, place) = self.found[i].clone();
            let algorithm = algorithm::table(self.question.collective)[place];
            let problem = self.question.window(rough.window);
            if rough.given_up {
                continue;
            }
            if let Ok(plan) = algorithm.plan(&problem, &rough.params) {
                self.found[i].0 = self.evaluate(algorithm, &rough.params, &plan, 4, f64::INFINITY);
            }
        }
        self.found.sort_by(|a, b| order(a, b));
    }

    /// What was found, best first, and how many plans did not fit.
    pub fn finish(self) -> (Vec<Candidate>, usize) {
        (self.found.into_iter().map(|f| f.0).collect(), self.unfit)
    }

    fn try_algorithm(&mut self, algorithm: &'static Algorithm, place: usize) {
        let mut fitting = 0;
        for window in windows(self.question) {
            let problem = self.question.window(window);
            let mut fits = false;
            for params in (algorithm.candidates)(&problem) {
                let Ok(plan) = algorithm.plan(&problem, &params) else {
                    self.unfit += 1;
                    continue;
                };
                if !self.question.fits(&plan, self.model.line_bytes) {
                    self.unfit += 1;
                    continue;
                }
                fits = true;
                let candidate = self.rough(algorithm, &params, &plan);
                if candidate.predicted.0 < self.best && !candidate.given_up {
                    self.best = candidate.predicted.0;
                }
                self.found.push((candidate, place));
            }
            fitting += usize::from(fits);
            if fitting == WINDOWS {
                break;
            }
        }
    }

    /// Two runs, unless even the busiest rank's own work takes longer than the best so far.
    fn rough(&self, algorithm: &'static Algorithm, params: &Params, plan: &Plan) -> Candidate {
        let repeats = repeats(self.question.bytes, plan.bytes);
        let floor = floor(self.model, plan);
        if floor * repeats > self.best {
            return Candidate {
                name: algorithm.name,
                params: params.clone(),
                window: plan.bytes,
                predicted: Nanos(floor * repeats),
                latency: Nanos(floor),
                ops: plan.programs.iter().map(Vec::len).sum(),
                extrapolated: false,
                given_up: true,
            };
        }
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
        let options = Options { runs, message, banks: RING_BANKS, limit, ..Options::default() };
        let cost = cost_with(self.model, &question.shape, plan, &options);
        let given_up = cost.total.0.is_infinite() && cost.stuck.is_none();
        let whole = if plan.bytes == 0 { 1 } else { message / plan.bytes };
        let each = self.per_run(plan, cost.total.0, cost.first.0);
        let tail = match message.checked_rem(plan.bytes) {
            None | Some(0) => 0.0,
            Some(left) => match algorithm.plan(&question.window(left), params) {
                Ok(tail) => {
                    let cost = cost_with(self.model, &question.shape, &tail, &options);
                    self.per_run(&tail, cost.total.0, cost.first.0)
                }
                Err(_) => f64::INFINITY,
            },
        };
        let predicted =
            if given_up { limit * whole as f64 / runs as f64 } else { each * whole as f64 + tail };
        Candidate {
            name: algorithm.name,
            params: params.clone(),
            window: plan.bytes,
            predicted: Nanos(predicted),
            latency: if given_up { Nanos(limit) } else { cost.first },
            ops: plan.programs.iter().map(Vec::len).sum(),
            extrapolated: cost.extrapolated,
            given_up,
        }
    }

    /// From run to run. A ring plan of a rooted collective lets ranks run ahead by as many runs as there are
    /// banks and no more, so that many runs take at least one latency; and before it enters a bank a rank
    /// looks at what the others have left.
    fn per_run(&self, plan: &Plan, steady: f64, first: f64) -> f64 {
        match plan.reuse {
            Reuse::Ring if plan.collective.rooted() && plan.ranks > 1 => {
                let shape = &self.question.shape;
                let far = (1..plan.ranks).map(|r| shape.distance(Rank(0), Rank::from(r)));
                let scan: f64 = far.map(|l| self.model.level(l).0.read.value).sum();
                steady.max(first / RING_BANKS as f64) + scan / RING_BANKS as f64
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

/// The busiest rank's own work: no plan is faster than that.
fn floor(model: &Model, plan: &Plan) -> f64 {
    let o = &model.overhead;
    let mut last = (usize::MAX, 0.0);
    let mut copy = |len: usize| {
        if last.0 != len {
            last = (len, model.copy.at(len, 1).nanos);
        }
        last.1
    };
    let mut of = |op: &Op| match op {
        Op::Move { src, .. } => o.mov.value + copy(src.len),
        Op::Fold { .. } => o.fold.value,
        Op::Set { .. } | Op::Add { .. } => o.set.value,
        Op::Wait { .. } => 0.0,
    };
    plan.programs.iter().map(|ops| o.run.value + ops.iter().map(&mut of).sum::<f64>()).fold(0.0, f64::max)
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
fn order(a: &(Candidate, usize), b: &(Candidate, usize)) -> Ordering {
    let ((a, i), (b, j)) = (a, b);
    a.given_up
        .cmp(&b.given_up)
        .then(a.predicted.0.total_cmp(&b.predicted.0))
        .then(a.latency.0.total_cmp(&b.latency.0))
        .then(a.ops.cmp(&b.ops))
        .then(i.cmp(j))
        .then(a.params.cmp(&b.params))
        .then(b.window.cmp(&a.window))
}

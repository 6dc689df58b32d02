//! The search over algorithms, parameters and windows.

use super::banks::SMALL_SLOTS;
use super::variants::{ops, Variants};
use super::whole::{extended, parts, repeats, whole_call};
use super::{ring_banks, walk, Candidate, Question};
use crate::algorithm::{self, Algorithm};
use crate::cost::{cost_with, sketch, Cost, Options};
use crate::model::Model;
use crate::plan::{Params, Plan, PlanError, Reuse};
use crate::units::{Nanos, Rank};
use std::cmp::Ordering;

/// Slack of the lower bound: simulated time >= bound / 1.5, since overlapping stores to a shared line can beat it.
const BOUND_SLACK: f64 = 1.5;
/// Number of best candidates that are played in full; `FINALIST_RATIO` bounds their cost relative to the best.
const FINALISTS: usize = 4;
const FINALIST_RATIO: f64 = 1.5;
/// Number of those where ranks run ahead of each other on a shared CPU, and the runs of a rough play there for each one elsewhere.
const AHEAD_FINALISTS: usize = 6;
const AHEAD_RUNS: usize = 8;
/// Ops made and sketched, at most, and as many more for each rank.
const MADE: (usize, usize) = (200_000, 8_000);
/// As many times more of them are made where all candidates are listed.
const LISTING_FACTOR: usize = 10;
/// Ops played, at most, and as many more for each rank. Playing one takes several times as long.
const PLAYED: (usize, usize) = (100_000, 2_000);
/// Runs of a rough play, and of a full one. Plans of more ops than these are played roughly only where ranks exchange blocks, since two runs say
/// there what four do, and where nothing comes near them. (In long pipelines of an allreduce the two differed by 13 %.)
const RUNS: (usize, usize) = (2, 4);
pub(super) const LARGE: usize = 100_000;
/// Plans of more ops for each rank than these, which grow with their window, are played for two parts of it.
const LONG: usize = 192;
/// As many times smaller is the smaller of these parts.
const PLAYED_PART: usize = 8;
/// Multiple of the best time beyond which a candidate, while it is played roughly, is given up.
const GIVE_UP: f64 = 4.0;

/// A search under way.
pub struct Search<'a> {
    model: &'a Model,
    question: &'a Question,
    pause: &'a dyn Fn(),
    found: Vec<Found>,
    /// Plans that did not apply or did not fit.
    unfit: usize,
    /// Ops that may still be played.
    budget: usize,
    /// True if candidates were left out.
    cut_short: bool,
    best: f64,
}

/// A candidate that was costed.
#[derive(Clone)]
struct Found {
    candidate: Candidate,
    /// Its algorithm's place in the table.
    place: usize,
    /// Least of what plays of plans of its class took, as multiples of their lower bounds; `None` while none was played.
    ratio: Option<f64>,
    /// Extent to which it was played.
    played: Played,
}

impl Found {
    /// Returns the class of the candidate: lower bounds of candidates in one class are too low by about the same factor.
    fn class(&self) -> (usize, usize, u32) {
        (self.place, self.candidate.window, self.candidate.ops.max(1).ilog2())
    }

    /// Returns the cost that is expected of a candidate before it is played.
    fn expected(&self) -> f64 {
        self.candidate.predicted.0 * self.ratio.unwrap_or(1.0)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Played {
    /// It was sketched.
    Not,
    Roughly,
    InFull,
}

impl<'a> Search<'a> {
    /// Nothing searched yet.
    pub fn new(model: &'a Model, question: &'a Question) -> Search<'a> {
        Search::pausing(model, question, &|| ())
    }

    /// As [`Search::new`]; the search calls `pause` before each candidate.
    pub fn pausing(model: &'a Model, question: &'a Question, pause: &'a dyn Fn()) -> Search<'a> {
        let budget = PLAYED.0 + PLAYED.1 * question.shape.ranks();
        let (unfit, cut_short, best) = (0, false, f64::INFINITY);
        Search { model, question, pause, found: Vec::new(), unfit, budget, cut_short, best }
    }

    /// Sketches every candidate, plays those that may be the best, or `all`, and the best of them in full.
    pub fn run(&mut self, all: bool) {
        self.sketch_all(all);
        self.found.sort_by(order);
        while let Some(i) = self.next(all) {
            self.play_roughly(i, all);
        }
        if !all && self.run_ahead() {
            return self.compare_best();
        }
        // Whoever leads must have been played in full, and so must those next to it.
        loop {
            self.found.sort_by(order);
            let near = self.found.first().map_or(0.0, |f| f.candidate.predicted.0 * FINALIST_RATIO);
            let leads = |f: &Found| !f.candidate.given_up && f.candidate.predicted.0 <= near;
            let alone = !self.found.iter().skip(1).any(leads);
            let due =
                |f: &Found| f.played != Played::InFull && leads(f) && !(alone && f.candidate.ops > LARGE);
            let Some(i) = self.found.iter().take(FINALISTS).position(due) else { return };
            let candidate = self.play(&self.found[i], RUNS.1, f64::INFINITY);
            self.found[i] = Found { candidate, played: Played::InFull, ..self.found[i].clone() };
        }
    }

    /// Returns whether ranks share CPUs and may run ahead of each other there. A full play takes many runs then, and its times are not those of
    /// a rough one.
    fn run_ahead(&self) -> bool {
        self.question.shape.oversubscription() > 1 && self.question.collective.one_way()
    }

    /// Plays the best by their rough plays in full, and puts them in order; those behind them are not compared with them.
    fn compare_best(&mut self) {
        self.found.sort_by(order);
        let sound = self.found.iter().take_while(|f| !f.candidate.given_up).count();
        let best = sound.min(AHEAD_FINALISTS);
        for i in 0..best {
            let candidate = self.play(&self.found[i], RUNS.1, f64::INFINITY);
            self.found[i] = Found { candidate, played: Played::InFull, ..self.found[i].clone() };
        }
        self.found[..best].sort_by(order);
    }

    /// Returns the candidate to play next: the one of the least expected cost, unless it can't be the best or the budget is spent.
    fn next(&self, all: bool) -> Option<usize> {
        let mut open = self.found.iter().enumerate().filter(|(_, found)| found.played == Played::Not);
        if all {
            return open.next().map(|(i, _)| i);
        }
        if self.budget == 0 && self.best.is_finite() {
            return None;
        }
        open.filter(|(_, found)| found.candidate.predicted.0 <= self.best * BOUND_SLACK)
            .min_by(|(_, a), (_, b)| a.expected().total_cmp(&b.expected()))
            .map(|(i, _)| i)
    }

    /// Plays a candidate until it is out of the question, and has its class expect what that showed.
    fn play_roughly(&mut self, i: usize, all: bool) {
        let Candidate { window, ops, predicted: Nanos(bound), .. } = self.found[i].candidate;
        let large = ops > LARGE;
        let runs = if all && !large { RUNS.1 } else { RUNS.0 };
        let ring = self.run_ahead() && window <= SMALL_SLOTS;
        let played = if ring { runs * AHEAD_RUNS } else { runs };
        self.budget = self.budget.saturating_sub(played * ops);
        let limit = self.best * GIVE_UP * runs as f64 / repeats(self.question.bytes, window);
        let candidate = self.play(&self.found[i], runs, limit);
        if !candidate.given_up {
            self.best = self.best.min(candidate.predicted.0);
        }
        let ratio = candidate.predicted.0 / bound;
        if ratio.is_finite() {
            let class = self.found[i].class();
            for like in self.found.iter_mut().filter(|found| found.class() == class) {
                like.ratio = Some(like.ratio.map_or(ratio, |least| least.min(ratio)));
            }
        }
        let enough = runs == RUNS.1 || large && self.question.collective.has_blocks();
        let played = if enough { Played::InFull } else { Played::Roughly };
        self.found[i] = Found { candidate, played, ..self.found[i].clone() };
    }

    fn play(&self, found: &Found, runs: usize, limit: f64) -> Candidate {
        (self.pause)();
        match self.plan(found) {
            Ok(plan) => {
                let algorithm = algorithm::table(self.question.collective)[found.place];
                self.evaluate(algorithm, &found.candidate.params, &plan, runs, limit)
            }
            Err(_) => found.candidate.clone(),
        }
    }

    fn plan(&self, found: &Found) -> Result<Plan, PlanError> {
        let Candidate { window, params, .. } = &found.candidate;
        algorithm::table(self.question.collective)[found.place].plan(&self.question.window(*window), params)
    }

    /// Computes a lower bound of every candidate's cost. The turn is with the algorithm of which the fewest ops were made, so that each
    /// has had its share when the budget is spent.
    fn sketch_all(&mut self, all: bool) {
        let table = algorithm::table(self.question.collective);
        let factor = if all { LISTING_FACTOR } else { 1 };
        let budget = factor * (MADE.0 + MADE.1 * self.question.shape.ranks());
        let mut open: Vec<Variants> =
            table.iter().enumerate().map(|(place, a)| Variants::new(a, place, self.question)).collect();
        let mut spent = 0;
        while let Some(turn) = (0..open.len()).min_by_key(|&i| open[i].spent) {
            if spent >= budget && !self.found.is_empty() {
                self.cut_short = true;
                return;
            }
            (self.pause)();
            let variants = &mut open[turn];
            let before = variants.spent;
            match variants.next(self.question, self.model.line_bytes) {
                Some(plan) => {
                    spent += variants.spent - before;
                    let (algorithm, place) = (variants.algorithm, variants.place);
                    match plan {
                        Some((params, plan)) => {
                            let candidate = self.sketch(algorithm, params, &plan);
                            let found = Found { candidate, place, ratio: None, played: Played::Not };
                            match all {
                                true => self.found.push(found),
                                false => self.add(found, &plan),
                            }
                        }
                        None => self.unfit += 1,
                    }
                }
                None => drop(open.remove(turn)),
            }
        }
    }

    /// Adds a candidate, unless its plan is that of another one: then that by the first of their algorithms stays.
    fn add(&mut self, found: Found, plan: &Plan) {
        let same = |other: &Found| {
            let (a, b) = (&other.candidate, &found.candidate);
            (a.predicted, a.latency, a.ops, a.window) == (b.predicted, b.latency, b.ops, b.window)
                && self.plan(other).is_ok_and(|other| other.runs_as(plan))
        };
        match self.found.iter().position(same) {
            None => self.found.push(found),
            Some(i) if order(&found, &self.found[i]).is_lt() => self.found[i] = found,
            Some(_) => {}
        }
    }

    /// Returns whether candidates were left out because the budget was spent.
    pub fn cut_short(&self) -> bool {
        self.cut_short
    }

    /// Returns the candidates found, best first, and the number of plans that did not fit.
    pub fn finish(self) -> (Vec<Candidate>, usize) {
        (self.found.into_iter().map(|f| f.candidate).collect(), self.unfit)
    }

    /// Returns the candidate of a plan, with a lower bound of its cost.
    fn sketch(&self, algorithm: &'static Algorithm, params: Params, plan: &Plan) -> Candidate {
        let Question { shape, attach, .. } = self.question;
        let ahead = match plan.collective.one_way() {
            true => ring_banks(plan, self.model, shape),
            false => 1,
        };
        let least = sketch(self.model, shape, plan, ahead, *attach);
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
        // Ranks that share CPUs take turns, which do not grow evenly.
        if ops(plan) <= LONG * plan.ranks || shape.oversubscription() > 1 {
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
        // Nor is it believed where the parts do not lie on a line: the whole takes longer than its larger part, and at most as many times
        // longer as it is larger.
        let times = plan.bytes as f64 / b.bytes as f64;
        let believed =
            |whole: f64, part: f64| whole.is_finite() && whole >= part && whole <= part * times * 1.05;
        if !(believed(total.0, more.total.0) && believed(first.0, more.first.0)) {
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

#[cfg(test)]
mod tests;

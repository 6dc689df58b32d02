//! Bounds, rough plays and parts of plans, each beside a full play.

use super::*;
use crate::collective::Collective;
use crate::machine::topology;
use crate::model::Values;
use crate::topology::Shape;

/// Each plan of a question with its algorithm.
fn plans(question: &Question) -> Vec<(&'static Algorithm, Params, Plan)> {
    let mut all = Vec::new();
    for (place, algorithm) in algorithm::table(question.collective).iter().enumerate() {
        let mut variants = Variants::new(algorithm, place, question);
        while let Some(made) = variants.next(question, 64) {
            all.extend(made.map(|(params, plan)| (*algorithm, params, plan)));
        }
    }
    all
}

/// Ranks that share two CPUs.
fn crowded(ranks: usize) -> Shape {
    Shape::place(ranks, &topology("pack:1 l3:1 core:2").expect("a topology"))
}

#[test]
fn no_plan_is_played_much_faster_than_it_was_sketched() {
    let model = Values::default().model();
    let (mut seen, mut worst) = (0, (0.0, String::new()));
    for collective in Collective::ALL {
        let asked = [(2, 64), (3, 8), (5, 4096), (16, 64), (16, 1 << 16)].map(|asked| (asked, false));
        let crowds = [(3, 8), (5, 4096), (8, 64), (8, 1 << 16)].map(|asked| (asked, true));
        for ((ranks, bytes), crowd) in asked.into_iter().chain(crowds) {
            let grain = if collective.folds() { 8 } else { 1 };
            let bytes = if collective.moves_data() { bytes } else { 0 };
            let flat = Question::flat(collective, ranks, bytes, grain);
            let question = if crowd { Question { shape: crowded(ranks), ..flat } } else { flat };
            let search = Search::new(&model, &question);
            for (algorithm, params, plan) in plans(&question) {
                let least = search.sketch(algorithm, params.clone(), &plan).predicted.0;
                let played = search.evaluate(algorithm, &params, &plan, 4, f64::INFINITY).predicted.0;
                if least / played > worst.0 {
                    worst = (least / played, format!("{} {params}, {ranks} ranks, {bytes} B", plan.name()));
                }
                seen += 1;
            }
        }
    }
    assert!(seen > 1000 && worst.0 <= BOUND_SLACK, "of {seen} {worst:?}");
}

#[test]
fn two_runs_of_a_large_plan_cost_what_four_do() {
    let model = Values::default().model();
    let (mut seen, mut worst) = (0, [(0.0f64, String::new()), (0.0, String::new())]);
    for collective in Collective::ALL {
        let sizes: &[usize] = if collective.has_blocks() { &[64, 4096, 16 << 10] } else { &[64 << 10] };
        for &bytes in sizes.iter().filter(|_| collective.moves_data()) {
            let question = Question::flat(collective, 48, bytes, if collective.folds() { 8 } else { 1 });
            let search = Search::new(&model, &question);
            for (algorithm, params, plan) in plans(&question).into_iter().filter(|(_, _, p)| ops(p) > 5000) {
                let [rough, full] = [RUNS.0, RUNS.1]
                    .map(|runs| search.evaluate(algorithm, &params, &plan, runs, f64::INFINITY).predicted.0);
                let off = (rough / full).ln().abs().exp();
                let worst = &mut worst[usize::from(collective.has_blocks())];
                if off > worst.0 {
                    *worst = (off, format!("{} {params}, {bytes} B by {}", plan.name(), plan.bytes));
                }
                seen += 1;
            }
        }
    }
    assert!(seen > 40 && worst[0].0 < 1.15 && worst[1].0 < 1.1, "{seen} plans, {worst:?}");
}

#[test]
fn long_plans_cost_what_their_parts_say() {
    let model = Values::default().model();
    let (mut seen, mut worst) = (0, 0.0f64);
    for collective in [Collective::Bcast, Collective::Reduce, Collective::Allreduce] {
        for ranks in [4, 9] {
            let question = Question::flat(collective, ranks, 1 << 20, 8);
            let search = Search::new(&model, &question);
            for (algorithm, params, plan) in plans(&question) {
                let options = Options { message: question.bytes, ..Options::default() };
                let Some(parts) = search.play_parts(algorithm, &params, &plan, &options) else {
                    continue;
                };
                let whole = cost_with(&model, &question.shape, &plan, &options);
                let off = (parts.total.0 / whole.total.0).ln().abs().exp();
                (seen, worst) = (seen + 1, worst.max(off));
            }
        }
    }
    assert!(seen > 20 && worst < 1.1, "{seen} plans, off by {worst}");
}

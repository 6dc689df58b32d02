//! The choice follows the model.

use super::*;
use crate::algorithm::{self, Problem};
use crate::model::Values;
use crate::plan::Params;
use crate::topology::Level;

fn values() -> Values {
    Values { levels: vec![(Level::L3, 30.0, 20.0)], ..Values::default() }
}

#[test]
fn choices_are_deterministic_and_survive_the_models_text() {
    let model = values().model();
    let shared = Model::from_json(&model.to_json()).unwrap();
    for bytes in [8, 4096, 1 << 20] {
        let q = Question::flat(Collective::Bcast, 5, bytes, 1);
        assert_eq!(select(&model, &q), select(&shared, &q));
    }
}

#[test]
fn two_ranks_share_a_line_where_a_read_takes_it_over() {
    let q = Question::flat(Collective::Barrier, 2, 0, 1);
    let chosen = |paired: f64, alone: f64| {
        let v = Values { exchange_paired: paired, exchange_alone: alone, contention: 30.0, ..values() };
        let mut model = v.model();
        model.add.value = 100.0;
        select(&model, &q).unwrap()
    };
    let on_one_line = |choice: &Choice| matches!(choice.params.get("layout"), Some("paired" | "packed"));
    let together = chosen(32.0, 52.0);
    assert!(on_one_line(&together), "{together:?}");
    let apart = chosen(90.0, 45.0);
    assert!(!on_one_line(&apart), "{apart:?}");
}

#[test]
fn the_choice_is_the_cheapest_considered_and_predicted_alone_the_same() {
    let model = values().model();
    let q = Question::flat(Collective::Bcast, 6, 1 << 16, 1);
    let choice = select(&model, &q).unwrap();
    let sure = choice.considered.iter().filter(|c| !c.given_up);
    assert!(sure.clone().all(|c| c.predicted.0 >= choice.predicted.0));
    assert!(sure.count() > 3);
    let again = predict(&model, &q, choice.algorithm, &choice.params, choice.window).unwrap();
    assert_eq!(again.predicted, choice.predicted);
    let next = choice.runner_up.unwrap();
    assert_ne!((next.name, next.params), (choice.algorithm, choice.params));
}

#[test]
fn a_plan_that_several_algorithms_make_is_considered_once() {
    let model = values().model();
    let q = Question::flat(Collective::Bcast, 4, 8, 1);
    let plans = |choice: Choice| -> Vec<Plan> {
        let plan = |c: &Candidate| {
            algorithm::find(q.collective, c.name).unwrap().plan(&q.window(c.window), &c.params).unwrap()
        };
        choice.considered.iter().map(plan).collect()
    };
    let twins = |plans: &[Plan]| {
        plans.iter().enumerate().filter(|(i, plan)| plans[..*i].iter().any(|p| p.runs_as(plan))).count()
    };
    let (considered, listed) = (plans(select(&model, &q).unwrap()), plans(list(&model, &q).unwrap()));
    assert_eq!(twins(&considered), 0);
    assert_eq!(twins(&listed), listed.len() - considered.len());
    assert!(twins(&listed) > 5, "{}", twins(&listed));
}

#[test]
fn messages_longer_than_a_box_go_in_windows_that_fit() {
    let model = values().model();
    let q = Question { box_bytes: 64 << 10, ..Question::flat(Collective::Bcast, 3, 5_000_000, 1) };
    let choice = select(&model, &q).unwrap();
    assert!(choice.window < q.bytes);
    assert!(q.fits(choice.plan(), 64));
    let tail = choice.tail(&q).unwrap().unwrap();
    assert_eq!(tail.bytes, q.bytes % choice.window);
    assert!(q.fits(&tail, 64));
    assert!(choice.reasons.iter().any(|r| r.contains("windows")));
}

#[test]
fn larger_messages_cost_more() {
    let model = values().model();
    let mut last = 0.0;
    for bytes in [64, 4096, 65536, 1 << 20, 1 << 23] {
        let p = select(&model, &Question::flat(Collective::Bcast, 4, bytes, 1)).unwrap().predicted.0;
        assert!(p > last, "{bytes} B: {p} after {last}");
        last = p;
    }
}

#[test]
fn malformed_questions_are_typed_errors() {
    let model = values().model();
    let q = Question::flat(Collective::Bcast, 4, 64, 1);
    let of = |q: &Question| select(&model, q).map(|c| c.algorithm);
    assert_eq!(of(&Question { shape: Shape::flat(0), ..q.clone() }), Err(PlanError::NoRanks.into()));
    assert_eq!(
        of(&Question { root: 4, ..q.clone() }),
        Err(PlanError::RootOutOfRange { root: 4, ranks: 4 }.into())
    );
    assert_eq!(
        of(&Question { grain: 7, ..q.clone() }),
        Err(PlanError::Ragged { bytes: 64, grain: 7 }.into())
    );
    let tiny = Question { box_bytes: 1, acc_bytes: Some(0), bytes: 1 << 20, ..q };
    assert!(matches!(of(&tiny), Err(SelectError::NothingFits { .. })));
}

#[test]
fn counters_are_chosen_while_there_is_room_for_them() {
    let counter = algorithm::find(Collective::Barrier, "counter").unwrap();
    let plan = counter.plan(&Problem::flat(Collective::Barrier, 4, 0), &Params::new()).unwrap();
    let q = Question::flat(Collective::Barrier, 4, 0, 1);
    assert!(q.fits(&plan, 64));
    // A second plan, for the rest of a message, must have room as well.
    assert!(!Question { counter_bytes: 64, ..q.clone() }.fits(&plan, 64));
    assert!(Question { counter_bytes: 128, ..q }.fits(&plan, 64));
}

#[test]
fn one_rank_and_empty_messages_have_a_choice() {
    let model = values().model();
    for collective in [Collective::Barrier, Collective::Bcast] {
        for (ranks, bytes) in [(1, 0), (1, 4096), (3, 0)] {
            let bytes = if collective.moves_data() { bytes } else { 0 };
            let choice = select(&model, &Question::flat(collective, ranks, bytes, 1));
            assert!(choice.is_ok(), "{collective} {ranks} {bytes}: {choice:?}");
        }
    }
}

#[test]
fn explanations_name_what_decided_and_what_was_assumed() {
    let model = values().model();
    let q = Question::flat(Collective::Barrier, 2, 0, 1);
    let choice = select(&model, &q).unwrap();
    let text = explain(&model, &q, &choice);
    assert!(text.starts_with("barrier among 2 ranks: "), "{text}");
    assert!(text.contains("predicted: ") && text.contains("next: "), "{text}");
    assert!(text.contains("on the critical path") && text.contains("not measured: "), "{text}");
    assert!(text.contains("assumed"), "{text}");
}

#[test]
fn windows_of_blocks_lie_a_whole_block_apart() {
    let model = Values::default().model();
    let q = Question { box_bytes: 64 << 10, ..Question::flat(Collective::Alltoall, 4, 1_000_000, 1) };
    let choice = select(&model, &q).unwrap();
    assert!(choice.window < q.bytes);
    assert_eq!(choice.plan().blocks, Blocks::Apart(q.bytes));
    assert_eq!(choice.plan().grid().output_bytes(0), 3 * q.bytes + choice.window);
    assert!(q.fits(choice.plan(), 64));
    let tail = choice.tail(&q).unwrap().unwrap();
    assert_eq!((tail.bytes, &tail.blocks), (q.bytes % choice.window, &Blocks::Apart(q.bytes)));
}

/// The plan that is costed is that of the lengths there are: who has little to give is not waited for as long.
#[test]
fn uneven_blocks_are_chosen_for_as_they_are() {
    let model = Values::default().model();
    let even = Question { grain: 1, ..Question::flat(Collective::Allgather, 4, 40_000, 1) };
    let counts = vec![40_000, 8, 0, 8];
    let q = Question { uneven: Some(Arc::new(Uneven::by_rank(counts.clone()))), ..even.clone() };
    let choice = select(&model, &q).unwrap();
    assert!(matches!(&choice.plan().blocks, Blocks::Uneven(u) if u.counts() == counts));
    assert!(choice.predicted.0 < select(&model, &even).unwrap().predicted.0);
    let wrong = Question { uneven: Some(Arc::new(Uneven::by_rank(vec![40_000]))), ..even };
    assert!(select(&model, &wrong).unwrap_err().to_string().contains("expected 4"));
}

/// One rank after the other may run ahead, but not by more runs than there are banks.
#[test]
fn a_scan_is_not_cheaper_than_its_latency_over_the_banks() {
    let model = Values::default().model();
    let q = Question::flat(Collective::Scan, 8, 8, 8);
    let choice = select(&model, &q).unwrap();
    for c in choice.considered.iter().filter(|c| !c.given_up) {
        assert!(c.predicted.0 >= c.latency.0 / SMALL_BANKS as f64, "{} {}", c.name, c.params);
    }
}

//! Comparison of closed forms with the played plan: the cases in which they agree, those in which they part, and the reasons.

use super::*;
use crate::models::LogNp;
use lineweave_core::algorithm::Problem;
use lineweave_core::collective::Collective;
use lineweave_core::cost::{cost_with, Options};
use lineweave_core::model::{Fitted, LevelCosts, Surface, Values};
use lineweave_core::plan::Layout;

/// A machine on which a put takes 20 + m / 8, a signal 50, a get 30 + m / 8 ns, and nothing else takes time.
fn machine() -> Model {
    let values = Values {
        levels: vec![(Level::L3, 30.0, 20.0)],
        overhead: 0.0,
        contention: 0.0,
        per_line: 8.0,
        per_byte_local: 0.0,
        exchange_paired: 50.0,
        exchange_alone: 50.0,
        ..Values::default()
    };
    Model { issue: Fitted::cited(0.0), ..values.model() }
}

/// The models of that machine: T(m) = 100 + m / 4, and L(m, tau) = c + y with c = 25 + m / 8, y = 25, whatever tau.
fn estimates(model: &Model, segment: u64) -> Estimates {
    let f = Fitted::cited;
    let level = &model.levels[0];
    let signal = LevelCosts::by_layout(&level.signal, Layout::Alone).unwrap();
    let mut copy = level.get.clone();
    for (c, p) in copy.cost.iter_mut().flatten().zip(level.put.cost.iter().flatten()) {
        *c = c.plus(*p).inferred(0.5);
    }
    // The same at every tau: what differs is then not contention.
    copy.taus = vec![1, 1 << 20];
    copy.cost.iter_mut().for_each(|row| row.push(row[0]));
    let sync = vec![(1, signal.inferred(0.5)), (1 << 20, signal.inferred(0.5))];
    let way = Way { segment, ..Way::MPICH };
    let missing =
        |model| NotKnown { model, value: "o".into(), machine: "a test".into(), because: "it is".into() };
    Estimates {
        machine: "a test".into(),
        level: Level::L3,
        hockney: Ok(lineweave_core::model::AlphaBeta { alpha: f(100.0), beta: f(0.25) }),
        logp: Err(missing("LogP")),
        loggp: Err(missing("LogGP")),
        plogp: Err(missing("PLogP")),
        log_np: Ok(LogNp { overhead: Surface::line(f(50.0), f(0.125)) }),
        mlog_np: Err(missing("mlog_nP")),
        tau_lop: Ok(TauLop { copy, sync, start: f(0.0), way }),
        put_get: Err(missing("put/get")),
        min_max: Err(missing("min-max, best")),
        min_max_worst: Err(missing("min-max, worst")),
        gamma: None,
        unidentified: Vec::new(),
    }
}

/// A closed form, and the plan played once alone.
fn both(name: &str, collective: Collective, p: usize, bytes: usize, segment: u64) -> (f64, f64) {
    let model = machine();
    let form = Form::of(collective, name);
    let closed = estimates(&model, segment).tau_lop.unwrap();
    let closed = closed.collective(&Call::new(form, p, bytes as u64)).unwrap().nanos;
    let problem = Problem::flat(collective, p, bytes);
    let plan = algorithm::find(collective, name).unwrap().plan(&problem, &Params::new()).unwrap();
    let options = Options { runs: 1, concurrent: false, ..Options::default() };
    (closed, cost_with(&model, &problem.shape, &plan, &options).first.0)
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-6 * a.abs().max(1.0), "{a} is not {b}");
}

/// A message is a put, a signal and a get in both: two ranks agree to the last digit.
#[test]
fn one_message_agrees() {
    for bytes in [256, 4096, 1 << 16] {
        for name in ["flat", "binomial"] {
            let (closed, played) = both(name, Collective::Bcast, 2, bytes, 0);
            near(closed, played);
            near(closed, 100.0 + 0.25 * bytes as f64);
        }
    }
}

/// The closed form has a message for each of ceil(log2 P) stages if L is the same for all tau, since a rank sends to its
/// children one after the other. In the plan a rank writes its slot once and all its children get at once: the
/// cost is a message for each hop of the longest way, which is the most one-bits of any rank, and for flags that leave one
/// after the other at most half an ownership a child. For powers of two the messages are the same; for 5 ranks two and not
/// three.
#[test]
fn trees_agree_for_powers_of_two_and_part_by_what_goes_in_turn() {
    for p in 2..=17usize {
        let (closed, played) = both("binomial", Collective::Bcast, p, 4096, 0);
        let message = 100.0 + 4096.0 / 4.0;
        let hops = (0..p).map(usize::count_ones).max().unwrap_or(0);
        near(closed, f64::from(lineweave_core::units::ceil_log2(p)) * message);
        let flags = played - f64::from(hops) * message;
        assert!(
            (0.0..=10.0 * f64::from(lineweave_core::units::ceil_log2(p))).contains(&flags),
            "{p}: {played}, {flags} for flags"
        );
    }
}

/// Closed form and played cost of trees part where L is proportional to tau. The closed form has 2^i messages in stage
/// i, each transfer as slow as if all were at the same step. Played, a copy is slowed by those that are under way when
/// it begins, not by those that follow, and ranks with less to do run ahead. So the played cost lies between those of
/// tau = 1 and of full stages.
#[test]
fn trees_part_by_who_meets_whom() {
    let mut model = machine();
    let level = &mut model.levels[0];
    for surface in [&mut level.get, &mut level.put] {
        surface.taus = vec![1, 64];
        surface.cost.iter_mut().for_each(|row| row.push(row[0].inferred(64.0)));
    }
    let alone = estimates(&machine(), 0).tau_lop.unwrap();
    let mut crowded = alone.clone();
    crowded.copy.taus = vec![1, 64];
    crowded.copy.cost.iter_mut().for_each(|row| row[1] = row[0].inferred(64.0));
    for p in [4usize, 8, 16, 32] {
        let bytes = 1 << 16;
        let problem = Problem::flat(Collective::Bcast, p, bytes);
        let plan = algorithm::find(Collective::Bcast, "binomial").unwrap();
        let plan = plan.plan(&problem, &Params::new()).unwrap();
        let options = Options { runs: 1, ..Options::default() };
        let played = cost_with(&model, &problem.shape, &plan, &options).first.0;
        let call = Call::new(Form::BinomialBcast, p, bytes as u64);
        let least = alone.collective(&call).unwrap().nanos;
        let most = crowded.collective(&call).unwrap().nanos;
        assert!(least <= played && played < most, "{p}: {least} {played} {most}");
    }
}

/// A flat broadcast as messages is P - 1 of them; as a collective transfer (Fig. 18) it is one put that all get. The plan is
/// the second, so tau-Lop agrees with it and Hockney does not.
#[test]
fn a_collective_transfer_is_no_row_of_messages() {
    for p in [3, 8] {
        let (closed, played) = both("flat", Collective::Bcast, p, 4096, 0);
        near(closed, played);
        let hockney = estimates(&machine(), 0).hockney.unwrap();
        let messages = hockney.collective(&Call::new(Form::FlatBcast, p, 4096)).unwrap().nanos;
        near(messages, (p as f64 - 1.0) * closed);
    }
}

/// Open MPI's tree: a further segment takes two stages in the closed form, 2 L(S, tau), since a transfer from box to box is one
/// L like any other. Played, that transfer is a get out of the parent's box and a put into the own one, whose lines the
/// children have, and the copy to the user buffer finds the segment in the cache: a get, a put, and waits for flags.
#[test]
fn the_pipelines_part_by_a_put_a_segment() {
    let of = |k: usize| both("two-segment-tree", Collective::Bcast, 8, k * 8192, 8192);
    let ((closed_a, played_a), (closed_b, played_b)) = (of(16), of(48));
    let (closed, played) = ((closed_b - closed_a) / 32.0, (played_b - played_a) / 32.0);
    let (get, put, signal) = (30.0 + 1024.0, 20.0 + 1024.0, 50.0);
    near(closed, get + put + signal);
    let flags = played - (get + put);
    assert!((0.0..2.0 * signal).contains(&flags), "{played} a segment: {flags} beside the copies");
}

/// An empty message is two synchronisations in tau-Lop, which is one signal; rounds of a barrier are signals. The played
/// barrier agrees where ranks exchange at the cost of a signal.
#[test]
fn barriers_are_synchronisation_alone() {
    for (p, rounds) in [(2, 1.0), (4, 2.0), (8, 3.0), (13, 4.0)] {
        let (closed, played) = both("dissemination", Collective::Barrier, p, 0, 0);
        near(closed, rounds * 50.0);
        near(played, closed);
    }
}

#[test]
fn rows_hold_every_model_and_say_what_is_missing() {
    let model = machine();
    let question = Question::flat(Collective::Bcast, 8, 1 << 16, 1);
    let rows = rows(&estimates(&model, 8192), &model, &question, true);
    let names: Vec<&str> = rows.iter().map(|r| r.algorithm.name).collect();
    let printed = ["flat", "binomial", "two-segment-tree", "scatter-ring", "scatter-doubling"];
    let of_plan = ["knomial", "fibonacci", "degrees", "pipelined-kary", "oc-bcast", "cyclic"];
    assert!(printed.iter().chain(&of_plan).all(|name| names.contains(name)), "{names:?}");
    assert!(!names.contains(&"direct-flat"), "it has no plan where ranks do not reach each other's buffers");
    for row in rows.iter().filter(|row| printed.contains(&row.algorithm.name)) {
        assert_eq!(row.predictions.len(), 13);
        for p in &row.predictions {
            let missing = ["LogP", "LogGP", "PLogP", "mlog_nP", "put/get", "min-max, best", "min-max, worst"];
            let known = !missing.contains(&p.model);
            assert_eq!(p.time.is_ok(), known, "{} {}", row.form, p.model);
        }
    }
    // Six ranks: recursive doubling has no closed form, and a plan.
    let question = Question::flat(Collective::Bcast, 6, 1 << 16, 1);
    let rows = super::rows(&estimates(&model, 8192), &model, &question, true);
    let doubling = rows.iter().find(|r| r.algorithm.name == "scatter-doubling").unwrap();
    assert!(matches!(doubling.predictions[0].time, Err(Absent::NoForm(NoForm::Ranks { .. }))));
    assert!(doubling.played.is_ok());
}

/// Beyond the measured range there is no number unless it is asked for; then it is marked.
#[test]
fn extrapolation_is_asked_for_and_marked() {
    let model = machine();
    let question = Question::flat(Collective::Bcast, 4, 4 << 20, 1);
    let mut estimates = estimates(&model, 0);
    let copy = &mut estimates.tau_lop.as_mut().unwrap().copy;
    copy.taus.truncate(1);
    copy.cost.iter_mut().for_each(|row| row.truncate(1));
    let time = |extrapolate| {
        let rows = rows(&estimates, &model, &question, extrapolate);
        let tau = rows[1].predictions.iter().find(|p| p.model == "tau-Lop").unwrap();
        tau.time.clone()
    };
    assert_eq!(time(false), Err(Absent::Beyond { model: "tau-Lop" }));
    assert!(time(true).unwrap().extrapolated);
}

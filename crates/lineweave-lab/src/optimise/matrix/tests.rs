use super::schedule::Sender;
use super::*;
use crate::chance::Draw;
use lineweave_core::algorithm::trees::Tree;
use lineweave_core::machine::topology;
use lineweave_core::model::Values;

/// `latency[i * ranks + j]` for what `i` sends to `j`, and a gap for each sender.
fn given(ranks: usize, latency: Vec<f64>, gap: &[f64]) -> Latencies {
    let gap = (0..ranks * ranks).map(|at| gap[at / ranks]).collect();
    Latencies { ranks, latency, gap, issue: 0.0, at_once: 1, hit: 0.0, fold: 0.0 }
}

fn even(ranks: usize, latency: f64, gap: f64) -> Latencies {
    given(ranks, vec![latency; ranks * ranks], &vec![gap; ranks])
}

/// Reproducible numbers between `low` and `high`.
fn uneven(ranks: usize, low: f64, high: f64, seed: u64) -> Latencies {
    let mut draw = Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut next = || low + (high - low) * draw.unit();
    let latency = (0..ranks * ranks).map(|_| next()).collect();
    let gap: Vec<f64> = (0..ranks).map(|_| next() / 5.0).collect();
    given(ranks, latency, &gap)
}

fn spans(schedule: &Schedule) -> bool {
    let mut told: Vec<usize> = schedule.edges().iter().map(|e| e.1).chain([schedule.root]).collect();
    told.sort_unstable();
    told == (0..schedule.children.len()).collect::<Vec<_>>()
}

#[test]
fn an_even_matrix_gives_the_postal_optimum() {
    for ranks in [2, 3, 5, 8, 9, 10, 33, 100] {
        for (latency, gap) in [(10.0, 10.0), (10.0, 3.0), (10.0, 1.0)] {
            let found = broadcast(&even(ranks, latency, gap), 0);
            assert!(spans(&found.choice));
            let optimum = crate::models::bounds::postal(ranks, latency, gap);
            assert!((found.cost_ns - optimum).abs() < 1e-9, "{ranks} {latency} {gap}: {found:?}");
            assert!((found.ratio() - 1.0).abs() < 1e-9);
        }
    }
}

#[test]
fn few_ranks_are_solved_exactly() {
    for seed in 1..12 {
        let l = uneven(5, 10.0, 100.0, seed);
        let found = broadcast(&l, 2);
        let mut best = f64::INFINITY;
        in_any_order(&l, &mut vec![(2, Sender::at(0.0))], 0.0, &mut best);
        assert!((found.cost_ns - best).abs() < 1e-9, "{seed}: {} {best}", found.cost_ns);
        assert!(spans(&found.choice) && found.exact);
    }
    assert_eq!(broadcast(&even(1, 1.0, 1.0), 0).cost_ns, 0.0);
}

#[test]
fn greedy_trees_are_near_the_exact_one_and_never_below_the_bound() {
    for seed in 1..20 {
        let l = uneven(8, 20.0, 200.0, seed);
        let exact = broadcast(&l, 0).cost_ns;
        let lower = bound(&l, 0);
        assert!(lower <= exact + 1e-9, "{seed}: {lower} {exact}");
        let mut greedy = f64::INFINITY;
        for mut schedule in greedy::trees(&l, 0) {
            schedule.sort(&l);
            schedule.improve(&l, lower);
            assert!(spans(&schedule));
            // What is sorted anew where ranks moved is all that there is to sort.
            let (moved, time) = (schedule.clone(), schedule.time(&l));
            let takes = schedule.sort(&l);
            assert_eq!(schedule, moved);
            assert!((takes[0] - time).abs() < 1e-9, "{seed}: {} {time}", takes[0]);
            greedy = greedy.min(time);
        }
        assert!(exact <= greedy + 1e-9 && greedy <= 1.35 * exact, "{seed}: {greedy} {exact}");
    }
}

#[test]
fn the_bound_holds_where_messages_overlap() {
    for seed in 1..40 {
        for at_once in [2, 3] {
            let l = Latencies { at_once, issue: 2.0, ..uneven(5, 40.0, 200.0, seed) };
            let mut best = f64::INFINITY;
            in_any_order(&l, &mut vec![(1, Sender::at(0.0))], 0.0, &mut best);
            let lower = bound(&l, 1);
            assert!(lower <= best + 1e-9, "{seed} {at_once}: {lower} {best}");
            // Not by far, with so few ranks.
            assert!(lower > 0.5 * best, "{seed} {at_once}: {lower} {best}");
        }
    }
}

/// All trees in all orders.
fn in_any_order(l: &Latencies, told: &mut Vec<(usize, Sender)>, last: f64, best: &mut f64) {
    let n = l.ranks();
    if told.len() == n {
        *best = best.min(last);
        return;
    }
    for s in 0..told.len() {
        for to in (0..n).filter(|to| told.iter().all(|t| t.0 != *to)).collect::<Vec<_>>() {
            let (from, before) = told[s].clone();
            let arrives = told[s].1.send(l, from, to);
            told.push((to, Sender::at(arrives)));
            in_any_order(l, told, last.max(arrives), best);
            told.pop();
            told[s].1 = before;
        }
    }
}

#[test]
fn children_that_come_late_are_heard_in_a_row_of_their_own() {
    // Three leaves, and one that has to hear of another: the first three are folded before it comes.
    let l = Latencies { hit: 1.0, at_once: 10, issue: 2.0, fold: 3.0, ..even(6, 205.0, 100.0) };
    let tree =
        |children: [&[usize]; 6]| Schedule { root: 0, children: children.map(<[usize]>::to_vec).into() };
    let late = Rows::of(&l, &tree([&[1, 2, 3, 4], &[], &[], &[], &[5], &[]]));
    assert_eq!(late.param(), "0-1,0-2,0-3,0/4,4-5");
    // A read and two transfers, what came is kept, one fold; then the same, but that it is taken as it comes.
    assert_eq!(late.time(), (201.0 + 1.0 + 3.0) + (201.0 + 3.0));
    let flat = Rows::of(&l, &tree([&[1, 2, 3, 4, 5], &[], &[], &[], &[], &[]]));
    assert_eq!(flat.param(), "0-1,0-2,0-3,0-4,0-5");
    // Two hits for each wait but the first, three folds for six values.
    assert_eq!(flat.time(), 201.0 + 1.0 + 4.0 * 2.0 + 3.0 * 3.0);
}

#[test]
fn a_machine_s_levels_are_used() {
    let levels = vec![(Level::L3, 25.0, 25.0), (Level::Numa, 130.0, 130.0), (Level::Machine, 270.0, 270.0)];
    let shape = Shape::place(128, &topology("pack:2 numa:1 l3:16 core:4 pu:1").unwrap());
    let mut crossings = Vec::new();
    let n = shape.ranks();
    for gap in [8.0, 100.0, 400.0] {
        let model = Values { levels: levels.clone(), ..Values::default() }.model();
        let of = Latencies::of(&model, &shape);
        let latency = (0..n * n).map(|at| of.latency(at / n, at % n)).collect();
        let l = given(n, latency, &vec![gap; n]);
        let found = broadcast(&l, 0);
        assert!(spans(&found.choice));
        let far = |(i, j): &(usize, usize)| shape.distance((*i).into(), (*j).into()) == Level::Machine;
        crossings.push(found.choice.edges().iter().filter(|e| far(e)).count());
        // Better than the binomial tree, which knows no distances.
        let binomial = Schedule { root: 0, children: Tree::binomial(128).children };
        assert!(found.cost_ns < binomial.time(&l), "{} {}", found.cost_ns, binomial.time(&l));
        assert!(found.ratio() < 2.5, "{gap}: {}", found.ratio());
        // Backwards it is a reduction of the same time.
        assert!((reduce(&l, 0).cost_ns - found.cost_ns).abs() < 1e-9);
    }
    // The dearer a message is for its sender, the fewer go to the other package.
    assert!(crossings[0] > crossings[2], "{crossings:?}");
}

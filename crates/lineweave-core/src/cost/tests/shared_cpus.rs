//! Ranks that share CPUs take turns.

use super::*;

pub(super) fn on_cpus(ranks: usize, cpus: usize) -> Shape {
    let cpu = |c| Cpu { os: c, core: c, l3: 0, numa: 0, package: 0, kind: 0 };
    Shape::place(ranks, &Topology { cpus: (0..cpus).map(cpu).collect() })
}

#[test]
fn ranks_of_one_cpu_pay_a_hand_over_for_each_turn() {
    let model = Values { yielding: 500.0, ..values() }.model();
    let c = cost(&model, &on_cpus(2, 1), &exchange(Layout::Paired));
    // A rank ends its own run, sets for the next and hands over: one turn a run, ends in bunches of two.
    assert!(c.total.0 > 400.0 && c.total.0 < 600.0, "{}", c.total);
    let of = |wanted: fn(Term) -> bool| {
        c.critical.iter().filter(|s| wanted(s.why)).map(|s| s.nanos.0).sum::<f64>() / c.critical_runs as f64
    };
    near(of(|_| true), c.total.0);
    assert!(of(|t| t == Term::Yield) > 0.8 * c.total.0);
}

#[test]
fn plans_that_need_fewer_turns_win_where_ranks_share_cpus() {
    let model = values().model();
    let shape = on_cpus(4, 1);
    // Everybody tells everybody, then waits: one turn each.
    let all = {
        let mut b = Builder::new(Collective::Barrier, "all", &Params::new(), 4, 0, 0, 1);
        let f = b.flags("here", Layout::Packed, 4);
        for r in 0..4 {
            (0..4).filter(|&q| q != r).for_each(|q| b.set(r, f.at(q, r), 1));
            (0..4).filter(|&q| q != r).for_each(|q| b.wait(r, f.at(r, q), 1));
        }
        b.finish()
    };
    // A token goes round twice.
    let token = {
        let mut b = Builder::new(Collective::Barrier, "token", &Params::new(), 4, 0, 0, 1);
        let f = b.flags("token", Layout::Alone, 1);
        for r in 0..4 {
            for lap in 1..=2 {
                if r == 0 {
                    b.set(0, f.at(1, 0), lap);
                    b.wait(0, f.at(0, 0), lap);
                } else {
                    b.wait(r, f.at(r, 0), lap);
                    b.set(r, f.at((r + 1) % 4, 0), lap);
                }
            }
        }
        b.finish()
    };
    let (all, token) = (cost(&model, &shape, &all).total.0, cost(&model, &shape, &token).total.0);
    assert!(all < 0.7 * token, "{all} {token}");
}

//! The search beside plays of every order without memory or symmetry, and beside what the paper counts by hand.

use super::*;
use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::machine::shipped;
use lineweave_core::plan::{Builder, Layout, Params};
use lineweave_core::topology::Placement;

fn machine(name: &str) -> &'static Machine {
    shipped().iter().find(|m| m.name == name).unwrap()
}

fn placed(machine: &Machine, ranks: usize) -> Shape {
    coherent::placed_by(machine, ranks, Placement::Core).unwrap()
}

fn of(machine: &Machine, plan: &Plan, limit: usize) -> Bounds {
    bounds(machine, &placed(machine, plan.ranks), plan, &coherent::Settings::default(), limit).unwrap()
}

/// Every order, each played from the beginning to the end.
fn by_force(machine: &Machine, plan: &Plan, most: usize) -> Option<(Picos, Picos)> {
    let options = Options { banks: 1, ..Options::default() };
    let shape = placed(machine, plan.ranks);
    let (program, caches) = coherent::prepare(machine, &shape, plan, &options).unwrap();
    let mut choices = Choices::default();
    let mut ends = Vec::new();
    loop {
        let mut caches = caches.clone();
        let mut player = Player::new(&mut caches, &program, 1, Fidelity::Line, Some(choices));
        player.go(|_, _| true);
        choices = player.choices();
        ends.push(player.outcome().unwrap().ended[0]);
        if ends.len() > most {
            return None;
        }
        if !choices.advance() {
            return Some((*ends.iter().min().unwrap(), *ends.iter().max().unwrap()));
        }
    }
}

/// `writers` ranks that each set a flag on one line, and a rank that waits for all of them.
fn one_line(writers: usize) -> Plan {
    let mut b = Builder::new(Collective::Barrier, "test", &Params::new(), writers + 1, 0, 0, 1);
    let flags = b.flags("here", Layout::Packed, writers);
    for writer in 1..=writers {
        b.set(writer, flags.at(0, writer - 1), 1);
    }
    for writer in 1..=writers {
        b.wait(0, flags.at(0, writer - 1), 1);
    }
    b.finish()
}

fn small(collective: Collective, name: &str, ranks: usize) -> Option<Plan> {
    let mut problem = Problem::flat(collective, ranks, if collective.moves_data() { 8 } else { 0 });
    problem.grain = if collective.folds() { 8 } else { 1 };
    algorithm::find(collective, name).ok()?.plan(&problem, &Params::new()).ok()
}

#[test]
fn the_line_of_figure_4_1_takes_what_the_paper_counts() {
    let phi = machine("xeon-phi-5110p");
    let (line, cached) = (277.7, 235.8);
    let found = of(phi, &one_line(2), STATES);
    println!("{found:?}");
    assert!(found.complete);
    // Two writers, then the reader: R_I + 2 R_R. The reader first, and again after each: R_I + 4 R_R.
    let off = |picos: Picos, ns: f64| (picos.nanos() - ns).abs();
    assert!(off(found.least, line + 2.0 * cached) < 20.0, "{found:?}");
    assert!(off(found.greatest, line + 4.0 * cached) < 20.0, "{found:?}");
}

#[test]
fn the_search_finds_what_every_order_played_finds() {
    let mut compared = 0;
    for machine in ["xeon-phi-5110p", "power8-8247-42l", "sandy-bridge-e5-2670-2s"].map(machine) {
        let mut plans: Vec<Plan> = (1..4).map(one_line).collect();
        for collective in [Collective::Bcast, Collective::Reduce, Collective::Barrier, Collective::Allreduce]
        {
            let names = algorithm::table(collective).iter().map(|a| a.name);
            plans.extend(
                names.flat_map(|name| (2..4).filter_map(move |ranks| small(collective, name, ranks))),
            );
        }
        for plan in plans {
            let Some((least, greatest)) = by_force(machine, &plan, 4_000) else { continue };
            let found = of(machine, &plan, STATES);
            let what = format!("{} of {} on {}: {found:?}", plan.name(), plan.ranks, machine.name);
            assert!(found.complete, "{what}");
            assert_eq!((found.least, found.greatest), (least, greatest), "{what}");
            compared += 1;
        }
    }
    println!("{compared} plans compared");
    assert!(compared > 30, "{compared}");
}

/// The simulated time is one of those; so is what a bounded search finds, and the floor is below all.
#[test]
fn bounded_searches_hold_the_exhaustive_values() {
    let mut complete = 0;
    for machine in ["xeon-phi-5110p", "power8-8247-42l"].map(machine) {
        for collective in Collective::ALL {
            for algorithm in algorithm::table(collective) {
                for ranks in [2, 3] {
                    let Some(plan) = small(collective, algorithm.name, ranks) else { continue };
                    let found = of(machine, &plan, 3_000);
                    let what = format!("{} of {ranks} on {}: {found:?}", plan.name(), machine.name);
                    assert!(found.floor <= found.least && found.least <= found.simulated, "{what}");
                    assert!(found.simulated <= found.greatest, "{what}");
                    if !found.complete {
                        continue;
                    }
                    complete += 1;
                    let bounded = of(machine, &plan, found.states / 4);
                    assert!(
                        bounded.floor <= found.least && found.least <= bounded.least,
                        "{what} {bounded:?}"
                    );
                    assert!(bounded.greatest <= found.greatest, "{what} {bounded:?}");
                }
            }
        }
    }
    println!("{complete} complete");
    assert!(complete > 50, "{complete}");
}

use super::*;
use crate::matrix::{describe, Readout};
use crate::optimise::matrix::{Rows, Schedule};
use lineweave_core::machine::{shipped, topology, Matrix};
use lineweave_core::topology::Level;
use lineweave_core::verify::verify;

/// A machine of this shape with these costs, some pairs noisy.
fn machine(shape: &str) -> Machine {
    let text = "schema = 1\nname = \"m\"\ntitle = \"M\"\narch = \"x86_64\"\n[matrix]\nfile = \"m.csv\"\nsource = \"nobody\"\n";
    let t = topology(shape).unwrap();
    let numbers: Vec<usize> = (0..t.cpus.len()).collect();
    let matrix = Matrix::new(&numbers, |i, j| {
        let near = match t.cpus[i].common(&t.cpus[j]) {
            Level::Core => 8.0,
            Level::L3 => 25.0,
            Level::Numa | Level::Package => 110.0,
            Level::Machine => 200.0,
        };
        near * (1.0 + ((7 * i + 13 * j) % 11) as f64 / 100.0)
    });
    describe(text.parse().unwrap(), Readout { matrix, remarks: Vec::new() }).unwrap()
}

#[test]
fn generated_trees_are_proved_near_their_bound_and_never_behind() {
    for shape in ["pack:1 numa:1 l3:1 core:6 pu:1", "pack:2 numa:1 l3:4 core:4 pu:2"] {
        let machine = machine(shape);
        let ranks = machine.topology().unwrap().cpus.len();
        for p in [1, 2, 5, ranks] {
            let shape = Shape::place(p, &machine.topology().unwrap());
            for collective in COLLECTIVES {
                for root in [0, p / 2, p - 1] {
                    let case = Case { machine: &machine, shape: &shape, collective, root };
                    let name = format!("{collective} among {p} of {ranks}, root {root}");
                    let Generated { best, bound_ns } =
                        generate(&case).unwrap_or_else(|e| panic!("{name}: {e}"));
                    verify(&case.plan(&best.spec).unwrap()).unwrap_or_else(|v| panic!("{name}: {v}"));
                    // The simulation counts whole picoseconds.
                    assert!(best.ns + 0.1 >= bound_ns, "{name}: {} below {bound_ns}", best.ns);
                    for (usual, of) in usual(&case).unwrap().into_iter().zip(USUAL) {
                        assert!(
                            best.ns <= usual.ns,
                            "{name}: {of} takes {}, generated {}",
                            usual.ns,
                            best.ns
                        );
                        assert!(
                            usual.ns + 0.1 >= bound_ns,
                            "{name}: {of} takes {} below {bound_ns}",
                            usual.ns
                        );
                        verify(&case.plan(&usual.spec).unwrap())
                            .unwrap_or_else(|v| panic!("{name} {of}: {v}"));
                    }
                    if p == ranks {
                        assert!(best.ns <= 1.3 * bound_ns, "{name}: {} of {bound_ns}", best.ns);
                    }
                }
            }
        }
    }
}

#[test]
fn the_closed_form_is_what_is_simulated() {
    let machine = machine("pack:2 numa:1 l3:4 core:4 pu:2");
    let shape = Shape::place(64, &machine.topology().unwrap());
    let case = Case { machine: &machine, shape: &shape, collective: Collective::Bcast, root: 3 };
    let latencies = Latencies::of_pairs(&machine, &shape, Work::Carry).unwrap();
    for schedule in matrix::some(&latencies, 3, 8, 0.0) {
        let closed = schedule.time(&latencies);
        let timed = case.time(case.edges(schedule.param())).unwrap();
        assert!((timed.ns / closed - 1.0).abs() < 0.05, "{} beside {closed}", timed.ns);
    }
}

#[test]
fn rows_are_simulated_as_they_are_computed() {
    // Whole numbers of picoseconds, and one thread a core: what two threads of a core see of each other depends on who looks when.
    let machine = machine("pack:2 numa:1 l3:4 core:8 pu:1");
    let shape = Shape::place(64, &machine.topology().unwrap());
    let case = Case { machine: &machine, shape: &shape, collective: Collective::Reduce, root: 3 };
    let latencies = Latencies::of_pairs(&machine, &shape, Work::Fold).unwrap();
    let mut trees: Vec<Rows> = matrix::collecting(&latencies, 3, 8, 0.0);
    // All at once, more than are polled ahead; and a chain.
    let flat = Schedule {
        root: 3,
        children: (0..64).map(|r| (0..64).filter(|&c| r == 3 && c != 3).collect()).collect(),
    };
    let chain = Schedule {
        root: 3,
        children: (0..64).map(|r| if r == 2 { vec![] } else { vec![(r + 1) % 64] }).collect(),
    };
    trees.extend([flat, chain].map(|tree| Rows::of(&latencies, &tree)));
    for tree in trees {
        let timed = case.time(case.folding(tree.param(), ROWS)).unwrap();
        assert!((timed.ns / tree.time() - 1.0).abs() < 0.01, "{} beside {}", timed.ns, tree.time());
    }
}

#[test]
fn what_cannot_be_generated_says_why() {
    let shape = Shape::flat(4);
    let phi = shipped().iter().find(|m| m.name == "xeon-phi-5110p").unwrap();
    let of = |machine, collective| generate(&Case { machine, shape: &shape, collective, root: 0 });
    let unknown = of(phi, Collective::Barrier).unwrap_err();
    assert!(unknown.to_string().starts_with("machine xeon-phi-5110p: no pairs of its CPUs were timed"));
    assert_eq!(of(phi, Collective::Gather), Err(GenerateError::Collective(Collective::Gather)));
}

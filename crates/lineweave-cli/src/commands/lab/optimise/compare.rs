//! Generated trees beside the usual algorithms, in virtual time.

use super::Arguments;
use crate::error::CliError;
use crate::machines;
use crate::output::table;
use crate::session::Session;
use lineweave_core::collective::Collective;
use lineweave_core::machine::Machine;
use lineweave_core::plan::PlanError;
use lineweave_core::topology::Shape;
use lineweave_core::units::Nanos;
use lineweave_lab::generate::{generate, usual, Case, Generated, Timed, USUAL};
use serde::Serialize;
use std::time::Instant;

/// One algorithm, and the time of a single call of it.
#[derive(Serialize)]
struct TimedObject {
    name: &'static str,
    algorithm: String,
    simulated_ns: f64,
}

/// Generated trees beside the usual ones. Printed as `trees` by `lineweave lab optimise --compare`, one object a machine.
#[derive(Serialize)]
struct TreesObject<'a> {
    machine: &'a str,
    collective: Collective,
    ranks: usize,
    root: usize,
    usual: Vec<TimedObject>,
    /// The fastest generated tree.
    algorithm: String,
    /// One call of it alone.
    simulated_ns: f64,
    bound_ns: f64,
    ratio: f64,
    /// The usual tree that is faster.
    behind: Option<&'static str>,
    /// Time to generate the tree, simulations included.
    elapsed_ms: f64,
}

/// The comparison for one machine.
struct Compared {
    generated: Generated,
    usual: [Timed; USUAL.len()],
    elapsed_ms: f64,
}

impl Compared {
    fn of(case: &Case) -> Result<Compared, CliError> {
        let started = Instant::now();
        let generated = generate(case)?;
        let elapsed_ms = started.elapsed().as_secs_f64() * 1e3;
        Ok(Compared { generated, usual: usual(case)?, elapsed_ms })
    }

    fn ratio(&self) -> f64 {
        self.generated.best.ns / self.generated.bound_ns
    }

    /// Returns the fastest of the usual algorithms, and how many times longer than the generated tree it takes.
    fn next(&self) -> (&'static str, f64) {
        let all = USUAL.into_iter().zip(self.usual.iter().map(|t| t.ns / self.generated.best.ns));
        all.fold(("none", f64::INFINITY), |best, this| if this.1 < best.1 { this } else { best })
    }
}

/// Compares on one machine, or on all whose pairs were measured.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let machines = match session.machine()? {
        Some(machine) => vec![machine],
        None => {
            let beside = machines::beside()?.into_iter();
            beside.map(|(path, machine)| machines::with_matrix(&path, machine)).collect::<Result<_, _>>()?
        }
    };
    let heading =
        [&["machine", "ranks"][..], &USUAL, &["generated", "bound", "ratio", "gain", "elapsed"]].concat();
    let mut rows = table(&heading, &(1..heading.len()).collect::<Vec<_>>());
    let bar = session.out.progress_of_work(machines.len() as u64);
    let (mut near, mut behind) = (0, Vec::new());
    for machine in &machines {
        bar.set_message(machine.name.clone());
        let topology = machines::topology(machine)?;
        let ranks = arguments.ranks.map_or(topology.cpus.len(), |n| n as usize);
        if arguments.collective.rooted() && arguments.root >= ranks {
            return Err(PlanError::RootOutOfRange { root: arguments.root, ranks }.into());
        }
        let shape = Shape::place(ranks, &topology.placed(arguments.place.place));
        let case = Case { machine, shape: &shape, collective: arguments.collective, root: arguments.root };
        let compared = Compared::of(&case)?;
        bar.inc(1);
        let (next, gain) = compared.next();
        near += usize::from(compared.ratio() <= NEAR);
        if gain < 1.0 {
            behind.push(format!("{} ({next})", machine.name));
        }
        object(machine, &case, &compared, session)?;
        let time = |ns: f64| Nanos(ns).to_string();
        let mut row = vec![machine.name.clone(), ranks.to_string()];
        row.extend(compared.usual.iter().map(|t| time(t.ns)));
        row.extend([
            time(compared.generated.best.ns),
            time(compared.generated.bound_ns),
            format!("{:.2}", compared.ratio()),
            format!("{gain:.2}"),
            format!("{:.0} ms", compared.elapsed_ms),
        ]);
        rows.add_row(row);
    }
    bar.finish_and_clear();
    session.out.table(&rows)?;
    session.out.line(&format!("within {NEAR} of the bound: {near} of {}", machines.len()))?;
    match behind.is_empty() {
        true => session.out.line("never slower than the best of the usual ones"),
        false => session.out.line(&format!("slower than one of the usual ones on {}", behind.join(", "))),
    }
}

/// Largest ratio of a time to the bound that counts as near it.
const NEAR: f64 = 1.3;

fn object(
    machine: &Machine,
    case: &Case,
    compared: &Compared,
    session: &mut Session,
) -> Result<(), CliError> {
    let (next, gain) = compared.next();
    let timed = |(name, timed): (&'static str, &Timed)| TimedObject {
        name,
        algorithm: timed.spec.to_string(),
        simulated_ns: timed.ns,
    };
    let object = TreesObject {
        machine: &machine.name,
        collective: case.collective,
        ranks: case.shape.ranks(),
        root: case.root,
        usual: USUAL.into_iter().zip(&compared.usual).map(timed).collect(),
        algorithm: compared.generated.best.spec.to_string(),
        simulated_ns: compared.generated.best.ns,
        bound_ns: compared.generated.bound_ns,
        ratio: compared.ratio(),
        behind: (gain < 1.0).then_some(next),
        elapsed_ms: compared.elapsed_ms,
    };
    session.out.object("trees", &object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::{all_cpus, on_all_cpus};
    use lineweave_core::algorithm::spec::Spec;
    use lineweave_core::algorithm::table;
    use lineweave_core::plan::Op;
    use lineweave_core::verify::verify;
    use lineweave_lab::generate::{bounds, COLLECTIVES};

    /// Error by rounding, in nanoseconds: a simulation counts whole picoseconds, and some hundred of them are rounded.
    const ROUNDING: f64 = 0.1;

    fn machines() -> Vec<Machine> {
        let beside = machines::beside().unwrap().into_iter();
        beside.map(|(path, machine)| machines::with_matrix(&path, machine).unwrap()).collect()
    }

    fn prove(made: &Generated, case: &Case) {
        let name = format!("{} {} root {}", case.machine.name, case.collective, case.root);
        verify(&case.plan(&made.best.spec).unwrap()).unwrap_or_else(|v| panic!("{name}: {v}"));
        assert!(made.best.ns >= made.bound_ns - ROUNDING, "{name}: {} below {}", made.best.ns, made.bound_ns);
    }

    #[test]
    fn what_is_generated_on_every_machine_is_proved_at_several_roots() {
        let _cpus = all_cpus();
        on_all_cpus(&machines(), |machine| {
            let shape = Shape::place(36, &machine.topology().unwrap());
            for collective in COLLECTIVES {
                for root in if collective.rooted() { vec![0, 17, 35] } else { vec![0] } {
                    let case = Case { machine, shape: &shape, collective, root };
                    prove(&generate(&case).unwrap(), &case);
                }
            }
        });
    }

    #[test]
    fn trees_of_whole_machines_are_near_the_bound_and_never_behind() {
        let _cpus = all_cpus();
        let all = machines();
        for collective in COLLECTIVES {
            let near = on_all_cpus(&all, |machine| {
                let topology = machine.topology().unwrap();
                let shape = Shape::place(topology.cpus.len(), &topology);
                let case = Case { machine, shape: &shape, collective, root: 0 };
                let compared = Compared::of(&case).unwrap();
                let (next, gain) = compared.next();
                assert!(gain >= 1.0, "{} {collective}: {next} is {gain} times as fast", machine.name);
                prove(&compared.generated, &case);
                compared.ratio() <= NEAR
            });
            let near = near.into_iter().filter(|near| *near).count();
            assert!(near >= 30, "{collective}: {near}");
        }
    }

    /// Checks every algorithm of the table, with all its parameters that are tried. Plans without a root are not bounded
    /// by collecting and releasing one after the other, but none of their ranks hears of all others sooner than a rank
    /// that collects.
    #[test]
    fn no_plan_on_any_machine_is_below_its_bound() {
        let _cpus = all_cpus();
        const MEET: [&str; 5] = ["reduce-bcast", "edges", "tree", "binomial", "centralized"];
        let simulated = on_all_cpus(&machines(), |machine| {
            let mut simulated = 0;
            for (ranks, collective) in [2, 3, 17].into_iter().flat_map(|n| COLLECTIVES.map(|c| (n, c))) {
                let shape = Shape::place(ranks, &machine.topology().unwrap());
                let case = Case { machine, shape: &shape, collective, root: 0 };
                let (collects, releases) = bounds(&case).unwrap();
                for algorithm in table(collective) {
                    let bound = match collective.rooted() || MEET.contains(&algorithm.name) {
                        true => collects + releases,
                        false => collects,
                    };
                    for params in algorithm.trials(&case.problem()) {
                        let spec = Spec { params, ..Spec::named(algorithm.name) };
                        let Ok(plan) = case.plan(&spec) else { continue };
                        // Several ranks write a counter, so its line is not the line of one edge.
                        if plan.direct || plan.ops().any(|(_, op)| matches!(op, Op::Add { .. })) {
                            continue;
                        }
                        let Ok(ns) = case.simulated(&plan) else { continue };
                        let name = format!("{} {collective} {spec} among {ranks}", machine.name);
                        assert!(ns >= bound - ROUNDING, "{name}: {ns} below {bound}");
                        simulated += 1;
                    }
                }
            }
            simulated
        });
        assert!(simulated.iter().all(|&plans| plans > 200), "{simulated:?}");
    }
}

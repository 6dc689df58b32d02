//! What is printed as a choice reads back as the same choice: every candidate of every collective.

use lineweave_core::algorithm::spec::{Named, Spec};
use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::plan::Params;
use lineweave_core::topology::{Cpu, Shape};

/// Cores of two threads, L3s of four cores, packages of eight: every level has groups.
fn levelled(ranks: usize) -> Shape {
    let cpu = |c| Cpu { os: c, core: c / 2, l3: c / 8, numa: c / 8, package: c / 16, kind: 0 };
    Shape::on((0..ranks).map(cpu).collect())
}

/// As printed, with parentheses, and as a part of another algorithm's parameters.
fn forms(name: &str, params: &Params) -> [String; 3] {
    let given: Vec<String> = params.0.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let spec = Spec { params: params.clone(), ..Spec::named(name) };
    [Named::new(name, params).to_string(), format!("{name}({})", given.join(",")), spec.to_string()]
}

#[test]
fn whatever_is_printed_as_a_choice_reads_back() {
    let mut read = 0;
    for algorithm in algorithm::all() {
        for ranks in [2, 5, 8, 16, 32] {
            for (bytes, direct) in [(8, false), (8, true), (1 << 16, false), (1 << 20, true)] {
                let bytes = if algorithm.collective.moves_data() { bytes } else { 0 };
                for shape in [Shape::flat(ranks), levelled(ranks)] {
                    let flat = Problem::flat(algorithm.collective, ranks, bytes);
                    let problem = Problem { shape, direct, grain: if bytes > 0 { 8 } else { 1 }, ..flat };
                    for params in algorithm.trials(&problem) {
                        for text in forms(algorithm.name, &params) {
                            let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
                            assert_eq!(
                                (spec.name.as_str(), &spec.params),
                                (algorithm.name, &params),
                                "{text}"
                            );
                            assert_eq!(spec.window, None, "{text}");
                            let found = spec.algorithm(algorithm.collective).expect("it is in the table");
                            assert_eq!(found.name, algorithm.name);
                            let windowed = format!("{text} by 64 KiB");
                            let spec = Spec { window: Some(1 << 16), ..spec };
                            assert_eq!(windowed.parse(), Ok(spec), "{windowed}");
                            read += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(read > 5_000, "only {read} choices were read back");
}

#[test]
fn a_window_is_printed_where_the_message_takes_several() {
    let params = Params::new().with("k", 4);
    assert_eq!(Named::new("tree", &params).by(4096, 4096).to_string(), "tree k=4");
    assert_eq!(Named::new("tree", &params).by(4096, 8192).to_string(), "tree k=4 by 4 KiB");
    let listed = |a: &algorithm::Algorithm| Spec::named(a.name).algorithm(a.collective).is_ok();
    assert!(Collective::ALL.into_iter().all(|c| algorithm::table(c).iter().all(|a| listed(a))));
}

/// Algorithms read a parameter that is left out as a value of their own; the table says which.
#[test]
fn the_tables_defaults_are_those_of_the_plans() {
    let (mut compared, mut named) = (0, 0);
    for algorithm in algorithm::all() {
        for (ranks, direct) in [(5, false), (8, true), (16, false), (16, true)] {
            for bytes in [8, 4096, 1 << 16] {
                let bytes = if algorithm.collective.moves_data() { bytes } else { 0 };
                let flat = Problem::flat(algorithm.collective, ranks, bytes);
                let grain = if bytes > 0 { 8 } else { 1 };
                let problem = Problem { shape: levelled(ranks), direct, grain, ..flat };
                let Ok(left_out) = algorithm.plan(&problem, &Params::new()) else { continue };
                for parameter in algorithm.params {
                    let given = Params::new().with(parameter.name, parameter.default);
                    match algorithm.plan(&problem, &given) {
                        Ok(plan) => {
                            assert_eq!(plan.programs, left_out.programs, "{}: {given}", algorithm.name);
                            compared += 1;
                        }
                        // What is only a word for a rule.
                        Err(error) => {
                            assert_eq!(parameter.default, "auto", "{}: {given}: {error}", algorithm.name);
                            named += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(compared > 1_000, "only {compared} defaults were compared, {named} are rules");
}

use super::*;
use crate::models::Form;
use lineweave_core::algorithm::{find, trees::Tree, Problem};
use lineweave_core::plan::Params;

fn schedule(collective: Collective, name: &str, ranks: usize, bytes: usize, params: &Params) -> Schedule {
    let problem = Problem::flat(collective, ranks, bytes);
    Schedule::of(&find(collective, name).unwrap().plan(&problem, params).unwrap())
}

/// Every printed form whose plan sends a message for each of its messages. Among powers of two the stages are the same; among
/// others ranks without children act at once in a plan and wait for their stage in print, so that only the number of stages
/// and of messages is.
#[test]
fn plans_have_the_stages_of_the_printed_forms() {
    use Collective::{Allgather, Allreduce, Barrier, Bcast, Reduce, Scatter};
    let (mut compared, mut differ) = (0, Vec::new());
    let each = Params::new().with("notify", "each");
    let none = Params::new();
    for ranks in 2..=33usize {
        for (collective, name, form, bytes, whole, params) in [
            (Bcast, "flat", Form::FlatBcast, 8, 8, &each),
            (Bcast, "binomial", Form::BinomialBcast, 8, 8, &each),
            (Reduce, "binomial", Form::BinomialReduce, 64, 64, &none),
            (Allreduce, "recursive-doubling", Form::DoublingAllreduce, 64, 64, &none),
            (Barrier, "dissemination", Form::DisseminationBarrier, 0, 0, &none),
            (Allgather, "ring", Form::RingAllgather, 512, 512 * ranks, &none),
            (Scatter, "binomial", Form::Scatter, 512, 512 * ranks, &none),
        ] {
            let Ok(printed) = form.stages(ranks, whole as u64) else { continue };
            let found = schedule(collective, name, ranks, bytes, params).stages;
            let kind = |list: &[Stage]| -> Vec<(u64, u64, u64)> {
                let flat = list.iter().flat_map(|s| (0..s.times).map(move |_| s));
                flat.map(|s| (s.messages, s.bytes, s.folded)).collect()
            };
            compared += 1;
            let (found, printed) = (kind(&found), kind(&printed));
            let sums = |list: &[(u64, u64, u64)]| (list.len(), list.iter().map(|s| s.0).sum::<u64>());
            let same = match ranks.is_power_of_two() {
                true => found == printed,
                false => sums(&found) == sums(&printed),
            };
            if !same {
                differ.push(format!("{collective}/{name} among {ranks}: {found:?}, printed {printed:?}"));
            }
        }
    }
    assert!(compared > 150, "{compared}");
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// Ranks that read one line read it at once, in one stage.
#[test]
fn readers_of_one_line_share_a_stage_and_trees_are_read_off() {
    let degrees = Params::new().with("degrees", "3,2");
    let found = schedule(Collective::Bcast, "degrees", 10, 8, &degrees);
    let kind: Vec<(u64, u64)> = found.stages.iter().map(|s| (s.messages, s.times)).collect();
    assert_eq!(kind, [(3, 1), (6, 1)]);
    for (name, tree) in [("degrees", Tree::by_degrees(10, &[3, 2])), ("binomial", Tree::binomial(10))] {
        let children = schedule(Collective::Bcast, name, 10, 8, &degrees_for(name)).children.unwrap();
        let mut counts: Vec<usize> = children.iter().map(Vec::len).collect();
        let mut printed: Vec<usize> = tree.children.iter().map(Vec::len).collect();
        counts.sort_unstable();
        printed.sort_unstable();
        assert_eq!(counts, printed, "{name}");
    }
    assert!(schedule(Collective::Barrier, "tree", 24, 0, &Params::new()).children.is_some());
    assert!(schedule(Collective::Barrier, "dissemination", 24, 0, &Params::new()).children.is_none());
}

fn degrees_for(name: &str) -> Params {
    match name {
        "degrees" => Params::new().with("degrees", "3,2"),
        _ => Params::new(),
    }
}

/// Every algorithm of every collective has messages, if it has a plan: all bytes arrive.
#[test]
fn every_plan_has_stages() {
    for collective in Collective::ALL {
        let bytes = if collective.moves_data() { 4096 } else { 0 };
        let mut some = 0;
        for algorithm in lineweave_core::algorithm::table(collective) {
            let problem = Problem::flat(collective, 6, bytes);
            let Ok(plan) = algorithm.plan(&problem, &Params::new()) else { continue };
            let stages = Schedule::of(&plan).stages;
            assert!(!stages.is_empty(), "{collective}/{}", algorithm.name);
            assert!(bytes == 0 || stages.iter().any(|s| s.bytes > 0), "{collective}/{}", algorithm.name);
            some += 1;
        }
        assert!(some > 0, "{collective}");
    }
}

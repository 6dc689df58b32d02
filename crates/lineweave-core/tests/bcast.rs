//! Every broadcast, proved where its parameters make a difference.

use lineweave_core::algorithm::bcast::TABLE;
use lineweave_core::algorithm::{Algorithm, Participants, Place, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::plan::{Blocks, Builder, Params, Plan, PlanError, Reuse};
use lineweave_core::topology::{Cpu, Shape};
use lineweave_core::verify::{verify, verify_runs};

/// Two packages of two NUMA nodes of two cores of two hardware threads, or as much of it as `p` ranks take.
fn shape(p: usize) -> Shape {
    let cpus = (0..p).map(|c| Cpu { os: c, core: c / 2, l3: c / 4, numa: c / 4, package: c / 8, kind: 0 });
    Shape::on(cpus.collect())
}

fn problem(p: usize, root: usize, bytes: usize, grain: usize) -> Problem {
    Problem {
        collective: Collective::Bcast,
        shape: shape(p),
        root,
        bytes,
        blocks: Blocks::Dense,
        grain,
        direct: true,
    }
}

fn proved(algorithm: &Algorithm, problem: &Problem, params: &Params) -> Plan {
    let case = || {
        let (p, root, bytes) = (problem.ranks(), problem.root, problem.bytes);
        format!("{algorithm:?} {params} p={p} root={root} bytes={bytes}")
    };
    let plan = algorithm.plan(problem, params).unwrap_or_else(|e| panic!("{}: {e}", case()));
    if let Err(violation) = verify(&plan) {
        panic!("{}: {violation}", case());
    }
    plan
}

/// Parameters that make plans small enough to prove many of, yet with several chunks and reused slots.
fn settings(algorithm: &Algorithm) -> Vec<Params> {
    let has = |name: &str| algorithm.params.iter().any(|p| p.name == name);
    let mut out = vec![Params::new()];
    let mut add = |needs: &[&str], params: Params| {
        if needs.iter().all(|n| has(n)) {
            out.push(params);
        }
    };
    let p = Params::new;
    add(&["chunk"], p().with("chunk", 64));
    add(&["chunk", "slots"], p().with("chunk", 64).with("slots", 1));
    add(&["chunk", "slots"], p().with("chunk", 40).with("slots", 3).with("layout", "paired"));
    add(&["chunk", "slots", "carry"], p().with("chunk", 0).with("slots", 0).with("carry", 0));
    add(&["carry"], p().with("carry", 3).with("layout", "spread2"));
    add(&["layout"], p().with("layout", if has("carry") { "packed" } else { "paired" }));
    for notify in ["each", "shared", "binary"] {
        add(&["notify", "slots"], p().with("notify", notify).with("chunk", 100).with("slots", 2));
        // Rotating relays need chunks to take turns at.
        if !has("ahead") {
            add(&["notify", "slots"], p().with("notify", notify).with("chunk", 0).with("slots", 0));
        }
    }
    add(&["source"], p().with("source", "root").with("chunk", 48));
    add(&["source"], p().with("source", "root").with("notify", "binary"));
    add(&["siblings"], p().with("siblings", 3).with("k", 7).with("chunk", 64));
    add(&["k"], p().with("k", 2));
    add(&["ahead"], p().with("k", 2).with("chunk", 24).with("slots", 3).with("ahead", 2));
    add(&["g"], p().with("g", 3).with("chunk", 64));
    add(&["degrees"], p().with("degrees", "3,2"));
    add(&["ratio"], p().with("ratio", 2));
    add(&["via"], p().with("via", "push"));
    add(&["share"], p().with("share", 33));
    add(&["share"], p().with("share", 0));
    add(&["ack"], p().with("ack", "counter"));
    add(&["ack"], p().with("ack", 2).with("notify", "each"));
    if has("levels") && has("slots") {
        add(&[], p().with("levels", "core:flat,numa:chain,machine:kary(k=2)").with("chunk", 64));
    } else if has("levels") {
        add(&[], p().with("levels", "core:flat,numa:chain(chunk=64),machine:scatter-ring"));
        add(&[], p().with("levels", "numa:direct-flat,machine:pipelined-kary(k=2;chunk=64)"));
    }
    out
}

#[test]
fn every_setting_is_proved_at_the_sizes_where_it_changes() {
    for algorithm in TABLE {
        for params in settings(algorithm) {
            for p in [1, 2, 3, 7, 13] {
                // None, one, the payloads of a paired and a lone line, and chunks that end early, late and just so.
                for bytes in [0, 1, 24, 25, 56, 57, 168, 200, 321] {
                    proved(algorithm, &problem(p, p / 2, bytes, 1), &params);
                }
            }
        }
    }
}

#[test]
fn every_number_of_ranks_and_every_root_is_proved() {
    for algorithm in TABLE {
        for p in 1..=17 {
            for root in 0..p {
                proved(algorithm, &problem(p, root, 232, 8), &Params::new());
            }
        }
        proved(algorithm, &problem(64, 33, 64 * 65, 8), &Params::new());
    }
}

#[test]
fn every_candidate_is_proved_and_they_are_few() {
    for algorithm in TABLE {
        for (p, bytes) in [(2, 8), (2, 300), (2, 100_000), (8, 40), (8, 5000), (12, 300_000)] {
            let problem = problem(p, 1, bytes, 1);
            let candidates = (algorithm.candidates)(&problem);
            assert!(candidates.len() <= 24, "{algorithm:?}: {} for p={p} bytes={bytes}", candidates.len());
            for (i, params) in candidates.iter().enumerate() {
                assert!(!candidates[..i].contains(params), "{algorithm:?} names {params} twice");
                proved(algorithm, &problem, params);
            }
        }
    }
}

#[test]
fn two_ranks_are_not_offered_one_plan_under_many_names() {
    for bytes in [0, 8, 300, 5000, 1 << 20] {
        let problem = problem(2, 0, bytes, 1);
        let mut seen: Vec<Vec<Vec<lineweave_core::plan::Op>>> = Vec::new();
        for algorithm in TABLE {
            for params in (algorithm.candidates)(&problem).iter().filter(|p| p.get("layout").is_none()) {
                let programs = algorithm.plan(&problem, params).unwrap().programs;
                assert!(bytes == 0 || !seen.contains(&programs), "{algorithm:?} {params} at {bytes} bytes");
                seen.push(programs);
            }
        }
        assert!(!seen.is_empty());
    }
}

/// Some ranks in an order of their own, with the message where a phase before left it.
#[test]
fn a_scope_may_be_some_ranks_and_start_from_out_or_acc() {
    for algorithm in TABLE {
        for place in [Place::OUT, Place::acc(64)] {
            let problem = problem(8, 5, 200, 1);
            let mut b = Builder::new(Collective::Bcast, "parts", &Params::new(), 8, 5, 200, 1);
            assert_eq!((b.acc(64), b.acc(200)), (0, 64));
            let participants = |members: &[usize], root: usize, from: Place| Participants {
                members: members.to_vec(),
                root,
                from: vec![from; members.len()],
                ..Participants::all(&problem)
            };
            let first = participants(&[3, 5, 6], 1, Place::IN);
            (algorithm.emit)(&mut b, &problem, &first, &Params::new()).unwrap();
            b.mov(6, Place::OUT.at(0..200), place.at(0..200));
            let second = participants(&[4, 1, 7, 6, 0, 2], 3, place);
            match (algorithm.emit)(&mut b, &problem, &second, &Params::new()) {
                Err(PlanError::NotApplicable { .. }) => {
                    assert!(place != Place::OUT && algorithm.name.starts_with("direct"), "{algorithm:?}");
                    continue;
                }
                other => other.unwrap_or_else(|e| panic!("{algorithm:?}: {e}")),
            }
            if let Err(violation) = verify(&b.finish()) {
                panic!("{algorithm:?} from {place:?}: {violation}");
            }
        }
    }
}

#[test]
fn pipelines_meant_for_windows_stay_in_one_bank() {
    for name in ["chain", "pipelined-kary", "two-segment-tree", "scatter-ring", "scatter-doubling"] {
        let algorithm = TABLE.iter().find(|a| a.name == name).unwrap();
        let plan = proved(algorithm, &problem(6, 0, 100_000, 1), &Params::new());
        assert_eq!(plan.reuse, Reuse::Same, "{name}");
        assert!(verify_runs(&plan, 5).is_ok(), "{name}");
    }
}

#[test]
fn boxes_of_reused_slots_do_not_grow_with_the_message() {
    let chain = TABLE.iter().find(|a| a.name == "chain").unwrap();
    let params = Params::new().with("chunk", 1024).with("slots", 2);
    let plan = chain.plan(&problem(4, 0, 64 * 1024, 1), &params).unwrap();
    assert_eq!(plan.slots, vec![1024, 1024]);
    let most = plan.programs.iter().map(Vec::len).max().unwrap();
    assert!(most <= 64 * 6, "64 chunks make {most} ops");
}

#[test]
fn direct_plans_need_direct_access() {
    for algorithm in TABLE.iter().filter(|a| a.name.starts_with("direct")) {
        let problem = Problem { direct: false, ..problem(4, 0, 4096, 1) };
        assert!((algorithm.candidates)(&problem).is_empty());
        let error = algorithm.plan(&problem, &Params::new()).unwrap_err();
        assert!(matches!(error, PlanError::NotApplicable { .. }), "{error}");
    }
}

#[test]
fn parameters_out_of_range_are_refused() {
    for (name, key, value) in [
        ("flat", "notify", "loudly"),
        ("flat", "chunk", "-1"),
        ("flat", "layout", "spread1"),
        ("binomial", "source", "moon"),
        ("knomial", "k", "1"),
        ("fibonacci", "ratio", "nan"),
        ("fibonacci", "ratio", "-1"),
        ("degrees", "degrees", "3,0"),
        ("degrees", "degrees", ""),
        ("cyclic", "via", "air"),
        ("direct-flat", "ack", "0"),
        ("direct-flat", "notify", "binary"),
        ("direct-flat", "layout", "packed"),
        ("direct-split", "share", "101"),
    ] {
        let algorithm = TABLE.iter().find(|a| a.name == name).unwrap();
        let error = algorithm.plan(&problem(4, 0, 4096, 1), &Params::new().with(key, value)).unwrap_err();
        assert!(matches!(error, PlanError::BadParameter { .. }), "{name} {key}={value}: {error}");
    }
    let flat = TABLE.iter().find(|a| a.name == "binomial").unwrap();
    let params = Params::new().with("source", "root").with("slots", 2);
    assert!(flat.plan(&problem(4, 0, 4096, 1), &params).is_err());
}

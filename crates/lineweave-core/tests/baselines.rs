//! Published algorithms that are there for comparison, and so not among the candidates that sweeps prove.

use lineweave_core::algorithm::{find, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::plan::Params;
use lineweave_core::verify::verify;

fn proved(collective: Collective, name: &str, params: &[Params], most: usize) {
    let algorithm = find(collective, name).unwrap();
    assert!((algorithm.candidates)(&Problem::flat(collective, 8, 4096)).is_empty(), "{name} is a baseline");
    // Some have no root but ways that meet at a rank, which is a parameter.
    let meets = algorithm.params.iter().any(|p| p.name == "root");
    for ranks in 1..=most {
        for root in 0..if collective.rooted() || meets { ranks } else { 1 } {
            for bytes in [0, 8, 200, 4008] {
                for params in params {
                    let mut problem = Problem::flat(collective, ranks, bytes);
                    problem.root = if collective.rooted() { root } else { 0 };
                    problem.grain = if collective.folds() { 8 } else { 1 };
                    let params = if meets { params.clone().with("root", root) } else { params.clone() };
                    let plan = algorithm.plan(&problem, &params).unwrap();
                    if let Err(violation) = verify(&plan) {
                        panic!("{name} {params}: {ranks} ranks, root {root}, {bytes} bytes: {violation}");
                    }
                }
            }
        }
    }
}

fn p() -> Params {
    Params::new()
}

#[test]
fn oc_bcast() {
    let variants = [
        p(),
        p().with("k", 2).with("chunk", 256),
        p().with("k", 3).with("chunk", 64).with("leaf", "direct"),
        p().with("k", 47).with("chunk", 512).with("slots", 3).with("notify", "each"),
    ];
    proved(Collective::Bcast, "oc-bcast", &variants, 10);
}

#[test]
fn two_sided() {
    let variants = [p(), p().with("chunk", 512).with("slots", 2), p().with("chunk", 96).with("unset", "no")];
    for name in ["rcce", "rcce-comm-binomial", "rcce-comm-scatter-allgather"] {
        proved(Collective::Bcast, name, &variants, 8);
    }
    proved(Collective::Reduce, "rcce", &variants, 8);
    proved(Collective::Allreduce, "rcce", &variants, 8);
}

#[test]
fn split_boxes() {
    let variants = [p(), p().with("method", "long"), p().with("method", "short").with("chunk", 64)];
    for collective in [Collective::Bcast, Collective::Reduce, Collective::Allreduce] {
        proved(collective, "rckmpi", &variants, 9);
    }
    let variants = [p(), p().with("chunk", 64).with("slots", 2)];
    for collective in [Collective::Scatter, Collective::Allgather, Collective::Alltoall] {
        proved(collective, "rckmpi", &variants, 9);
    }
    proved(Collective::Allgather, "rckmpi", &[p().with("method", "ring").with("slots", 3)], 8);
}

#[test]
fn generated_trees() {
    let places = [(0, 1), (3, 1), (2, 2), (4, 3)];
    for tree in ["auto", "star", "chain", "binary", "two-phase"] {
        let with = |(columns, cores): (usize, usize)| {
            p().with("tree", tree).with("columns", columns).with("cores", cores).with("chunk", 1344)
        };
        proved(Collective::Reduce, "generated", &places.map(with), 14);
    }
}

#[test]
fn pipelined_ring() {
    let variants = [
        p().with("chunk", 104),
        p().with("chunk", 160).with("slots", 4).with("columns", 3).with("cores", 2),
        p().with("chunk", 160).with("slots", 3).with("columns", 2),
    ];
    proved(Collective::Allreduce, "pipelined-ring", &variants, 13);
}

#[test]
fn noc_msg() {
    let variants = [
        p().with("slots", 1).with("chunk", 808),
        p().with("columns", 3).with("slots", 2).with("chunk", 1344),
        p().with("columns", 2).with("slots", 3).with("chunk", 0),
    ];
    for collective in [Collective::Bcast, Collective::Reduce, Collective::Allreduce] {
        proved(collective, "noc-msg", &variants, 13);
    }
    let columns = [0, 2, 6].map(|columns| p().with("columns", columns));
    proved(Collective::Alltoall, "noc-msg", &columns, 13);
}

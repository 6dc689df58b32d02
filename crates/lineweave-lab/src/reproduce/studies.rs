//! Experiments of each paper on a machine at hand, and the rules by which its claims are judged: data alone.

use super::{Ask, How, Needs, Over, Picture, Point, Rule, Series, Study};
use crate::draw::Scale;
use crate::models::cache_line::{BEST, WORST};
use crate::models::put_get;
use lineweave_core::collective::Collective::{self, Allreduce, Alltoall, Barrier, Bcast, Reduce};

/// Every study.
pub static STUDIES: [&Study; 5] = [&RAMOS_HOEFLER, &PETROVIC, &CHUNDURI, &RICO_GALLEGO, &PATIL];

const SIZES: &[usize] = &[64, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576];
/// Lines of 32 bytes: one, a chunk of OC-Bcast, two, and long messages.
const CHUNKS: &[usize] = &[32, 3072, 6144, 24_576, 262_144, 1_048_576];

fn doubling(_: &[Point]) -> Scale {
    Scale::Doubling
}

fn bytes(_: &[Point]) -> Scale {
    Scale::Bytes
}

fn linear(_: &[Point]) -> Scale {
    Scale::Linear
}

/// An axis of the points' names.
fn named(points: &[Point]) -> Scale {
    let mut names: Vec<(f64, String)> = points.iter().filter_map(|p| Some((p.x, p.label.clone()?))).collect();
    names.sort_by(|a, b| a.0.total_cmp(&b.0));
    names.dedup_by(|a, b| a.0 == b.0);
    Scale::Names(names.into_iter().map(|n| n.1).collect())
}

const fn picture(
    name: &'static str,
    title: &'static str,
    x: &'static str,
    scale: fn(&[Point]) -> Scale,
    models: &'static [&'static str],
) -> Picture {
    Picture { name, title, x, scale, models }
}

/// Factors of a probe's cells, each with its level.
type Factors = &'static [(&'static str, &'static str)];

const fn probe(
    picture: &'static str,
    name: &'static str,
    probe: &'static str,
    factors: Factors,
    over: &'static str,
) -> Series {
    Series { picture, name, how: How::Probe { probe, factors, over } }
}

const PUT: Factors = &[("pattern", "put"), ("kind", "plain"), ("tau", "1")];
const TWO_PUTS: Factors = &[("pattern", "put"), ("kind", "plain"), ("tau", "2")];
const GET: Factors = &[("pattern", "get"), ("kind", "plain"), ("tau", "1")];
const TWO_GETS: Factors = &[("pattern", "get"), ("kind", "plain"), ("tau", "2")];

const fn copies(picture: &'static str, name: &'static str, factors: Factors) -> Series {
    probe(picture, name, "copy", factors, "bytes")
}

const fn calls(
    picture: &'static str,
    name: &'static str,
    (collective, algorithm): (Collective, &'static str),
    bytes: usize,
    over: Over,
) -> Series {
    Series { picture, name, how: How::Calls { collective, algorithm, bytes, over, processes: false } }
}

const fn by_processes(picture: &'static str, name: &'static str, algorithm: &'static str) -> Series {
    let how = How::Calls { collective: Barrier, algorithm, bytes: 0, over: Over::Ranks, processes: true };
    Series { picture, name, how }
}

const fn rule(item: &'static str, begins: &'static str, cpus: usize, ask: Ask) -> Rule {
    Rule { item, begins, needs: Needs { cpus, threads: 0, packages: 0 }, ask }
}

const fn with_threads(item: &'static str, begins: &'static str, threads: usize, ask: Ask) -> Rule {
    Rule { item, begins, needs: Needs { cpus: 2, threads, packages: 0 }, ask }
}

const MIN_MAX: &[&str] = &[BEST, WORST];

static RAMOS_HOEFLER: Study = Study {
    paper: "ramos-hoefler-2013",
    pictures: &[
        picture("states", "reading a line, by its state and place", "state of the line", named, &[]),
        picture("distance", "a flag, by the distance of the CPUs", "pollers", linear, &[]),
        picture("contention", "reading a line that others read too", "readers", linear, &[]),
        picture("lines", "ping-pong of several lines", "lines", doubling, &[]),
        picture("bandwidth", "copies to the other CPU, by how many go on at once", "bytes", bytes, &[]),
        picture("small-broadcast", "broadcasts of 8 bytes, one at a time", "threads", linear, MIN_MAX),
        picture("large-broadcast", "broadcasts among all CPUs, one at a time", "bytes", bytes, MIN_MAX),
        picture("barrier", "dissemination barriers", "threads", linear, MIN_MAX),
        picture("reduction", "reductions of 8 bytes, one at a time", "threads", linear, MIN_MAX),
    ],
    series: &[
        probe("states", "read", "line", &[("access", "read")], "state"),
        probe("distance", "signal", "signal", &[("layout", "alone"), ("pollers", "1")], "pollers"),
        probe("contention", "read", "contention", &[], "readers"),
        probe("lines", "ping-pong", "pingpong", &[], "lines"),
        copies("bandwidth", "1 at once", PUT),
        copies("bandwidth", "2 at once", TWO_PUTS),
        calls("small-broadcast", "flat", (Bcast, "flat"), 8, Over::Ranks),
        calls("small-broadcast", "binomial", (Bcast, "binomial"), 8, Over::Ranks),
        calls("small-broadcast", "3-nomial", (Bcast, "knomial(k=3)"), 8, Over::Ranks),
        calls("small-broadcast", "Fibonacci", (Bcast, "fibonacci"), 8, Over::Ranks),
        calls("small-broadcast", "degrees", (Bcast, "degrees"), 8, Over::Ranks),
        calls("large-broadcast", "flat", (Bcast, "flat"), 0, Over::Bytes(SIZES)),
        calls("large-broadcast", "pipelined", (Bcast, "cyclic"), 0, Over::Bytes(SIZES)),
        calls("barrier", "dissemination", (Barrier, "dissemination"), 0, Over::Ranks),
        calls("reduction", "degrees", (Reduce, "tree"), 8, Over::Ranks),
    ],
    rules: &[
        rule("section A.2", "2 or 4", 4, Ask::Alike { picture: "bandwidth" }),
        rule("section 2.4", "on Xeon Phi the distance", 2, Ask::Alike { picture: "distance" }),
        rule("fig 4.4", "", 4, Ask::Fastest { picture: "small-broadcast", who: "degrees", at_last: false }),
        rule(
            "fig 4.4, simulated, 60",
            "",
            60,
            Ask::Fastest { picture: "small-broadcast", who: "degrees", at_last: true },
        ),
        rule(
            "fig 4.4, simulated",
            "",
            4,
            Ask::Fastest { picture: "small-broadcast", who: "degrees", at_last: false },
        ),
        rule("fig 4.5, simulated", "", 2, Ask::Within { picture: "small-broadcast", models: [BEST, WORST] }),
        rule("fig 4.6, simulated", "", 3, LARGE),
        rule("section 4.1.3", "the flat tree", 3, LARGE),
        rule("fig 4.7, simulated", "", 2, Ask::Within { picture: "barrier", models: [BEST, WORST] }),
        rule("fig 4.8, simulated", "", 2, Ask::Within { picture: "reduction", models: [BEST, WORST] }),
        rule(
            "fig 3.6a, simulated",
            "",
            3,
            Ask::Cannot("its constants are the Xeon Phi's; the picture `contention` has this machine's"),
        ),
        rule(
            "fig 3.6b, simulated",
            "",
            3,
            Ask::Cannot("its constants are the Xeon Phi's; the picture `contention` has this machine's"),
        ),
    ],
    otherwise: "it is about the paper's two machines beside each other",
};

const LARGE: Ask = Ask::Order { picture: "large-broadcast", series: &["pipelined", "flat"] };

static CHUNDURI: Study = Study {
    paper: "chunduri-2015",
    pictures: &[
        picture("barriers", "six barriers of threads", "threads", linear, &[]),
        picture("processes", "barriers of processes", "processes", linear, &[]),
        picture("degrees", "the k-ary tree among all CPUs, by degree", "degree", linear, &[]),
        picture("layout", "the k-ary tree, by the lines of its flags", "threads", linear, &[]),
    ],
    series: &[
        calls("barriers", "k-ary tree", (Barrier, "tree(home=root,layout=paired)"), 0, Over::Ranks),
        calls("barriers", "tournament", (Barrier, "tournament"), 0, Over::Ranks),
        calls("barriers", "binomial", (Barrier, "binomial"), 0, Over::Ranks),
        calls("barriers", "dissemination", (Barrier, "dissemination"), 0, Over::Ranks),
        calls("barriers", "centralized", (Barrier, "centralized"), 0, Over::Ranks),
        calls("barriers", "counter", (Barrier, "counter"), 0, Over::Ranks),
        by_processes("processes", "k-ary tree", "tree(home=root,layout=paired)"),
        by_processes("processes", "dissemination", "dissemination"),
        calls("degrees", "one line a flag", (Barrier, "tree(home=root,layout=paired,k={})"), 0, DEGREES),
        calls("layout", "one integer a flag", (Barrier, "tree(home=root,layout=packed)"), 0, Over::Ranks),
        calls("layout", "one line a flag", (Barrier, "tree(home=root,layout=alone)"), 0, Over::Ranks),
        calls("layout", "5 lines a flag", (Barrier, "tree(home=root,layout=spread5)"), 0, Over::Ranks),
    ],
    rules: &[
        rule("fig 6", "", 4, Ask::Fastest { picture: "barriers", who: "k-ary tree", at_last: true }),
        with_threads(
            "fig 7",
            "the k-ary tree",
            2,
            Ask::Fastest { picture: "barriers", who: "k-ary tree", at_last: true },
        ),
        with_threads(
            "fig 7",
            "centralized",
            3,
            Ask::Order { picture: "barriers", series: &["centralized", "binomial"] },
        ),
        rule(
            "fig 2",
            "prefetching",
            9,
            Ask::Best { picture: "degrees", series: "one line a flag", printed: &[5.0, 7.0, 8.0] },
        ),
        rule("fig 3", "", 2, Ask::Fastest { picture: "layout", who: "5 lines a flag", at_last: true }),
        rule(
            "sections VI.B, VI.D",
            "",
            2,
            Ask::Order {
                picture: "layout",
                series: &["one integer a flag", "one line a flag", "5 lines a flag"],
            },
        ),
        rule("fig 4", "", 2, Ask::Cannot("a program cannot turn the prefetchers off")),
        Rule {
            item: "fig 5",
            begins: "",
            needs: Needs { cpus: 7, threads: 0, packages: 2 },
            ask: Ask::Cannot("the number of CPUs of a package is not the POWER8's 6"),
        },
        rule("section VI.E", "", 24, Ask::Cannot("7 and 24 ranks are not among the numbers measured")),
        rule("section VI.G", "192", 192, Ask::Cannot("its 4.5 us are the POWER8's")),
    ],
    otherwise: "its times are the POWER8's: its clock, its chips and its POSIX barrier",
};

const DEGREES: Over = Over::Degrees(&[1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23]);

static PETROVIC: Study = Study {
    paper: "petrovic-2012",
    pictures: &[
        picture("copies", "puts and gets of one core", "bytes", bytes, &[]),
        picture("broadcast", "broadcasts among all CPUs, one at a time", "bytes", bytes, &[put_get::NAME]),
    ],
    series: &[
        copies("copies", "put", PUT),
        copies("copies", "get", GET),
        calls("broadcast", "k = 2", (Bcast, "oc-bcast(k=2)"), 0, Over::Bytes(CHUNKS)),
        calls("broadcast", "k = 7", (Bcast, "oc-bcast(k=7)"), 0, Over::Bytes(CHUNKS)),
        calls("broadcast", "k = 47", (Bcast, "oc-bcast(k=47)"), 0, Over::Bytes(CHUNKS)),
        calls("broadcast", "binomial", (Bcast, "binomial"), 0, Over::Bytes(CHUNKS)),
        calls("broadcast", "scatter-allgather", (Bcast, "scatter-ring"), 0, Over::Bytes(CHUNKS)),
    ],
    rules: &[
        rule("section 6.2.2, 3x", "", 8, THREE_TIMES),
        rule("fig 8b, 1 MiB", "", 8, THREE_TIMES),
        rule(
            "fig 6a, order",
            "",
            48,
            Ask::Order { picture: "broadcast", series: &["binomial", "k = 2", "k = 7", "k = 47"] },
        ),
    ],
    otherwise: "it is about a chip's message buffers and mesh, which a machine with coherent caches has not",
};

const THREE_TIMES: Ask =
    Ask::Times { picture: "broadcast", series: ["k = 7", "scatter-allgather"], factor: 3.0 };

static RICO_GALLEGO: Study = Study {
    paper: "rico-gallego-2015",
    pictures: &[
        picture("transfers", "L(m, tau): copies, by how many go on at once", "bytes", bytes, &[]),
        picture("message", "a message between two CPUs", "bytes", bytes, MESSAGES),
        picture(
            "broadcast",
            "the binomial broadcast among all CPUs, one at a time",
            "bytes",
            bytes,
            MESSAGES,
        ),
        picture("allgather", "the ring allgather among all CPUs", "bytes of a block", bytes, MESSAGES),
    ],
    series: &[
        copies("transfers", "put, 1 at once", PUT),
        copies("transfers", "put, 2 at once", TWO_PUTS),
        copies("transfers", "get, 1 at once", GET),
        copies("transfers", "get, 2 at once", TWO_GETS),
        calls("message", "flat", (Bcast, "flat"), 0, Over::Bytes(SIZES)),
        calls("broadcast", "binomial", (Bcast, "binomial"), 0, Over::Bytes(SIZES)),
        calls("allgather", "ring", (Collective::Allgather, "ring"), 0, Over::Bytes(SIZES)),
    ],
    rules: &[
        rule("fig 10", "", 4, Ask::LeastError { picture: "broadcast", model: "tau-Lop" }),
        rule("fig 9", "", 4, Ask::LeastError { picture: "broadcast", model: "tau-Lop" }),
        rule("fig 12", "", 4, Ask::LeastError { picture: "allgather", model: "tau-Lop" }),
    ],
    otherwise:
        "it is about an MPI's own channel on Lusitania or Metropolis, which `lab models` does not measure",
};

const MESSAGES: &[&str] = &["tau-Lop", "log_nP", "LogGP"];

static PATIL: Study = Study {
    paper: "patil-2014",
    pictures: &[
        picture("broadcast", "broadcasts among all CPUs, one at a time", "bytes", bytes, &[]),
        picture("reduce", "reductions among all CPUs, one at a time", "bytes", bytes, &[]),
        picture("allreduce", "allreduce among all CPUs", "bytes", bytes, &[]),
        picture("barrier", "barriers", "threads", linear, &[]),
        picture("alltoall", "alltoall among all CPUs", "bytes of a block", bytes, &[]),
    ],
    series: &[
        calls("broadcast", "binomial", (Bcast, "binomial"), 0, Over::Bytes(SIZES)),
        calls("broadcast", "pipelined k-ary", (Bcast, "pipelined-kary"), 0, Over::Bytes(SIZES)),
        calls("reduce", "binomial", (Reduce, "binomial"), 0, Over::Bytes(SIZES)),
        calls("reduce", "flat", (Reduce, "flat"), 0, Over::Bytes(SIZES)),
        calls("allreduce", "recursive doubling", (Allreduce, "recursive-doubling"), 0, Over::Bytes(SIZES)),
        calls("allreduce", "ring", (Allreduce, "ring"), 0, Over::Bytes(SIZES)),
        calls("barrier", "dissemination", (Barrier, "dissemination"), 0, Over::Ranks),
        calls("barrier", "centralized", (Barrier, "centralized"), 0, Over::Ranks),
        calls("alltoall", "pairwise", (Alltoall, "pairwise"), 0, Over::Bytes(SIZES)),
        calls("alltoall", "flat", (Alltoall, "flat"), 0, Over::Bytes(SIZES)),
    ],
    rules: &[],
    otherwise: "it is about NoC_Msg along the rows and columns of the SCC's mesh, beside RCCE and RCKMPI: no such machine is here",
};

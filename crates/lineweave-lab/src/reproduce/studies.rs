//! Experiments of each paper on a machine at hand, and the rules by which its claims are judged: data alone.

mod patil;
mod ramos_hoefler;

use super::{Ask, By, Factor, How, Needs, Over, Picture, Point, Rule, Series, Study};
use crate::draw::Scale;
use crate::models::put_get;
use crate::paper::limit::{ALMOST, NUMBER, SAME};
use lineweave_core::collective::Collective::{self, Barrier, Bcast};
use patil::PATIL;
use ramos_hoefler::RAMOS_HOEFLER;

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
    what: (Collective, &'static str),
    bytes: usize,
    over: Over,
) -> Series {
    calls_by(By::Threads, picture, name, what, bytes, over)
}

const fn calls_by(
    by: By,
    picture: &'static str,
    name: &'static str,
    (collective, algorithm): (Collective, &'static str),
    bytes: usize,
    over: Over,
) -> Series {
    Series { picture, name, how: How::Calls { collective, algorithm, bytes, over, by } }
}

/// A barrier among ranks up to the most.
const fn barrier(by: By, picture: &'static str, name: &'static str, algorithm: &'static str) -> Series {
    calls_by(by, picture, name, (Barrier, algorithm), 0, Over::Ranks)
}

const fn rule(
    item: &'static str,
    begins: &'static str,
    cpus: usize,
    picture: &'static str,
    ask: Ask,
) -> Rule {
    Rule { item, begins, needs: Needs { cpus, threads: 0, numa: 0, packages: 0 }, picture, ask }
}

const fn cannot(item: &'static str, begins: &'static str, cpus: usize, why: &'static str) -> Rule {
    rule(item, begins, cpus, "", Ask::Cannot(why))
}

const fn with_threads(begins: &'static str, threads: usize, ask: Ask) -> Rule {
    let needs = Needs { cpus: 2, threads, numa: 0, packages: 0 };
    Rule { item: "fig 7", begins, needs, picture: "threads", ask }
}

/// The end of the axis to the right.
const LAST: f64 = f64::INFINITY;

const fn times(series: [&'static str; 2], at: f64, factor: Factor) -> Ask {
    Ask::Times { series, at, factor }
}

/// So many times as fast, and more.
const fn over(factor: f64) -> Factor {
    Factor::Between(factor, f64::INFINITY)
}

static CHUNDURI: Study = Study {
    paper: "chunduri-2015",
    pictures: &[
        picture("barriers", "six barriers of threads", "threads", linear, &[]),
        picture("processes", "six barriers of processes", "processes", linear, &[]),
        picture("threads", "barriers with several threads a core", "threads a core", linear, &[]),
        picture("placement", "the k-ary tree, by the placement of its threads", "threads", linear, &[]),
        picture("degrees", "the k-ary tree among all CPUs, by degree", "degree", linear, &[]),
        picture("layout", "the k-ary tree, by the lines of its flags", "threads", linear, &[]),
    ],
    series: &[
        barrier(By::Threads, "barriers", "k-ary tree", TREE),
        barrier(By::Threads, "barriers", "tournament", "tournament"),
        barrier(By::Threads, "barriers", "binomial", "binomial"),
        barrier(By::Threads, "barriers", "dissemination", "dissemination"),
        barrier(By::Threads, "barriers", "centralized", "centralized"),
        barrier(By::Threads, "barriers", "counter", "counter"),
        barrier(By::Peer, "barriers", "POSIX", "pthread"),
        barrier(By::Peer, "barriers", "GNU OpenMP", "libgomp"),
        barrier(By::Peer, "barriers", "LLVM OpenMP", "libomp"),
        barrier(By::Processes, "processes", "k-ary tree", TREE),
        barrier(By::Processes, "processes", "tournament", "tournament"),
        barrier(By::Processes, "processes", "binomial", "binomial"),
        barrier(By::Processes, "processes", "dissemination", "dissemination"),
        barrier(By::Processes, "processes", "centralized", "centralized"),
        barrier(By::Processes, "processes", "counter", "counter"),
        barrier(By::Mpi, "processes", "MPI", "mpi"),
        calls("threads", "k-ary tree", (Barrier, TREE), 0, Over::Threads),
        calls("threads", "binomial", (Barrier, "binomial"), 0, Over::Threads),
        calls("threads", "centralized", (Barrier, "centralized"), 0, Over::Threads),
        barrier(By::Threads, "placement", "as the others", TREE),
        barrier(By::Filling, "placement", "core after core filled", TREE),
        calls("degrees", "one line a flag", (Barrier, "tree(home=root,layout=paired,k={})"), 0, DEGREES),
        calls("layout", "one integer a flag", (Barrier, "tree(home=root,layout=packed)"), 0, Over::Ranks),
        calls("layout", "one line a flag", (Barrier, "tree(home=root,layout=alone)"), 0, Over::Ranks),
        calls("layout", "5 lines a flag", (Barrier, "tree(home=root,layout=spread5)"), 0, Over::Ranks),
    ],
    rules: &[
        rule("fig 6", "", 4, "barriers", fastest(&["tournament", "binomial", "dissemination"], true)),
        with_threads("the k-ary tree", 2, fastest(&[], false)),
        with_threads("centralized", 3, Ask::Order { series: &["centralized", "binomial"], at: &[] }),
        rule(
            "fig 2",
            "prefetching",
            9,
            "degrees",
            Ask::Best { series: "one line a flag", printed: &[5.0, 7.0, 8.0] },
        ),
        rule("fig 3", "", 2, "layout", Ask::Fastest { who: "5 lines a flag", than: &[], at_last: true }),
        rule(
            "sections VI.B, VI.D",
            "",
            2,
            "layout",
            Ask::Order { series: &["one integer a flag", "one line a flag", "5 lines a flag"], at: &[] },
        ),
        cannot("fig 4", "", 2, "a program cannot turn the prefetchers off"),
        Rule {
            item: "fig 5",
            begins: "",
            needs: Needs { cpus: 7, threads: 0, numa: 0, packages: 2 },
            picture: "",
            ask: Ask::Cannot("the number of CPUs of a package is not the POWER8's 6"),
        },
        cannot("section VI.E", "", 24, "7 and 24 ranks are not among the numbers measured"),
        cannot("section VI.G", "192", 192, "its 4.5 us are the POWER8's"),
        rule(
            "table V",
            "",
            192,
            "barriers",
            times(["k-ary tree", "POSIX"], LAST, Factor::About(647.0, &NUMBER)),
        ),
    ],
    otherwise: "its times are the POWER8's: its clock, its chips and its POSIX barrier",
};

const TREE: &str = "tree(home=root,layout=paired)";

const fn fastest(than: &'static [&'static str], at_last: bool) -> Ask {
    Ask::Fastest { who: "k-ary tree", than, at_last }
}

const DEGREES: Over = Over::Degrees(&[1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23]);

static PETROVIC: Study = Study {
    paper: "petrovic-2012",
    pictures: &[
        picture("copies", "puts and gets of one core", "bytes", bytes, &[]),
        picture("hops", "gets to the own buffer, by distance on the mesh", "lines", doubling, &[]),
        picture("broadcast", "broadcasts among all CPUs, one at a time", "bytes", bytes, &[put_get::NAME]),
        picture("degrees", "OC-Bcast among all CPUs, one at a time", "k", linear, &[put_get::NAME]),
    ],
    series: &[
        copies("copies", "put", PUT),
        copies("copies", "get", GET),
        probe("hops", ROUTERS[0], "mesh", &[], "lines"),
        probe("hops", ROUTERS[1], "mesh", &[], "lines"),
        calls("degrees", "1 line", (Bcast, "oc-bcast(k={})"), 32, KS),
        calls("degrees", "96 lines", (Bcast, "oc-bcast(k={})"), 3072, KS),
        calls("degrees", "192 lines", (Bcast, "oc-bcast(k={})"), 6144, KS),
        calls("broadcast", "k = 2", (Bcast, "oc-bcast(k=2)"), 0, Over::Bytes(CHUNKS)),
        calls("broadcast", "k = 7", (Bcast, "oc-bcast(k=7)"), 0, Over::Bytes(CHUNKS)),
        calls("broadcast", "k = 47", (Bcast, "oc-bcast(k=47)"), 0, Over::Bytes(CHUNKS)),
        calls("broadcast", "binomial", (Bcast, "rcce-comm-binomial"), 0, Over::Bytes(CHUNKS)),
        calls(
            "broadcast",
            "scatter-allgather",
            (Bcast, "rcce-comm-scatter-allgather"),
            0,
            Over::Bytes(CHUNKS),
        ),
    ],
    rules: &[
        rule("fig 3", "", 2, "hops", times(ROUTERS, 128.0, Factor::About(1.3, &SAME))),
        rule("section 6.2.2, 3x", "", 8, "broadcast", THREE_TIMES),
        rule("fig 8b, 1 MiB", "", 8, "broadcast", THREE_TIMES),
        rule("section 6.2.1, 27 %", "", 8, "broadcast", times(["k = 7", "binomial"], 32.0, over(1.27))),
        rule(
            "section 6.2.1, k = 7 and 2",
            "",
            8,
            "broadcast",
            times(["k = 7", "k = 2"], 6144.0, Factor::About(1.25, &ALMOST)),
        ),
        rule(
            "fig 6a, order",
            "",
            48,
            "broadcast",
            Ask::Order { series: &["binomial", "k = 2", "k = 7", "k = 47"], at: &[6144.0] },
        ),
    ],
    otherwise: "it is about message buffers, flags or links of a mesh, which no series here has",
};

const ROUTERS: [&str; 2] = ["1 router", "the far corner"];
const KS: Over = Over::Degrees(&[1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 47]);
const THREE_TIMES: Ask = times(["k = 7", "scatter-allgather"], 1_048_576.0, Factor::About(3.0, &ALMOST));

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
        rule("fig 10", "", 4, "broadcast", Ask::LeastError { model: "tau-Lop" }),
        rule("fig 9", "", 4, "broadcast", Ask::LeastError { model: "tau-Lop" }),
        rule("fig 12", "", 4, "allgather", Ask::LeastError { model: "tau-Lop" }),
    ],
    otherwise:
        "it is about an MPI's own channel on Lusitania or Metropolis, which `lab models` does not measure",
};

const MESSAGES: &[&str] = &["tau-Lop", "log_nP", "LogGP"];

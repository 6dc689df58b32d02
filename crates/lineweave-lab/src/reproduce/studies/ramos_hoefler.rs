//! The experiments of Ramos & Hoefler 2013.

use super::super::{Ask, By, Needs, Over, Rule, Study};
use super::{barrier, bytes, calls, calls_by, cannot, copies, doubling, linear, named, picture, probe, rule};
use super::{PUT, SIZES, TWO_PUTS};
use crate::models::cache_line::{BEST, WORST};
use lineweave_core::collective::Collective::{Barrier, Bcast, Reduce};

/// The series of what the published optimiser chooses.
const OPTIMISED: &str = "optimised";
const PUBLISHED: &str = "@published";

const fn fastest(at_last: bool) -> Ask {
    const THAN: &[&str] = &["flat", "binomial", "3-nomial", "Fibonacci"];
    Ask::Fastest { who: OPTIMISED, than: THAN, at_last }
}

const MIN_MAX: &[&str] = &[BEST, WORST];

pub(super) static RAMOS_HOEFLER: Study = Study {
    paper: "ramos-hoefler-2013",
    pictures: &[
        picture("states", "reading a line, by its state and place", "state of the line", named, &[]),
        picture(
            "state-ping-pong",
            "ping-pong of a line, by states of both buffers",
            "sender-receiver",
            named,
            &[],
        ),
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
        calls("small-broadcast", OPTIMISED, (Bcast, PUBLISHED), 8, Over::Ranks),
        calls_by(By::Mpi, "small-broadcast", "MPI", (Bcast, "mpi"), 8, Over::Ranks),
        calls("large-broadcast", "flat", (Bcast, "flat"), 0, Over::Bytes(SIZES)),
        calls("large-broadcast", "pipelined", (Bcast, "cyclic"), 0, Over::Bytes(SIZES)),
        calls("large-broadcast", OPTIMISED, (Bcast, PUBLISHED), 0, Over::Bytes(SIZES)),
        calls_by(By::Mpi, "large-broadcast", "MPI", (Bcast, "mpi"), 0, Over::Bytes(SIZES)),
        barrier(By::Threads, "barrier", "dissemination", "dissemination"),
        calls("barrier", OPTIMISED, (Barrier, PUBLISHED), 0, Over::Ranks),
        barrier(By::Peer, "barrier", "GNU OpenMP", "libgomp"),
        barrier(By::Peer, "barrier", "LLVM OpenMP", "libomp"),
        barrier(By::Mpi, "barrier", "MPI", "mpi"),
        calls("reduction", "degrees", (Reduce, "tree"), 8, Over::Ranks),
        calls("reduction", OPTIMISED, (Reduce, PUBLISHED), 8, Over::Ranks),
        calls_by(By::Mpi, "reduction", "MPI", (Reduce, "mpi"), 8, Over::Ranks),
    ],
    rules: &[
        Rule {
            item: "section A.2",
            begins: "2 or 4",
            needs: Needs { cpus: 4, threads: 0, numa: 2, packages: 0 },
            picture: "bandwidth",
            ask: Ask::Alike,
        },
        rule("section 2.4", "on Xeon Phi the distance", 2, "distance", Ask::Alike),
        rule("section 2.4", "between cores", 2, "state-ping-pong", Ask::Off { but: "I-" }),
        rule("fig 4.4", "", 4, "small-broadcast", fastest(false)),
        rule("fig 4.4, simulated, 60", "", 60, "small-broadcast", fastest(true)),
        rule("fig 4.4, simulated", "", 4, "small-broadcast", fastest(false)),
        rule("fig 4.5, simulated", "", 2, "small-broadcast", Ask::Within { models: [BEST, WORST] }),
        rule("fig 4.6, simulated", "", 3, "large-broadcast", LARGE),
        rule("section 4.1.3", "the flat tree", 3, "large-broadcast", LARGE),
        rule("fig 4.7, simulated", "", 2, "barrier", Ask::Within { models: [BEST, WORST] }),
        rule("fig 4.8, simulated", "", 2, "reduction", Ask::Within { models: [BEST, WORST] }),
        cannot(
            "fig 3.6a, simulated",
            "",
            3,
            "its constants are the Xeon Phi's; the picture `contention` has this machine's",
        ),
        cannot(
            "fig 3.6b, simulated",
            "",
            3,
            "its constants are the Xeon Phi's; the picture `contention` has this machine's",
        ),
    ],
    otherwise: "it is about the paper's two machines beside each other",
};

const LARGE: Ask = Ask::Order { series: &["pipelined", "flat"], at: &[] };

//! The experiments of Patil 2014: NoC_Msg beside RCCE, RCKMPI and OC-Bcast.

use super::super::{Ask, By, Factor, Over, Study};
use super::{barrier, bytes, calls, calls_by, cannot, linear, over, picture, rule, times, LAST};
use crate::paper::limit::NUMBER;
use lineweave_core::collective::Collective::{self, Allreduce, Alltoall, Barrier, Bcast, Reduce};

/// Lengths of figures 6.2, 6.4 and 6.5, whole doubles.
const LENGTHS: Over = Over::Bytes(&[8, 32, 256, 1024, 4096, 32_768, 262_144]);
const BLOCKS: Over = Over::Bytes(&[16, 32, 64, 128, 1024, 4096]);
const LINE: usize = 32;
const LONG: usize = 262_144;
/// Cores from which on rows and columns of tiles are told apart.
const MESH: usize = 16;
const RCCE: [&str; 2] = ["NoC_Msg", "RCCE"];
const RCKMPI: [&str; 2] = ["NoC_Msg", "RCKMPI"];
const OC_BCAST: [&str; 2] = ["NoC_Msg", "OC-Bcast"];
/// An order of magnitude; half of one; two; three.
const TENFOLD: Factor = Factor::Between(3.2, 32.0);
const HALF: Factor = Factor::Between(1.8, 5.6);
const HUNDREDFOLD: Factor = Factor::Between(32.0, 316.0);
const THOUSANDFOLD: Factor = Factor::Between(316.0, 3162.0);

const fn lengths(
    what: Collective,
    picture: &'static str,
    name: &'static str,
    algorithm: &'static str,
) -> super::Series {
    calls(picture, name, (what, algorithm), 0, LENGTHS)
}

const fn mpi(what: Collective, picture: &'static str, over: Over) -> super::Series {
    calls_by(By::Mpi, picture, "MPI", (what, "mpi"), 0, over)
}

const fn about(factor: f64) -> Factor {
    Factor::About(factor, &NUMBER)
}

pub(super) static PATIL: Study = Study {
    paper: "patil-2014",
    pictures: &[
        picture("broadcast", "broadcasts among all CPUs, one at a time", "bytes", bytes, &[]),
        picture("long", "broadcasts of 256 KiB, one at a time", "ranks", linear, &[]),
        picture("line", "broadcasts of 32 bytes, one at a time", "ranks", linear, &[]),
        picture("reduce", "reductions among all CPUs, one at a time", "bytes", bytes, &[]),
        picture("allreduce", "allreduce among all CPUs", "bytes", bytes, &[]),
        picture("barrier", "barriers", "ranks", linear, &[]),
        picture("roots", "NoC_Msg among all CPUs, by its root", "root", linear, &[]),
        picture("alltoall", "alltoall among all CPUs", "bytes of a block", bytes, &[]),
        picture("alltoallv", "alltoallv among all CPUs", "bytes of a block on average", bytes, &[]),
    ],
    series: &[
        lengths(Bcast, "broadcast", "NoC_Msg", "noc-msg"),
        lengths(Bcast, "broadcast", "RCCE", "rcce"),
        lengths(Bcast, "broadcast", "RCKMPI", "rckmpi"),
        lengths(Bcast, "broadcast", "OC-Bcast", "oc-bcast"),
        lengths(Bcast, "broadcast", "pipelined k-ary", "pipelined-kary"),
        mpi(Bcast, "broadcast", LENGTHS),
        calls("long", "NoC_Msg", (Bcast, "noc-msg"), LONG, Over::Ranks),
        calls("long", "RCCE", (Bcast, "rcce"), LONG, Over::Ranks),
        calls("line", "NoC_Msg", (Bcast, "noc-msg"), LINE, Over::Ranks),
        calls("line", "OC-Bcast", (Bcast, "oc-bcast"), LINE, Over::Ranks),
        lengths(Reduce, "reduce", "NoC_Msg", "noc-msg"),
        lengths(Reduce, "reduce", "RCCE", "rcce"),
        lengths(Reduce, "reduce", "RCKMPI", "rckmpi"),
        mpi(Reduce, "reduce", LENGTHS),
        lengths(Allreduce, "allreduce", "NoC_Msg", "noc-msg"),
        lengths(Allreduce, "allreduce", "RCCE", "rcce"),
        lengths(Allreduce, "allreduce", "RCKMPI", "rckmpi"),
        mpi(Allreduce, "allreduce", LENGTHS),
        barrier(By::Threads, "barrier", "NoC_Msg", "noc-msg"),
        barrier(By::Threads, "barrier", "RCCE", "centralized(release=each,layout=alone)"),
        barrier(By::Threads, "barrier", "RCKMPI", "dissemination"),
        barrier(By::Mpi, "barrier", "MPI", "mpi"),
        calls("roots", "barrier", (Barrier, "noc-msg(root={})"), 0, Over::Roots),
        calls("roots", "broadcast of 32 bytes", (Bcast, "noc-msg"), LINE, Over::Roots),
        calls("roots", "reduction of 32 bytes", (Reduce, "noc-msg"), LINE, Over::Roots),
        calls("roots", "broadcast of 256 KiB", (Bcast, "noc-msg"), LONG, Over::Roots),
        calls("alltoall", "NoC_Msg", (Alltoall, "noc-msg"), 0, BLOCKS),
        calls("alltoall", "RCKMPI", (Alltoall, "rckmpi"), 0, BLOCKS),
        mpi(Alltoall, "alltoall", BLOCKS),
        calls_by(By::Uneven, "alltoallv", "NoC_Msg", (Alltoall, "noc-msg"), 0, BLOCKS),
        calls_by(By::Uneven, "alltoallv", "RCKMPI", (Alltoall, "rckmpi"), 0, BLOCKS),
    ],
    rules: &[
        // Right middle of the second and the third row.
        rule(
            "fig 6.1",
            "",
            48,
            "roots", Ask::Best { series: "barrier", printed: &[18.0, 19.0, 30.0, 31.0] },
        ),
        rule("fig 6.2a", "", MESH, "broadcast", times(RCCE, 8.0, TENFOLD)),
        rule("fig 6.2a, RCKMPI", "", MESH, "broadcast", times(RCKMPI, 8.0, HALF)),
        rule("fig 6.2b", "", MESH, "broadcast", times(RCCE, 262_144.0, about(2.5))),
        rule("fig 6.2c", "", MESH, "long", Ask::Constant { series: "NoC_Msg", from: 8.0 }),
        rule("fig 6.3, few cores", "", MESH, "line", times(OC_BCAST, 16.0, over(1.0))),
        rule("fig 6.3, many cores", "", MESH, "broadcast", times(OC_BCAST, 262_144.0, Factor::Between(0.9, 1.0))),
        rule("fig 6.4b", "", MESH, "reduce", times(RCCE, 262_144.0, about(5.0))),
        rule("fig 6.4c", "", MESH, "reduce", times(RCCE, 262_144.0, about(1.0 / 0.12))),
        rule("fig 6.4, RCKMPI", "", MESH, "reduce", times(RCKMPI, 262_144.0, about(5.0))),
        rule("fig 6.5a", "", MESH, "allreduce", times(RCCE, 8.0, TENFOLD)),
        rule("fig 6.5b", "", MESH, "allreduce", times(RCCE, 4096.0, about(3.0))),
        rule("fig 6.8", "", MESH, "barrier", times(RCCE, LAST, HUNDREDFOLD)),
        rule("fig 6.8, RCKMPI", "", MESH, "barrier", times(RCKMPI, LAST, THOUSANDFOLD)),
        cannot("fig 6.8, spread", "", 2, "only the last rank to leave a barrier is timed"),
        rule("fig 6.9", "", MESH, "barrier", Ask::Order { series: &["RCCE", "NoC_Msg"], at: &[] }),
        rule("fig 6.6a", "", MESH, "alltoall", times(RCKMPI, 64.0, about(2.0))),
        rule("fig 6.7a", "", MESH, "alltoallv", times(RCKMPI, 32.0, about(2.0))),
        rule("fig 6.6b and 6.7b", "", MESH, "alltoall", times(RCKMPI, 4096.0, about(2.5))),
        cannot("section 5.5", "", 2, "it is proved or refuted of the plan, whatever the machine"),
    ],
    otherwise: "it is about puts and gets across the SCC's mesh, or several collectives together, which no series here has",
};

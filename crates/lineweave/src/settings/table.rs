//! The table.

use super::{values, Variable};
use crate::topology::Source;
use std::path::PathBuf;

/// Checks are on where assertions are.
const CHECK: &str = if cfg!(debug_assertions) { "1" } else { "0" };

/// The table.
pub const VARIABLES: [Variable; 24] = [
    Variable {
        name: "LINEWEAVE_WAIT",
        values: "spin, yield, sleep or auto",
        default: "auto",
        about: "how a rank waits: auto spins, then yields, then sleeps",
        set: |s, text| values::named(text).map(|v| s.wait = v),
    },
    Variable {
        name: "LINEWEAVE_PROFILE",
        values: "the path of a profile",
        default: "the cache, by machine fingerprint",
        about: "measured machine to choose algorithms by",
        set: |s, text| {
            s.profile = Some(PathBuf::from(text));
            Ok(())
        },
    },
    Variable {
        name: "LINEWEAVE_PROFILE_OPTIONAL",
        values: "0 or 1",
        default: "0",
        about: "what LINEWEAVE_PROFILE names is set aside with one line where it cannot be used, instead of an error",
        set: |s, text| values::switch(text).map(|v| s.run.profile_optional = v),
    },
    Variable {
        name: "LINEWEAVE_KEEP_PLANS",
        values: "0 or 1",
        default: "1",
        about: "choices, proofs and what the profile says are kept in this machine's folder of the cache, for programs that run later",
        set: |s, text| values::switch(text).map(|v| s.keep_plans = v),
    },
    Variable {
        name: "LINEWEAVE_TOPOLOGY",
        values: "machine, a synthetic string such as `pack:2 l3:2 core:8 pu:2`, or an hwloc XML file's path",
        default: "machine",
        about: "what stands in place of the machine's topology",
        set: |s, text| {
            s.topology = Source::parse(text);
            Ok(())
        },
    },
    Variable {
        name: "LINEWEAVE_BOX_BYTES",
        values: "a size from 4 KiB to 1 TiB: bytes, or such as 64KiB, 1.5MiB, 64k or 64kB",
        default: "1 MiB",
        about: "capacity of a large bank of a rank; longer messages go in windows",
        set: |s, text| values::size(text, 4 << 10, 1 << 40).map(|v| s.box_bytes = v),
    },
    Variable {
        name: "LINEWEAVE_CHECK",
        values: "0 or 1",
        default: CHECK,
        about: "compare counts, roots and operators between ranks in each collective",
        set: |s, text| values::switch(text).map(|v| s.check = v),
    },
    Variable {
        name: "LINEWEAVE_BIND",
        values: "auto, none, or a list of CPUs such as 0-3,8 that takes ranks in order",
        default: "auto",
        about: "where ranks are pinned: auto gives each a CPU, or neighbours one together when ranks outnumber CPUs",
        set: |s, text| values::bind(text).map(|v| s.bind = v),
    },
    Variable {
        name: "LINEWEAVE_TIMEOUT",
        values: "seconds above 0, or none",
        default: "none",
        about: "a wait longer than this is an error that names the rank waited for",
        set: |s, text| values::timeout(text).map(|v| s.timeout = v),
    },
    Variable {
        name: "LINEWEAVE_STOP_TIMEOUT",
        values: "seconds above 0, or none",
        default: "none",
        about: "a rank that is stopped (SIGSTOP, Ctrl-Z) for longer while others wait for it is lost",
        set: |s, text| values::timeout(text).map(|v| s.stop_timeout = v),
    },
    Variable {
        name: "LINEWEAVE_CMA",
        values: "auto, on or off",
        default: "auto",
        about: "cross-memory attach for large messages between processes: auto where the profile says that it wins",
        set: |s, text| values::named(text).map(|v| s.attach = v),
    },
    Variable {
        name: "LINEWEAVE_REPRODUCIBLE",
        values: "0 or 1",
        default: "0",
        about: "combine with brackets that depend on the number of ranks alone, so that bits do too",
        set: |s, text| values::switch(text).map(|v| s.reproducible = v),
    },
    Variable {
        name: "LINEWEAVE_PROGRESS_THREAD",
        values: "0 or 1",
        default: "0",
        about: "a helper thread carries started calls on while ranks do something else",
        set: |s, text| values::switch(text).map(|v| s.threads.progress = v),
    },
    Variable {
        name: "LINEWEAVE_CHOOSE",
        values: "beside or within",
        default: "beside",
        about: "calls run simple plans while a thread chooses theirs, or a first call waits for it",
        set: |s, text| values::named::<values::Form>(text).map(|form| s.threads.choose = form == values::Form::Beside),
    },
    Variable {
        name: "LINEWEAVE_ALGORITHM",
        values: "collective=algorithm parameter=value ... by SIZE, or algorithm(parameter=value,...), as it is printed; several \
                 separated by `;`, such as `barrier=exchange(layout=paired);reduce=tree degrees=2,2,1 by 4 KiB`",
        default: "chosen by the model",
        about: "algorithms to use whatever the model says",
        set: |s, text| values::forced(text).map(|v| s.algorithms = v),
    },
    Variable {
        name: "LINEWEAVE_QUIET",
        values: "0 or 1",
        default: "0",
        about: "under MPI and OpenMP: say nothing, also at the end; anywhere: nothing of kept files that are set aside",
        set: |s, text| values::switch(text).map(|v| s.run.quiet = v),
    },
    Variable {
        name: "LINEWEAVE_OPENMP",
        values: "0 or 1",
        default: "1",
        about: "`lineweave run` takes over barriers of OpenMP",
        set: |s, text| values::switch(text).map(|v| s.run.openmp = v),
    },
    // The next ones are read by the libraries that are preloaded; here they are checked and listed.
    Variable {
        name: "LINEWEAVE_OPENMP_RACE",
        values: "0 or 1",
        default: "1",
        about: "under OpenMP: compare with the runtime first, and keep the runtime's barrier where it is faster",
        set: |_, text| values::switch(text).map(|_| ()),
    },
    Variable {
        name: "LINEWEAVE_RANKS_PER_NODE",
        values: "a number of ranks, or 0",
        default: "0",
        about: "under MPI: ranks that count as a node, to try several nodes on one; 0 for nodes as they are",
        set: |_, text| values::number(text).map(|_| ()),
    },
    Variable {
        name: "LINEWEAVE_MPI_LEADERS",
        values: "a number of ranks",
        default: "4",
        about: "under MPI: ranks of a node that talk to other nodes, for long messages",
        set: |_, text| values::number(text).map(|_| ()),
    },
    Variable {
        name: "LINEWEAVE_MPI_TRACE_CALLS",
        values: "a number of calls",
        default: "32768",
        about: "under MPI: calls of a rank that a timeline has, the last ones",
        set: |_, text| values::number(text).map(|_| ()),
    },
    Variable {
        name: "LINEWEAVE_MPI_AFTER",
        values: "a number of calls",
        default: "as long as a team costs, 4 or more",
        about: "under MPI: collectives on a communicator that pass before it gets a team",
        set: |_, text| values::number(text).map(|_| ()),
    },
    Variable {
        name: "LINEWEAVE_MPI_FORM",
        values: "beside or within",
        default: "beside, but within with LINEWEAVE_MPI_AFTER",
        about: "under MPI: a first team forms in a thread beside the program, or within a call",
        set: |_, text| values::named::<values::Form>(text).map(|_| ()),
    },
    Variable {
        name: "LINEWEAVE_MPI_RACE",
        values: "0 or 1",
        default: "1",
        about: "under MPI: compare with the host first, and keep the host where it is faster",
        set: |_, text| values::switch(text).map(|_| ()),
    },
];

//! `lineweave bench mpi`: the collectives of installed MPIs, with and without lineweave in front of them.

use super::{begun, here, peers_directory, record, Arguments};
use crate::bench::installed::Mpi;
use crate::bench::mpi::{collectives, measure, ratios, Order, Ratio, BUFFERS};
use crate::error::CliError;
use crate::output::{table, Output};
use crate::session::Session;
use lineweave_core::units::{Bytes, Nanos};
use std::path::PathBuf;

const COLLECTIVES: [&str; 6] = ["barrier", "bcast", "reduce", "allreduce", "allgather", "alltoall"];
/// Lengths from 0 bytes to 16 MiB.
const SIZES: [usize; 13] =
    [0, 8, 64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 8 << 20, 16 << 20];
/// Milliseconds that a launch measures a case for.
const WINDOW_MS: u32 = 20;

/// Measures and shows.
pub(super) fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let (_, node, tuning) = here(session)?;
    let directory = peers_directory(arguments);
    let mpis = found(arguments, session, |mpi| collectives(mpi, &directory))?;
    let lineweave = std::env::current_exe().map_err(CliError::OwnFile)?;
    let (provenance, mut report) = begun(arguments, &node, &tuning, session)?;
    let sizes: Vec<usize> = match arguments.bytes.is_empty() {
        true if arguments.quick => SIZES.into_iter().skip(1).step_by(3).collect(),
        true => SIZES.to_vec(),
        false => arguments.bytes.iter().map(|size| size.0).collect(),
    };
    let teams = if arguments.ranks.is_empty() { vec![2] } else { arguments.ranks.clone() };
    for ranks in teams {
        let launches = arguments.launches();
        let collectives = COLLECTIVES.map(str::to_owned).to_vec();
        let (cpus, bytes) = (node.usable.cpus.len(), sizes.clone());
        let order = Order { ranks, cpus, collectives, bytes, window_ms: WINDOW_MS, launches };
        let bar = session.out.progress((launches * 2 * BUFFERS.len() * mpis.len()) as u64);
        let rows = measure(&mpis, &order, &lineweave, |what| {
            bar.set_message(what.to_owned());
            bar.inc(1);
        });
        bar.finish_and_clear();
        let rows = rows.map_err(CliError::Mpi)?;
        for row in &rows {
            report.line(&mut session.out, "mpi-time", row)?;
        }
        let found = ratios(&rows);
        for ratio in &found {
            report.line(&mut session.out, "mpi-ratio", ratio)?;
        }
        show(&found, &rows, &mut session.out)?;
    }
    record(arguments, &node, &provenance, &report, arguments.around.beside.is_empty(), session)
}

/// Returns the MPIs that were asked for, each with the program that `build` makes for it. Those that cannot be used are said and left out.
pub(super) fn found(
    arguments: &Arguments,
    session: &mut Session,
    build: impl Fn(&Mpi) -> Result<PathBuf, String>,
) -> Result<Vec<(Mpi, PathBuf)>, CliError> {
    let mut mpis = Vec::new();
    for prefix in prefixes(arguments) {
        match Mpi::below(&prefix).and_then(|mpi| Ok((build(&mpi)?, mpi))) {
            Ok((program, mpi)) => mpis.push((mpi, program)),
            Err(why) => session.out.warn(&format!("left out: {why}")),
        }
    }
    match mpis.is_empty() {
        true => Err(CliError::Mpi("no MPI is to be found".into())),
        false => Ok(mpis),
    }
}

/// Returns the prefixes of the MPIs that were asked for, or of the one in the PATH.
pub(super) fn prefixes(arguments: &Arguments) -> Vec<PathBuf> {
    if !arguments.mpi.is_empty() {
        return arguments.mpi.clone();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let launcher = std::env::split_paths(&path).find(|dir| dir.join("mpirun").is_file());
    launcher.and_then(|dir| dir.parent().map(PathBuf::from)).into_iter().collect()
}

fn show(found: &[Ratio], rows: &[crate::bench::mpi::Row], out: &mut Output) -> Result<(), CliError> {
    let heading = [
        "collective",
        "bytes",
        "buffers",
        "ranks",
        "mpi",
        "with lineweave",
        "to itself",
        "best",
        "to the best",
        "interval",
    ];
    let mut lines = table(&heading, &[1, 3, 5, 6, 8, 9]);
    for ratio in found {
        let with = rows.iter().find(|r| r.lineweave && r.mpi == ratio.mpi && r.case == ratio.case);
        lines.add_row([
            ratio.case.collective.clone(),
            Bytes(ratio.case.bytes as u64).to_string(),
            ratio.case.buffers.to_owned(),
            ratio.ranks.to_string(),
            ratio.mpi.clone(),
            with.map(|r| Nanos(r.median_ns).to_string()).unwrap_or_default(),
            format!("{:.2}", ratio.to_host),
            ratio.best.clone(),
            format!("{:.2}", ratio.to_best),
            format!("{:.2} to {:.2}", ratio.to_best_interval[0], ratio.to_best_interval[1]),
        ]);
    }
    out.table(&lines)
}

//! `lineweave lab mpi`: an MPI's own channel, models fitted to it, and its collectives with each algorithm forced, predicted beside measured.

mod errors;
mod predicted;
mod predictors;
mod report;

use crate::commands::draw::svg;
use crate::commands::tune::words;
use crate::error::CliError;
use crate::files::replace;
use crate::mpi::{Flavour, HostError, Order};
use crate::question::collective;
use crate::session::Session;
use crate::size::Size;
use lineweave_core::collective::Collective;
use predicted::Study;
use predictors::Predictors;
use report::Report;
use std::ffi::OsString;
use std::path::PathBuf;

/// Arguments of `lineweave lab mpi`: the MPI, and the effort of measuring it.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Collectives [default: barrier,bcast,reduce,allreduce,allgather,alltoall]
    #[arg(long = "collective", value_name = "NAME,..", value_delimiter = ',', value_parser = collective(), hide_possible_values = true)]
    collectives: Vec<Collective>,
    /// Draw measured and predicted times over the lengths, by a name that ends in .svg
    #[arg(long, short, value_name = "FILE.svg", value_parser = svg)]
    output: Option<PathBuf>,
    /// Lengths of the message, or of a block, such as 8,64KiB; multiples of 8 [default: 8 to 1MiB]
    #[arg(long, short, value_name = "SIZE,..", value_delimiter = ',', value_parser = words)]
    bytes: Vec<Size>,
    /// One round and four lengths
    #[arg(long)]
    quick: bool,
    /// Rounds: launches of each setting [default: 5]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=50))]
    rounds: Option<u8>,
    /// Where the MPI is, if not where its launcher is
    #[arg(long, value_name = "PREFIX")]
    mpi: Option<PathBuf>,
    /// The launcher and its options, without a program: mpirun -n 2
    #[arg(last = true, required = true, value_name = "LAUNCHER")]
    launcher: Vec<OsString>,
}

/// Measures, fits and shows.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let order = Order {
        launcher: &arguments.launcher,
        prefix: arguments.mpi.as_deref(),
        collectives: &arguments.collectives,
        bytes: &arguments.bytes,
        quick: arguments.quick,
        rounds: arguments.rounds,
        channel: true,
    };
    let (host, flavour) = order.start()?;
    let effort = order.effort();
    let algorithms = flavour.algorithms(&host.mpi, host.facts.ranks, &effort.collectives);
    order.warn_of_crowds(&host, session);
    // What cannot be forced has no times of its own: the default's are compared with its predictions.
    let (forced, unforced) = match flavour {
        Flavour::Unknown => (Vec::new(), algorithms),
        _ => (algorithms, Vec::new()),
    };
    if !unforced.is_empty() {
        session.out.warn(&format!(
            "{flavour} ({}): no algorithm is forced, and the default is named by tau-Lop's predictions alone",
            host.facts.version.chars().take(60).collect::<String>()
        ));
    }
    let raw = order.measure(&host, flavour, &effort, forced, session)?;
    let models = Predictors::fit(raw).ok_or_else(|| {
        HostError::Nothing("messages have no times that a model can be fitted to".to_owned())
    })?;
    let runs = models.raw.clone().levelled();
    let study = Study::of(&host.facts, &effort, &runs, &models, &unforced);
    let models = models.all;
    let shown = Report { host: &host, flavour, runs: &runs, models: &models, study: &study };
    report::show(&shown, session)?;
    if let Some(file) = &arguments.output {
        replace(file, &report::drawing(&host, flavour, &study), "-o")?;
        session.out.line(&format!("drawn in {}", file.display()))?;
    }
    Ok(())
}

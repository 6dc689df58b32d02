//! The machine that is simulated: as it is described, or with other values.

use crate::commands::lab::LabError;
use crate::error::CliError;
use crate::question::Place;
use crate::session::Session;
use lineweave_core::machine::{Arbiter, Dimensions, Machine};
use lineweave_lab::simulate::mesh::FlagCost;

/// The machine, where it is not to be as it is, and the placement of ranks on it.
#[derive(clap::Args, Debug)]
pub struct On {
    /// The machine's constants on a mesh of other dimensions: 160x64, or 100x51x2 for two cores a tile
    #[arg(long, value_name = "CxR[xK]")]
    pub mesh: Option<Dimensions>,
    /// Memory controllers of that mesh [default: as many a core as the machine has]
    #[arg(long, value_name = "N", requires = "mesh", value_parser = clap::value_parser!(u32).range(1..))]
    pub controllers: Option<u32>,
    /// What a flag is: a line, a byte, a bit under a lock, or a byte as RCCE's code has it
    #[arg(long, value_name = "line|byte|bit|rcce", default_value_t = FlagCost::Line)]
    pub flags: FlagCost,
    /// Accesses that a core has under way, instead of the machine's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub in_flight: Option<u32>,
    /// Lines that are prefetched behind a polled one, instead of the machine's, with coherent caches; 0 for none
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1024))]
    pub prefetch: Option<u32>,
    /// Flags on a line in every array, with coherent caches, instead of what the plan's layouts say
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub flags_per_line: Option<u32>,
    /// How a port chooses among requests, instead of the machine's way: fifo or inputs
    #[arg(long, value_name = "NAME")]
    pub arbiter: Option<Arbiter>,
    #[command(flatten)]
    pub at: Place,
    /// As the papers' models have it: every distance 1, and nothing waits for a resource; with coherent caches, nothing waits for links
    /// and ports, and lines cost what they do without a mesh
    #[arg(long)]
    pub ideal: bool,
}

/// Returns the machine of the given name, with other dimensions where they are given.
pub fn machine(on: &On, session: &mut Session) -> Result<Machine, CliError> {
    let machine = session.machine()?.ok_or(CliError::NoMachine)?;
    match on.mesh {
        None => Ok(machine),
        Some(dimensions) => {
            let most = dimensions.columns * dimensions.rows;
            if let Some(controllers) = on.controllers.filter(|&n| n > most) {
                return Err(
                    LabError::TooManyControllers { controllers, mesh: dimensions.to_string(), most }.into()
                );
            }
            let made = machine.with_dimensions(dimensions, on.controllers);
            made.ok_or_else(|| LabError::NoMesh { name: machine.name.clone() }.into())
        }
    }
}

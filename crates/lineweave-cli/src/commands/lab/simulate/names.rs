//! Names of algorithms: the table's, and those of the machines' own libraries.

use crate::error::CliError;
use lineweave_core::algorithm::spec::Spec;
use lineweave_core::algorithm::{self, Algorithm};
use lineweave_core::collective::Collective;
use lineweave_core::machine::Machine;
use lineweave_core::plan::Params;
use lineweave_lab::optimise::row::mesh_costs;
use lineweave_lab::simulate::mesh::FlagCost;

/// A collective, the library's name, the table's name, and the parameters that the name implies.
type Alias = (Collective, &'static str, &'static str, &'static [(&'static str, &'static str)]);

/// RCCE's, RCCE_comm's, NoC_Msg's and RCKMPI's names.
const ALIASES: [Alias; 14] = [
    (Collective::Bcast, "rcce-bcast", "rcce", &[]),
    (Collective::Bcast, "ircce-bcast", "rcce", &[("slots", "2")]),
    (Collective::Bcast, "binomial", "rcce-comm-binomial", &[]),
    (Collective::Bcast, "scatter-allgather", "rcce-comm-scatter-allgather", &[]),
    (Collective::Barrier, "rcce-barrier", "centralized", &[("release", "each"), ("layout", "alone")]),
    (Collective::Reduce, "rcce-reduce", "rcce", &[]),
    (Collective::Allreduce, "rcce-allreduce", "rcce", &[]),
    (Collective::Bcast, "rckmpi-bcast", "rckmpi", &[]),
    (Collective::Reduce, "rckmpi-reduce", "rckmpi", &[]),
    (Collective::Allreduce, "rckmpi-allreduce", "rckmpi", &[]),
    (Collective::Scatter, "rckmpi-scatter", "rckmpi", &[]),
    (Collective::Allgather, "rckmpi-allgather", "rckmpi", &[]),
    (Collective::Alltoall, "rckmpi-alltoall", "rckmpi", &[]),
    (Collective::Barrier, "rckmpi-barrier", "dissemination", &[("m", "1"), ("layout", "alone")]),
];

/// The payload of RCCE's message buffer with flags of a byte (Petrovic et al. 2012, section 5.1).
const RCCE_BYTES: usize = 251 * 32;

/// Returns the algorithm of this name, with the parameters that follow from the machine and the name. On a mesh, names
/// of RCCE, RCCE_comm and NoC_Msg come first, unless `exact` asks for the table's algorithm.
pub fn find(
    collective: Collective,
    written: Spec,
    exact: bool,
    machine: &Machine,
    flags: FlagCost,
    ranks: usize,
) -> Result<(&'static Algorithm, Params), CliError> {
    let Spec { name, mut params, .. } = written;
    let alias = ALIASES
        .iter()
        .filter(|_| !exact && machine.mesh.is_some())
        .find(|(c, alias, _, _)| *c == collective && *alias == name);
    let algorithm = algorithm::find_to_look_at(collective, alias.map_or(name.as_str(), |a| a.2))?;
    for (name, value) in alias.map_or(&[][..], |a| a.3) {
        if params.get(name).is_none() {
            params = params.with(name, value);
        }
    }
    // These algorithms know the places of the tiles.
    let noc_msg = algorithm.name.starts_with("noc-msg");
    let tiled = noc_msg || ["generated", "pipelined-ring"].contains(&algorithm.name);
    if let (true, Some(mesh)) = (tiled, &machine.mesh) {
        for (name, value) in [("columns", &mesh.network.columns), ("cores", &mesh.network.cores_per_tile)] {
            if let (None, Some(value)) = (params.get(name), value.value) {
                params = params.with(name, value as usize);
            }
        }
    }
    let chunked = algorithm.params.iter().any(|p| p.name == "chunk");
    if let (true, true, None, Some(lines)) = (noc_msg, chunked, params.get("chunk"), box_lines(machine)) {
        // Flags of a rank: at most one for each link and core of its tile each way, and one for its own parent each
        // way.
        let line = machine.line_bytes.value.map_or(32, |l| l as usize);
        let cores = params.int("cores", 2, 1..usize::MAX)?;
        let left = lines.saturating_sub((2 * (cores + 4)).div_ceil(flags.per_line(line))).max(1) * line;
        let slots = params.int("slots", 1, 1..usize::MAX)?;
        params = params.with("chunk", (left.min(RCCE_BYTES) / slots / line).max(1) * line);
    }
    let two_sided = algorithm.name.starts_with("rcce");
    if let (true, None, Some(lines)) = (two_sided, params.get("chunk"), box_lines(machine)) {
        // Lines of a message buffer that flags leave free: `sent` and `ready` for every rank, and `unset`; with whole
        // lines also the two flags of RCCE's barrier.
        let line = machine.line_bytes.value.map_or(32, |l| l as usize);
        let per_line = flags.per_line(line);
        let taken = 2 * ranks.div_ceil(per_line) + if flags == FlagCost::Line { 3 } else { 1 };
        let left = lines.saturating_sub(taken).max(1) * line;
        params = params.with("chunk", left.min(RCCE_BYTES));
    }
    if let (true, Some(lines)) = (machine.mesh.is_some(), box_lines(machine)) {
        params = sized(algorithm.name, machine, flags, ranks, lines, params)?;
    }
    // Few bytes fit into the line of a flag, so none travel there unless that is asked for.
    let carries = algorithm.params.iter().any(|p| p.name == "carry" && p.default != "0");
    if machine.mesh.is_some() && carries && params.get("carry").is_none() {
        params = params.with("carry", 0);
    }
    Ok((algorithm, params))
}

/// Sets the parameters that follow from the mesh: its costs, and chunks as long as message buffers of `lines` lines
/// allow.
fn sized(
    algorithm: &str,
    machine: &Machine,
    flags: FlagCost,
    ranks: usize,
    lines: usize,
    mut params: Params,
) -> Result<Params, CliError> {
    let line = machine.line_bytes.value.map_or(32, |l| l as usize);
    let per_line = flags.per_line(line);
    let left = |flags: usize| lines.saturating_sub(flags.div_ceil(per_line));
    match algorithm {
        // The buffer holds a section for each rank, and `sent` and `ready` for each.
        "rckmpi" if params.get("chunk").is_none() => {
            let lines = lines.saturating_sub(2 * ranks.div_ceil(per_line));
            let slots = params.int("slots", 1, 1..usize::MAX)?;
            params = params.with("chunk", (lines / ranks.max(1) / slots).max(1) * line);
        }
        // The buffer holds two travelling blocks and a finished one, and three flags.
        "pipelined-ring" if params.get("chunk").is_none() => {
            let slots = params.int("slots", 2, 1..usize::MAX)?;
            params = params.with("chunk", (left(3 * per_line) / (slots + 1)).max(1) * line);
        }
        // The buffer holds the chunks, a notification, and k done flags.
        "oc-bcast" => {
            let chunk = params.int("chunk", 96 * line, 1..usize::MAX)?.div_ceil(line);
            let taken = params.int("slots", 2, 1..usize::MAX)? * chunk;
            let fit = left_for_flags(lines, taken, per_line);
            let (k, most) = (params.int("k", 7, 1..usize::MAX)?, fit.saturating_sub(1));
            if k > most {
                let machine = machine.name.clone();
                return Err(CliError::FlagBudget { machine, k, most, lines, taken, fit });
            }
        }
        "generated" => {
            // The chunks are as long as OC-Bcast's, which leave a quarter of the buffer to flags.
            let slots = params.int("slots", 2, 1..usize::MAX)?;
            let chunk = params.int("chunk", (lines * 3 / 4 / slots).max(1) * line, 1..usize::MAX)?;
            params = params.with("chunk", chunk);
            if let (None, None, Some(c)) =
                (params.get("costs"), params.get("unit"), mesh_costs(machine, chunk.div_ceil(line) as u64))
            {
                let costs = [c.receive, c.link, c.hop, c.depth].map(|c| c.to_string()).join(",");
                params = params.with("costs", costs).with("unit", line);
            }
        }
        _ => {}
    }
    Ok(params)
}

/// Returns the number of flags that fit into the lines that the chunks leave.
fn left_for_flags(lines: usize, taken: usize, per_line: usize) -> usize {
    lines.saturating_sub(taken).saturating_mul(per_line)
}

fn box_lines(machine: &Machine) -> Option<usize> {
    machine.mesh.as_ref()?.box_lines.value.map(|lines| lines as usize)
}

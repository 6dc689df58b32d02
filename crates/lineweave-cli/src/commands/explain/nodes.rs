//! `lineweave explain --nodes N`: a call whose ranks are on several nodes, as `lineweave run` carries it out under an MPI.

use super::Arguments;
use crate::error::CliError;
use crate::output::table;
use crate::question::Where;
use crate::session::{Costs, Session};
use lineweave_core::collective::Collective;
use lineweave_core::model::{AlphaBeta, Fitted, Provenance};
use lineweave_core::select::over_nodes;
use lineweave_core::units::{Bytes, Nanos};
use serde::Serialize;

/// What a message between two nodes costs: `LATENCY_NS,BYTES_PER_NS`.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    latency_ns: f64,
    bytes_per_ns: f64,
}

/// Reads `latency,rate`.
///
/// # Errors
/// What was expected.
pub fn link(text: &str) -> Result<Link, String> {
    let number = |text: &str| text.trim().parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    let read = text.split_once(',').and_then(|(latency, rate)| Some((number(latency)?, number(rate)?)));
    let (latency_ns, bytes_per_ns) = read.ok_or(
        "expected the time of an empty message between two nodes in ns and the bytes that go in a ns, such as 1500,12.5",
    )?;
    Ok(Link { latency_ns, bytes_per_ns })
}

#[derive(Serialize)]
struct CallObject<'a> {
    collective: Collective,
    nodes: usize,
    ranks: usize,
    bytes: usize,
    pieces: usize,
    latency_ns: f64,
    bytes_per_ns: f64,
    predicted_ns: f64,
    costs: &'a str,
}

#[derive(Serialize)]
struct PhaseObject<'a> {
    what: &'a str,
    algorithm: &'a str,
    bytes: usize,
    between_nodes: bool,
    predicted_ns: f64,
}

/// Explains.
///
/// # Errors
/// A [`CliError`] without a link, or when nothing can be chosen.
pub(super) fn run(arguments: &Arguments, nodes: usize, session: &mut Session) -> Result<(), CliError> {
    let collective = arguments.collective;
    let Some(link) = arguments.link else { return Err(CliError::NoLink) };
    let bytes = match arguments.bytes {
        Some(size) => size.0,
        None if collective.moves_data() => return Err(CliError::NoMessage(collective)),
        None => 0,
    };
    let settings = session.settings_warned()?;
    let Costs { tuning, origin, topology } = session.costs()?;
    let ranks = arguments.place.ranks.unwrap_or(nodes * topology.cpus.len().max(1));
    if nodes == 0 || ranks == 0 || ranks % nodes != 0 {
        return Err(CliError::RanksOfNodes { ranks, nodes });
    }
    let place = Where { ranks: Some(ranks / nodes), ..arguments.place.clone() };
    let question = place.question(session, collective, bytes, &topology, settings.box_bytes)?;
    let beta = 1.0 / link.bytes_per_ns;
    let cost = AlphaBeta {
        alpha: Fitted::new(link.latency_ns, Provenance::Cited),
        beta: Fitted::new(beta, Provenance::Cited),
    };
    let found = over_nodes(&tuning.model, &question, nodes, &cost)?;
    if session.out.is_json() {
        let object = CallObject {
            collective,
            nodes,
            ranks,
            bytes,
            pieces: found.pieces,
            latency_ns: link.latency_ns,
            bytes_per_ns: link.bytes_per_ns,
            predicted_ns: found.predicted.0,
            costs: &origin,
        };
        session.out.object("nodes-call", &object)?;
        for phase in &found.phases {
            let object = PhaseObject {
                what: &phase.what,
                algorithm: &phase.algorithm,
                bytes: phase.bytes,
                between_nodes: phase.between,
                predicted_ns: phase.time.0,
            };
            session.out.object("nodes-phase", &object)?;
        }
        return Ok(());
    }
    session.out.line(&format!("costs: {origin}"))?;
    let message = match collective.moves_data() {
        true => format!(" of {}", Bytes(bytes as u64)),
        false => String::new(),
    };
    session.out.line(&format!(
        "{collective}{message} among {ranks} ranks on {nodes} nodes, a message between them taking {} and {} bytes a ns",
        Nanos(link.latency_ns),
        link.bytes_per_ns
    ))?;
    session.out.line(&format!("predicted: {} a call", found.predicted))?;
    if found.pieces > 1 {
        session.out.line(&format!("in {} pieces, whose phases overlap; of one piece:", found.pieces))?;
    }
    let mut rows = table(&["phase", "bytes", "predicted", "algorithm"], &[1, 2]);
    for phase in &found.phases {
        let bytes = Bytes(phase.bytes as u64).to_string();
        rows.add_row([phase.what.clone(), bytes, phase.time.to_string(), phase.algorithm.clone()]);
    }
    session.out.table(&rows)?;
    session
        .out
        .line("between nodes: the cheapest published algorithm; what the MPI does there is its own choice")
}

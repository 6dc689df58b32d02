//! `lineweave explain --nodes N`: a call whose ranks are on several nodes, as `lineweave run` carries it out under an MPI.

use super::Arguments;
use crate::error::CliError;
use crate::output::table;
use crate::question::{length, Where};
use crate::session::{load_profile, Costs, Session};
use lineweave::tuning::Origin;
use lineweave_core::collective::Collective;
use lineweave_core::model::{AlphaBeta, Fitted, Provenance};
use lineweave_core::profile::Profile;
use lineweave_core::units::{Bytes, Nanos};
use lineweave_lab::models::link;
use lineweave_lab::nodes::over_nodes;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Source of the cost of a message between two nodes: `LATENCY_NS,BYTES_PER_NS`, or a file of `lineweave run --link`.
#[derive(Clone, Debug)]
pub enum Link {
    /// The cost that the user gives.
    Given {
        /// Time of an empty message in nanoseconds.
        latency_ns: f64,
        /// Bytes that go in a nanosecond.
        bytes_per_ns: f64,
    },
    /// The cost that was measured, in a file.
    File(PathBuf),
}

/// Reads `latency,rate`, or the name of an existing file.
pub fn link(text: &str) -> Result<Link, String> {
    let number = |text: &str| text.trim().parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
    let read = text.split_once(',').and_then(|(latency, rate)| Some((number(latency)?, number(rate)?)));
    match read {
        Some((latency_ns, bytes_per_ns)) => Ok(Link::Given { latency_ns, bytes_per_ns }),
        None if Path::new(text).is_file() => Ok(Link::File(text.into())),
        None => Err("expected the time of an empty message between two nodes in ns and the bytes that go in a ns, such as \
                     1500,12.5, or a file that `lineweave run --link` wrote"
            .to_owned()),
    }
}

/// Returns the cost of a message between two nodes, and its source: `--link`, else the profile that other costs are taken
/// from.
fn cost(link: Option<&Link>, costs: &Costs) -> Result<(AlphaBeta, String), CliError> {
    let fitted = |profile: &Profile, file: &Path| {
        link::fit(profile).map_err(|e| CliError::malformed(file, "ping-pong between nodes", e))
    };
    let (found, file) = match (link, &costs.tuning.origin) {
        (Some(&Link::Given { latency_ns, bytes_per_ns }), _) => {
            let alpha = Fitted::new(latency_ns, Provenance::Cited);
            let beta = Fitted::new(1.0 / bytes_per_ns, Provenance::Cited);
            return Ok((AlphaBeta { alpha, beta }, "--link".to_owned()));
        }
        (Some(Link::File(file)), _) => (fitted(&crate::link::read(file)?, file)?, file),
        (None, Origin::Profile { file }) => (fitted(&load_profile(file)?.0, file)?, file),
        (None, Origin::Costs { .. } | Origin::Machine { .. }) => return Err(CliError::NoLink),
    };
    Ok((found.ok_or(CliError::NoLink)?, file.display().to_string()))
}

/// A call among the ranks of all nodes. Printed as `nodes-call` by `lineweave explain --nodes N`.
#[derive(Serialize)]
struct CallObject<'a> {
    collective: Collective,
    nodes: usize,
    ranks: usize,
    bytes: usize,
    /// Pieces that the message goes in, whose phases overlap.
    pieces: usize,
    /// Time of an empty message between two nodes.
    latency_ns: f64,
    /// Ends of its 95 % interval; both are the value where the user said it.
    latency_ci_ns: [f64; 2],
    bytes_per_ns: f64,
    bytes_per_ns_ci: [f64; 2],
    /// Source of the two: `--link`, or a file.
    link: &'a str,
    predicted_ns: f64,
    costs: &'a str,
}

/// One part of such a call, for one piece. Printed as `nodes-phase` by `lineweave explain --nodes N`.
#[derive(Serialize)]
struct PhaseObject<'a> {
    /// The phase in words, as `reduce within a node`.
    what: &'a str,
    /// Lineweave's algorithm, or between nodes the cheapest published one.
    algorithm: &'a str,
    bytes: usize,
    /// True if the MPI does it.
    between_nodes: bool,
    predicted_ns: f64,
}

/// Explains.
pub(super) fn run(arguments: &Arguments, nodes: usize, session: &mut Session) -> Result<(), CliError> {
    let collective = arguments.collective;
    let bytes = length(arguments.bytes, collective, CliError::NoMessage)?;
    let settings = session.settings_warned()?;
    let costs = session.costs()?;
    let (link, said_by) = cost(arguments.link.as_ref(), &costs)?;
    let Costs { tuning, origin, topology, .. } = costs;
    let ranks = arguments.place.ranks.unwrap_or(nodes * topology.cpus.len().max(1));
    if nodes == 0 || ranks == 0 || ranks % nodes != 0 {
        return Err(CliError::RanksOfNodes { ranks, nodes });
    }
    let place = Where { ranks: Some(ranks / nodes), ..arguments.place.clone() };
    let question = place.question(session, collective, bytes, &topology, settings.box_bytes)?;
    let found = over_nodes(&tuning.model, &question, nodes, &link)?;
    let object = CallObject {
        collective,
        nodes,
        ranks,
        bytes,
        pieces: found.pieces,
        latency_ns: link.alpha.value,
        latency_ci_ns: [link.alpha.ci_low, link.alpha.ci_high],
        bytes_per_ns: 1.0 / link.beta.value,
        bytes_per_ns_ci: [1.0 / link.beta.ci_high, 1.0 / link.beta.ci_low],
        link: &said_by,
        predicted_ns: found.predicted.0,
        costs: &origin,
    };
    session.out.object("nodes-call", &object)?;
    session.out.line(&format!("costs: {origin}"))?;
    let message = match collective.moves_data() {
        true => format!(" of {}", Bytes(bytes as u64)),
        false => String::new(),
    };
    session.out.line(&format!("{collective}{message} among {ranks} ranks on {nodes} nodes"))?;
    session.out.line(&format!("a message between them: {}, by {said_by}", describe(&link)))?;
    session.out.line(&format!("predicted: {} a call", found.predicted))?;
    if found.pieces > 1 {
        session.out.line(&format!("in {} pieces, whose phases overlap; of one piece:", found.pieces))?;
    }
    let mut rows = table(&["phase", "bytes", "predicted", "algorithm"], &[1, 2]);
    for phase in &found.phases {
        let object = PhaseObject {
            what: &phase.what,
            algorithm: &phase.algorithm,
            bytes: phase.bytes,
            between_nodes: phase.between,
            predicted_ns: phase.time.0,
        };
        session.out.object("nodes-phase", &object)?;
        let bytes = Bytes(phase.bytes as u64).to_string();
        rows.add_row([phase.what.clone(), bytes, phase.time.to_string(), phase.algorithm.clone()]);
    }
    session.out.table(&rows)?;
    session
        .out
        .line("between nodes: the cheapest published algorithm; what the MPI does there is its own choice")
}

/// Returns a text such as `1.50 us [1.48 us, 1.53 us] and 12.5 [12.1, 12.9] bytes a ns`.
fn describe(link: &AlphaBeta) -> String {
    let interval =
        |is: bool, low: String, high: String| if is { format!(" [{low}, {high}]") } else { String::new() };
    let (alpha, beta) = (&link.alpha, &link.beta);
    let latency = interval(
        alpha.ci_low < alpha.ci_high,
        Nanos(alpha.ci_low).to_string(),
        Nanos(alpha.ci_high).to_string(),
    );
    let rate = |ns_a_byte: f64| format!("{:.3}", 1.0 / ns_a_byte);
    let rates = interval(beta.ci_low < beta.ci_high, rate(beta.ci_high), rate(beta.ci_low));
    format!("{}{latency} and {}{rates} bytes a ns", Nanos(alpha.value), rate(beta.value))
}

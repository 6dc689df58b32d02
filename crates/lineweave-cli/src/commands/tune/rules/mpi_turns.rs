//! An MPI by default and with settings, launched in turns.

use super::check;
use crate::error::CliError;
use crate::mpi::{lengths, task, with_reference, Cell, Curves, Effort, Host, HostError};
use crate::script::Variables;
use crate::session::Session;
use lineweave_core::collective::Collective;

/// Launches an MPI by default and with these variables in turns.
pub fn in_turns(
    host: &Host,
    effort: &Effort,
    ruled_by: &Variables,
    session: &Session,
) -> Result<(Curves, Curves), CliError> {
    let tasks = with_reference(effort.collectives.iter().map(|c| task(*c, &effort.bytes)).collect());
    let mut launch = |variables: &Variables, side: &str| {
        host.launch(&tasks, effort.window_ms, variables).map_err(|failed| {
            let command = format!("{}, {side}", host.command);
            CliError::from(HostError::Broken { command, how: failed.how })
        })
    };
    let bar = session.out.progress(2 * effort.rounds as u64);
    let both = check::alternate(effort.rounds, ruled_by, &bar, &mut launch);
    bar.finish_and_clear();
    both
}

/// A collective that is slower at some length keeps its settings where its geometric mean is below this.
const WORTH: f64 = 0.9;

/// Returns the collectives that are faster with these variables than by default: on the geometric mean of their lengths, and slower at none unless the gain at others
/// is worth it.
pub fn faster(
    host: &Host,
    effort: &Effort,
    ruled_by: &Variables,
    session: &Session,
) -> Result<Vec<Collective>, CliError> {
    let (default, ruled) = in_turns(host, effort, ruled_by, session)?;
    let is = |collective: &Collective| {
        let cells: Vec<Cell> = lengths(*collective, &effort.bytes)
            .into_iter()
            .map(|bytes| Cell::new(collective.name(), bytes))
            .collect();
        let compared = check::compared(&cells, &default, &ruled);
        let most = if check::slower(&compared) == 0 { 1.0 } else { WORTH };
        check::mean(&compared) < most
    };
    Ok(effort.collectives.iter().copied().filter(is).collect())
}

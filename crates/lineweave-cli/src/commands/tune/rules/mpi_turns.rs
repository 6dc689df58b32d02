//! An MPI by default and with settings, in turns.

use super::check;
use super::mpi::order;
use crate::commands::tune::Arguments as Tune;
use crate::error::CliError;
use crate::mpi::{lengths, Cell, Effort, Flavour, Host};
use crate::script::Variables;
use crate::session::Session;
use lineweave_core::collective::Collective;

/// A collective that is slower at some length keeps its settings where its geometric mean is below this.
const WORTH: f64 = 0.9;

/// Returns the collectives that are faster with these variables than by default: on the geometric mean of their lengths, and slower at none unless the gain at others
/// is worth it.
pub fn faster(
    tune: &Tune,
    (host, flavour): (&Host, Flavour),
    effort: &Effort,
    ruled_by: &Variables,
    session: &Session,
) -> Result<Vec<Collective>, CliError> {
    let effort = Effort { ruled_by: Some(ruled_by.clone()), ..effort.clone() };
    let runs = order(tune, &[]).measure(host, flavour, &effort, Vec::new(), session)?;
    let is = |collective: &Collective| {
        let cells: Vec<Cell> = lengths(*collective, &effort.bytes)
            .into_iter()
            .map(|bytes| Cell::new(collective.name(), bytes))
            .collect();
        let compared = check::compared(&cells, &runs.default, &runs.ruled);
        let most = if check::slower(&compared) == 0 { 1.0 } else { WORTH };
        check::mean(&compared) < most
    };
    Ok(effort.collectives.iter().copied().filter(is).collect())
}

//! Comparison of an MPI with a file's rules and by default, and with each of its algorithms, in turns.

use super::check::{self, Kind};
use super::mpi::{hosts, launchers, order};
use crate::commands::tune::Arguments as Tune;
use crate::error::CliError;
use crate::mpi::{lengths, Cell, Curves, Effort};
use crate::script::{exports, fact, WHAT};
use crate::session::Session;
use lineweave_core::collective::Collective;
use std::collections::BTreeMap;
use std::path::Path;

/// Compares an MPI by default and with the rules of a file, for each number of ranks.
pub fn run(tune: &Tune, file: &Path, text: &str, session: &mut Session) -> Result<(), CliError> {
    let ruled_by = exports(text).and_then(|exported| match exported.is_empty() {
        true => Err("nothing is exported".to_owned()),
        false => Ok(exported),
    });
    let ruled_by = ruled_by.map_err(|why| CliError::malformed(file, WHAT, why))?;
    let launchers = launchers(tune)?;
    let hosts = hosts(tune, &launchers, session)?;
    let effort = order(tune, &[]).effort();
    let lengths =
        |&c: &Collective| lengths(c, &effort.bytes).into_iter().map(move |b| Cell::new(c.name(), b));
    let cells: Vec<Cell> = effort.collectives.iter().flat_map(lengths).collect();
    let (mut slower, mut all) = (0, 0);
    for (host, flavour) in &hosts {
        let ranks = host.facts.ranks;
        if let Some(of) = fact(text, "ranks").filter(|of| !of.split(',').any(|of| of == ranks.to_string())) {
            session
                .out
                .warn(&format!("the file's rules are for {of} ranks, and the launcher starts {ranks}"));
        }
        let effort = Effort { ruled_by: Some(ruled_by.clone()), ..effort.clone() };
        let algorithms = match tune.rules.exhaustive {
            true => flavour.algorithms(&host.mpi, ranks, &effort.collectives),
            false => Vec::new(),
        };
        let runs = order(tune, &[]).measure(host, *flavour, &effort, algorithms, session)?.levelled();
        if hosts.len() > 1 {
            session.out.line(&format!("{ranks} ranks:"))?;
        }
        let mut compared = check::compared(&cells, &runs.default, &runs.ruled);
        if tune.rules.exhaustive {
            let mut own: BTreeMap<String, Curves> = BTreeMap::new();
            for setting in runs.settings {
                own.entry(setting.algorithm.name).or_default().extend(&setting.times.unwrap_or_default());
            }
            compared.iter_mut().for_each(|cell| cell.beside(&own));
        }
        let kind = Kind {
            json: "tune-mpi-check",
            task: "collective",
            at: "bytes",
            with: "with rules",
            ranks: Some(ranks),
        };
        slower += check::show(&compared, &kind, session)?;
        all += compared.len();
    }
    check::verdict(file, slower, all)
}

//! Report on a simulated machine: its probes in virtual time, and the collectives that are chosen on it.

use super::subject::{described, question, Subject, Timed};
use crate::error::CliError;
use crate::session::Session;
use indicatif::ProgressBar;
use lineweave_core::algorithm::spec::Named;
use lineweave_core::collective::Collective;
use lineweave_core::machine::Machine;
use lineweave_core::model::fit;
use lineweave_core::select::{select, SelectError};
use lineweave_core::topology::Shape;
use lineweave_lab::simulate::measuring::measure;
use lineweave_lab::simulate::{coherent, simulate, Fidelity, Options};
use std::path::PathBuf;

/// Collectives that are simulated.
const COLLECTIVES: [Collective; 4] =
    [Collective::Barrier, Collective::Bcast, Collective::Reduce, Collective::Allreduce];
const SIZES: [usize; 4] = [8, 512, 4 << 10, 32 << 10];
/// Runs back to back: in the first one all ranks enter at once.
const RUNS: usize = 4;
/// Most ranks that are simulated: more would take minutes.
const MOST: usize = 64;

/// Returns the machine that `--machine` names.
pub fn load(session: &mut Session) -> Result<Subject, CliError> {
    let machine = session.machine()?.ok_or(CliError::NoMachine)?;
    let mut subject = described(machine.clone(), None, None, "", session.settings()?.0)?;
    // The error says what is missing if the machine is no mesh either.
    if machine.mesh.is_none() {
        let profile = measure(&machine)?;
        let file = PathBuf::from(format!("simulated {}", machine.name));
        subject.tuning.model =
            fit(&profile).map_err(|e| CliError::malformed(&file, "profile that can be fitted", e))?;
        subject.origin = format!("probes of {} in virtual time", machine.name);
        subject.profile = Some(profile);
    }
    let bar = session.out.progress_of_work(0);
    subject.timed = play(&subject, &machine, &bar)?;
    bar.finish_and_clear();
    subject.timed_by = Some(format!("Simulated: {} as described, {RUNS} runs back to back.", machine.name));
    Ok(subject)
}

/// Simulates the choices for some calls.
fn play(subject: &Subject, machine: &Machine, bar: &ProgressBar) -> Result<Vec<Timed>, CliError> {
    let mut cores: Vec<usize> = subject.topology.cpus.iter().map(|c| c.core).collect();
    cores.sort_unstable();
    cores.dedup();
    let most = cores.len().min(MOST);
    let mut ranks: Vec<usize> = (1..).map(|i| 1 << i).take_while(|p| *p < most).collect();
    ranks.push(most);
    bar.inc_length(COLLECTIVES.len() as u64 * ranks.iter().sum::<usize>() as u64);
    let mut timed = Vec::new();
    for collective in COLLECTIVES {
        for &p in ranks.iter().filter(|p| **p > 1) {
            for bytes in SIZES {
                let bytes = if collective.moves_data() { bytes } else { 0 };
                timed.extend(one(subject, machine, collective, p, bytes)?);
                if bytes == 0 {
                    break;
                }
            }
            bar.inc(p as u64);
        }
    }
    Ok(timed)
}

fn one(
    subject: &Subject,
    machine: &Machine,
    collective: Collective,
    ranks: usize,
    bytes: usize,
) -> Result<Option<Timed>, CliError> {
    let shape = match machine.coherent {
        Some(_) => coherent::placed(machine, ranks)?,
        None => Shape::flat(ranks),
    };
    let question = question(collective, shape, bytes, false);
    let choice = match select(subject.model(), &question) {
        Ok(choice) => choice,
        Err(SelectError::NothingFits { .. }) => return Ok(None),
        Err(other) => return Err(other.into()),
    };
    // Windows are runs of one plan, and a rest would need another plan.
    if choice.window < bytes && bytes % choice.window != 0 {
        return Ok(None);
    }
    let windows = bytes.checked_div(choice.window).unwrap_or(1);
    let options = Options { fidelity: Fidelity::Chunk, runs: RUNS * windows, ..Options::default() };
    // A plan that does not fit the machine's memory for messages is left out.
    let Ok(outcome) = simulate(machine, choice.plan(), &options) else { return Ok(None) };
    Ok(Some(Timed {
        collective: collective.to_string(),
        ranks,
        bytes,
        team: "simulated".to_owned(),
        algorithm: Named::new(choice.algorithm, &choice.params).to_string(),
        predicted_ns: choice.predicted.0,
        measured_ns: outcome.each.nanos() * windows as f64,
    }))
}

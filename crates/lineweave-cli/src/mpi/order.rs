//! The request of a command: the launcher, the collectives, and the effort of measuring.

use super::{Algorithm, Effort, Flavour, Host, HostError, Journal, Runs};
use crate::interrupt;
use crate::session::Session;
use crate::size::Size;
use lineweave_core::collective::Collective;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;

/// Lengths from a double to a MiB.
const BYTES: [u64; 8] = [8, 64, 512, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];
const QUICK_BYTES: [u64; 4] = [8, 1 << 10, 64 << 10, 1 << 20];
/// Number of rounds.
const ROUNDS: usize = 5;
/// Milliseconds that a case is timed for in a launch.
const WINDOW_MS: u32 = 8;

/// The request of a command.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The launcher and its options.
    pub launcher: &'a [OsString],
    /// The prefix of the MPI, if it is not the launcher's.
    pub prefix: Option<&'a Path>,
    /// Collectives; empty for all.
    pub collectives: &'a [Collective],
    /// Lengths; empty for the usual ones.
    pub bytes: &'a [Size],
    /// True for a quick run with one round and four lengths.
    pub quick: bool,
    /// Number of rounds, if not the usual one.
    pub rounds: Option<u8>,
    /// True to measure the channel, and the code that each algorithm runs.
    pub channel: bool,
}

impl Order<'_> {
    /// Starts the ranks, and determines the library's flavour.
    pub fn start(&self) -> Result<(Host, Flavour), HostError> {
        let host = Host::start(self.launcher, self.prefix)?;
        let flavour = Flavour::of(&host.facts.version);
        // Rules are written as settings.
        if flavour == Flavour::Unknown && !self.channel {
            return Err(HostError::Unknown(host.facts.version.chars().take(60).collect()));
        }
        Ok((host, flavour))
    }

    /// Returns the effort of measuring.
    pub fn effort(&self) -> Effort {
        let rounds = if self.quick { 1 } else { ROUNDS };
        let bytes = match (self.bytes.is_empty(), self.quick) {
            (true, false) => BYTES.to_vec(),
            (true, true) => QUICK_BYTES.to_vec(),
            (false, _) => {
                let sorted: BTreeSet<u64> = self.bytes.iter().map(|size| size.0 as u64).collect();
                sorted.into_iter().collect()
            }
        };
        let wanted = |c: &Collective| self.collectives.is_empty() || self.collectives.contains(c);
        Effort {
            bytes,
            collectives: Collective::TUNED.into_iter().filter(wanted).collect(),
            rounds: self.rounds.map_or(rounds, usize::from),
            window_ms: WINDOW_MS,
            channel: self.channel,
            code: self.channel,
            ruled_by: None,
        }
    }

    /// Warns where ranks share CPUs: the models do not hold there, and some settings are in force.
    pub fn warn_of_crowds(&self, host: &Host, session: &Session) {
        if host.crowd > host.facts.cpus {
            session.out.warn(&format!(
                "{} ranks share {} CPUs: models are for ranks that have one each",
                host.crowd, host.facts.cpus
            ));
        }
        for (name, value) in host.crowded() {
            session.out.warn(&format!("set for ranks that share CPUs: {name}={value}"));
        }
    }

    /// Measures, with a progress bar.
    pub fn measure(
        &self,
        host: &Host,
        flavour: Flavour,
        effort: &Effort,
        algorithms: Vec<Algorithm>,
        session: &Session,
    ) -> Result<Runs, HostError> {
        let bar = session.out.progress(effort.rounds as u64);
        let mut journal = Journal::of(host, effort);
        if let (Some(file), left @ 1..) = (journal.file(), journal.left()) {
            let file = file.display();
            session.out.note(&format!(
                "goes on after {left} rounds of an interrupted run; remove {file} to begin anew"
            ));
        }
        if let Some(file) = journal.file() {
            interrupt::keeps(format!(
                "the rounds so far are in {}; the same command goes on",
                file.display()
            ));
        }
        let runs = Runs::measure(host, flavour, effort, algorithms, &mut journal, |what| {
            bar.set_message(what.to_owned());
            bar.inc(1);
        });
        bar.finish_and_clear();
        let runs = runs?;
        journal.end();
        interrupt::keeps("nothing was kept");
        Ok(runs)
    }
}

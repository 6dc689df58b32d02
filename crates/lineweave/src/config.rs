//! Configuration of a team: the decisions of its creator for all ranks.

use crate::cache;
use crate::cpus::UsableCpus;
use crate::error::Error;
use crate::failure_detector::Limits;
use crate::segment::MAX_RANKS;
use crate::settings::{Attach, Bind, HelperThreads, Settings, Wait};
use crate::topology::{Hardware, Source};
use crate::tuning::Tuning;
use lineweave_core::topology::{Cpu, Shape, Topology};
use lineweave_core::units::Rank;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The creator's decisions, equal on all ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TeamConfig {
    /// The CPU of each rank.
    pub cpus: Vec<Cpu>,
    /// True if ranks are bound to their CPUs.
    pub bind: bool,
    /// CPUs that can really be used: more ranks than that must hand over.
    pub usable: usize,
    /// Way in which ranks wait.
    pub wait: Wait,
    /// True if calls are compared before data moves.
    pub check: bool,
    /// True if results have to be reproducible.
    pub reproducible: bool,
    /// The longest wait in milliseconds, if there is a limit.
    pub timeout_ms: Option<u64>,
    /// Longest time that a rank may be stopped, in milliseconds, if there is a limit.
    pub stop_timeout_ms: Option<u64>,
    /// Bytes of slots in a large bank, at each rank.
    pub box_bytes: usize,
    /// True if ranks reserve their large banks when a plan first needs them, not when they join.
    pub late_banks: bool,
    /// True if ranks reach each other's private buffers.
    pub direct: bool,
    /// Policy for copies that processes make out of each other's memory.
    pub attach: Attach,
    /// True if the slots of successive runs lie in other places of a large bank.
    pub walk: bool,
    /// Threads that may work beside the program.
    pub threads: HelperThreads,
    /// The tuning that plans are chosen by.
    pub tuning: Tuning,
}

/// Returns the topology that ranks are placed on, and the tuning by which plans are chosen there. A machine that stands in for this one may
/// have CPUs that are not here: then nobody is bound.
pub(super) fn ground(settings: &mut Settings, usable: &UsableCpus) -> Result<(Topology, Tuning), Error> {
    let hardware = Hardware::load(&settings.topology).map_err(|e| Error::Topology(e.to_string()))?;
    let cpus = hardware.placeable(&usable.cpus);
    if settings.bind == Bind::Auto && cpus.iter().any(|cpu| !usable.cpus.contains(cpu)) {
        settings.bind = Bind::None;
    }
    let tuning = Tuning::load(settings, &hardware, &hardware.fingerprint(&cpus))?;
    if let Some(line) = tuning.aside.as_deref().filter(|_| !settings.run.quiet) {
        cache::say(line);
    }
    Ok((hardware.restrict(&cpus).topology, tuning))
}

impl TeamConfig {
    /// Returns the configuration of a team of `ranks` ranks on this machine, by the settings of the environment.
    ///
    /// # Errors
    /// A malformed setting, or a topology that cannot be read.
    pub fn from_environment(ranks: usize) -> Result<TeamConfig, Error> {
        let (settings, _) = Settings::from_environment()?;
        TeamConfig::new(ranks, &settings)
    }

    /// Returns the configuration of a team of `ranks` ranks on this machine, by these settings.
    ///
    /// # Errors
    /// A topology or a profile that cannot be read.
    pub fn new(ranks: usize, settings: &Settings) -> Result<TeamConfig, Error> {
        if ranks == 0 || ranks > MAX_RANKS {
            return Err(Error::TeamSize { ranks, most: MAX_RANKS });
        }
        let usable = UsableCpus::of_this_thread();
        let mut settings = settings.clone();
        let (topology, tuning) = ground(&mut settings, &usable)?;
        Ok(TeamConfig::with(ranks, &settings, &topology, usable.effective, tuning))
    }

    /// Returns the configuration of a team whose ranks somebody else has placed: rank r runs on CPU `cpus[r]`, and all ranks together may
    /// use the CPUs `allowed`, both by the operating system's numbers. No rank is bound, and calls wait for their choices: who places ranks, such as
    /// the library under MPI, has plans chosen beside calls by itself ([`crate::Communicator::planner`]), which reserves the memory that only long messages
    /// need, and compares chosen plans with others.
    ///
    /// # Errors
    /// The errors of [`TeamConfig::new`]; [`Error::Topology`] for a CPU that the topology does not have.
    pub fn placed(cpus: &[usize], allowed: &[usize]) -> Result<TeamConfig, Error> {
        let (mut settings, _) = Settings::from_environment()?;
        settings.bind = Bind::None;
        settings.threads.choose = false;
        let ranks = cpus.len();
        if ranks == 0 || ranks > MAX_RANKS {
            return Err(Error::TeamSize { ranks, most: MAX_RANKS });
        }
        let usable = UsableCpus::among(allowed);
        let (topology, tuning) = ground(&mut settings, &usable)?;
        let mut config = TeamConfig::with(ranks, &settings, &topology, usable.effective, tuning);
        config.late_banks = true;
        if settings.topology == Source::Machine {
            for (place, &os) in config.cpus.iter_mut().zip(cpus) {
                let found = topology.cpus.iter().find(|c| c.os == os);
                *place = found.cloned().ok_or_else(|| {
                    Error::Topology(format!(
                        "a rank runs on CPU {os}, which this machine's topology does not have"
                    ))
                })?;
            }
        }
        Ok(config)
    }

    /// Returns the configuration of a team of `ranks` ranks on the CPUs of a topology.
    pub fn with(
        ranks: usize,
        settings: &Settings,
        topology: &Topology,
        usable: usize,
        tuning: Tuning,
    ) -> TeamConfig {
        let order: Vec<usize> = topology.cpus.iter().map(|c| c.os).collect();
        let bound: Option<Vec<usize>> = settings.bind.place(ranks, &order, usable).into_iter().collect();
        let placed = Shape::place(ranks, topology);
        let cpus = (0..ranks).map(|r| {
            let asked = bound.as_ref().and_then(|b| topology.cpus.iter().find(|c| c.os == b[r]));
            asked.unwrap_or_else(|| placed.cpu(Rank::from(r))).clone()
        });
        TeamConfig {
            cpus: cpus.collect(),
            bind: bound.is_some(),
            usable,
            wait: settings.wait,
            check: settings.check,
            reproducible: settings.reproducible,
            timeout_ms: settings.timeout.map(|t| t.as_millis() as u64),
            stop_timeout_ms: settings.stop_timeout.map(|t| t.as_millis() as u64),
            box_bytes: settings.box_bytes,
            late_banks: false,
            direct: false,
            attach: settings.attach,
            walk: true,
            threads: settings.threads,
            tuning,
        }
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.cpus.len()
    }

    /// Returns the shape of the team: the CPU of each rank.
    pub fn shape(&self) -> Shape {
        Shape::on(self.cpus.clone())
    }

    /// The longest wait, and the longest stop, where there are limits.
    pub(crate) fn limits(&self) -> Limits {
        let of = |ms: Option<u64>| ms.map(Duration::from_millis);
        Limits { wait: of(self.timeout_ms), stopped: of(self.stop_timeout_ms) }
    }

    /// The form in which it lies in the segment.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a configuration has string keys only, so it has a JSON form")
    }

    /// Reads it from the segment.
    pub(super) fn from_bytes(bytes: &[u8]) -> Result<TeamConfig, Error> {
        serde_json::from_slice(bytes).map_err(|e| Error::Foreign {
            expected: "a configuration of this version in the team's segment".into(),
            found: e.to_string(),
        })
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_stands_in_for_this_one_has_all_its_cpus_and_binds_nobody() {
        let topology = Source::Synthetic("pack:2 l3:4 core:256 pu:1".to_owned());
        let settings = Settings { topology, ..Settings::default() };
        let config = TeamConfig::new(2048, &settings).expect("a configuration");
        let packages: Vec<usize> = config.cpus.iter().map(|cpu| cpu.package).collect();
        assert_eq!((packages[0], packages[1023], packages[1024], packages[2047]), (0, 0, 1, 1));
        assert!(!config.bind);
    }
}

//! Data that all commands share: the global options, the environment's settings, and the costs for choosing.

use crate::error::CliError;
use crate::machines;
pub use crate::machines::load as load_machine;
use crate::node::NodeInfo;
use crate::output::Output;
use crate::question::machine;
use clap::Args;
use lineweave::cache;
use lineweave::settings::{Settings, Warning};
use lineweave::topology::{Hardware, Source};
use lineweave::tuning::{self, Origin, Tuning};
use lineweave_core::machine::Machine;
use lineweave_core::model::{fit, Model};
use lineweave_core::profile::{Fingerprint, Profile};
use lineweave_core::select::Choices;
use lineweave_core::topology::Topology;
use lineweave_tune::measure::of_another_state;
use std::path::{Path, PathBuf};

/// Options of every command.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// Print JSON Lines: one object a line with "schema" and "kind" (docs/reference/json.md)
    #[arg(long, global = true)]
    pub json: bool,
    /// Use this topology instead of the machine's: a string such as "pack:2 numa:4 l3:2 core:8", an hwloc XML file,
    /// or the name of a described machine
    #[arg(long, global = true, value_name = "STRING|FILE.xml|NAME")]
    pub topology: Option<String>,
    /// Use the costs of a described machine: its name (`lineweave list --machines`) or a file
    #[arg(long, global = true, value_name = "NAME|FILE", conflicts_with = "profile", value_parser = machine(), hide_possible_values = true)]
    pub machine: Option<String>,
    /// Use the costs of this profile
    #[arg(long, global = true, value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// No warnings and no progress
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// One run of the command.
#[derive(Debug)]
pub struct Session {
    globals: Globals,
    /// The output of findings.
    pub out: Output,
    /// True for each of topology, machine and profile that the command has asked for.
    used: [bool; 3],
}

/// Costs for choosing, their source, and the CPUs that ranks are placed on.
#[derive(Debug)]
pub struct Costs {
    /// The model with measured and forced choices.
    pub tuning: Tuning,
    /// Source of the costs, in words.
    pub origin: String,
    /// Sentences that say which costs were measured and which were assumed, where a matrix gives only a part of them.
    pub notes: Vec<String>,
    /// CPUs in the order in which ranks are placed, neighbours first.
    pub topology: Topology,
    /// The machine, where it is a described one.
    pub machine: Option<Machine>,
}

const TOPOLOGY: usize = 0;
const MACHINE: usize = 1;
const PROFILE: usize = 2;
/// Name of this kind of file in errors.
const PROFILE_FILE: &str = "profile";

impl Session {
    /// Starts a run with these options.
    pub fn new(globals: Globals) -> Session {
        let out = Output::new(globals.json, globals.quiet);
        Session { globals, out, used: [false; 3] }
    }

    /// Returns the topology given on the command line.
    pub fn topology_option(&mut self) -> Option<&str> {
        self.used[TOPOLOGY] = true;
        self.globals.topology.as_deref()
    }

    /// Returns the machine given on the command line.
    pub fn machine_option(&mut self) -> Option<&str> {
        self.used[MACHINE] = true;
        self.globals.machine.as_deref()
    }

    /// Loads the machine given on the command line.
    pub fn machine(&mut self) -> Result<Option<Machine>, CliError> {
        self.machine_option().map(load_machine).transpose()
    }

    /// Returns the profile given on the command line.
    pub fn profile_option(&mut self) -> Option<&Path> {
        self.used[PROFILE] = true;
        self.globals.profile.as_deref()
    }

    /// Returns the environment's settings, overridden by `--topology`, and warnings about them.
    pub fn settings(&mut self) -> Result<(Settings, Vec<Warning>), CliError> {
        let (mut settings, warnings) = Settings::from_environment()?;
        if let Some(text) = self.topology_option().map(str::to_owned) {
            settings.topology = Source::parse(&text);
            // A machine's name stands for its topology.
            if !text.contains([':', '/', '.']) && text != "machine" {
                if let Some(form) = load_machine(&text).ok().and_then(|m| m.topology.value) {
                    settings.topology = Source::Synthetic(form);
                }
            }
        }
        Ok((settings, warnings))
    }

    /// Returns the settings, after printing the warnings.
    pub fn settings_warned(&mut self) -> Result<Settings, CliError> {
        let (settings, warnings) = self.settings()?;
        for warning in warnings {
            self.out.warn(&warning.to_string());
        }
        Ok(settings)
    }

    /// Returns the settings for work on this very machine, even if another one replaces it elsewhere.
    pub fn settings_of_this_machine(&mut self) -> Result<Settings, CliError> {
        let (settings, warnings) = Settings::from_environment()?;
        for warning in warnings {
            self.out.warn(&warning.to_string());
        }
        if settings.topology != Source::Machine {
            self.out.warn("LINEWEAVE_TOPOLOGY has no effect on this command: it works on this machine");
        }
        Ok(Settings { topology: Source::Machine, ..settings })
    }

    /// Treats a profile that `--machine` names as if `--profile` named it.
    fn profile_as_machine(&mut self) {
        let file = self.globals.machine.as_deref().map(Path::new).filter(|file| file.is_file());
        let is_profile =
            |file: &&Path| lineweave::sysfile::text(file).is_ok_and(|text| Profile::from_toml(&text).is_ok());
        if let Some(file) = file.filter(is_profile).map(Path::to_owned) {
            (self.globals.machine, self.globals.profile) = (None, Some(file));
        }
    }

    /// Returns the costs for choosing: `--machine`, else `--profile`, else those that programs on this machine use. Ranks are placed on
    /// `--topology`, else on the machine that the costs belong to.
    pub fn costs(&mut self) -> Result<Costs, CliError> {
        self.profile_as_machine();
        let (settings, _) = self.settings()?;
        if settings.profile.is_some() && (self.globals.machine.is_some() || self.globals.profile.is_some()) {
            self.out.warn("LINEWEAVE_PROFILE has no effect: the command line says otherwise");
        }
        let given = match settings.topology {
            Source::Machine => None,
            Source::Xml(_) | Source::Synthetic(_) => Some(Hardware::load(&settings.topology)?),
        };
        let given = given.map(|hardware| hardware.topology);
        if let Some(machine) = self.machine()? {
            let topology = match given {
                Some(topology) => topology,
                None => machines::topology(&machine)?,
            };
            let tuning = tuning_of(&machine);
            let origin = format!("machine description {}", machine.name);
            let notes = machines::told(&machine);
            return Ok(Costs { tuning, origin, notes, topology, machine: Some(machine) });
        }
        if let Some(file) = self.profile_option().map(Path::to_owned) {
            let (model, of) = match load_adopted(&file)? {
                Some(model) => {
                    let name = model.machine.cpu.clone();
                    (model, Origin::Costs { file: file.clone(), name })
                }
                None => (load_profile(&file)?.1, Origin::Profile { file: file.clone() }),
            };
            let topology = match given {
                Some(topology) => topology,
                None => {
                    Hardware::load(&Source::Synthetic(model.machine.topology.clone()))
                        .map_err(|e| CliError::malformed(&file, "profile with a topology", e))?
                        .topology
                }
            };
            let origin = match &of {
                Origin::Profile { .. } => {
                    format!("profile {}, measured on {}", file.display(), model.machine.cpu)
                }
                Origin::Costs { .. } | Origin::Machine { .. } => of.to_string(),
            };
            let choices = choices_beside(&file, &model.machine)?;
            let mut tuning = Tuning::of_model(model, of);
            tuning.choices = choices;
            return Ok(Costs { notes: mixed(&tuning), tuning, origin, topology, machine: None });
        }
        let here = Settings { topology: Source::Machine, ..settings };
        let node = NodeInfo::gather(&here, &[])?;
        let tuning = Tuning::load(&here, &node.hardware, &node.fingerprint)?;
        tuning.aside.iter().for_each(|line| self.out.warn(line));
        let origin = tuning.origin.to_string();
        let topology = given.unwrap_or_else(|| node.placement());
        Ok(Costs { notes: mixed(&tuning), tuning, origin, topology, machine: None })
    }

    /// Returns the CPUs that ranks are placed on if costs do not matter: `--topology`, else those of `--machine`, else this machine's.
    pub fn topology(&mut self) -> Result<Topology, CliError> {
        let (settings, _) = self.settings()?;
        if settings.topology == Source::Machine {
            if let Some(machine) = self.machine()? {
                return machines::topology(&machine);
            }
        }
        Ok(NodeInfo::gather(&settings, &[])?.placement())
    }

    /// Returns this machine's fingerprint, and the file in which its profile is kept.
    pub fn cached_profile(&mut self) -> Result<(Fingerprint, PathBuf), CliError> {
        let settings = Settings::default();
        let node = NodeInfo::gather(&settings, &[])?;
        let directory = tuning::cache_directory(&node.fingerprint).ok_or(CliError::NoCache)?;
        Ok((node.fingerprint, directory.join(tuning::PROFILE_FILE)))
    }

    /// Ends the run: warns about options that had no effect, and flushes the output.
    pub fn finish(&mut self) -> Result<(), CliError> {
        let given =
            [self.globals.topology.is_some(), self.globals.machine.is_some(), self.globals.profile.is_some()];
        for (i, name) in ["--topology", "--machine", "--profile"].into_iter().enumerate() {
            if given[i] && !self.used[i] {
                self.out.warn(&format!("{name} has no effect on this command"));
            }
        }
        self.out.flush()
    }
}

/// Returns a tuning that chooses by a described machine only.
pub fn tuning_of(machine: &Machine) -> Tuning {
    let origin = Origin::Machine { name: machine.name.clone(), why: "--machine".to_owned() };
    Tuning::of_model(Model::from_machine(machine), origin)
}

/// Loads the costs that `lineweave profile adopt` wrote, or returns `None` if the file is a profile.
pub fn load_adopted(file: &Path) -> Result<Option<Model>, CliError> {
    let text = cache::text_of_either(file).map_err(|e| CliError::read(file, PROFILE_FILE, e))?;
    Ok(tuning::parse_costs(file, &text)?)
}

/// Loads a profile and fits its model.
pub fn load_profile(file: &Path) -> Result<(Profile, Model), CliError> {
    let text = cache::text_of_either(file).map_err(|e| CliError::read(file, PROFILE_FILE, e))?;
    let profile = Profile::from_toml(&text).map_err(|e| CliError::malformed(file, PROFILE_FILE, e))?;
    let model = fit(&profile).map_err(|e| CliError::malformed(file, PROFILE_FILE, e))?;
    Ok((profile, model))
}

/// Returns the choices beside a profile, if they are of the same machine: programs that use the profile use them.
pub fn choices_beside(profile: &Path, machine: &Fingerprint) -> Result<Option<Choices>, CliError> {
    const WHAT: &str = "table of choices";
    let file = profile.with_file_name(tuning::CHOICES_FILE);
    if !file.exists() {
        return Ok(None);
    }
    let text = lineweave::sysfile::text(&file).map_err(|e| CliError::read(&file, WHAT, e))?;
    let choices = Choices::from_toml(&text).map_err(|e| CliError::malformed(&file, WHAT, e))?;
    Ok(Some(choices).filter(|c| c.machine == machine.id()))
}

/// Returns the parameters that could be measured only while the machine was in another state than for the others.
pub fn mixed(tuning: &Tuning) -> Vec<String> {
    let told = tuning.model.unidentified.iter().filter(|u| of_another_state(u));
    told.map(|u| format!("{}: {}", u.what, u.because)).collect()
}

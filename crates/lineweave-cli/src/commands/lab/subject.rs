//! The subject of an experiment: the costs of this machine, of a profile, or of a described machine.

use crate::error::CliError;
use crate::question::Place;
use crate::session::{load_machine, load_profile, Costs, Session};
use lineweave::tuning::Origin;
use lineweave_core::machine::Machine;
use lineweave_core::model::Model;
use lineweave_core::profile::Profile;
use lineweave_core::select::Choices;
use lineweave_core::topology::{Shape, Topology};
use std::path::PathBuf;

/// The costs that an experiment uses, for any number of ranks.
#[derive(Debug)]
pub struct Subject {
    /// Short name of the machine, for tables.
    pub name: String,
    /// Source of the costs, in words.
    pub origin: String,
    /// Notes that say which costs were measured and which were assumed.
    pub notes: Vec<String>,
    pub model: Model,
    /// CPUs in the order in which ranks are placed.
    pub topology: Topology,
    /// The description, where costs come from one.
    pub machine: Option<Machine>,
    /// The profile and its file, where costs come from one.
    pub profile: Option<(Profile, PathBuf)>,
    /// Choices that `tune` measured.
    pub choices: Option<Choices>,
}

impl Subject {
    /// Returns the costs of `--machine`, else of `--profile`, else those by which programs on this machine choose: its kept
    /// profile, or the description that is nearest to it.
    pub fn of(session: &mut Session, place: Place) -> Result<Subject, CliError> {
        let Costs { tuning, origin, notes, topology, machine } = session.costs()?;
        let profile = match &tuning.origin {
            Origin::Profile { file } => Some((load_profile(file)?.0, file.clone())),
            Origin::Costs { .. } | Origin::Machine { .. } => None,
        };
        let machine = match (machine, &tuning.origin) {
            (Some(machine), _) => Some(machine),
            (None, Origin::Costs { name, .. } | Origin::Machine { name, .. }) => load_machine(name).ok(),
            (None, Origin::Profile { .. }) => None,
        };
        Ok(Subject {
            name: match (&machine, &profile) {
                (Some(machine), _) => machine.name.clone(),
                (None, Some((profile, _))) => profile.machine.cpu.clone(),
                (None, None) => tuning.model.machine.cpu.clone(),
            },
            origin: match &profile {
                Some((profile, _)) if !origin.contains("measured on") => {
                    format!("{origin}, measured on {}", profile.machine.cpu)
                }
                _ => origin,
            },
            notes,
            topology: topology.placed(place.place),
            machine,
            profile,
            choices: tuning.choices,
            model: tuning.model,
        })
    }

    /// Returns so many ranks placed on the machine, with the placement in words where cores have several hardware threads.
    pub fn shape(&self, ranks: usize, place: Place) -> (Shape, Option<String>) {
        (Shape::place(ranks, &self.topology), self.topology.placement_of(ranks, place.place))
    }
}

//! `lineweave profile adopt`: a described machine's costs, kept where programs find them, with the trees that its matrix gives.

use crate::error::CliError;
use crate::files::{make_room, replace, to_write};
use crate::node::NodeInfo;
use crate::output::table;
use crate::question::team;
use crate::session::{load_machine, Session};
use lineweave::tuning::{is_of, CHOICES_FILE, COSTS_FILE, PROFILE_FILE};
use lineweave_core::collective::Collective;
use lineweave_core::machine::Machine;
use lineweave_core::model::Model;
use lineweave_core::profile::Fingerprint;
use lineweave_core::select::{select, Choices, Question, Tuned};
use lineweave_core::topology::{Shape, Topology};
use lineweave_core::units::Nanos;
use lineweave_lab::generate::{generate, Case, BYTES, COLLECTIVES};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Arguments of `lineweave profile adopt`.
#[derive(clap::Args, Debug)]
pub(super) struct Adopt {
    /// A description that `lineweave profile import` made, or a shipped one's name (`lineweave list --machines`)
    #[arg(value_name = "NAME|FILE.toml")]
    name: String,
    /// A file for LINEWEAVE_PROFILE, here or on another machine; trees go into choices.toml beside it [default: the cache, by machine
    /// fingerprint, where programs of this machine find it]
    #[arg(long, short, value_name = "FILE.json", value_parser = to_write)]
    output: Option<PathBuf>,
    /// Ranks that trees are made for [default: one for each CPU]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    ranks: Option<u32>,
}

/// The costs of another machine, in place of a profile. Printed as `profile-adopt` by `lineweave profile adopt`, first.
#[derive(Serialize)]
struct Adopted<'a> {
    /// The file with the costs.
    file: String,
    machine: &'a str,
    /// The file with the trees; `None` without a matrix.
    choices_file: Option<String>,
}

/// The tree for a call of 8 bytes, or a barrier, beside the algorithm that is predicted to be the fastest. Printed as `adopted-tree` by `lineweave
/// profile adopt`, one object a collective that trees are generated for.
#[derive(Serialize)]
struct TreeObject<'a> {
    collective: Collective,
    ranks: usize,
    algorithm: &'a str,
    /// One call of the tree alone.
    simulated_ns: f64,
    /// The model's choice.
    predicted: String,
    predicted_simulated_ns: f64,
    bound_ns: f64,
    /// True if programs use the tree.
    kept: bool,
    because: &'static str,
}

/// A generated tree that was compared with the model's choice.
struct Compared {
    tuned: Tuned,
    name: String,
    predicted: String,
    predicted_simulated_ns: f64,
    bound_ns: f64,
}

impl Compared {
    fn wins(&self) -> bool {
        self.tuned.measured_ns < self.predicted_simulated_ns
    }
}

pub(super) fn run(arguments: &Adopt, session: &mut Session) -> Result<(), CliError> {
    let machine = load_machine(&arguments.name)?;
    if machine.mesh.is_some() && machine.coherent.is_none() {
        return Err(CliError::NoCaches { name: machine.name, collective: Collective::Barrier });
    }
    let model = Model::from_machine(&machine);
    let (file, fingerprint, topology) = match &arguments.output {
        Some(file) => (file.clone(), model.machine.clone(), machine.topology()),
        None => here(&model, &arguments.name, session)?,
    };
    replace(&file, &model.to_json(), "-o")?;
    let trees = match topology {
        Some(topology) => trees(&machine, &model, &topology, arguments.ranks, session)?,
        None => Vec::new(),
    };
    let beside = file.with_file_name(CHOICES_FILE);
    let because = keep(&trees, &beside, &fingerprint)?;
    let adopted = Adopted {
        file: file.display().to_string(),
        machine: &machine.name,
        choices_file: (!trees.is_empty()).then(|| beside.display().to_string()),
    };
    show(&adopted, &trees, &because, session)?;
    match &arguments.output {
        Some(file) => session.out.line(&format!("LINEWEAVE_PROFILE={} lineweave run ...", file.display())),
        None => Ok(()),
    }
}

/// Returns the directory in which programs on this machine look for costs, its fingerprint, and its CPUs.
fn here(
    model: &Model,
    name: &str,
    session: &mut Session,
) -> Result<(PathBuf, Fingerprint, Option<Topology>), CliError> {
    let settings = session.settings_warned()?;
    let node = NodeInfo::gather(&settings, &[])?;
    is_of(model, &node.fingerprint)
        .map_err(|e| CliError::OtherMachine { name: name.to_owned(), why: e.to_string() })?;
    let directory = lineweave::tuning::cache_directory(&node.fingerprint).ok_or(CliError::NoCache)?;
    if settings.profile.is_some() {
        session.out.warn("programs choose by LINEWEAVE_PROFILE as long as it is set, and not by this");
    } else if directory.join(PROFILE_FILE).exists() {
        session
            .out
            .warn("this machine has a profile of its own, which programs choose by; costs stay beside it");
    }
    let file = directory.join(COSTS_FILE);
    make_room(&file)?;
    let topology = node.placement();
    Ok((file, node.fingerprint, Some(topology)))
}

/// Generates a tree for each collective that trees exist for, and compares it with the model's choice; both are simulated with each pair
/// of CPUs at its own latency. Without a matrix there are no trees.
fn trees(
    machine: &Machine,
    model: &Model,
    topology: &Topology,
    ranks: Option<u32>,
    session: &mut Session,
) -> Result<Vec<Compared>, CliError> {
    let ranks = ranks.map_or(topology.cpus.len(), |n| n as usize);
    if machine.measured.is_none() {
        session.out.line(&format!("no trees: no pairs of {}'s CPUs were timed", machine.name))?;
        return Ok(Vec::new());
    }
    if ranks < 2 || ranks > topology.cpus.len() {
        session.out.warn(&format!("no trees among {ranks} ranks: {} CPUs are there", topology.cpus.len()));
        return Ok(Vec::new());
    }
    let shape = Shape::place(ranks, topology);
    COLLECTIVES.into_iter().map(|collective| compared(machine, model, &shape, collective)).collect()
}

fn compared(
    machine: &Machine,
    model: &Model,
    shape: &Shape,
    collective: Collective,
) -> Result<Compared, CliError> {
    let case = Case { machine, shape, collective, root: 0 };
    let bytes = if collective.moves_data() { BYTES } else { 0 };
    let grain = if collective.folds() { BYTES } else { 1 };
    let question =
        Question { shape: shape.clone(), ..Question::flat(collective, shape.ranks(), bytes, grain) };
    let choice = select(model, &question)?;
    let made = generate(&case)?;
    Ok(Compared {
        predicted: choice.named(bytes).to_string(),
        predicted_simulated_ns: case.simulated(choice.plan())?,
        bound_ns: made.bound_ns,
        name: made.best.spec.to_string(),
        tuned: Tuned {
            collective,
            ranks: shape.ranks(),
            bytes,
            team: String::new(),
            algorithm: made.best.spec.name.clone(),
            params: made.best.spec.params.clone(),
            window: bytes,
            predicted_ns: lineweave_core::select::predict(
                model,
                &question,
                &made.best.spec.name,
                &made.best.spec.params,
                bytes,
            )?
            .predicted
            .0,
            measured_ns: made.best.ns,
            attach: None,
            simulated: true,
        },
    })
}

/// Keeps the winning trees in a file beside the costs, for threads and for processes; measured choices stay. Returns the reason for each
/// tree that is kept or not.
fn keep(
    trees: &[Compared],
    beside: &Path,
    fingerprint: &Fingerprint,
) -> Result<Vec<(bool, &'static str)>, CliError> {
    let mut choices = match lineweave::cache::text_of_either(beside) {
        Ok(text) => {
            Choices::from_toml(&text).map_err(|e| CliError::malformed(beside, "table of choices", e))?
        }
        Err(_) => Choices::new(fingerprint.id()),
    };
    // Simulated choices are trees of an earlier time, or of another machine's matrix.
    choices.choices.retain(|old| !old.simulated);
    let mut because = Vec::new();
    for tree in trees {
        let mut kept = (false, "it was measured on this machine which one is");
        for name in [true, false].map(team) {
            let tuned = Tuned { team: name.to_owned(), ..tree.tuned.clone() };
            let Tuned { collective, ranks, bytes, .. } = tuned;
            let known = choices.lookup(collective, ranks, bytes, name).is_some_and(|found| found.exact);
            match tree.wins() {
                false => kept = (false, "the predicted one is as fast, or faster"),
                true if !known => {
                    choices.insert(tuned);
                    kept = (true, "it is the fastest");
                }
                true => {}
            }
        }
        because.push(kept);
    }
    if !choices.choices.is_empty() || beside.exists() {
        replace(beside, &choices.to_toml(), "-o")?;
    }
    Ok(because)
}

fn show(
    adopted: &Adopted,
    trees: &[Compared],
    because: &[(bool, &'static str)],
    session: &mut Session,
) -> Result<(), CliError> {
    session.out.object("profile-adopt", adopted)?;
    session.out.line(&format!("{}: costs of {}", adopted.file, adopted.machine))?;
    let Some(beside) = &adopted.choices_file else { return Ok(()) };
    let head = ["collective", "ranks", "predicted to be the fastest", "simulated", "tree", "bound", "kept"];
    let mut rows = table(&head, &[1, 3, 4, 5]);
    for (tree, &(kept, because)) in trees.iter().zip(because) {
        let object = TreeObject {
            collective: tree.tuned.collective,
            ranks: tree.tuned.ranks,
            algorithm: &tree.name,
            simulated_ns: tree.tuned.measured_ns,
            predicted: tree.predicted.clone(),
            predicted_simulated_ns: tree.predicted_simulated_ns,
            bound_ns: tree.bound_ns,
            kept,
            because,
        };
        session.out.object("adopted-tree", &object)?;
        rows.add_row([
            tree.tuned.collective.to_string(),
            tree.tuned.ranks.to_string(),
            tree.predicted.clone(),
            Nanos(tree.predicted_simulated_ns).to_string(),
            Nanos(tree.tuned.measured_ns).to_string(),
            Nanos(tree.bound_ns).to_string(),
            format!("{}: {because}", if kept { "yes" } else { "no" }),
        ]);
    }
    session.out.table(&rows)?;
    session.out.line(&format!("{beside}: trees that programs use for calls of {BYTES} bytes, and barriers"))
}

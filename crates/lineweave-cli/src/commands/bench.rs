//! `lineweave bench`: collectives beside the floor and others, in the same run.

mod apps;
pub mod first;
mod first_mpi;
mod mpi;
mod python;
mod report;
mod tables;

use self::report::Report;
use self::tables::{others, remarks, show};
use super::rank_job;
use crate::bench::apps::Part;
use crate::bench::field::Field;
use crate::bench::guidelines::{moved, violated};
use crate::bench::load::{Load, Running};
use crate::bench::record::{keep, write, Provenance};
use crate::bench::{Case, Definition, DefinitionError, Peers, Runner, Subject, Team};
use crate::error::CliError;
use crate::files::directory;
use crate::node::NodeInfo;
use crate::output::Output;
use crate::question::given;
use crate::session::{load_machine, tuning_of, Session};
use crate::size::Size;
use clap::ValueEnum;
use lineweave::settings::Settings;
use lineweave::team::TeamConfig;
use lineweave::topology::Source;
use lineweave::tuning::{Origin, Tuning};
use lineweave_core::algorithm::spec::parts;
use lineweave_core::units::{Bytes, Nanos};
use std::path::PathBuf;

/// Subjects that are no definitions, and are measured by themselves.
const ALONE: [&str; 4] = ["python", "mpi", "apps", "first"];

/// The kinds of team to measure.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Teams {
    Threads,
    Processes,
    Both,
}

/// The surroundings of what is measured.
#[derive(clap::Args, Debug)]
struct Around {
    /// Loads that share the CPUs meanwhile, with a number of processes each: spin (computes), wake (wakes every millisecond), stream
    /// (copies memory), such as spin:1,wake:4
    #[arg(long, value_name = "LOAD[:N],..", value_delimiter = ',')]
    beside: Vec<Load>,
    /// Where the programs to compare with are built [default: the user's cache]
    #[arg(long, value_name = "DIR", hide = true)]
    peers: Option<PathBuf>,
}

/// Arguments of `lineweave bench`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Benchmarks that come with lineweave, which are named as their collectives; definitions' files; or all; or by itself `mpi`, the
    /// collectives of installed MPIs with lineweave before them and without; `python`, the Python package beside mpi4py,
    /// gloo, and DeepSpeed's and vLLM's operators; `apps`, real programs end to end; or `first`, what teams, lengths and communicators cost once
    #[arg(value_name = "NAME", default_value = "all")]
    names: Vec<String>,
    /// Team sizes, such as 2 or 2,4,8 [default: the definition's]
    #[arg(long, value_name = "N,..", value_delimiter = ',')]
    ranks: Vec<usize>,
    /// Algorithms to use whatever the model says, as they are printed or as LINEWEAVE_ALGORITHM has them:
    /// `tree degrees=2,2,1 by 4 KiB`, of the benchmark's collective, or `bcast/binomial;reduce/flat`
    #[arg(long, value_name = "CHOICE")]
    algorithm: Option<String>,
    /// Message sizes, such as 8,64KiB [default: the definition's]
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',')]
    bytes: Vec<Size>,
    /// Kinds of team
    #[arg(long, value_enum, default_value = "both")]
    team: Teams,
    /// Keep the result in `DIR/<machine>/<date>.jsonl`
    #[arg(long, value_name = "DIR", value_parser = directory)]
    record: Option<PathBuf>,
    /// Measure the library with each way of waiting as well: spin, yield, sleep
    #[arg(long)]
    waits: bool,
    /// Measure the library with each way that bytes can go between processes as well: boxes, cross-memory attach, shared buffers
    #[arg(long)]
    paths: bool,
    #[command(flatten)]
    around: Around,
    /// Fewer and shorter windows, and a third of the sizes
    #[arg(long)]
    quick: bool,
    /// For `mpi`, `apps` and `first`: directories of MPIs, which have bin/mpirun [default: of the mpirun on the PATH; for `first` none]
    #[arg(long, value_name = "DIR,..", value_delimiter = ',')]
    mpi: Vec<PathBuf>,
    /// For `mpi`, `apps` and `first`: launches with lineweave and without [default: 7, with --quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    launches: Option<u32>,
    /// For `python`: only subjects that begin with this, such as inference/
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true)]
    only: String,
    /// For `apps`: these parts only
    #[arg(long, value_name = "PART,..", value_delimiter = ',')]
    parts: Vec<Part>,
    /// For `apps`: first install what its programs need, from PyPI (some 7 GB, and llama.cpp is built)
    #[arg(long)]
    install: bool,
}

impl Arguments {
    /// Returns the number of launches with lineweave, and as many without.
    fn launches(&self) -> usize {
        self.launches.unwrap_or(if self.quick { 3 } else { 7 }) as usize
    }
}

/// Measures and shows.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    // Until this ends.
    let _beside = Running::start(&arguments.around.beside, rank_job::command()?)?;
    match arguments.names.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["python"] => return python::run(arguments, session),
        ["mpi"] => return mpi::run(arguments, session),
        ["apps"] => return apps::run(arguments, session),
        ["first"] => return first::run(arguments, session),
        _ => {}
    }
    let definitions = definitions(arguments)?;
    let is_here = session.machine_option().is_none() && session.settings()?.0.topology == Source::Machine;
    let (settings, node, mut tuning) = here_or_rehearsed(session)?;
    if let Some(written) = &arguments.algorithm {
        force(&mut tuning, written, &definitions)?;
    }
    let mut runner = Runner::new(Peers::build(&peers_directory(arguments))?, node.usable.cpus.clone());
    let (provenance, mut report) = begun(arguments, &node, &tuning, session)?;
    session.out.line(&format!("{} on {} usable CPUs", provenance.cpu, node.usable.effective))?;
    session.out.line(&format!("plans chosen by {}", tuning.origin))?;
    let beside: Vec<String> = arguments.around.beside.iter().map(Load::to_string).collect();
    if !beside.is_empty() {
        session.out.line(&format!("beside {}", beside.join(", ")))?;
    }
    for definition in &definitions {
        let mut shown = Vec::new();
        let cases = Case::of(definition);
        let bar = session.out.progress((cases.len() * definition.repeat.launches) as u64);
        for &ranks in &definition.ranks {
            runner.crews.clear();
            for &team in &definition.teams {
                let config = TeamConfig::with(
                    ranks,
                    &settings,
                    &node.placement(),
                    node.usable.effective,
                    tuning.clone(),
                );
                runner.crews.insert(team, rank_job::crew(team, config)?);
            }
            for case in cases.iter().filter(|c| c.ranks == ranks) {
                let bytes = Bytes(case.bytes);
                let mut step = |subject: Subject, team: Team| {
                    bar.set_message(format!("{} {bytes}, {ranks} {team}: {subject}", case.collective));
                };
                let results = runner.run(case, definition, &mut step)?;
                bar.inc(definition.repeat.launches as u64);
                for row in &results.rows {
                    report.line(&mut session.out, "bench", row)?;
                }
                for skipped in results.skipped {
                    if !report.skipped.contains(&skipped) {
                        report.line(&mut session.out, "skipped", &skipped)?;
                        report.skipped.push(skipped);
                    }
                }
                shown.extend(results.rows);
            }
        }
        bar.finish_and_clear();
        show(definition, &shown, &mut session.out)?;
        report.rows.extend(shown);
    }
    let beside = Field::shipped().map(|field| field.beside(&report.rows)).unwrap_or_default();
    for line in &beside {
        report.line(&mut session.out, "field", line)?;
    }
    others(&beside, &mut session.out)?;
    let violations = violated(&report.rows);
    for violation in &violations {
        report.line(&mut session.out, "guideline", violation)?;
    }
    remarks(&report.skipped, &violations, &mut session.out)?;
    if let Some((low, high)) = moved(&report.rows) {
        session.out.line(&format!(
            "\nThe exchange of two flags took from {} to {} in this run: CPUs changed place beneath it, as those of a virtual machine do. \
             Compare times by their ratio to the floor; guidelines are looked at only where it was alike.",
            Nanos(low),
            Nanos(high)
        ))?;
    }
    let as_programs_run = is_here && arguments.algorithm.is_none() && arguments.around.beside.is_empty();
    record(arguments, &node, &provenance, &report, as_programs_run, session)
}

/// Returns the provenance of what is measured now, and a record that begins with it.
fn begun(
    arguments: &Arguments,
    node: &NodeInfo,
    tuning: &Tuning,
    session: &mut Session,
) -> Result<(Provenance, Report), CliError> {
    let provenance = Provenance::gather(node, chosen_by(tuning)).beside(&arguments.around.beside);
    let mut report = Report::default();
    report.line(&mut session.out, "record", &provenance)?;
    Ok((provenance, report))
}

/// Writes the record where the command line names a directory, into its folder `below`.
fn written(
    arguments: &Arguments,
    below: &str,
    provenance: &Provenance,
    report: &Report,
    out: &mut Output,
) -> Result<(), CliError> {
    let Some(directory) = &arguments.record else { return Ok(()) };
    let file = provenance.file(&directory.join(below));
    write(&file, &report.lines)?;
    out.line(&format!("recorded in {}", file.display()))
}

/// Writes the record, and keeps times that programs on this machine have for `lineweave report`.
fn record(
    arguments: &Arguments,
    node: &NodeInfo,
    provenance: &Provenance,
    report: &Report,
    as_programs_run: bool,
    session: &mut Session,
) -> Result<(), CliError> {
    written(arguments, "", provenance, report, &mut session.out)?;
    match as_programs_run.then(|| keep(node, &report.lines)) {
        Some(Ok(file)) => session.out.line(&format!("kept for `lineweave report`: {}", file.display())),
        Some(Err(why)) => {
            session.out.warn(&format!("not kept for `lineweave report`: {why}"));
            Ok(())
        }
        None => Ok(()),
    }
}

/// Forces these choices. A choice that does not begin with a collective is for the collective that is measured, if there is only one.
fn force(tuning: &mut Tuning, written: &str, definitions: &[Definition]) -> Result<(), CliError> {
    let one = definitions.first().map(|d| d.collective);
    let one = one.filter(|one| definitions.iter().all(|d| d.collective == *one));
    for (_, choice) in parts(written, &[';']) {
        let of =
            choice.split_once(['/', '=']).and_then(|(name, rest)| Some((name.trim().parse().ok()?, rest)));
        let (collective, choice) = match (of, one) {
            (Some(found), _) => found,
            (None, Some(collective)) => (collective, choice),
            (None, None) => {
                let found = "no collective before it, and several are measured".to_owned();
                return Err(CliError::Written { written: choice.trim().to_owned(), found });
            }
        };
        let spec = given(collective, choice, &[])?;
        spec.algorithm(collective)?;
        tuning.force(collective, spec);
    }
    Ok(())
}

/// Returns the source of the choices, for records. Records are shared: the fingerprint beside it identifies the profile, so no directory is
/// named.
fn chosen_by(tuning: &Tuning) -> String {
    match &tuning.origin {
        Origin::Profile { .. } => "the profile of this machine".to_owned(),
        Origin::Costs { name, .. } => format!("costs of {name}"),
        Origin::Machine { name, .. } => format!("machine description {name}"),
    }
}

/// Returns the settings, the node and the tuning that programs on this machine would use.
pub fn here(session: &mut Session) -> Result<(Settings, NodeInfo, Tuning), CliError> {
    let mut settings = session.settings_warned()?;
    if let Some(file) = session.profile_option() {
        settings.profile = Some(file.to_owned());
    }
    let node = NodeInfo::gather(&settings, &[])?;
    node.warnings.iter().for_each(|warning| session.out.warn(warning));
    let tuning = Tuning::load(&settings, &node.hardware, &node.fingerprint)?;
    tuning.aside.iter().for_each(|line| session.out.warn(line));
    Ok((settings, node, tuning))
}

/// As [`here`], or with `--machine` a rehearsal: the choices for that machine run on this one.
fn here_or_rehearsed(session: &mut Session) -> Result<(Settings, NodeInfo, Tuning), CliError> {
    let Some(name) = session.machine_option().map(str::to_owned) else { return here(session) };
    let machine = load_machine(&name)?;
    let mut settings = session.settings_warned()?;
    if settings.topology == Source::Machine {
        let form = machine.topology.value.clone();
        settings.topology = Source::Synthetic(form.ok_or(CliError::NoTopology { name })?);
    }
    let node = NodeInfo::gather(&settings, &[])?;
    node.warnings.iter().for_each(|warning| session.out.warn(warning));
    Ok((settings, node, tuning_of(&machine)))
}

/// Returns the directory of the peers' programs.
fn peers_directory(arguments: &Arguments) -> PathBuf {
    let home = || {
        lineweave::cache::directory().unwrap_or_else(|| std::env::temp_dir().join("lineweave")).join("peers")
    };
    arguments.around.peers.clone().unwrap_or_else(home)
}

/// Returns the definitions that were asked for, with the command line's changes.
fn definitions(arguments: &Arguments) -> Result<Vec<Definition>, CliError> {
    let mut definitions = Vec::new();
    for name in &arguments.names {
        match name.as_str() {
            "all" => definitions
                .extend(Definition::names().map(Definition::shipped).collect::<Result<Vec<_>, _>>()?),
            name if name.ends_with(".toml") => {
                let path = PathBuf::from(name);
                let text = lineweave::sysfile::text(&path);
                let text = text.map_err(|e| CliError::read(&path, "benchmark definition", e))?;
                definitions.push(Definition::parse(name, &text)?);
            }
            name if ALONE.contains(&name) => Err(DefinitionError::Alone { name: name.to_owned() })?,
            name => definitions.push(Definition::shipped(name)?),
        }
    }
    for definition in &mut definitions {
        if !arguments.ranks.is_empty() {
            definition.ranks.clone_from(&arguments.ranks);
        }
        if !arguments.bytes.is_empty() && definition.collective.moves_data() {
            definition.sizes_bytes = arguments.bytes.iter().map(|s| s.0 as u64).collect();
        } else if arguments.quick && definition.collective.moves_data() {
            definition.sizes_bytes = definition.sizes_bytes.iter().copied().step_by(3).collect();
        }
        match arguments.team {
            Teams::Both => {}
            Teams::Threads => definition.teams.retain(|t| *t == Team::Threads),
            Teams::Processes => definition.teams.retain(|t| *t == Team::Processes),
        }
        if arguments.quick {
            definition.repeat.launches = definition.repeat.launches.min(3);
            definition.repeat.window_ns = definition.repeat.window_ns.min(20_000_000);
        }
        if arguments.waits {
            definition.subjects.extend(Subject::WAITS);
        }
        if arguments.paths && definition.collective.moves_data() {
            definition.subjects.extend(Subject::PATHS);
        }
        // A changed definition still has to be a valid benchmark.
        let text = toml::to_string(definition).unwrap_or_default();
        *definition = Definition::parse(&definition.name.clone(), &text)?;
    }
    Ok(definitions)
}

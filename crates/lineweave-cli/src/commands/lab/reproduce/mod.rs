//! `lineweave lab reproduce`: a paper's experiments on this machine, and a verdict for each of its claims.
//!
//! 1. The paper's study says what is to be measured, and how claims are judged (`lineweave_lab::reproduce`).
//! 2. Probes are measured first, then calls; every point is in `data.jsonl` as soon as it is measured.
//! 3. A run that was interrupted goes on with the missing points. A run on a busy machine does so too: points whose interval is
//!    wide are measured again.
//! 4. From all points come `data.csv`, the figures, and `index.html` with a verdict or a reason for every claim.

mod clock;
mod others;

use crate::commands::lab::LabError;
use crate::error::CliError;
use crate::files::replace;
use crate::interrupt;
use crate::machines;
use crate::node::{self, NodeInfo};
use crate::output::table;
use crate::session::{load_profile, Session};
use clock::{Clock, ROUNDS};
use lineweave_core::model::{fit, Model};
use lineweave_core::profile::Profile;
use lineweave_core::topology::{Placement, Topology};
use lineweave_lab::models::estimate;
use lineweave_lab::paper::{Claim, Finding, Paper, Verdict, TABLE};
use lineweave_lab::reproduce::{self, judge, tasks, Costs, Here, Judgement, Point, Study, Task, STUDIES};
use lineweave_tune::trial::WINDOW_NS;
use others::Others;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Names of the files that are written.
const POINTS: &str = "data.jsonl";
const PROFILE: &str = "profile.toml";
const OPTION: &str = "-o";
/// Bytes of a segment, as the models have it by default.
const SEGMENT: u64 = 8192;
/// Processes ready to run for each CPU, beyond which times say nothing about this machine.
const BUSY: f64 = 0.5;
/// Caution on how calls of a collective with a root are timed.
const LESS_A_BARRIER: &str = "a call with a root is timed with a barrier behind it, less the time of a barrier: too short where the two overlap, \
    and differences between trees may come from that";

/// Arguments of `lineweave lab reproduce`: the paper, and the directory for the results.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// The paper: a part of its key, such as `chunduri`
    paper: String,
    /// On this machine, which is so unless --machine names one to play in virtual time
    #[arg(long, conflicts_with = "machine")]
    here: bool,
    /// The directory to write to, and to go on in; it is made [default: reproduce-PAPER]
    #[arg(long, short, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Take a few seconds for probes, with wider intervals
    #[arg(long)]
    quick: bool,
    /// Where cores have several hardware threads: core gives each rank a core, as the papers did; thread fills core after core
    #[arg(long, value_name = "core|thread", default_value_t = Placement::Core)]
    place: Placement,
}

/// The first line of the file of points: the paper and the machine that they are of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct Begun {
    paper: String,
    here: Here,
}

/// The points that were measured so far, and their file.
struct Kept {
    file: PathBuf,
    begun: Begun,
    points: Vec<Point>,
}

impl Kept {
    /// Returns the points of an interrupted run, or an empty set.
    fn open(directory: &Path, begun: Begun) -> Result<Kept, CliError> {
        let file = directory.join(POINTS);
        let mut kept = Kept { file, begun, points: Vec::new() };
        if !kept.file.exists() {
            return Ok(kept);
        }
        let what = "file of points";
        let text = lineweave::sysfile::text(&kept.file).map_err(|e| CliError::read(&kept.file, what, e))?;
        let mut lines = text.lines();
        let bad = |e: serde_json::Error| CliError::malformed(&kept.file, what, e);
        let found: Begun = serde_json::from_str(lines.next().unwrap_or("{}")).map_err(bad)?;
        if found != kept.begun {
            let whose = |b: &Begun| format!("{} on {} ({} CPUs)", b.paper, b.here.machine, b.here.cpus);
            let (found, expected) = (whose(&found), whose(&kept.begun));
            return Err(LabError::OtherPoints { path: kept.file, found, expected }.into());
        }
        kept.points = lines.map(serde_json::from_str).collect::<Result<_, _>>().map_err(bad)?;
        Ok(kept)
    }

    /// Adds points, and writes all points to the file.
    fn add(&mut self, points: impl IntoIterator<Item = Point>) -> Result<(), CliError> {
        for point in points {
            self.points.retain(|known| !known.is_as(&point));
            self.points.push(point);
        }
        let line = |value: Result<String, _>| value.map_err(|e| CliError::malformed(&self.file, "point", e));
        let mut text = line(serde_json::to_string(&self.begun))?;
        for point in &self.points {
            text += "\n";
            text += &line(serde_json::to_string(point))?;
        }
        replace(&self.file, &(text + "\n"), OPTION)
    }
}

/// Measures the missing points, and writes all results.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let (study, paper) = find(&arguments.paper)?;
    let place = arguments.place;
    let (mut clock, topology, name) = match session.machine()? {
        Some(machine) => {
            let topology = machines::topology(&machine)?.placed(place);
            let title = format!("{}, in virtual time", machine.title);
            (Clock::Described(Box::new(machine)), topology, title)
        }
        None => {
            let settings = session.settings_of_this_machine()?;
            let node = NodeInfo::gather(&settings, &[])?;
            let name = format!("{} ({})", node.fingerprint.cpu, node.fingerprint_id);
            let topology = node.placement().placed(place);
            let others = Box::new(Others::on(topology.cpus.iter().map(|c| c.os).collect()));
            let fingerprint = Box::new(node.fingerprint);
            (Clock::Here { settings: Box::new(settings), fingerprint, team: None, others }, topology, name)
        }
    };
    let here = Here::of(&name, &topology, place, matches!(clock, Clock::Described(_)));
    let directory = match &arguments.output {
        Some(directory) => directory.clone(),
        None => PathBuf::from(format!("reproduce-{}", paper.key)),
    };
    std::fs::create_dir_all(&directory).map_err(|reason| CliError::Write {
        path: directory.clone(),
        option: OPTION,
        reason,
    })?;
    let begun = Begun { paper: paper.key.to_owned(), here: here.clone() };
    let mut kept = Kept::open(&directory, begun)?;
    let mut notes = vec![limits(&here)];
    notes.extend(topology.placement_of(here.most(), place));
    notes.extend(matches!(clock, Clock::Here { .. }).then(|| busy(here.cpus)).flatten());
    notes.iter().for_each(|note| session.out.warn(note));
    interrupt::keeps(format!("the points so far are in {}; the same command goes on", directory.display()));
    let mut model = match &clock {
        Clock::Described(machine) => Some(Model::from_machine(machine)),
        Clock::Here { .. } => None,
    };
    let mut profile = None;
    if study.needs_profile() && here.most() > 1 {
        match fitted(study, &clock, arguments.quick, &directory.join(PROFILE), session) {
            Ok(found) => {
                notes.extend(clock.recovered(&found));
                notes.extend(reproduce::said(study, &found));
                model = model.or(fit(&found).ok());
                profile = Some(found);
            }
            // A mesh without caches has puts and gets for probes.
            Err(CliError::Simulate(why)) => notes.push(format!("no probes of lines: {why}")),
            Err(other) => return Err(other),
        }
    }
    let (recovered, points) = clock.mesh()?;
    notes.extend(recovered);
    kept.add(points.into_iter().filter(|p| study.pictures.iter().any(|q| q.name == p.picture)))?;
    let machine = match &clock {
        Clock::Described(machine) => Some((**machine).clone()),
        Clock::Here { .. } => None,
    };
    let costs = model.as_ref().map(|model| Costs { machine: machine.as_ref(), model, topology: &topology });
    let tasks = tasks(study, &here, costs.as_ref());
    if let Some(profile) = &profile {
        probes(study, &tasks, &topology, profile, &mut kept)?;
    }
    calls(&tasks, &mut clock, &mut kept, session)?;
    if let Clock::Here { others, .. } = &clock {
        notes.extend(others.said.iter().cloned());
        if tasks.iter().any(|t| t.alone) {
            notes.push(LESS_A_BARRIER.to_owned());
        }
    }
    let disturbed = reproduce::disturbed(&kept.points);
    disturbed.iter().for_each(|note| session.out.warn(note));
    notes.extend(disturbed);
    notes.extend(reproduce::missing(study, &kept.points));
    let claims: Vec<Claim> = (paper.findings)().into_iter().filter_map(claim).collect();
    let judgements = judge(study, &claims, &here, &kept.points);
    let figures = reproduce::figures(study, &here, &kept.points);
    for (name, svg) in &figures {
        replace(&directory.join(name), svg, OPTION)?;
    }
    replace(&directory.join("data.csv"), &reproduce::csv(&kept.points), OPTION)?;
    let page = directory.join("index.html");
    replace(&page, &reproduce::html(paper, &here, &notes, &figures, &judgements, &kept.points), OPTION)?;
    report(&judgements, &page, session)
}

fn find(name: &str) -> Result<(&'static Study, &'static Paper), CliError> {
    let known = || STUDIES.iter().map(|s| s.paper).collect::<Vec<_>>().join(", ");
    let study = STUDIES.iter().find(|s| s.paper.contains(name));
    let paper = study.and_then(|s| Some((*s, *TABLE.iter().find(|p| p.key == s.paper)?)));
    paper.ok_or_else(|| LabError::NoStudy { name: name.to_owned(), known: known() }.into())
}

fn claim(finding: Finding) -> Option<Claim> {
    match finding {
        Finding::Claim(claim) => Some(claim),
        Finding::Item(_) => None,
    }
}

/// Returns a sentence about the limits of a study with so few CPUs.
fn limits(here: &Here) -> String {
    match here.most() {
        0 | 1 => "one CPU: no two ranks can run at once, so nothing between them is measured".to_owned(),
        n => format!(
            "{n} CPUs: up to {n} ranks, each on a CPU of its own; what needs more is said at each claim"
        ),
    }
}

/// Returns a warning if the machine is busy with something else.
fn busy(cpus: usize) -> Option<String> {
    let load = node::load()?;
    (load > BUSY * cpus as f64).then(|| {
        format!("this machine is busy with other work (load {load:.1} on {cpus} CPUs): times are longer than on a quiet one")
    })
}

/// Returns the profile that exists, or measures one. It is measured anew where other work disturbed the study's cells.
fn fitted(
    study: &Study,
    clock: &Clock,
    quick: bool,
    file: &Path,
    session: &mut Session,
) -> Result<Profile, CliError> {
    if file.exists() {
        let there = load_profile(file)?.0;
        if !clock.owns(&there) {
            let expected = match clock {
                Clock::Here { fingerprint, .. } => fingerprint.cpu.clone(),
                Clock::Described(machine) => machine.title.clone(),
            };
            let (path, found) = (file.to_owned(), there.machine.cpu);
            return Err(LabError::OtherProfile { path, found, expected }.into());
        }
        if reproduce::from_profile(study, &there).iter().all(Point::is_steady) {
            return Ok(there);
        }
    }
    let profile = clock.profile(quick, session)?;
    replace(file, &profile.to_toml(), OPTION)?;
    Ok(profile)
}

/// Adds the study's points that probes and models give.
fn probes(
    study: &Study,
    tasks: &[Task],
    topology: &Topology,
    profile: &Profile,
    kept: &mut Kept,
) -> Result<(), CliError> {
    let malformed = |e| CliError::malformed(Path::new(PROFILE), "profile", e);
    let estimates = estimate(profile, reproduce::level(topology), SEGMENT).map_err(malformed)?;
    let said = reproduce::from_profile(study, profile).into_iter();
    kept.add(said.chain(reproduce::predicted(study, tasks, &estimates)))
}

/// Measures the missing points of calls.
fn calls(tasks: &[Task], clock: &mut Clock, kept: &mut Kept, session: &mut Session) -> Result<(), CliError> {
    let missing: Vec<&Task> =
        tasks.iter().filter(|t| !kept.points.iter().any(|p| p.is_of(t) && p.is_steady())).collect();
    let each = ROUNDS as f64 * WINDOW_NS as f64 / 1e9;
    let bar = session.out.progress(missing.len() as u64);
    for (done, task) in missing.iter().enumerate() {
        let left = each * (missing.len() - done) as f64;
        let Task { picture, series, x, .. } = task;
        bar.set_message(format!("{picture}: {series} at {x}; {left:.0} s or more to go"));
        kept.add(clock.point(task, session)?)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    Ok(())
}

fn report(judgements: &[Judgement], page: &Path, session: &mut Session) -> Result<(), CliError> {
    judgements.iter().try_for_each(|judgement| session.out.object("judgement", judgement))?;
    let mut rows = table(&["here", "where", "claimed", "what came out"], &[]);
    for j in judgements {
        let here = match j.verdict {
            Verdict::NotReproduced => "cannot be asked",
            other => other.name(),
        };
        rows.add_row([here, &j.item, &j.claimed, &j.here]);
    }
    session.out.table(&super::papers::within(rows))?;
    session.out.line(&format!("\n{}", page.display()))
}

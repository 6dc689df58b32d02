//! `lineweave explain`: the choice for a call, and the reasons.

mod nodes;
mod trees;

use crate::calls::{call, posed, team_of, Call};
use crate::error::CliError;
use crate::output::table;
use crate::question::{collective, length, Where};
use crate::session::{Costs, Session};
use crate::size::Size;
use crate::threads::both;
use console::style;
use lineweave::settings::Settings;
use lineweave::tuning::{Because, Chosen};
use lineweave_core::algorithm::spec::Named;
use lineweave_core::collective::{Association, Collective};
use lineweave_core::model::Model;
use lineweave_core::plan::{Params, Uneven};
use lineweave_core::select::{explain, list, select, Candidate, Choice, Question};
use lineweave_core::units::{Bytes, Nanos};
use serde::Serialize;

/// Arguments of `lineweave explain`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// barrier, bcast, reduce, allreduce, gather, scatter, allgather, reduce-scatter, scan, exscan or alltoall
    #[arg(value_parser = collective(), hide_possible_values = true)]
    collective: Collective,
    /// Length of the message, or of one block where ranks exchange blocks: bytes, or with KiB, MiB, GiB
    bytes: Option<Size>,
    #[command(flatten)]
    place: Where,
    /// Show every plan that was costed, best first
    #[arg(long)]
    candidates: bool,
    /// Choose for reproducible results, and show what that costs beside a free choice
    #[arg(long)]
    reproducible: bool,
    /// Spread the ranks evenly over so many nodes, which an MPI connects
    #[arg(long, value_name = "N", conflicts_with_all = ["candidates", "reproducible", "counts", "root"])]
    nodes: Option<usize>,
    /// What a message between two nodes takes: when it is empty, in ns, and the bytes that go in a ns; or a file of `lineweave run
    /// --link` [default: as the profile has it]
    #[arg(long, value_name = "NS,BYTES_PER_NS|FILE", value_parser = nodes::link, requires = "nodes")]
    link: Option<nodes::Link>,
}

/// The algorithm that a call runs, beside the model's own choice.
struct Found {
    question: Question,
    origin: String,
    /// Sentences that say which costs were measured and which were assumed, where a matrix gives only a part of them.
    notes: Vec<String>,
    model: Model,
    choice: Choice,
    chosen: Chosen,
    /// Predicted time of the algorithm that the call runs.
    predicted: Nanos,
    /// Measured time of the algorithm that the call runs, where it was measured at this very size.
    measured_ns: Option<f64>,
    /// The model's choice if results need not be reproducible, where they have to be.
    free: Option<Choice>,
}

/// The plan that a call runs, and the others. Printed as `choice` by `lineweave explain`.
#[derive(Serialize)]
struct ChoiceObject<'a> {
    #[serde(flatten)]
    asked: AskedObject,
    #[serde(flatten)]
    chosen: ChosenObject<'a>,
    /// True if only plans were considered whose results are reproducible.
    reproducible: bool,
    /// The algorithm that would be chosen otherwise.
    free_algorithm: Option<&'a str>,
    free_predicted_ns: Option<f64>,
    /// The best candidate of another algorithm.
    runner_up: Option<CandidateObject<'a>>,
    /// The best plan of cross-memory attach, where that was considered.
    attach: Option<CandidateObject<'a>>,
    /// The best plan through boxes, where attach was considered.
    boxes: Option<CandidateObject<'a>>,
    /// Number of candidates.
    costed: usize,
    /// Everything that was left out, assumed or extrapolated.
    reasons: &'a [String],
    costs: &'a str,
    /// Figures of a machine that are its matrix's, those that are assumed, and the time of the tree made from it.
    notes: &'a [String],
}

/// The question, as JSON.
#[derive(Serialize)]
struct AskedObject {
    collective: Collective,
    ranks: usize,
    root: usize,
    bytes: usize,
    /// Size of an element.
    grain_bytes: usize,
    /// `threads` where ranks reach each other's buffers (`--direct`), else `processes`.
    team: &'static str,
}

/// The answer, as JSON.
#[derive(Serialize)]
struct ChosenObject<'a> {
    algorithm: &'a str,
    params: &'a Params,
    window_bytes: usize,
    /// `predicted` or `measured` to be the fastest, `simulated` (a tree of an adopted matrix), or `forced` by `LINEWEAVE_ALGORITHM`.
    because: &'static str,
    predicted_ns: f64,
    /// Time of a call, where it was measured at this very size.
    measured_ns: Option<f64>,
}

/// A plan that was costed. Printed as `candidate` by `lineweave explain --candidates`, best first.
#[derive(Serialize)]
struct CandidateObject<'a> {
    algorithm: &'static str,
    params: &'a Params,
    window_bytes: usize,
    /// A call of the whole message when calls follow each other; a lower bound if `given_up`.
    predicted_ns: f64,
    /// One window alone.
    latency_ns: f64,
    /// Ops of the plan of one window.
    ops: usize,
    /// True if sizes or concurrency beyond the measured ones entered.
    extrapolated: bool,
    /// True if costing ended early, because it could no longer be the best.
    given_up: bool,
    /// True if a probe times this very plan.
    calibrated: bool,
}

impl<'a> CandidateObject<'a> {
    fn of(candidate: &'a Candidate, question: &Question) -> CandidateObject<'a> {
        CandidateObject {
            algorithm: candidate.name,
            params: &candidate.params,
            window_bytes: candidate.window,
            predicted_ns: candidate.predicted.0,
            latency_ns: candidate.latency.0,
            ops: candidate.ops,
            extrapolated: candidate.extrapolated,
            given_up: candidate.given_up,
            calibrated: candidate.calibrated(question),
        }
    }
}

/// Explains.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    if let Some(nodes) = arguments.nodes {
        return nodes::run(arguments, nodes, session);
    }
    let found = find(arguments, session)?;
    objects(arguments, &found, session)?;
    text(arguments, &found, session)
}

fn find(arguments: &Arguments, session: &mut Session) -> Result<Found, CliError> {
    let collective = arguments.collective;
    let settings = session.settings_warned()?;
    let Costs { tuning, origin, mut notes, topology, machine } = session.costs()?;
    let bytes = length(arguments.bytes.or(arguments.place.longest()), collective, CliError::NoMessage)?;
    if let Some(machine) = &machine {
        if machine.mesh.is_some() && machine.coherent.is_none() {
            return Err(CliError::NoCaches { name: machine.name.clone(), collective });
        }
    }
    let ranks = arguments.place.ranks.unwrap_or(topology.cpus.len());
    let placement = arguments.place.on.place;
    notes.extend(topology.clone().placed(placement).placement_of(ranks, placement));
    let asked = arguments.place.question(session, collective, bytes, &topology, settings.box_bytes)?;
    if asked.uneven.as_ref().is_some_and(|uneven| Uneven::fill_half(uneven.counts())) {
        let even = Bytes(bytes as u64);
        notes.push(format!("a call cuts the plan for even blocks of {even} to these lengths; here is what they would have alone"));
    }
    if arguments.reproducible && !collective.folds() {
        session.out.warn(&format!("--reproducible has no effect: a {collective} combines nothing"));
    }
    let fixed = (arguments.reproducible || settings.reproducible) && collective.folds();
    let free = posed(asked, &tuning, &Settings { reproducible: false, ..settings });
    let question = Question { association: Association::wanted(true, fixed), ..free.clone() };
    let free = if fixed { Some(select(&tuning.model, &free)?) } else { None };
    let (made, choice) = both(
        || machine.as_ref().map(|machine| Ok::<_, CliError>((machine, trees::made(machine, &question)?))),
        || session.out.while_slow(&question, || select(&tuning.model, &question)),
    );
    let mut choice = choice?;
    if let Some((machine, Some(made))) = made.transpose()? {
        notes.extend(trees::beside(machine, &question, &choice, &made)?);
    }
    if arguments.candidates {
        // The choice of a call is made without the list of other candidates.
        choice.considered = session.out.while_slow(&question, || list(&tuning.model, &question))?.considered;
    }
    let Call { chosen, predicted, measured_ns } =
        session.out.while_slow(&question, || call(&tuning, &question, Some(&choice)))?;
    Ok(Found { question, origin, notes, model: tuning.model, choice, chosen, predicted, measured_ns, free })
}

fn objects(arguments: &Arguments, found: &Found, session: &mut Session) -> Result<(), CliError> {
    let Found { question, choice, chosen, .. } = found;
    let [attach, boxes] = paths(found).map(|best| best.map(|c| CandidateObject::of(c, question)));
    let object = ChoiceObject {
        asked: AskedObject {
            collective: question.collective,
            ranks: question.shape.ranks(),
            root: question.root,
            bytes: question.bytes,
            grain_bytes: question.grain,
            team: team_of(question),
        },
        chosen: ChosenObject {
            algorithm: chosen.algorithm.name,
            params: &chosen.params,
            window_bytes: chosen.window,
            because: match chosen.because {
                Because::Forced => "forced",
                Because::Measured => "measured",
                Because::Simulated => "simulated",
                Because::Predicted => "predicted",
            },
            predicted_ns: found.predicted.0,
            measured_ns: found.measured_ns,
        },
        reproducible: question.association == Association::Fixed,
        free_algorithm: found.free.as_ref().map(|free| free.algorithm),
        free_predicted_ns: found.free.as_ref().map(|free| free.predicted.0),
        runner_up: choice.runner_up.as_ref().map(|c| CandidateObject::of(c, question)),
        attach,
        boxes,
        costed: choice.considered.len(),
        reasons: &choice.reasons,
        costs: &found.origin,
        notes: &found.notes,
    };
    session.out.object("choice", &object)?;
    if arguments.candidates {
        for candidate in &choice.considered {
            session.out.object("candidate", &CandidateObject::of(candidate, question))?;
        }
    }
    Ok(())
}

/// Returns the best plan that reads other processes' memory through the kernel, and the best plan that goes through the boxes.
fn paths(found: &Found) -> [Option<&Candidate>; 2] {
    let best = |reaches: bool| {
        let of = |c: &&Candidate| found.question.attach && c.reaches(&found.question) == reaches;
        found.choice.considered.iter().find(of)
    };
    [best(true), best(false)]
}

/// Returns a line about the use of cross-memory attach.
fn attach_line(found: &Found) -> Option<String> {
    let said = |c: &Candidate| {
        let least = if c.given_up { "at least " } else { "" };
        format!("{} at {least}{}", c.named(found.question.bytes), c.predicted)
    };
    let [Some(attach), Some(boxes)] = paths(found) else { return None };
    Some(format!(
        "by cross-memory attach, where the kernel lets ranks: {}; through boxes: {}",
        said(attach),
        said(boxes)
    ))
}

/// Returns a sentence about the cost of reproducible results.
fn price(fixed: &Choice, free: &Choice) -> String {
    let name = Named::new(free.algorithm, &free.params);
    let more = (fixed.predicted.0 / free.predicted.0.max(1e-9) - 1.0) * 100.0;
    match more > 0.05 {
        true => format!(
            "reproducible: {} a call, {more:.1} % more than the free choice, {name}, at {}",
            fixed.predicted, free.predicted
        ),
        false => {
            format!("reproducible: at no cost; the free choice, {name}, is predicted {}", free.predicted)
        }
    }
}

fn text(arguments: &Arguments, found: &Found, session: &mut Session) -> Result<(), CliError> {
    let Found { question, choice, chosen, .. } = found;
    session.out.line(&format!("costs: {}", found.origin))?;
    found.notes.iter().try_for_each(|note| session.out.line(&format!("  {note}")))?;
    let why = match chosen.because {
        Because::Predicted => None,
        Because::Forced => Some("LINEWEAVE_ALGORITHM says so"),
        Because::Measured => Some("it was the fastest when measured at this size or the nearest"),
        Because::Simulated => {
            Some("it was the fastest when simulated with each two CPUs at their own latency")
        }
    };
    if let Some(why) = why {
        let name = Named::new(chosen.algorithm.name, &chosen.params).by(chosen.window, question.bytes);
        let how = if chosen.because == Because::Simulated { "simulated" } else { "measured" };
        let measured = found.measured_ns.map(|ns| format!(", {how} {}", Nanos(ns))).unwrap_or_default();
        session
            .out
            .line(&format!("a call runs {name}, because {why}: predicted {}{measured}", found.predicted))?;
        session.out.line("by the model alone:")?;
    }
    let explained = explain(&found.model, question, choice);
    for (i, line) in explained.lines().enumerate() {
        // The choice comes first.
        match i {
            0 => session.out.line(&style(line).bold().to_string())?,
            _ => session.out.line(line)?,
        }
    }
    if let Some(line) = attach_line(found) {
        session.out.line(&line)?;
    }
    if let Some(free) = &found.free {
        session.out.line(&price(choice, free))?;
    }
    if !arguments.candidates {
        return Ok(());
    }
    let mut rows = table(&["predicted", "alone", "ops", "window", "plan", ""], &[0, 1, 2, 3]);
    for c in &choice.considered {
        let remark = match (c.given_up, c.calibrated(question)) {
            (true, _) => "at least",
            (false, true) => "calibrated: a probe times this very plan",
            (false, false) => "",
        };
        let window = Bytes(c.window as u64).to_string();
        let cells = [c.predicted.to_string(), c.latency.to_string(), c.ops.to_string(), window];
        rows.add_row(cells.into_iter().chain([c.named(question.bytes).to_string(), remark.to_owned()]));
    }
    session.out.line("")?;
    let name =
        Named::new(chosen.algorithm.name, &chosen.params).by(chosen.window, question.bytes).to_string();
    session.out.table_marking(&rows, |line| line.split("  ").any(|cell| cell.trim() == name))
}

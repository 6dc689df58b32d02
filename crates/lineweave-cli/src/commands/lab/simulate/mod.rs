//! `lineweave lab simulate`: plans in virtual time, on a machine that need not be available.

mod all;
mod names;
mod on;
mod plot;
mod report;

use crate::commands::draw::svg;
use crate::error::CliError;
use crate::files::replace;
use crate::interrupt;
use crate::question::{collective, given, grain, param, Param};
use crate::session::Session;
use crate::size::Size;
use lineweave_core::algorithm::{refuted, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::cost;
use lineweave_core::machine::Machine;
use lineweave_core::model::Model;
use lineweave_core::plan::{Blocks, Params, Plan, PlanError, Uneven};
use lineweave_core::topology::{Placement, Shape};
use lineweave_core::trace::{Picos, Trace};
use lineweave_lab::draw;
use lineweave_lab::simulate::mesh::{overlaps, FlagCost, Settings};
use lineweave_lab::simulate::{coherent, simulate, Fidelity, Options, Outcome};
use on::{machine, On};
use report::{AtOnce, Busy, Effort, Report, Row, Times};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Arguments of `lineweave lab simulate`: the call, the machine and the sweep.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// barrier, bcast, reduce, allreduce, gather, scatter, allgather, reduce-scatter, scan, exscan or alltoall
    #[arg(long, short, value_name = "COLLECTIVE", value_parser = collective(), hide_possible_values = true)]
    collective: Collective,
    /// The algorithm: a name of `lineweave list`, or as it is printed, with parameters and window; or what the machine's own libraries
    /// have: oc-bcast, noc-msg, binomial, scatter-allgather, rcce-bcast, ircce-bcast, rckmpi-bcast and so on; all: every one of the
    /// table, fastest first, in windows where a box is too small
    #[arg(long, short, value_name = "NAME")]
    algorithm: String,
    /// Lengths of the message: bytes, or with KiB, MiB, GiB; several with commas between them
    #[arg(long, short, value_name = "SIZE,...", value_delimiter = ',')]
    bytes: Vec<Size>,
    /// Lengths of blocks that differ: one for each rank, for alltoall one for each pair of ranks, giver by giver
    #[arg(long, value_name = "SIZE,..", value_delimiter = ',', conflicts_with_all = ["bytes", "window"])]
    counts: Vec<Size>,
    /// Numbers of ranks [default: the machine's hardware threads; with --place core its cores]
    #[arg(long, short = 'n', value_name = "N,...", value_delimiter = ',')]
    ranks: Vec<usize>,
    /// Roots of a bcast or reduce [default: 0]
    #[arg(long, value_name = "RANK,...", value_delimiter = ',')]
    root: Vec<usize>,
    /// Degrees of the tree, the parameter k of algorithms that have one
    #[arg(long, value_name = "K,...", value_delimiter = ',')]
    k: Vec<usize>,
    /// Another parameter of the algorithm; may be repeated
    #[arg(long = "param", short, value_name = "NAME=VALUE", value_parser = param)]
    params: Vec<Param>,
    /// line: each line of 32 bytes queues for itself; chunk: a move at once, faster
    #[arg(long, value_name = "line|chunk", default_value_t = Fidelity::Line)]
    fidelity: Fidelity,
    /// Runs back to back
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    runs: u32,
    /// Send the message in windows of this length, one run each, back to back
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["runs", "output"])]
    window: Option<Size>,
    #[command(flatten)]
    on: On,
    /// Draw the first simulation as a timeline, to a name that ends in .svg
    #[arg(long, short, value_name = "FILE.svg", value_parser = svg)]
    output: Option<PathBuf>,
    /// Draw the sweep's times as curves, over whatever varies most, to a name that ends in .svg
    #[arg(long, value_name = "FILE.svg", value_parser = svg)]
    plot: Option<PathBuf>,
    /// Draw how busy ports and links were in the first simulation, to a name that ends in .svg
    #[arg(long, value_name = "FILE.svg", value_parser = svg)]
    heat: Option<PathBuf>,
}

/// The kind of flag on machines with coherent caches, where the plan's layouts decide it.
const LAID_OUT: &str = "layout";

/// One simulation of a sweep.
#[derive(Clone, Debug)]
struct Case {
    ranks: usize,
    root: usize,
    k: Option<usize>,
    bytes: usize,
}

/// Simulates every case, and prints each as it is done.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let machine = machine(&arguments.on, session)?;
    let cases = cases(arguments, session, &machine)?;
    for option in idle(arguments, &machine) {
        session.out.warn(&format!("{option} has no effect on {}", machine.name));
    }
    let written = given(arguments.collective, &arguments.algorithm, &[])?;
    if written.window.is_some() && arguments.runs > 1 {
        session.out.warn(
            "--runs has no effect: the algorithm is given with a window, of which the message takes several",
        );
    }
    if refuted(arguments.collective).iter().any(|a| a.name == written.name) {
        let name = format!("{}/{}", arguments.collective, written.name);
        session.out.warn(&format!("{name} does not do what it should: `lineweave verify {name}` shows how"));
    }
    interrupt::keeps("what was finished was kept");
    let bar = session.out.progress_of_work(cases.len() as u64);
    let mut report =
        Report::new(&machine, arguments.collective, cases.len(), placed(arguments, &machine, cases[0].ranks));
    let mut drawn = Vec::new();
    for (i, case) in cases.iter().enumerate() {
        bar.set_message(format!("{} ranks, {} bytes", case.ranks, case.bytes));
        if arguments.algorithm == all::NAME {
            let rows = all::rows(arguments, &machine, case)?;
            bar.inc(1);
            bar.suspend(|| report.ranking(&rows, session))?;
            keep(arguments, &machine, &mut drawn, rows)?;
            continue;
        }
        let window = arguments.window.map(|w| w.0);
        let row = one(arguments, &machine, case, &arguments.algorithm, window, i == 0)?;
        bar.inc(1);
        bar.suspend(|| report.row(&row, session))?;
        keep(arguments, &machine, &mut drawn, vec![row])?;
    }
    bar.finish_and_clear();
    report.finish(session)
}

/// Returns the placement of ranks in words, where cores have several hardware threads.
fn placed(arguments: &Arguments, machine: &Machine, ranks: usize) -> Option<String> {
    let (topology, place) = (machine.topology()?, arguments.on.at.place);
    machine.coherent.as_ref()?;
    topology.placed(place).placement_of(ranks, place)
}

/// Returns the given options that apply to the other family of machines only.
fn idle(arguments: &Arguments, machine: &Machine) -> Vec<&'static str> {
    let given = match machine.mesh {
        Some(_) => vec![
            ("--prefetch", arguments.on.prefetch.is_some()),
            ("--flags-per-line", arguments.on.flags_per_line.is_some()),
        ],
        None => vec![
            ("--flags", arguments.on.flags != FlagCost::default()),
            ("--arbiter", arguments.on.arbiter.is_some()),
            ("--controllers", arguments.on.controllers.is_some()),
        ],
    };
    // Links and ports are asked for where there are some.
    let of_links = [("--ideal", arguments.on.ideal), ("--heat", arguments.heat.is_some())];
    let of_links = of_links.into_iter().filter(|_| machine.network().is_none());
    given.into_iter().chain(of_links).filter_map(|(option, given)| given.then_some(option)).collect()
}

/// Draws all finished rows, anew each time: an interrupted sweep leaves a picture of its results so far.
fn keep(
    arguments: &Arguments,
    machine: &Machine,
    drawn: &mut Vec<Row>,
    rows: Vec<Row>,
) -> Result<(), CliError> {
    let Some(path) = &arguments.plot else { return Ok(()) };
    drawn.extend(rows);
    replace(path, &plot::sweep(machine, drawn), "--plot")
}

/// Returns every combination of the given parameters.
fn cases(arguments: &Arguments, session: &Session, machine: &Machine) -> Result<Vec<Case>, CliError> {
    let collective = arguments.collective;
    let cores = || {
        let topology = machine.topology().unwrap_or_default();
        match arguments.on.at.place {
            Placement::Thread => topology.cpus.len().max(1),
            Placement::Core => topology.cores().max(1),
        }
    };
    let ranks = if arguments.ranks.is_empty() { vec![cores()] } else { arguments.ranks.clone() };
    let ks: Vec<Option<usize>> = match arguments.k.is_empty() {
        true => vec![None],
        false => arguments.k.iter().copied().map(Some).collect(),
    };
    if !collective.rooted() && !arguments.root.is_empty() {
        session.out.warn(&format!("--root has no effect: {collective} has no root"));
    }
    let roots =
        if arguments.root.is_empty() || !collective.rooted() { vec![0] } else { arguments.root.clone() };
    if !arguments.counts.is_empty() && !collective.has_blocks() {
        session.out.warn(&format!("--counts has no effect: {collective} has no blocks"));
    }
    let longest = arguments.counts.iter().map(|c| c.0).max();
    let bytes: Vec<usize> = match (collective.moves_data(), arguments.bytes.is_empty()) {
        (true, true) if longest.is_some() => longest.into_iter().collect(),
        (true, true) => return Err(CliError::NoBytes(collective)),
        (true, false) => arguments.bytes.iter().map(|b| b.0).collect(),
        (false, _) => vec![0],
    };
    let mut cases = Vec::new();
    for &ranks in &ranks {
        for &root in &roots {
            for &k in &ks {
                cases.extend(bytes.iter().map(|&bytes| Case { ranks, root, k, bytes }));
            }
        }
    }
    Ok(cases)
}

/// Makes the plan of one case and simulates it.
fn one(
    arguments: &Arguments,
    machine: &Machine,
    case: &Case,
    name: &str,
    asked: Option<usize>,
    first: bool,
) -> Result<Row, CliError> {
    let collective = arguments.collective;
    let mut spec = given(collective, name, &arguments.params)?;
    if let Some(k) = case.k {
        spec.params = spec.params.with("k", k);
    }
    let asked = asked.or(spec.window);
    // `bcast/binomial` always means the table's algorithm.
    let exact = name.starts_with(&format!("{collective}/"));
    let (algorithm, given) = names::find(collective, spec, exact, machine, arguments.on.flags, case.ranks)?;
    if case.ranks > lineweave_core::algorithm::MAX_RANKS {
        let most = lineweave_core::algorithm::MAX_RANKS;
        return Err(PlanError::TooManyRanks { ranks: case.ranks, most }.into());
    }
    let window = asked.map_or(case.bytes, |w| w.clamp(1, case.bytes.max(1)));
    let shape = match machine.coherent {
        Some(_) => coherent::placed_by(machine, case.ranks, arguments.on.at.place)?,
        None => Shape::flat(case.ranks),
    };
    let plan = |bytes: usize| {
        let mut problem = Problem::flat(collective, case.ranks, bytes);
        problem.shape = shape.clone();
        problem.root = case.root;
        let counts: Vec<usize> = arguments.counts.iter().map(|c| c.0).collect();
        problem.grain = grain(collective, &[&counts[..], &[bytes]].concat());
        if !counts.is_empty() && collective.has_blocks() {
            problem.blocks = Blocks::Uneven(Arc::new(match collective {
                Collective::Alltoall => Uneven::by_pair(case.ranks, counts),
                _ => Uneven::by_rank(counts),
            }));
        }
        algorithm.plan(&problem, &given)
    };
    let windows = case.bytes.checked_div(window).unwrap_or(1);
    let rest = case.bytes.checked_rem(window).unwrap_or(0);
    let begun = Instant::now();
    let made = plan(window)?;
    // What messages use at once is counted in the trace, which a large plan goes without.
    let counted = machine.mesh.is_some() && made.programs.iter().map(Vec::len).sum::<usize>() <= 1 << 20;
    let options = Options {
        fidelity: arguments.fidelity,
        runs: if asked.is_some() { windows } else { arguments.runs as usize },
        trace: counted || (first && arguments.output.is_some()),
        mesh: Settings {
            flags: arguments.on.flags,
            distance: arguments.on.ideal.then_some(1),
            ideal: arguments.on.ideal,
            in_flight: arguments.on.in_flight,
            arbiter: arguments.on.arbiter,
        },
        coherent: coherent::Settings {
            flags_per_line: arguments.on.flags_per_line.map(|n| n as usize),
            prefetch_lines: arguments.on.prefetch.map(|n| n as usize),
            accesses_in_flight: arguments.on.in_flight.map(|n| n as usize),
            threads_first: arguments.on.at.place == Placement::Thread,
            ideal: arguments.on.ideal,
        },
        ..Options::default()
    };
    let outcome = simulate(machine, &made, &options)?;
    // The last, shorter window follows when all others are done.
    let last = match rest {
        0 => None,
        bytes => Some(simulate(machine, &plan(bytes)?, &Options { runs: 1, ..options.clone() })?),
    };
    let seconds = begun.elapsed().as_secs_f64();
    if first {
        pictures(arguments, machine, (&shape, &made), &outcome)?;
    }
    let bound = match windows {
        0 | 1 if rest == 0 => outcome.bound,
        _ => lower_bound(machine, &plan(case.bytes), &options),
    };
    let time = match asked {
        None => outcome.each,
        Some(_) => Picos(outcome.total.0 + last.as_ref().map_or(0, |l| l.total.0)),
    };
    Ok(Row {
        machine: machine.name.clone(),
        collective,
        algorithm: algorithm.name,
        params: given,
        ranks: case.ranks,
        root: case.root,
        bytes: case.bytes,
        window_bytes: asked.map(|_| window),
        runs: options.runs,
        fidelity: arguments.fidelity.name(),
        place: placed(arguments, machine, case.ranks).map(|_| arguments.on.at.place.name()),
        flags: if machine.mesh.is_some() { arguments.on.flags.name() } else { LAID_OUT },
        times: Times {
            first_ns: outcome.first.nanos(),
            latency_ns: outcome.latency.nanos(),
            time_ns: time.nanos(),
            bound_ns: bound.map(Picos::nanos),
            ratio: bound.filter(|b| b.0 > 0).map(|b| time.0 as f64 / b.0 as f64),
            throughput_mbps: (collective.moves_data() && time.0 > 0)
                .then(|| case.bytes as f64 / time.nanos() * 1e3),
        },
        busy: outcome.load.as_ref().map_or_else(Busy::default, |load| Busy {
            port_share: Some(load.busiest_port()),
            link_share: Some(load.busiest_link()),
            controllers: machine.mesh.is_some().then_some(load.controllers.len()),
            controller_share: machine.mesh.is_some().then(|| load.busiest_controller()),
            at_once: outcome.trace.as_ref().and_then(|t| overlaps(machine, &made, t)).map(AtOnce::of),
        }),
        effort: Effort { events: outcome.events + last.map_or(0, |l| l.events), seconds },
    })
}

/// Returns the bound of the whole message. Its plan need not fit the machine, so the bound is that of a plan without ops.
fn lower_bound(machine: &Machine, plan: &Result<Plan, PlanError>, options: &Options) -> Option<Picos> {
    let mut plan = plan.as_ref().ok()?.clone();
    plan.programs.iter_mut().for_each(Vec::clear);
    plan.slots.clear();
    plan.flags.clear();
    simulate(machine, &plan, &Options { runs: 1, ..options.clone() }).ok()?.bound
}

fn pictures(
    arguments: &Arguments,
    machine: &Machine,
    (shape, plan): (&Shape, &Plan),
    outcome: &Outcome,
) -> Result<(), CliError> {
    if let (Some(path), Some(trace)) = (&arguments.output, &outcome.trace) {
        // The model's prediction comes first, where the model knows the machine.
        let options = cost::Options { message: plan.bytes, ..cost::Options::default() };
        let model = machine.coherent.as_ref().map(|_| Model::from_machine(machine));
        let predicted = model.and_then(|model| cost::timeline(&model, shape, plan, &options));
        let traces: Vec<Trace> = predicted.into_iter().chain([trace.clone()]).collect();
        replace(path, &draw::timeline(plan, &traces), "-o")?;
    }
    if let (Some(path), Some(load)) = (&arguments.heat, &outcome.load) {
        let title = format!("{}: {}/{}", machine.name, arguments.collective, arguments.algorithm);
        replace(path, &draw::heat(load, &title), "--heat")?;
    }
    Ok(())
}

/// Returns the parameters as they are shown.
fn shown(params: &Params) -> String {
    let text = params.to_string();
    if text.is_empty() {
        "-".to_owned()
    } else {
        text
    }
}

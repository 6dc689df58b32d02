//! `lineweave bench first`: the one-time cost of a team, a length and a communicator, and the cost of the same call
//! when repeated.

use super::{begun, first_mpi, here_or_rehearsed, written, Arguments};
use crate::commands::rank_job;
use crate::error::CliError;
use crate::output::table;
use crate::session::Session;
use lineweave::team::{self, Team, TeamConfig};
use lineweave::{Communicator, Operator};
use lineweave_core::collective::Collective;
use lineweave_core::select::Question;
use lineweave_core::units::{Bytes, Nanos};
use lineweave_core::verify;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{Read, Write};
use std::process::Stdio;
use std::time::Instant;

/// First calls of each length: sums of doubles, which among more than two ranks wait for their plan, and broadcasts, which do not.
const KINDS: [Collective; 2] = [Collective::Allreduce, Collective::Bcast];
/// Lengths of their messages, called one after the other.
const SIZES: [usize; 4] = [8, 1 << 10, 64 << 10, 1 << 20];
/// Number of duplicates of a communicator, made one after the other.
const DUPLICATES: usize = 20;
/// Number of lengths of reduces, in doubles, and number of roots for each.
const SWEEP: (usize, usize) = (1000, 10);

/// The task of the ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    pub sizes: Vec<usize>,
    pub lengths: usize,
    pub roots: usize,
}

/// The times of one collective and length: one rank's, or the longest of all ranks. Printed as `first-call` by `lineweave bench first`, one object a
/// number of ranks, collective and length: an allreduce of doubles, or a broadcast, among processes.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Call {
    ranks: usize,
    collective: Collective,
    bytes: usize,
    /// Time that one rank alone takes to choose, and to prove its choice; only the process that starts the ranks knows
    /// it.
    choose_ns: f64,
    /// Time that one rank alone takes to make and prove the plan.
    prove_ns: f64,
    /// The call when it is new.
    first_ns: f64,
    second_ns: f64,
    /// Time of the first call of a program that runs after one that kept its choices and proofs.
    kept_ns: f64,
}

/// The times of objects that are made once, the slowest rank's. Printed as `first-team` by `lineweave bench first`, one object a number of ranks.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Made {
    ranks: usize,
    /// Time from the start of a rank's process to its first call.
    join_ns: f64,
    /// Time to make one of several duplicates.
    duplicate_ns: f64,
    /// Time of the first call on a duplicate, of a length that was called before.
    duplicate_first_ns: f64,
    free_ns: f64,
    /// Number of lengths in the sweep of reduces, each to many roots.
    lengths: usize,
    roots: usize,
    sweep_ns: f64,
    /// Times of single calls of the sweep: most of them are of a length or a root that was not called before.
    sweep_calls: Spread,
    /// Time of the whole sweep when it is repeated.
    again_ns: f64,
    again_calls: Spread,
    /// Plans that a rank holds after the sweep.
    plans: usize,
    /// Time of as many allgathers of blocks of different lengths, each with other lengths, and the plans that a rank
    /// holds after them.
    uneven_ns: f64,
    uneven_plans: usize,
}

/// The median of some times, the one that a thousandth of them exceeds, and the longest.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Spread {
    median_ns: f64,
    p999_ns: f64,
    slowest_ns: f64,
}

impl Spread {
    fn of(times: &mut [f64]) -> Spread {
        times.sort_unstable_by(f64::total_cmp);
        let Some(last) = times.len().checked_sub(1) else { return Spread::default() };
        Spread {
            median_ns: times[last / 2],
            p999_ns: times[last - times.len() / 1000],
            slowest_ns: times[last],
        }
    }
}

/// The measurements that a rank reports.
#[derive(Debug, Serialize, Deserialize)]
struct Answer {
    calls: Vec<Call>,
    made: Made,
}

/// Measures and shows.
pub(super) fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let (settings, node, mut tuning) = here_or_rehearsed(session)?;
    // Choices that earlier programs kept would hide the cost.
    tuning.kept = None;
    let (provenance, mut report) = begun(arguments, &node, &tuning, session)?;
    let cpus = node.usable.effective;
    let mut teams =
        if arguments.ranks.is_empty() { vec![2, cpus.max(2), 10] } else { arguments.ranks.clone() };
    let sizes = match arguments.bytes.is_empty() {
        true => SIZES.to_vec(),
        false => arguments.bytes.iter().map(|size| size.0.next_multiple_of(8)).collect(),
    };
    let (mut calls, mut made) = (Vec::new(), Vec::new());
    teams.sort_unstable();
    teams.dedup();
    let (lengths, roots) = if arguments.quick { (20, 2) } else { SWEEP };
    for &ranks in &teams {
        let config = TeamConfig::with(ranks, &settings, &node.placement(), cpus, tuning.clone());
        let task = Task { sizes: sizes.clone(), lengths, roots: roots.min(ranks) };
        let mut answer = among(&Team::with(config.clone())?, &task)?;
        let later = after_another(config.clone(), &task)?;
        for (call, later) in answer.calls.iter_mut().zip(later.calls) {
            call.kept_ns = later.first_ns;
            (call.choose_ns, call.prove_ns) = alone(&config, call.collective, call.bytes)?;
            report.line(&mut session.out, "first-call", call)?;
        }
        report.line(&mut session.out, "first-team", &answer.made)?;
        calls.extend(answer.calls);
        made.push(answer.made);
    }
    show(&calls, &made, session)?;
    if !arguments.mpi.is_empty() {
        let task = Task { sizes, lengths, roots };
        first_mpi::run(arguments, &teams, cpus, &task, &mut report, session)?;
    }
    written(arguments, "", &provenance, &report, &mut session.out)
}

fn show(calls: &[Call], made: &[Made], session: &mut Session) -> Result<(), CliError> {
    let mut shown = table(
        &["ranks", "call", "choosing", "proving", "first call", "second", "first, kept"],
        &[0, 1, 2, 3, 4, 5, 6],
    );
    let time = |ns: f64| Nanos(ns).to_string();
    for call in calls {
        let named = format!("{} {}", call.collective, Bytes(call.bytes as u64));
        let times = [call.choose_ns, call.prove_ns, call.first_ns, call.second_ns, call.kept_ns].map(time);
        shown.add_row([call.ranks.to_string(), named].into_iter().chain(times));
    }
    session.out.table(&shown)?;
    session.out.line("")?;
    let heading = [
        "ranks",
        "start and join",
        "duplicate",
        "its first call",
        "free",
        "lengths x roots",
        "all of them",
        "again",
        "plans held",
        "uneven",
        "plans held",
    ];
    let mut shown = table(&heading, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
    for team in made {
        let sweep = format!("{} x {}", team.lengths, team.roots);
        let times = [team.join_ns, team.duplicate_ns, team.duplicate_first_ns, team.free_ns].map(time);
        let cells = [team.ranks.to_string()].into_iter().chain(times);
        let sweeps = [sweep, time(team.sweep_ns), time(team.again_ns), team.plans.to_string()];
        let uneven = [time(team.uneven_ns), team.uneven_plans.to_string()];
        shown.add_row(cells.chain(sweeps).chain(uneven));
    }
    session.out.table(&shown)?;
    session.out.line("")?;
    let mut shown = table(
        &["ranks", "calls of the sweep", "median", "99.9 %", "slowest", "again: median", "99.9 %", "slowest"],
        &[0, 1, 2, 3, 4, 5, 6, 7],
    );
    for team in made {
        let spread = |s: Spread| [s.median_ns, s.p999_ns, s.slowest_ns].map(time);
        let calls = [team.ranks.to_string(), (team.lengths * team.roots).to_string()];
        shown.add_row(calls.into_iter().chain(spread(team.sweep_calls)).chain(spread(team.again_calls)));
    }
    session.out.table(&shown)
}

/// Measures a program that finds the choices that one before it kept.
fn after_another(mut config: TeamConfig, task: &Task) -> Result<Answer, CliError> {
    let file = std::env::temp_dir().join(format!("lineweave-first-{}.bin", std::process::id()));
    config.tuning.kept = Some(file.clone());
    let task = Task { lengths: 0, ..task.clone() };
    let run = |choose: bool| {
        let mut config = config.clone();
        config.threads.choose = choose;
        among(&Team::with(config)?, &task)
    };
    // The first one waits for its choices, so that they are kept before it ends.
    let second = run(false).and_then(|_| run(true));
    // The file does not exist if nothing could be kept.
    let _ = std::fs::remove_file(&file);
    second
}

/// Returns the times that one rank takes to choose, and to prove its choice.
fn alone(config: &TeamConfig, collective: Collective, bytes: usize) -> Result<(f64, f64), CliError> {
    let shape = config.shape();
    let grain = if collective.folds() { 8 } else { 1 };
    let question = Question { shape, ..Question::flat(collective, config.ranks(), bytes, grain) };
    let start = Instant::now();
    let chosen = config.tuning.choose(&question, "processes").map_err(CliError::Select)?;
    let chose = ns(start);
    let start = Instant::now();
    let plan = chosen.plan(&question, chosen.window.min(bytes)).map_err(|e| CliError::Select(e.into()))?;
    std::hint::black_box(verify::verify(&plan).is_ok());
    Ok((chose, ns(start)))
}

fn ns(since: Instant) -> f64 {
    since.elapsed().as_nanos() as f64
}

/// Runs the task among processes and returns the longest time of any rank.
fn among(team: &Team, task: &Task) -> Result<Answer, CliError> {
    let text = serde_json::to_string(task).map_err(|e| CliError::Output(e.into()))?;
    let mut command = rank_job::command()?;
    let children = team.spawn(|rank| {
        let mut command = command(rank);
        command.args(["--first", &text]).stdout(Stdio::piped());
        command
    })?;
    let mut slowest: Option<Value> = None;
    for (rank, mut child) in children.into_iter().enumerate() {
        let mut said = String::new();
        if let Some(mut out) = child.stdout.take() {
            out.read_to_string(&mut said).map_err(CliError::Output)?;
        }
        // The rank's own message says why it failed, and a missing answer is an error below.
        let _ = child.wait();
        let none = |e: serde_json::Error| CliError::RankFailed { rank, how: format!("no answer ({e})") };
        let answer: Value = serde_json::from_str(&said).map_err(none)?;
        match &mut slowest {
            None => slowest = Some(answer),
            Some(slowest) => slower(slowest, &answer),
        }
    }
    let none = |e: serde_json::Error| CliError::RankFailed { rank: 0, how: format!("no answer ({e})") };
    serde_json::from_value(slowest.unwrap_or_default()).map_err(none)
}

/// Takes the larger one of each two numbers: of what two ranks say, what the slower one says.
fn slower(mine: &mut Value, theirs: &Value) {
    match (mine, theirs) {
        (Value::Array(mine), Value::Array(theirs)) => {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| slower(mine, theirs));
        }
        (Value::Object(mine), Value::Object(theirs)) => {
            mine.iter_mut().zip(theirs.values()).for_each(|((_, mine), theirs)| slower(mine, theirs));
        }
        (mine, theirs) if theirs.as_f64() > mine.as_f64() => *mine = theirs.clone(),
        _ => {}
    }
}

/// Runs as a rank: performs the task in the text and prints the times.
pub fn rank(text: &str) -> Result<(), CliError> {
    let task: Task = serde_json::from_str(text).map_err(|e| CliError::Output(e.into()))?;
    let start = Instant::now();
    let mut comm = team::from_environment()?;
    let join_ns = ns(start);
    let ranks = comm.ranks();
    let mut calls = Vec::new();
    for (collective, &bytes) in
        KINDS.into_iter().flat_map(|kind| task.sizes.iter().map(move |bytes| (kind, bytes)))
    {
        let [first_ns, second_ns] = twice(&mut comm, collective, bytes)?;
        let (choose_ns, prove_ns, kept_ns) = (0.0, 0.0, 0.0);
        calls.push(Call { ranks, collective, bytes, choose_ns, prove_ns, first_ns, second_ns, kept_ns });
    }
    let (mut duplicate_ns, mut duplicate_first_ns, mut free_ns) = (0.0, 0.0, 0.0);
    for _ in 0..DUPLICATES {
        comm.barrier()?;
        let start = Instant::now();
        let mut other = comm.dup()?;
        duplicate_ns += ns(start) / DUPLICATES as f64;
        duplicate_first_ns += twice(&mut other, KINDS[0], task.sizes[0])?[0] / DUPLICATES as f64;
        let start = Instant::now();
        drop(other);
        free_ns += ns(start) / DUPLICATES as f64;
    }
    let (lengths, roots) = (task.lengths, task.roots);
    let (data, mut sum) = (vec![1.0; lengths], vec![0.0; lengths]);
    let mut sweeps = [(0.0, Spread::default()); 2];
    let mut times = Vec::with_capacity(lengths * roots);
    for sweep in &mut sweeps {
        times.clear();
        comm.barrier()?;
        let start = Instant::now();
        for length in 1..=lengths {
            for root in 0..roots {
                let call = Instant::now();
                comm.reduce(&data[..length], &mut sum[..length], Operator::Sum, root)?;
                times.push(ns(call));
            }
        }
        comm.barrier()?;
        *sweep = (ns(start), Spread::of(&mut times));
    }
    let ([(sweep_ns, sweep_calls), (again_ns, again_calls)], plans) = (sweeps, comm.setup().plans);
    let (uneven_ns, uneven_plans) = (uneven(&mut comm, lengths)?, comm.setup().plans);
    let made = Made {
        ranks,
        join_ns,
        duplicate_ns,
        duplicate_first_ns,
        free_ns,
        lengths,
        roots,
        sweep_ns,
        sweep_calls,
        again_ns,
        again_calls,
        plans,
        uneven_ns,
        uneven_plans,
    };
    let answer = serde_json::to_string(&Answer { calls, made }).map_err(|e| CliError::Output(e.into()))?;
    writeln!(std::io::stdout(), "{answer}").map_err(CliError::Output)
}

/// Returns the times of a call with so many bytes, and of the same call again.
fn twice(comm: &mut Communicator, collective: Collective, bytes: usize) -> Result<[f64; 2], CliError> {
    let (data, mut sum) = (vec![1.0; bytes / 8], vec![0.0; bytes / 8]);
    let mut took = [0.0; 2];
    for took in &mut took {
        comm.barrier()?;
        let start = Instant::now();
        match collective {
            Collective::Bcast => comm.bcast(&mut sum, 0)?,
            _ => comm.allreduce(&data, &mut sum, Operator::Sum)?,
        }
        *took = ns(start);
    }
    Ok(took)
}

/// Calls allgathers by so many tables of lengths: the blocks of table `n` have from `n` to `2 n` doubles.
fn uneven(comm: &mut Communicator, tables: usize) -> Result<f64, CliError> {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let data = vec![1.0; 2 * tables + 1];
    let mut all = vec![0.0; ranks * data.len()];
    comm.barrier()?;
    let start = Instant::now();
    for table in 1..=tables {
        // The lengths run from `table` to twice as much, in another order each time.
        let counts: Vec<usize> =
            (0..ranks).map(|r| table + (r * 7 + table * 3) % ranks * table / ranks).collect();
        let total = counts.iter().sum();
        comm.allgatherv(&data[..counts[rank]], &mut all[..total], &counts)?;
    }
    comm.barrier()?;
    Ok(ns(start))
}

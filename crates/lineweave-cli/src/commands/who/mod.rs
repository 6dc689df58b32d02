//! `lineweave who`: running and hung teams, rank by rank.

mod prometheus;
mod watch;

use crate::error::CliError;
use crate::files;
use crate::output::table;
use crate::session::Session;
use lineweave::communicator::Setup;
use lineweave::memory::approximate;
use lineweave::process;
use lineweave::segment::{Awaited, RankState};
use lineweave::who::{self, RankView, TeamView};
use lineweave_core::units::Nanos;
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use watch::Late;

/// Arguments of `lineweave who`.
#[derive(clap::Args, Debug)]
pub struct Arguments {
    /// Show only the teams of this process [default: of all processes that you may look at]
    pid: Option<u32>,
    /// Look again every so many seconds, until interrupted, and show for whom others waited [default: 1]
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1", value_parser = interval)]
    watch: Option<Duration>,
    /// Write metrics to this file instead, for the textfile collector of Prometheus' node exporter
    #[arg(long, value_name = "FILE", value_parser = files::to_write)]
    prometheus: Option<PathBuf>,
}

/// Reads the time between two looks.
fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.01..=86400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "expected seconds from 0.01 to 86400".to_owned())
}

/// A team, or a communicator made from it. Printed as `team` by `lineweave who`, each followed by its ranks.
#[derive(Serialize)]
struct TeamRow<'a> {
    /// A number by which its ranks name it, unique while it runs.
    team: u64,
    /// 0 for a team; tells communicators of a team apart.
    at_bytes: u64,
    ranks: usize,
    /// Processes that hold its memory.
    pids: &'a [u32],
    /// Memory in use, with all communicators made from it.
    memory_bytes: u64,
    /// The part of it that freed communicators took, kept for others.
    idle_bytes: u64,
    /// The rank whose loss ended it.
    lost: Option<usize>,
    /// Ranks that keep the team from going on, and why.
    missing: Vec<MissingRow<'a>>,
}

#[derive(Serialize)]
struct MissingRow<'a> {
    ranks: &'a [usize],
    because: &'static str,
}

/// A rank. Printed as `rank` by `lineweave who`.
#[derive(Serialize)]
struct RankRow<'a> {
    team: u64,
    at_bytes: u64,
    rank: usize,
    /// `not joined`, `runs`, `sleeps`, `stopped`, `in a debugger`, `gone`, `left` or `failed`.
    state: &'static str,
    pid: u32,
    /// The thread that joined; 0 before.
    thread: u32,
    /// CPU on which it ran last.
    cpu: Option<usize>,
    /// The scheduler's letter for its state.
    scheduler: Option<char>,
    /// Calls that it has begun.
    sequence: u64,
    /// The call that it waits in, after some milliseconds.
    operation: Option<&'a str>,
    waiting_ns: Option<u64>,
    /// Ranks that have not begun that call; in `send` and `recv` the other rank; none in `flag_wait`, as any may set the flag.
    waits_for: &'a [usize],
    plans: usize,
    plan_bytes: usize,
    /// Time to choose, prove and compile all plans it ever had, or to wait for a rank that did.
    setup_ns: u64,
}

/// Shows the teams.
pub fn run(arguments: &Arguments, session: &mut Session) -> Result<(), CliError> {
    let mut late = Late::default();
    let mut before = Instant::now();
    loop {
        let teams = who::teams(arguments.pid)?;
        if let (Some(pid), true) = (arguments.pid, teams.is_empty()) {
            return Err(CliError::NoTeam { pid });
        }
        late.saw(&teams, before.elapsed());
        before = Instant::now();
        match &arguments.prometheus {
            Some(file) => files::replace(file, &prometheus::text(&teams, &late), "--prometheus")?,
            None => show(&teams, &late, arguments.watch.is_some(), session)?,
        }
        let Some(interval) = arguments.watch else { return Ok(()) };
        session.out.flush()?;
        lineweave::sync::sleep(interval);
    }
}

/// Prints the teams; `again` over what was printed before, on a terminal.
fn show(teams: &[TeamView], late: &Late, again: bool, session: &mut Session) -> Result<(), CliError> {
    teams.iter().try_for_each(|team| objects(team, session))?;
    if again {
        session.out.begin_anew()?;
    }
    if teams.is_empty() {
        return session.out.line("No team is running that this user may look at.");
    }
    for (i, team) in teams.iter().enumerate() {
        if i > 0 {
            session.out.line("")?;
        }
        text(team, session)?;
        let waited_for = late.of(team);
        if again && !waited_for.is_empty() {
            let (shown, more) = waited_for.split_at(waited_for.len().min(8));
            let shown: Vec<String> =
                shown.iter().map(|(rank, waited)| format!("rank {rank} {}", since(*waited))).collect();
            let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
            session
                .out
                .line(&format!("  others waited for {}{more}, since the watch began", shown.join(", ")))?;
        }
    }
    Ok(())
}

fn objects(team: &TeamView, session: &mut Session) -> Result<(), CliError> {
    let missing = team.missing();
    let missing = missing.iter().map(|m| MissingRow { ranks: m.ranks(), because: m.about() }).collect();
    session.out.object(
        "team",
        &TeamRow {
            team: team.id,
            at_bytes: team.at,
            ranks: team.ranks.len(),
            pids: &team.pids,
            memory_bytes: team.memory_bytes,
            idle_bytes: team.idle_bytes,
            lost: team.failed.map(|(rank, _)| rank),
            missing,
        },
    )?;
    for (rank, view) in team.ranks.iter().enumerate() {
        session.out.object(
            "rank",
            &RankRow {
                team: team.id,
                at_bytes: team.at,
                rank,
                state: state(view),
                pid: view.says.pid,
                thread: view.says.thread,
                cpu: view.thread.map(|t| t.cpu),
                scheduler: view.thread.map(|t| t.state),
                sequence: view.says.sequence,
                operation: view.says.waiting.as_ref().map(|w| w.operation.as_str()),
                waiting_ns: view.waiting.map(|w| w.as_nanos() as u64),
                waits_for: &view.waits_for,
                plans: view.says.setup.plans,
                plan_bytes: view.says.setup.plan_bytes,
                setup_ns: view.says.setup.took.as_nanos() as u64,
            },
        )?;
    }
    Ok(())
}

fn text(team: &TeamView, session: &mut Session) -> Result<(), CliError> {
    let processes: Vec<String> = team
        .pids
        .iter()
        .map(|&pid| format!("{pid} {}", process::name(pid).unwrap_or_default()).trim_end().to_owned())
        .collect();
    let (shown, more) = processes.split_at(processes.len().min(4));
    let more = if more.is_empty() { String::new() } else { format!(" and {} more", more.len()) };
    let what = match team.at {
        0 => {
            let memory = approximate(team.memory_bytes);
            let idle = match team.idle_bytes {
                0 => String::new(),
                idle => format!(" ({} of freed communicators, kept for others)", approximate(idle)),
            };
            format!("team {}: {} ranks, {memory} of memory{idle}", team.id, team.ranks.len())
        }
        at => format!("communicator {at:#x} of team {}: {} ranks", team.id, team.ranks.len()),
    };
    session.out.line(&format!("{what}, process {}{more}", shown.join(", ")))?;
    let titles = [
        "  rank",
        "pid",
        "thread",
        "cpu",
        "state",
        "call",
        "plans",
        "planning",
        "waiting in",
        "since",
        "for",
    ];
    let mut rows = table(&titles, &[]);
    for (rank, view) in team.ranks.iter().enumerate() {
        let note = view.says.waiting.as_ref();
        let joined = view.says.pid != 0;
        let number = |n: u32| if joined { n.to_string() } else { "-".to_owned() };
        rows.add_row([
            format!("  {rank}"),
            number(view.says.pid),
            number(view.says.thread),
            view.thread.map_or("-".to_owned(), |t| t.cpu.to_string()),
            state(view).to_owned(),
            view.says.sequence.to_string(),
            plans(&view.says.setup),
            Nanos(view.says.setup.took.as_nanos() as f64).to_string(),
            note.map_or("-".to_owned(), |n| n.operation.clone()),
            view.waiting.map_or("-".to_owned(), since),
            match (note.map(|n| n.awaited), view.waits_for.as_slice()) {
                (None, _) => "-".to_owned(),
                (Some(Awaited::Flag), _) => "whoever sets the flag".to_owned(),
                (Some(_), []) => "ranks within the same call".to_owned(),
                (Some(_), ranks) => some(ranks),
            },
        ]);
    }
    session.out.table_without(&rows, &["planning", "plans", "cpu", "thread"])?;
    if let Some((rank, how)) = team.failed {
        session.out.line(&format!("  ended: rank {rank} {how}"))?;
    }
    for missing in team.missing() {
        let word = if missing.ranks().len() == 1 { "rank" } else { "ranks" };
        session.out.line(&format!("  {word} {} {}", some(missing.ranks()), missing.about()))?;
    }
    Ok(())
}

fn state(view: &RankView) -> &'static str {
    match (view.says.state, view.thread.map(|t| t.state)) {
        (RankState::Absent, _) => "not joined",
        (RankState::Left, _) => "left",
        (RankState::Failed, _) => "failed",
        (RankState::Active, None | Some('Z' | 'X')) => "gone",
        (RankState::Active, Some('T')) => "stopped",
        (RankState::Active, Some('t')) => "in a debugger",
        (RankState::Active, Some('R')) => "runs",
        (RankState::Active, Some(_)) => "sleeps",
    }
}

/// Returns the number of plans, and their memory.
fn plans(setup: &Setup) -> String {
    match setup.plans {
        0 => "-".to_owned(),
        n => format!("{n} ({})", approximate(setup.plan_bytes as u64)),
    }
}

/// Returns the first few of the ranks, and the number of the others.
fn some(ranks: &[usize]) -> String {
    let (shown, more) = ranks.split_at(ranks.len().min(8));
    let shown: Vec<String> = shown.iter().map(usize::to_string).collect();
    match more.len() {
        0 => shown.join(", "),
        n => format!("{} and {n} more", shown.join(", ")),
    }
}

fn since(waiting: Duration) -> String {
    match waiting.as_secs_f64() {
        s if s < 10.0 => format!("{s:.2} s"),
        s if s < 600.0 => format!("{s:.0} s"),
        s => format!("{:.0} min", s / 60.0),
    }
}

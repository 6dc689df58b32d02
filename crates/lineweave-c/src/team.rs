//! Teams: threads that lineweave starts, threads of the program, and processes.

use crate::buffers::list_of;
use crate::handle::{free, give, lw_comm, place_for, shared, Shared, FREED};
use crate::progress::Argument;
use crate::status::{
    guard, kept, lw_status, Failure, LW_ERR_FAILED, LW_ERR_NULL, LW_ERR_PEER, LW_ERR_RANK, LW_ERR_SIZE, LW_OK,
};
use lineweave::settings::Settings;
use lineweave::team::{self, Host, Members, Team, TeamConfig, PATIENCE};
use lineweave::{Communicator, Error};
use std::ffi::{c_char, c_int, c_void, CStr};
use std::sync::Arc;

/** Asked while a rank waits for others to meet: 0 ends the wait. */
pub type lw_go_on_fn = Option<extern "C" fn(arg: *mut c_void) -> c_int>;

/** What a rank of lw_team_threads runs. It returns LW_OK, or what lw_team_threads shall return. */
pub type lw_rank_fn = Option<extern "C" fn(comm: *mut lw_comm, arg: *mut c_void) -> lw_status>;

/// Returns the number of ranks that C passed.
pub(crate) fn size(ranks: c_int) -> Result<usize, Failure> {
    match usize::try_from(ranks) {
        Ok(ranks) if ranks > 0 => Ok(ranks),
        _ => Err(Failure::new(
            LW_ERR_SIZE,
            format!("a team needs at least one rank, and {ranks} were asked for"),
        )),
    }
}

fn rank_number(rank: c_int) -> Result<usize, Failure> {
    usize::try_from(rank).map_err(|_| Failure::new(LW_ERR_RANK, format!("rank {rank} is not a rank")))
}

/// Stores a communicator at the place that C gave.
pub(crate) fn give_comm(to: *mut *mut lw_comm, comm: Communicator) -> Result<(), Failure> {
    give(to, Arc::into_raw(lw_comm::new(comm)).cast_mut())
}

/**
 * Runs f(comm, arg) on `ranks` new threads that form a team, with the settings of the environment, and returns when all
 * have returned: LW_OK, or what the first rank that failed by itself returned. Communicators are freed by
 * lineweave.
 * Errors: LW_ERR_NULL, LW_ERR_SIZE, LW_ERR_ENVIRONMENT, LW_ERR_MEMORY, LW_ERR_SYSTEM.
 *
 *     lw_team_threads(4, work, NULL);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_team_threads(ranks: c_int, f: lw_rank_fn, arg: *mut c_void) -> lw_status {
    guard(|| {
        let Some(f) = f else {
            return Err(Failure::new(LW_ERR_NULL, "the function of the ranks is null"));
        };
        let argument = Argument(arg);
        let argument = &argument;
        Settings::say_ineffective();
        let results = team::threads(size(ranks)?, |comm| {
            let comm = lw_comm::new(comm);
            let raw = Arc::into_raw(Arc::clone(&comm)).cast_mut();
            let status = f(raw, argument.0);
            let mut text = kept();
            if text.is_empty() && status != LW_OK {
                text = format!("a rank's function returned {status}");
            }
            if comm.state() != FREED {
                // SAFETY: it came from `Arc::into_raw` just above. A rank that fails leaves, and peers are told.
                unsafe { crate::handle::lw_comm_free(raw) };
            }
            Ok((status, text))
        })?;
        let failed = |consequence: bool| {
            let kind = |status| matches!(status, LW_ERR_PEER | LW_ERR_FAILED) == consequence;
            results.iter().find(|(status, _)| *status != LW_OK && kind(*status))
        };
        match failed(false).or_else(|| failed(true)) {
            None => Ok(()),
            Some((status, text)) => Err(Failure::new(*status, text.clone())),
        }
    })
}

/** A team whose ranks are threads of the program. */
pub struct lw_team {
    shared: Shared<Members>,
}

/**
 * A team of `ranks` ranks, with the settings of the environment. Threads join it by lw_team_join.
 * Errors: LW_ERR_NULL, LW_ERR_SIZE, LW_ERR_ENVIRONMENT, LW_ERR_MEMORY, LW_ERR_SYSTEM.
 *
 *     lw_team_create(4, &team);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_team_create(ranks: c_int, team: *mut *mut lw_team) -> lw_status {
    guard(|| {
        place_for(team)?;
        Settings::say_ineffective();
        let shared = Shared::new(Team::new(size(ranks)?)?.members());
        give(team, Box::into_raw(Box::new(lw_team { shared })))
    })
}

/**
 * Makes the calling thread `rank` of the team. Returns when every rank has joined. Each rank is joined once; threads are
 * not bound to CPUs.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_RANK, LW_ERR_TIMEOUT, LW_ERR_PEER.
 *
 *     lw_team_join(team, rank, &comm);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_team_join(team: *mut lw_team, rank: c_int, comm: *mut *mut lw_comm) -> lw_status {
    guard(|| {
        place_for(comm)?;
        let members = shared(team, "team", |team| &team.shared)?;
        give_comm(comm, members.join(rank_number(rank)?)?)
    })
}

/**
 * Frees a team. Its communicators remain usable. Null is allowed.
 * Errors: LW_ERR_HANDLE, LW_ERR_BUSY.
 *
 *     lw_team_free(team);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_team_free(team: *mut lw_team) -> lw_status {
    guard(|| free(team, "team", |team| &team.shared))
}

/**
 * Joins the team whose descriptor and rank this process was started with, by `lineweave run` or Team::spawn.
 * Errors: LW_ERR_NULL, LW_ERR_ENVIRONMENT without a launcher, LW_ERR_VERSION, LW_ERR_PEER.
 *
 *     if (lw_comm_from_env(&comm) != LW_OK) return;
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_from_env(comm: *mut *mut lw_comm) -> lw_status {
    guard(|| {
        place_for(comm)?;
        give_comm(comm, team::from_environment()?)
    })
}

/**
 * The part of a team of several processes that this process was started for by Team::spawn_mixed: ranks *first to *first + *count - 1,
 * which its threads join by lw_team_join. Threads of several processes that meet by lw_comm_connect form such a team too.
 * Errors: LW_ERR_NULL, LW_ERR_ENVIRONMENT without a launcher, LW_ERR_VERSION.
 *
 *     int first, count;
 *     lw_team_from_env(&team, &first, &count);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_team_from_env(
    team: *mut *mut lw_team,
    first: *mut c_int,
    count: *mut c_int,
) -> lw_status {
    guard(|| {
        place_for(team)?;
        place_for(first)?;
        place_for(count)?;
        let members = team::members_from_environment()?;
        give(first, members.mine().start as c_int)?;
        give(count, members.mine().len() as c_int)?;
        give(team, Box::into_raw(Box::new(lw_team { shared: Shared::new(members) })))
    })
}

/**
 * Joins `size` processes of one user that meet at a Unix socket: a path of at most 107 bytes, or @name, which leaves no
 * file behind. Rank 0 listens there, the others may come before or after it. Returns when all have come.
 * Ranks wait for each other for a minute, or for LINEWEAVE_TIMEOUT where that is shorter. If rank 0 cannot go on, it tells the others.
 * Errors: LW_ERR_NULL, LW_ERR_SIZE, LW_ERR_RANK, LW_ERR_TIMEOUT, LW_ERR_VERSION, LW_ERR_SYSTEM.
 *
 *     lw_comm_connect("@my-program", rank, size, &comm);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_connect(
    path: *const c_char,
    rank: c_int,
    size: c_int,
    comm: *mut *mut lw_comm,
) -> lw_status {
    guard(|| {
        let size = self::size(size)?;
        let config = || {
            Settings::say_ineffective();
            TeamConfig::from_environment(size)
        };
        // SAFETY: the header's rule for the path.
        unsafe { meet(path, rank, size, comm, config, &mut || true) }
    })
}

/**
 * lw_comm_connect of processes that a launcher has placed: rank r runs on CPU cpus[r], and all of them together may use the
 * `allowed_count` CPUs of `allowed`, by the operating system's numbers. No thread is bound, whatever LINEWEAVE_BIND says,
 * and first calls wait for their plans: a planner chooses them beside (lw_comm_planner). Memory that only long messages need is reserved when a
 * plan first needs it.
 * Rank 0's lists count. While it waits for others it calls go_on(arg), unless that is null, at least 20 times a second; when that
 * returns 0, because another rank is known not to come, it gives up.
 * Errors: those of lw_comm_connect; LW_ERR_TIMEOUT also for giving up.
 *
 *     const int cpus[] = {0, 1}, allowed[] = {0, 1};
 *     lw_comm_connect_on("@my-program", rank, 2, cpus, allowed, 2, NULL, NULL, &comm);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_connect_on(
    path: *const c_char,
    rank: c_int,
    size: c_int,
    cpus: *const c_int,
    allowed: *const c_int,
    allowed_count: c_int,
    go_on: lw_go_on_fn,
    arg: *mut c_void,
    comm: *mut *mut lw_comm,
) -> lw_status {
    let mut ask = || go_on.is_none_or(|go_on| go_on(arg) != 0);
    guard(|| {
        let size = self::size(size)?;
        // SAFETY: the header's rule for the lists, and for the path.
        unsafe {
            let (cpus, allowed) = (numbers(cpus, size)?, numbers(allowed, self::size(allowed_count)?)?);
            meet(path, rank, size, comm, || TeamConfig::placed(&cpus, &allowed), &mut ask)
        }
    })
}

/// Returns the CPUs that C passed.
///
/// # Safety
/// `list` must be null or valid for reads of `count` numbers.
unsafe fn numbers(list: *const c_int, count: usize) -> Result<Vec<usize>, Failure> {
    // SAFETY: as long as the caller says.
    let list = unsafe { list_of("a list of CPUs", list, count)? };
    let cpu =
        |&n: &c_int| usize::try_from(n).map_err(|_| Failure::new(LW_ERR_RANK, format!("{n} is not a CPU")));
    list.iter().map(cpu).collect()
}

/// Meets the other ranks at `path`. Rank 0 makes the team by `config`.
///
/// # Safety
/// `path` must be null or a C string.
unsafe fn meet(
    path: *const c_char,
    rank: c_int,
    size: usize,
    comm: *mut *mut lw_comm,
    config: impl FnOnce() -> Result<TeamConfig, Error>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<(), Failure> {
    place_for(comm)?;
    if path.is_null() {
        return Err(Failure::new(LW_ERR_NULL, "the socket's path is null"));
    }
    // SAFETY: not null, and a C string by the header's rule.
    let path = unsafe { CStr::from_ptr(path) }.to_str();
    let path = path.map_err(|_| Failure::new(LW_ERR_NULL, "the socket's path is not UTF-8"))?;
    let rank = rank_number(rank)?;
    if rank >= size {
        return Err(Failure::new(LW_ERR_RANK, format!("rank {rank} is not one of 0 to {}", size - 1)));
    }
    let why = || "another rank cannot go on, and has said why".to_owned();
    let mut go_on = || match go_on() {
        true => Ok(()),
        false => Err(Error::Meeting { name: path.to_owned(), why: why() }),
    };
    let joined = match rank {
        0 => host(path, size, config, &mut go_on)?,
        _ => team::connect_while(path, Some(rank), team::bounded(PATIENCE), &mut go_on)?,
    };
    if joined.ranks() != size {
        let text = format!("the team at `{path}` has {} ranks and {size} were expected", joined.ranks());
        return Err(Failure::new(LW_ERR_SIZE, text));
    }
    give_comm(comm, joined)
}

/// Waits for all other ranks, and joins as rank 0. Listens first, so that ranks that come are told when that fails.
fn host(
    path: &str,
    size: usize,
    config: impl FnOnce() -> Result<TeamConfig, Error>,
    go_on: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<Communicator, Error> {
    let host = Host::bind(path)?;
    let team = gather(&host, path, config, go_on).inspect_err(|_| host.refuse(size - 1, go_on))?;
    drop(host);
    team.join(0)
}

/// Makes the team and has all other ranks join it.
fn gather(
    host: &Host,
    path: &str,
    config: impl FnOnce() -> Result<TeamConfig, Error>,
    go_on: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<Team, Error> {
    let (team, patience) = (Team::with(config()?)?, team::bounded(PATIENCE));
    // Ranks that have already arrived wait for this rank.
    let missing = host.serve_while(&team, &[0], patience, go_on).inspect_err(|_| team.give_up(0))?;
    missing.iter().for_each(|&rank| team.give_up(rank));
    if !missing.is_empty() {
        let why = format!("ranks {missing:?} did not come within {:.0} s", patience.as_secs_f64());
        return Err(Error::Meeting { name: path.to_owned(), why });
    }
    Ok(team)
}

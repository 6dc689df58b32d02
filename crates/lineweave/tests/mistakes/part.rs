//! One rank's part in a case: a thread's or a process's.

use crate::case::{Case, Kind};
use crate::common::{checked, say};
use lineweave::{CallSpec, Collective, Communicator, Error, WaitCallback};
use rustix::process::{getpid, kill_process, Pid, Signal};
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a case may take: only a hang lasts so long.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// A time limit that is over before somebody comes, who waits for that.
const LIMIT: Duration = Duration::from_millis(20);
/// Names the file in which ranks of a job count those that were told of a stopped rank.
pub const TOLD: &str = "MISTAKES_TEST_TOLD";
/// Says a rank that was told nothing.
pub const FINE: &str = "fine";
/// Begins what no rank ought to say.
pub const ODD: &str = "odd: ";
/// Begins what a rank says that waited in vain.
pub const HANGS: &str = "odd: hangs";
/// More elements than are compared before the mistake.
const MOST_BEFORE: usize = 1 << 14;

struct Refuses;

impl WaitCallback for Refuses {
    fn begin(&mut self) {}
    fn look(&mut self) -> Result<(), String> {
        Err("called off on purpose".into())
    }
    fn end(&mut self) {}
}

/// What a rank of the team says of a case.
pub fn part(home: &mut Communicator, case: &Case) -> String {
    carry_out(home, case).unwrap_or_else(|why| format!("{ODD}{why}"))
}

fn carry_out(home: &mut Communicator, case: &Case) -> Result<String, String> {
    let mut comm = home.dup().map_err(say)?;
    let right = case.right();
    let (kind, rank, ranks, wrong) = (case.kind, home.rank(), home.ranks(), home.rank() == case.wrong);
    // All ranks meet in their team after the mistake, or before it those that come late.
    let meets = matches!(kind, Kind::Cancels | Kind::TimesOut | Kind::Late | Kind::Stops);
    let before = checked(&mut comm, &CallSpec { count: right.count.min(MOST_BEFORE), ..right }, case.root);
    if case.back_to_back {
        // Who is in the right call while others are in the next is told of a loss there.
        if let Some(told) = before.as_ref().err().filter(|told| told.contains("cannot be used any more")) {
            if meets {
                home.barrier().map_err(say)?;
            }
            return Ok(told.clone());
        }
    }
    before?;
    if !case.back_to_back {
        home.barrier().map_err(say)?;
    }
    let mut pid = [getpid().as_raw_nonzero().get()];
    if kind == Kind::Stops && wrong {
        let mut others = (0..ranks).filter(|&r| r != rank);
        others.try_for_each(|r| home.send(&pid, r, 0)).map_err(say)?;
    } else if kind == Kind::Stops {
        home.recv(&mut pid, case.wrong, 0).map_err(say)?;
    }
    match kind {
        Kind::Leaves if wrong => return Ok("left".to_owned()),
        Kind::Panics if wrong && !case.combines(ranks) => {
            let panics = AssertUnwindSafe(move || {
                let _comm = comm;
                resume_unwind(Box::new("on purpose"))
            });
            return match catch_unwind(panics) {
                Ok(()) => Err("a panic was lost".to_owned()),
                Err(_) => Ok("panicked".to_owned()),
            };
        }
        Kind::Dies if wrong => kill_process(getpid(), Signal::KILL).map_err(|e| e.to_string())?,
        Kind::Cancels if wrong => comm.set_wait_callback(Some(Box::new(Refuses))),
        _ => {}
    }
    let (impatient, late) = match kind {
        Kind::Cancels => (false, !wrong),
        Kind::TimesOut => (wrong, !wrong),
        Kind::Late => (!wrong, wrong),
        _ => (false, false),
    };
    if impatient {
        comm.set_timeout(Some(LIMIT));
    }
    if late {
        home.barrier().map_err(say)?;
    }
    if kind == Kind::Stops && wrong {
        kill_process(getpid(), Signal::STOP).map_err(|e| e.to_string())?;
    }
    let mut ended = calls(&mut comm, &case.calls(rank, ranks), case.wrong % 2 == 1);
    if late && ended.is_ok() {
        // Who gave up may have done its part, up to this barrier.
        ended = comm.barrier().and(ended);
    }
    // It goes on only once all have been told: with its part done, a slow rank would find nothing to wait for.
    if kind == Kind::Stops && !wrong {
        await_others_told(ranks - 1)?;
        let stopped = Pid::from_raw(pid[0]).ok_or("a rank has a process")?;
        kill_process(stopped, Signal::CONT).map_err(|e| e.to_string())?;
    }
    let told = match ended {
        Ok(true) => FINE.to_owned(),
        Ok(false) => return Err("got what nobody gave".to_owned()),
        Err(e @ Error::Timeout { .. }) if !impatient => return Ok(format!("{HANGS}: {e}")),
        Err(e) => e.to_string(),
    };
    if told != FINE {
        match comm.barrier() {
            Err(Error::Failed(_)) => {}
            other => return Err(format!("the next call ended with {other:?} after {told}")),
        }
    }
    drop(comm);
    if meets && !late {
        home.barrier().map_err(say)?;
    }
    Ok(told)
}

/// Counts this rank among the `others` that were told of a stopped one, and waits for the rest of them. A file counts: calls of the team would
/// see the stopped rank, too.
fn await_others_told(others: usize) -> Result<(), String> {
    let path = std::env::var_os(TOLD).ok_or("no file counts the ranks that were told")?;
    let mut file = OpenOptions::new().append(true).open(path).map_err(|e| e.to_string())?;
    file.write_all(b"x").map_err(|e| e.to_string())?;
    let told = || file.metadata().map(|data| data.len()).map_err(|e| e.to_string());
    // Nobody counts in the next case before all have left this one.
    let all = told()?.next_multiple_of(others as u64);
    let since = Instant::now();
    while told()? < all {
        if since.elapsed() > PATIENCE {
            return Err(format!("only {} of {all} were told of a stopped rank in {PATIENCE:?}", told()?));
        }
        sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Makes calls, those of allreduce `in_place` if asked, and a barrier: a root may be done before anybody else comes, and learns of it in the
/// next call. Returns whether what it got was given by some rank.
fn calls(comm: &mut Communicator, calls: &[CallSpec], in_place: bool) -> Result<bool, Error> {
    const BESIDE: usize = 16;
    const GUARD: u32 = 0x5A5A_5A5A;
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let mut given = true;
    for call in calls {
        let room = |bytes: usize| {
            let mut room = vec![GUARD; 2 * BESIDE + bytes.max(call.bytes()) / 4];
            let end = room.len() - BESIDE;
            room[BESIDE..end].fill(rank as u32 + 1);
            room
        };
        let (input, mut output) = (room(call.input_bytes(rank, ranks)), room(call.output_bytes(rank, ranks)));
        let to: *mut u8 = output[BESIDE..].as_mut_ptr().cast();
        let from = match in_place && call.collective == Collective::Allreduce {
            true => to.cast_const(),
            false => input[BESIDE..].as_ptr().cast(),
        };
        // SAFETY: both buffers are as long as the collective needs for the length of the call.
        let ended = unsafe { comm.call(call, from, to) };
        let end = output.len() - BESIDE;
        let most = (ranks * (ranks + 1) / 2) as u32;
        given &= output[BESIDE..end].iter().all(|x| (1..=most).contains(x));
        given &= output[..BESIDE].iter().chain(&output[end..]).all(|&x| x == GUARD);
        given &= input[BESIDE..input.len() - BESIDE].iter().all(|&x| x == rank as u32 + 1);
        ended?;
    }
    comm.barrier()?;
    Ok(given)
}

//! State of other processes and their threads, as the kernel reports it.

use crate::sync::{Count, Ordering};
use crate::sysfile::Root;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use std::sync::Once;

/// Number of forks that led to this process since lineweave came to be in use in it or a parent.
static FORKS: Count = Count::new(0);

/// Returns the number of forks; what was made under another number belongs to a parent.
#[inline(always)]
pub fn forks() -> u64 {
    // Relaxed: it changes in a fork only, when there is no other thread.
    FORKS.load(Ordering::Relaxed)
}

/// Has forks counted from now on.
pub(crate) fn count_forks() {
    extern "C" fn in_child() {
        // Relaxed: as above.
        FORKS.fetch_add(1, Ordering::Relaxed);
    }
    static ONCE: Once = Once::new();
    // SAFETY: the function does nothing but add to a word. Without memory for its registration, forks are not noticed.
    ONCE.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(in_child));
    });
}

/// A thread as the scheduler sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadState {
    /// `R` runs, `S` sleeps, `D` is in the kernel, `T` is stopped, `t` is held by a debugger, `Z` has ended.
    pub state: char,
    /// The CPU it ran on last.
    pub cpu: usize,
}

/// The state of a process, unless it is gone.
pub fn state(pid: u32) -> Option<char> {
    parse(&Root::live().read(format!("/proc/{pid}/stat"))?).map(|s| s.state)
}

/// State of a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// The process runs or waits, as far as can be seen.
    Runs,
    /// The process is stopped by a signal.
    Stopped,
    /// The process has ended; its parent may not have waited for it yet.
    Ended,
}

/// Returns the state of a process, also where there is no descriptor left to read a file by.
pub fn how(pid: u32) -> How {
    match (state(pid), Pid::from_raw(pid as i32)) {
        (Some('T'), _) => How::Stopped,
        (Some('Z' | 'X'), _) => How::Ended,
        // No file may also mean that none can be opened, or that there is no `/proc`.
        (None, Some(pid)) if rustix::process::test_kill_process(pid) == Err(Errno::SRCH) => How::Ended,
        _ => How::Runs,
    }
}

/// Returns the condition that keeps a process from running, beside its own waits and the scheduler.
pub fn kept_from_running(pid: u32) -> Option<&'static str> {
    match state(pid)? {
        'T' => Some("stopped"),
        't' => Some("stopped by the process that traces it"),
        'D' => Some("in uninterruptible sleep, as for a disk"),
        _ => None,
    }
}

/// Returns the CPU time that a process has had, in the kernel's ticks.
pub fn cpu_time(pid: u32) -> Option<u64> {
    let stat = Root::live().read(format!("/proc/{pid}/stat"))?;
    // Fields 14 and 15; the name before them may have anything in it but a last parenthesis.
    let fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(2);
    fields.map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// The state of a thread, unless it is gone.
pub fn thread(pid: u32, thread: u32) -> Option<ThreadState> {
    parse(&Root::live().read(format!("/proc/{pid}/task/{thread}/stat"))?)
}

/// Has this process killed when the thread that started it ends, in whatever way. What it starts itself does not inherit that.
///
/// # Errors
/// The system's refusal.
pub fn end_with_parent() -> std::io::Result<()> {
    Ok(rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// The processes whose parent this one is, those that have ended and were not awaited too.
pub fn children() -> Vec<Pid> {
    let root = Root::live();
    let parent = |pid: usize| {
        let stat = root.read(format!("/proc/{pid}/stat"))?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let mine = |&pid: &usize| parent(pid) == Some(std::process::id());
    root.numbered("/proc", "").into_iter().filter(mine).filter_map(|pid| Pid::from_raw(pid as i32)).collect()
}

/// Returns the name that a process gives itself.
pub fn name(pid: u32) -> Option<String> {
    Root::live().read(format!("/proc/{pid}/comm"))
}

/// `CLOCK_MONOTONIC`, which all processes of a machine read alike.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The line of a `stat` file. The name in brackets may hold anything, brackets and spaces too.
fn parse(stat: &str) -> Option<ThreadState> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    // Field 39 of proc(5); the state is the third.
    let cpu = fields.nth(35)?.parse().ok()?;
    Some(ThreadState { state, cpu })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_is_no_field() {
        let stat = "12 (a) R (b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 \
                    31 32 33 34 35 9 0";
        assert_eq!(parse(stat), Some(ThreadState { state: 'S', cpu: 9 }));
        assert_eq!(parse("12 (a"), None);
    }

    #[test]
    fn this_thread_is_there_and_a_process_that_never_was_is_not() {
        let me = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        assert!(thread(std::process::id(), me).is_some());
        assert_eq!(state(u32::MAX), None);
        assert_eq!(how(std::process::id()), How::Runs);
        // The largest number of a process is smaller.
        assert_eq!(how(1 << 30), How::Ended);
    }
}

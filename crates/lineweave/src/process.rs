//! What the kernel says of other processes and their threads.

use crate::sysfile::Root;

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

/// Whether a process has ended.
pub fn is_gone(pid: u32) -> bool {
    let known = rustix::process::Pid::from_raw(pid as i32);
    let signalled = known.map(rustix::process::test_kill_process);
    matches!(signalled, Some(Err(rustix::io::Errno::SRCH))) || matches!(state(pid), Some('Z' | 'X'))
}

/// The state of a thread, unless it is gone.
pub fn thread(pid: u32, thread: u32) -> Option<ThreadState> {
    parse(&Root::live().read(format!("/proc/{pid}/task/{thread}/stat"))?)
}

/// What a process calls itself.
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
        assert!(!is_gone(std::process::id()) && is_gone(i32::MAX as u32));
    }
}

//! Time slice of a thread that yields: short where other programs have the CPU, so that a yield gives away little.
//!
//! On Linux a thread that yields gives up the rest of its time slice, 3 ms on a machine with 8 CPUs or more, whether or not it had begun: a rank that
//! yields some times while it waits has lost its claim to the CPU for several slices of whatever else runs there. Where all that runs there are
//! ranks this costs nothing, as all of them lose the same; beside another program each step of a collective takes some milliseconds.
//! From Linux 6.12 on a thread may ask for another slice. Its share of the CPU stays what it was.

use std::cell::Cell;
use std::mem::{size_of, zeroed};

/// The shortest slice that Linux grants.
const SHORTEST_NS: u64 = 100_000;

std::thread_local! {
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

/// Asks for a short slice for the calling thread, at its first call. Where the kernel has none or a sandbox refuses, nothing changes.
#[inline]
pub fn shorten() {
    if !ASKED.replace(true) {
        ask();
    }
}

/// Asks; returns the slice before, where there was a longer one.
#[cold]
fn ask() -> Option<u64> {
    let mut now = read()?;
    let fair = [libc::SCHED_OTHER, libc::SCHED_BATCH].map(|policy| policy as u32);
    // A kernel that has no slices to choose says 0.
    if !fair.contains(&now.sched_policy) || now.sched_runtime <= SHORTEST_NS {
        return None;
    }
    let before = std::mem::replace(&mut now.sched_runtime, SHORTEST_NS);
    // SAFETY: the kernel reads a whole structure of the size that it says; 0 is the calling thread.
    let status = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const now, 0) };
    (status == 0).then_some(before)
}

/// Returns what the calling thread's scheduling is.
fn read() -> Option<libc::sched_attr> {
    // SAFETY: plain numbers, of which the kernel fills no more than it is told there is room for; 0 is the calling thread.
    unsafe {
        let mut now: libc::sched_attr = zeroed();
        let room = size_of::<libc::sched_attr>() as libc::c_uint;
        let status = libc::syscall(libc::SYS_sched_getattr, 0, &raw mut now, room, 0);
        (status == 0).then_some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_a_short_slice_and_keeps_its_policy_and_niceness() {
        std::thread::spawn(|| {
            let before = read().expect("its scheduling");
            shorten();
            let after = read().expect("its scheduling");
            let expected = if before.sched_runtime == 0 { 0 } else { SHORTEST_NS };
            assert_eq!(after.sched_runtime, expected);
            assert_eq!(
                (after.sched_policy, after.sched_nice, after.sched_flags),
                (before.sched_policy, before.sched_nice, before.sched_flags)
            );
            assert_eq!(ask(), None, "it has one");
        })
        .join()
        .expect("no panic");
    }
}

//! Time slice of a thread: the time that the scheduler gives it at a stretch, and takes from it for a yield.
//!
//! On Linux a thread that yields loses its claim to one time slice, 1.4 ms on the machine with 2 CPUs where this was measured. Ranks yield
//! several times in a call. Where only ranks share a CPU, all of them lose the same. Beside another program, that program then runs for some
//! milliseconds at each step of a collective. From Linux 6.12 on a thread may ask for another slice; its share of the CPU stays what it was.

use std::cell::Cell;
use std::mem::{size_of, zeroed};

/// The shortest slice that Linux grants.
const SHORTEST_NS: u64 = 100_000;

std::thread_local! {
    static ASKED: Cell<bool> = const { Cell::new(false) };
}

/// Asks for the shortest slice for the calling thread, at its first call. Where the kernel has none or a sandbox refuses, nothing changes.
#[inline]
pub fn shorten() {
    if !ASKED.replace(true) {
        ask();
    }
}

#[cold]
fn ask() {
    let Some(mut scheduling) = read() else { return };
    let fair = [libc::SCHED_OTHER, libc::SCHED_BATCH].map(|policy| policy as u32);
    // A kernel that has no slices to choose says 0.
    if fair.contains(&scheduling.sched_policy) && scheduling.sched_runtime > SHORTEST_NS {
        scheduling.sched_runtime = SHORTEST_NS;
        // SAFETY: the kernel reads a whole structure of the size that it says; 0 is the calling thread. If it refuses, the slice stays.
        unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const scheduling, 0) };
    }
}

/// Returns the scheduling policy of the calling thread with its parameters, if the kernel tells.
fn read() -> Option<libc::sched_attr> {
    // SAFETY: all zeros is a value of it, which is plain numbers.
    let mut scheduling: libc::sched_attr = unsafe { zeroed() };
    let room = size_of::<libc::sched_attr>() as libc::c_uint;
    // SAFETY: the kernel writes no more than it is told there is room for; 0 is the calling thread.
    let status = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut scheduling, room, 0) };
    (status == 0).then_some(scheduling)
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Returns the calling thread's slice in ns, and that which it has when it was shortened; both 0 where the kernel has none to choose.
    pub fn now_and_short() -> (u64, u64) {
        let now = read().map_or(0, |scheduling| scheduling.sched_runtime);
        (now, now.min(SHORTEST_NS))
    }

    #[test]
    fn a_thread_gets_a_short_slice_and_keeps_its_policy_and_niceness() {
        std::thread::spawn(|| {
            let before = read().expect("its scheduling");
            for _ in 0..2 {
                ask();
                let after = read().expect("its scheduling");
                assert_eq!(after.sched_runtime, before.sched_runtime.min(SHORTEST_NS));
                assert_eq!(
                    (after.sched_policy, after.sched_nice, after.sched_flags),
                    (before.sched_policy, before.sched_nice, before.sched_flags)
                );
            }
        })
        .join()
        .expect("no panic");
    }
}

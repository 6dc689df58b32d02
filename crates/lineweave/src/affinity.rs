//! Affinity of threads: pinning the calling thread, and reading the CPU that it runs on.
//!
//! Pinning is an improvement, never a condition: whoever gets an error here goes on unpinned and says so.

use crate::sysfile::{format_cpu_list, parse_cpu_list, Root};
use rustix::io::Errno;
use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity, CpuSet};
use thiserror::Error;

/// Reason why the affinity of a thread could not be set or read. No such error keeps lineweave from working.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum AffinityError {
    /// The kernel or a sandbox forbids it.
    #[error(
        "pinning to CPU {cpus} is not permitted ({reason}): going on unpinned; latencies will vary more. \
         Allow sched_setaffinity in the sandbox, or set LINEWEAVE_BIND=none to go without this warning"
    )]
    NotPermitted {
        /// The CPUs asked for.
        cpus: String,
        /// The system's message.
        reason: String,
    },
    /// None of the CPUs asked for is online and in the cpuset.
    #[error(
        "CPU {cpus} cannot be used: expected one of the CPUs in this process's cpuset and online; going on \
         unpinned. `lineweave info` lists the usable ones"
    )]
    NotUsable {
        /// The CPUs asked for.
        cpus: String,
    },
    /// A CPU number beyond what the system call takes.
    #[error("CPU {cpu}: expected a number below {most}; going on unpinned")]
    OutOfRange {
        /// The CPU asked for.
        cpu: usize,
        /// The first number that does not fit.
        most: usize,
    },
    /// The mask cannot be read.
    #[error("the affinity mask cannot be read ({reason}): every CPU online is taken as usable")]
    Unreadable {
        /// The system's message.
        reason: String,
    },
}

/// The CPUs that the calling thread may run on, ascending.
///
/// # Errors
/// [`AffinityError::Unreadable`] when neither the system call nor `/proc` tells.
pub fn mask() -> Result<Vec<usize>, AffinityError> {
    match sched_getaffinity(None) {
        Ok(set) => Ok((0..CpuSet::MAX_CPU).filter(|&c| set.is_set(c)).collect()),
        // A machine of more CPUs than the call's fixed mask holds still has them in /proc.
        Err(error) => mask_from_proc(&Root::live())
            .ok_or_else(|| AffinityError::Unreadable { reason: error.to_string() }),
    }
}

/// Returns whether the system refuses to tell the mask, whatever its length.
#[cfg(feature = "hwloc")]
pub fn is_refused() -> bool {
    sched_getaffinity(None).is_err_and(|e| e != Errno::INVAL)
}

/// Returns whether the calling thread may run on this CPU alone.
pub fn is_held_on(cpu: usize) -> bool {
    mask().is_ok_and(|cpus| cpus == [cpu])
}

fn mask_from_proc(root: &Root) -> Option<Vec<usize>> {
    let status = root.read("/proc/thread-self/status")?;
    let list = status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?;
    parse_cpu_list(list).ok().filter(|cpus| !cpus.is_empty())
}

/// CPUs that the first thread that called [`bind`] could run on before it was bound.
static FREE: std::sync::OnceLock<Vec<usize>> = std::sync::OnceLock::new();

std::thread_local! {
    /// The CPU that this thread was bound to, and whether it is away from it.
    static HOME: std::cell::Cell<Option<(usize, bool)>> = const { std::cell::Cell::new(None) };
}

/// [`pin`], remembering for [`unpin`] where threads of this process could run before, and for [`roam`] where this one is bound.
///
/// # Errors
/// The errors of [`pin`].
pub fn bind(cpu: usize) -> Result<(), AffinityError> {
    if let (None, Ok(cpus)) = (FREE.get(), mask()) {
        // Another thread may have been first: it saw the same.
        let _ = FREE.set(cpus);
    }
    pin(cpu)?;
    HOME.set(Some((cpu, false)));
    Ok(())
}

/// Lets the calling thread, if [`bind`] bound it, run elsewhere until it comes [`home`]. A mask that the program has set meanwhile stays.
pub fn roam() {
    if let Some((cpu, false)) = HOME.get().filter(|&(cpu, _)| is_held_on(cpu)) {
        HOME.set(Some((cpu, true)));
        unpin();
    }
}

/// Ends what [`roam`] began.
#[inline]
pub fn home() {
    if let Some((cpu, true)) = HOME.get() {
        HOME.set(Some((cpu, false)));
        if mask().ok().as_ref() == FREE.get() {
            // Refused: it then runs where it may.
            let _ = pin(cpu);
        }
    }
}

/// Lets the calling thread run wherever threads of this process could before the first was bound.
pub fn unpin() {
    if let Some(cpus) = FREE.get() {
        // It then stays where its starter runs.
        let _ = restrict(cpus);
    }
}

/// Lets the calling thread, and threads it starts from now on, run on these CPUs only.
///
/// # Errors
/// An [`AffinityError`]; the thread then runs where it ran before.
pub fn restrict(cpus: &[usize]) -> Result<(), AffinityError> {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        if cpu >= CpuSet::MAX_CPU {
            return Err(AffinityError::OutOfRange { cpu, most: CpuSet::MAX_CPU });
        }
        set.set(cpu);
    }
    sched_setaffinity(None, &set).map_err(|error| {
        let cpus = format_cpu_list(cpus);
        if error == Errno::INVAL {
            AffinityError::NotUsable { cpus }
        } else {
            AffinityError::NotPermitted { cpus, reason: error.to_string() }
        }
    })
}

/// Pins the calling thread to one CPU. On return it runs there.
///
/// # Errors
/// Why it could not; the thread then runs where it ran before.
pub fn pin(cpu: usize) -> Result<(), AffinityError> {
    restrict(&[cpu])
}

/// The CPU that the calling thread runs on at this moment.
pub fn current_cpu() -> usize {
    sched_getcpu()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysfile::tests::FakeRoot;

    #[test]
    fn a_pinned_thread_runs_where_it_was_put() {
        // In a thread of its own, so that no other test inherits the mask.
        std::thread::spawn(|| {
            for cpu in mask().expect("a mask") {
                pin(cpu).expect("a CPU of the own mask");
                assert_eq!(current_cpu(), cpu);
                assert_eq!(mask(), Ok(vec![cpu]));
                assert!(is_held_on(cpu) && !is_held_on(cpu + 1));
            }
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn a_thread_that_roams_comes_home_unless_it_was_put_elsewhere() {
        std::thread::spawn(|| {
            let before = mask().expect("a mask");
            roam();
            assert_eq!(mask().as_ref(), Ok(&before), "it was not bound");
            bind(before[0]).expect("a CPU of the own mask");
            let free = FREE.get().expect("set by the first that was bound").clone();
            home();
            assert_eq!(mask(), Ok(vec![before[0]]));
            roam();
            roam();
            assert_eq!(mask().as_ref(), Ok(&free));
            home();
            assert_eq!(mask(), Ok(vec![before[0]]));
            if let Some(&other) = before.get(1) {
                pin(other).expect("a CPU of the own mask");
                roam();
                home();
                assert_eq!(mask(), Ok(vec![other]), "the program has put it there");
            }
        })
        .join()
        .expect("no panic");
    }

    #[test]
    fn a_cpu_that_is_not_there_is_an_error_that_says_to_go_on() {
        let before = mask();
        let error = pin(CpuSet::MAX_CPU - 1).expect_err("no such CPU");
        assert_eq!(error, AffinityError::NotUsable { cpus: (CpuSet::MAX_CPU - 1).to_string() });
        assert!(error.to_string().contains("going on unpinned"));
        let error = pin(1 << 20).expect_err("no such CPU");
        assert_eq!(error, AffinityError::OutOfRange { cpu: 1 << 20, most: CpuSet::MAX_CPU });
        assert_eq!(restrict(&[]), Err(AffinityError::NotUsable { cpus: "none".to_owned() }));
        assert_eq!(mask(), before);
    }

    #[test]
    fn proc_holds_masks_that_the_call_cannot() {
        let status = "Name:\tx\nCpus_allowed:\tffff\nCpus_allowed_list:\t0-1,1500\n";
        let fake = FakeRoot::new(&[("/proc/thread-self/status", status)]);
        assert_eq!(mask_from_proc(&fake.root()), Some(vec![0, 1, 1500]));
    }
}

//! Memory near the rank that uses it, on machines with several NUMA nodes.
//!
//! The kernel takes a page from the node of the CPU that touches or reserves it first. A program may run under a policy of its own:
//! `numactl --interleave=all` deals pages out to all nodes. So whoever makes memory that several ranks use asks for the near node (`mbind`), once
//! and for everybody who maps it. Where that is refused, as containers do, the program's policy stays in force. One node is never asked for.

use crate::sysfile::{parse_cpu_list, Root};
use rustix::mm::Advice;
use serde::Serialize;
use std::fmt;
use std::io;
use std::sync::OnceLock;

/// Policy that decides on which NUMA node pages lie.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Near {
    /// There is one node.
    #[default]
    OneNode,
    /// The CPU that touches or reserves a page first decides: the kernel was asked for this policy (`mbind`).
    Asked,
    /// The program's own policy, since no other could be asked for.
    Refused {
        /// The system's message.
        reason: String,
    },
}

impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Near::OneNode => f.write_str("on the one NUMA node there is"),
            Near::Asked => f.write_str("on the NUMA node of each rank (mbind)"),
            Near::Refused { reason } => write!(
                f,
                "on the NUMA node of each rank, unless the program is told otherwise, as by `numactl --interleave` (mbind: {reason})"
            ),
        }
    }
}

/// Has pages of this mapping come from the node of whoever touches or reserves them first, from now on and for all who map the same memory.
pub(crate) fn keep(start: *mut u8, bytes: usize) -> Near {
    asked(nodes(), || prefer(start, bytes))
}

/// Gives back the pages of private memory, so that whoever touches one next has it near.
///
/// # Safety
/// The range is whole pages of private memory that nobody uses, and whose contents nobody needs: they are zeros afterwards.
pub unsafe fn renew(start: *mut u8, bytes: usize) {
    if keep(start, bytes) != Near::OneNode {
        // SAFETY: upheld by the caller. A kernel that refuses leaves the pages where they are.
        let _ = unsafe { rustix::mm::madvise(start.cast(), bytes, Advice::LinuxDontNeed) };
    }
}

/// Returns the policy that is in force on this machine, found by a request for one private page.
pub fn probe() -> Near {
    // One page of nobody's.
    let mut page = crate::scratch::Scratch::default();
    match page.grow(rustix::param::page_size()) {
        Ok(()) => keep(page.start(), page.bytes()),
        Err(e) => Near::Refused { reason: e.to_string() },
    }
}

fn asked(nodes: usize, ask: impl FnOnce() -> io::Result<()>) -> Near {
    if nodes < 2 {
        return Near::OneNode;
    }
    match ask() {
        Ok(()) => Near::Asked,
        Err(e) => Near::Refused { reason: e.to_string() },
    }
}

/// The nodes of this machine that are online; one where the kernel does not say.
fn nodes() -> usize {
    static NODES: OnceLock<usize> = OnceLock::new();
    *NODES.get_or_init(|| nodes_of(&Root::live()))
}

fn nodes_of(root: &Root) -> usize {
    let list = root.read("/sys/devices/system/node/online").and_then(|text| parse_cpu_list(&text).ok());
    list.map_or(1, |nodes| nodes.len())
}

/// `mbind`: the node of the CPU that a page is allocated on, which is what no preferred node means.
fn prefer(start: *mut u8, bytes: usize) -> io::Result<()> {
    let (none, no_flags) = (std::ptr::null::<libc::c_ulong>(), 0u32);
    // SAFETY: a policy for pages to come changes nothing of what is mapped, and no nodes are read.
    let done =
        unsafe { libc::syscall(libc::SYS_mbind, start, bytes, libc::MPOL_PREFERRED, none, 0usize, no_flags) };
    match done {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::scratch::Scratch;
    use crate::sysfile::tests::FakeRoot;
    use std::cell::Cell;

    #[test]
    fn one_node_is_not_asked_for() {
        let count = Cell::new(0);
        let asks = &count;
        let ask = |outcome: io::Result<()>| {
            move || {
                asks.set(asks.get() + 1);
                outcome
            }
        };
        assert_eq!((asked(1, ask(Ok(()))), asks.get()), (Near::OneNode, 0));
        assert_eq!((asked(2, ask(Ok(()))), asks.get()), (Near::Asked, 1));
        let refused = asked(8, ask(Err(io::Error::from_raw_os_error(libc::EPERM))));
        assert!(
            matches!(&refused, Near::Refused { reason } if reason.contains("not permitted")),
            "{refused:?}"
        );
    }

    #[test]
    fn nodes_are_those_online() {
        let online = |text| nodes_of(&FakeRoot::new(&[("/sys/devices/system/node/online", text)]).root());
        assert_eq!([online("0\n"), online("0-3\n"), online("0,2\n"), online("no list\n")], [1, 4, 2, 1]);
        assert_eq!(nodes_of(&FakeRoot::new(&[]).root()), 1);
    }

    /// The call itself, whatever this kernel and its filters say to it: memory stays usable.
    #[test]
    fn memory_is_usable_whether_the_kernel_agrees_or_not() {
        let mut memory = Scratch::default();
        memory.grow(1 << 20).expect("memory");
        let (start, len) = (memory.start(), memory.bytes());
        let outcome = prefer(start, len);
        assert!(
            outcome.is_ok() || outcome.as_ref().is_err_and(|e| e.raw_os_error() != Some(libc::EFAULT)),
            "{outcome:?}"
        );
        // SAFETY: within the memory, which only this test knows.
        unsafe {
            start.add(len - 1).write(7);
            renew(start, len);
            let left = start.add(len - 1).read();
            assert!(if nodes() < 2 { left == 7 } else { [0, 7].contains(&left) }, "{left}");
            start.add(len - 1).write(left + 1);
        }
        assert!(prefer(start.wrapping_add(1), 1).is_err(), "no page begins there");
        assert_eq!(keep(start, len), probe());
    }
}

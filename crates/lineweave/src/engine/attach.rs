//! The trial of cross-memory attach: do the ranks of a team reach each other's private memory?
//!
//! 1. A rank publishes the address of a word of its memory that holds the number of its process.
//! 2. When all have, it reads that word of the next rank in another process, cyclically, and counts itself as one that has tried; as unable if it
//!    could not be read, or holds another number: then the other's `pid` names a stranger here.
//! 3. When all have tried, all know whether all are able.
//!
//! One try a rank is enough. Who may read whom is a preorder: the kernel asks whether the reader has the user, the rights and the names of processes
//! that the other has, or whether it started the other (Yama), and each of these passes on; what one process alone forbids (it cannot be dumped, or a filter
//! refuses the call) shows where that process is read or reads. Tries lead from every process to every other one and back, so if all succeed all
//! reach all. What is excepted by name (`PR_SET_PTRACER`) does not pass on; a copy that fails later is an error that names the setting.

use super::join::await_all;
use super::state::Engine;
use super::transport::ProcessGroup;
use crate::attach;
use crate::error::{Error, Loss};
use crate::segment::Segment;
use rustix::io::Errno;
use std::time::{Duration, Instant};

/// Publishes the address of the word that holds the number of this rank's process (step 1).
pub(super) fn publish(segment: &Segment, rank: usize, group: &ProcessGroup) {
    segment.publish_word(rank, std::ptr::from_ref(&group.process) as u64);
}

/// Steps 2 and 3; to be called when all have joined. Nothing when the others do not try within `patience`.
pub(super) fn all_reach_all(
    segment: &Segment,
    rank: usize,
    group: &ProcessGroup,
    patience: Duration,
) -> bool {
    let mut after = (rank + 1..segment.ranks()).chain(0..rank);
    let next = after.find(|&q| segment.process(q) != group.process);
    let able = next.is_none_or(|q| {
        let mut found = 0u64;
        let to = std::ptr::from_mut(&mut found).cast();
        // SAFETY: a word of this rank's own; the other's word does not change.
        let done = unsafe { attach::read(segment.pid(q), segment.published_word(q) as usize, to, 8) };
        done.is_ok() && found == segment.process(q)
    });
    segment.tried_attach(able);
    let start = Instant::now();
    let end = || (start.elapsed() > patience || segment.failed().is_some()).then_some(());
    let all = await_all(segment, segment.tried_word(), Segment::tried, end);
    all.is_ok() && segment.none_shut() && next.is_some()
}

impl Engine {
    /// The error when the memory of `peer` could not be reached in the middle of a call.
    #[cold]
    pub(super) fn unreached(&mut self, peer: u32, why: Errno) -> Error {
        let peer = peer as usize;
        // The loss is told before this rank turns others away, who would take it for the one that failed.
        let error = match (self.transport.watch.loss(), why) {
            (Some(error), _) => error,
            (None, Errno::SRCH) => self.transport.watch.lose(peer, Loss::Died),
            (None, why) => {
                self.segment.set_failed(self.rank, Loss::Failed);
                let pid = self.segment.pid(peer);
                let what = format!(
                    "reaching the memory of rank {peer}, process {pid} (process_vm_readv, process_vm_writev)"
                );
                Error::system(what, why, "; set LINEWEAVE_CMA=off, and make a new communicator")
            }
        };
        self.transport.watch.close();
        self.cool();
        self.health.failed = Some(error.to_string());
        error
    }
}

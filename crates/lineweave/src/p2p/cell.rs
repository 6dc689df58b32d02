//! A cell of a ring: what its head says, and who has a message that it gives by its address.

use crate::sync::{AtomicU64, Ordering};

/// Bytes of a cell before its payload: the whole line, so that payloads are aligned.
pub(super) const HEAD: usize = 64;

/// Contents of the head of a cell.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct Head {
    pub tag: u32,
    /// 1 where `address` is that of the message.
    pub direct: u32,
    /// The length of the whole message in bytes.
    pub bytes: usize,
    pub address: usize,
}

/// Owner of a direct message: nobody yet, the receiver that copies it, or the sender that took it back.
pub(super) const OPEN: u64 = 0;
pub(super) const CLAIMED: u64 = 1;
pub(super) const REVOKED: u64 = 2;

/// The word behind a cell's head by which a direct message is claimed or revoked.
pub(super) fn claim<'a>(cell: *mut u8) -> &'a AtomicU64 {
    // SAFETY: the last word of the head's line, in the segment that the caller keeps mapped, only ever used as an atomic.
    unsafe { &*cell.add(HEAD - size_of::<u64>()).cast::<AtomicU64>() }
}

/// Moves a direct message from open to `to`; whether it was open.
pub(super) fn take_over(cell: *mut u8, to: u64) -> bool {
    // Relaxed on failure: nothing is read because of it. SYNC: claim.
    claim(cell).compare_exchange(OPEN, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

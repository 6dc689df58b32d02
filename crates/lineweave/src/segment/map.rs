//! Mapping stretches of a team's memory.

use crate::error::Error;
use rustix::mm::{MapFlags, ProtFlags};
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

/// Bytes of a page.
pub(super) const PAGE: usize = 4096;

/// Maps so many bytes from `at` on.
pub(super) fn map_bytes(fd: BorrowedFd<'_>, at: u64, bytes: usize) -> Result<NonNull<u8>, Error> {
    // SAFETY: a fresh shared mapping at an address of the kernel's choice aliases nothing of Rust's.
    let start = unsafe {
        rustix::mm::mmap(
            std::ptr::null_mut(),
            bytes,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::SHARED,
            fd,
            at,
        )
    }
    .map_err(|e| {
        Error::system(format!("mapping {bytes} bytes of the team's memory (mmap)"), e, "; check `ulimit -v`")
    })?;
    NonNull::new(start.cast::<u8>()).ok_or_else(|| Error::system("mapping the team's memory", "null", ""))
}

/// Takes a mapping back.
///
/// # Safety
/// The range must be a mapping that nobody uses any more.
pub(super) unsafe fn unmap(base: NonNull<u8>, bytes: usize) {
    // SAFETY: upheld by the caller. A failure would only leave the mapping in place.
    let _ = unsafe { rustix::mm::munmap(base.as_ptr().cast(), bytes) };
}

//! Cross-memory attach: copies out of and into the memory of another process of this user, by the kernel.
//!
//! The kernel asks for each copy whether this process may trace the other one; Yama, seccomp filters and containers
//! without that right refuse. So a team tries it once, when its ranks join, and does without where one rank may not
//! (see `engine/attach.rs`).

use rustix::io::Errno;

/// Copies `len` bytes from `remote`, an address in process `pid`, to `local`.
///
/// # Errors
/// [`Errno::SRCH`] when there is no such process any more, [`Errno::PERM`] when it may not be read, [`Errno::FAULT`] when it has
/// nothing there, [`Errno::NOSYS`] when the kernel has no such call.
///
/// # Safety
/// `local` must be valid for writes of `len` bytes, and nobody may write the remote ones meanwhile.
pub unsafe fn read(pid: u32, remote: usize, local: *mut u8, len: usize) -> Result<(), Errno> {
    // SAFETY: the caller vouches for the local side; the kernel checks the remote one.
    let copy = |far: &libc::iovec, near: &libc::iovec| unsafe {
        libc::process_vm_readv(pid as libc::pid_t, near, 1, far, 1, 0)
    };
    each(remote, local, len, copy)
}

/// Copies `len` bytes from `local` to `remote`, an address in process `pid`.
///
/// # Errors
/// The errors of [`read`].
///
/// # Safety
/// `local` must be valid for reads of `len` bytes, and nobody may touch the remote ones meanwhile.
pub unsafe fn write(pid: u32, remote: usize, local: *const u8, len: usize) -> Result<(), Errno> {
    // SAFETY: as above.
    let copy = |far: &libc::iovec, near: &libc::iovec| unsafe {
        libc::process_vm_writev(pid as libc::pid_t, near, 1, far, 1, 0)
    };
    each(remote, local.cast_mut(), len, copy)
}

/// Calls until all is copied: a call may stop earlier.
fn each(
    remote: usize,
    local: *mut u8,
    len: usize,
    copy: impl Fn(&libc::iovec, &libc::iovec) -> isize,
) -> Result<(), Errno> {
    let mut done = 0;
    while done < len {
        let far =
            libc::iovec { iov_base: std::ptr::without_provenance_mut(remote + done), iov_len: len - done };
        let near = libc::iovec { iov_base: local.wrapping_add(done).cast(), iov_len: len - done };
        match usize::try_from(copy(&far, &near)) {
            Ok(0) => return Err(Errno::FAULT),
            Ok(bytes) => done += bytes,
            Err(_) => match std::io::Error::last_os_error().raw_os_error() {
                Some(libc::EINTR) => {}
                other => return Err(Errno::from_raw_os_error(other.unwrap_or(libc::EIO))),
            },
        }
    }
    Ok(())
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_from_and_go_to_a_process() {
        let (mut source, mut target) = ([3u8; 10_000], [0u8; 10_000]);
        source[9_999] = 7;
        let at = source.as_ptr() as usize;
        // SAFETY: both arrays are as long, and this process's own.
        match unsafe { read(std::process::id(), at, target.as_mut_ptr(), 10_000) } {
            Ok(()) => assert_eq!(source, target),
            // Where a filter refuses it, that is what is found out.
            Err(e) => return assert!(matches!(e, Errno::PERM | Errno::NOSYS), "{e}"),
        }
        let to = target.as_mut_ptr() as usize;
        // SAFETY: as above.
        unsafe { write(std::process::id(), to, [1u8; 5].as_ptr(), 5) }.unwrap();
        assert_eq!(target[..6], [1, 1, 1, 1, 1, 3]);
        // SAFETY: as above; there is nothing at such an address, and no such process.
        unsafe {
            assert_eq!(read(std::process::id(), 8, target.as_mut_ptr(), 8), Err(Errno::FAULT));
            assert_eq!(read(1 << 30, at, target.as_mut_ptr(), 8), Err(Errno::SRCH));
        }
    }
}

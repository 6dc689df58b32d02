//! Messages of a rank to its launcher: the end of a job whose program it cannot become.

use lineweave::process::name;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::{read, write};
use rustix::process::getppid;
use std::os::fd::BorrowedFd;

/// Time that a launcher has to answer, and then to end the job.
const PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Ends the whole job with this exit status where Hydra (MPICH, Intel MPI) started this process. It waits for ranks that have called `MPI_Init` until
/// all have, so one that exits before would leave the others waiting. Other launchers end a job when a rank fails. A script between, which may have
/// another program to go on with, decides by itself.
pub fn end_job(status: u8) {
    let parent = getppid().and_then(|parent| name(parent.as_raw_nonzero().get().unsigned_abs()));
    if !parent.is_some_and(|name| name.starts_with("hydra")) {
        return;
    }
    let Some(fd) = std::env::var("PMI_FD").ok().and_then(|fd| fd.parse().ok()).filter(|&fd| fd > 2) else {
        return;
    };
    // SAFETY: the launcher opened it for this process, and nothing in this process closes it.
    let fd = unsafe { BorrowedFd::borrow_raw(fd) };
    let answered = || {
        write(fd, b"cmd=init pmi_version=1 pmi_subversion=1\n")?;
        let came = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)], Some(&PATIENCE))?;
        let mut answer = [0; 256];
        Ok::<_, rustix::io::Errno>(came > 0 && read(fd, &mut answer)? > 0)
    };
    if answered().unwrap_or(false) && write(fd, format!("cmd=abort exitcode={status}\n").as_bytes()).is_ok() {
        // It ends this process too.
        let _ = poll(&mut [PollFd::from_borrowed_fd(fd, PollFlags::HUP)], Some(&PATIENCE));
    }
}

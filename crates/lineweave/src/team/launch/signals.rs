//! The signals that a launcher catches.

use crate::error::Error;
use crate::sync::{Count, Ordering};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::PipeFlags;
use rustix::process::Signal;
use std::ffi::{c_int, c_void};
use std::os::fd::OwnedFd;
use std::sync::OnceLock;
use std::time::Duration;

/// Those that are passed on: what asks a job to end, and what programs give a meaning of their own.
const PASSED: [c_int; 6] =
    [libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGUSR1, libc::SIGUSR2];

/// A bit for each signal that was caught and not yet passed on.
static CAUGHT: Count = Count::new(0);
/// A pipe that wakes who waits for signals: the end that is read, and the one that is written to.
static BELL: OnceLock<(OwnedFd, OwnedFd)> = OnceLock::new();

/// While it lives, signals wait to be passed on.
pub(super) struct Signals {
    bell: &'static OwnedFd,
    /// Actions for these signals before they were caught.
    before: Vec<(c_int, libc::sigaction)>,
}

impl Signals {
    /// Catches what is to be passed on, unless it is ignored, as the ranks then do, and news of children.
    pub(super) fn catch() -> Result<Signals, Error> {
        let pipe = rustix::pipe::pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)
            .map_err(|e| Error::system("making a pipe for signals", e, "; raise `ulimit -n`"))?;
        let (bell, _) = BELL.get_or_init(|| pipe);
        let mut signals = Signals { bell, before: Vec::new() };
        for signal in PASSED.into_iter().chain([libc::SIGCHLD]) {
            // SAFETY: a sigaction of zeros is a valid one; the handler has the form that the flags say, and does only what a handler may.
            unsafe {
                let mut before = std::mem::zeroed::<libc::sigaction>();
                let known = libc::sigaction(signal, std::ptr::null(), &mut before) == 0;
                if known && (before.sa_sigaction != libc::SIG_IGN || signal == libc::SIGCHLD) {
                    let mut ours = std::mem::zeroed::<libc::sigaction>();
                    ours.sa_sigaction = note as *const () as usize;
                    ours.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
                    libc::sigaction(signal, &ours, std::ptr::null_mut());
                    signals.before.push((signal, before));
                }
            }
        }
        Ok(signals)
    }

    /// Waits, no longer than that, and returns what is to be passed on. News of children end the wait, too.
    pub(super) fn next(&self, patience: Option<Duration>) -> Vec<Signal> {
        let until =
            patience.map(|p| Timespec { tv_sec: p.as_secs() as i64, tv_nsec: p.subsec_nanos().into() });
        // Interrupted is as good as woken.
        let _ = rustix::event::poll(&mut [PollFd::new(self.bell, PollFlags::IN)], until.as_ref());
        let mut rung = [0u8; 64];
        while rustix::io::read(self.bell, &mut rung).is_ok_and(|read| read == rung.len()) {}
        // Relaxed: the word is the whole message.
        let caught = CAUGHT.swap(0, Ordering::Relaxed);
        let is = |signal: &c_int| caught & 1 << signal != 0;
        PASSED.into_iter().filter(is).filter_map(Signal::from_named_raw).collect()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // SAFETY: it is what the system gave.
            unsafe { libc::sigaction(*signal, before, std::ptr::null_mut()) };
        }
    }
}

extern "C" fn note(signal: c_int, info: *mut libc::siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO what it knows of the signal.
    let by_terminal = unsafe { (*info).si_code } == libc::SI_KERNEL;
    // A terminal sends it to the ranks as well.
    if !by_terminal {
        // Relaxed: the word is the whole message.
        CAUGHT.fetch_or(1 << signal, Ordering::Relaxed);
    }
    if let Some((_, bell)) = BELL.get() {
        // One that is full wakes as well.
        let _ = rustix::io::write(bell, &[0]);
    }
}

//! System calls that fail on request, by a seccomp filter that asks another thread of the process what to answer. It needs no
//! privilege, sees calls that no library's function stands for, and holds for processes that are started below it.

use libc::{sock_filter, BPF_ABS, BPF_JEQ, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Which uses of a call are meant, by one of its arguments, counted from 0.
#[derive(Clone, Copy, Debug)]
pub enum Only {
    All,
    /// Those whose argument has one of these bits.
    Bits(u32, u32),
    /// Those whose argument is one of these.
    Values(u32, &'static [u32]),
}

/// Where the filter asks.
pub struct Listener(OwnedFd);

/// `SECCOMP_IOCTL_NOTIF_RECV` and `SECCOMP_IOCTL_NOTIF_SEND` of linux/seccomp.h.
const RECEIVE: u64 = 0xc050_2100;
const SEND: u64 = 0xc018_2101;
/// `SECCOMP_USER_NOTIF_FLAG_CONTINUE`, of Linux 5.5.
const CONTINUE: u32 = 1;

const fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code: code as u16, jt, jf, k }
}

const fn load(offset: u32) -> sock_filter {
    instruction(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0)
}

const fn verdict(verdict: u32) -> sock_filter {
    instruction(BPF_RET | BPF_K, verdict, 0, 0)
}

/// Skips so many instructions when the test holds.
fn skip_if(test: u32, k: u32, skipped: usize) -> sock_filter {
    instruction(BPF_JMP | test | BPF_K, k, skipped as u8, 0)
}

/// Where the lower half of an argument is in `struct seccomp_data`.
const fn argument(number: u32) -> u32 {
    let low = if cfg!(target_endian = "big") { 4 } else { 0 };
    16 + 8 * number + low
}

/// Asks about these calls, and lets all others pass.
fn program(calls: &[libc::c_long], only: Only) -> Vec<sock_filter> {
    let (ask, pass) = (verdict(libc::SECCOMP_RET_USER_NOTIF), verdict(libc::SECCOMP_RET_ALLOW));
    let any_of = |values: &mut dyn ExactSizeIterator<Item = u32>| -> Vec<sock_filter> {
        let count = values.len();
        values.enumerate().map(|(i, value)| skip_if(BPF_JEQ, value, count - i)).chain([pass]).collect()
    };
    let mut program = vec![load(0)];
    program.extend(any_of(&mut calls.iter().map(|&call| call as u32)));
    match only {
        Only::All => {}
        Only::Bits(number, bits) => {
            program.extend([load(argument(number)), skip_if(BPF_JSET, bits, 1), pass])
        }
        Only::Values(number, values) => {
            program.push(load(argument(number)));
            program.extend(any_of(&mut values.iter().copied()));
        }
    }
    program.push(ask);
    program
}

impl Listener {
    /// Puts the calling thread, and whatever it starts, below a filter that asks about these calls. Nothing where the kernel has no
    /// such filter or does not permit it.
    pub fn install(calls: &[libc::c_long], only: Only) -> Option<Listener> {
        let mut program = program(calls, only);
        let whole = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // SAFETY: the program outlives the calls, which copy it; they concern this thread only.
        let fd = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            let flags = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &whole)
        };
        // SAFETY: a new descriptor, which nobody else has.
        (fd >= 0).then(|| Listener(unsafe { OwnedFd::from_raw_fd(fd as i32) }))
    }

    /// Returns whether somebody asks, now or within a millisecond.
    pub fn is_asked(&self) -> bool {
        let mut polled = libc::pollfd { fd: self.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which is writable.
        unsafe { libc::poll(&mut polled, 1, 1) > 0 && polled.revents & libc::POLLIN != 0 }
    }

    /// Has the call that is asked about fail with an error, or go on where there is none; whether there was one.
    pub fn answer(&self, errno: Option<i32>) -> bool {
        // SAFETY: both are plain numbers, of which the kernel wants zeros.
        let (mut asked, mut answer) = unsafe {
            (std::mem::zeroed::<libc::seccomp_notif>(), std::mem::zeroed::<libc::seccomp_notif_resp>())
        };
        // SAFETY: the kernel writes to a structure of its own layout. Who asked may be gone by now.
        if unsafe { libc::ioctl(self.0.as_raw_fd(), RECEIVE as _, &mut asked) } != 0 {
            return false;
        }
        answer.id = asked.id;
        match errno {
            Some(errno) => answer.error = -errno,
            None => answer.flags = CONTINUE,
        }
        // SAFETY: as above.
        unsafe { libc::ioctl(self.0.as_raw_fd(), SEND as _, &mut answer) == 0 }
    }
}

//! Teams of processes that find each other at a Unix socket.
//!
//! 1. The host listens at a path, or at an abstract name (`@name`), which leaves no file behind.
//! 2. A rank connects and says which version it is and which rank it wants (or any).
//! 3. The host checks that the peer's user is its own, and answers with a rank and, as ancillary data
//!    (`SCM_RIGHTS`), the segment's descriptor; or with the reason for refusing.
//! 4. The rank checks the host's user as well, and joins.

use super::processes::attach;
use super::Team;
use crate::communicator::Communicator;
use crate::error::Error;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketAddrUnix, SocketFlags, SocketType,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// "lineweave" rendezvous, and the version of its two messages.
const HELLO: u64 = u64::from_le_bytes(*b"lw-rdv-1");
/// Wanted by a rank that takes any.
const ANY: u64 = u64::MAX;
/// Answers: welcome (with a rank), or why not.
const WELCOME: u64 = 0;
const REFUSED_USER: u64 = 1;
const REFUSED_VERSION: u64 = 2;
const REFUSED_RANK: u64 = 3;

/// How long a host with a time limit waits before it looks at the clock again.
const LOOK: Duration = Duration::from_millis(100);

/// A listening host.
#[derive(Debug)]
pub struct Host {
    socket: OwnedFd,
    /// The file to remove, unless the name is abstract.
    file: Option<PathBuf>,
}

pub(super) fn address(name: &str) -> Result<SocketAddrUnix, Error> {
    let made = match name.strip_prefix('@') {
        Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()),
        None => SocketAddrUnix::new(name),
    };
    made.map_err(|e| {
        Error::system(format!("the socket name `{name}`"), e, "; give a path of at most 107 bytes, or @name")
    })
}

pub(super) fn socket() -> Result<OwnedFd, Error> {
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(|e| Error::system("opening a Unix socket", e, ""))
}

/// The user at the other end.
pub(super) fn peer_user(socket: BorrowedFd<'_>) -> Result<u32, Error> {
    rustix::net::sockopt::socket_peercred(socket)
        .map(|c| c.uid.as_raw())
        .map_err(|e| Error::system("asking for the peer's user", e, ""))
}

pub(super) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

impl Host {
    /// Listens at a path or at an abstract `@name`.
    ///
    /// # Errors
    /// [`Error::System`] when the name is taken or not permitted.
    pub fn bind(name: &str) -> Result<Host, Error> {
        let socket = socket()?;
        rustix::net::bind(&socket, &address(name)?).map_err(|e| {
            Error::system(format!("listening at `{name}`"), e, "; choose a name that is not in use")
        })?;
        let file = (!name.starts_with('@')).then(|| PathBuf::from(name));
        let host = Host { socket, file };
        rustix::net::listen(&host.socket, 4096)
            .map_err(|e| Error::system(format!("listening at `{name}`"), e, ""))?;
        Ok(host)
    }

    /// Hands every rank but those in `taken` to the first that ask, and returns when none is left.
    ///
    /// A peer of another user or version, or one that wants a rank that is not free, is refused and told why;
    /// that does not end the serving.
    ///
    /// # Errors
    /// [`Error::System`] when the socket fails.
    pub fn serve(&self, team: &Team, taken: &[usize]) -> Result<(), Error> {
        self.serve_until(team, taken, None)
    }

    /// [`Host::serve`], for at most `patience`; ranks that have not asked by then are left out.
    ///
    /// # Errors
    /// Those of [`Host::serve`].
    pub fn serve_within(&self, team: &Team, taken: &[usize], patience: Duration) -> Result<(), Error> {
        self.serve_until(team, taken, Some(Instant::now() + patience))
    }

    fn serve_until(&self, team: &Team, taken: &[usize], end: Option<Instant>) -> Result<(), Error> {
        let mut free: Vec<usize> = (0..team.segment.ranks()).filter(|r| !taken.contains(r)).collect();
        while !free.is_empty() {
            if let Some(end) = end {
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(());
                }
                let limit = Timespec::try_from(left.min(LOOK)).expect("a short time fits");
                let asked =
                    poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&limit)).unwrap_or_default();
                if asked == 0 {
                    continue;
                }
            }
            let peer = rustix::net::accept_with(&self.socket, SocketFlags::CLOEXEC)
                .map_err(|e| Error::system("accepting a rank", e, ""))?;
            // A peer that hangs up in between is as if it had never come.
            let _ = serve_one(peer.as_fd(), team, &mut free);
        }
        Ok(())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // Somebody may have removed it already; there is nothing more to do.
            let _ = std::fs::remove_file(file);
        }
    }
}

fn serve_one(peer: BorrowedFd<'_>, team: &Team, free: &mut Vec<usize>) -> Result<(), Error> {
    let lost = |e: rustix::io::Errno| Error::system("talking to a joining rank", e, "");
    let mut hello = [0u8; 24];
    let (read, _) = rustix::net::recv(peer, &mut hello[..], RecvFlags::empty()).map_err(lost)?;
    let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|b| hello[i * 8 + b]));
    let wanted = word(2);
    let answer = if peer_user(peer)? != own_user() {
        [REFUSED_USER, u64::from(own_user())]
    } else if read != hello.len() || word(0) != HELLO || word(1) != version() {
        [REFUSED_VERSION, version()]
    } else {
        match free.iter().position(|&r| wanted == ANY || r as u64 == wanted) {
            None => [REFUSED_RANK, wanted],
            Some(i) => [WELCOME, free.remove(i) as u64],
        }
    };
    let bytes: Vec<u8> = answer.iter().flat_map(|w| w.to_le_bytes()).collect();
    let fds = [team.segment.fd()];
    let mut space = [MaybeUninit::<u8>::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if answer[0] == WELCOME {
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    }
    let sent = rustix::net::sendmsg(peer, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL);
    if sent.is_err() && answer[0] == WELCOME {
        free.insert(0, answer[1] as usize);
    }
    sent.map(|_| ()).map_err(lost)
}

/// The version's last eight characters.
pub(super) fn version() -> u64 {
    packed(env!("CARGO_PKG_VERSION"))
}

fn packed(version: &str) -> u64 {
    version.bytes().fold(0, |h, b| h << 8 | u64::from(b))
}

/// Which version a host says that it is.
pub(super) fn host_of(version: u64) -> String {
    let text: Vec<u8> = version.to_be_bytes().into_iter().skip_while(|&b| b == 0).collect();
    match text.iter().all(u8::is_ascii_graphic) && !text.is_empty() {
        true => format!("a host of lineweave {}", String::from_utf8_lossy(&text)),
        false => format!("a host of another version (mark {version:x})"),
    }
}

/// Joins the team hosted at `name`, as `rank` or as any free rank.
///
/// # Errors
/// [`Error::OtherUser`], [`Error::Foreign`] when versions differ, [`Error::System`] when nobody listens there or
/// the rank is taken; those of joining.
pub fn connect(name: &str, rank: Option<usize>) -> Result<Communicator, Error> {
    connect_within(name, rank, Duration::ZERO)
}

/// [`connect`], where the host may not listen yet: tries for `patience`.
///
/// # Errors
/// Those of [`connect`].
pub fn connect_within(name: &str, rank: Option<usize>, patience: Duration) -> Result<Communicator, Error> {
    let (socket, address, start) = (socket()?, address(name)?, Instant::now());
    loop {
        match rustix::net::connect(&socket, &address) {
            Ok(()) => break,
            Err(Errno::NOENT | Errno::CONNREFUSED) if start.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(e) => {
                let what = format!("joining the team at `{name}`");
                return Err(Error::system(what, e, "; is its host running?"));
            }
        }
    }
    let lost = |e: rustix::io::Errno| Error::system(format!("talking to the host at `{name}`"), e, "");
    let host = peer_user(socket.as_fd())?;
    if host != own_user() {
        return Err(Error::OtherUser { expected: own_user(), found: host });
    }
    let wanted = rank.map_or(ANY, |r| r as u64);
    let hello: Vec<u8> = [HELLO, version(), wanted].iter().flat_map(|w| w.to_le_bytes()).collect();
    rustix::net::send(&socket, &hello, SendFlags::NOSIGNAL).map_err(lost)?;

    let mut answer = [0u8; 16];
    let mut space = [MaybeUninit::<u8>::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::net::recvmsg(
        &socket,
        &mut [IoSliceMut::new(&mut answer)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )
    .map_err(lost)?;
    let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|b| answer[i * 8 + b]));
    let foreign = |found: String| Error::Foreign {
        expected: format!("a host of lineweave {}", env!("CARGO_PKG_VERSION")),
        found,
    };
    if received.bytes != answer.len() || received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(foreign(format!("an answer of {} bytes", received.bytes)));
    }
    match word(0) {
        WELCOME => {}
        REFUSED_USER => return Err(Error::OtherUser { expected: word(1) as u32, found: own_user() }),
        REFUSED_VERSION => return Err(foreign(host_of(word(1)))),
        REFUSED_RANK => {
            return Err(Error::system(
                format!("joining the team at `{name}`"),
                rank.map_or_else(|| "no rank is free".into(), |r| format!("rank {r} is not free")),
                "; start exactly as many ranks as the team has",
            ))
        }
        other => return Err(foreign(format!("answer {other}"))),
    }
    let fd = ancillary
        .drain()
        .find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        })
        .ok_or_else(|| foreign("an answer without a descriptor".into()))?;
    attach(fd, word(1) as usize)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_another_version_is_named_with_this_one() {
        let name = format!("@lineweave-test-version-{}", std::process::id());
        let host = Host::bind(&name).unwrap();
        let said = std::thread::scope(|scope| {
            let rank = scope.spawn(|| connect(&name, None).unwrap_err().to_string());
            let peer = rustix::net::accept(&host.socket).unwrap();
            let mut hello = [0u8; 24];
            rustix::net::recv(&peer, &mut hello[..], RecvFlags::empty()).unwrap();
            let answer: Vec<u8> =
                [REFUSED_VERSION, packed("0.12.3")].iter().flat_map(|w| w.to_le_bytes()).collect();
            rustix::net::send(&peer, &answer, SendFlags::NOSIGNAL).unwrap();
            rank.join().unwrap()
        });
        let ours = format!("expected a host of lineweave {}", env!("CARGO_PKG_VERSION"));
        assert!(said.contains(&ours) && said.contains("found a host of lineweave 0.12.3"), "{said}");
    }

    #[test]
    fn a_rank_of_another_version_is_refused_and_told_of_this_one() {
        let name = format!("@lineweave-test-rank-{}", std::process::id());
        let host = Host::bind(&name).unwrap();
        let team = Team::new(1).unwrap();
        let answer = std::thread::scope(|scope| {
            let rank = scope.spawn(|| {
                let socket = socket().unwrap();
                rustix::net::connect(&socket, &address(&name).unwrap()).unwrap();
                let hello: Vec<u8> =
                    [HELLO, packed("9.9.9"), ANY].iter().flat_map(|w| w.to_le_bytes()).collect();
                rustix::net::send(&socket, &hello, SendFlags::NOSIGNAL).unwrap();
                let mut answer = [0u8; 16];
                rustix::net::recv(&socket, &mut answer[..], RecvFlags::empty()).unwrap();
                answer
            });
            // Nobody is welcome, so that serving ends with the time.
            host.serve_within(&team, &[], Duration::from_millis(300)).unwrap();
            rank.join().unwrap()
        });
        let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|b| answer[i * 8 + b]));
        assert_eq!((word(0), word(1)), (REFUSED_VERSION, version()));
    }
}

//! The door of a team: a Unix socket at which processes of one user get the team's descriptor.
//!
//! 1. Somebody opens the door at a path, or at an abstract name (`@name`), which leaves no file behind.
//! 2. A guest connects, and makes sure that the door is its own user's.
//! 3. The host lets in whoever comes, asks the kernel for the guest's user, and hangs up on those of others before it
//!    reads anything.
//! 4. The guest says which version it is, how many ranks it expects, which rank it wants (or any), and on which CPUs it may run.
//! 5. The host answers with a rank and, as ancillary data (`SCM_RIGHTS`), the team's descriptor; or with the reason for refusing.
//! 6. The guest hangs up when it has the descriptor. A guest that cannot go on says so, and so does a host.
//!
//! Sockets do not block, and both sides wait by a [`Clock`]. A guest that says nothing holds nobody up, and is let go after
//! a while, or when its descriptor is needed.

mod message;
mod pending;

use message::{bytes, host_of, word, APART, FAILED};
pub(super) use message::{JoinReply, JoinRequest};
pub(super) use pending::{gave_up, Connection, PendingConnections};

use super::processes::attach;
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
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest wait before the next look at the clock, and the next question whether to go on.
const LOOK: Duration = Duration::from_millis(50);
/// Longest silence of a guest: it speaks as soon as it is connected.
const SILENCE: Duration = Duration::from_secs(5);

/// Until when to wait, and whether to go on.
pub(super) struct Clock<'a> {
    began: Instant,
    patience: Option<Duration>,
    look: &'a mut dyn FnMut() -> Result<(), Error>,
}

impl Clock<'_> {
    /// From now, for so long if there is a limit. `look` is called every so often, and ends the wait by an error.
    pub fn new(patience: Option<Duration>, look: &mut dyn FnMut() -> Result<(), Error>) -> Clock<'_> {
        Clock { began: Instant::now(), patience, look }
    }

    fn left(&self) -> Duration {
        self.patience.map_or(LOOK, |patience| patience.saturating_sub(self.began.elapsed()))
    }

    /// The limit, for messages.
    pub fn seconds(&self) -> f64 {
        self.patience.unwrap_or_default().as_secs_f64()
    }

    /// The question whether to go on.
    pub fn look(&mut self) -> &mut dyn FnMut() -> Result<(), Error> {
        self.look
    }

    /// Sleeps; whether there is time left.
    pub fn wait(&mut self, pause: Duration) -> Result<bool, Error> {
        (self.look)()?;
        crate::sync::sleep(pause);
        Ok(!self.left().is_zero())
    }

    /// Waits until one of these is ready, but not for long; whether there is time left.
    fn poll(&mut self, polled: &mut [PollFd<'_>]) -> Result<bool, Error> {
        (self.look)()?;
        let limit = Timespec::try_from(self.left().min(LOOK)).expect("a short time fits");
        match poll(polled, Some(&limit)) {
            Ok(_) | Err(Errno::INTR) => Ok(!self.left().is_zero()),
            // Others may count on this rank by now, and memory may be there in a moment.
            Err(Errno::NOMEM) => self.wait(Duration::from_millis(1)),
            Err(e) => Err(Error::system("waiting for the other ranks (poll)", e, "")),
        }
    }
}

fn address(name: &str) -> Result<SocketAddrUnix, Error> {
    let made = match name.strip_prefix('@') {
        Some(name) => SocketAddrUnix::new_abstract_name(name.as_bytes()),
        None => SocketAddrUnix::new(name),
    };
    made.map_err(|e| {
        Error::system(format!("the socket name `{name}`"), e, "; give a path of at most 107 bytes, or @name")
    })
}

fn socket() -> Result<OwnedFd, Error> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
        .map_err(|e| Error::system("opening a Unix socket (socket)", e, "; check `ulimit -n`"))
}

/// The process and the user at the other end, by numbers of this one's namespaces. A process that has no number here is 0, for which rustix has no
/// value.
fn peer(socket: &OwnedFd) -> Result<libc::ucred, Error> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut size = std::mem::size_of::<libc::ucred>() as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: the kernel writes at most `size` bytes to a structure of that size, which holds any bits.
    let done = unsafe {
        libc::getsockopt(socket.as_raw_fd(), level, name, std::ptr::from_mut(&mut peer).cast(), &mut size)
    };
    match done {
        0 => Ok(peer),
        _ => {
            let e = std::io::Error::last_os_error();
            Err(Error::system("asking for the peer's user (getsockopt)", e, ""))
        }
    }
}

/// Operation that the error about ranks in different pid namespaces names.
const MEETING: &str = "meeting the other ranks";

/// Returns whether it is [`apart`].
pub(super) fn is_apart(error: &Error) -> bool {
    matches!(error, Error::System { what, .. } if what == MEETING)
}

/// Ranks watch over each other's processes by their numbers.
fn apart() -> Error {
    Error::system(
        MEETING,
        "they run in different pid namespaces, where a process of one has no number in the other",
        "; start all in one, such as with --pid=host, or --pid=container:NAME for the same container",
    )
}

fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// A door that is open.
#[derive(Debug)]
pub(super) struct RendezvousSocket {
    socket: OwnedFd,
    /// The file to remove, unless the name is abstract.
    file: Option<PathBuf>,
}

impl RendezvousSocket {
    /// Opens a door at a path or at an abstract `@name`; nothing, if the name is in use.
    pub fn open(name: &str) -> Result<Option<RendezvousSocket>, Error> {
        let failed = |e| Error::system(format!("listening at `{name}` (bind, listen)"), e, "");
        let socket = socket()?;
        match rustix::net::bind(&socket, &address(name)?) {
            Ok(()) => {}
            Err(Errno::ADDRINUSE) => return Ok(None),
            Err(e) => return Err(failed(e)),
        }
        let socket = RendezvousSocket { socket, file: (!name.starts_with('@')).then(|| PathBuf::from(name)) };
        rustix::net::listen(&socket.socket, 4096).map_err(failed)?;
        Ok(Some(socket))
    }

    /// Returns the pending connections of guests to this socket, none so far.
    pub fn pending(&self) -> PendingConnections<'_> {
        PendingConnections::at(&self.socket)
    }
}

impl Drop for RendezvousSocket {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // Somebody may have removed it already; there is nothing more to do.
            let _ = std::fs::remove_file(file);
        }
    }
}

fn answer(socket: &OwnedFd, what: JoinReply, fd: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
    let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
    let mut space = [MaybeUninit::<u8>::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    }
    let said = bytes(&what.words());
    rustix::net::sendmsg(socket, &[IoSlice::new(&said)], &mut ancillary, SendFlags::NOSIGNAL).map(drop)
}

/// Connects to the door at `name`; or why it may be worth to try again: there is none yet, or its queue is full.
pub(super) fn reach(name: &str) -> Result<Result<OwnedFd, Errno>, Error> {
    let socket = socket()?;
    match rustix::net::connect(&socket, &address(name)?) {
        Ok(()) => Ok(Ok(socket)),
        Err(e @ (Errno::NOENT | Errno::CONNREFUSED | Errno::AGAIN | Errno::INTR)) => Ok(Err(e)),
        Err(e) => Err(Error::system(format!("connecting to `{name}`"), e, "")),
    }
}

/// Says hello to the host at the other end, and joins as it answers.
pub(super) fn ask(
    name: &str,
    socket: OwnedFd,
    request: &JoinRequest,
    clock: &mut Clock<'_>,
) -> Result<Communicator, Error> {
    let (team, rank) = seat(name, &socket, request, clock).inspect_err(|error| {
        if matches!(error, Error::System { .. }) && !is_apart(error) {
            // The host does not wait for this rank. One that is gone has nobody to tell.
            let _ = rustix::net::send(&socket, FAILED, SendFlags::NOSIGNAL);
        }
    })?;
    drop(socket);
    attach(team, rank)
}

/// Says hello to the host at the other end, and returns the team's descriptor and the rank that it answers with.
fn seat(
    name: &str,
    socket: &OwnedFd,
    request: &JoinRequest,
    clock: &mut Clock<'_>,
) -> Result<(OwnedFd, usize), Error> {
    let refused = |why: String| Error::Meeting { name: name.to_owned(), why };
    let lost = |e: Errno| Error::system(format!("talking to the host at `{name}` (send, recvmsg)"), e, "");
    let foreign = |found: String| Error::Foreign {
        expected: format!("a host of lineweave {}", env!("CARGO_PKG_VERSION")),
        found,
    };
    let libc::ucred { pid, uid: host, .. } = peer(socket)?;
    if host != own_user() {
        return Err(Error::OtherUser { expected: own_user(), found: host });
    }
    if pid == 0 {
        // The host, which may see this process, has it told to all. One that is gone has nobody to tell.
        let _ = rustix::net::send(socket, APART, SendFlags::NOSIGNAL);
        return Err(apart());
    }
    match rustix::net::send(socket, &bytes(&request.words()), SendFlags::NOSIGNAL) {
        // A host that hung up may have said why.
        Ok(_) | Err(Errno::PIPE | Errno::CONNRESET) => {}
        Err(e) => return Err(lost(e)),
    }
    let mut said = [0u8; 16];
    let mut space = [MaybeUninit::<u8>::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut into = [IoSliceMut::new(&mut said)];
        match rustix::net::recvmsg(socket, &mut into, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Ok(received) => break received,
            Err(Errno::AGAIN) => {
                if !clock.poll(&mut [PollFd::new(socket, PollFlags::IN)])? {
                    let why = format!("the host did not answer within {:.0} s", clock.seconds());
                    return Err(refused(why));
                }
            }
            // It hung up without reading; what it said before that comes next.
            Err(Errno::INTR | Errno::CONNRESET) => {}
            // The host counts on this rank by now. The answer stays, and memory for it may be there in a moment.
            Err(Errno::NOMEM | Errno::NOBUFS) if clock.wait(Duration::from_millis(1))? => {}
            Err(e) => return Err(lost(e)),
        }
    };
    if received.bytes == 0 {
        return Err(refused("the host went away before it answered".into()));
    }
    if received.bytes != said.len() {
        return Err(foreign(format!("an answer of {} bytes", received.bytes)));
    }
    let rank = match JoinReply::read([word(&said, 0), word(&said, 1)]) {
        Some(JoinReply::Welcome(rank)) => rank,
        Some(JoinReply::Version(version)) => return Err(foreign(host_of(version))),
        Some(JoinReply::Size(ranks)) => {
            let expected = request.ranks.map_or_else(String::new, |n| format!(" and this one {n}"));
            return Err(refused(format!("the others expect {ranks} ranks{expected}")));
        }
        Some(JoinReply::Taken) => {
            let why = |rank| format!("rank {rank} is taken, or the team has no such rank");
            return Err(refused(request.rank.map_or_else(|| "no rank is free".into(), why)));
        }
        Some(JoinReply::Apart) => return Err(apart()),
        Some(JoinReply::Failed) => {
            let what = format!("joining the team at `{name}`");
            return Err(Error::system(what, "its host cannot go on, and has said why", ""));
        }
        Some(JoinReply::Late(present)) => {
            return Err(refused(absent(present, request.ranks, clock.seconds())))
        }
        None => return Err(foreign(format!("answer {}", word(&said, 0)))),
    };
    let fd = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    match fd {
        Some(fd) => Ok((fd, rank)),
        None if received.flags.contains(ReturnFlags::CTRUNC) => Err(Error::system(
            "receiving the team's descriptor",
            "there is no room for it",
            "; close descriptors, or raise `ulimit -n`",
        )),
        None => Err(foreign("an answer without a descriptor".into())),
    }
}

/// Why a team was not formed.
pub(super) fn absent(present: usize, ranks: Option<usize>, seconds: f64) -> String {
    let of = ranks.map_or_else(String::new, |ranks| format!(" of {ranks}"));
    format!("{present}{of} ranks came within {seconds:.0} s")
}

#[cfg(all(test, not(loom)))]
mod tests;

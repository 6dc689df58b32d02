//! The host's side of a door: those who have come.

use super::message::{version, APART, FAILED, WORDS};
use super::{answer, apart, own_user, peer, Clock, JoinReply, JoinRequest, SILENCE};
use crate::error::Error;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Time in which guests of a host that cannot go on still come to be told: most ranks of a job start together.
const LINGER: Duration = Duration::from_secs(1);

/// A rank that said that it cannot go on.
pub(in super::super) fn gave_up(rank: Option<usize>) -> Error {
    let who = rank.map_or_else(|| "a rank".to_owned(), |rank| format!("rank {rank}"));
    Error::system("waiting for the other ranks", format!("{who} cannot go on, and has said why"), "")
}

/// Accepted connections that have not sent a request yet.
pub(in super::super) struct PendingConnections<'a> {
    socket: &'a OwnedFd,
    silent: Vec<(OwnedFd, Instant)>,
}

impl PendingConnections<'_> {
    pub(super) fn at(socket: &OwnedFd) -> PendingConnections<'_> {
        PendingConnections { socket, silent: Vec::new() }
    }

    /// The next guest who says what it wants; nothing when the time is over.
    fn next(&mut self, clock: &mut Clock<'_>) -> Result<Option<Connection>, Error> {
        loop {
            self.silent.retain(|(_, since)| since.elapsed() < SILENCE);
            let sockets = std::iter::once(self.socket).chain(self.silent.iter().map(|(s, _)| s));
            let mut polled: Vec<PollFd<'_>> = sockets.map(|s| PollFd::new(s, PollFlags::IN)).collect();
            if !clock.poll(&mut polled)? {
                return Ok(None);
            }
            // Those who speak first, so that nobody is let go who did.
            match polled.iter().rposition(|p| !p.revents().is_empty()) {
                None => {}
                Some(0) => self.admit()?,
                Some(i) => {
                    let heard = Connection::hear(self.silent.remove(i - 1).0)?;
                    if heard.is_some() {
                        return Ok(heard);
                    }
                }
            }
        }
    }

    /// The next guest who expects a team of so many ranks and for whom there is a seat; the others are told why they are refused.
    pub fn next_seated<S>(
        &mut self,
        ranks: usize,
        clock: &mut Clock<'_>,
        mut seat: impl FnMut(&JoinRequest) -> Option<S>,
    ) -> Result<Option<(Connection, S)>, Error> {
        while let Some(connection) = self.next(clock)? {
            let refusal = match connection.request.ranks.is_none_or(|expected| expected == ranks) {
                false => JoinReply::Size(ranks),
                true => match seat(&connection.request) {
                    Some(seat) => return Ok(Some((connection, seat))),
                    None => JoinReply::Taken,
                },
            };
            // A guest that hangs up in between is as if it had never come.
            connection.answer(refusal, None)?;
        }
        Ok(None)
    }

    /// Lets one in, unless it is another user's.
    fn admit(&mut self) -> Result<(), Error> {
        match rustix::net::accept_with(self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK) {
            Ok(connection) => match peer(&connection)? {
                libc::ucred { uid, .. } if uid != own_user() => {}
                libc::ucred { pid: 0, .. } => {
                    // A guest that hung up by now needs no answer.
                    let _ = answer(&connection, JoinReply::Apart, None);
                    return Err(apart());
                }
                _ => self.silent.push((connection, Instant::now())),
            },
            Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => {}
            // The first that came and said nothing makes room.
            Err(Errno::MFILE | Errno::NFILE) if !self.silent.is_empty() => drop(self.silent.remove(0)),
            Err(e) => return Err(Error::system("accepting a rank (accept)", e, "; check `ulimit -n`")),
        }
        Ok(())
    }

    /// Tells those who have come that the host cannot go on, and returns how many they are. What failed may be a call: this neither polls nor
    /// asks who they are.
    pub fn refuse(&mut self) -> usize {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let queued = std::iter::from_fn(|| rustix::net::accept_with(self.socket, flags).ok());
        let all = self.silent.drain(..).map(|(guest, _)| guest).chain(queued);
        all.filter(|guest| answer(guest, JoinReply::Failed, None).is_ok()).count()
    }

    /// Tells so many guests, also those that come within a moment.
    pub fn refuse_all(&mut self, guests: usize, look: &mut dyn FnMut() -> Result<(), Error>) {
        let mut clock = Clock::new(Some(LINGER), look);
        let mut told = self.refuse();
        while told < guests && clock.wait(Duration::from_millis(1)).unwrap_or(false) {
            told += self.refuse();
        }
    }
}

/// One who has come and said what it wants.
#[derive(Debug)]
pub(in super::super) struct Connection {
    socket: OwnedFd,
    pub request: JoinRequest,
}

impl Connection {
    /// Reads what it says. Nothing, when it hung up or was refused; an error, when it does not see this process.
    fn hear(socket: OwnedFd) -> Result<Option<Connection>, Error> {
        // One byte more than it should be, to see one that is longer.
        let mut said = [0u8; WORDS * 8 + 1];
        let Some((read, _)) =
            rustix::net::recv(&socket, &mut said[..], RecvFlags::empty()).ok().filter(|r| r.0 > 0)
        else {
            return Ok(None);
        };
        if said[..read] == APART[..] {
            return Err(apart());
        }
        if said[..read] == FAILED[..] {
            return Err(gave_up(None));
        }
        let Some(request) = JoinRequest::read(&said[..read]) else {
            // A guest that hung up by now needs no answer.
            let _ = answer(&socket, JoinReply::Version(version()), None);
            return Ok(None);
        };
        Ok(Some(Connection { socket, request }))
    }

    /// Returns whether it has not hung up.
    pub fn is_here(&self) -> bool {
        let mut polled = [PollFd::new(&self.socket, PollFlags::empty())];
        // If the system does not say, answering will tell.
        !matches!(poll(&mut polled, Some(&Timespec::default())), Ok(1..))
    }

    /// Returns whether it has said that it cannot go on.
    pub fn has_failed(&self) -> bool {
        let mut said = [0u8; FAILED.len()];
        let mut hear = || rustix::net::recv(&self.socket, &mut said[..], RecvFlags::DONTWAIT);
        // It hung up without reading its answer; what it said before that comes next.
        let heard = hear().or_else(|e| if e == Errno::CONNRESET { hear() } else { Err(e) });
        heard.is_ok() && said == *FAILED
    }

    /// Waits until it hangs up, as it does when it has its answer, but not for ever. Returns whether it can go on.
    pub fn settle(&self, clock: &mut Clock<'_>) -> Result<bool, Error> {
        let began = Instant::now();
        while began.elapsed() < SILENCE {
            let mut polled = [PollFd::new(&self.socket, PollFlags::IN)];
            let in_time = clock.poll(&mut polled)?;
            if !in_time || !polled[0].revents().is_empty() {
                break;
            }
        }
        Ok(!self.has_failed())
    }

    /// Answers; a guest that is welcome gets the descriptor. Whether it was still there to hear it.
    pub fn answer(&self, what: JoinReply, fd: Option<BorrowedFd<'_>>) -> Result<bool, Error> {
        match answer(&self.socket, what, fd) {
            Ok(()) => Ok(true),
            Err(Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN) => Ok(false),
            Err(e) => Err(Error::system("answering a rank that asks for its team (sendmsg)", e, "")),
        }
    }
}

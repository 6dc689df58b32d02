//! Teams of processes that come to a host, each when it likes.

use super::rendezvous::{ask, gave_up, reach, Clock, Connection, JoinReply, JoinRequest, RendezvousSocket};
use super::{bounded, Team, PATIENCE};
use crate::communicator::Communicator;
use crate::error::Error;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Guests that have their answers and whose end of it is still awaited: no more descriptors than this.
const UNSETTLED: usize = 64;

/// A listening host.
///
/// ```
/// use lineweave::team::{connect, Host, Team};
/// let name = format!("@example-of-a-host-{}", std::process::id());
/// let (host, team) = (Host::bind(&name)?, Team::new(3)?);
/// std::thread::scope(|scope| {
///     // Threads here; as a rule these are in other processes.
///     let peers = [1, 2].map(|rank| scope.spawn({
///         let name = &name;
///         move || connect(name, Some(rank))?.barrier()
///     }));
///     host.serve(&team, &[0])?;
///     team.join(0)?.barrier()?;
///     peers.into_iter().try_for_each(|peer| peer.join().expect("no rank panics"))
/// })?;
/// # Ok::<(), lineweave::Error>(())
/// ```
#[derive(Debug)]
pub struct Host(RendezvousSocket);

impl Host {
    /// Listens at a path or at an abstract `@name`.
    ///
    /// # Errors
    /// [`Error::System`] when the name is taken or not permitted.
    pub fn bind(name: &str) -> Result<Host, Error> {
        let taken = || {
            let what = format!("listening at `{name}`");
            Error::system(what, "the name is taken", "; choose one that is not in use")
        };
        Ok(Host(RendezvousSocket::open(name)?.ok_or_else(taken)?))
    }

    /// Hands every rank but those in `taken` to the first that ask, and returns when none is left.
    ///
    /// A peer of another user or version, or one that wants a rank that is not free, is refused; that does not end the
    /// serving. One that says nothing holds nobody up.
    ///
    /// # Errors
    /// [`Error::System`] when the socket fails, or when a rank says that it cannot go on.
    pub fn serve(&self, team: &Team, taken: &[usize]) -> Result<(), Error> {
        self.serve_until(team, taken, None, &mut || Ok(())).map(drop)
    }

    /// [`Host::serve`], for at most `patience` and while `go_on` says so: it is asked at least 20 times a second, and its error ends the
    /// wait. Returns the ranks that nobody has asked for by then.
    ///
    /// # Errors
    /// The errors of [`Host::serve`], and that of `go_on`.
    pub fn serve_while(
        &self,
        team: &Team,
        taken: &[usize],
        patience: Duration,
        go_on: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<Vec<usize>, Error> {
        self.serve_until(team, taken, Some(patience), go_on)
    }

    fn serve_until(
        &self,
        team: &Team,
        taken: &[usize],
        patience: Option<Duration>,
        go_on: &mut dyn FnMut() -> Result<(), Error>,
    ) -> Result<Vec<usize>, Error> {
        let ranks = team.segment.ranks();
        let mut free: Vec<usize> = (0..ranks).filter(|r| !taken.contains(r)).collect();
        let (mut pending, mut clock) = (self.0.pending(), Clock::new(patience, go_on));
        let settle = |(rank, guest): (usize, Connection), clock: &mut Clock<'_>| match guest.settle(clock)? {
            true => Ok(()),
            false => {
                // Those that have joined do not wait for it.
                team.give_up(rank);
                Err(gave_up(Some(rank)))
            }
        };
        let mut serve = || {
            let mut seated = VecDeque::new();
            while !free.is_empty() {
                let seat = |request: &JoinRequest| {
                    free.iter().position(|&r| request.rank.is_none_or(|wanted| wanted == r))
                };
                let Some((guest, i)) = pending.next_seated(ranks, &mut clock, seat)? else { break };
                if guest.answer(JoinReply::Welcome(free[i]), Some(team.descriptor()))? {
                    seated.push_back((free.remove(i), guest));
                } else if guest.has_failed() {
                    return Err(gave_up(Some(free[i])));
                }
                // Each has a descriptor.
                while seated.len() > UNSETTLED {
                    seated.pop_front().map_or(Ok(()), |first| settle(first, &mut clock))?;
                }
            }
            seated.into_iter().try_for_each(|guest| settle(guest, &mut clock))
        };
        let served = serve();
        if served.is_err() {
            pending.refuse();
        }
        served.map(|()| free)
    }

    /// Tells so many guests that this host cannot go on: those that have come, and those that come within a second, while `go_on` says so. They
    /// then need not wait until their patience ends.
    pub fn refuse(&self, guests: usize, go_on: &mut dyn FnMut() -> Result<(), Error>) {
        self.0.pending().refuse_all(guests, go_on);
    }
}

/// Joins the team hosted at `name`, as `rank` or as any free rank. The host has [`PATIENCE`] to answer, [`bounded`].
/// [`Host`] has an example.
///
/// # Errors
/// [`Error::System`] when nobody listens there; [`Error::OtherUser`]; [`Error::Foreign`] when versions differ;
/// [`Error::Meeting`] when the rank is taken or there is no answer; those of joining.
pub fn connect(name: &str, rank: Option<usize>) -> Result<Communicator, Error> {
    connect_while(name, rank, Duration::ZERO, &mut || Ok(()))
}

/// [`connect`], where the host may not listen yet: tries for `patience`, while `go_on` says so: it is asked at least 20 times a second, and
/// its error ends the wait.
///
/// # Errors
/// The errors of [`connect`], and that of `go_on`.
pub fn connect_while(
    name: &str,
    rank: Option<usize>,
    patience: Duration,
    go_on: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<Communicator, Error> {
    let start = Instant::now();
    let socket = loop {
        let e = match reach(name)? {
            Ok(socket) => break socket,
            Err(e) => e,
        };
        // A queue that is full is a host's that is there.
        if start.elapsed() >= if e == Errno::AGAIN { patience.max(bounded(PATIENCE)) } else { patience } {
            let what = format!("joining the team at `{name}`");
            return Err(Error::system(what, e, "; is its host running?"));
        }
        go_on()?;
        crate::sync::sleep(Duration::from_millis(1));
    };
    ask(
        name,
        socket,
        &JoinRequest { rank, ..JoinRequest::default() },
        &mut Clock::new(Some(bounded(PATIENCE)), go_on),
    )
}

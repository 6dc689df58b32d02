//! Teams of processes that come to a host, each when it likes.

use super::door::{ask, reach, Answer, Clock, Door, Hello};
use super::{Team, PATIENCE};
use crate::communicator::Communicator;
use crate::error::Error;
use rustix::io::Errno;
use std::time::{Duration, Instant};

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
pub struct Host(Door);

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
        Ok(Host(Door::open(name)?.ok_or_else(taken)?))
    }

    /// Hands every rank but those in `taken` to the first that ask, and returns when none is left.
    ///
    /// A peer of another user or version, or one that wants a rank that is not free, is refused; that does not end the
    /// serving. One that says nothing holds nobody up.
    ///
    /// # Errors
    /// [`Error::System`] when the socket fails.
    pub fn serve(&self, team: &Team, taken: &[usize]) -> Result<(), Error> {
        self.serve_until(team, taken, None).map(drop)
    }

    /// [`Host::serve`], for at most `patience`; returns the ranks that nobody has asked for by then.
    ///
    /// # Errors
    /// Those of [`Host::serve`].
    pub fn serve_within(
        &self,
        team: &Team,
        taken: &[usize],
        patience: Duration,
    ) -> Result<Vec<usize>, Error> {
        self.serve_until(team, taken, Some(patience))
    }

    fn serve_until(
        &self,
        team: &Team,
        taken: &[usize],
        patience: Option<Duration>,
    ) -> Result<Vec<usize>, Error> {
        let ranks = team.segment.ranks();
        let mut free: Vec<usize> = (0..ranks).filter(|r| !taken.contains(r)).collect();
        let mut go_on = || Ok(());
        let (mut hall, mut clock) = (self.0.hall(), Clock::new(patience, &mut go_on));
        while !free.is_empty() {
            let seat = |hello: &Hello| free.iter().position(|&r| hello.rank.is_none_or(|wanted| wanted == r));
            let Some((guest, i)) = hall.next_seated(ranks, &mut clock, seat)? else { break };
            if guest.answer(Answer::Welcome(free[i]), Some(team.descriptor()))? {
                free.remove(i);
            }
        }
        Ok(free)
    }
}

/// Joins the team hosted at `name`, as `rank` or as any free rank. The host has [`PATIENCE`] to answer.
/// [`Host`] has an example.
///
/// # Errors
/// [`Error::System`] when nobody listens there; [`Error::OtherUser`]; [`Error::Foreign`] when versions differ;
/// [`Error::Meeting`] when the rank is taken or there is no answer; those of joining.
pub fn connect(name: &str, rank: Option<usize>) -> Result<Communicator, Error> {
    connect_within(name, rank, Duration::ZERO)
}

/// [`connect`], where the host may not listen yet: tries for `patience`.
///
/// # Errors
/// Those of [`connect`].
pub fn connect_within(name: &str, rank: Option<usize>, patience: Duration) -> Result<Communicator, Error> {
    let start = Instant::now();
    let socket = loop {
        let e = match reach(name)? {
            Ok(socket) => break socket,
            Err(e) => e,
        };
        // A queue that is full is a host's that is there.
        if start.elapsed() >= if e == Errno::AGAIN { patience.max(PATIENCE) } else { patience } {
            let what = format!("joining the team at `{name}`");
            return Err(Error::system(what, e, "; is its host running?"));
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let mut go_on = || Ok(());
    ask(name, &socket, &Hello { rank, ..Hello::default() }, &mut Clock::new(Some(PATIENCE), &mut go_on))
}

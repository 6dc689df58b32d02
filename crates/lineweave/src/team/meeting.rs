//! Teams of processes that were started by somebody else and know a name in common.
//!
//! 1. Every rank tries to open the door at the name (`socket.rs`). Who can is the host; the others connect to it.
//! 2. The host refuses who does not fit, and lets the others wait.
//! 3. When all have come, the host decides who sits where, makes the segment, and answers each with its rank.
//! 4. All join. A host that cannot go on tells those that have come, and those that come within a moment.
//!
//! That they can reach one Unix socket proves that they share a kernel; no launcher's word is needed for it.

use super::rendezvous::{
    absent, ask, gave_up, is_apart, reach, Clock, Connection, JoinReply, JoinRequest, PendingConnections,
    RendezvousSocket,
};
use super::{bounded, Team, TeamConfig};
use crate::communicator::Communicator;
use crate::config::ground;
use crate::cpus::UsableCpus;
use crate::error::{Error, Loss};
use crate::segment::MAX_RANKS;
use crate::settings::{Bind, Settings};
use crate::sysfile::Root;
use std::collections::BTreeSet;
use std::time::Duration;

/// Terms that the ranks of a team agreed upon before they meet.
#[derive(Clone, Copy, Debug)]
pub struct Meeting<'a> {
    /// A path, or an abstract name (`@name`), which leaves no file behind.
    pub name: &'a str,
    /// Ranks of the team.
    pub ranks: usize,
    /// The rank that the caller is to be, or whatever is left.
    pub rank: Option<usize>,
    /// Longest wait for the others, [`bounded`] by `LINEWEAVE_TIMEOUT`.
    pub patience: Duration,
    /// Binding of ranks to CPUs, instead of what the environment says.
    pub bind: Option<&'a Bind>,
}

/// Meets the other ranks, of which the first to come is the host. `look` is called every so often while waiting, and
/// ends it by an error.
///
/// # Errors
/// [`Error::Meeting`] when ranks do not come or do not fit; [`Error::OtherUser`], [`Error::Foreign`]; what `look` says; those
/// of making and joining a team.
///
/// ```
/// use lineweave::team::{meet, Meeting};
/// use std::time::Duration;
/// let name = format!("@example-of-a-meeting-{}", std::process::id());
/// let patience = Duration::from_secs(30);
/// let meeting = Meeting { name: &name, ranks: 2, rank: None, patience, bind: None };
/// std::thread::scope(|scope| {
///     // Threads here; as a rule each is a process that a scheduler started.
///     let ranks = [(); 2].map(|()| scope.spawn(|| meet(&meeting, &mut || Ok(()))?.barrier()));
///     ranks.into_iter().try_for_each(|rank| rank.join().expect("no rank panics"))
/// })?;
/// # Ok::<(), lineweave::Error>(())
/// ```
pub fn meet(
    meeting: &Meeting<'_>,
    look: &mut dyn FnMut() -> Result<(), Error>,
) -> Result<Communicator, Error> {
    let Meeting { ranks, rank, patience, .. } = *meeting;
    if ranks == 0 || ranks > MAX_RANKS {
        return Err(Error::TeamSize { ranks, most: MAX_RANKS });
    }
    if let Some(rank) = rank.filter(|&rank| rank >= ranks) {
        return Err(Error::Rank { rank, ranks, why: "the team has no such rank" });
    }
    let mut clock = Clock::new(Some(bounded(patience)), look);
    loop {
        if let Some(socket) = RendezvousSocket::open(meeting.name)? {
            let (mut connections, mut pending) = (Vec::new(), socket.pending());
            let hosted = host(meeting, &mut connections, &mut pending, &mut clock);
            let (team, rank) = hosted.inspect_err(|error| {
                // Nothing is said where the time is over or the wait was called off: the others see that the host hangs up.
                if !matches!(error, Error::Meeting { .. } | Error::Failed(_)) {
                    let reply = if is_apart(error) { JoinReply::Apart } else { JoinReply::Failed };
                    // That one is gone changes nothing.
                    connections.iter().for_each(|connection| drop(connection.answer(reply, None)));
                    pending.refuse_all(ranks - 1 - connections.len(), clock.look());
                }
            })?;
            // The name is free again when all have been answered.
            drop(socket);
            return team.join(rank);
        }
        // Who has opened the door and does not listen yet, or is gone by now, is not reached.
        if let Ok(socket) = reach(meeting.name)? {
            return ask(meeting.name, socket, &JoinRequest::own(Some(ranks), rank), &mut clock);
        }
        if !clock.wait(Duration::from_millis(1))? {
            let why = "somebody else has the name and does not answer".to_owned();
            return Err(Error::Meeting { name: meeting.name.to_owned(), why });
        }
    }
}

/// Waits for the others and gives them their ranks. Returns the team, and the host's own rank.
fn host(
    meeting: &Meeting<'_>,
    connections: &mut Vec<Connection>,
    pending: &mut PendingConnections<'_>,
    clock: &mut Clock<'_>,
) -> Result<(Team, usize), Error> {
    let ranks = meeting.ranks;
    let own = JoinRequest::own(Some(ranks), meeting.rank);
    while connections.len() + 1 < ranks {
        let seat = |request: &JoinRequest| {
            let wanted = request.rank;
            let is_taken = |connections: &[Connection]| {
                wanted.is_some()
                    && (own.rank == wanted || connections.iter().any(|g| g.request.rank == wanted))
            };
            // One that was started anew may take the place of one that hung up.
            if is_taken(connections) {
                connections.retain(Connection::is_here);
            }
            (wanted.is_none_or(|rank| rank < ranks) && !is_taken(connections)).then_some(())
        };
        let Some((connection, ())) = pending.next_seated(ranks, clock, seat)? else {
            connections.retain(Connection::is_here);
            let present = connections.len() + 1;
            for connection in &*connections {
                connection.answer(JoinReply::Late(present), None)?;
            }
            let why = absent(present, Some(ranks), clock.seconds());
            return Err(Error::Meeting { name: meeting.name.to_owned(), why });
        };
        connections.push(connection);
        if connections.len() + 1 == ranks {
            if let Some(failed) = connections.iter().find(|connection| connection.has_failed()) {
                return Err(gave_up(failed.request.rank));
            }
            connections.retain(Connection::is_here);
        }
    }
    let hellos: Vec<&JoinRequest> =
        std::iter::once(&own).chain(connections.iter().map(|g| &g.request)).collect();
    let places = seats(&hellos, ranks);
    let team = Team::with(config(meeting, &hellos, &places)?)?;
    for (connection, &rank) in connections.iter().zip(&places[1..]) {
        if !connection.answer(JoinReply::Welcome(rank), Some(team.descriptor()))? {
            team.segment.set_failed(rank, Loss::Died);
        }
    }
    for (connection, &rank) in connections.iter().zip(&places[1..]) {
        let own = |_: &Error| team.segment.set_failed(places[0], Loss::Failed);
        if !connection.settle(clock).inspect_err(own)? {
            team.segment.set_failed(rank, Loss::Failed);
        }
    }
    Ok((team, places[0]))
}

/// Each guest's rank: the one it wants, or the lowest that is left, in the order of coming.
fn seats(connections: &[&JoinRequest], ranks: usize) -> Vec<usize> {
    let wanted: BTreeSet<usize> = connections.iter().filter_map(|g| g.rank).collect();
    let mut left = (0..ranks).filter(|rank| !wanted.contains(rank));
    let seat = |g: &&JoinRequest| {
        g.rank.or_else(|| left.next()).expect("as many guests as ranks, none wanted twice")
    };
    connections.iter().map(seat).collect()
}

/// The team's configuration, by where its ranks may run. Who was bound to some CPUs by a launcher stays there.
fn config(
    meeting: &Meeting<'_>,
    connections: &[&JoinRequest],
    places: &[usize],
) -> Result<TeamConfig, Error> {
    let (mut settings, _) = Settings::from_environment()?;
    if let Some(bind) = meeting.bind {
        settings.bind = bind.clone();
    }
    let all: BTreeSet<usize> = connections.iter().flat_map(|g| &g.cpus).copied().collect();
    let usable = UsableCpus::read(&Root::live(), Ok(all.iter().copied().collect()));
    let (topology, tuning) = ground(&mut settings, &usable)?;
    let apart = connections.iter().any(|g| g.cpus != all);
    if apart {
        let mut of_rank: Vec<&BTreeSet<usize>> = vec![&all; connections.len()];
        for (connection, &rank) in connections.iter().zip(places) {
            of_rank[rank] = &connection.cpus;
        }
        settings.bind = Bind::Cpus(spread(&of_rank));
    }
    let mut config = TeamConfig::with(meeting.ranks, &settings, &topology, usable.effective, tuning);
    config.bind &= !apart;
    Ok(config)
}

/// A CPU of each rank's set, as few ranks on one as can be had by taking them in order.
fn spread(sets: &[&BTreeSet<usize>]) -> Vec<usize> {
    let mut load = std::collections::BTreeMap::new();
    let mut place = |set: &BTreeSet<usize>| {
        let cpu =
            set.iter().copied().min_by_key(|cpu| (load.get(cpu).copied().unwrap_or(0), *cpu)).unwrap_or(0);
        *load.entry(cpu).or_insert(0) += 1;
        cpu
    };
    sets.iter().map(|set| place(set)).collect()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn of(sets: &[&[usize]]) -> Vec<usize> {
        let sets: Vec<BTreeSet<usize>> = sets.iter().map(|s| s.iter().copied().collect()).collect();
        spread(&sets.iter().collect::<Vec<_>>())
    }

    #[test]
    fn ranks_stay_within_the_cpus_that_their_launcher_gave_them() {
        assert_eq!(of(&[&[3], &[1]]), [3, 1]);
        assert_eq!(of(&[&[0, 1], &[0, 1], &[2]]), [0, 1, 2]);
        assert_eq!(of(&[&[0], &[0, 1], &[0]]), [0, 1, 0]);
    }

    #[test]
    fn those_who_do_not_care_take_what_is_left() {
        let connection = |rank| JoinRequest { rank, ..JoinRequest::default() };
        assert_eq!(seats(&[&connection(None), &connection(Some(0)), &connection(None)], 3), [1, 0, 2]);
    }

    #[test]
    fn who_waits_alone_is_told_how_many_came() {
        let name = format!("@lineweave-test-meet-{}", std::process::id());
        let meeting =
            Meeting { name: &name, ranks: 2, rank: None, patience: Duration::from_millis(60), bind: None };
        let error = meet(&meeting, &mut || Ok(())).expect_err("nobody else comes");
        assert!(error.to_string().contains("1 of 2 ranks came"), "{error}");
        let mut looks = 0;
        let error = meet(&meeting, &mut || {
            looks += 1;
            Err(Error::Failed("called off".into()))
        });
        assert!(matches!(error, Err(Error::Failed(_))) && looks == 1);
    }
}

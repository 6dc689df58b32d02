//! Teams of processes that were started by somebody else and know a name in common.
//!
//! 1. Every rank tries to listen at the name. Who can is the host; the others connect to it.
//! 2. A rank says which version it is, how many ranks it expects, which rank it wants (or any), and on which CPUs it may
//!    run.
//! 3. Host and rank check that the other's user is their own. The host refuses who does not fit, and says why.
//! 4. When all have come, the host decides who sits where, makes the segment, and answers each with its rank and the
//!    segment's descriptor (`SCM_RIGHTS`).
//! 5. All join.
//!
//! That they can reach one Unix socket proves that they share a kernel; no launcher's word is needed for it.

use super::processes::attach;
use super::rendezvous::{address, host_of, own_user, peer_user, socket, version};
use super::{Charter, Team};
use crate::communicator::Communicator;
use crate::cpus::UsableCpus;
use crate::error::{Error, Loss};
use crate::segment::MAX_RANKS;
use crate::settings::{Bind, Settings};
use crate::sysfile::Root;
use crate::topology::Hardware;
use crate::tuning::Tuning;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags,
};
use std::collections::BTreeSet;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// "lineweave" meeting, and the version of its two messages.
const HELLO: u64 = u64::from_le_bytes(*b"lw-meet1");
/// Wanted by a rank that takes any.
const ANY: u64 = u64::MAX;
/// Words of a set of CPUs in a message.
const MASK: usize = 128;
/// A rank's message: mark, version, ranks, wanted rank, CPUs.
const WORDS: usize = 4 + MASK;

/// The host's answers: welcome (with a rank), or why not (with what the host has).
const WELCOME: u64 = 0;
const REFUSED_USER: u64 = 1;
const REFUSED_VERSION: u64 = 2;
const REFUSED_SIZE: u64 = 3;
const REFUSED_RANK: u64 = 4;
const REFUSED_LATE: u64 = 5;

/// How long to wait before looking at the clock, and asking whether to go on, again.
const LOOK: Duration = Duration::from_millis(50);

/// What the ranks of a team agreed upon before they meet.
#[derive(Clone, Copy, Debug)]
pub struct Meeting<'a> {
    /// A path, or an abstract name (`@name`), which leaves no file behind.
    pub name: &'a str,
    /// Ranks of the team.
    pub ranks: usize,
    /// The rank that the caller is to be, or whatever is left.
    pub rank: Option<usize>,
    /// How long to wait for the others.
    pub patience: Duration,
    /// Where ranks are pinned, instead of what the environment says.
    pub bind: Option<&'a Bind>,
}

/// Meets the other ranks, of which the first to come is the host. `look` is called every so often while waiting, and
/// ends it by an error.
///
/// # Errors
/// [`Error::Meeting`] when ranks do not come or do not fit; [`Error::OtherUser`], [`Error::Foreign`]; what `look` says; those
/// of making and joining a team.
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
    let mut clock = Clock { end: Instant::now() + patience, look };
    let at = address(meeting.name)?;
    loop {
        let socket = socket()?;
        match rustix::net::bind(&socket, &at) {
            Ok(()) => {
                let file = Listening(meeting.name);
                rustix::net::listen(&socket, 4096)
                    .map_err(|e| Error::system(format!("listening at `{}`", meeting.name), e, ""))?;
                let team = host(meeting, &socket, &mut clock)?;
                drop((file, socket));
                return team;
            }
            Err(Errno::ADDRINUSE) => {}
            Err(e) => return Err(Error::system(format!("listening at `{}`", meeting.name), e, "")),
        }
        match rustix::net::connect(&socket, &at) {
            Ok(()) => return guest(meeting, &socket, &mut clock),
            // The host has bound and does not listen yet, or is gone by now.
            Err(Errno::CONNREFUSED | Errno::NOENT) => {}
            Err(e) => return Err(Error::system(format!("connecting to `{}`", meeting.name), e, "")),
        }
        if !clock.wait(Duration::from_millis(1))? {
            let why = "somebody else has the name and does not answer".to_owned();
            return Err(Error::Meeting { name: meeting.name.to_owned(), why });
        }
    }
}

/// Removes the socket's file, unless the name is abstract.
struct Listening<'a>(&'a str);

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        if !self.0.starts_with('@') {
            // Somebody may have removed it already; there is nothing more to do.
            let _ = std::fs::remove_file(self.0);
        }
    }
}

/// Until when to wait, and whether to go on.
struct Clock<'a> {
    end: Instant,
    look: &'a mut dyn FnMut() -> Result<(), Error>,
}

impl Clock<'_> {
    /// Sleeps; whether there is time left.
    fn wait(&mut self, pause: Duration) -> Result<bool, Error> {
        (self.look)()?;
        std::thread::sleep(pause);
        Ok(Instant::now() < self.end)
    }

    /// Waits until there is something to read; whether there is.
    fn readable(&mut self, socket: BorrowedFd<'_>) -> Result<bool, Error> {
        loop {
            let left = self.end.saturating_duration_since(Instant::now());
            let limit = Timespec::try_from(left.min(LOOK)).expect("a short time fits");
            match poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&limit)) {
                Ok(0) | Err(Errno::INTR) => (self.look)()?,
                Ok(_) => return Ok(true),
                Err(e) => return Err(Error::system("waiting for the other ranks", e, "")),
            }
            if left.is_zero() {
                return Ok(false);
            }
        }
    }
}

/// One who has come.
struct Guest {
    socket: Option<OwnedFd>,
    wanted: Option<usize>,
    cpus: BTreeSet<usize>,
}

fn own_cpus() -> BTreeSet<usize> {
    UsableCpus::of_this_thread().cpus.into_iter().filter(|&cpu| cpu < MASK * 64).collect()
}

fn host(
    meeting: &Meeting<'_>,
    socket: &OwnedFd,
    clock: &mut Clock<'_>,
) -> Result<Result<Communicator, Error>, Error> {
    let ranks = meeting.ranks;
    let mut guests = vec![Guest { socket: None, wanted: meeting.rank, cpus: own_cpus() }];
    while guests.len() < ranks {
        if !clock.readable(socket.as_fd())? {
            for guest in &guests {
                if let Some(socket) = &guest.socket {
                    // Whoever is gone by now needs no answer.
                    let _ = answer(socket.as_fd(), REFUSED_LATE, guests.len(), None);
                }
            }
            return Err(absent(meeting, guests.len()));
        }
        let peer = rustix::net::accept_with(socket, SocketFlags::CLOEXEC)
            .map_err(|e| Error::system("accepting a rank", e, ""))?;
        // A peer that hangs up, says nothing or does not fit is as if it had never come.
        if let Ok(Some(guest)) = welcome(peer, meeting, &guests) {
            guests.push(guest);
        }
    }
    let places = seats(&guests, ranks);
    let team = Team::with(charter(meeting, &guests, &places)?)?;
    for (guest, &rank) in guests.iter().zip(&places) {
        let Some(socket) = &guest.socket else { continue };
        if answer(socket.as_fd(), WELCOME, rank, Some(team.descriptor())).is_err() {
            team.segment.set_failed(rank, Loss::Died);
        }
    }
    Ok(team.join(places[0]))
}

fn absent(meeting: &Meeting<'_>, present: usize) -> Error {
    let (ranks, seconds) = (meeting.ranks, meeting.patience.as_secs_f64());
    let why = format!("{present} of {ranks} ranks came within {seconds:.0} s");
    Error::Meeting { name: meeting.name.to_owned(), why }
}

/// Reads what a peer says. Nothing, when it was refused.
fn welcome(peer: OwnedFd, meeting: &Meeting<'_>, guests: &[Guest]) -> Result<Option<Guest>, Errno> {
    let limit = Some(Duration::from_secs(5));
    rustix::net::sockopt::set_socket_timeout(&peer, rustix::net::sockopt::Timeout::Recv, limit)?;
    let mut hello = [0u8; WORDS * 8];
    let (read, _) = rustix::net::recv(&peer, &mut hello[..], RecvFlags::empty())?;
    let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|b| hello[i * 8 + b]));
    let wanted = (word(3) != ANY).then_some(word(3) as usize);
    let taken = |rank| guests.iter().any(|g| g.wanted == Some(rank));
    let refusal = if peer_user(peer.as_fd()).ok() != Some(own_user()) {
        Some((REFUSED_USER, own_user() as usize))
    } else if read != hello.len() || word(0) != HELLO || word(1) != version() {
        Some((REFUSED_VERSION, version() as usize))
    } else if word(2) != meeting.ranks as u64 {
        Some((REFUSED_SIZE, meeting.ranks))
    } else {
        wanted.filter(|&rank| rank >= meeting.ranks || taken(rank)).map(|rank| (REFUSED_RANK, rank))
    };
    if let Some((code, detail)) = refusal {
        answer(peer.as_fd(), code, detail, None)?;
        return Ok(None);
    }
    let cpus = (0..MASK * 64).filter(|cpu| word(4 + cpu / 64) >> (cpu % 64) & 1 == 1).collect();
    Ok(Some(Guest { socket: Some(peer), wanted, cpus }))
}

fn answer(peer: BorrowedFd<'_>, code: u64, detail: usize, fd: Option<BorrowedFd<'_>>) -> Result<(), Errno> {
    let bytes: Vec<u8> = [code, detail as u64].iter().flat_map(|w| w.to_le_bytes()).collect();
    let mut space = [MaybeUninit::<u8>::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
    if !fds.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&fds));
    }
    rustix::net::sendmsg(peer, &[IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL).map(|_| ())
}

/// Each guest's rank: the one it wants, or the lowest that is left, in the order of coming.
fn seats(guests: &[Guest], ranks: usize) -> Vec<usize> {
    let wanted: BTreeSet<usize> = guests.iter().filter_map(|g| g.wanted).collect();
    let mut left = (0..ranks).filter(|rank| !wanted.contains(rank));
    let seat =
        |g: &Guest| g.wanted.or_else(|| left.next()).expect("as many guests as ranks, none wanted twice");
    guests.iter().map(seat).collect()
}

/// The team's charter, by where its ranks may run. Who was bound to some CPUs by a launcher stays there.
fn charter(meeting: &Meeting<'_>, guests: &[Guest], places: &[usize]) -> Result<Charter, Error> {
    let (mut settings, _) = Settings::from_environment()?;
    if let Some(bind) = meeting.bind {
        settings.bind = bind.clone();
    }
    let all: BTreeSet<usize> = guests.iter().flat_map(|g| &g.cpus).copied().collect();
    let usable = UsableCpus::read(&Root::live(), Ok(all.iter().copied().collect()));
    let hardware = Hardware::load(&settings.topology).map_err(|e| Error::Topology(e.to_string()))?;
    let tuning = Tuning::load(&settings, &hardware, &hardware.fingerprint(&usable.cpus))?;
    let topology = hardware.restrict(&usable.cpus).topology;
    let apart = guests.iter().any(|g| g.cpus != all);
    if apart {
        let mut of_rank: Vec<&BTreeSet<usize>> = vec![&all; guests.len()];
        for (guest, &rank) in guests.iter().zip(places) {
            of_rank[rank] = &guest.cpus;
        }
        settings.bind = Bind::Cpus(spread(&of_rank));
    }
    let mut charter = Charter::with(meeting.ranks, &settings, &topology, usable.effective, tuning);
    charter.bind &= !apart;
    Ok(charter)
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

fn guest(meeting: &Meeting<'_>, socket: &OwnedFd, clock: &mut Clock<'_>) -> Result<Communicator, Error> {
    let refused = |why: String| Error::Meeting { name: meeting.name.to_owned(), why };
    let lost = |e: Errno| Error::system(format!("talking to the host at `{}`", meeting.name), e, "");
    let foreign = |found: String| Error::Foreign {
        expected: format!("a host of lineweave {}", env!("CARGO_PKG_VERSION")),
        found,
    };
    let user = peer_user(socket.as_fd())?;
    if user != own_user() {
        return Err(Error::OtherUser { expected: own_user(), found: user });
    }
    let mut words = [0u64; WORDS];
    words[..4].copy_from_slice(&[
        HELLO,
        version(),
        meeting.ranks as u64,
        meeting.rank.map_or(ANY, |r| r as u64),
    ]);
    for cpu in own_cpus() {
        words[4 + cpu / 64] |= 1 << (cpu % 64);
    }
    let hello: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    rustix::net::send(socket, &hello, SendFlags::NOSIGNAL).map_err(lost)?;
    if !clock.readable(socket.as_fd())? {
        return Err(refused(format!(
            "the others did not come within {:.0} s",
            meeting.patience.as_secs_f64()
        )));
    }
    let mut answer = [0u8; 16];
    let mut space = [MaybeUninit::<u8>::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = rustix::net::recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut answer)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )
    .map_err(lost)?;
    if received.bytes != answer.len() {
        return Err(refused("the host went away before all ranks had come".into()));
    }
    let word = |i: usize| u64::from_le_bytes(std::array::from_fn(|b| answer[i * 8 + b]));
    match word(0) {
        WELCOME => {}
        REFUSED_USER => return Err(Error::OtherUser { expected: word(1) as u32, found: own_user() }),
        REFUSED_VERSION => return Err(foreign(host_of(word(1)))),
        REFUSED_SIZE => {
            return Err(refused(format!(
                "the others expect {} ranks and this one {}",
                word(1),
                meeting.ranks
            )))
        }
        REFUSED_RANK => return Err(refused(format!("rank {} is taken", word(1)))),
        REFUSED_LATE => return Err(absent(meeting, word(1) as usize)),
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
        let guest = |wanted| Guest { socket: None, wanted, cpus: BTreeSet::new() };
        assert_eq!(seats(&[guest(None), guest(Some(0)), guest(None)], 3), [1, 0, 2]);
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

use super::super::{connect, meet, Host, Meeting, Team};
use super::message::{packed, version};
use super::*;
use std::time::Duration;

/// A name that no other test has.
fn name(what: &str) -> String {
    format!("@lineweave-test-{what}-{}", std::process::id())
}

fn connected(name: &str) -> OwnedFd {
    reach(name).unwrap().unwrap()
}

/// Returns the reply of a host, or nothing when the host hangs up without a word.
fn heard(socket: &OwnedFd) -> Option<JoinReply> {
    poll(&mut [PollFd::new(socket, PollFlags::IN)], None).unwrap();
    let mut said = [0u8; 16];
    let (read, _) = rustix::net::recv(socket, &mut said[..], RecvFlags::empty()).ok()?;
    (read == said.len()).then(|| JoinReply::read([word(&said, 0), word(&said, 1)])).flatten()
}

#[test]
fn a_host_of_another_version_is_named_with_this_one() {
    let name = name("version");
    let socket = RendezvousSocket::open(&name).unwrap().unwrap();
    let said = std::thread::scope(|scope| {
        let rank = scope.spawn(|| connect(&name, None).unwrap_err().to_string());
        poll(&mut [PollFd::new(&socket.socket, PollFlags::IN)], None).unwrap();
        let peer = rustix::net::accept(&socket.socket).unwrap();
        answer(&peer, JoinReply::Version(packed("0.12.3")), None).unwrap();
        rank.join().unwrap()
    });
    let ours = format!("expected a host of lineweave {}", env!("CARGO_PKG_VERSION"));
    assert!(said.contains(&ours) && said.contains("found a host of lineweave 0.12.3"), "{said}");
}

#[test]
fn a_rank_of_another_version_is_refused_and_told_of_this_one() {
    let (name, team) = (name("rank"), Team::new(1).unwrap());
    let host = Host::bind(&name).unwrap();
    let rank = connected(&name);
    let mut request = JoinRequest::default().words();
    request[1] = packed("9.9.9");
    rustix::net::send(&rank, &bytes(&request), SendFlags::NOSIGNAL).unwrap();
    let left_out = host.serve_while(&team, &[], Duration::from_millis(300), &mut || Ok(())).unwrap();
    assert_eq!((heard(&rank), left_out), (Some(JoinReply::Version(version())), vec![0]));
}

#[test]
fn silent_guests_hold_no_host_up() {
    let (name, team) = (name("silent"), Team::new(1).unwrap());
    let host = Host::bind(&name).unwrap();
    let silent: Vec<OwnedFd> = (0..20).map(|_| connected(&name)).collect();
    // It ends although nobody speaks.
    assert_eq!(host.serve_while(&team, &[], Duration::from_millis(200), &mut || Ok(())).unwrap(), [0]);
    std::thread::scope(|scope| {
        let silent_again: Vec<OwnedFd> = (0..20).map(|_| connected(&name)).collect();
        let rank = scope.spawn(|| connect(&name, None).map(|comm| comm.ranks()));
        host.serve(&team, &[]).unwrap();
        assert_eq!(rank.join().unwrap().unwrap(), 1);
        drop(silent_again);
    });
    assert!(silent.iter().all(|s| heard(s).is_none()));
}

#[test]
fn silent_guests_exhaust_no_meeting() {
    let name = name("crowd");
    let meeting =
        Meeting { name: &name, ranks: 2, rank: None, patience: Duration::from_secs(20), bind: None };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| meet(&meeting, &mut || Ok(())).map(|comm| comm.ranks()));
        let silent: Vec<OwnedFd> = std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_millis(1));
            reach(&name).unwrap().ok()
        })
        .flatten()
        .take(12)
        .collect();
        let second = meet(&meeting, &mut || Ok(())).map(|comm| comm.ranks());
        assert_eq!((first.join().unwrap().unwrap(), second.unwrap()), (2, 2));
        drop(silent);
    });
}

#[test]
fn a_host_that_does_not_answer_is_left() {
    let name = name("deaf");
    let _door = RendezvousSocket::open(&name).unwrap().unwrap();
    let mut go_on = || Ok(());
    let mut clock = Clock::new(Some(Duration::from_millis(80)), &mut go_on);
    let error = ask(&name, connected(&name), &JoinRequest::default(), &mut clock).unwrap_err();
    assert!(error.to_string().contains("the host did not answer"), "{error}");
}

#[test]
fn a_rank_that_hung_up_leaves_its_place_to_another() {
    let name = name("anew");
    let meeting = |rank| Meeting {
        name: &name,
        ranks: 3,
        rank: Some(rank),
        patience: Duration::from_secs(20),
        bind: None,
    };
    let join = |rank| meet(&meeting(rank), &mut || Ok(())).map(|comm| comm.rank());
    std::thread::scope(|scope| {
        let host = scope.spawn(|| join(0));
        let gone = std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_millis(1));
            reach(&name).unwrap().ok()
        });
        let gone = gone.flatten().next().unwrap();
        let request = JoinRequest { ranks: Some(3), rank: Some(1), ..JoinRequest::default() };
        rustix::net::send(&gone, &bytes(&request.words()), SendFlags::NOSIGNAL).unwrap();
        drop(gone);
        let others = [scope.spawn(|| join(1)), scope.spawn(|| join(2))];
        let all = [host].into_iter().chain(others).map(|rank| rank.join().unwrap().unwrap());
        assert_eq!(all.collect::<Vec<_>>(), [0, 1, 2]);
    });
}

#[test]
fn a_host_that_cannot_go_on_tells_those_that_come() {
    let name = name("refuses");
    let host = Host::bind(&name).unwrap();
    let early = connected(&name);
    std::thread::scope(|scope| {
        let late = scope.spawn(|| {
            assert_eq!(heard(&early), Some(JoinReply::Failed));
            connect(&name, Some(2)).unwrap_err().to_string()
        });
        host.refuse(2, &mut || Ok(()));
        let said = late.join().unwrap();
        assert!(said.contains("its host cannot go on"), "{said}");
    });
}

#[test]
fn a_rank_that_cannot_go_on_ends_the_wait_for_it() {
    let hello = |ranks| bytes(&JoinRequest { ranks, rank: Some(1), ..JoinRequest::default() }.words());
    let say = |socket: &OwnedFd, what: &[u8]| {
        rustix::net::send(socket, what, SendFlags::NOSIGNAL).unwrap();
    };
    let before = |socket: OwnedFd| say(&socket, FAILED);
    let after = |socket: OwnedFd| {
        say(&socket, &hello(None));
        say(&socket, FAILED);
    };
    let seated = |socket: OwnedFd| {
        say(&socket, &hello(None));
        assert_eq!(heard(&socket), Some(JoinReply::Welcome(1)));
        say(&socket, FAILED);
    };
    type Guest<'a> = &'a (dyn Fn(OwnedFd) + Sync);
    let (name, team) = (name("fails"), Team::new(2).unwrap());
    for (guest, who) in [(&before as Guest<'_>, "a rank"), (&after, "rank 1"), (&seated, "rank 1")] {
        let host = Host::bind(&name).unwrap();
        std::thread::scope(|scope| {
            let socket = connected(&name);
            scope.spawn(move || guest(socket));
            let said = host.serve(&team, &[0]).unwrap_err().to_string();
            assert!(said.contains(&format!("{who} cannot go on")), "{said}");
        });
    }
    std::thread::scope(|scope| {
        let (ranks, rank, patience, bind) = (2, None, Duration::from_secs(20), None);
        let meeting = Meeting { name: &name, ranks, rank, patience, bind };
        let first = scope.spawn(move || meet(&meeting, &mut || Ok(())).unwrap_err().to_string());
        let guest = std::iter::repeat_with(|| reach(&name).unwrap().ok()).flatten().next().unwrap();
        say(&guest, &hello(Some(2)));
        say(&guest, FAILED);
        let said = first.join().unwrap();
        assert!(said.contains("rank 1") && !said.contains("came within"), "{said}");
    });
}

/// Only root can become somebody else; on Linux one thread can do so alone.
#[test]
fn a_guest_of_another_user_is_not_heard() {
    const NOBODY: libc::c_long = 65534;
    if !rustix::process::geteuid().is_root() {
        return println!("SKIPPED: a guest of another user: only root can be one");
    }
    let (name, team) = (name("user"), Team::new(1).unwrap());
    let host = Host::bind(&name).unwrap();
    let stranger = std::thread::spawn({
        let name = name.clone();
        move || {
            // SAFETY: the call changes the credentials of this thread only, which ends here.
            assert_eq!(unsafe { libc::syscall(libc::SYS_setresuid, NOBODY, NOBODY, NOBODY) }, 0);
            let socket = connected(&name);
            let request = bytes(&JoinRequest::default().words());
            rustix::net::send(&socket, &request, SendFlags::NOSIGNAL).unwrap();
            socket
        }
    });
    let socket = stranger.join().unwrap();
    assert_eq!(host.serve_while(&team, &[], Duration::from_millis(200), &mut || Ok(())).unwrap(), [0]);
    assert_eq!(heard(&socket), None);
}

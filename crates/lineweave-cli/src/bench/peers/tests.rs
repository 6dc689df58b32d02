use super::*;
use lineweave::cpus::UsableCpus;
use std::sync::OnceLock;

impl Peers {
    /// Returns the peers that cannot run here at all, with the reason.
    fn missing(&self) -> impl Iterator<Item = (Subject, &str)> {
        self.peers.iter().filter_map(|(peer, program)| Some((peer.subject, program.as_ref().err()?.as_str())))
    }
}

/// Returns a directory below cargo's scratch space, so that programs are compiled once for all runs of the tests.
fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/peers")
}

/// Returns the peers, compiled once for all tests.
fn built() -> &'static Peers {
    static PEERS: OnceLock<Peers> = OnceLock::new();
    PEERS.get_or_init(|| Peers::build(&directory()).expect("a directory below target/"))
}

fn request(subject: Subject) -> Request {
    Request {
        subject,
        team: Team::Threads,
        ranks: 2,
        bytes: 4096,
        cpus: UsableCpus::of_this_thread().cpus,
        window: Duration::from_millis(20),
        min_batches: 1,
        max_batches: 8,
        precision: 0.5,
        variants: "all",
    }
}

#[test]
fn every_peer_that_was_built_measures_at_each_of_its_settings() {
    let peers = built();
    let absent: Vec<Subject> = peers.missing().map(|(subject, _)| subject).collect();
    for (peer, _) in &peers.peers {
        let asked = Request { ranks: peer.ranks[0].max(2), ..request(peer.subject) };
        match peers.survey(&asked) {
            Ok(measured) => {
                assert!(!absent.contains(&peer.subject));
                let expected = if peer.variants { measured.len() } else { peer.settings.len() };
                assert!(
                    !measured.is_empty() && (measured.len() == expected || asked.cpus.len() < 2),
                    "{}: {} of {expected} settings measured",
                    peer.subject,
                    measured.len()
                );
            }
            Err(PeerError::Skipped { because, .. }) => {
                let spins = [Subject::Floor, Subject::ByteFloor].contains(&peer.subject);
                let crowded = spins && asked.cpus.len() < 2;
                assert!(absent.contains(&peer.subject) || crowded, "{}: {because}", peer.subject);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn the_byte_floor_is_right_in_every_way_and_told_by_its_buffers() {
    let peers = built();
    for (team, ways) in [(Team::Threads, &["direct"][..]), (Team::Processes, &["boxes", "back"])] {
        // The length is some whole chunks and a part of one.
        let asked = Request { team, bytes: 40_000, variants: "reuse", ..request(Subject::ByteFloor) };
        match peers.survey(&asked) {
            Ok(measured) => {
                let goes = |m: &Measurement, way: &&str| m.setting.starts_with(&format!("reuse.{way}."));
                assert!(measured.iter().all(|m| ways.iter().any(|way| goes(m, way))), "{measured:?}");
                assert!(ways.iter().all(|way| measured.iter().any(|m| goes(m, way))), "{measured:?}");
            }
            Err(PeerError::Skipped { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn the_hand_floor_is_right_in_every_way_also_where_ranks_outnumber_cpus() {
    let _cpus = crate::threads::all_cpus();
    let peers = built();
    for (team, ranks) in [(Team::Threads, 3), (Team::Processes, 3), (Team::Threads, 7)] {
        for variants in ["barrier", "bcast", "allreduce"] {
            let window = Duration::from_millis(2);
            let asked = Request { team, ranks, bytes: 8, variants, window, ..request(Subject::HandFloor) };
            match peers.survey(&asked) {
                // The program compares every answer, and fails when one is wrong.
                Ok(measured) => {
                    let waits = if ranks > asked.cpus.len() { ".yield" } else { "" };
                    let sound =
                        |m: &Measurement| m.setting.starts_with(variants) && m.setting.ends_with(waits);
                    assert!(!measured.is_empty() && measured.iter().all(sound), "{measured:?}");
                }
                Err(PeerError::Skipped { .. }) => {
                    assert!(peers.missing().any(|(s, _)| s == Subject::HandFloor));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    let error = peers.survey(&Request { ranks: 3, variants: "gossip", ..request(Subject::HandFloor) });
    assert!(error.is_err(), "{error:?}");
}

#[test]
fn processes_are_measured_and_a_setting_can_be_named() {
    let peers = built();
    let asked = Request { team: Team::Processes, ranks: 3, ..request(Subject::Pthread) };
    match peers.run(&asked, "default") {
        Ok(m) => assert_eq!((m.team, m.ranks, m.setting.as_str()), (Team::Processes, 3, "default")),
        Err(PeerError::Skipped { .. }) => assert!(peers.missing().any(|(s, _)| s == Subject::Pthread)),
        Err(error) => panic!("{error}"),
    }
    assert!(matches!(peers.run(&asked, "no-such"), Err(PeerError::Skipped { .. })));
}

#[test]
fn what_a_peer_cannot_do_is_skipped_with_a_reason() {
    let peers = built();
    let because = |asked: Request| match peers.best(&asked) {
        Err(PeerError::Skipped { because, .. }) => because,
        other => panic!("expected to be skipped, got {other:?}"),
    };
    assert!(
        because(Request { team: Team::Processes, ..request(Subject::Libgomp) }).contains("among processes")
    );
    assert!(because(Request { ranks: 4, ..request(Subject::Floor) }).contains("2 to 2 ranks"));
    assert!(because(Request { cpus: Vec::new(), ..request(Subject::Pthread) }).contains("no CPU"));
    assert!(because(Request { cpus: vec![0], ..request(Subject::Floor) }).contains("two CPUs"));
    assert!(because(Request { bytes: 0, ..request(Subject::Memcpy) }).contains("size"));
    assert!(because(Request { bytes: 4104, ..request(Subject::ByteFloor) }).contains("whole lines"));
    assert!(because(request(Subject::Lineweave)).contains("not a peer"));
}

#[test]
fn without_compilers_everything_is_skipped() {
    let none = Toolchain { cc: None, cxx: None, libomp: None };
    let peers = Peers::build_with(&directory(), &none).expect("a directory below target/");
    assert_eq!(peers.missing().count(), Subject::ALL.iter().filter(|(s, _)| s.ours().is_none()).count());
    assert!(peers.missing().any(|(s, because)| s == Subject::StdBarrier && because.contains("g++")));
    assert!(peers.missing().any(|(s, because)| s == Subject::Libomp && because.contains("libomp-dev")));
    let strange = Toolchain { cc: Some(("/bin/false".into(), String::new())), cxx: None, libomp: None };
    let peers = Peers::build_with(&directory(), &strange).expect("a directory below target/");
    assert!(peers.missing().any(|(s, because)| s == Subject::Pthread && because.contains("cannot build")));
}

//! Communicators made from others, among threads: who is in them, that calls in all of them are right, and what they take.

#[path = "../common/children.rs"]
mod children;

use crate::run;
use lineweave::settings::Settings;
use lineweave::team::{self, connect, Host, Team, TeamConfig};
use lineweave::{CallSpec, Communicator, ElementType, Error, Operator};
use lineweave_core::collective::Collective;
use lineweave_core::topology::{Cpu, Level};
use std::sync::Barrier;
use std::time::{Duration, Instant};

#[test]
fn every_kind_of_communicator_is_right_on_threads() {
    let mut cases = 0;
    for ranks in 1..=9 {
        cases += run(ranks, children::every_kind);
    }
    println!("tally: conformance cases (communicators, threads) {cases}");
    assert!(cases > 200, "{cases} cases only");
}

#[test]
fn memory_that_is_taken_again_is_as_good_as_new() {
    let cases: usize = [1, 2, 3, 5, 8].into_iter().map(|ranks| run(ranks, children::again)).sum();
    println!("tally: conformance cases (communicators in memory of others, threads) {cases}");
    assert!(cases > 4000, "{cases} cases only");
}

#[test]
fn large_banks_that_are_reserved_late_are_there_when_a_planner_or_a_call_needs_them() {
    let long = vec![7u8; 300_000];
    for planned in [false, true] {
        let mut config = TeamConfig::new(2, &Settings::default()).expect("a configuration");
        let whole = 2 * config.box_bytes as u64;
        config.late_banks = true;
        let team = Team::with(config).expect("a team");
        let name = format!("@late-banks-{}-{planned}", std::process::id());
        let host = Host::bind(&name).expect("a host");
        let rank = |mut comm: Communicator| -> Result<(), Error> {
            let call = |root: usize| CallSpec {
                collective: Collective::Bcast,
                element: ElementType::U8,
                count: long.len(),
                operator: None,
                root,
            };
            comm.bcast(&mut [1u8; 8], 0)?;
            let short = comm.memory().shared_bytes as u64;
            assert!(short < whole, "{short} bytes for short messages");
            comm.barrier()?;
            let before = occupied(&comm);
            comm.barrier()?;
            if planned {
                (0..2).try_for_each(|root| comm.planner().plan(&call(root)))?;
                comm.barrier()?;
                assert!(occupied(&comm) - before >= 2 * whole, "both ranks' planners have reserved them");
            }
            for root in [0, 1] {
                let mut buffer = if comm.rank() == root { long.clone() } else { vec![0; long.len()] };
                comm.bcast(&mut buffer, root)?;
                assert!(buffer == long);
            }
            assert!(comm.memory().shared_bytes as u64 >= 2 * whole);
            Ok(())
        };
        std::thread::scope(|scope| {
            let peer = scope.spawn(|| rank(connect(&name, Some(1))?));
            host.serve(&team, &[0]).expect("the peer comes");
            rank(team.join(0).expect("rank 0")).expect("its calls");
            peer.join().expect("no panic").expect("its calls");
        });
    }
}

#[test]
fn what_is_forced_and_has_no_plan_keeps_nobody_from_a_communicator() {
    let forced = "allgather=rckmpi method=doubling;barrier=tree k=0;bcast=knomial k=0";
    let (settings, _) = Settings::read([("LINEWEAVE_ALGORITHM".to_owned(), forced.to_owned())])
        .expect("all are in the table");
    let team = Team::with(TeamConfig::new(3, &settings).expect("a configuration")).expect("a team");
    let refused = team.threads(|mut comm| {
        let mut all = [0u64; 3];
        for turn in 0..3 {
            let mut part = comm.dup()?.split(Some(turn), 0)?.expect("all are in it");
            part.window_create(64)?;
            part.reduce(&[1u64], &mut all[..1], Operator::Sum, 0)?;
        }
        assert_eq!(all[0], if comm.rank() == 0 { 3 } else { 0 });
        Ok(comm.allgather(&[1u64], &mut all).is_err())
    });
    assert_eq!(refused.expect("the team runs"), [true; 3]);
}

#[test]
fn a_team_of_two_packages_is_split_by_level() {
    let (settings, _) = Settings::from_environment().expect("settings");
    let mut config = TeamConfig::new(8, &settings).expect("a configuration");
    for (rank, cpu) in config.cpus.iter_mut().enumerate() {
        let r = rank % 4 * 2 + rank / 4;
        *cpu = Cpu { os: r, core: r / 2, l3: r / 4, numa: r / 4, package: r / 4, kind: 0 };
    }
    config.bind = false;
    let groups = Team::with(config).expect("a team").threads(|mut comm| {
        let mut sizes = Vec::new();
        for level in [Level::Core, Level::Package, Level::Machine] {
            let mut part = comm.split_level(level)?;
            let mut sum = [0u64];
            part.allreduce(&[1 << comm.rank()], &mut sum, Operator::Sum)?;
            sizes.push((part.ranks(), sum[0]));
        }
        Ok(sizes)
    });
    let groups = groups.expect("the team runs");
    // Ranks r and r + 4 sit on one core, and cores of ranks 0 and 1 in one package.
    assert_eq!(groups[0], [(2, 0b1_0001), (4, 0b11_0011), (8, 0xff)]);
    assert_eq!(groups[7], [(2, 0b1000_1000), (4, 0b1100_1100), (8, 0xff)]);
}

#[test]
fn a_site_makes_communicators_from_several_threads_after_the_team_is_gone() {
    const RANKS: usize = 3;
    const THREADS: usize = 4;
    const TIMES: usize = 20;
    // Each thread of each rank has a list of places of its own, which rank 1 takes.
    let team = team::threads(RANKS, |mut comm| {
        let site = comm.factory();
        let mut places = vec![0; THREADS * TIMES * 2];
        if comm.rank() == 1 {
            let taken = (0..places.len()).map(|_| site.found(&[2, 1])).collect::<Result<Vec<_>, _>>()?;
            places.copy_from_slice(&taken);
        }
        comm.bcast(&mut places, 1)?;
        let rank = comm.rank();
        drop(comm);
        if rank == 0 {
            return Ok(0);
        }
        let work = |places: &[u64]| -> Result<u64, Error> {
            let mut sums = 0;
            for pair in places.chunks(2) {
                // SAFETY: rank 1 took the places for two ranks, and each is in one pair of one thread.
                let made = unsafe { site.join(pair, &[2, 1], || None)? };
                let [mut one, mut other] =
                    <[Communicator; 2]>::try_from(made).expect("a communicator for each place");
                assert_eq!((one.rank(), one.ranks()), (2 - rank, 2));
                let mut sum = [0u64];
                one.allreduce(&[rank as u64], &mut sum, Operator::Sum)?;
                other.barrier()?;
                sums += sum[0];
            }
            Ok(sums)
        };
        let sums = std::thread::scope(|scope| {
            let threads: Vec<_> =
                places.chunks(TIMES * 2).map(|part| scope.spawn(move || work(part))).collect();
            threads.into_iter().map(|t| t.join().expect("no panic")).sum::<Result<u64, Error>>()
        })?;
        for members in [[0, 0], [rank, 3]] {
            // SAFETY: the list is refused before the place is looked at.
            let refused = unsafe { site.join(&[0], &members, || None) };
            assert!(matches!(refused, Err(Error::Group { .. })));
        }
        Ok(sums)
    });
    assert_eq!(team.expect("the team runs"), [0, 240, 240]);
}

#[test]
fn who_has_left_is_not_waited_for_by_a_group() {
    // The one that announces the group, and one that is to hear of it.
    for members in [[1, 0], [0, 1]] {
        let told = team::threads(2, |mut comm| match comm.rank() {
            1 => Ok(String::new()),
            _ => Ok(comm.create_group(&members).expect_err("rank 1 does not come").to_string()),
        });
        let told = told.expect("no rank fails").swap_remove(0);
        assert!(told.starts_with("rank 1 (") && told.contains("left"), "{members:?}: {told}");
        assert!(told.contains("in create_group"), "{members:?}: {told}");
    }
}

fn occupied(comm: &Communicator) -> u64 {
    comm.segment().pool().occupied_bytes().expect("a descriptor that can be asked")
}

#[test]
fn two_hundred_duplicates_of_eight_ranks_are_small() {
    let taken = team::threads(8, |mut comm| {
        comm.barrier()?;
        let before = occupied(&comm);
        comm.barrier()?;
        let mut many = (0..200).map(|_| comm.dup()).collect::<Result<Vec<_>, _>>()?;
        comm.barrier()?;
        let idle = occupied(&comm) - before;
        comm.barrier()?;
        for (i, other) in many.iter_mut().enumerate() {
            let mut sum = [0];
            other.allreduce(&[(comm.rank() + i) as u64], &mut sum, Operator::Sum)?;
            assert_eq!(sum[0], 28 + 8 * i as u64);
            other.barrier()?;
        }
        comm.barrier()?;
        let used = occupied(&comm) - before;
        let stated: usize = many.iter().map(|other| other.memory().shared_bytes).sum();
        comm.barrier()?;
        drop(many);
        comm.barrier()?;
        let left = occupied(&comm) - before;
        comm.barrier()?;
        Ok((idle, used, stated as u64, left))
    });
    let (idle, used, stated, left) = taken.expect("the team runs")[0];
    println!("200 duplicates of 8 ranks: {} KiB, used {} KiB, then {left} bytes", idle >> 10, used >> 10);
    assert_eq!(idle, 200 * 9 * 4096, "a header, and a page for each rank");
    assert_eq!(used, stated, "what communicators say of themselves");
    // Whichever plans run: one that does not synchronise takes a page more at each rank than one that does.
    assert!(used <= 200 * (1 + 8 * 5) * 4096, "{used} bytes");
    assert_eq!(left, 64 * (used / 200), "as many as are kept for others, and no more");
}

/// What freed communicators left, once all ranks have freed them, and all memory of the team.
fn idle(comm: &mut Communicator) -> Result<(u64, u64), Error> {
    comm.barrier()?;
    let found = (comm.segment().pool().idle_bytes(), occupied(comm));
    comm.barrier()?;
    Ok(found)
}

#[test]
fn what_communicators_leave_is_taken_by_the_next_and_nothing_else() {
    team::threads(4, |mut comm| {
        let (none, _) = idle(&mut comm)?;
        assert_eq!(none, 0);
        let mut left = None;
        for turn in 0..30 {
            let mut other = comm.dup()?;
            let open = idle(&mut comm)?;
            assert_eq!(open.0, 0, "it is in use again");
            for _ in 0..3 {
                other.allreduce_in_place(&mut [turn], Operator::Sum)?;
            }
            drop(other);
            let now = idle(&mut comm)?;
            assert_eq!(*left.get_or_insert(now), now, "turn {turn}");
        }
        let (kept, all) = left.expect("a turn");
        // A header, and at each rank a control page and up to four small banks of eleven pages together.
        assert!(kept > 5 * 4096 && kept <= (1 + 4 * 12) * 4096, "{kept} bytes");
        // Two ranks need another one; that of four is for them no more than before.
        let part = comm.split(Some(comm.rank() as u64 % 2), 0)?;
        assert_eq!(idle(&mut comm)?, (kept, all + 2 * 3 * 4096));
        drop(part);
        assert_eq!(idle(&mut comm)?, (kept + 2 * 3 * 4096, all + 2 * 3 * 4096));
        Ok(())
    })
    .expect("the team runs");
}

#[test]
fn what_a_failed_communicator_leaves_is_not_taken() {
    team::threads(3, |mut comm| {
        let (_, before) = idle(&mut comm)?;
        let mut other = comm.dup()?;
        other.barrier()?;
        match comm.rank() {
            1 => other.abandon("a test"),
            _ => assert!(other.barrier().is_err()),
        }
        drop(other);
        assert_eq!(idle(&mut comm)?, (0, before), "given back");
        let mut other = comm.dup()?;
        other.barrier()?;
        drop(other);
        assert!(idle(&mut comm)?.0 > 0, "a sound one is kept");
        Ok(())
    })
    .expect("the team runs");
}

/// Lines of this process's address space, and open descriptors.
fn held() -> (usize, usize) {
    let maps = std::fs::read_to_string("/proc/self/maps").map_or(0, |text| text.lines().count());
    (maps, std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count))
}

#[test]
fn making_and_freeing_does_not_grow() {
    let grown = team::threads(4, |mut comm| {
        // At most two of a kind at once: who makes the next but one knows that all have freed this one.
        let mut many = [comm.dup()?, comm.dup()?];
        let mut parts = Vec::new();
        for other in &mut many {
            other.barrier()?;
            parts.push(other.split(Some(comm.rank() as u64 % 2), 0)?);
        }
        drop((many, parts));
        let mut turn = |times: usize| -> Result<(u64, (usize, usize)), Error> {
            for i in 0..times {
                let mut other = comm.dup()?;
                if i % 8 == 0 {
                    other.barrier()?;
                }
                let part = other.split(Some(comm.rank() as u64 % 2), 0)?;
                drop((other, part));
            }
            comm.barrier()?;
            let found = (occupied(&comm), held());
            comm.barrier()?;
            Ok(found)
        };
        let before = turn(20)?;
        let after = turn(3000)?;
        Ok((before, after))
    });
    let (before, after) = grown.expect("the team runs")[0];
    assert_eq!(before.0, after.0, "bytes");
    // Other tests of this process come and go meanwhile.
    assert!(after.1 .0 < before.1 .0 + 1200, "mappings: {} and then {}", before.1 .0, after.1 .0);
    assert!(after.1 .1 < before.1 .1 + 300, "descriptors: {} and then {}", before.1 .1, after.1 .1);
}

#[test]
fn lists_that_make_no_group_are_refused() {
    let said = team::threads(3, |mut comm| {
        let mut said = Vec::new();
        for members in [&[0, 1, 2, 3][..], &[0, 1, 2, 0], &[], &[(comm.rank() + 1) % 3]] {
            said.push(comm.create_group(members).expect_err("no group").to_string());
        }
        comm.barrier()?;
        Ok(said)
    });
    let said = &said.expect("the team runs")[0];
    assert_eq!(said[0], "create_group: rank 3 is not one of 0 to 2");
    assert_eq!(said[1], "create_group: rank 0 is named twice");
    assert!(said[2].contains("not a member") && said[3].contains("not a member"), "{said:?}");
}

#[test]
fn a_member_that_never_comes_is_named() {
    let settings = Settings { timeout: Some(Duration::from_millis(300)), ..Settings::default() };
    let team = Team::with(TeamConfig::new(3, &settings).expect("a configuration")).expect("a team");
    let start = Instant::now();
    let told = Barrier::new(3);
    let said = team.threads(|mut comm| {
        let said = match comm.rank() {
            0 => comm.create_group(&[0, 1]).expect_err("rank 1 does not come").to_string(),
            1 => String::new(),
            _ => comm.create_group(&[1, 2]).expect_err("rank 1 does not announce").to_string(),
        };
        told.wait();
        Ok(said)
    });
    let said = said.expect("the team runs");
    for rank in [0, 2] {
        assert!(said[rank].contains("create_group") && said[rank].contains("waited"), "{}", said[rank]);
    }
    assert!(start.elapsed() < Duration::from_secs(5));
}

//! What one rank of a soaking team does: laps of random steps, each compared with its reference, and what it holds after each.

use crate::call::{Buffers, Call, Part};
use crate::memory::{growth, Held};
use crate::random::Random;
use crate::sample::{apply, Affine, Sample};
use crate::with_type;
use lineweave::{Communicator, Operator, Persistent, Request};
use std::time::{Duration, Instant};

/// Calls that a team makes again and again: enough to be mixed, few enough that all plans are made soon.
const CALLS: usize = 24;
/// Steps between two looks at what is held.
const STEPS: usize = 24;
/// What a team has to last for everything to be called once in each kind of communicator before what is held is compared.
const WORTH_WARMING: Duration = Duration::from_secs(10);
/// Laps after which everything was called by chance.
const LAPS: usize = 1000;
/// Bytes of a window for each rank that puts into it.
const WINDOW: usize = 4096;

/// What came of it.
#[derive(Clone, Copy, Default, Debug)]
pub struct Tally {
    pub calls: u64,
    pub laps: u64,
    pub held: Held,
}

/// A communicator with what belongs to it.
struct Member {
    comm: Communicator,
    /// Values of window flags so far.
    flags: u64,
}

fn say(e: lineweave::Error) -> String {
    e.to_string()
}

/// Soaks until the time is over.
pub fn soak(mut comm: Communicator, seed: u64, lasts: Duration) -> Result<Tally, String> {
    let start = Instant::now();
    let mut random = Random(seed);
    let own = Operator::new(false, |left: &[Affine], right: &mut [Affine]| {
        left.iter().zip(right).for_each(|(l, r)| apply(l, r));
    });
    let calls: Vec<Call> = (0..CALLS).map(|_| Call::random(&mut random, own)).collect();
    let (mut held, mut tally) = (Vec::with_capacity(1 << 16), Tally::default());
    comm.window_create(WINDOW * comm.ranks()).map_err(say)?;
    let mut main = Member { comm, flags: 0 };
    // Rings of all pairs, so that their memory is there from the first lap on.
    let ranks = main.comm.ranks();
    for hop in 0..ranks {
        exchange(&mut main.comm, hop, 1, 0)?;
    }
    // Plans, proofs and scratch are made at a call's first time: after this, what is held stays the same.
    let warm = lasts >= WORTH_WARMING;
    for kind in (0..KINDS).filter(|_| warm) {
        let mut others = make(&mut main, kind)?;
        for call in &calls {
            for place in others.iter_mut().chain([&mut main]) {
                tally.calls += blocking(&mut place.comm, call, 0, 2)? + start_one(&mut place.comm, call)?;
            }
        }
    }
    loop {
        lap(&mut main, &calls, &mut random, &mut tally)?;
        // Nobody is in the middle of anything while what is held is looked at.
        main.comm.barrier().map_err(say)?;
        let pool = main.comm.segment().pool();
        let (all, idle) = (pool.occupied_bytes().map_err(say)?, pool.idle_bytes());
        if idle > (main.comm.ranks() << 22) as u64 {
            return Err(format!("{idle} bytes are kept for communicators to come"));
        }
        tally.held = Held::now(all - idle);
        held.push(tally.held);
        tally.laps += 1;
        let mut go_on = [u8::from(start.elapsed() < lasts)];
        main.comm.bcast(&mut go_on, 0).map_err(say)?;
        if go_on == [0] {
            break;
        }
    }
    if warm || held.len() >= LAPS {
        growth(&held).map_err(|what| format!("rank {}: {what}", main.comm.rank()))?;
    }
    Ok(tally)
}

/// Kinds of communicators that are made beside a split.
const KINDS: usize = 3;

/// Communicators made from a team: the parts of a split, and one of another kind.
fn make(main: &mut Member, kind: usize) -> Result<Vec<Member>, String> {
    let (rank, ranks) = (main.comm.rank(), main.comm.ranks());
    let mut others = Vec::new();
    let part = main.comm.split(Some(rank as u64 % 2), -(rank as i64)).map_err(say)?;
    others.extend(part);
    others.push(match kind {
        0 => main.comm.dup().map_err(say)?,
        1 => {
            let list: Vec<usize> = (0..ranks).rev().collect();
            main.comm.create_group(&list).map_err(say)?
        }
        _ => main.comm.split_level(lineweave_core::topology::Level::Machine).map_err(say)?,
    });
    let mut others: Vec<Member> = others.into_iter().map(|comm| Member { comm, flags: 0 }).collect();
    for place in &mut others {
        place.comm.window_create(WINDOW * place.comm.ranks()).map_err(say)?;
    }
    Ok(others)
}

/// Steps in the team and in communicators made from it for this lap.
fn lap(main: &mut Member, calls: &[Call], random: &mut Random, tally: &mut Tally) -> Result<(), String> {
    let mut others = make(main, random.below(KINDS))?;
    for _ in 0..STEPS {
        let place = match random.below(2 + others.len()) {
            i if i < others.len() => &mut others[i],
            _ => main,
        };
        tally.calls += step(place, calls, random)?;
    }
    Ok(())
}

fn step(place: &mut Member, calls: &[Call], random: &mut Random) -> Result<u64, String> {
    let comm = &mut place.comm;
    match random.below(12) {
        0..=4 => {
            let call = &calls[random.below(calls.len())];
            blocking(comm, call, random.below(1000), 1 + random.below(3))
        }
        5..=6 => started(comm, calls, random),
        7 => persistent(comm, calls, random),
        8 => borrowed(comm, calls, random),
        9..=10 => {
            let hop = random.below(comm.ranks());
            exchange(comm, hop, random.of(&[0, 1, 300, 9_000, 60_000]), random.below(1000))
        }
        _ => windows(place, random.below(1000)),
    }
}

/// One collective that blocks, some times in a row.
fn blocking(comm: &mut Communicator, call: &Call, salt: usize, times: usize) -> Result<u64, String> {
    for turn in 0..times {
        let part = call.part(comm, salt + turn);
        with_type!(call.element, T => {
            let mut buffers = part.buffers::<T>();
            part.block(comm, buffers.parts()).map_err(|e| format!("{call:?}: {e}"))?;
            part.check(&buffers)?;
        });
    }
    Ok(times as u64)
}

/// One started call.
fn start_one(comm: &mut Communicator, call: &Call) -> Result<u64, String> {
    let part = call.part(comm, 1);
    with_type!(call.element, T => {
        let request = comm.start(part.buffers::<T>(), |b| part.describe(b.parts())).map_err(say)?;
        part.check(&request.wait().map_err(say)?)?;
    });
    Ok(1)
}

/// A started call whose type is forgotten: what to do with it until it is over.
trait Pending {
    fn test(&mut self) -> Result<bool, lineweave::Error>;
    fn finish(self: Box<Self>) -> Result<(), String>;
}

struct Started<'c, T> {
    part: Part<'c>,
    request: Request<Buffers<T>>,
}

impl<T: Sample> Pending for Started<'_, T> {
    fn test(&mut self) -> Result<bool, lineweave::Error> {
        self.request.test()
    }

    fn finish(self: Box<Self>) -> Result<(), String> {
        let Started { part, request } = *self;
        part.check(&request.wait().map_err(say)?)
    }
}

/// Several calls under way at once; each rank waits for them in an order of its own, or tests.
fn started(comm: &mut Communicator, calls: &[Call], random: &mut Random) -> Result<u64, String> {
    let number = 1 + random.below(4);
    let mut pending: Vec<Box<dyn Pending + '_>> = Vec::new();
    for _ in 0..number {
        let call = &calls[random.below(calls.len())];
        let part = call.part(comm, random.below(1000));
        with_type!(call.element, T => {
            let request = comm.start(part.buffers::<T>(), |b| part.describe(b.parts())).map_err(say)?;
            pending.push(Box::new(Started { part, request }));
        });
    }
    if random.once_in(3) {
        // A call that blocks completes them first.
        comm.barrier().map_err(say)?;
    }
    let mut order = Random(comm.rank() as u64 + random.below(1000) as u64);
    while !pending.is_empty() {
        let mut next = pending.swap_remove(order.below(pending.len()));
        while order.once_in(2) && !next.test().map_err(say)? {
            std::thread::yield_now();
        }
        next.finish()?;
    }
    Ok(number as u64)
}

/// A prepared call, started some times with other data.
fn persistent(comm: &mut Communicator, calls: &[Call], random: &mut Random) -> Result<u64, String> {
    let call = &calls[random.below(calls.len())];
    let times = 1 + random.below(4);
    let salt = random.below(1000);
    with_type!(call.element, T => {
        let first = call.part(comm, salt).into_owned();
        let mut prepared: Persistent<Buffers<T>> =
            comm.init(first.buffers::<T>(), move |b| first.describe(b.parts())).map_err(say)?;
        for turn in 0..times {
            let part = call.part(comm, salt + turn);
            prepared.buffers().map_err(say)?.fill_from(part.buffers::<T>());
            prepared.start(comm).map_err(say)?;
            prepared.wait().map_err(say)?;
            part.check(prepared.buffers().map_err(say)?)?;
        }
    });
    Ok(times as u64)
}

/// Two calls with borrowed buffers in a scope.
fn borrowed(comm: &mut Communicator, calls: &[Call], random: &mut Random) -> Result<u64, String> {
    let call = &calls[random.below(calls.len())];
    let parts = [call.part(comm, random.below(1000)), call.part(comm, random.below(1000))];
    with_type!(call.element, T => {
        let [mut a, mut b] = [parts[0].buffers::<T>(), parts[1].buffers::<T>()];
        comm.scope(|scope| {
            let first = scope.start(parts[0].describe(a.parts()))?;
            let second = scope.start(parts[1].describe(b.parts()))?;
            second.wait().and(first.wait())
        }).map_err(say)?;
        parts[0].check(&a)?;
        parts[1].check(&b)?;
    });
    Ok(2)
}

fn message(from: usize, to: usize, len: usize, salt: usize) -> Vec<u32> {
    (0..len).map(|i| (from * 97 + to * 31 + i * 7 + salt) as u32).collect()
}

/// Each rank sends to the one `hop` further: exchanged, and among neighbours one after the other.
fn exchange(comm: &mut Communicator, hop: usize, len: usize, salt: usize) -> Result<u64, String> {
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let (to, from) = ((rank + hop) % ranks, (rank + ranks - hop) % ranks);
    let (tag, mut got) = (salt as u32 % 5, vec![u32::MAX; len + 1]);
    let n = comm.sendrecv(&message(rank, to, len, salt), to, tag, &mut got, from, tag).map_err(say)?;
    if n != len || got[..len] != message(from, rank, len, salt) || got[len] != u32::MAX {
        return Err(format!("an exchange of {len} words over {hop} of {ranks} ranks: wrong at rank {rank}"));
    }
    // Pairs 0-1, 2-3: first one way, then the other.
    let peer = rank ^ 1;
    if peer < ranks {
        for turn in 0..2 {
            match rank % 2 == turn {
                true => comm.send(&message(rank, peer, len, salt), peer, tag + 9).map_err(say)?,
                false => {
                    let n = comm.recv(&mut got, peer, tag + 9).map_err(say)?;
                    if n != len || got[..len] != message(peer, rank, len, salt) {
                        return Err(format!("a message of {len} words: wrong at rank {rank} of {ranks}"));
                    }
                }
            }
        }
    }
    Ok(1 + 2 * u64::from(peer < ranks))
}

/// Each rank puts into the window of the next one, and reads its own when the flag says so.
fn windows(place: &mut Member, salt: usize) -> Result<u64, String> {
    let (comm, words) = (&mut place.comm, WINDOW / 4);
    let (rank, ranks) = (comm.rank(), comm.ranks());
    let (to, from) = ((rank + 1) % ranks, (rank + ranks - 1) % ranks);
    place.flags += 1;
    // SAFETY: each rank has a part of every window to itself, which is read after its flag, and written again after a barrier.
    unsafe { comm.put(to, rank * WINDOW, &message(rank, to, words, salt)) }.map_err(say)?;
    comm.flag_set(to, rank, place.flags).map_err(say)?;
    comm.flag_wait(from, place.flags).map_err(say)?;
    let mut got = vec![0u32; words];
    // SAFETY: as above.
    unsafe { comm.get(rank, from * WINDOW, &mut got) }.map_err(say)?;
    if got != message(from, rank, words, salt) {
        return Err(format!("the window of rank {rank} of {ranks} has something else than rank {from} put"));
    }
    comm.barrier().map_err(say)?;
    Ok(3)
}

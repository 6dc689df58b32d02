//! Joining a team.

use super::attach;
use super::heaps::Heaps;
use super::memory::Reserved;
use super::walk::Walk;
use super::{Engine, Options};
use crate::called::Called;
use crate::choose::Book;
use crate::compile::{self, Home};
use crate::error::{Error, Loss};
use crate::flag::WakeFence;
use crate::kernel::Copier;
use crate::post::Post;
use crate::process;
use crate::ring::Ring;
use crate::scratch::Scratch;
use crate::segment::{BankClass, Geometry, Mapped, RankState, Segment};
use crate::wait::{self, Budget, Waiter};
use crate::watch::{Limits, Processes, Watch};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the ranks of one process and all communicators made from their team share.
#[derive(Debug)]
pub(crate) struct Family {
    pub processes: Arc<Processes>,
    /// This process, as no other is numbered: the kernel's numbers are not unique across its namespaces.
    pub process: u64,
}

impl Default for Family {
    fn default() -> Family {
        // The standard library's hashes start at random, and nothing else here needs random numbers.
        let process = RandomState::new().hash_one(std::process::id()).max(1);
        Family { processes: Arc::default(), process }
    }
}

/// The longest sleep while others have not joined, before looking whether one of them could not.
const LOOK: Duration = Duration::from_millis(5);

/// How a rank waits and copies.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ways {
    pub budget: Budget,
    pub order: WakeFence,
    pub limits: Limits,
    pub copy: Copier,
}

impl Engine {
    /// Joins a segment as `rank`, once every other rank has.
    ///
    /// # Errors
    /// [`Error::Memory`] when the rank's area cannot be reserved; [`Error::Timeout`] when other ranks have not
    /// joined within `patience`.
    pub(crate) fn join(
        segment: Arc<Segment>,
        rank: usize,
        options: Options,
        book: Book,
        family: Arc<Family>,
        patience: Duration,
    ) -> Result<Engine, Error> {
        let claimed = segment.claim(rank);
        let able = crate::sync::register_membarrier();
        if claimed.is_err() {
            segment.set_failed(rank, Loss::Failed);
        }
        attach::publish(&segment, rank, &family);
        segment.settle_here(rank);
        segment.join(rank, family.process, able);
        claimed?;
        let (joined, sleepers) = (segment.joined_word(), segment.header_sleepers());
        // How all can wake each other is known when all have joined.
        let order = WakeFence::Full;
        let start = Instant::now();
        loop {
            let came = segment.joined();
            if came >= segment.ranks() {
                // The last one wakes those who sleep.
                wait::wake_sleepers(joined, sleepers, order);
                break;
            }
            if let Some((lost, _)) = segment.failed() {
                return Err(Error::Failed(format!("rank {lost} could not join")));
            }
            if start.elapsed() > patience {
                let absent: Vec<String> = (0..segment.ranks())
                    .filter(|&q| segment.state(q) == RankState::Absent)
                    .map(|q| q.to_string())
                    .collect();
                return Err(Error::Timeout {
                    waiting: rank,
                    operation: "joining the team".into(),
                    sequence: 0,
                    missing: format!("rank {}", absent.join(", ")),
                    seconds: patience.as_secs_f64(),
                });
            }
            wait::sleep_while(joined, came as u64, sleepers, order, LOOK);
        }
        let mut book = book;
        if book.may_attach() && !book.direct() {
            book.set_can_attach(attach::all_reach_all(&segment, rank, &family, patience));
        }
        let order = if segment.all_able() { WakeFence::Membarrier } else { WakeFence::Full };
        let (budget, limits, copy) = (options.budget, options.limits, Copier::new(options.copy));
        let ways = Ways { budget, order, limits, copy };
        Ok(Engine::assemble(segment, rank, ways, book, family, Reserved::new(true)))
    }

    /// One rank's end of a segment that every rank has joined.
    pub(super) fn assemble(
        segment: Arc<Segment>,
        rank: usize,
        ways: Ways,
        book: Book,
        family: Arc<Family>,
        reserved: Reserved,
    ) -> Engine {
        let processes = Arc::clone(&family.processes);
        Engine {
            rank,
            family,
            reserved,
            mapped: vec![Mapped::NONE; segment.ranks()],
            announced: HashMap::new(),
            plans: Vec::new(),
            vacant: Vec::new(),
            setting_up: Duration::ZERO,
            banks: [BankClass::Small, BankClass::Large]
                .map(|c| (0..Geometry::banks(c)).map(|b| segment.bank(c, b)).collect()),
            heaps: Heaps::default(),
            agreements: 0,
            counters_start: segment.counters(),
            left: [BankClass::Small, BankClass::Large].map(|c| std::ptr::from_ref(segment.left(rank, c))),
            home: Home::of(&segment, rank),
            rings: [BankClass::Small, BankClass::Large].map(|c| Ring::new(Geometry::banks(c) as u64)),
            stay: None,
            walk: Walk::new(segment.geometry()),
            hot: None,
            hot_swap: None,
            base: 0,
            counters: 0,
            bases: vec![std::ptr::null_mut(); compile::PEERS as usize],
            scratch: Scratch::default(),
            reach_room: Scratch::default(),
            shadow: Scratch::default(),
            waiter: Waiter::new(ways.budget, ways.order),
            watch: Watch::new(Arc::clone(&segment), rank, ways.limits, processes, ways.order),
            copy: ways.copy,
            sequence: 0,
            sequence_word: segment.sequence(rank),
            called: Called::default(),
            history: 0,
            called_words: std::ptr::from_ref(segment.called_words(rank, 0)[0]).cast(),
            book,
            busy: false,
            failed: None,
            forks: process::forks(),
            queue: VecDeque::new(),
            looked: None,
            waited: Duration::ZERO,
            gone: false,
            post: Post::default(),
            segment,
        }
    }
}

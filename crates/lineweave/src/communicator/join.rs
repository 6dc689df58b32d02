//! Joining a team.

use super::{Communicator, Options};
use crate::choose::Book;
use crate::compile::{self, Home};
use crate::error::{Error, Loss};
use crate::flag::WakeFence;
use crate::kernel::Copier;
use crate::post::Post;
use crate::ring::Ring;
use crate::scratch::Scratch;
use crate::segment::{BankClass, Geometry, RankState, Segment};
use crate::wait::Waiter;
use crate::watch::Watch;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Communicator {
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
        patience: Duration,
    ) -> Result<Communicator, Error> {
        let claimed = segment.claim(rank);
        let able = crate::sync::register_membarrier();
        if claimed.is_err() {
            segment.set_failed(rank, Loss::Failed);
        }
        segment.join(rank, able);
        claimed?;
        let start = Instant::now();
        while segment.joined() < segment.ranks() {
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
            std::thread::sleep(Duration::from_micros(50));
        }
        let order = if segment.all_able() { WakeFence::Membarrier } else { WakeFence::Full };
        Ok(Communicator {
            rank,
            plans: Vec::new(),
            vacant: Vec::new(),
            banks: [BankClass::Small, BankClass::Large]
                .map(|c| (0..Geometry::banks(c)).map(|b| segment.bank(c, b)).collect()),
            counters_start: segment.counters(),
            left: [BankClass::Small, BankClass::Large].map(|c| std::ptr::from_ref(segment.left(rank, c))),
            home: Home::of(&segment, rank),
            rings: [BankClass::Small, BankClass::Large].map(|c| Ring::new(Geometry::banks(c) as u64)),
            stay: None,
            hot: None,
            hot_swap: None,
            base: 0,
            counters: 0,
            bases: vec![std::ptr::null_mut(); compile::PEERS as usize],
            scratch: Scratch::default(),
            shadow: Scratch::default(),
            waiter: Waiter::new(options.budget, order),
            watch: Watch::new(Arc::clone(&segment), rank, options.timeout),
            copy: Copier::new(options.copy),
            sequence: 0,
            sequence_word: segment.sequence(rank),
            book,
            busy: false,
            failed: None,
            post: Post::default(),
            window: 0,
            segment,
        })
    }
}

//! Joining a team.

use super::attach;
use super::banks::Reserved;
use super::run::Options;
use super::state::Engine;
use super::wire::{Family, Ways};
use crate::choose::Book;
use crate::error::{Error, Loss};
use crate::flag::WakeFence;
use crate::kernel::Copier;
use crate::segment::{RankState, Segment};
use crate::wait;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
            wait::sleep_while(joined, came as u64, sleepers, order, wait::EVERY);
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
}

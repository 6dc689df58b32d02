//! Joining a team.

use super::attach;
use super::banks::Reserved;
use super::run::Options;
use super::state::Engine;
use super::transport::{ProcessGroup, TransportConfig};
use crate::choose::PlanSelector;
use crate::error::{Error, Loss};
use crate::flag::WakeFence;
use crate::kernel::Copier;
use crate::segment::{RankState, Segment};
use crate::sync::AtomicU64;
use crate::wait;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// While others have not joined, as many ranks look around as often as one that waits: of more, each looks less often, and leaves the CPUs
/// to those that are still to come.
const LOOKERS: usize = 16;

/// Waits until a count in the header, which each rank raises once, says that all have; `end` may say that it never will. Nobody wakes others
/// but the last one, so a rank is woken once.
pub(super) fn await_all<E>(
    segment: &Segment,
    word: &AtomicU64,
    came: impl Fn(&Segment) -> usize,
    mut end: impl FnMut() -> Option<E>,
) -> Result<(), E> {
    let ranks = segment.ranks();
    let look = wait::EVERY * ranks.div_ceil(LOOKERS) as u32;
    // How all can wake each other is known when all have joined.
    let (sleepers, order) = (segment.header_sleepers(), WakeFence::Full);
    loop {
        let seen = came(segment);
        if seen >= ranks {
            // The last one wakes those who sleep.
            wait::wake_sleepers(word, sleepers, order);
            return Ok(());
        }
        if let Some(why) = end() {
            return Err(why);
        }
        wait::sleep_while(word, seen as u64, sleepers, order, look);
    }
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
        selector: PlanSelector,
        group: Arc<ProcessGroup>,
        patience: Duration,
    ) -> Result<Engine, Error> {
        let claimed = segment.claim(rank);
        let able = crate::sync::register_membarrier();
        if claimed.is_err() {
            segment.set_failed(rank, Loss::Failed);
        }
        attach::publish(&segment, rank, &group);
        segment.settle_here(rank);
        segment.join(rank, group.process, able);
        claimed?;
        let start = Instant::now();
        await_all(&segment, segment.joined_word(), Segment::joined, || {
            if let Some((lost, _)) = segment.failed() {
                return Some(Error::Failed(format!("rank {lost} could not join")));
            }
            (start.elapsed() > patience).then(|| late(&segment, rank, patience))
        })?;
        let mut selector = selector;
        if selector.may_attach() && !selector.direct() {
            selector.set_can_attach(attach::all_reach_all(&segment, rank, &group, patience));
        }
        let order = if segment.all_able() { WakeFence::Membarrier } else { WakeFence::Full };
        let (budget, limits, copy) = (options.budget, options.limits, Copier::new(options.copy));
        let transport_config = TransportConfig { budget, order, limits, copy };
        let reserved = Reserved::at_join(segment.geometry());
        Ok(Engine::assemble(segment, rank, transport_config, selector, group, reserved, 0))
    }
}

/// The error when not all have come.
fn late(segment: &Segment, rank: usize, patience: Duration) -> Error {
    let absent = (0..segment.ranks()).filter(|&q| segment.state(q) == RankState::Absent);
    let absent: Vec<String> = absent.map(|q| q.to_string()).collect();
    Error::Timeout {
        waiting: rank,
        operation: "joining the team".into(),
        sequence: 0,
        missing: format!("rank {}", absent.join(", ")),
        seconds: patience.as_secs_f64(),
    }
}

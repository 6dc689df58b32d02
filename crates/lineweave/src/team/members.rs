//! Teams of threads that the program brings itself, and the part of a larger team that is threads of this process.

use super::{join, Team, TeamConfig};
use crate::communicator::Communicator;
use crate::engine::ProcessGroup;
use crate::error::Error;
use crate::segment::Segment;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// A team whose ranks are joined one by one, by threads of this process; or those of its ranks that this process has.
///
/// ```
/// let team = lineweave::team::Team::new(2)?.members();
/// std::thread::scope(|scope| {
///     let handles: Vec<_> = (0..2).map(|rank| scope.spawn({
///         let team = &team;
///         move || team.join(rank)?.barrier()
///     })).collect();
///     handles.into_iter().try_for_each(|handle| handle.join().expect("no rank panics"))
/// })?;
/// # Ok::<(), lineweave::Error>(())
/// ```
#[derive(Debug)]
pub struct Members {
    segment: Arc<Segment>,
    config: TeamConfig,
    group: Arc<ProcessGroup>,
    /// The ranks of this process.
    mine: Range<usize>,
    taken: Mutex<Vec<bool>>,
}

impl Team {
    /// The team for threads that the program brings. They are not bound to CPUs: they are not lineweave's, and
    /// whatever they start later would inherit it.
    pub fn members(self) -> Members {
        let Team { segment, mut config } = self;
        config.direct = true;
        config.bind = false;
        let mine = 0..config.ranks();
        Members::of(segment, config, Arc::default(), mine)
    }
}

impl Members {
    pub(super) fn of(
        segment: Arc<Segment>,
        config: TeamConfig,
        group: Arc<ProcessGroup>,
        mine: Range<usize>,
    ) -> Members {
        let taken = Mutex::new(vec![false; config.ranks()]);
        Members { segment, config, group, mine, taken }
    }

    /// Those that threads of this process are to join.
    pub fn mine(&self) -> Range<usize> {
        self.mine.clone()
    }

    /// The number of ranks.
    pub fn ranks(&self) -> usize {
        self.config.ranks()
    }

    /// Makes the calling thread `rank`, and returns when every other rank has been joined.
    ///
    /// # Errors
    /// [`Error::Rank`] when there is no such rank or it was joined before; [`Error::Memory`]; [`Error::Timeout`] when the
    /// others do not come.
    pub fn join(&self, rank: usize) -> Result<Communicator, Error> {
        let ranks = self.ranks();
        {
            let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
            let why = match taken.get(rank) {
                None => Some("the team has no such rank"),
                Some(_) if !self.mine.contains(&rank) => Some("it belongs to another process"),
                Some(true) => Some("it was joined before"),
                Some(false) => None,
            };
            if let Some(why) = why {
                return Err(Error::Rank { rank, ranks, why });
            }
            taken[rank] = true;
        }
        join(Arc::clone(&self.segment), &self.config, rank, Arc::clone(&self.group))
    }
}

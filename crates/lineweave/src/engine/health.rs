//! The state of an engine: usable, failed, or inherited by a forked process.

use crate::error::Error;
use crate::process;

/// State of one rank's end.
pub(super) struct Health {
    /// True within a call; dropping the communicator then is a failure that peers are told of.
    pub busy: bool,
    /// Reason why the engine cannot be used any more, or `None`.
    pub failed: Option<String>,
    /// Number of forks, by [`process::forks`], when the engine was made.
    forks: u64,
    /// True once peers have been told that this rank is gone.
    pub gone: bool,
}

impl Health {
    pub fn new() -> Health {
        Health { busy: false, failed: None, forks: process::forks(), gone: false }
    }

    /// Returns whether it belongs to the process that this one was forked from.
    #[inline(always)]
    pub fn is_inherited(&self) -> bool {
        self.forks != process::forks()
    }

    /// Nothing, where it can be used.
    ///
    /// # Errors
    /// [`Error::Failed`], [`Error::Forked`].
    #[inline(always)]
    pub fn expect_usable(&self) -> Result<(), Error> {
        if let Some(why) = &self.failed {
            return Err(Error::Failed(why.clone()));
        }
        if self.is_inherited() {
            return Err(Error::Forked);
        }
        Ok(())
    }
}

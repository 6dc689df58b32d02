//! Interfaces for the crate `lineweave-tune` and the command `lineweave`, and for no program. They follow the engine and change without
//! notice.

pub use crate::affinity::{current_cpu, pin, AffinityError};
pub use crate::attach::read as read_process;
pub use crate::choose::ChoiceOverride;
pub use crate::near::{probe as memory_policy, renew, Near};
pub use crate::scratch::Scratch;
pub use crate::throttle::throttle;
pub use crate::wait::{Between, Budget, SLEEP};

use crate::call::CallSpec;
use crate::communicator::Communicator;
use crate::error::Error;
use crate::tuning::Chosen;

#[doc(hidden)]
impl Communicator {
    /// Changes how this rank waits.
    pub fn set_wait_budget(&mut self, budget: Budget) {
        self.engine().transport.waiter.set_budget(budget);
    }

    /// Returns the wait budget of this rank.
    pub fn wait_budget(&mut self) -> Budget {
        self.engine().transport.waiter.budget()
    }

    /// Sets whether waits take the lines of the next bank, and returns whether they did.
    pub fn set_ahead(&mut self, ahead: bool) -> bool {
        std::mem::replace(&mut self.engine().selector.ahead, ahead)
    }

    /// Proves and compiles a choice for a call, to be used by [`Communicator::adopt`]. Every rank must prepare the
    /// same choices in the same order.
    ///
    /// # Errors
    /// [`Error::Plan`] or [`Error::NoPlan`] when it does not apply, [`Error::Refuted`].
    pub fn prepare_choice(&mut self, call: &CallSpec, chosen: &Chosen) -> Result<ChoiceOverride, Error> {
        self.engine().prepare_choice(call, chosen)
    }

    /// Calls of this size run this choice from now on, whatever the tuning says, until
    /// [`Communicator::forget`]. Every rank must adopt the same.
    pub fn adopt(&mut self, choice: &ChoiceOverride) {
        self.engine().adopt(choice);
    }

    /// Calls of this size run what the tuning says again.
    pub fn forget(&mut self, choice: &ChoiceOverride) {
        self.engine().forget(choice);
    }
}

//! Calls that are made again and again with the same buffers.

use super::{carry_on, Keep, Operation, Recipe};
use crate::communicator::{Communicator, LockedEngine};
use crate::engine::RequestState;
use crate::error::Error;
use crate::progress;
use std::any::Any;
use std::sync::Arc;

/// Says what to do with buffers.
type Describe<B> = dyn for<'b> FnMut(&'b mut B) -> Operation<'b> + Send;

/// A call that can be started again when it is over. Its buffers are its own until it is dropped. [`Communicator::init`] makes
/// one, and has an example.
pub struct Persistent<B = ()> {
    shared: Arc<LockedEngine>,
    recipe: Recipe,
    /// Of buffers that a program may replace between two starts: where they are is asked again.
    describe: Option<Box<Describe<B>>>,
    ticket: Arc<RequestState>,
    keep: Arc<Keep<B>>,
    /// True from its start until it is seen to be complete.
    active: bool,
}

// SAFETY: the addresses in the recipe are of buffers that it owns or that outlive it; nothing is tied to a thread.
unsafe impl<B: Send> Send for Persistent<B> {}

impl<B> std::fmt::Debug for Persistent<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Persistent").field("active", &self.active).finish_non_exhaustive()
    }
}

impl<B: Send + 'static> Persistent<B> {
    /// A call on buffers that stay where they are as long as it may be started.
    pub(super) fn new(comm: &Communicator, recipe: Recipe, keep: Keep<B>) -> Persistent<B> {
        let (shared, ticket) = (Arc::clone(comm.shared()), Arc::default());
        Persistent { shared, recipe, describe: None, ticket, keep: Arc::new(keep), active: false }
    }

    /// Finds out where the buffers are now.
    fn find_buffers(&mut self, comm: &Communicator) -> Result<(), Error> {
        let Some(describe) = &mut self.describe else { return Ok(()) };
        // SAFETY: made by `Box::into_raw`, and calls use it only while active.
        let recipe = describe(unsafe { &mut *self.keep.0 }).resolve(comm)?;
        if recipe.call != self.recipe.call || !recipe.lengths.equal(&self.recipe.lengths) {
            return Err(Error::Request(
                "its buffers have other lengths than when it was prepared; prepare another one",
            ));
        }
        self.recipe = recipe;
        Ok(())
    }

    /// Starts it on the communicator that it was prepared for.
    ///
    /// # Errors
    /// [`Error::Request`] when it is of another communicator, or was started and not waited for, or when its buffers have changed in
    /// length.
    pub fn start(&mut self, comm: &mut Communicator) -> Result<(), Error> {
        if !Arc::ptr_eq(&self.shared, comm.shared()) {
            return Err(Error::Request("it was prepared for another communicator"));
        }
        if self.active {
            return Err(Error::Request("it was started before; wait for it first"));
        }
        self.find_buffers(comm)?;
        self.ticket.reset();
        self.active = true;
        let keep = Arc::clone(&self.keep) as Arc<dyn Any + Send + Sync>;
        comm.enqueue(self.recipe.jobs(&self.ticket, Some(keep)));
        Ok(())
    }

    /// Returns whether it is over, after carrying started calls on a little; true also if it was not started.
    ///
    /// # Errors
    /// How the call failed, as the blocking one would have.
    pub fn test(&mut self) -> Result<bool, Error> {
        if !self.active {
            return Ok(true);
        }
        if !self.ticket.is_done() {
            carry_on(&self.shared);
            progress::turn();
        }
        match self.ticket.outcome() {
            None => Ok(false),
            Some(outcome) => {
                self.active = false;
                outcome.map(|()| true)
            }
        }
    }

    /// Waits until it is over; returns at once if it was not started.
    ///
    /// # Errors
    /// How the call failed, as the blocking one would have.
    pub fn wait(&mut self) -> Result<(), Error> {
        if self.active {
            self.shared.wait(&self.ticket);
        }
        self.test().map(|_| ())
    }

    /// Its buffers, while it is not under way: to fill them and to read the result, or to put others of the same length in their place.
    ///
    /// # Errors
    /// [`Error::Request`] when it was started and not waited for.
    pub fn buffers(&mut self) -> Result<&mut B, Error> {
        match self.active {
            true => Err(Error::Request("its buffers are in use; wait for it first")),
            // SAFETY: made by `Box::into_raw`, and calls use it only while active.
            false => Ok(unsafe { &mut *self.keep.0 }),
        }
    }
}

impl Communicator {
    /// Prepares a call that is to be started again and again, with buffers that it owns; `describe` says what to do with
    /// them, and is asked at each start.
    ///
    /// # Errors
    /// The errors of [`Communicator::start`].
    ///
    /// ```
    /// use lineweave::{Operation, Operator};
    /// let sums = lineweave::team::threads(2, |mut comm| {
    ///     let buffers = ([0u64], [0u64]);
    ///     let mut sum = comm.init(buffers, |(mine, all)| Operation::allreduce(mine, all, Operator::Sum))?;
    ///     let mut total = 0;
    ///     for turn in 0..10 {
    ///         sum.buffers()?.0[0] = turn;
    ///         sum.start(&mut comm)?;
    ///         sum.wait()?;
    ///         total += sum.buffers()?.1[0];
    ///     }
    ///     Ok(total)
    /// })?;
    /// assert_eq!(sums, [90; 2]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn init<B: Send + 'static>(
        &mut self,
        buffers: B,
        mut describe: impl for<'b> FnMut(&'b mut B) -> Operation<'b> + Send + 'static,
    ) -> Result<Persistent<B>, Error> {
        let keep = Keep::new(buffers);
        // SAFETY: made by `Box::into_raw`, and nobody else has it yet.
        let recipe = describe(unsafe { &mut *keep.0 }).resolve(self)?;
        Ok(Persistent { describe: Some(Box::new(describe)), ..Persistent::new(self, recipe, keep) })
    }
}

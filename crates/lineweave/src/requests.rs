//! Calls that are started and waited for later, once or again and again.
//!
//! An [`Operation`] says what to call with which buffers. It is started
//! - within a [`Scope`], which borrows buffers and completes what was started in it before it ends;
//! - with buffers that the [`Request`] owns, and gives back in the end: [`Communicator::start`], and for each collective a call such as
//!   [`Communicator::start_allreduce`];
//! - again and again, as a [`Persistent`].
//!
//! So buffers live until their calls are over, even if a request is dropped or forgotten: a call goes on all the same, since the
//! other ranks count on it. Started calls of a communicator are carried out in the order in which they were started, which must
//! be the same on all ranks. They are carried on whenever this rank waits or tests, in whatever communicator, and by a helper thread
//! if there is one ([`Communicator::set_progress_thread`]).

mod operation;
mod persistent;
mod scope;
mod started;

pub use operation::Operation;
pub use persistent::Persistent;
pub use scope::{Repeated, Scope};

use crate::backoff::Backoff;
use crate::call::CallSpec;
use crate::communicator::{Communicator, LockedEngine};
use crate::engine::{Lengths, NonblockingCall, RequestState};
use crate::error::Error;
use crate::progress::{self, Progress, Progressed};
use crate::sync::Ordering;
use std::any::Any;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Buffers that no Rust reference points to while calls use them.
#[derive(Debug)]
struct Keep<B>(*mut B);

// SAFETY: who has it hands the buffers over with it; calls that use them are carried out by one thread at a time.
unsafe impl<B: Send> Send for Keep<B> {}
// SAFETY: as above; nothing is reached through a shared reference.
unsafe impl<B: Send> Sync for Keep<B> {}

impl<B> Keep<B> {
    fn new(buffers: B) -> Keep<B> {
        Keep(Box::into_raw(Box::new(buffers)))
    }

    fn into_inner(self) -> B {
        let start = std::mem::ManuallyDrop::new(self).0;
        // SAFETY: made by `Box::into_raw`, and not dropped.
        *unsafe { Box::from_raw(start) }
    }
}

impl<B> Drop for Keep<B> {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw`, and nobody else's.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// Lengths of the blocks of a call on raw buffers, in elements.
#[derive(Clone, Copy, Debug)]
pub enum Blocks<'a> {
    /// As [`CallSpec::count`] says.
    Even,
    /// One number for each rank, equal on all.
    Ranks(&'a [usize]),
    /// Of an alltoall: what this rank gives to each, and takes from each.
    Pairs {
        /// Given to each rank.
        given: &'a [usize],
        /// Taken from each rank.
        taken: &'a [usize],
    },
}

/// A call with its buffers as addresses: it may be made several times.
#[derive(Clone, Debug)]
pub(crate) struct Recipe {
    pub call: CallSpec,
    pub lengths: Lengths,
    pub input: *const u8,
    pub output: *mut u8,
}

impl Recipe {
    /// The calls that it consists of; the last one's end is the end.
    fn jobs(
        &self,
        ticket: &Arc<RequestState>,
        keep: Option<Arc<dyn Any + Send + Sync>>,
    ) -> impl Iterator<Item = NonblockingCall> {
        let before = match &self.lengths {
            Lengths::Even | Lengths::Uneven(_) => None,
            Lengths::Gathered(pairs) => {
                let pairs = Arc::clone(pairs);
                let buffers = pairs.buffers();
                Some(NonblockingCall::new(pairs.call(), Lengths::Even, buffers, Arc::default(), Some(pairs)))
            }
        };
        let buffers = (self.input, self.output);
        let main = NonblockingCall::new(self.call, self.lengths.clone(), buffers, Arc::clone(ticket), keep);
        before.into_iter().chain(Some(main))
    }
}

/// A started call. [`Communicator::start_allreduce`] has an example.
///
/// Dropping it does not end the call: it goes on, and buffers that the request owns live until it is over.
#[must_use = "a call that nobody waits for is completed by a later one on its communicator"]
pub struct Request<B = ()> {
    shared: Arc<LockedEngine>,
    ticket: Arc<RequestState>,
    keep: Option<Arc<Keep<B>>>,
}

impl<B> std::fmt::Debug for Request<B> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("done", &self.ticket.is_done()).finish_non_exhaustive()
    }
}

/// Carries a communicator's started calls on without waiting.
fn carry_on(shared: &Arc<LockedEngine>) {
    let started: Arc<dyn Progress> = Arc::<LockedEngine>::clone(shared);
    if started.progress() != Progressed::Over {
        // The thread that tests now is the one to carry it on.
        progress::register(&started);
    }
}

impl<B> Request<B> {
    /// Returns whether it is over, after carrying started calls on a little.
    ///
    /// # Errors
    /// How the call failed, as the blocking one would have.
    ///
    /// ```
    /// use lineweave::Operator;
    /// lineweave::team::threads(2, |mut comm| {
    ///     let mut request = comm.start_allreduce(vec![1, 2], Operator::Sum)?;
    ///     while !request.test()? {
    ///         // Some of the program's own work.
    ///     }
    ///     assert_eq!(request.wait()?, [2, 4]);
    ///     Ok(())
    /// })?;
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn test(&mut self) -> Result<bool, Error> {
        if !self.ticket.is_done() {
            carry_on(&self.shared);
            progress::turn();
        }
        self.ticket.outcome().map_or(Ok(false), |outcome| outcome.map(|()| true))
    }

    /// Waits until it is over and returns the buffers that it owns.
    ///
    /// # Errors
    /// How the call failed, as the blocking one would have. Owned buffers are lost then. An example is at [`Communicator::start`].
    pub fn wait(mut self) -> Result<B, Error> {
        self.shared.wait(&self.ticket);
        self.finish()
    }

    fn finish(&mut self) -> Result<B, Error> {
        self.ticket.outcome().unwrap_or_else(|| Err(lost()))?;
        let keep = self.keep.take().and_then(Arc::into_inner);
        keep.map(Keep::into_inner).ok_or_else(lost)
    }
}

fn lost() -> Error {
    Error::Failed("a request was waited for before it was over, or twice".into())
}

impl<B> Future for Request<B> {
    type Output = Result<B, Error>;

    /// Carries the call on. Without a helper thread it asks to be polled again at once: nobody else may carry it on.
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<B, Error>> {
        carry_on(&self.shared);
        if self.ticket.is_done() || !self.ticket.wake(context.waker()) {
            return Poll::Ready(self.finish());
        }
        // Relaxed: a preference; in doubt it is polled once more.
        if !self.shared.helped.load(Ordering::Relaxed) {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl<B> Unpin for Request<B> {}

/// Waits for all of them, in any order of their ends.
///
/// # Errors
/// The first one's that failed; all are over then.
///
/// ```
/// use lineweave::{requests::wait_all, Operator};
/// lineweave::team::threads(2, |mut comm| {
///     let mut started = Vec::new();
///     for mine in [1, 2] {
///         started.push(comm.start_allreduce(vec![mine], Operator::Sum)?);
///     }
///     assert_eq!(wait_all(started)?, [[2], [4]]);
///     Ok(())
/// })?;
/// # Ok::<(), lineweave::Error>(())
/// ```
pub fn wait_all<B>(requests: Vec<Request<B>>) -> Result<Vec<B>, Error> {
    let ended: Vec<Result<B, Error>> = requests.into_iter().map(Request::wait).collect();
    ended.into_iter().collect()
}

/// Waits until one of them is over, takes it out and returns where it was and what its wait returns: its buffers, or how its
/// call failed. `None` when there are none.
///
/// ```
/// use lineweave::{requests::wait_any, Operator};
/// lineweave::team::threads(2, |mut comm| {
///     let mut started = Vec::new();
///     for mine in [1, 2] {
///         started.push(comm.start_allreduce(vec![mine], Operator::Sum)?);
///     }
///     let mut sums = Vec::new();
///     while let Some((_, sum)) = wait_any(&mut started) {
///         sums.push(sum?[0]);
///     }
///     sums.sort();
///     assert_eq!(sums, [2, 4]);
///     Ok(())
/// })?;
/// # Ok::<(), lineweave::Error>(())
/// ```
pub fn wait_any<B>(requests: &mut Vec<Request<B>>) -> Option<(usize, Result<B, Error>)> {
    let mut backoff = Backoff::at_work();
    while !requests.is_empty() {
        let over = requests.iter_mut().position(|request| !matches!(request.test(), Ok(false)));
        if let Some(at) = over {
            return Some((at, requests.remove(at).wait()));
        }
        backoff.pause();
    }
    None
}

/// Returns whether all of them are over, after carrying them on a little.
///
/// # Errors
/// That of one that failed.
///
/// ```
/// use lineweave::{requests::test_all, Operator};
/// lineweave::team::threads(2, |mut comm| {
///     let mut started = Vec::new();
///     for mine in [1, 2] {
///         started.push(comm.start_allreduce(vec![mine], Operator::Sum)?);
///     }
///     while !test_all(&mut started)? {}
///     Ok(())
/// })?;
/// # Ok::<(), lineweave::Error>(())
/// ```
pub fn test_all<B>(requests: &mut [Request<B>]) -> Result<bool, Error> {
    let mut all = true;
    for request in requests {
        all &= request.test()?;
    }
    Ok(all)
}

impl Communicator {
    /// Starts a call with buffers that the request owns; `describe` says what to do with them.
    ///
    /// # Errors
    /// What is wrong with the call as far as this rank alone can tell; nothing is started then.
    ///
    /// ```
    /// use lineweave::{Operation, Operator};
    /// let sums = lineweave::team::threads(3, |mut comm| {
    ///     let buffers = (vec![comm.rank() as u64; 4], vec![0; 4]);
    ///     let request = comm.start(buffers, |(mine, sum)| Operation::allreduce(mine, sum, Operator::Sum))?;
    ///     // Something else.
    ///     let (_, sum) = request.wait()?;
    ///     Ok(sum[0])
    /// })?;
    /// assert_eq!(sums, [3; 3]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn start<B: Send + 'static>(
        &mut self,
        buffers: B,
        describe: impl for<'b> FnOnce(&'b mut B) -> Operation<'b>,
    ) -> Result<Request<B>, Error> {
        let keep = Arc::new(Keep::new(buffers));
        // SAFETY: made by `Box::into_raw`, and nobody else has it yet.
        let operation = describe(unsafe { &mut *keep.0 });
        let recipe = operation.resolve(self)?;
        let shared: Arc<Keep<B>> = Arc::clone(&keep);
        Ok(self.launch(&recipe, keep, Some(shared)))
    }

    /// Starts a call on raw buffers.
    ///
    /// # Errors
    /// The errors of [`Communicator::start`].
    ///
    /// # Safety
    /// The conditions of [`Communicator::call`] hold until the call is over: its request says so, or a call on this communicator that blocks has
    /// returned.
    pub unsafe fn start_call(
        &mut self,
        call: &CallSpec,
        blocks: Blocks<'_>,
        input: *const u8,
        output: *mut u8,
    ) -> Result<Request, Error> {
        let recipe = self.recipe(call, blocks, input, output)?;
        Ok(self.launch(&recipe, Arc::new(Keep::new(())), None))
    }

    /// Prepares a call on raw buffers that is to be started again and again.
    ///
    /// # Errors
    /// The errors of [`Communicator::start`].
    ///
    /// # Safety
    /// The conditions of [`Communicator::start_call`] hold whenever it is started.
    pub unsafe fn init_call(
        &mut self,
        call: &CallSpec,
        blocks: Blocks<'_>,
        input: *const u8,
        output: *mut u8,
    ) -> Result<Persistent, Error> {
        let recipe = self.recipe(call, blocks, input, output)?;
        Ok(Persistent::new(self, recipe, Keep::new(())))
    }

    fn recipe(
        &self,
        call: &CallSpec,
        blocks: Blocks<'_>,
        input: *const u8,
        output: *mut u8,
    ) -> Result<Recipe, Error> {
        let lengths = match blocks {
            Blocks::Even => Lengths::Even,
            Blocks::Ranks(counts) => {
                self.places(call, Some(counts))?;
                Lengths::Uneven(counts.into())
            }
            Blocks::Pairs { given, taken } => {
                crate::call::expect_counts(given, taken, self.ranks())?;
                Lengths::pairs(given, taken)
            }
        };
        let recipe = Recipe { call: *call, lengths, input, output };
        self.check_recipe(&recipe)?;
        Ok(recipe)
    }

    fn launch<B: Send + 'static>(
        &mut self,
        recipe: &Recipe,
        keep: Arc<Keep<B>>,
        kept: Option<Arc<Keep<B>>>,
    ) -> Request<B> {
        let ticket = Arc::<RequestState>::default();
        self.enqueue(recipe.jobs(&ticket, kept.map(|keep| keep as Arc<dyn Any + Send + Sync>)));
        Request { shared: Arc::clone(self.shared()), ticket, keep: Some(keep) }
    }

    /// Checks root, operator and element type of a call before other ranks know of the call.
    fn check_recipe(&self, recipe: &Recipe) -> Result<(), Error> {
        let CallSpec { collective, element, operator, root, .. } = recipe.call;
        if root >= self.ranks() {
            return Err(Error::Root { collective, root, ranks: self.ranks() });
        }
        if let Some(operator) = operator {
            crate::kernel::Fold::of(operator, element).map_err(|e| Error::Operator(e.to_string()))?;
        }
        Ok(())
    }

    /// Completes everything that was started.
    pub fn complete(&mut self) {
        self.engine();
    }
}

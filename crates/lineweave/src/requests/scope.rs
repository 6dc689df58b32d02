//! Started calls with borrowed buffers.

use super::{Keep, Operation, Persistent, Request};
use crate::communicator::{Communicator, LockedEngine};
use crate::error::Error;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;

/// Scope in which calls with borrowed buffers can be started. What was started is over when the scope ends. [`Communicator::scope`] makes
/// one, and has an example.
#[derive(Debug)]
pub struct Scope<'scope, 'env: 'scope> {
    comm: RefCell<&'env mut Communicator>,
    started: Started,
    /// Invariant, as in [`std::thread::scope`]: neither can be made shorter.
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// Engines whose calls were started in a scope. The calls are completed when the scope ends; if it panics, they are ended.
#[derive(Default)]
struct Started(RefCell<Vec<Arc<LockedEngine>>>);

impl std::fmt::Debug for Started {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Started").field(&self.0.borrow().len()).finish()
    }
}

impl Started {
    /// Notes the communicator, which a program may swap for another one while the scope lasts.
    fn on(&self, comm: &Communicator) {
        let mut known = self.0.borrow_mut();
        if !known.iter().any(|shared| Arc::ptr_eq(shared, comm.shared())) {
            known.push(Arc::clone(comm.shared()));
        }
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        for shared in self.0.get_mut().drain(..) {
            // To complete them while panicking could mean to wait for ranks that wait for this one.
            match std::thread::panicking() {
                true => shared.abandon("the rank panicked"),
                false => shared.complete(),
            }
        }
    }
}

/// A call with borrowed buffers that is started again and again while its scope lasts ([`Scope::restart`]).
#[derive(Debug)]
pub struct Repeated<'scope> {
    call: Persistent,
    borrowed: PhantomData<&'scope mut ()>,
}

impl Repeated<'_> {
    /// As [`Persistent::test`].
    ///
    /// # Errors
    /// The errors of [`Persistent::test`].
    pub fn test(&mut self) -> Result<bool, Error> {
        self.call.test()
    }

    /// As [`Persistent::wait`].
    ///
    /// # Errors
    /// The errors of [`Persistent::wait`].
    pub fn wait(&mut self) -> Result<(), Error> {
        self.call.wait()
    }
}

impl Communicator {
    /// Runs `f`, in which calls with borrowed buffers can be started, and completes them all before it returns.
    ///
    /// ```
    /// use lineweave::{Operation, Operator};
    /// let found = lineweave::team::threads(2, |mut comm| {
    ///     let mine = [comm.rank() as f64 + 1.0];
    ///     let (mut sum, mut product) = ([0.0], [0.0]);
    ///     comm.scope(|scope| {
    ///         let first = scope.start(Operation::allreduce(&mine, &mut sum, Operator::Sum))?;
    ///         let second = scope.start(Operation::allreduce(&mine, &mut product, Operator::Prod))?;
    ///         second.wait()?;
    ///         first.wait()
    ///     })?;
    ///     Ok((sum[0], product[0]))
    /// })?;
    /// assert_eq!(found, [(3.0, 2.0); 2]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn scope<'env, T>(&'env mut self, f: impl for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T) -> T {
        f(&Scope {
            comm: RefCell::new(self),
            started: Started::default(),
            scope: PhantomData,
            env: PhantomData,
        })
    }
}

impl<'scope> Scope<'scope, '_> {
    /// Starts a call whose buffers live as long as the scope.
    ///
    /// # Errors
    /// What is wrong with the call as far as this rank alone can tell; nothing is started then.
    pub fn start(&'scope self, operation: Operation<'scope>) -> Result<Request, Error> {
        let mut comm = self.comm.borrow_mut();
        let recipe = operation.resolve(&comm)?;
        self.started.on(&comm);
        Ok(comm.launch(&recipe, Arc::new(Keep::new(())), None))
    }

    /// Prepares a call that is to be started again and again while the scope lasts, by [`Scope::restart`].
    ///
    /// # Errors
    /// The errors of [`Scope::start`].
    pub fn init(&'scope self, operation: Operation<'scope>) -> Result<Repeated<'scope>, Error> {
        let comm = self.comm.borrow();
        let call = Persistent::new(&comm, operation.resolve(&comm)?, Keep::new(()));
        Ok(Repeated { call, borrowed: PhantomData })
    }

    /// Starts a prepared call.
    ///
    /// # Errors
    /// The errors of [`Persistent::start`].
    ///
    /// ```
    /// use lineweave::{Operation, Operator};
    /// let sums = lineweave::team::threads(2, |mut comm| {
    ///     let (mine, mut sum) = ([comm.rank() as u64 + 1], [0]);
    ///     comm.scope(|scope| {
    ///         let mut call = scope.init(Operation::allreduce(&mine, &mut sum, Operator::Sum))?;
    ///         scope.restart(&mut call)?;
    ///         call.wait()?;
    ///         scope.restart(&mut call)?;
    ///         scope.with(|comm| comm.barrier())?; // Completes the call, too.
    ///         call.wait()
    ///     })?;
    ///     Ok(sum[0])
    /// })?;
    /// assert_eq!(sums, [3, 3]);
    /// # Ok::<(), lineweave::Error>(())
    /// ```
    pub fn restart(&'scope self, call: &mut Repeated<'scope>) -> Result<(), Error> {
        let mut comm = self.comm.borrow_mut();
        self.started.on(&comm);
        call.call.start(&mut comm)
    }

    /// Does something with the communicator in between. Calls that block complete what was started.
    pub fn with<T>(&self, f: impl FnOnce(&mut Communicator) -> T) -> T {
        f(&mut self.comm.borrow_mut())
    }
}

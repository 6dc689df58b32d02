//! Fast path for language bindings: repeats the previous call without resolving its arguments again, which would cost more than
//! the call itself.
//!
//! A binding calls `try_..._again`; after [`FastPathResult::Waits`] it calls `end_...`, from where it can be told of errors; after
//! [`FastPathResult::Other`] it calls as usual.

use crate::call::CallSpec;
use crate::communicator::Communicator;
use crate::engine::FastPathResult;
use crate::error::Error;
use crate::wait::Between;
use std::num::NonZeroU64;

/// Methods for language bindings; programs do not call them.
#[doc(hidden)]
impl Communicator {
    /// Makes a barrier, if that is what was called last. It neither waits for long nor panics. Its looks pause: a fence between them
    /// wins only where nothing but the barrier lies between two calls (docs/explanation/findings.md, "What lies between two polls").
    #[inline(always)]
    pub fn try_barrier_again(&mut self) -> FastPathResult {
        self.idle_engine().map_or(FastPathResult::Other, |engine| engine.repeat_barrier(Between::Pause))
    }

    /// Ends a barrier that waits.
    pub fn end_barrier(&mut self) -> Result<(), Error> {
        self.engine().end_exchange()
    }

    /// Returns the ticket by which [`Communicator::try_allreduce_again`] knows this allreduce, if it was called last and can be made so.
    pub fn allreduce_ticket(&mut self, call: &CallSpec) -> Option<NonZeroU64> {
        self.engine().swap_ticket(call)
    }

    /// Makes the allreduce of this ticket, if no other call was made since. It neither waits for long nor panics.
    ///
    /// # Safety
    /// The conditions of [`Communicator::call`] with the call that the ticket is of.
    #[inline(always)]
    pub unsafe fn try_allreduce_again(
        &mut self,
        ticket: NonZeroU64,
        input: *const u8,
        output: *mut u8,
    ) -> FastPathResult {
        match self.idle_engine() {
            // SAFETY: passed on.
            Some(engine) => unsafe { engine.repeat_swap_of(ticket, input, output) },
            None => FastPathResult::Other,
        }
    }

    /// Ends an allreduce that waits.
    ///
    /// # Safety
    /// The conditions of [`Communicator::try_allreduce_again`], with the same output.
    pub unsafe fn end_allreduce(&mut self, output: *mut u8) -> Result<(), Error> {
        // SAFETY: passed on.
        unsafe { self.engine().end_swap(output) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::kernel::{Element, Operator};
    use crate::settings::{HelperThreads, Settings, Wait};
    use crate::team::{Team, TeamConfig};
    use lineweave_core::collective::Collective;
    use std::time::Duration;

    /// Two threads whose calls are not compared, as in a release build, and have their chosen plans at once.
    fn pair<T: Send>(
        wait: Wait,
        f: impl Fn(Communicator) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let threads = HelperThreads { progress: false, choose: false };
        let settings = Settings { wait, check: false, threads, ..Settings::default() };
        Team::with(TeamConfig::new(2, &settings)?)?.threads(f)
    }

    fn sum_of_one() -> CallSpec {
        CallSpec {
            collective: Collective::Allreduce,
            element: u64::TYPE,
            count: 1,
            operator: Some(Operator::Sum),
            root: 0,
        }
    }

    /// Repeats the last allreduce with `word` and returns its result, if it is the allreduce of the ticket.
    fn sum_again(comm: &mut Communicator, ticket: NonZeroU64, word: u64) -> Result<Option<u64>, Error> {
        let mut sum = 0;
        let (input, output) = (std::ptr::from_ref(&word).cast(), std::ptr::from_mut(&mut sum).cast());
        // SAFETY: a word each, as the call of the ticket has.
        unsafe {
            match comm.try_allreduce_again(ticket, input, output) {
                FastPathResult::Done => {}
                FastPathResult::Waits => comm.end_allreduce(output)?,
                FastPathResult::Other => return Ok(None),
            }
        }
        Ok(Some(sum))
    }

    #[test]
    fn calls_in_steps_wait_for_a_late_peer_in_every_way() {
        for wait in [Wait::Spin, Wait::Yield, Wait::Sleep, Wait::Auto] {
            let waits = pair(wait, |mut comm| {
                let late = |turn: u64, rank| {
                    if turn % 5 == rank {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                };
                let rank = comm.rank() as u64;
                let mut waits = 0;
                comm.barrier()?;
                for turn in 0..20 {
                    late(turn, rank);
                    match comm.try_barrier_again() {
                        FastPathResult::Done => {}
                        FastPathResult::Waits => {
                            waits += 1;
                            comm.end_barrier()?;
                        }
                        FastPathResult::Other => panic!("the last call was a barrier"),
                    }
                }
                let mut first = [0];
                comm.allreduce(&[rank], &mut first, Operator::Sum)?;
                assert_eq!(first, [1]);
                let ticket = comm.allreduce_ticket(&sum_of_one()).expect("a swap of two words");
                for turn in 0..20 {
                    late(turn, rank);
                    assert_eq!(sum_again(&mut comm, ticket, turn + rank)?, Some(2 * turn + 1));
                }
                Ok(waits)
            })
            .expect("a team");
            assert!(waits.iter().all(|&w| w > 0), "{wait:?}: {waits:?}");
        }
    }

    #[test]
    fn a_ticket_is_good_for_the_last_allreduce_alone() {
        pair(Wait::Auto, |mut comm| {
            let rank = comm.rank() as u64;
            assert_eq!(comm.allreduce_ticket(&sum_of_one()), None);
            assert_eq!(comm.try_barrier_again(), FastPathResult::Other);
            let mut out = [0];
            comm.allreduce(&[rank], &mut out, Operator::Sum)?;
            let ticket = comm.allreduce_ticket(&sum_of_one()).expect("a swap of two words");
            let other = CallSpec { operator: Some(Operator::Max), ..sum_of_one() };
            assert_eq!(comm.allreduce_ticket(&other), None);
            assert_eq!(sum_again(&mut comm, ticket, rank)?, Some(1));
            comm.allreduce(&[rank], &mut out, Operator::Max)?;
            assert_eq!(sum_again(&mut comm, ticket, rank)?, None);
            let ticket = comm.allreduce_ticket(&other).expect("another one");
            assert_eq!(sum_again(&mut comm, ticket, 7 + rank)?, Some(8));
            comm.barrier()?;
            assert_eq!(sum_again(&mut comm, ticket, rank)?, None);
            assert_ne!(comm.try_barrier_again(), FastPathResult::Other);
            comm.end_barrier()?;
            Ok(())
        })
        .expect("a team");
    }

    #[test]
    fn what_began_and_cannot_end_is_an_error() {
        let errors = pair(Wait::Auto, |mut comm| {
            let rank = comm.rank() as u64;
            let mut out = [0];
            let mut halves = comm.split(Some(0), 0)?.expect("a member");
            comm.barrier()?;
            halves.allreduce(&[rank], &mut out, Operator::Sum)?;
            let ticket = halves.allreduce_ticket(&sum_of_one()).expect("a swap of two words");
            if rank == 1 {
                return Ok([true; 2]);
            }
            assert_eq!(comm.try_barrier_again(), FastPathResult::Waits);
            let barrier = comm.end_barrier();
            let sum = sum_again(&mut halves, ticket, rank);
            Ok([matches!(barrier, Err(Error::PeerLost { .. })), matches!(sum, Err(Error::PeerLost { .. }))])
        });
        assert_eq!(errors.expect("a team"), [[true; 2]; 2]);
    }
}

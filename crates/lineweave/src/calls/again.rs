//! The last call again, for other languages' bindings: what they look up for each call costs more than the call, so they ask
//! first whether it is the one that was made last, and what they do for that is here in steps.
//!
//! A binding calls `try_..._again`; after [`Again::Waits`] it calls `end_...`, from where it can be told of errors; after
//! [`Again::Other`] it calls as usual.

use crate::call::CallSpec;
use crate::communicator::Communicator;
use crate::engine::Again;
use crate::error::Error;
use crate::wait::Between;
use std::num::NonZeroU64;

/// Not for programs.
#[doc(hidden)]
impl Communicator {
    /// Makes a barrier, if that is what was called last. It neither waits for long nor panics. Its looks pause: a fence between them
    /// wins only where nothing but the barrier lies between two calls (docs/findings.md, "What lies between two polls").
    #[inline(always)]
    pub fn try_barrier_again(&mut self) -> Again {
        self.idle_engine().map_or(Again::Other, |engine| engine.repeat_barrier(Between::Pause))
    }

    /// Ends a barrier that waits.
    pub fn end_barrier(&mut self) -> Result<(), Error> {
        self.engine().end_exchange()
    }

    /// What [`Communicator::try_allreduce_again`] knows this allreduce by, if it was called last and can be made so.
    pub fn allreduce_ticket(&mut self, call: &CallSpec) -> Option<NonZeroU64> {
        self.engine().swap_ticket(call)
    }

    /// Makes the allreduce of this ticket, if no other call was made since. It neither waits for long nor panics.
    ///
    /// # Safety
    /// As for [`Communicator::call`] with the call that the ticket is of.
    #[inline(always)]
    pub unsafe fn try_allreduce_again(
        &mut self,
        ticket: NonZeroU64,
        input: *const u8,
        output: *mut u8,
    ) -> Again {
        match self.idle_engine() {
            // SAFETY: passed on.
            Some(engine) => unsafe { engine.repeat_swap_of(ticket, input, output) },
            None => Again::Other,
        }
    }

    /// Ends an allreduce that waits.
    ///
    /// # Safety
    /// As for [`Communicator::try_allreduce_again`], with the same output.
    pub unsafe fn end_allreduce(&mut self, output: *mut u8) -> Result<(), Error> {
        // SAFETY: passed on.
        unsafe { self.engine().end_swap(output) }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::kernel::{Element, Operator};
    use crate::settings::{Settings, Wait};
    use crate::team::{Charter, Team};
    use lineweave_core::collective::Collective;
    use std::time::Duration;

    /// Two threads whose calls are not compared, as in a release build.
    fn pair<T: Send>(
        wait: Wait,
        f: impl Fn(Communicator) -> Result<T, Error> + Sync,
    ) -> Result<Vec<T>, Error> {
        let settings = Settings { wait, check: false, ..Settings::default() };
        Team::with(Charter::new(2, &settings)?)?.threads(f)
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

    /// What the last allreduce gives again, if it is the ticket's.
    fn sum_again(comm: &mut Communicator, ticket: NonZeroU64, word: u64) -> Result<Option<u64>, Error> {
        let mut sum = 0;
        let (input, output) = (std::ptr::from_ref(&word).cast(), std::ptr::from_mut(&mut sum).cast());
        // SAFETY: a word each, as the call of the ticket has.
        unsafe {
            match comm.try_allreduce_again(ticket, input, output) {
                Again::Done => {}
                Again::Waits => comm.end_allreduce(output)?,
                Again::Other => return Ok(None),
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
                        Again::Done => {}
                        Again::Waits => {
                            waits += 1;
                            comm.end_barrier()?;
                        }
                        Again::Other => panic!("the last call was a barrier"),
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
            assert_eq!(comm.try_barrier_again(), Again::Other);
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
            assert_ne!(comm.try_barrier_again(), Again::Other);
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
            assert_eq!(comm.try_barrier_again(), Again::Waits);
            let barrier = comm.end_barrier();
            let sum = sum_again(&mut halves, ticket, rank);
            Ok([matches!(barrier, Err(Error::PeerLost { .. })), matches!(sum, Err(Error::PeerLost { .. }))])
        });
        assert_eq!(errors.expect("a team"), [[true; 2]; 2]);
    }
}

//! Plans that are chosen and proved ahead of calls.

use crate::collectives::Call;
use crate::handle::{enter, give, lw_comm, no_handle, place_for, retire, FREED, LIVE};
use crate::status::{guard, lw_status, Failure, LW_ERR_HANDLE, LW_ERR_TYPE};
use crate::types::{lw_op, lw_type};
use lineweave::communicator::Planner;
use lineweave::sync::{AtomicU64, Ordering};
use lineweave_core::collective::Collective;
use std::ffi::c_int;
use std::ptr::null;
use std::sync::Arc;

/** Kinds of collectives. */
pub type lw_collective = i32;
/** lw_barrier. */
pub const LW_BARRIER: lw_collective = 0;
/** lw_bcast. */
pub const LW_BCAST: lw_collective = 1;
/** lw_reduce. */
pub const LW_REDUCE: lw_collective = 2;
/** lw_allreduce. */
pub const LW_ALLREDUCE: lw_collective = 3;
/** lw_gather. */
pub const LW_GATHER: lw_collective = 4;
/** lw_scatter. */
pub const LW_SCATTER: lw_collective = 5;
/** lw_allgather. */
pub const LW_ALLGATHER: lw_collective = 6;
/** lw_reduce_scatter_block. */
pub const LW_REDUCE_SCATTER: lw_collective = 7;
/** lw_scan. */
pub const LW_SCAN: lw_collective = 8;
/** lw_exscan. */
pub const LW_EXSCAN: lw_collective = 9;
/** lw_alltoall. */
pub const LW_ALLTOALL: lw_collective = 10;

/** Chooses and proves plans for the calls of a communicator, in a thread beside the one that makes them, and also after it is freed. */
pub struct lw_planner {
    state: AtomicU64,
    inner: Arc<(Planner, usize)>,
}

/**
 * A planner for the calls of comm that follow. It does not communicate.
 * Errors: of calls, LW_ERR_NULL.
 *
 *     lw_comm_planner(comm, &planner);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_planner(comm: *mut lw_comm, planner: *mut *mut lw_planner) -> lw_status {
    enter(comm, |comm| {
        place_for(planner)?;
        let inner = Arc::new((comm.planner(), comm.ranks()));
        give(planner, Box::into_raw(Box::new(lw_planner { state: AtomicU64::new(LIVE), inner })))
    })
}

/**
 * Chooses and proves the plans of a call: later calls of this kind and length only compile them. Several threads may do so at once. `op` counts where
 * elements are combined, and `root` where there is one; count is that of the call.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_TYPE also for an unknown collective, LW_ERR_OP, LW_ERR_ROOT, LW_ERR_PLAN.
 *
 *     lw_planner_plan(planner, LW_ALLREDUCE, 1000, LW_F64, LW_SUM, 0);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_planner_plan(
    planner: *mut lw_planner,
    collective: lw_collective,
    count: usize,
    element: lw_type,
    op: lw_op,
    root: c_int,
) -> lw_status {
    guard(|| {
        let inner = planner_of(planner)?;
        let found = usize::try_from(collective).ok().and_then(|number| Collective::ALL.get(number).copied());
        let collective = found.ok_or_else(|| {
            let text = format!(
                "collective {collective} is unknown; expected {LW_BARRIER} (LW_BARRIER) to {LW_ALLTOALL} (LW_ALLTOALL)"
            );
            Failure::new(LW_ERR_TYPE, text)
        })?;
        let call = Call::of(collective, null(), null::<u8>().cast_mut().cast(), count, element);
        let call = if collective.folds() { call.by(op) } else { call };
        let call = if collective.rooted() { call.at(root) } else { call };
        Ok(inner.0.plan(&call.spec(inner.1)?)?)
    })
}

fn planner_of(planner: *const lw_planner) -> Result<Arc<(Planner, usize)>, Failure> {
    if planner.is_null() || !planner.is_aligned() {
        return Err(no_handle("planner", planner.is_null()));
    }
    // SAFETY: the header's rule: it came from this library. Memory of freed ones is kept for a while.
    let planner = unsafe { &*planner };
    // Relaxed: nothing that is read later depends on it.
    match planner.state.load(Ordering::Relaxed) {
        LIVE => Ok(Arc::clone(&planner.inner)),
        FREED => Err(Failure::new(LW_ERR_HANDLE, "the planner was freed before")),
        _ => Err(no_handle("planner", false)),
    }
}

/**
 * Frees a planner. Null is allowed.
 * Errors: LW_ERR_HANDLE.
 *
 *     lw_planner_free(planner);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_planner_free(planner: *mut lw_planner) -> lw_status {
    guard(|| {
        if planner.is_null() {
            return Ok(());
        }
        planner_of(planner)?;
        // SAFETY: as in `planner_of`.
        let state = unsafe { &(*planner).state };
        // Relaxed: the exchange alone decides who frees it.
        if state.compare_exchange(LIVE, FREED, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return Err(Failure::new(LW_ERR_HANDLE, "the planner was freed before"));
        }
        // SAFETY: it came from `Box::into_raw`, and this thread alone moved its state.
        retire(unsafe { Box::from_raw(planner) });
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectives_are_in_the_order_of_the_runtime() {
        assert_eq!(Collective::ALL[LW_REDUCE_SCATTER as usize], Collective::ReduceScatter);
        assert_eq!(Collective::ALL.len(), LW_ALLTOALL as usize + 1);
    }
}

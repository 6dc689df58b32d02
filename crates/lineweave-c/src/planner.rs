//! Plans that are chosen and proved ahead of calls.

use crate::collectives::Call;
use crate::handle::{enter, free, give, lw_comm, place_for, shared, Shared};
use crate::status::{guard, lw_status, Failure, LW_ERR_TYPE};
use crate::types::{lw_op, lw_type};
use lineweave::communicator::Planner;
use lineweave::CallSpec;
use lineweave_core::collective::Collective;
use std::ffi::c_int;
use std::ptr::null;

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
    shared: Shared<(Planner, usize)>,
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
        let shared = Shared::new((comm.planner(), comm.ranks()));
        give(planner, Box::into_raw(Box::new(lw_planner { shared })))
    })
}

/**
 * Chooses and proves the plans of a call: later calls of this kind and length only compile them. Several threads may do so at once. `op` counts where
 * elements are combined, and `root` where there is one; count is that of the call. If the plans need memory that this rank has not reserved yet
 * (lw_comm_connect_on), it is reserved.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE, LW_ERR_TYPE also for an unknown collective, LW_ERR_OP, LW_ERR_ROOT, LW_ERR_PLAN, LW_ERR_MEMORY.
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
        let inner = shared(planner, "planner", |planner| &planner.shared)?;
        Ok(inner.0.plan(&spec(inner.1, collective, count, element, op, root)?)?)
    })
}

/**
 * Chooses and proves the plans of a call that is like this one, so that later calls of about this length need not. They are numbered from 0 on, the
 * likeliest first: those with each length above half of the power of two that this one's bytes come to, up to that, and from each root that sits
 * differently. Of lengths and roots that share plans there is one. `many` becomes their number, which is the same at all ranks, at most 32, and does not
 * include the call itself. If `which` is no less, nothing is planned.
 * Errors: of lw_planner_plan.
 *
 *     size_t many = 1;
 *     for (size_t i = 0; i < many; i++) lw_planner_plan_alike(planner, LW_ALLREDUCE, 1000, LW_F64, LW_SUM, 0, i, &many);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_planner_plan_alike(
    planner: *mut lw_planner,
    collective: lw_collective,
    count: usize,
    element: lw_type,
    op: lw_op,
    root: c_int,
    which: usize,
    many: *mut usize,
) -> lw_status {
    guard(|| {
        let inner = shared(planner, "planner", |planner| &planner.shared)?;
        place_for(many)?;
        let alike = inner.0.alike(&spec(inner.1, collective, count, element, op, root)?)?;
        give(many, alike.len())?;
        Ok(alike.get(which).map_or(Ok(()), |call| inner.0.plan(call))?)
    })
}

/// Returns a call as the runtime has it.
fn spec(
    ranks: usize,
    collective: lw_collective,
    count: usize,
    element: lw_type,
    op: lw_op,
    root: c_int,
) -> Result<CallSpec, Failure> {
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
    call.spec(ranks)
}

/**
 * What lw_planner_keep kept under a name, in this program or an earlier one, on a communicator with ranks on the same CPUs, by the same profile and
 * version of lineweave; 0: nothing.
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE.
 *
 *     uint64_t kept;
 *     lw_planner_kept(planner, 42, &kept);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_planner_kept(planner: *mut lw_planner, name: u64, value: *mut u64) -> lw_status {
    guard(|| {
        let inner = shared(planner, "planner", |planner| &planner.shared)?;
        place_for(value)?;
        give(value, inner.0.kept(name).unwrap_or(0))
    })
}

/**
 * Keeps a value for later programs, with the kept plans; nothing where these are not kept (LINEWEAVE_KEEP_PLANS=0, no folder).
 * Errors: LW_ERR_NULL, LW_ERR_HANDLE.
 *
 *     lw_planner_keep(planner, 42, 7);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_planner_keep(planner: *mut lw_planner, name: u64, value: u64) -> lw_status {
    guard(|| {
        shared(planner, "planner", |planner| &planner.shared)?.0.keep(name, value);
        Ok(())
    })
}

/**
 * Frees a planner. Null is allowed.
 * Errors: LW_ERR_HANDLE.
 *
 *     lw_planner_free(planner);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_planner_free(planner: *mut lw_planner) -> lw_status {
    guard(|| free(planner, "planner", |planner| &planner.shared))
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

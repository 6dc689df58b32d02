//! Collectives in which a rank's buffer has a block for every rank, all of one length.

use crate::collectives::Call;
use crate::handle::lw_comm;
use crate::status::lw_status;
use crate::types::{lw_op, lw_type};
use lineweave_core::collective::Collective;
use std::ffi::{c_int, c_void};

/**
 * Gathers `count` elements of every rank in the root's recvbuf, in the order of ranks.
 * Errors: of calls, of buffers, LW_ERR_ROOT.
 *
 *     lw_gather(comm, x, all, n, LW_F64, 0);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_gather(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    root: c_int,
) -> lw_status {
    Call::of(Collective::Gather, sendbuf, recvbuf, count, r#type).at(root).run(comm)
}

/**
 * Gives block r of the root's sendbuf to rank r, `count` elements each.
 * Errors: of calls, of buffers, LW_ERR_ROOT.
 *
 *     lw_scatter(comm, all, x, n, LW_F64, 0);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_scatter(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    root: c_int,
) -> lw_status {
    Call::of(Collective::Scatter, sendbuf, recvbuf, count, r#type).at(root).run(comm)
}

/**
 * Gathers `count` elements of every rank in every rank's recvbuf, in the order of ranks.
 * Errors: of calls, of buffers.
 *
 *     lw_allgather(comm, x, all, n, LW_F64);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_allgather(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
) -> lw_status {
    Call::of(Collective::Allgather, sendbuf, recvbuf, count, r#type).run(comm)
}

/**
 * Combines every rank's sendbuf, which has a block of `count` elements for each rank, and gives block r of the result to
 * rank r. In place recvbuf is as long as the input, and the result is at its start; what is behind may have changed.
 * Errors: of calls, of buffers, LW_ERR_OP.
 *
 *     lw_reduce_scatter_block(comm, all, x, n, LW_F64, LW_SUM);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_reduce_scatter_block(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    op: lw_op,
) -> lw_status {
    Call::of(Collective::ReduceScatter, sendbuf, recvbuf, count, r#type).by(op).run(comm)
}

/**
 * Gives block j of this rank's sendbuf, `count` elements, to rank j, where it is the block of this rank in recvbuf.
 * Errors: of calls, of buffers.
 *
 *     lw_alltoall(comm, all, whole, n, LW_F64);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_alltoall(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
) -> lw_status {
    Call::of(Collective::Alltoall, sendbuf, recvbuf, count, r#type).run(comm)
}

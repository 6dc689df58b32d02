//! Calls that are prepared once and started again and again. Buffers are as for the call of the same name that blocks.

use crate::buffers::counts;
use crate::collectives::Call;
use crate::handle::lw_comm;
use crate::requests::{lw_request, make, How};
use crate::status::lw_status;
use crate::types::{lw_op, lw_type, LW_U8};
use crate::uneven::{resolve, resolve_pairs};
use lineweave_core::collective::Collective;
use std::ffi::{c_int, c_void};

/**
 * Prepares lw_barrier; lw_start starts *request. (lw_barrier_init is for a lw_barrier_t.)
 * Errors: those of lw_barrier that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_comm_barrier_init(comm, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_barrier_init(
    comm: *mut lw_comm,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        Call::of(Collective::Barrier, std::ptr::null(), std::ptr::null_mut(), 0, LW_U8).resolve(comm)
    })
}

/**
 * Prepares lw_bcast; lw_start starts *request.
 * Errors: those of lw_bcast that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_bcast_init(comm, x, n, LW_F64, 0, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_bcast_init(
    comm: *mut lw_comm,
    buffer: *mut c_void,
    count: usize,
    r#type: lw_type,
    root: c_int,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        Call::of(Collective::Bcast, buffer.cast_const(), buffer, count, r#type).at(root).resolve(comm)
    })
}

/**
 * Prepares lw_reduce; lw_start starts *request.
 * Errors: those of lw_reduce that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_reduce_init(comm, x, y, n, LW_F64, LW_SUM, 0, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_reduce_init(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    op: lw_op,
    root: c_int,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        Call::of(Collective::Reduce, sendbuf, recvbuf, count, r#type).by(op).at(root).resolve(comm)
    })
}

/**
 * Prepares lw_allreduce; lw_start starts *request.
 * Errors: those of lw_allreduce that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_allreduce_init(comm, x, y, n, LW_F64, LW_SUM, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_allreduce_init(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    op: lw_op,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        Call::of(Collective::Allreduce, sendbuf, recvbuf, count, r#type).by(op).resolve(comm)
    })
}

/**
 * Prepares lw_gather; lw_start starts *request.
 * Errors: those of lw_gather that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_gather_init(comm, x, all, n, LW_F64, 0, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_gather_init(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    root: c_int,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        Call::of(Collective::Gather, sendbuf, recvbuf, count, r#type).at(root).resolve(comm)
    })
}

/**
 * Prepares lw_scatter; lw_start starts *request.
 * Errors: those of lw_scatter that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_scatter_init(comm, all, x, n, LW_F64, 0, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_scatter_init(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    root: c_int,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        Call::of(Collective::Scatter, sendbuf, recvbuf, count, r#type).at(root).resolve(comm)
    })
}

/**
 * Prepares lw_allgather; lw_start starts *request.
 * Errors: those of lw_allgather that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_allgather_init(comm, x, all, n, LW_F64, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_allgather_init(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        Call::of(Collective::Allgather, sendbuf, recvbuf, count, r#type).resolve(comm)
    })
}

/**
 * Prepares lw_reduce_scatter_block; lw_start starts *request.
 * Errors: those of lw_reduce_scatter_block that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_reduce_scatter_block_init(comm, all, x, n, LW_F64, LW_SUM, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_reduce_scatter_block_init(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    op: lw_op,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        Call::of(Collective::ReduceScatter, sendbuf, recvbuf, count, r#type).by(op).resolve(comm)
    })
}

/**
 * Prepares lw_scan; lw_start starts *request.
 * Errors: those of lw_scan that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_scan_init(comm, x, y, n, LW_F64, LW_SUM, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_scan_init(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    op: lw_op,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        Call::of(Collective::Scan, sendbuf, recvbuf, count, r#type).by(op).resolve(comm)
    })
}

/**
 * Prepares lw_exscan; lw_start starts *request.
 * Errors: those of lw_exscan that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_exscan_init(comm, x, y, n, LW_F64, LW_SUM, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_exscan_init(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    op: lw_op,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        Call::of(Collective::Exscan, sendbuf, recvbuf, count, r#type).by(op).resolve(comm)
    })
}

/**
 * Prepares lw_alltoall; lw_start starts *request.
 * Errors: those of lw_alltoall that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_alltoall_init(comm, all, whole, n, LW_F64, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_alltoall_init(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        Call::of(Collective::Alltoall, sendbuf, recvbuf, count, r#type).resolve(comm)
    })
}

/**
 * Prepares lw_gatherv; lw_start starts *request.
 * Errors: those of lw_gatherv that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_gatherv_init(comm, x, all, counts, LW_F64, 0, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_gatherv_init(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: *const usize,
    r#type: lw_type,
    root: c_int,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        let counts = self::counts("counts", counts, comm.ranks())?;
        resolve(&Call::of(Collective::Gather, sendbuf, recvbuf, 0, r#type).at(root), comm, counts)
    })
}

/**
 * Prepares lw_scatterv; lw_start starts *request.
 * Errors: those of lw_scatterv that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_scatterv_init(comm, all, x, counts, LW_F64, 0, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_scatterv_init(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: *const usize,
    r#type: lw_type,
    root: c_int,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        let counts = self::counts("counts", counts, comm.ranks())?;
        resolve(&Call::of(Collective::Scatter, sendbuf, recvbuf, 0, r#type).at(root), comm, counts)
    })
}

/**
 * Prepares lw_allgatherv; lw_start starts *request.
 * Errors: those of lw_allgatherv that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_allgatherv_init(comm, x, all, counts, LW_F64, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_allgatherv_init(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: *const usize,
    r#type: lw_type,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        let counts = self::counts("counts", counts, comm.ranks())?;
        resolve(&Call::of(Collective::Allgather, sendbuf, recvbuf, 0, r#type), comm, counts)
    })
}

/**
 * Prepares lw_reduce_scatter; lw_start starts *request.
 * Errors: those of lw_reduce_scatter that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_reduce_scatter_init(comm, all, x, counts, LW_F64, LW_SUM, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_reduce_scatter_init(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: *const usize,
    r#type: lw_type,
    op: lw_op,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        let counts = self::counts("counts", counts, comm.ranks())?;
        resolve(&Call::of(Collective::ReduceScatter, sendbuf, recvbuf, 0, r#type).by(op), comm, counts)
    })
}

/**
 * Prepares lw_alltoallv; lw_start starts *request.
 * Errors: those of lw_alltoallv that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_alltoallv_init(comm, all, counts, whole, counts, LW_F64, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_alltoallv_init(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    sendcounts: *const usize,
    recvbuf: *mut c_void,
    recvcounts: *const usize,
    r#type: lw_type,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        resolve_pairs(comm, sendbuf, sendcounts, recvbuf, recvcounts, r#type)
    })
}

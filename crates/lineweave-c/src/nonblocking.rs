//! Calls that are started and waited for later. Buffers are as for the call of the same name that blocks.

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
 * Starts lw_barrier; *request is to be waited for, which may fail as lw_barrier does.
 * Errors: those of lw_barrier that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_ibarrier(comm, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_ibarrier(comm: *mut lw_comm, request: *mut *mut lw_request) -> lw_status {
    make(comm, request, How::Start, |comm| {
        Call::of(Collective::Barrier, std::ptr::null(), std::ptr::null_mut(), 0, LW_U8).resolve(comm)
    })
}

/**
 * Starts lw_bcast; *request is to be waited for, which may fail as lw_bcast does.
 * Errors: those of lw_bcast that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_ibcast(comm, x, n, LW_F64, 0, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_ibcast(
    comm: *mut lw_comm,
    buffer: *mut c_void,
    count: usize,
    r#type: lw_type,
    root: c_int,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Start, |comm| {
        Call::of(Collective::Bcast, buffer.cast_const(), buffer, count, r#type).at(root).resolve(comm)
    })
}

/**
 * Starts lw_reduce; *request is to be waited for, which may fail as lw_reduce does.
 * Errors: those of lw_reduce that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_ireduce(comm, x, y, n, LW_F64, LW_SUM, 0, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_ireduce(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    op: lw_op,
    root: c_int,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Start, |comm| {
        Call::of(Collective::Reduce, sendbuf, recvbuf, count, r#type).by(op).at(root).resolve(comm)
    })
}

/**
 * Starts lw_allreduce; *request is to be waited for, which may fail as lw_allreduce does.
 * Errors: those of lw_allreduce that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_iallreduce(comm, x, y, n, LW_F64, LW_SUM, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_iallreduce(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    op: lw_op,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Start, |comm| {
        Call::of(Collective::Allreduce, sendbuf, recvbuf, count, r#type).by(op).resolve(comm)
    })
}

/**
 * Starts lw_gather; *request is to be waited for, which may fail as lw_gather does.
 * Errors: those of lw_gather that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_igather(comm, x, all, n, LW_F64, 0, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_igather(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    root: c_int,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Start, |comm| {
        Call::of(Collective::Gather, sendbuf, recvbuf, count, r#type).at(root).resolve(comm)
    })
}

/**
 * Starts lw_scatter; *request is to be waited for, which may fail as lw_scatter does.
 * Errors: those of lw_scatter that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_iscatter(comm, all, x, n, LW_F64, 0, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_iscatter(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    root: c_int,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Start, |comm| {
        Call::of(Collective::Scatter, sendbuf, recvbuf, count, r#type).at(root).resolve(comm)
    })
}

/**
 * Starts lw_allgather; *request is to be waited for, which may fail as lw_allgather does.
 * Errors: those of lw_allgather that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_iallgather(comm, x, all, n, LW_F64, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_iallgather(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Start, |comm| {
        Call::of(Collective::Allgather, sendbuf, recvbuf, count, r#type).resolve(comm)
    })
}

/**
 * Starts lw_reduce_scatter_block; *request is to be waited for, which may fail as lw_reduce_scatter_block does.
 * Errors: those of lw_reduce_scatter_block that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_ireduce_scatter_block(comm, all, x, n, LW_F64, LW_SUM, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_ireduce_scatter_block(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    op: lw_op,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Start, |comm| {
        Call::of(Collective::ReduceScatter, sendbuf, recvbuf, count, r#type).by(op).resolve(comm)
    })
}

/**
 * Starts lw_scan; *request is to be waited for, which may fail as lw_scan does.
 * Errors: those of lw_scan that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_iscan(comm, x, y, n, LW_F64, LW_SUM, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_iscan(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    op: lw_op,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Start, |comm| {
        Call::of(Collective::Scan, sendbuf, recvbuf, count, r#type).by(op).resolve(comm)
    })
}

/**
 * Starts lw_exscan; *request is to be waited for, which may fail as lw_exscan does.
 * Errors: those of lw_exscan that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_iexscan(comm, x, y, n, LW_F64, LW_SUM, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_iexscan(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    op: lw_op,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Start, |comm| {
        Call::of(Collective::Exscan, sendbuf, recvbuf, count, r#type).by(op).resolve(comm)
    })
}

/**
 * Starts lw_alltoall; *request is to be waited for, which may fail as lw_alltoall does.
 * Errors: those of lw_alltoall that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_ialltoall(comm, all, whole, n, LW_F64, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_ialltoall(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Start, |comm| {
        Call::of(Collective::Alltoall, sendbuf, recvbuf, count, r#type).resolve(comm)
    })
}

/**
 * Starts lw_gatherv; *request is to be waited for, which may fail as lw_gatherv does.
 * Errors: those of lw_gatherv that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_igatherv(comm, x, all, counts, LW_F64, 0, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_igatherv(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: *const usize,
    r#type: lw_type,
    root: c_int,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Start, |comm| {
        let counts = self::counts("counts", counts, comm.ranks())?;
        resolve(&Call::of(Collective::Gather, sendbuf, recvbuf, 0, r#type).at(root), comm, counts)
    })
}

/**
 * Starts lw_scatterv; *request is to be waited for, which may fail as lw_scatterv does.
 * Errors: those of lw_scatterv that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_iscatterv(comm, all, x, counts, LW_F64, 0, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_iscatterv(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: *const usize,
    r#type: lw_type,
    root: c_int,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Start, |comm| {
        let counts = self::counts("counts", counts, comm.ranks())?;
        resolve(&Call::of(Collective::Scatter, sendbuf, recvbuf, 0, r#type).at(root), comm, counts)
    })
}

/**
 * Starts lw_allgatherv; *request is to be waited for, which may fail as lw_allgatherv does.
 * Errors: those of lw_allgatherv that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_iallgatherv(comm, x, all, counts, LW_F64, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_iallgatherv(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: *const usize,
    r#type: lw_type,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Start, |comm| {
        let counts = self::counts("counts", counts, comm.ranks())?;
        resolve(&Call::of(Collective::Allgather, sendbuf, recvbuf, 0, r#type), comm, counts)
    })
}

/**
 * Starts lw_reduce_scatter; *request is to be waited for, which may fail as lw_reduce_scatter does.
 * Errors: those of lw_reduce_scatter that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_ireduce_scatter(comm, all, x, counts, LW_F64, LW_SUM, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_ireduce_scatter(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: *const usize,
    r#type: lw_type,
    op: lw_op,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Start, |comm| {
        let counts = self::counts("counts", counts, comm.ranks())?;
        resolve(&Call::of(Collective::ReduceScatter, sendbuf, recvbuf, 0, r#type).by(op), comm, counts)
    })
}

/**
 * Starts lw_alltoallv; *request is to be waited for, which may fail as lw_alltoallv does.
 * Errors: those of lw_alltoallv that this rank can tell alone, LW_ERR_NULL.
 *
 *     lw_ialltoallv(comm, all, counts, whole, counts, LW_F64, &request);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_ialltoallv(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    sendcounts: *const usize,
    recvbuf: *mut c_void,
    recvcounts: *const usize,
    r#type: lw_type,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Start, |comm| {
        resolve_pairs(comm, sendbuf, sendcounts, recvbuf, recvcounts, r#type)
    })
}

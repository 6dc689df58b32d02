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

/** Prepares lw_barrier; lw_start starts *request. (lw_barrier_init is for a lw_barrier_t.) */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_barrier_init(
    comm: *mut lw_comm,
    request: *mut *mut lw_request,
) -> lw_status {
    make(comm, request, How::Init, |comm| {
        let (collective, element, operator) = (Collective::Barrier, LW_U8, None);
        let (input, output) = (std::ptr::null(), std::ptr::null_mut());
        Call { collective, input, output, count: 0, element, operator, root: 0 }.resolve(comm)
    })
}

/** Prepares lw_bcast; lw_start starts *request. */
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
        let (collective, element, operator) = (Collective::Bcast, r#type, None);
        let (input, output) = (buffer.cast_const(), buffer);
        Call { collective, input, output, count, element, operator, root }.resolve(comm)
    })
}

/** Prepares lw_reduce; lw_start starts *request. */
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
        let (collective, element, operator) = (Collective::Reduce, r#type, Some(op));
        let (input, output) = (sendbuf, recvbuf);
        Call { collective, input, output, count, element, operator, root }.resolve(comm)
    })
}

/** Prepares lw_allreduce; lw_start starts *request. */
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
        let (collective, element, operator) = (Collective::Allreduce, r#type, Some(op));
        let (input, output) = (sendbuf, recvbuf);
        Call { collective, input, output, count, element, operator, root: 0 }.resolve(comm)
    })
}

/** Prepares lw_gather; lw_start starts *request. */
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
        let (collective, element, operator) = (Collective::Gather, r#type, None);
        let (input, output) = (sendbuf, recvbuf);
        Call { collective, input, output, count, element, operator, root }.resolve(comm)
    })
}

/** Prepares lw_scatter; lw_start starts *request. */
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
        let (collective, element, operator) = (Collective::Scatter, r#type, None);
        let (input, output) = (sendbuf, recvbuf);
        Call { collective, input, output, count, element, operator, root }.resolve(comm)
    })
}

/** Prepares lw_allgather; lw_start starts *request. */
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
        let (collective, element, operator) = (Collective::Allgather, r#type, None);
        let (input, output) = (sendbuf, recvbuf);
        Call { collective, input, output, count, element, operator, root: 0 }.resolve(comm)
    })
}

/** Prepares lw_reduce_scatter_block; lw_start starts *request. */
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
        let (collective, element, operator) = (Collective::ReduceScatter, r#type, Some(op));
        let (input, output) = (sendbuf, recvbuf);
        Call { collective, input, output, count, element, operator, root: 0 }.resolve(comm)
    })
}

/** Prepares lw_scan; lw_start starts *request. */
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
        let (collective, element, operator) = (Collective::Scan, r#type, Some(op));
        let (input, output) = (sendbuf, recvbuf);
        Call { collective, input, output, count, element, operator, root: 0 }.resolve(comm)
    })
}

/** Prepares lw_exscan; lw_start starts *request. */
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
        let (collective, element, operator) = (Collective::Exscan, r#type, Some(op));
        let (input, output) = (sendbuf, recvbuf);
        Call { collective, input, output, count, element, operator, root: 0 }.resolve(comm)
    })
}

/** Prepares lw_alltoall; lw_start starts *request. */
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
        let (collective, element, operator) = (Collective::Alltoall, r#type, None);
        let (input, output) = (sendbuf, recvbuf);
        Call { collective, input, output, count, element, operator, root: 0 }.resolve(comm)
    })
}

/** Prepares lw_gatherv; lw_start starts *request. */
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
        let (collective, element, operator) = (Collective::Gather, r#type, None);
        let (input, output, count) = (sendbuf, recvbuf, 0);
        resolve(&Call { collective, input, output, count, element, operator, root }, comm, counts)
    })
}

/** Prepares lw_scatterv; lw_start starts *request. */
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
        let (collective, element, operator) = (Collective::Scatter, r#type, None);
        let (input, output, count) = (sendbuf, recvbuf, 0);
        resolve(&Call { collective, input, output, count, element, operator, root }, comm, counts)
    })
}

/** Prepares lw_allgatherv; lw_start starts *request. */
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
        let (collective, element, operator) = (Collective::Allgather, r#type, None);
        let (input, output, count) = (sendbuf, recvbuf, 0);
        resolve(&Call { collective, input, output, count, element, operator, root: 0 }, comm, counts)
    })
}

/** Prepares lw_reduce_scatter; lw_start starts *request. */
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
        let (collective, element, operator) = (Collective::ReduceScatter, r#type, Some(op));
        let (input, output, count) = (sendbuf, recvbuf, 0);
        resolve(&Call { collective, input, output, count, element, operator, root: 0 }, comm, counts)
    })
}

/** Prepares lw_alltoallv; lw_start starts *request. */
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

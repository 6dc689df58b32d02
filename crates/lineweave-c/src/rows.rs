//! Collectives as rows of a table. A row makes three functions: the blocking call, one that starts the call, and one that prepares a persistent
//! call. tests/header.rs reads the rows, because cbindgen, which makes the header, does not expand macros.

use crate::collectives::Call;
use crate::handle::lw_comm;
use crate::requests::{lw_request, make, How};
use crate::status::lw_status;
use crate::types::{lw_op, lw_type, LW_U8};
use crate::uneven::resolve_pairs;
use lineweave_core::collective::Collective;
use std::ffi::{c_int, c_void};

/// Makes the functions that start and that prepare a call.
macro_rules! started {
    ($($blocks:ident: $start:ident, $init:ident, $example:literal, ($($argument:ident: $type:ty),*) = $call:expr;)+) => {$(
        #[doc = concat!("Starts ", stringify!($blocks), "; *request is to be waited for, which may fail as ", stringify!($blocks), " does.")]
        #[doc = concat!("Errors: those of ", stringify!($blocks), " that this rank can tell alone, LW_ERR_NULL.")]
        ///
        #[doc = concat!("    ", stringify!($start), "(", $example, ", &request);")]
        #[no_mangle]
        pub unsafe extern "C" fn $start(
            comm: *mut lw_comm,
            $($argument: $type,)*
            request: *mut *mut lw_request,
        ) -> lw_status {
            make(comm, request, How::Start, $call)
        }

        #[doc = concat!("Prepares ", stringify!($blocks), "; lw_start starts *request.")]
        #[doc = concat!("Errors: those of ", stringify!($blocks), " that this rank can tell alone, LW_ERR_NULL.")]
        ///
        #[doc = concat!("    ", stringify!($init), "(", $example, ", &request);")]
        #[no_mangle]
        pub unsafe extern "C" fn $init(
            comm: *mut lw_comm,
            $($argument: $type,)*
            request: *mut *mut lw_request,
        ) -> lw_status {
            make(comm, request, How::Init, $call)
        }
    )+};
}

/// Makes these functions and the blocking ones. Counts are one for each rank, where blocks differ in length.
macro_rules! collectives {
    ($($(#[$doc:meta])* $blocks:ident: $start:ident, $init:ident, $example:literal, ($($argument:ident: $type:ty),*) = $call:expr, $counts:expr;)+) => {
        $(
            $(#[$doc])*
            ///
            #[doc = concat!("    ", stringify!($blocks), "(", $example, ");")]
            #[no_mangle]
            pub unsafe extern "C" fn $blocks(comm: *mut lw_comm $(, $argument: $type)*) -> lw_status {
                $call.run(comm, $counts)
            }
        )+
        started! {$(
            $blocks: $start, $init, $example, ($($argument: $type),*) = |comm| $call.counted(comm, $counts);
        )+}
    };
}

collectives! {
    /// Copies `count` elements of the root's buffer into every other rank's.
    /// Errors: of calls, of buffers, LW_ERR_ROOT.
    lw_bcast: lw_ibcast, lw_bcast_init, "comm, x, n, LW_F64, 0",
        (buffer: *mut c_void, count: usize, r#type: lw_type, root: c_int)
        = Call::of(Collective::Bcast, buffer.cast_const(), buffer, count, r#type).at(root), None;

    /// Combines every rank's sendbuf, `count` elements, elementwise in the root's recvbuf.
    /// Errors: of calls, of buffers, LW_ERR_OP, LW_ERR_ROOT.
    lw_reduce: lw_ireduce, lw_reduce_init, "comm, x, y, n, LW_F64, LW_SUM, 0",
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: usize, r#type: lw_type, op: lw_op, root: c_int)
        = Call::of(Collective::Reduce, sendbuf, recvbuf, count, r#type).by(op).at(root), None;

    /// Gathers `count` elements of every rank in the root's recvbuf, in the order of ranks.
    /// Errors: of calls, of buffers, LW_ERR_ROOT.
    lw_gather: lw_igather, lw_gather_init, "comm, x, all, n, LW_F64, 0",
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: usize, r#type: lw_type, root: c_int)
        = Call::of(Collective::Gather, sendbuf, recvbuf, count, r#type).at(root), None;

    /// Gives block r of the root's sendbuf to rank r, `count` elements each.
    /// Errors: of calls, of buffers, LW_ERR_ROOT.
    lw_scatter: lw_iscatter, lw_scatter_init, "comm, all, x, n, LW_F64, 0",
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: usize, r#type: lw_type, root: c_int)
        = Call::of(Collective::Scatter, sendbuf, recvbuf, count, r#type).at(root), None;

    /// Gathers `count` elements of every rank in every rank's recvbuf, in the order of ranks.
    /// Errors: of calls, of buffers.
    lw_allgather: lw_iallgather, lw_allgather_init, "comm, x, all, n, LW_F64",
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: usize, r#type: lw_type)
        = Call::of(Collective::Allgather, sendbuf, recvbuf, count, r#type), None;

    /// Combines every rank's sendbuf, which has a block of `count` elements for each rank, and gives block r of the result to
    /// rank r. In place recvbuf is as long as the input, and the result is at its start; what is behind may have changed.
    /// Errors: of calls, of buffers, LW_ERR_OP.
    lw_reduce_scatter_block: lw_ireduce_scatter_block, lw_reduce_scatter_block_init, "comm, all, x, n, LW_F64, LW_SUM",
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: usize, r#type: lw_type, op: lw_op)
        = Call::of(Collective::ReduceScatter, sendbuf, recvbuf, count, r#type).by(op), None;

    /// Combines, in rank order, the sendbuf of all ranks up to and with this one in its recvbuf, `count` elements.
    /// Errors: of calls, of buffers, LW_ERR_OP.
    lw_scan: lw_iscan, lw_scan_init, "comm, x, y, n, LW_F64, LW_SUM",
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: usize, r#type: lw_type, op: lw_op)
        = Call::of(Collective::Scan, sendbuf, recvbuf, count, r#type).by(op), None;

    /// Combines, in rank order, the sendbuf of all ranks before this one in its recvbuf, `count` elements. Rank 0 does not touch it.
    /// Errors: of calls, of buffers, LW_ERR_OP.
    lw_exscan: lw_iexscan, lw_exscan_init, "comm, x, y, n, LW_F64, LW_SUM",
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: usize, r#type: lw_type, op: lw_op)
        = Call::of(Collective::Exscan, sendbuf, recvbuf, count, r#type).by(op), None;

    /// Gives block j of this rank's sendbuf, `count` elements, to rank j, where it is the block of this rank in recvbuf.
    /// Errors: of calls, of buffers.
    lw_alltoall: lw_ialltoall, lw_alltoall_init, "comm, all, whole, n, LW_F64",
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: usize, r#type: lw_type)
        = Call::of(Collective::Alltoall, sendbuf, recvbuf, count, r#type), None;

    /// lw_gather of counts[r] elements from rank r. Every rank gives the same
    /// counts, one for each rank.
    /// Errors: of calls, of buffers, LW_ERR_ROOT.
    lw_gatherv: lw_igatherv, lw_gatherv_init, "comm, x, all, counts, LW_F64, 0",
        (sendbuf: *const c_void, recvbuf: *mut c_void, counts: *const usize, r#type: lw_type, root: c_int)
        = Call::of(Collective::Gather, sendbuf, recvbuf, 0, r#type).at(root), Some(counts);

    /// lw_scatter of counts[r] elements to rank r. Every rank gives the same
    /// counts, one for each rank.
    /// Errors: of calls, of buffers, LW_ERR_ROOT.
    lw_scatterv: lw_iscatterv, lw_scatterv_init, "comm, all, x, counts, LW_F64, 0",
        (sendbuf: *const c_void, recvbuf: *mut c_void, counts: *const usize, r#type: lw_type, root: c_int)
        = Call::of(Collective::Scatter, sendbuf, recvbuf, 0, r#type).at(root), Some(counts);

    /// lw_allgather of counts[r] elements from rank r. Every rank gives the same
    /// counts, one for each rank.
    /// Errors: of calls, of buffers.
    lw_allgatherv: lw_iallgatherv, lw_allgatherv_init, "comm, x, all, counts, LW_F64",
        (sendbuf: *const c_void, recvbuf: *mut c_void, counts: *const usize, r#type: lw_type)
        = Call::of(Collective::Allgather, sendbuf, recvbuf, 0, r#type), Some(counts);

    /// lw_reduce_scatter_block with counts[r] elements of the result for rank r. Every rank gives the same
    /// counts, one for each rank.
    /// Errors: of calls, of buffers, LW_ERR_OP.
    lw_reduce_scatter: lw_ireduce_scatter, lw_reduce_scatter_init, "comm, all, x, counts, LW_F64, LW_SUM",
        (sendbuf: *const c_void, recvbuf: *mut c_void, counts: *const usize, r#type: lw_type, op: lw_op)
        = Call::of(Collective::ReduceScatter, sendbuf, recvbuf, 0, r#type).by(op), Some(counts);
}

started! {
    lw_barrier: lw_ibarrier, lw_comm_barrier_init, "comm",
        ()
        = |comm| Call::of(Collective::Barrier, std::ptr::null(), std::ptr::null_mut(), 0, LW_U8).resolve(comm, None);
    lw_allreduce: lw_iallreduce, lw_allreduce_init, "comm, x, y, n, LW_F64, LW_SUM",
        (sendbuf: *const c_void, recvbuf: *mut c_void, count: usize, r#type: lw_type, op: lw_op)
        = |comm| Call::of(Collective::Allreduce, sendbuf, recvbuf, count, r#type).by(op).resolve(comm, None);
    lw_alltoallv: lw_ialltoallv, lw_alltoallv_init, "comm, all, counts, whole, counts, LW_F64",
        (sendbuf: *const c_void, sendcounts: *const usize, recvbuf: *mut c_void, recvcounts: *const usize, r#type: lw_type)
        = |comm| resolve_pairs(comm, sendbuf, sendcounts, recvbuf, recvcounts, r#type);
}

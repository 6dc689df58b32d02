//! Collectives with a count for each rank. Blocks lie one after the other, without gaps.

use crate::buffers::{check, counts, is_in_place, total};
use crate::collectives::Call;
use crate::handle::{enter, lw_comm};
use crate::operators::as_asked;
use crate::status::{lw_status, Failure};
use crate::types::{element, lw_op, lw_type};
use lineweave::{CallSpec, Communicator, Place};
use lineweave_core::collective::Collective;
use std::ffi::{c_int, c_void};

/// Runs a call with these counts, the same on all ranks.
fn run(call: &Call, comm: &mut Communicator, counts: &[usize]) -> Result<(), Failure> {
    let spec = call.spec(comm)?;
    let CallSpec { collective, element, root, .. } = spec;
    let rank = comm.rank();
    // Checked for all ranks alike, so that none waits for one that was refused.
    total(counts, element)?;
    let [given, taken] = comm.uneven_places(&spec, counts)?;
    let length = |place: Option<Place>| place.map_or(0, |p| p.bytes);
    let (input, output) = match call.in_place(collective.input(rank, root), collective.output(rank, root))? {
        Some(buffer) => {
            let end = |place: Option<Place>| place.map_or(0, |p| p.offset + p.bytes);
            let start = check("the buffer in place", buffer, end(given).max(end(taken)), element)?;
            let at = |place: Option<Place>| start.wrapping_add(place.map_or(0, |p| p.offset));
            (at(given), at(taken))
        }
        None => (
            check("sendbuf", call.input, length(given), element)?,
            check("recvbuf", call.output, length(taken), element)?,
        ),
    };
    // SAFETY: checked for what can be seen from here; that they are as long as said and used by nobody else is the
    // header's rule.
    Ok(as_asked(comm, call.operator, |comm| unsafe { comm.call_uneven(&spec, counts, input, output) })?)
}

/**
 * lw_gather of counts[r] elements from rank r. Every rank gives the same
 * counts, one for each rank.
 */
#[no_mangle]
pub unsafe extern "C" fn lw_gatherv(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: *const usize,
    r#type: lw_type,
    root: c_int,
) -> lw_status {
    enter(comm, |comm| {
        let counts = self::counts("counts", counts, comm.ranks())?;
        let (collective, element, operator) = (Collective::Gather, r#type, None);
        let (input, output, count) = (sendbuf, recvbuf, 0);
        run(&Call { collective, input, output, count, element, operator, root }, comm, counts)
    })
}

/**
 * lw_scatter of counts[r] elements to rank r. Every rank gives the same
 * counts, one for each rank.
 */
#[no_mangle]
pub unsafe extern "C" fn lw_scatterv(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: *const usize,
    r#type: lw_type,
    root: c_int,
) -> lw_status {
    enter(comm, |comm| {
        let counts = self::counts("counts", counts, comm.ranks())?;
        let (collective, element, operator) = (Collective::Scatter, r#type, None);
        let (input, output, count) = (sendbuf, recvbuf, 0);
        run(&Call { collective, input, output, count, element, operator, root }, comm, counts)
    })
}

/**
 * lw_allgather of counts[r] elements from rank r. Every rank gives the same
 * counts, one for each rank.
 */
#[no_mangle]
pub unsafe extern "C" fn lw_allgatherv(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: *const usize,
    r#type: lw_type,
) -> lw_status {
    enter(comm, |comm| {
        let counts = self::counts("counts", counts, comm.ranks())?;
        let (collective, element, operator) = (Collective::Allgather, r#type, None);
        let (input, output, count) = (sendbuf, recvbuf, 0);
        run(&Call { collective, input, output, count, element, operator, root: 0 }, comm, counts)
    })
}

/**
 * lw_reduce_scatter_block with counts[r] elements of the result for rank r. Every rank gives the same
 * counts, one for each rank.
 */
#[no_mangle]
pub unsafe extern "C" fn lw_reduce_scatter(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    counts: *const usize,
    r#type: lw_type,
    op: lw_op,
) -> lw_status {
    enter(comm, |comm| {
        let counts = self::counts("counts", counts, comm.ranks())?;
        let (collective, element, operator) = (Collective::ReduceScatter, r#type, Some(op));
        let (input, output, count) = (sendbuf, recvbuf, 0);
        run(&Call { collective, input, output, count, element, operator, root: 0 }, comm, counts)
    })
}

/**
 * lw_alltoall of sendcounts[j] elements to rank j and recvcounts[i] elements from rank i. In place each rank gives as much as
 * it gets, and sendcounts is ignored. Ranks first exchange what they give.
 */
#[no_mangle]
pub unsafe extern "C" fn lw_alltoallv(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    sendcounts: *const usize,
    recvbuf: *mut c_void,
    recvcounts: *const usize,
    r#type: lw_type,
) -> lw_status {
    enter(comm, |comm| {
        let element = element(r#type)?;
        let taken = counts("recvcounts", recvcounts, comm.ranks())?;
        let given = match is_in_place(sendbuf) {
            true => taken,
            false => counts("sendcounts", sendcounts, comm.ranks())?,
        };
        // Before the exchange, so that nothing this rank gave wrong is found in the middle of it.
        if !is_in_place(sendbuf) {
            check("sendbuf", sendbuf, total(given, element)?, element)?;
        }
        check("recvbuf", recvbuf, total(taken, element)?, element)?;
        let pairs = comm.counts_of_pairs(given, taken, element.size())?;
        let (collective, input, output) = (Collective::Alltoall, sendbuf, recvbuf);
        let call = Call { collective, input, output, count: 0, element: r#type, operator: None, root: 0 };
        run(&call, comm, &pairs)
    })
}

//! Collectives with a count for each rank. Blocks lie one after the other, without gaps.

use crate::buffers::{check, counts, is_in_place, total};
use crate::collectives::{Call, Resolved};
use crate::handle::{enter, lw_comm};
use crate::operators::as_asked;
use crate::status::{lw_status, Failure};
use crate::types::{element, lw_type};
use lineweave::{Blocks, CallSpec, Communicator};
use lineweave_core::collective::Collective;
use std::ffi::c_void;

/// Makes a call with these counts, which are the same on all ranks.
fn run(comm: &mut Communicator, call: &Resolved<'_>, counts: &[usize]) -> Result<(), Failure> {
    let Resolved { asked, spec, input, output, .. } = *call;
    // SAFETY: checked for what can be seen from here; that they are as long as said and used by nobody else is the
    // header's rule.
    Ok(as_asked(comm, asked, |comm| unsafe { comm.call_uneven(&spec, counts, input, output) })?)
}

impl Call {
    /// Makes the call with a count for each rank.
    pub(crate) fn run_counted(&self, comm: *const lw_comm, counts: *const usize) -> lw_status {
        enter(comm, |comm| {
            let counts = self::counts("counts", counts, comm.ranks())?;
            let call = self.resolve(comm, Some(counts))?;
            run(comm, &call, counts)
        })
    }
}

/// Resolves an alltoall with the counts that each rank gives and takes, checked before anything is exchanged.
pub(crate) fn resolve_pairs(
    comm: &Communicator,
    sendbuf: *const c_void,
    sendcounts: *const usize,
    recvbuf: *mut c_void,
    recvcounts: *const usize,
    r#type: lw_type,
) -> Result<Resolved<'static>, Failure> {
    let element = element(r#type)?;
    let taken = counts("recvcounts", recvcounts, comm.ranks())?;
    let given = match is_in_place(sendbuf) {
        true => taken,
        false => counts("sendcounts", sendcounts, comm.ranks())?,
    };
    let output = check("recvbuf", recvbuf, total(taken, element)?, element)?;
    let input = match is_in_place(sendbuf) {
        true => output,
        false => check("sendbuf", sendbuf, total(given, element)?, element)?,
    };
    let (collective, operator) = (Collective::Alltoall, None);
    let spec = CallSpec { collective, element, count: 0, operator, root: 0 };
    Ok(Resolved { asked: None, spec, blocks: Blocks::Pairs { given, taken }, input, output })
}

/**
 * lw_alltoall of sendcounts[j] elements to rank j and recvcounts[i] elements from rank i. In place each rank gives as much as
 * it gets, and sendcounts is ignored. Ranks first exchange what they give.
 * Errors: of calls, of buffers.
 *
 *     lw_alltoallv(comm, all, counts, whole, counts, LW_F64);
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
        // The check comes before the exchange, so that an error of this rank is not found in the middle of it.
        let checked = resolve_pairs(comm, sendbuf, sendcounts, recvbuf, recvcounts, r#type)?;
        let Blocks::Pairs { given, taken } = checked.blocks else { return Ok(()) };
        let pairs = comm.counts_of_pairs(given, taken, checked.spec.element.size())?;
        run(comm, &checked, &pairs)
    })
}

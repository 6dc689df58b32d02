//! Messages from one rank to another, and windows that ranks put into and get from.

use crate::buffers::{bytes, check};
use crate::handle::{enter, give, lw_comm, place_for};
use crate::status::{lw_status, Failure, LW_ERR_RANK};
use crate::types::{element, lw_type};
use lineweave::ElementType;
use std::ffi::{c_int, c_void};

/// Returns the rank that C passed.
fn peer(what: &str, rank: c_int) -> Result<usize, Failure> {
    usize::try_from(rank).map_err(|_| Failure::new(LW_ERR_RANK, format!("{what}: there is no rank {rank}")))
}

/// Checks the place for the number of received elements; null is allowed.
fn received(to: *mut usize) -> Result<(), Failure> {
    if to.is_null() {
        return Ok(());
    }
    place_for(to)
}

/**
 * Sends `count` elements to rank `dest`. A short message is on its way when this returns; a longer one was received.
 * Messages from one rank to another with one tag are received in the order in which they were sent.
 * Errors: of calls, of buffers, LW_ERR_RANK, LW_ERR_UNEXPECTED.
 *
 *     lw_send(comm, x, n, LW_F64, 1, 7);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_send(
    comm: *mut lw_comm,
    buffer: *const c_void,
    count: usize,
    r#type: lw_type,
    dest: c_int,
    tag: u32,
) -> lw_status {
    enter(comm, |comm| {
        let element = element(r#type)?;
        let bytes = bytes(count, element, 1)?;
        let start = check("the buffer", buffer, bytes, element)?;
        // SAFETY: checked for what can be seen from here; the rest is the header's rule.
        Ok(unsafe { comm.send_bytes(start, bytes, peer("lw_send", dest)?, tag) }?)
    })
}

/**
 * Receives the next message of rank `source` with this tag, of at most `count` elements, and puts how many came into
 * *received, which may be null. There is no receiving from any rank or with any tag.
 * Errors: of calls, of buffers, LW_ERR_RANK, LW_ERR_TRUNCATED, LW_ERR_UNEXPECTED.
 *
 *     size_t received;
 *     lw_recv(comm, x, n, LW_F64, 0, 7, &received);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_recv(
    comm: *mut lw_comm,
    buffer: *mut c_void,
    count: usize,
    r#type: lw_type,
    source: c_int,
    tag: u32,
    received: *mut usize,
) -> lw_status {
    enter(comm, |comm| {
        self::received(received)?;
        let element = element(r#type)?;
        let room = bytes(count, element, 1)?;
        let start = check("the buffer", buffer, room, element)?;
        // SAFETY: checked for what can be seen from here; the rest is the header's rule.
        let got = unsafe { comm.recv_bytes(start, room, peer("lw_recv", source)?, tag) }?;
        if received.is_null() {
            return Ok(());
        }
        give(received, got / element.size())
    })
}

/**
 * lw_send and lw_recv at the same time, so that ranks can exchange messages of any length or pass them round a ring. The
 * buffers do not overlap.
 * Errors: those of lw_send and lw_recv.
 *
 *     lw_sendrecv(comm, x, n, 1, 7, y, n, 1, 7, LW_F64, NULL);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_sendrecv(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    sendcount: usize,
    dest: c_int,
    sendtag: u32,
    recvbuf: *mut c_void,
    recvcount: usize,
    source: c_int,
    recvtag: u32,
    r#type: lw_type,
    received: *mut usize,
) -> lw_status {
    enter(comm, |comm| {
        self::received(received)?;
        let element = element(r#type)?;
        let (given, room) = (bytes(sendcount, element, 1)?, bytes(recvcount, element, 1)?);
        let start = check("sendbuf", sendbuf, given, element)?;
        let to = check("recvbuf", recvbuf, room, element)?;
        let (dest, source) = (peer("lw_sendrecv", dest)?, peer("lw_sendrecv", source)?);
        // SAFETY: checked for what can be seen from here; the rest is the header's rule.
        let got = unsafe { comm.sendrecv_bytes((start, given, dest, sendtag), (to, room, source, recvtag)) }?;
        if received.is_null() {
            return Ok(());
        }
        give(received, got / element.size())
    })
}

/**
 * Gives every rank a window of `bytes` bytes, 16 MiB at most, and 64 flags. All ranks call it with the same length. What is
 * there is zero at first.
 * Errors: of calls, LW_ERR_COUNT, LW_ERR_MEMORY.
 *
 *     lw_window_create(comm, 4096);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_window_create(comm: *mut lw_comm, bytes: usize) -> lw_status {
    enter(comm, |comm| Ok(comm.window_create(bytes)?))
}

/**
 * Copies `bytes` bytes into the window of `rank`, from byte `offset` on. Flags order accesses to the same bytes.
 * Errors: of calls, LW_ERR_NULL, LW_ERR_RANK, LW_ERR_COUNT beyond the window.
 *
 *     lw_put(comm, 1, 0, x, sizeof x);
 *     lw_flag_set(comm, 1, 0, 1);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_put(
    comm: *mut lw_comm,
    rank: c_int,
    offset: usize,
    data: *const c_void,
    bytes: usize,
) -> lw_status {
    enter(comm, |comm| {
        let start = check("the data", data, self::bytes(bytes, ElementType::U8, 1)?, ElementType::U8)?;
        // SAFETY: checked for what can be seen from here; the rest is the header's rule.
        Ok(unsafe { comm.put_bytes(peer("lw_put", rank)?, offset, start, bytes) }?)
    })
}

/**
 * Copies `bytes` bytes out of the window of `rank`, from byte `offset` on. Flags order accesses to the same bytes.
 * Errors: of calls, LW_ERR_NULL, LW_ERR_RANK, LW_ERR_COUNT beyond the window.
 *
 *     lw_get(comm, 1, 0, x, sizeof x);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_get(
    comm: *mut lw_comm,
    rank: c_int,
    offset: usize,
    data: *mut c_void,
    bytes: usize,
) -> lw_status {
    enter(comm, |comm| {
        let start = check("the data", data, self::bytes(bytes, ElementType::U8, 1)?, ElementType::U8)?;
        // SAFETY: checked for what can be seen from here; the rest is the header's rule.
        Ok(unsafe { comm.get_bytes(peer("lw_get", rank)?, offset, start, bytes) }?)
    })
}

/**
 * Raises flag 0 to 63 of `rank`: what this rank put before is seen by who sees it. Flags only grow.
 * Errors: of calls, LW_ERR_RANK, LW_ERR_COUNT for another flag.
 *
 *     lw_flag_set(comm, 1, 0, 1);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_flag_set(comm: *mut lw_comm, rank: c_int, flag: usize, value: u64) -> lw_status {
    enter(comm, |comm| Ok(comm.flag_set(peer("lw_flag_set", rank)?, flag, value)?))
}

/**
 * Waits until a flag of this rank has reached a value.
 * Errors: of calls, LW_ERR_COUNT for another flag.
 *
 *     lw_flag_wait(comm, 0, 1);
 *     lw_get(comm, lw_comm_rank(comm), 0, x, sizeof x);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_flag_wait(comm: *mut lw_comm, flag: usize, value: u64) -> lw_status {
    enter(comm, |comm| Ok(comm.flag_wait(flag, value)?))
}

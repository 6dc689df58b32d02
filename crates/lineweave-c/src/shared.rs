//! Buffers in memory that all ranks share.

use crate::handle::{enter, give, lw_comm, place_for};
use crate::status::{guard, lw_status, Failure, LW_ERR_BUFFER};
use lineweave::SharedBuffer;
use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

type Owned = HashMap<usize, SharedBuffer<u8>>;

/// Returns the shared buffers that C holds, by address.
fn owned() -> MutexGuard<'static, Owned> {
    static OWNED: OnceLock<Mutex<Owned>> = OnceLock::new();
    // No code that may panic runs under the lock.
    OWNED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

/**
 * A buffer of `bytes` bytes, zero at first and aligned to a page, in memory that all ranks share; null when it is to have none. Every
 * rank of comm calls it, and each says how many bytes it wants for itself. Where every rank gives such buffers to a call on
 * comm, or on a communicator that is made from it later, long messages are read, combined and written where they lie,
 * also between processes. Freed by lw_free, or when the process ends.
 * Errors: of calls, LW_ERR_NULL, LW_ERR_MEMORY when all ranks together want more than can be had.
 *
 *     void *buffer;
 *     lw_alloc(comm, 1 << 20, &buffer);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_alloc(comm: *mut lw_comm, bytes: usize, buffer: *mut *mut c_void) -> lw_status {
    enter(comm, |comm| {
        // The place is checked before anything is exchanged, so that no rank waits for one whose call was refused.
        place_for(buffer)?;
        let mut made = comm.alloc::<u8>(bytes)?;
        if bytes == 0 {
            return give(buffer, std::ptr::null_mut());
        }
        let start = made.as_mut_ptr();
        owned().insert(start as usize, made);
        give(buffer, start.cast())
    })
}

/**
 * Gives the memory of a buffer of lw_alloc back. This rank alone calls it, also when comm was freed. Null is allowed.
 * Errors: LW_ERR_BUFFER when lw_alloc did not give it.
 *
 *     lw_free(buffer);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_free(buffer: *mut c_void) -> lw_status {
    guard(|| {
        let found = owned().remove(&(buffer as usize));
        match found.is_some() || buffer.is_null() {
            true => Ok(()),
            false => {
                Err(Failure::new(LW_ERR_BUFFER, "this is not a buffer of lw_alloc, or it was freed before"))
            }
        }
    })
}

/**
 * Sets whether long calls on comm find out if all ranks give buffers of lw_alloc: 0 for no. All ranks say the same between the same
 * calls. lw_alloc turns it on; it costs a call that asks about as much as a barrier.
 * Errors: of calls.
 *
 *     lw_comm_set_shared_buffers(comm, 0);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_set_shared_buffers(comm: *mut lw_comm, on: i32) -> lw_status {
    enter(comm, |comm| {
        comm.set_shared_buffers(on != 0);
        Ok(())
    })
}

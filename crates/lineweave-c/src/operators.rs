//! Operators that a C program makes, and the reproducibility of results.

use crate::handle::{enter, give, lw_comm, place_for};
use crate::progress::Argument;
use crate::status::{guard, lw_status, Failure, LW_ERR_NULL, LW_ERR_OP};
use crate::types::{lw_op, made, LW_REPRODUCIBLE, USER};
use lineweave::kernel::UserOperator;
use lineweave::{Communicator, Operator};
use std::ffi::{c_int, c_void};

/**
 * Puts in[i] (op) inout[i] into inout[i], for `len` elements of `size` bytes each; `in` holds the contributions of lower
 * ranks. The runs do not overlap and may be any part of a message; an element begins at a multiple of its size from
 * an address that is aligned to 64 bytes, or from the start of a buffer that the program gave. It must return, and
 * not by longjmp or a C++ exception, must not call lineweave, and may be called by several threads at once.
 */
pub type lw_op_fn =
    Option<extern "C" fn(r#in: *const c_void, inout: *mut c_void, len: usize, size: usize, arg: *mut c_void)>;

/**
 * Makes an operator of `f`, which is associative, on elements of any type and size. Where it does not commute
 * (`commutes` is 0), contributions are combined in the order of ranks. `arg` is passed on to it. Every rank gives an
 * operator that does the same; threads of one team may share one.
 * Errors: LW_ERR_NULL, LW_ERR_OP.
 *
 *     lw_op_create(combine, 1, NULL, &op);
 *     lw_allreduce(comm, x, y, n, LW_F64, op);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_op_create(
    f: lw_op_fn,
    commutes: c_int,
    arg: *mut c_void,
    op: *mut lw_op,
) -> lw_status {
    guard(|| {
        place_for(op)?;
        let Some(f) = f else {
            return Err(Failure::new(LW_ERR_NULL, "the operator's function is null"));
        };
        let argument = Argument(arg);
        let run = move |left: *const u8, right: *mut u8, len: usize, size: usize| {
            let whole = &argument;
            f(left.cast(), right.cast(), len, size, whole.0);
        };
        // SAFETY: the header's rule: it writes the elements at `inout` and nothing else.
        match unsafe { Operator::raw(commutes != 0, run) } {
            Operator::User(user) => give(op, USER | user.number() as lw_op),
            other => Err(Failure::new(LW_ERR_OP, format!("{other} was made"))),
        }
    })
}

/**
 * Gives an operator back, when no call uses it any more. Calls that name it are refused from then on.
 * Errors: LW_ERR_OP when it is none of lw_op_create.
 *
 *     lw_op_free(op);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_op_free(op: lw_op) -> lw_status {
    guard(|| {
        let Some(user) = made(op & !LW_REPRODUCIBLE).and_then(UserOperator::numbered) else {
            let text = format!("operator {op} was not made by lw_op_create, or was freed before");
            return Err(Failure::new(LW_ERR_OP, text));
        };
        // SAFETY: the header's rule. Numbers are never given twice, and every call looks its number up.
        unsafe { user.release() };
        Ok(())
    })
}

/**
 * Asks for reproducible results in all calls from now on (1), as LW_REPRODUCIBLE does for one, or no longer (0).
 * LINEWEAVE_REPRODUCIBLE says what holds at first. All ranks ask for the same between the same calls.
 * Errors: of calls.
 *
 *     lw_comm_set_reproducible(comm, 1);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_comm_set_reproducible(comm: *mut lw_comm, reproducible: c_int) -> lw_status {
    enter(comm, |comm| {
        comm.set_reproducible(reproducible != 0);
        Ok(())
    })
}

/// Returns whether LW_REPRODUCIBLE was added to an operator.
pub(crate) fn asks_for_reproducible(op: lw_op) -> bool {
    op > 0 && op & LW_REPRODUCIBLE != 0
}

/// Makes a call whose operator may have LW_REPRODUCIBLE added to it.
pub(crate) fn as_asked<T>(
    comm: &mut Communicator,
    op: Option<lw_op>,
    call: impl FnOnce(&mut Communicator) -> T,
) -> T {
    if !op.is_some_and(asks_for_reproducible) {
        return call(comm);
    }
    let before = comm.set_reproducible(true);
    let result = call(comm);
    comm.set_reproducible(before);
    result
}

//! Collectives with one length for all ranks.

use crate::buffers::{bytes, check, counts, is_in_place, is_plain, not_in_place, plain, total};
use crate::handle::{again, enter, enter_again, lw_comm, Last, Lasts};
use crate::operators::{as_asked, asks_for_reproducible};
use crate::status::{lw_status, Failure, LW_ERR_ROOT, LW_OK};
use crate::types::{element, lw_op, lw_type, made, operator};
use lineweave::{whole, Blocks, CallSpec, Communicator, FastPathResult};
use lineweave_core::collective::{Collective, Extent};
use std::ffi::{c_int, c_void};

/// A call with the arguments that C passed.
pub(crate) struct Call {
    pub collective: Collective,
    pub input: *const c_void,
    pub output: *mut c_void,
    /// Elements of the message or of one block.
    pub count: usize,
    pub element: lw_type,
    pub operator: Option<lw_op>,
    pub root: c_int,
}

/// A call in the form that the runtime takes.
pub(crate) struct Resolved<'a> {
    /// The operator that C passed, with the flags that were added to it.
    pub asked: Option<lw_op>,
    pub spec: CallSpec,
    pub blocks: Blocks<'a>,
    pub input: *const u8,
    pub output: *mut u8,
}

impl Call {
    /// Returns a call with root 0 and no operator.
    pub(crate) fn of(
        collective: Collective,
        input: *const c_void,
        output: *mut c_void,
        count: usize,
        element: lw_type,
    ) -> Call {
        Call { collective, input, output, count, element, operator: None, root: 0 }
    }

    /// Sets the operator.
    pub(crate) fn by(self, op: lw_op) -> Call {
        Call { operator: Some(op), ..self }
    }

    /// Sets the root.
    pub(crate) fn at(self, root: c_int) -> Call {
        Call { root, ..self }
    }

    /// Returns the call for the runtime, after checking type, operator and root.
    pub(crate) fn spec(&self, ranks: usize) -> Result<CallSpec, Failure> {
        let (collective, count) = (self.collective, self.count);
        let element = element(self.element)?;
        let operator = self.operator.map(|o| operator(o, element)).transpose()?;
        match usize::try_from(self.root) {
            Ok(root) if root < ranks => Ok(CallSpec { collective, element, count, operator, root }),
            _ => {
                let text =
                    format!("{collective}: root {} is out of range; ranks are 0 to {}", self.root, ranks - 1);
                Err(Failure::new(LW_ERR_ROOT, text))
            }
        }
    }

    /// Returns the buffer of a call in place: the one that is not `LW_IN_PLACE`. Returns `None` for a call with two buffers.
    pub(crate) fn in_place(&self, input: Extent, output: Extent) -> Result<Option<*const c_void>, Failure> {
        let [given, taken] = [is_in_place(self.input), is_in_place(self.output)];
        let scatters = self.collective == Collective::Scatter;
        let used = [input != Extent::Nothing, output != Extent::Nothing];
        // The first rank of an exscan has no output, but its call looks like those of all other ranks.
        let both = used == [true; 2] || (self.collective == Collective::Exscan && used[0]);
        match (given && used[0], taken && (used[1] || scatters)) {
            (false, false) => Ok(None),
            (true, false) if both && !scatters => Ok(Some(self.output)),
            (false, true) if both && scatters => Ok(Some(self.input)),
            (true, _) => Err(not_in_place("sendbuf")),
            (false, true) => Err(not_in_place("recvbuf")),
        }
    }

    /// Makes the call, with a count for each rank or one for all. If it repeats the last call with one length, the resolved call is reused.
    #[inline(always)]
    pub(crate) fn run(&self, comm: *const lw_comm, counts: Option<*const usize>) -> lw_status {
        if let Some(counts) = counts {
            return self.run_counted(comm, counts);
        }
        enter_again(comm, self.collective, |comm, last| {
            if let Some(known) = last.as_mut().filter(|known| self.is(known)) {
                let element = known.spec.element;
                if let (Some(input), Some(output)) =
                    (plain(self.input, known.bytes[0], element), plain(self.output, known.bytes[1], element))
                {
                    // SAFETY: as in `run_anew`.
                    unsafe { comm.call(&known.spec, input, output) }?;
                    known.ticket = comm.allreduce_ticket(&known.spec);
                    return Ok(());
                }
            }
            self.run_anew(comm, last)
        })
    }

    fn is(&self, known: &Last) -> bool {
        self.count == known.count
            && self.element == known.element
            && self.operator == known.operator
            && self.root == known.root
    }

    #[inline(never)]
    fn run_anew(&self, comm: &mut Communicator, last: &mut Option<Last>) -> Result<(), Failure> {
        let Resolved { spec, input, output, .. } = self.resolve(comm, None)?;
        // SAFETY: checked for what can be seen from here; that they are as long as said and used by nobody else is the
        // header's rule.
        as_asked(comm, self.operator, |comm| unsafe { comm.call(&spec, input, output) })?;
        // An operator of the program is looked up each time, since it may be freed; and a flag in the operator is for this call only.
        let lasting = self.operator.is_none_or(|op| made(op).is_none() && !asks_for_reproducible(op));
        *last = lasting.then(|| {
            let (rank, ranks) = (comm.rank(), comm.ranks());
            let extents = [spec.collective.input(rank, spec.root), spec.collective.output(rank, spec.root)];
            let bytes = extents.map(|extent| extent.bytes(ranks, spec.bytes()));
            let Call { count, element, operator, root, .. } = *self;
            let ticket = comm.allreduce_ticket(&spec);
            let align = spec.element.align();
            Last { count, element, operator, root, spec, bytes, align, ticket }
        });
        Ok(())
    }

    /// Checks the call and returns it for the runtime: with blocks of one length, or of these lengths.
    pub(crate) fn resolve<'a>(
        &self,
        comm: &Communicator,
        counts: Option<&'a [usize]>,
    ) -> Result<Resolved<'a>, Failure> {
        let spec = self.spec(comm.ranks())?;
        let CallSpec { collective, element, root, .. } = spec;
        // The check is the same on all ranks, so that no rank waits for one whose call was refused.
        match counts {
            None => bytes(self.count, element, if collective.has_blocks() { comm.ranks() } else { 1 })?,
            Some(counts) => total(counts, element)?,
        };
        let places = comm.places(&spec, counts)?;
        let extents = [collective.input(comm.rank(), root), collective.output(comm.rank(), root)];
        let (input, output) = match self.in_place(extents[0], extents[1])? {
            Some(buffer) => {
                let start = check("the buffer in place", buffer, whole(&places), element)?;
                let [given, taken] = places.map(|p| start.wrapping_add(p.map_or(0, |p| p.start)));
                (given, taken)
            }
            None => {
                let [given, taken] = places.map(|p| p.map_or(0, |p| p.len()));
                (
                    check("sendbuf", self.input, given, element)?,
                    check("recvbuf", self.output, taken, element)?,
                )
            }
        };
        let blocks = counts.map_or(Blocks::Even, Blocks::Ranks);
        Ok(Resolved { asked: self.operator, spec, blocks, input, output })
    }

    /// As [`Call::resolve`], with a count for each rank as C passes them, or one for all.
    pub(crate) fn counted<'a>(
        &self,
        comm: &Communicator,
        counts: Option<*const usize>,
    ) -> Result<Resolved<'a>, Failure> {
        let counts = counts.map(|counts| self::counts("counts", counts, comm.ranks())).transpose()?;
        self.resolve(comm, counts)
    }
}

/**
 * Returns when every rank has called it.
 * Errors: of calls.
 *
 *     lw_barrier(comm);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_barrier(comm: *mut lw_comm) -> lw_status {
    match again(comm, |comm, _| comm.try_barrier_again()) {
        FastPathResult::Done => LW_OK,
        FastPathResult::Waits => end_barrier(comm),
        FastPathResult::Other => barrier_anew(comm),
    }
}

#[cold]
#[inline(never)]
fn end_barrier(comm: *mut lw_comm) -> lw_status {
    enter(comm, |comm| Ok(comm.end_barrier()?))
}

#[inline(never)]
fn barrier_anew(comm: *mut lw_comm) -> lw_status {
    enter(comm, |comm| Ok(comm.barrier()?))
}

/**
 * Combines every rank's sendbuf, `count` elements, elementwise in every rank's recvbuf, with the same bits everywhere.
 * Errors: of calls, of buffers, LW_ERR_OP.
 *
 *     lw_allreduce(comm, x, y, n, LW_F64, LW_SUM);
 */
#[no_mangle]
pub unsafe extern "C" fn lw_allreduce(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    r#type: lw_type,
    op: lw_op,
) -> lw_status {
    let call = |comm: &mut Communicator, last: &Lasts| {
        // SAFETY: passed on.
        unsafe { repeat_allreduce(comm, last, sendbuf, recvbuf, count, r#type, op) }
    };
    match again(comm, call) {
        FastPathResult::Done => LW_OK,
        FastPathResult::Waits => end_allreduce(comm, recvbuf),
        FastPathResult::Other => allreduce_anew(comm, sendbuf, recvbuf, count, r#type, op),
    }
}

/// Begins an allreduce that repeats the last one, with buffers that need no further check.
///
/// # Safety
/// The buffers are as the header asks for.
#[inline(always)]
unsafe fn repeat_allreduce(
    comm: &mut Communicator,
    last: &Lasts,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    element: lw_type,
    op: lw_op,
) -> FastPathResult {
    let Some(&Last { ticket: Some(ticket), align, .. }) = last[Collective::Allreduce as usize]
        .as_ref()
        .filter(|known| known.count == count && known.element == element && known.operator == Some(op))
    else {
        return FastPathResult::Other;
    };
    let input = if is_in_place(sendbuf) { recvbuf.cast_const() } else { sendbuf };
    if !is_plain(input, align) || !is_plain(recvbuf, align) {
        return FastPathResult::Other;
    }
    // SAFETY: passed on; it is the call that the ticket is of.
    unsafe { comm.try_allreduce_again(ticket, input.cast(), recvbuf.cast()) }
}

#[cold]
#[inline(never)]
fn end_allreduce(comm: *mut lw_comm, recvbuf: *mut c_void) -> lw_status {
    // SAFETY: what began the call checked the buffer.
    enter(comm, |comm| Ok(unsafe { comm.end_allreduce(recvbuf.cast()) }?))
}

#[inline(never)]
fn allreduce_anew(
    comm: *mut lw_comm,
    sendbuf: *const c_void,
    recvbuf: *mut c_void,
    count: usize,
    element: lw_type,
    op: lw_op,
) -> lw_status {
    Call::of(Collective::Allreduce, sendbuf, recvbuf, count, element).by(op).run(comm, None)
}

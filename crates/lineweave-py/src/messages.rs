//! Messages between two ranks, and teams of some of a team's ranks.

use crate::array::Array;
use crate::prepare::helper;
use crate::raise;
use crate::rank::{Communicator, Seat};
use lineweave::ElementType;
use pyo3::prelude::*;

/// Returns the array to send, packed if it has to be.
pub(crate) fn outgoing<'py>(
    x: &Bound<'py, PyAny>,
    packed: &mut Option<Bound<'py, PyAny>>,
) -> PyResult<Array<'py>> {
    let array = Array::of(x, "x")?;
    match array.layout.dense {
        true => Ok(array),
        false => Array::of(packed.insert(helper(x.py(), "pack")?.call1((x,))?), "x"),
    }
}

/// Returns the array to receive into.
pub(crate) fn incoming<'py>(out: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
    let array = Array::of(out, "out")?;
    match (array.layout.dense, array.layout.writable) {
        (true, true) => Ok(array),
        (_, false) => {
            Err(raise::argument(out.py(), "recv: `out` is read-only; give an array that may be written"))
        }
        (false, _) => Err(raise::argument(
            out.py(),
            "recv: `out` is not contiguous; give a contiguous array, and copy from that",
        )),
    }
}

/// Returns the number of elements in so many bytes.
pub(crate) fn elements(py: Python<'_>, bytes: usize, element: ElementType) -> PyResult<usize> {
    let size = element.size();
    if bytes % size != 0 {
        return Err(raise::kind(py, format!("recv: {bytes} bytes came, which are no whole elements of {element}; give `out` the type of what is sent")));
    }
    Ok(bytes / size)
}

#[pymethods]
impl Communicator {
    /// Sends the elements of an array to another rank, which receives them under the same tag.
    ///
    /// - `x`: an array of any shape.
    /// - `to`: the rank that receives it.
    /// - `tag`: a number from 0 to 2^32 - 1. Messages of one rank and tag do not overtake each other.
    ///
    /// Returns when `x` may be changed again, which for a long message is when the other rank receives it. Raises `BadArgument` for a rank
    /// that does not exist, and what every call raises.
    ///
    ///     >>> x = np.array([1.5, 2.5])
    ///     >>> team.send(x, to=1) if team.rank == 0 else team.recv(x, source=0)
    #[pyo3(signature = (x, to, tag=0))]
    fn send(&self, py: Python<'_>, x: &Bound<'_, PyAny>, to: usize, tag: u32) -> PyResult<()> {
        let mut packed = None;
        let array = outgoing(x, &mut packed)?;
        let (start, bytes) = (array.layout.data.cast_const(), array.layout.bytes());
        // SAFETY: the array is dense, so long, and kept until this returns.
        self.enter(py)?.run(py, bytes, |comm| unsafe { comm.send_bytes(start, bytes, to, tag) })
    }

    /// Receives a message of another rank.
    ///
    /// - `out`: a contiguous array that has room for it, of the dtype of what was sent.
    /// - `source`: the rank that sends it.
    /// - `tag`: the tag that it is sent under.
    ///
    /// Returns how many elements came. Raises `BadType` for bytes that are no whole elements of `out`, `Error` for a message that is longer than
    /// `out` (it is lost), and what every call raises.
    ///
    ///     >>> out = np.zeros(4)
    ///     >>> team.recv(out, source=1) if team.rank == 0 else team.send(np.ones(3), to=0)
    ///     3
    ///     >>> out.tolist()
    ///     [1.0, 1.0, 1.0, 0.0]
    #[pyo3(signature = (out, source, tag=0))]
    fn recv(&self, py: Python<'_>, out: &Bound<'_, PyAny>, source: usize, tag: u32) -> PyResult<usize> {
        let array = incoming(out)?;
        let (start, room) = (array.layout.data, array.layout.bytes());
        let mut entered = self.enter(py)?;
        // SAFETY: as above, and it may be written.
        let came = entered.run(py, room, |comm| unsafe { comm.recv_bytes(start, room, source, tag) })?;
        elements(py, came, array.layout.element)
    }

    /// Sends one message and receives another, whichever becomes possible first.
    ///
    /// - `x`, `to`, `send_tag`: as for `send`.
    /// - `out`, `source`, `recv_tag`: as for `recv`; `out` and `x` must not overlap.
    ///
    /// Returns how many elements came. Raises what `send` and `recv` do.
    ///
    ///     >>> other, out = 1 - team.rank, np.empty(1, int)
    ///     >>> team.sendrecv(np.array([team.rank]), other, out, other), out.tolist()
    ///     (1, [1])
    #[pyo3(signature = (x, to, out, source, send_tag=0, recv_tag=0))]
    #[expect(clippy::too_many_arguments, reason = "both messages")]
    fn sendrecv(
        &self,
        py: Python<'_>,
        x: &Bound<'_, PyAny>,
        to: usize,
        out: &Bound<'_, PyAny>,
        source: usize,
        send_tag: u32,
        recv_tag: u32,
    ) -> PyResult<usize> {
        let mut packed = None;
        let (given, taken) = (outgoing(x, &mut packed)?, incoming(out)?);
        let (start, bytes) = (given.layout.data.cast_const(), given.layout.bytes());
        let (room_start, room) = (taken.layout.data, taken.layout.bytes());
        let (a, b) = (start as usize, room_start as usize);
        if a < b + room && b < a + bytes {
            return Err(raise::argument(py, "sendrecv: `x` and `out` overlap; give two arrays"));
        }
        let mut entered = self.enter(py)?;
        // SAFETY: both are dense, so long, apart, and kept until this returns; `out` may be written.
        let came = entered.run(py, bytes.max(room), |comm| unsafe {
            comm.sendrecv_bytes((start, bytes, to, send_tag), (room_start, room, source, recv_tag))
        })?;
        elements(py, came, taken.layout.element)
    }

    /// Returns the seat in the team of the ranks with the same colour, in the order of key and rank; `None` without a colour.
    fn _split(&self, py: Python<'_>, colour: Option<i64>, key: i64) -> PyResult<Option<Seat>> {
        let threads = self.has_threads();
        // Ranks that are threads need the interpreter to make the call at all, and other ranks may come late.
        let made = self.enter(py)?.run(py, usize::MAX, |comm| comm.split(colour.map(|c| c as u64), key))?;
        Ok(made.map(|comm| Seat::new(comm, threads)))
    }
}

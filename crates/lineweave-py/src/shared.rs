//! Arrays in memory that all ranks share.

use crate::rank::{forks, Communicator};
use lineweave::SharedBuffer;
use pyo3::prelude::*;

/// A range of the shared heap that belongs to one rank, for as long as some array lies in it.
#[pyclass(frozen, module = "lineweave._lineweave")]
pub(crate) struct Shared {
    buffer: Option<SharedBuffer<u8>>,
    forks: u64,
    address: usize,
    bytes: usize,
}

impl Drop for Shared {
    fn drop(&mut self) {
        let buffer = self.buffer.take();
        if self.forks != forks() {
            // The memory is the parent's: giving it back here would take it from the parent.
            std::mem::forget(buffer);
        }
    }
}

#[pymethods]
impl Shared {
    /// Returns the address of the first byte.
    #[getter]
    fn address(&self) -> usize {
        self.address
    }

    /// Returns the addresses, in this process, of the memory that each rank got by the same call.
    #[getter]
    fn addresses(&self) -> Vec<usize> {
        let peers = self.buffer.iter().flat_map(SharedBuffer::peers);
        peers.map(|peer| peer.cast::<u8>().as_ptr().expose_provenance()).collect()
    }

    /// Returns the length in bytes.
    #[getter]
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn __repr__(&self) -> String {
        format!("<lineweave shared memory: {} bytes>", self.bytes)
    }
}

#[pymethods]
impl Communicator {
    /// Allocates so many bytes for this rank in memory that all ranks share. Every rank calls it.
    fn _alloc(&self, py: Python<'_>, bytes: usize) -> PyResult<Shared> {
        // Pages are reserved and zeroed, which takes time.
        let buffer = self.enter(py)?.run(py, usize::MAX, |comm| comm.alloc::<u8>(bytes))?;
        let address = if bytes == 0 { 0 } else { buffer.as_ptr().expose_provenance() };
        Ok(Shared { buffer: Some(buffer), forks: forks(), address, bytes })
    }

    /// Returns whether long calls find out if all ranks give arrays of `empty`, as they do from the first `empty` on. All ranks say the same between
    /// the same calls. It costs a call that asks about as much as a barrier. Returns whether they did until now.
    ///
    ///     >>> before = team.set_shared_buffers(False)
    ///     >>> team.set_shared_buffers(before)
    ///     False
    fn set_shared_buffers(&self, py: Python<'_>, on: bool) -> PyResult<bool> {
        self.enter(py)?.run(py, 0, |comm| Ok(comm.set_shared_buffers(on)))
    }

    /// The memory of the team in bytes, as `(shared, addresses, private)`: bytes reserved by all ranks together, addresses in each process that cost
    /// nothing before they are used, and bytes of this rank alone.
    ///
    ///     >>> shared, addresses, private = team.memory
    ///     >>> shared > 0
    ///     True
    #[getter]
    fn memory(&self, py: Python<'_>) -> PyResult<(usize, usize, usize)> {
        let memory = self.enter(py)?.run(py, 0, |comm| Ok(comm.memory()))?;
        Ok((memory.shared_bytes, memory.address_bytes, memory.private_bytes))
    }
}

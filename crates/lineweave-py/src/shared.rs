//! Arrays in memory that all ranks share.

use crate::rank::{forks, Communicator};
use lineweave::SharedBuffer;
use pyo3::prelude::*;

/// A rank's stretch of the shared heap, for as long as some array lies in it.
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
            // The parent's: what is given back here would be taken from it.
            std::mem::forget(buffer);
        }
    }
}

#[pymethods]
impl Shared {
    /// Where it begins.
    #[getter]
    fn address(&self) -> usize {
        self.address
    }

    /// How long it is.
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
    /// So many bytes for this rank in memory that all ranks share. Every rank calls it.
    fn _alloc(&self, py: Python<'_>, bytes: usize) -> PyResult<Shared> {
        // Pages are reserved and zeroed, which takes its time.
        let buffer = self.enter(py)?.run(py, usize::MAX, |comm| comm.alloc::<u8>(bytes))?;
        let address = if bytes == 0 { 0 } else { buffer.as_ptr().expose_provenance() };
        Ok(Shared { buffer: Some(buffer), forks: forks(), address, bytes })
    }

    /// Whether long calls find out if all ranks give shared arrays; returns whether they did. All ranks say the same between the
    /// same calls. `empty` turns it on; it costs a call that asks about as much as a barrier.
    fn set_shared_buffers(&self, py: Python<'_>, on: bool) -> PyResult<bool> {
        self.enter(py)?.run(py, 0, |comm| Ok(comm.set_shared_buffers(on)))
    }

    /// What of memory this rank's team takes: shared, addresses, private, in bytes.
    #[getter]
    fn memory(&self, py: Python<'_>) -> PyResult<(usize, usize, usize)> {
        let memory = self.enter(py)?.run(py, 0, |comm| Ok(comm.memory()))?;
        Ok((memory.shared_bytes, memory.address_bytes, memory.private_bytes))
    }
}

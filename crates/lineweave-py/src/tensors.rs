//! The allreduce of torch.distributed without its questions in Python, which take longer than the call.
//!
//! Where a tensor's data is, is asked through the function that DLPack's exchange of functions gives for its class
//! (`__dlpack_c_exchange_api__`, DLPack 1.2 and later): no capsule is made, and no attribute is looked up.

use crate::dlpack::{element_of, Tensor, CPU};
use crate::layout;
use crate::rank::Communicator;
use lineweave::sync::{AtomicU64, Ordering};
use lineweave::{CallSpec, ElementType, Operator};
use lineweave_core::collective::Collective;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// `DLPackExchangeAPI`, of version 1.
#[repr(C)]
struct Exchange {
    major: u32,
    minor: u32,
    former: *const c_void,
    unused: [*const c_void; 3],
    /// Describes a tensor that stays the object's. May be missing.
    describe: Option<unsafe extern "C" fn(*mut ffi::PyObject, *mut Tensor) -> c_int>,
}

/// The class whose tensors can be described, and by what.
static CLASS: AtomicU64 = AtomicU64::new(0);
static DESCRIBE: OnceLock<unsafe extern "C" fn(*mut ffi::PyObject, *mut Tensor) -> c_int> = OnceLock::new();

/// Learns how tensors of a class are described. Whether they can be.
#[pyfunction]
pub(crate) fn learn_tensors(class: &Bound<'_, PyType>) -> PyResult<bool> {
    let Ok(capsule) = class.getattr("__dlpack_c_exchange_api__") else { return Ok(false) };
    // SAFETY: any object may be asked for.
    let found = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dlpack_exchange_api".as_ptr()) };
    if found.is_null() {
        drop(PyErr::take(class.py()));
        return Ok(false);
    }
    // SAFETY: a capsule of this name holds one, which lives as long as the process; its head is the same in all versions.
    let exchange = unsafe { &*found.cast::<Exchange>() };
    if exchange.major != 1 {
        return Ok(false);
    }
    let Some(describe) = exchange.describe else { return Ok(false) };
    if *DESCRIBE.get_or_init(|| describe) as usize == describe as usize {
        // Relaxed: the lock of the interpreter, or that of `OnceLock`, orders it for who calls.
        CLASS.store(class.as_ptr() as u64, Ordering::Relaxed);
    }
    Ok(true)
}

/// A dense tensor on the CPU: its elements, their number and where they are.
#[inline]
fn dense(tensor: &Bound<'_, PyAny>) -> Option<(ElementType, usize, *mut u8)> {
    // Relaxed: as in `learn_tensors`.
    if tensor.get_type_ptr() as u64 != CLASS.load(Ordering::Relaxed) {
        return None;
    }
    let describe = DESCRIBE.get()?;
    let mut found = Tensor::EMPTY;
    // SAFETY: an object of the class that this describes, with the lock held.
    if unsafe { describe(tensor.as_ptr(), &mut found) } != 0 {
        drop(PyErr::take(tensor.py()));
        return None;
    }
    // SAFETY: it was just filled, and the tensor lives.
    let (shape, strides) = unsafe { found.extents() };
    let (element, truth) = element_of(&found)?;
    let alike = strides.is_none_or(|strides| layout::is_dense(shape, strides, 1));
    let count = shape.iter().product::<isize>() as usize;
    let start = found.data.cast::<u8>().wrapping_add(found.byte_offset as usize);
    (found.device == CPU && alike && !truth && count > 0).then_some((element, count, start))
}

#[pymethods]
impl Communicator {
    /// torch.distributed's allreduce in place, by the operator of this number. False when it was not made, since something about the tensor
    /// has to be asked in Python.
    #[inline]
    fn _allreduce_tensor(
        &self,
        py: Python<'_>,
        tensors: &Bound<'_, PyList>,
        operator: usize,
    ) -> PyResult<bool> {
        let Some(&operator) = Operator::ALL.get(operator) else { return Ok(false) };
        if tensors.len() != 1 {
            return Ok(false);
        }
        let tensor = tensors.get_item(0)?;
        let Some((element, count, start)) = dense(&tensor) else { return Ok(false) };
        let (collective, root) = (Collective::Allreduce, 0);
        let spec = CallSpec { collective, element, count, operator: Some(operator), root };
        // SAFETY: so many elements of a tensor that `tensor` keeps.
        self.enter(py)?.run(py, spec.bytes(), |comm| unsafe { comm.call(&spec, start, start) })?;
        Ok(true)
    }
}

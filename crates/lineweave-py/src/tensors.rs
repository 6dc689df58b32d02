//! The allreduce of torch.distributed without its checks in Python, which take longer than the call.
//!
//! The address of a tensor's data comes from the functions that its class exports by DLPack (`__dlpack_c_exchange_api__`, DLPack 1.2 and
//! later): no capsule is made, and no attribute is looked up.

use crate::dlpack::{element_of, Tensor, CPU};
use crate::layout;
use crate::rank::Communicator;
use lineweave::sync::{AtomicU64, Ordering};
use lineweave::{CallSpec, ElementType, Operator};
use lineweave_core::collective::Collective;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};
use pyo3::{ffi, intern};
use std::ffi::{c_int, c_void};
use std::sync::OnceLock;

/// `DLPackExchangeAPI`, of version 1.
#[repr(C)]
struct Exchange {
    major: u32,
    minor: u32,
    former: *const c_void,
    unused: [*const c_void; 3],
    /// Describes a tensor that the object keeps. It may be missing.
    describe: Option<unsafe extern "C" fn(*mut ffi::PyObject, *mut Tensor) -> c_int>,
}

/// The class whose tensors can be described, and the function that describes them.
static CLASS: AtomicU64 = AtomicU64::new(0);
static DESCRIBE: OnceLock<unsafe extern "C" fn(*mut ffi::PyObject, *mut Tensor) -> c_int> = OnceLock::new();

/// Finds the function that describes tensors of a class; returns whether there is one.
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

/// Returns the elements of a dense tensor on the CPU: type, number and address.
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

/// Reduces a tensor over a team, in place, if nothing about it has to be asked in Python; returns whether it did.
#[inline]
fn reduce(team: &Py<Communicator>, tensor: &Bound<'_, PyAny>, operator: Operator) -> PyResult<bool> {
    let py = tensor.py();
    let Some((element, count, start)) = dense(tensor) else { return Ok(false) };
    let (collective, root) = (Collective::Allreduce, 0);
    let spec = CallSpec { collective, element, count, operator: Some(operator), root };
    // SAFETY: so many elements of a tensor that `tensor` keeps.
    team.get().enter(py)?.run(py, spec.bytes(), |comm| unsafe { comm.call(&spec, start, start) })?;
    Ok(true)
}

/// The sum of a tensor over a team, in place, without the work of torch.distributed around a call: for inference, whose calls are short
/// and all alike.
#[pyclass(frozen, module = "lineweave._lineweave")]
pub(crate) struct TensorSum {
    team: Py<Communicator>,
    /// The function that makes or refuses the call where something about the tensor has to be asked in Python.
    asked: Py<PyAny>,
}

#[pymethods]
impl TensorSum {
    #[new]
    fn new(team: Py<Communicator>, asked: Py<PyAny>) -> TensorSum {
        TensorSum { team, asked }
    }

    #[inline]
    fn __call__(&self, tensor: &Bound<'_, PyAny>) -> PyResult<()> {
        if !reduce(&self.team, tensor, Operator::Sum)? {
            self.asked.bind(tensor.py()).call1((tensor,))?;
        }
        Ok(())
    }
}

/// The `allreduce` of a process group of torch.distributed on a team. Torch calls this object in place of a method, so that no other
/// Python code runs between torch and the runtime.
///
/// It is a callable object and not a method, because torch takes functions of extensions, from C++, only for those of its own class.
#[pyclass(frozen, module = "lineweave._lineweave")]
pub(crate) struct TensorReduction {
    team: Py<Communicator>,
    /// The hashes of torch's operators, each with the operator here.
    operators: Vec<(isize, Operator)>,
    /// The function that makes the call where something about the tensor has to be asked in Python.
    asked: Py<PyAny>,
    /// The function that makes the object for a call that is over.
    done: Py<PyAny>,
}

impl TensorReduction {
    /// Makes the call if nothing has to be asked in Python; returns whether it was made.
    #[inline]
    fn direct(&self, tensors: &Bound<'_, PyAny>, opts: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = tensors.py();
        let Ok(tensors) = tensors.cast_exact::<PyList>() else { return Ok(false) };
        if tensors.len() != 1 {
            return Ok(false);
        }
        let operator = opts.getattr(intern!(py, "reduceOp"))?.hash()?;
        let Some(&(_, operator)) = self.operators.iter().find(|known| known.0 == operator) else {
            return Ok(false);
        };
        reduce(&self.team, &tensors.get_item(0)?, operator)
    }
}

#[pymethods]
impl TensorReduction {
    /// Returns the reduction for a team; `operators` are pairs of a hash and the number of the operator in the runtime's list.
    #[new]
    fn new(
        team: Py<Communicator>,
        operators: Vec<(isize, usize)>,
        asked: Py<PyAny>,
        done: Py<PyAny>,
    ) -> PyResult<TensorReduction> {
        let known = |(hash, number): (isize, usize)| Some((hash, *Operator::ALL.get(number)?));
        let operators: Option<Vec<_>> = operators.into_iter().map(known).collect();
        let operators =
            operators.ok_or_else(|| PyValueError::new_err("an operator that the runtime does not have"))?;
        Ok(TensorReduction { team, operators, asked, done })
    }

    /// Reduces the one tensor of a list in place. Returns the object for the call, unless the options say that it is not needed.
    #[pyo3(signature = (tensors, opts=None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        tensors: &Bound<'py, PyAny>,
        opts: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some(given) = opts else { return self.asked.bind(py).call1((tensors, opts)) };
        if !self.direct(tensors, given)? {
            return self.asked.bind(py).call1((tensors, opts));
        }
        // Releases of torch without this option always expect the object.
        let wanted = given.getattr_opt(intern!(py, "asyncOp"))?;
        if wanted.is_none_or(|wanted| wanted.is_truthy().unwrap_or(true)) {
            return self.done.bind(py).call1((tensors,));
        }
        Ok(py.None().into_bound(py))
    }
}

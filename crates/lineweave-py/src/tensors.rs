//! The allreduce of torch.distributed without its questions in Python, which take longer than the call.
//!
//! 1. Where a tensor's data is, is asked through the function that DLPack's exchange of functions gives for its class
//!    (`__dlpack_c_exchange_api__`, DLPack 1.2 and later): no capsule is made.
//! 2. Operator and `asyncOp` lie in an object of C++ that torch hands over, and each question to it makes an object. Where the two
//!    lie in it is found out by examples, whose answers are known; if they do not all agree, the questions are asked.

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
use std::fs::File;
use std::os::unix::fs::FileExt;
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

/// Where options lie.
static OPTIONS: OnceLock<Options> = OnceLock::new();

/// Bytes of the options that are looked at: they are shorter than torch's have been since they had an `asyncOp`.
const SEEN: usize = 56;

struct Options {
    class: usize,
    operator: usize,
    asynchronous: usize,
    /// By the byte of the operator.
    operators: [Option<Operator>; 16],
}

/// Options that were made for this, the number of their operator in the order of the runtime's list, and their `asyncOp`.
type Example<'py> = (Bound<'py, PyAny>, usize, bool);

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

/// Learns where operator and `asyncOp` lie in options of C++. Whether it could be found out.
#[pyfunction]
pub(crate) fn learn_options(examples: Vec<Example<'_>>) -> bool {
    OPTIONS.get().is_some() || find(&examples).is_some_and(|options| OPTIONS.set(options).is_ok())
}

/// The object of C++ behind one that pybind11 made: the first word after the head.
const VALUE: usize = size_of::<ffi::PyObject>();

fn find(examples: &[Example<'_>]) -> Option<Options> {
    // Memory is read through the kernel, which refuses what is not there: an object need not be laid out as expected.
    let memory = File::open("/proc/self/mem").ok()?;
    let class = examples.first()?.0.get_type_ptr() as usize;
    let mut seen = Vec::new();
    for (object, operator, asynchronous) in examples {
        let mut word = [0; size_of::<usize>()];
        memory.read_exact_at(&mut word, (object.as_ptr() as usize + VALUE) as u64).ok()?;
        let mut bytes = [0; SEEN];
        memory.read_exact_at(&mut bytes, usize::from_ne_bytes(word) as u64).ok()?;
        if object.get_type_ptr() as usize != class {
            return None;
        }
        seen.push((bytes, *operator, *asynchronous));
    }
    let lone = |fits: &dyn Fn(usize) -> bool| {
        let mut found = (0..SEEN).filter(|&at| fits(at));
        found.next().filter(|_| found.next().is_none())
    };
    let asynchronous = lone(&|at| seen.iter().all(|(bytes, _, yes)| bytes[at] == u8::from(*yes)))?;
    // A byte that is the same for the same operator, and another one for every other.
    let agree = |at: usize| {
        let same = |(a, p, _): &([u8; SEEN], usize, bool), (b, q, _): &([u8; SEEN], usize, bool)| {
            (a[at] == b[at]) == (p == q)
        };
        seen.iter().all(|a| a.0[at] < 16 && seen.iter().all(|b| same(a, b)))
    };
    let operator = lone(&agree)?;
    let mut operators = [None; 16];
    for (bytes, number, _) in &seen {
        operators[bytes[operator] as usize] = Some(*Operator::ALL.get(*number)?);
    }
    Some(Options { class, operator, asynchronous, operators })
}

/// Operator and `asyncOp`, if it is known where they lie.
#[inline]
fn options(given: &Bound<'_, PyAny>) -> Option<(Operator, bool)> {
    let known = OPTIONS.get().filter(|known| known.class == given.get_type_ptr() as usize)?;
    // SAFETY: an object of the class that the examples had, whose value was found there in all of them; it has as many bytes.
    unsafe {
        let value = *given.as_ptr().cast::<u8>().add(VALUE).cast::<*const u8>();
        if value.is_null() {
            return None;
        }
        let operator = *known.operators.get(*value.add(known.operator) as usize)?;
        Some((operator?, *value.add(known.asynchronous) != 0))
    }
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
    /// torch.distributed's allreduce in place: `None` when it is done and nothing more is asked for, true when it is done and the
    /// caller wants work, false when it was not made, since something about it has to be asked.
    #[inline]
    fn _allreduce_tensor(
        &self,
        py: Python<'_>,
        tensors: &Bound<'_, PyList>,
        given: &Bound<'_, PyAny>,
    ) -> PyResult<Option<bool>> {
        let Some((operator, asynchronous)) = options(given) else { return Ok(Some(false)) };
        if tensors.len() != 1 {
            return Ok(Some(false));
        }
        let tensor = tensors.get_item(0)?;
        let Some((element, count, start)) = dense(&tensor) else { return Ok(Some(false)) };
        let (collective, root) = (Collective::Allreduce, 0);
        let spec = CallSpec { collective, element, count, operator: Some(operator), root };
        // SAFETY: so many elements of a tensor that `tensor` keeps.
        self.enter(py)?.run(py, spec.bytes(), |comm| unsafe { comm.call(&spec, start, start) })?;
        Ok(asynchronous.then_some(true))
    }
}

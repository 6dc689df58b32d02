//! Arrays that Python passes, and the place of their data for the length of a call.

use crate::layout::{self, Layout};
use crate::{dlpack, numpy, raise};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_char, c_int, c_void, CStr};
use std::marker::PhantomData;

/// The C struct `Py_buffer`, which is part of the stable ABI since Python 3.11, and the same in 3.10.
#[repr(C)]
struct RawBuffer {
    buf: *mut c_void,
    obj: *mut ffi::PyObject,
    len: isize,
    itemsize: isize,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut isize,
    strides: *mut isize,
    suboffsets: *mut isize,
    internal: *mut c_void,
}

extern "C" {
    fn PyObject_CheckBuffer(object: *mut ffi::PyObject) -> c_int;
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut RawBuffer, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut RawBuffer);
}

/// `PyBUF_STRIDES | PyBUF_FORMAT`.
const STRIDES_AND_FORMAT: c_int = 0x18 | 0x4;

/// The owner that keeps the data in its place.
enum Keeper<'py> {
    /// The caller, who holds the array.
    Caller,
    Buffer(Box<RawBuffer>),
    Capsule(Bound<'py, PyAny>),
}

/// An array that a call may use until this value is dropped.
pub(crate) struct Array<'py> {
    pub layout: Layout,
    keeper: Keeper<'py>,
    attached: PhantomData<Python<'py>>,
}

impl Drop for Array<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Keeper::Buffer(buffer) = &mut self.keeper {
            // SAFETY: filled by PyObject_GetBuffer, and the lock is held where there is a 'py.
            unsafe { PyBuffer_Release(&mut **buffer) };
        }
    }
}

impl<'py> Array<'py> {
    /// Returns the data of `object`, to which errors refer by `whose`.
    #[inline(always)]
    pub(crate) fn of(object: &Bound<'py, PyAny>, whose: &'static str) -> PyResult<Array<'py>> {
        if numpy::is_array(object) {
            let layout = numpy::read(object, whose)?;
            return Ok(Array { layout, keeper: Keeper::Caller, attached: PhantomData });
        }
        Array::of_another(object, whose)
    }

    #[cold]
    fn of_another(object: &Bound<'py, PyAny>, whose: &'static str) -> PyResult<Array<'py>> {
        let py = object.py();
        if numpy::discover(object) {
            return Array::of(object, whose);
        }
        // SAFETY: any object may be asked.
        if unsafe { PyObject_CheckBuffer(object.as_ptr()) } == 1 {
            return Array::of_buffer(object, whose);
        }
        if object.hasattr("__dlpack__")? {
            let (layout, capsule) = dlpack::read(object, whose)?;
            return Ok(Array { layout, keeper: Keeper::Capsule(capsule), attached: PhantomData });
        }
        let class = object.get_type().qualname()?;
        Err(raise::kind(py, format!("{whose} is of type {class}; expected an array: numpy's, a CPU tensor, bytearray, or anything else with the buffer protocol or DLPack. Python objects go by the calls for objects, such as allreduce_object")))
    }

    fn of_buffer(object: &Bound<'py, PyAny>, whose: &'static str) -> PyResult<Array<'py>> {
        let py = object.py();
        // SAFETY: all fields are numbers and pointers.
        let mut view: Box<RawBuffer> = Box::new(unsafe { std::mem::zeroed() });
        // SAFETY: the object offers buffers, and the view is this thread's.
        if unsafe { PyObject_GetBuffer(object.as_ptr(), &mut *view, STRIDES_AND_FORMAT) } != 0 {
            let error = PyErr::fetch(py);
            let name = object.getattr("dtype").and_then(|d| d.getattr("name")).map(|n| n.to_string());
            // numpy has no buffer format for such types.
            return Err(name.map_or(error, |name| layout::unknown(py, whose, &format!("of dtype {name}"))));
        }
        let data = view.buf.cast::<u8>();
        let keeper = Keeper::Buffer(view);
        let Keeper::Buffer(view) = &keeper else { unreachable!("as just made") };
        let format: &[u8] = match view.format.is_null() {
            true => b"B",
            // SAFETY: a string of the view.
            false => unsafe { CStr::from_ptr(view.format) }.to_bytes(),
        };
        let size = view.itemsize as usize;
        let (element, truth) = layout::of_format(py, format, size, whose)?;
        let words = |at: *mut isize| match view.ndim as usize {
            0 => &[][..],
            // SAFETY: as many as dimensions, as asked for.
            n => unsafe { std::slice::from_raw_parts(at.cast_const(), n) },
        };
        let dense = view.suboffsets.is_null()
            && layout::is_dense(words(view.shape), words(view.strides), size)
            && data as usize % element.align() == 0;
        let layout = Layout {
            data,
            count: view.len as usize / size.max(1),
            element,
            truth,
            writable: view.readonly == 0,
            dense,
        };
        Ok(Array { layout, keeper, attached: PhantomData })
    }

    /// Keeps the array for longer than a call; `object` must be kept as long.
    pub(crate) fn keep(mut self) -> Kept {
        let keeper = std::mem::replace(&mut self.keeper, Keeper::Caller);
        Kept(match keeper {
            Keeper::Caller => KeptBy::Object,
            Keeper::Buffer(buffer) => KeptBy::Buffer(buffer),
            Keeper::Capsule(capsule) => KeptBy::Capsule(capsule.unbind()),
        })
    }
}

/// The owner that keeps data in its place beyond a call.
pub(crate) struct Kept(KeptBy);

impl Kept {
    /// Returns the keeper for a call that has no such array.
    pub(crate) fn nothing() -> Kept {
        Kept(KeptBy::Object)
    }
}

enum KeptBy {
    Object,
    Buffer(Box<RawBuffer>),
    Capsule(#[expect(dead_code, reason = "kept for its drop")] Py<PyAny>),
}

// SAFETY: a view is released with the lock held, by whatever thread.
unsafe impl Send for Kept {}
// SAFETY: nothing in it can be reached but by dropping it.
unsafe impl Sync for Kept {}

impl Drop for Kept {
    fn drop(&mut self) {
        if let KeptBy::Buffer(buffer) = &mut self.0 {
            // SAFETY: filled by PyObject_GetBuffer; released once, with the lock.
            Python::attach(|_| unsafe { PyBuffer_Release(&mut **buffer) });
        }
    }
}

/// Returns an object's description as an array: element type, number of elements, whether it may be written, whether it
/// is dense.
#[pyfunction]
pub(crate) fn describe(object: &Bound<'_, PyAny>) -> PyResult<(&'static str, usize, bool, bool)> {
    let Layout { element, count, writable, dense, .. } = Array::of(object, "the array")?.layout;
    Ok((element.name(), count, writable, dense))
}

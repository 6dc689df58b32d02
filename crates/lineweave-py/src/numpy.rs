//! Direct access to the fields of numpy's arrays.
//!
//! With the buffer protocol, numpy writes a format string each time, which costs more than a small collective. The
//! fields of an array object are public ABI: every extension compiled against numpy's headers reads them through
//! macros, and numpy 2 kept the fields used here in their places. Before they are trusted, they are compared with the
//! attributes of an array; if they differ, arrays are read through the buffer protocol.

use crate::layout::{self, Layout};
use lineweave::sync::{AtomicU64, Ordering};
use lineweave::ElementType;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_char, c_int};

/// The part of `PyArrayObject_fields` that is read.
#[repr(C)]
struct Array {
    head: ffi::PyObject,
    data: *mut u8,
    nd: c_int,
    dimensions: *const isize,
    strides: *const isize,
    base: *mut ffi::PyObject,
    descr: *const Descr,
    flags: c_int,
}

/// The part of `PyArray_Descr` that is the same in numpy 1 and 2.
#[repr(C)]
struct Descr {
    head: ffi::PyObject,
    typeobj: *mut ffi::PyObject,
    kind: c_char,
    code: c_char,
    byteorder: c_char,
    former_flags: c_char,
    type_num: c_int,
}

const C_CONTIGUOUS: c_int = 0x1;
const ALIGNED: c_int = 0x100;
const WRITEABLE: c_int = 0x400;
/// The first number of a type that is not numpy's own.
const USER_TYPES: c_int = 256;

/// The class `numpy.ndarray`, once its fields are known to be in the expected places.
static NDARRAY: AtomicU64 = AtomicU64::new(0);
/// The number that numpy gave to bfloat16, plus one.
static BFLOAT16: AtomicU64 = AtomicU64::new(0);

/// Returns whether the object is of class `numpy.ndarray` itself, and may be read.
#[inline(always)]
pub(crate) fn is_array(object: &Bound<'_, PyAny>) -> bool {
    // Relaxed: a class is never freed, and was made before the lock was taken that this thread holds.
    object.get_type_ptr() as u64 == NDARRAY.load(Ordering::Relaxed)
}

/// Examines an object that may be the first array seen; returns whether it is an array that may be read from now on.
#[cold]
pub(crate) fn discover(object: &Bound<'_, PyAny>) -> bool {
    let class = object.get_type();
    let named = class.name().is_ok_and(|n| n == "ndarray") && class.module().is_ok_and(|m| m == "numpy");
    // Relaxed: as above.
    if !named || NDARRAY.load(Ordering::Relaxed) != 0 || !fields_are_known(object.py()).unwrap_or(false) {
        return false;
    }
    // Relaxed: as above.
    NDARRAY.store(class.as_ptr() as u64, Ordering::Relaxed);
    true
}

fn fields_are_known(py: Python<'_>) -> PyResult<bool> {
    let numpy = py.import("numpy")?;
    for (dtype, code) in [("int16", b'h'), ("float64", b'd')] {
        let made = numpy.call_method1("zeros", ((3, 5), dtype))?;
        let address = made.getattr("ctypes")?.getattr("data")?.extract::<usize>()?;
        let number = made.getattr("dtype")?.getattr("num")?.extract::<c_int>()?;
        // SAFETY: an array of class ndarray is at least as large as its fields were in every numpy since 1.7.
        let array = unsafe { &*made.as_ptr().cast::<Array>() };
        if array.data as usize != address || array.nd != 2 || array.descr.is_null() {
            return Ok(false);
        }
        // SAFETY: two dimensions, as just seen, in an array whose data is where it says.
        let (extents, strides) = unsafe { array.shape() };
        // SAFETY: not null, and an array's descriptor is one.
        let descr = unsafe { &*array.descr };
        let size = if code == b'd' { 8 } else { 2 };
        let flags = C_CONTIGUOUS | ALIGNED | WRITEABLE;
        if extents != [3, 5]
            || strides != [5 * size, size]
            || array.flags & flags != flags
            || descr.type_num != number
            || descr.code as u8 != code
        {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Array {
    /// # Safety
    /// The fields must be where they are expected.
    unsafe fn shape(&self) -> (&[isize], &[isize]) {
        let n = self.nd as usize;
        if n == 0 {
            return (&[], &[]);
        }
        // SAFETY: an array has as many of both as it has dimensions.
        unsafe {
            (std::slice::from_raw_parts(self.dimensions, n), std::slice::from_raw_parts(self.strides, n))
        }
    }
}

/// Reads an object for which [`is_array`] holds.
#[inline(always)]
pub(crate) fn read(object: &Bound<'_, PyAny>, whose: &'static str) -> PyResult<Layout> {
    // SAFETY: the class is numpy's, whose fields were compared.
    let array = unsafe { &*object.as_ptr().cast::<Array>() };
    // SAFETY: an array always has a descriptor.
    let descr = unsafe { &*array.descr };
    // SAFETY: as above.
    let count = unsafe { array.shape() }.0.iter().product::<isize>() as usize;
    let element = match descr.type_num {
        11 => ElementType::F32,
        12 => ElementType::F64,
        7 => LONG,
        8 => UNSIGNED_LONG,
        1 => ElementType::I8,
        0 | 2 => ElementType::U8,
        3 => ElementType::I16,
        4 => ElementType::U16,
        5 => ElementType::I32,
        6 => ElementType::U32,
        9 => ElementType::I64,
        10 => ElementType::U64,
        23 => ElementType::F16,
        14 => ElementType::ComplexF32,
        15 => ElementType::ComplexF64,
        other => unusual(object, other, whose)?,
    };
    let swapped = if cfg!(target_endian = "little") { b'>' } else { b'<' };
    if descr.byteorder as u8 == swapped {
        return Err(layout::of_format(object.py(), &[swapped, b'd'], 8, whose).expect_err("it is swapped"));
    }
    let dense = C_CONTIGUOUS | ALIGNED;
    Ok(Layout {
        data: array.data,
        count,
        element,
        truth: descr.type_num == 0,
        writable: array.flags & WRITEABLE != 0,
        dense: array.flags & dense == dense,
    })
}

const LONG: ElementType =
    if size_of::<std::ffi::c_long>() == 8 { ElementType::I64 } else { ElementType::I32 };
const UNSIGNED_LONG: ElementType =
    if size_of::<std::ffi::c_long>() == 8 { ElementType::U64 } else { ElementType::U32 };

#[cold]
fn unusual(object: &Bound<'_, PyAny>, number: c_int, whose: &str) -> PyResult<ElementType> {
    let mark = number as u64 + 1;
    // Relaxed: a number, known or not.
    if BFLOAT16.load(Ordering::Relaxed) == mark {
        return Ok(ElementType::BF16);
    }
    let name = object.getattr("dtype")?.getattr("name")?.extract::<String>()?;
    if number >= USER_TYPES && name == "bfloat16" {
        // Relaxed: as above.
        BFLOAT16.store(mark, Ordering::Relaxed);
        return Ok(ElementType::BF16);
    }
    Err(match number {
        17 => layout::objects(object.py(), whose),
        _ => layout::unknown(object.py(), whose, &format!("of dtype {name}")),
    })
}

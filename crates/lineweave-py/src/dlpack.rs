//! Tensors of other libraries, read by DLPack.

use crate::layout::{self, Layout};
use crate::raise;
use lineweave::ElementType;
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{c_int, c_void};

/// `DLTensor` of dlpack.h; the first member of a `DLManagedTensor`.
#[repr(C)]
pub(crate) struct Tensor {
    pub data: *mut c_void,
    pub device: c_int,
    device_id: c_int,
    ndim: c_int,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    pub byte_offset: u64,
}

/// `kDLCPU`.
pub(crate) const CPU: c_int = 1;

/// Extents are read as `isize`.
const _: () = assert!(size_of::<isize>() == size_of::<i64>());

impl Tensor {
    /// A tensor with empty fields, to be filled.
    pub(crate) const EMPTY: Tensor = Tensor {
        data: std::ptr::null_mut(),
        device: 0,
        device_id: 0,
        ndim: 0,
        code: 0,
        bits: 0,
        lanes: 0,
        shape: std::ptr::null(),
        strides: std::ptr::null(),
        byte_offset: 0,
    };

    /// Returns the extents and, unless elements lie one after the other, the strides, in elements.
    ///
    /// # Safety
    /// The owner of the tensor has filled it, and the tensor must live.
    pub(crate) unsafe fn extents(&self) -> (&[isize], Option<&[isize]>) {
        let words = |at: *const i64| match self.ndim {
            0 => &[][..],
            // SAFETY: as many as dimensions, by the header.
            n => unsafe { std::slice::from_raw_parts(at.cast::<isize>(), n as usize) },
        };
        (words(self.shape), (!self.strides.is_null()).then(|| words(self.strides)))
    }
}

/// Returns the element type, and whether the elements are truth values.
pub(crate) fn element_of(tensor: &Tensor) -> Option<(ElementType, bool)> {
    let element = match (tensor.code, tensor.bits, tensor.lanes) {
        (0, 8, 1) => ElementType::I8,
        (0, 16, 1) => ElementType::I16,
        (0, 32, 1) => ElementType::I32,
        (0, 64, 1) => ElementType::I64,
        (1 | 6, 8, 1) => ElementType::U8,
        (1, 16, 1) => ElementType::U16,
        (1, 32, 1) => ElementType::U32,
        (1, 64, 1) => ElementType::U64,
        (2, 16, 1) => ElementType::F16,
        (2, 32, 1) => ElementType::F32,
        (2, 64, 1) => ElementType::F64,
        (4, 16, 1) => ElementType::BF16,
        (5, 64, 1) => ElementType::ComplexF32,
        (5, 128, 1) => ElementType::ComplexF64,
        _ => return None,
    };
    Some((element, tensor.code == 6))
}

/// Returns the layout of a tensor, and the capsule that keeps it.
pub(crate) fn read<'py>(
    object: &Bound<'py, PyAny>,
    whose: &'static str,
) -> PyResult<(Layout, Bound<'py, PyAny>)> {
    let py = object.py();
    let capsule = object.call_method0("__dlpack__")?;
    // SAFETY: any object may be asked for.
    let tensor = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dltensor".as_ptr()) };
    if tensor.is_null() {
        return Err(PyErr::fetch(py));
    }
    // SAFETY: a capsule of this name holds one, and lives as long as the capsule.
    let tensor = unsafe { &*tensor.cast::<Tensor>() };
    if tensor.device != CPU {
        return Err(raise::kind(
            py,
            format!(
                "{whose} is on a device of DLPack's type {}; copy it to the CPU first (x.cpu())",
                tensor.device
            ),
        ));
    }
    let Some((element, truth)) = element_of(tensor) else {
        let Tensor { code, bits, lanes, .. } = tensor;
        let what = format!("of DLPack's type {code} with {bits} bits and {lanes} lanes");
        return Err(layout::unknown(py, whose, &what));
    };
    // SAFETY: the capsule keeps it.
    let (shape, strides) = unsafe { tensor.extents() };
    let dense = strides.is_none_or(|strides| layout::is_dense(shape, strides, 1));
    let data = tensor.data.cast::<u8>().wrapping_add(tensor.byte_offset as usize);
    let layout = Layout {
        data,
        count: shape.iter().product::<isize>() as usize,
        element,
        truth,
        // The unversioned exchange is offered only by libraries that allow writing.
        writable: true,
        dense,
    };
    Ok((layout, capsule))
}

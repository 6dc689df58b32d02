//! The layout of an array's data, whatever its source.

use crate::raise;
use lineweave::ElementType;
use pyo3::prelude::*;

/// A range of elements in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    pub data: *mut u8,
    /// Number of elements.
    pub count: usize,
    pub element: ElementType,
    /// True for truth values: they travel as bytes and are combined by logical operators only.
    pub truth: bool,
    pub writable: bool,
    /// True if elements lie one after the other in the order of their indices.
    pub dense: bool,
}

impl Layout {
    pub(crate) fn bytes(&self) -> usize {
        self.count * self.element.size()
    }
}

/// Returns the element type of a format of the buffer protocol (PEP 3118, `struct`), and whether it is a truth value.
pub(crate) fn of_format(
    py: Python<'_>,
    format: &[u8],
    size: usize,
    whose: &str,
) -> PyResult<(ElementType, bool)> {
    let (order, code) = match format {
        [b'@' | b'=' | b'<' | b'>' | b'!', rest @ ..] => (format[0], rest),
        _ => (b'@', format),
    };
    let swapped = if cfg!(target_endian = "little") { [b'>', b'!'] } else { [b'<', b'<'] };
    let text = String::from_utf8_lossy(format);
    if swapped.contains(&order) && size > 1 {
        return Err(raise::kind(
            py,
            format!("{whose} has elements `{text}` in the other byte order; convert it, in numpy by x.astype(x.dtype.newbyteorder('='))"),
        ));
    }
    let integer = |signed: bool| match (size, signed) {
        (1, true) => Some(ElementType::I8),
        (2, true) => Some(ElementType::I16),
        (4, true) => Some(ElementType::I32),
        (8, true) => Some(ElementType::I64),
        (1, false) => Some(ElementType::U8),
        (2, false) => Some(ElementType::U16),
        (4, false) => Some(ElementType::U32),
        (8, false) => Some(ElementType::U64),
        _ => None,
    };
    let element = match code {
        b"b" | b"h" | b"i" | b"l" | b"q" | b"n" => integer(true),
        b"B" | b"H" | b"I" | b"L" | b"Q" | b"N" | b"?" | b"c" => integer(false),
        b"e" => Some(ElementType::F16),
        b"Zf" => Some(ElementType::ComplexF32),
        b"Zd" => Some(ElementType::ComplexF64),
        b"f" => Some(ElementType::F32),
        b"d" => Some(ElementType::F64),
        b"O" => return Err(objects(py, whose)),
        _ => None,
    };
    let element = element.ok_or_else(|| unknown(py, whose, &format!("of format `{text}`")))?;
    Ok((element, code == b"?"))
}

#[cold]
pub(crate) fn objects(py: Python<'_>, whose: &str) -> PyErr {
    raise::kind(py, format!("{whose} holds Python objects, which have no place in shared memory; give it a numeric dtype, or use the calls for objects, such as allreduce_object"))
}

#[cold]
pub(crate) fn unknown(py: Python<'_>, whose: &str, what: &str) -> PyErr {
    raise::kind(py, format!("{whose} has elements {what}; expected integers of 1 to 8 bytes, float16, bfloat16, float32, float64, complex64, complex128 or bool; other types can be moved as bytes, in numpy by x.view(np.uint8)"))
}

/// Returns whether elements of `size` bytes with these extents and strides (in bytes) lie one after the other.
pub(crate) fn is_dense(extents: &[isize], strides: &[isize], size: usize) -> bool {
    let mut expected = size as isize;
    for (&extent, &stride) in extents.iter().zip(strides).rev() {
        if extent == 0 {
            return true;
        }
        if extent != 1 && stride != expected {
            return false;
        }
        expected *= extent;
    }
    true
}

//! Operators by the names that Python uses: strings, numpy's functions, the functions of `operator`, and a few more.

use crate::raise;
use lineweave::Operator;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::cell::UnsafeCell;

/// Returns the operator of a name.
fn named(name: &str) -> Option<Operator> {
    Some(match name {
        "sum" | "add" => Operator::Sum,
        "prod" | "product" | "multiply" | "mul" => Operator::Prod,
        "min" | "minimum" => Operator::Min,
        "max" | "maximum" => Operator::Max,
        "avg" | "mean" | "average" => Operator::Avg,
        "band" | "bitwise_and" | "and_" => Operator::BitAnd,
        "bor" | "bitwise_or" | "or_" => Operator::BitOr,
        "bxor" | "bitwise_xor" | "xor" => Operator::BitXor,
        "land" | "logical_and" => Operator::LogicalAnd,
        "lor" | "logical_or" => Operator::LogicalOr,
        "lxor" | "logical_xor" => Operator::LogicalXor,
        _ => return None,
    })
}

/// The accepted operators, in words for error messages.
const EXPECTED: &str = "'sum', 'prod', 'min', 'max', 'avg', 'band', 'bor', 'bxor', 'land', 'lor', 'lxor', numpy's function for one of them (np.add, np.maximum, ...), or a function of two arrays";

/// The operator that was used last, with the object that Python passed for it.
#[derive(Default)]
pub(crate) struct Last(UnsafeCell<Option<(Py<PyAny>, Operator)>>);

// SAFETY: touched only within a call on the communicator, of which there is one at a time.
unsafe impl Sync for Last {}

impl Last {
    /// Returns the operator for the object `given`; without an object, a sum. Returns `None` for a function that has to
    /// be called.
    ///
    /// # Safety
    /// Only one thread may use the communicator at a time.
    #[inline(always)]
    pub(crate) unsafe fn find(&self, given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Operator>> {
        let Some(given) = given else { return Ok(Some(Operator::Sum)) };
        // SAFETY: the caller's.
        if let Some((object, operator)) = unsafe { &*self.0.get() } {
            if object.is(given) {
                return Ok(Some(*operator));
            }
        }
        let found = look_up(given)?;
        if let Some(operator) = found {
            // SAFETY: the caller's.
            unsafe { *self.0.get() = Some((given.clone().unbind(), operator)) };
        }
        Ok(found)
    }
}

#[cold]
fn look_up(given: &Bound<'_, PyAny>) -> PyResult<Option<Operator>> {
    let py = given.py();
    if let Ok(text) = given.cast::<PyString>() {
        let text = text.to_string();
        let unknown = || raise::argument(py, format!("operator '{text}' is unknown; expected {EXPECTED}"));
        return named(&text).map(Some).ok_or_else(unknown);
    }
    if !given.is_callable() {
        let class = given.get_type().qualname()?;
        return Err(raise::kind(py, format!("the operator is of type {class}; expected {EXPECTED}")));
    }
    let word = |attribute: &str| given.getattr(attribute).and_then(|a| a.extract::<String>());
    let module = word("__module__").or_else(|_| given.get_type().getattr("__module__")?.extract());
    match module.as_deref() {
        Ok("numpy" | "builtins" | "_operator" | "operator" | "lineweave" | "lineweave.MPI") => {
            Ok(word("__name__").ok().and_then(|name| named(&name)))
        }
        _ => Ok(None),
    }
}

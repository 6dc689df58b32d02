//! Conversion of the runtime's errors to exceptions: the classes of `lineweave._errors`, with rank and operation as
//! attributes.

use lineweave::Error;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// Returns the exception for an error; `rank` is the rank at which it happened, if it was at one.
#[cold]
pub(crate) fn error(py: Python<'_>, error: &Error, rank: Option<usize>) -> PyErr {
    if let (Error::CalledOff { .. }, Some(raised)) = (error, PyErr::take(py)) {
        // A signal handler raised this exception, mostly `KeyboardInterrupt`.
        return raised;
    }
    let (class, operation, peer, call) = match error {
        Error::PeerLost { rank, operation, sequence, .. } => {
            ("RankLost", Some(operation.clone()), Some(*rank), Some(*sequence))
        }
        Error::Timeout { operation, sequence, .. } => {
            ("Timeout", Some(operation.clone()), None, Some(*sequence))
        }
        Error::CalledOff { operation, sequence, .. } => {
            ("Error", Some(operation.clone()), None, Some(*sequence))
        }
        Error::Mismatch { other, sequence, .. } => ("Mismatch", None, Some(*other), Some(*sequence)),
        Error::Root { collective, .. }
        | Error::Length { collective, .. }
        | Error::Counts { collective, .. }
        | Error::Overlap { collective } => ("BadArgument", Some(collective.name().to_owned()), None, None),
        Error::Rank { .. } | Error::NoRank { .. } | Error::TeamSize { .. } | Error::Setting(_) => {
            ("BadArgument", None, None, None)
        }
        Error::Operator(_) => ("BadType", None, None, None),
        Error::Heap { .. } | Error::Memory { .. } => ("OutOfMemory", None, None, None),
        Error::Meeting { .. } => ("MeetingFailed", None, None, None),
        Error::Environment { .. } => ("NoTeam", None, None, None),
        _ => ("Error", None, None, None),
    };
    let text = error.to_string();
    let made = || -> PyResult<PyErr> {
        let class = py.import("lineweave._errors")?.getattr(class)?;
        Ok(PyErr::from_value(class.call1((text.as_str(), rank, operation, peer, call))?))
    };
    made().unwrap_or_else(|_| PyRuntimeError::new_err(text.clone()))
}

/// Returns an exception of the package's own, by class name.
#[cold]
pub(crate) fn own(py: Python<'_>, class: &str, text: impl Into<String>) -> PyErr {
    let text = text.into();
    let made = || -> PyResult<PyErr> {
        Ok(PyErr::from_value(py.import("lineweave._errors")?.getattr(class)?.call1((text.as_str(),))?))
    };
    made().unwrap_or_else(|_| PyRuntimeError::new_err(text.clone()))
}

/// Returns the exception for a value that cannot be used.
#[cold]
pub(crate) fn argument(py: Python<'_>, text: impl Into<String>) -> PyErr {
    own(py, "BadArgument", text)
}

/// Returns the exception for a type that cannot be used.
#[cold]
pub(crate) fn kind(py: Python<'_>, text: impl Into<String>) -> PyErr {
    own(py, "BadType", text)
}

/// Returns whether an exception says that the operator is a function, which the package has to call.
#[cold]
pub(crate) fn is_callable_operator(py: Python<'_>, error: &PyErr) -> bool {
    let class = py.import("lineweave._errors").and_then(|m| m.getattr("CallableOperator"));
    class.is_ok_and(|class| error.is_instance(py, &class))
}

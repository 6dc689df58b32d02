//! lineweave's collectives for Python: the extension module `lineweave._lineweave`, below the package in `python/`.
//!
//! Code that has to be fast is here: finding the place of an array's data, and the calls. Code for convenience, which
//! makes teams and arrays, is in Python and calls this. Modules are declared in the order in which they may use each
//! other.

mod raise;
mod attend;
mod layout;
mod numpy;
mod dlpack;
mod array;
mod held;
mod operator;
mod rank;
mod pending;
mod prepare;
mod requests;
mod calls;
mod blocks;
mod tensors;
mod uneven;
mod handle;
mod messages;
mod parcels;
mod shared;
mod start;

use pyo3::prelude::*;

/// The extension module, which the package `lineweave` wraps; import that.
#[pymodule(name = "_lineweave", gil_used = false)]
fn extension(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("MAX_RANKS", lineweave::segment::MAX_RANKS)?;
    module.add_class::<rank::Communicator>()?;
    module.add_class::<handle::Persistent>()?;
    module.add_class::<requests::Request>()?;
    module.add_class::<parcels::Parcel>()?;
    module.add_class::<tensors::TensorReduction>()?;
    module.add_class::<tensors::TensorSum>()?;
    module.add_class::<shared::Shared>()?;
    module.add_class::<rank::Seat>()?;
    module.add_class::<start::Threads>()?;
    module.add_function(wrap_pyfunction!(start::meet, module)?)?;
    module.add_function(wrap_pyfunction!(start::from_environment, module)?)?;
    module.add_function(wrap_pyfunction!(start::launch, module)?)?;
    module.add_function(wrap_pyfunction!(start::end_with_parent, module)?)?;
    module.add_function(wrap_pyfunction!(start::usable_cpus, module)?)?;
    module.add_function(wrap_pyfunction!(start::ineffective_settings, module)?)?;
    module.add_function(wrap_pyfunction!(rank::forked, module)?)?;
    module.add_function(wrap_pyfunction!(attend::closing, module)?)?;
    module.add_function(wrap_pyfunction!(attend::waiting, module)?)?;
    module.add_function(wrap_pyfunction!(array::describe, module)?)?;
    module.add_function(wrap_pyfunction!(tensors::learn_tensors, module)?)?;
    Ok(())
}

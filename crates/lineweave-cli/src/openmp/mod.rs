//! A runtime of OpenMP that is installed here: its settings, and the times of its constructs with them.
//!
//! 1. [`Host`] builds `bench/openmp/constructs.c` for the runtime, and starts it with a number of threads and settings.
//! 2. [`settings`] lists the settings of each runtime for waiting, binding, and the shape of barriers.
//! 3. [`Trial`] launches settings in turns with the default, and computes their scores.
//! 4. [`search`] finds the best settings for a number of threads.
//! 5. [`script`] writes the chosen settings, for each number of threads, and reads them back.

mod error;
mod host;
pub mod script;
pub mod search;
pub mod settings;
mod trial;

pub use error::OpenmpError;
pub use host::{is_setting, Host, Runtime, CONSTRUCTS};
pub use trial::{label, Trial};

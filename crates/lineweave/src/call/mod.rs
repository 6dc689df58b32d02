//! Description of a call: the collective, its elements, and their places. This module knows nothing of how a call is carried out.

mod layout;
mod spec;

pub(crate) use layout::{expect_counts, expect_equal, expect_length, total_bytes, Memory};
pub use layout::{whole, Places};
pub use spec::CallSpec;
pub(crate) use spec::{fingerprint, OPERATOR, REPRODUCIBLE, WORDS};

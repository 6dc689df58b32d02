//! What a call is: the collective, its elements, and where they lie. It knows nothing of how a call is carried out.

mod places;
mod spec;

pub use places::Place;
pub(crate) use places::{expect_counts, expect_equal, expect_length, Uneven};
pub use spec::CallSpec;
pub(crate) use spec::{fingerprint, OPERATOR, REPRODUCIBLE, WORDS};

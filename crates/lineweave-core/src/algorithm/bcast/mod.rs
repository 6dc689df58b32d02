//! Algorithms for broadcast.

pub mod binomial;

use super::Algorithm;

/// Every algorithm, in the order of the listing.
pub const TABLE: &[&Algorithm] = &[&binomial::ALGORITHM];

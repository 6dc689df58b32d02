//! Algorithms for barrier.
//!
//! A barrier moves no data and its flags only grow, so all of them may run again and again in the same lines
//! ([`crate::plan::Reuse::Same`]): a rank's second arrival can be seen only after its first.

mod all_to_all;
mod binomial;
mod centralized;
mod counter;
mod dissemination;
mod edges;
mod exchange;
mod hierarchical;
mod noc_msg;
mod release;
mod tournament;
mod tree;

use super::Algorithm;

/// Every algorithm, in the order of the listing.
pub const TABLE: &[&Algorithm] = &[
    &dissemination::ALGORITHM,
    &exchange::ALGORITHM,
    &all_to_all::ALGORITHM,
    &tree::ALGORITHM,
    &edges::ALGORITHM,
    &binomial::ALGORITHM,
    &tournament::ALGORITHM,
    &centralized::ALGORITHM,
    &counter::ALGORITHM,
    &hierarchical::ALGORITHM,
    &noc_msg::ALGORITHM,
];

/// As printed, and no barriers.
pub const REFUTED: &[&Algorithm] = &[&noc_msg::PUBLISHED];

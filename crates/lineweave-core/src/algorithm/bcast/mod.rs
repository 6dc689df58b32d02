//! Algorithms for broadcast.
//!
//! A broadcast of no bytes, or to nobody, is a plan without ops.

pub mod binomial;
pub mod chain;
pub mod cyclic;
pub mod degrees;
pub(super) mod direct;
pub mod direct_cyclic;
pub mod direct_flat;
pub mod direct_split;
pub mod direct_tree;
pub mod edges;
pub mod fibonacci;
pub mod flat;
pub mod hierarchical;
pub mod knomial;
pub mod noc_msg;
pub mod oc_bcast;
pub mod pipelined_kary;
pub mod rcce;
pub mod rcce_comm_binomial;
pub mod rcce_comm_scatter_allgather;
pub mod rckmpi;
mod relay;
pub mod rotating;
mod scatter;
pub mod scatter_doubling;
pub mod scatter_ring;
mod settings;
pub mod topology_tree;
pub mod two_segment_tree;

use super::Algorithm;

/// Every algorithm, in the order of the listing.
pub const TABLE: &[&Algorithm] = &[
    &flat::ALGORITHM,
    &binomial::ALGORITHM,
    &knomial::ALGORITHM,
    &fibonacci::ALGORITHM,
    &degrees::ALGORITHM,
    &chain::ALGORITHM,
    &pipelined_kary::ALGORITHM,
    &oc_bcast::ALGORITHM,
    &rotating::ALGORITHM,
    &two_segment_tree::ALGORITHM,
    &cyclic::ALGORITHM,
    &scatter_ring::ALGORITHM,
    &scatter_doubling::ALGORITHM,
    &direct_flat::ALGORITHM,
    &direct_tree::ALGORITHM,
    &direct_split::ALGORITHM,
    &direct_cyclic::ALGORITHM,
    &hierarchical::ALGORITHM,
    &topology_tree::ALGORITHM,
    &edges::ALGORITHM,
    &rcce::ALGORITHM,
    &rcce_comm_binomial::ALGORITHM,
    &rcce_comm_scatter_allgather::ALGORITHM,
    &rckmpi::ALGORITHM,
    &noc_msg::ALGORITHM,
];

//! Algorithms for broadcast.
//!
//! A broadcast of no bytes, or to nobody, is a plan without ops.

mod binomial;
mod chain;
mod cyclic;
pub(super) mod degrees;
pub(super) mod direct;
mod direct_cyclic;
mod direct_flat;
mod direct_split;
mod direct_tree;
mod edges;
mod fibonacci;
mod flat;
mod hierarchical;
mod knomial;
mod noc_msg;
mod oc_bcast;
mod pipelined_kary;
pub(super) mod rcce;
mod rcce_comm_binomial;
mod rcce_comm_scatter_allgather;
mod rckmpi;
mod relay;
mod rotating;
mod scatter;
mod scatter_doubling;
mod scatter_ring;
pub(super) mod settings;
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

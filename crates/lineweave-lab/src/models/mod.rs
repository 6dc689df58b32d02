//! The published models of messages and of cache lines: closed forms, estimated from the same profile as the core's
//! [`Model`](lineweave_core::model::Model). They choose nothing; [`closed_form`](crate::closed_form) sets them beside the played plan.

pub mod bounds;
pub mod cache_line;
pub mod channel;
pub mod classes;
pub mod error;
mod estimate;
mod from_plan;
mod hockney;
pub mod link;
mod log_np;
mod loggp;
mod logp;
pub mod mesh;
pub mod named;
mod plogp;
mod published;
pub mod put_get;
mod stages;
pub mod tau_lop;

pub use estimate::{estimate, Estimates, Known};
pub use from_plan::Schedule;
pub use log_np::{LogNp, MLogNp};
pub use loggp::LogGp;
pub use logp::LogP;
pub use plogp::PLogP;
pub use published::{segments, Call, NoForm, NotKnown, Published};
pub use stages::{levels, Form, Stage};
pub use tau_lop::TauLop;

#[cfg(test)]
mod classes_tests;
#[cfg(test)]
mod estimate_tests;

//! Measuring what this machine costs.

pub mod clock;
pub mod timing;

pub use clock::Clock;

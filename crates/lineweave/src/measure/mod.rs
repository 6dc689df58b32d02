//! Measuring what this machine costs.

pub mod clock;
pub mod crew;
pub mod timing;
pub mod trial;

pub use clock::Clock;
pub use crew::{serve, Crew, CrewError};
pub use trial::{Outcome, Rested, Trial, Way};

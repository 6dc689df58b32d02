//! Trials: collectives as programs call them, checked and timed window by window on teams that stay alive, so that
//! windows of different subjects or algorithms can alternate.

mod answer;
mod crew;
mod race;
mod shortlist;
mod usual;
mod window;

pub use crew::{serve, Crew, CrewError};
pub use race::{question, race, Field, Race, Rules, Runner};
pub use usual::Usual;
pub use window::{DataPath, Outcome, Rested, Trial, Way};

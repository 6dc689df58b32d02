//! Trials: collectives as programs call them, checked and timed window by window on teams that stay alive, so that
//! windows of different subjects or algorithms can alternate.

mod answer;
mod team;
mod race;
mod shortlist;
mod baseline;
mod request;
mod window;

pub use baseline::BaselineState;
pub use race::{question, race, Field, Race, Rules, Runner};
pub use request::{Buffers, DataPath, Outcome, Trial, Way, WINDOW_NS};
pub use team::{serve, TrialTeam, TrialTeamError};

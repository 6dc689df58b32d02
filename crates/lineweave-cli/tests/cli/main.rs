//! The `lineweave` command as a process.

mod bad_input;
mod commands;
mod common;
mod guide;
mod kept;
mod laboratory;
mod launching;
mod machines;
mod measuring;
mod models;
mod report;
mod teams;
mod simulating;

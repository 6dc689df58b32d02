//! The `lineweave` command as a process.
#![allow(clippy::disallowed_methods)] // Tests sleep as programs do.

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

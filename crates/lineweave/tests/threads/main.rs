//! Ranks that are threads of this process: one program for all such tests, since each compiles the runtime's generic code again.
#![allow(clippy::disallowed_methods)] // Tests sleep as programs do.
#![cfg(not(loom))]

// Processes run the rest of it.
#[allow(dead_code)]
#[path = "../common/mod.rs"]
mod common;

mod communicators;
mod conformance;
mod late;
mod messages;
mod reproducible;
mod requests;
mod rounding;
mod stress;

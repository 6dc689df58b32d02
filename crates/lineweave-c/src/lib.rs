//! lineweave for C: what `include/lineweave.h` declares, which is made from these sources.
//!
//! Each function checks what it is given, calls the crate `lineweave`, and turns its errors into numbers. None unwinds
//! into its caller: a panic, which is a bug, becomes `LW_ERR_PANIC`. Types and operators are integers here and not Rust
//! enums, because C may give any number for them. Names are those of C. Comments on public items are for
//! readers of the header.
// These docs become the header's comments, where `counts[r]` is C and no link.
#![allow(rustdoc::broken_intra_doc_links, rustdoc::invalid_html_tags, rustdoc::bare_urls)]
#![allow(non_camel_case_types)]
// The rules for pointers are stated once, at the top of the header.
#![allow(clippy::missing_safety_doc)]

pub mod status;
pub mod types;
pub mod handle;
pub mod progress;
pub mod team;
pub mod communicators;
pub mod planner;
mod buffers;
pub mod shared;
pub mod operators;
pub mod collectives;
pub mod uneven;
pub mod messages;
pub mod requests;
pub mod rows;
pub mod barrier;

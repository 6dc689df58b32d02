//! Indices of the words of the header.

pub const MAGIC: usize = 0;
pub const VERSION: usize = 1;
pub const RANKS: usize = 2;
pub const BOX_BYTES: usize = 3;
pub const BLOB_BYTES: usize = 4;
/// 1 where ranks reserve large banks late.
pub const LATE_BANKS: usize = 5;
/// The version in words, for who finds another one than its own.
pub const VERSION_TEXT: usize = 6;
pub const JOINED: usize = 9;
pub const UNABLE: usize = 10;
/// Ranks that have tried to reach the others' memory, and those that could not.
pub const TRIED: usize = 11;
pub const SHUT: usize = 12;
pub const FAILED: usize = 16;
/// See `visit.rs`.
pub const CLOSED: usize = 17;
pub const END: usize = 24;
/// Offset of the records that processes of the team keep for each other.
pub const BOARD: usize = 25;
pub const GONE: usize = 32;
pub const SLEEPERS: usize = 40;
/// Bytes of pages of rings for messages and of windows.
pub const EXTRA: usize = 48;
/// Number of times that the stretch was taken again, its mark, and what its ranks leave behind: see `reusable.rs`. Banks take a word each.
pub const GENERATION: usize = 56;
pub const MARK: usize = 57;
pub const RESTS: usize = 58;
pub const SPOILT: usize = 59;
pub const BASE: usize = 60;
pub const COUNTERS: usize = 61;
pub const BACKED: usize = 64;
/// On the pool's first page alone: what is kept for communicators to come, see `free_extents.rs`.
pub const IDLE_BYTES: usize = 136;
pub const IDLE_TURN: usize = 137;
pub const IDLE: usize = 256;

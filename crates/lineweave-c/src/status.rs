//! Error numbers, their messages, and the boundary that no panic crosses.

use lineweave::Error;
use std::cell::RefCell;
use std::ffi::{c_char, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};

/** What a call returns: LW_OK or one of LW_ERR_. */
pub type lw_status = i32;

/** It worked. */
pub const LW_OK: lw_status = 0;
/** A pointer is null and may not be. */
pub const LW_ERR_NULL: lw_status = 1;
/** A buffer is not aligned for its elements. */
pub const LW_ERR_ALIGN: lw_status = 2;
/** No such element type. */
pub const LW_ERR_TYPE: lw_status = 3;
/** No such operator, or not on this element type. */
pub const LW_ERR_OP: lw_status = 4;
/** The root is not a rank. */
pub const LW_ERR_ROOT: lw_status = 5;
/** Lengths that do not fit together, or memory. */
pub const LW_ERR_COUNT: lw_status = 6;
/** Buffers overlap by part, or LW_IN_PLACE where it cannot be. */
pub const LW_ERR_BUFFER: lw_status = 7;
/** Not a communicator, team or barrier, or one that was freed. */
pub const LW_ERR_HANDLE: lw_status = 8;
/** The communicator, team, barrier or request is in use: by another thread, further up in this one, or started. */
pub const LW_ERR_BUSY: lw_status = 9;
/** A team cannot have that many ranks, or has another number. */
pub const LW_ERR_SIZE: lw_status = 10;
/** No such rank, it was joined before, or no list of ranks, colour or level that makes a communicator. */
pub const LW_ERR_RANK: lw_status = 11;
/** Ranks called different things. */
pub const LW_ERR_MISMATCH: lw_status = 12;
/** Another rank died, left or failed. The communicator cannot be used any more. */
pub const LW_ERR_PEER: lw_status = 13;
/** Waited longer than LINEWEAVE_TIMEOUT, or for ranks that did not join. */
pub const LW_ERR_TIMEOUT: lw_status = 14;
/** The communicator failed earlier. */
pub const LW_ERR_FAILED: lw_status = 15;
/** Not enough memory. */
pub const LW_ERR_MEMORY: lw_status = 16;
/** The operating system refused something. */
pub const LW_ERR_SYSTEM: lw_status = 17;
/** A setting, profile, topology, or what a launcher left in the environment cannot be used. */
pub const LW_ERR_ENVIRONMENT: lw_status = 18;
/** Another version of lineweave, or another user, is on the other side. */
pub const LW_ERR_VERSION: lw_status = 19;
/** No plan fits, or one was refuted. */
pub const LW_ERR_PLAN: lw_status = 20;
/** lineweave panicked, which is a bug in it. The communicator cannot be used any more. */
pub const LW_ERR_PANIC: lw_status = 21;
/** The process was forked since: the communicator belongs to the parent. Let the child make or join a team of its own. */
pub const LW_ERR_FORKED: lw_status = 22;

/** A message is longer than the buffer for it. It is lost; the communicator can be used on. */
pub const LW_ERR_TRUNCATED: lw_status = 30;
/** Too many messages with other tags came first. The communicator can be used on. */
pub const LW_ERR_UNEXPECTED: lw_status = 31;

/// An error: its number and its message.
#[derive(Debug)]
pub(crate) struct Failure {
    pub code: lw_status,
    pub text: String,
}

impl Failure {
    pub fn new(code: lw_status, text: impl Into<String>) -> Failure {
        Failure { code, text: text.into() }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let code = match &error {
            Error::Plan(_) | Error::Refuted { .. } | Error::NoPlan { .. } => LW_ERR_PLAN,
            Error::TeamSize { .. } => LW_ERR_SIZE,
            Error::Rank { .. } | Error::NoRank { .. } | Error::Group { .. } => LW_ERR_RANK,
            Error::Truncated { .. } => LW_ERR_TRUNCATED,
            Error::Unexpected { .. } | Error::ToItself { .. } => LW_ERR_UNEXPECTED,
            Error::Root { .. } => LW_ERR_ROOT,
            Error::Length { .. } | Error::Counts { .. } | Error::Window { .. } => LW_ERR_COUNT,
            Error::Overlap { .. } => LW_ERR_BUFFER,
            Error::Operator(_) => LW_ERR_OP,
            Error::Mismatch { .. } => LW_ERR_MISMATCH,
            Error::PeerLost { .. } => LW_ERR_PEER,
            Error::Timeout { .. } | Error::Meeting { .. } => LW_ERR_TIMEOUT,
            Error::Failed(_) | Error::NotMade { .. } => LW_ERR_FAILED,
            Error::Forked => LW_ERR_FORKED,
            Error::Request(_) => LW_ERR_BUSY,
            Error::Memory { .. } | Error::Heap { .. } => LW_ERR_MEMORY,
            Error::System { .. } => LW_ERR_SYSTEM,
            Error::Profile { .. } | Error::Setting(_) | Error::Topology(_) | Error::Environment { .. } => {
                LW_ERR_ENVIRONMENT
            }
            Error::Foreign { .. } | Error::OtherUser { .. } => LW_ERR_VERSION,
            Error::Panicked { .. } => LW_ERR_PANIC,
            // The runtime's enum may grow; the message still describes the error.
            _ => LW_ERR_FAILED,
        };
        Failure::new(code, error.to_string())
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(CString::default());
}

/// Keeps the message of an error for [`lw_last_error`].
pub(crate) fn keep(text: &str) {
    let clean = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // A thread that is ending has no reader for the message.
    let _ = LAST.try_with(|last| last.replace(clean));
}

/// Returns the message that this thread kept last.
pub(crate) fn kept() -> String {
    LAST.with(|last| last.borrow().to_string_lossy().into_owned())
}

/// Runs an entry point and returns its status: errors become numbers, and so does a panic.
#[inline(always)]
pub(crate) fn guard(f: impl FnOnce() -> Result<(), Failure>) -> lw_status {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(())) => LW_OK,
        Ok(Err(failure)) => report(&failure),
        Err(panic) => panicked(panic.as_ref()),
    }
}

#[cold]
fn report(failure: &Failure) -> lw_status {
    keep(&failure.text);
    failure.code
}

#[cold]
fn panicked(panic: &(dyn std::any::Any + Send)) -> lw_status {
    let text = lineweave::kernel::panic_text(panic);
    keep(&format!("lineweave panicked, which is a bug in it: {text}"));
    LW_ERR_PANIC
}

/**
 * What a status means, in a few words. Never null; static.
 *
 *     printf("%s\n", lw_strerror(LW_ERR_PEER));
 */
#[no_mangle]
pub extern "C" fn lw_strerror(status: lw_status) -> *const c_char {
    let text: &'static CStr = match status {
        LW_OK => c"it worked",
        LW_ERR_NULL => c"a pointer is null and may not be",
        LW_ERR_ALIGN => c"a buffer is not aligned for its elements",
        LW_ERR_TYPE => c"no such element type",
        LW_ERR_OP => c"no such operator, or not on this element type",
        LW_ERR_ROOT => c"the root is not a rank",
        LW_ERR_COUNT => c"lengths that do not fit together, or memory",
        LW_ERR_BUFFER => c"buffers overlap by part, or LW_IN_PLACE where it cannot be",
        LW_ERR_HANDLE => c"not a communicator, team or barrier, or one that was freed",
        LW_ERR_TRUNCATED => c"a message is longer than the buffer for it",
        LW_ERR_UNEXPECTED => c"too many messages that nobody asks for",
        LW_ERR_BUSY => c"the communicator, team, barrier or request is in use",
        LW_ERR_SIZE => c"a team cannot have that many ranks, or has another number",
        LW_ERR_RANK => c"no such rank, colour, level or list, or the rank was joined before",
        LW_ERR_MISMATCH => c"ranks called different things",
        LW_ERR_PEER => c"another rank died, left or failed",
        LW_ERR_TIMEOUT => c"waited too long",
        LW_ERR_FAILED => c"the communicator failed earlier",
        LW_ERR_MEMORY => c"not enough memory",
        LW_ERR_SYSTEM => c"the operating system refused something",
        LW_ERR_ENVIRONMENT => c"a setting, profile or topology cannot be used",
        LW_ERR_VERSION => c"another version of lineweave, or another user",
        LW_ERR_PLAN => c"no plan fits, or one was refuted",
        LW_ERR_PANIC => c"lineweave panicked, which is a bug in it",
        LW_ERR_FORKED => c"the communicator belongs to the process that this one was forked from",
        _ => c"not a status of lineweave",
    };
    text.as_ptr()
}

/**
 * The last error of this thread in words: what was expected, what was found, what to do. Empty when there was none.
 * Valid until the next error in this thread.
 *
 *     if (lw_barrier(comm) != LW_OK) fprintf(stderr, "%s\n", lw_last_error());
 */
#[no_mangle]
pub extern "C" fn lw_last_error() -> *const c_char {
    LAST.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/** The version of this header: this, LW_VERSION_MINOR and LW_VERSION_PATCH. */
pub const LW_VERSION_MAJOR: u32 = 0;
/** While the major version is 0, minor versions differ in their interface. */
pub const LW_VERSION_MINOR: u32 = 1;
/** Versions that differ in this number alone have the same interface. */
pub const LW_VERSION_PATCH: u32 = 0;
/** The version of this header as one number that grows with it, for #if and lw_check_version. */
pub const LW_VERSION: u32 = (LW_VERSION_MAJOR << 16) | (LW_VERSION_MINOR << 8) | LW_VERSION_PATCH;

/**
 * The version of the library, as LW_VERSION is that of the header.
 *
 *     printf("%u.%u\n", lw_version() >> 16, lw_version() >> 8 & 0xff);
 */
#[no_mangle]
pub extern "C" fn lw_version() -> u32 {
    LW_VERSION
}

/**
 * Returns whether a program made with the header of that version can use this library. While the major version is 0, minor versions
 * differ in their interface.
 * Errors: LW_ERR_VERSION when it cannot.
 *
 *     if (lw_check_version(LW_VERSION) != LW_OK) return;
 */
#[no_mangle]
pub extern "C" fn lw_check_version(header: u32) -> lw_status {
    guard(|| match header >> 8 == LW_VERSION >> 8 {
        true => Ok(()),
        false => Err(Failure::new(
            LW_ERR_VERSION,
            format!(
                "the program was made with lineweave {}.{} and runs with {}.{}; build it again",
                header >> 16,
                header >> 8 & 0xff,
                LW_VERSION >> 16,
                LW_VERSION >> 8 & 0xff
            ),
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_number() {
        assert_eq!(guard(|| panic!("on purpose")), LW_ERR_PANIC);
        assert!(kept().ends_with("on purpose"), "{}", kept());
        assert_eq!(guard(|| Err(Failure::new(LW_ERR_OP, "a\0b"))), LW_ERR_OP);
        assert_eq!(kept(), "a b");
        assert_eq!(guard(|| Ok(())), LW_OK);
    }

    #[test]
    fn the_header_has_the_version_of_the_crate() {
        let part = |text: &str| text.parse::<u32>().expect("a number");
        assert_eq!(LW_VERSION_MAJOR, part(env!("CARGO_PKG_VERSION_MAJOR")));
        assert_eq!(LW_VERSION_MINOR, part(env!("CARGO_PKG_VERSION_MINOR")));
        assert_eq!(LW_VERSION_PATCH, part(env!("CARGO_PKG_VERSION_PATCH")));
        assert_eq!(lw_version(), LW_VERSION);
        assert_eq!(lw_check_version(LW_VERSION), LW_OK);
        assert_eq!(lw_check_version(LW_VERSION + 0x100), LW_ERR_VERSION);
    }

    #[test]
    fn every_status_has_words_of_its_own() {
        // SAFETY: the words are static and end in a zero.
        let words = |s| unsafe { CStr::from_ptr(lw_strerror(s)) };
        let all: std::collections::BTreeSet<_> = (LW_OK..=LW_ERR_PANIC).map(words).collect();
        assert_eq!(all.len(), LW_ERR_PANIC as usize + 1);
        assert!(!all.contains(words(LW_ERR_PANIC + 1)));
    }
}

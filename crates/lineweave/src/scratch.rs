//! Private memory that grows when a plan is prepared and is never allocated while one runs.

use crate::error::Error;
use std::alloc::{alloc_zeroed, dealloc, Layout};

/// Line-aligned private bytes.
#[derive(Debug)]
pub struct Scratch {
    start: *mut u8,
    len: usize,
}

/// A page: keeps scratch from sharing lines with anything else.
const ALIGN: usize = 4096;

impl Default for Scratch {
    fn default() -> Self {
        Scratch { start: std::ptr::null_mut(), len: 0 }
    }
}

impl Scratch {
    /// Makes it at least `len` bytes long; contents are lost.
    pub fn grow(&mut self, len: usize) -> Result<(), Error> {
        if len <= self.len {
            return Ok(());
        }
        let memory = |e: &str| Error::system(format!("allocating {len} bytes of scratch"), e, "");
        let layout = Layout::from_size_align(len, ALIGN).map_err(|_| memory("too large"))?;
        // SAFETY: the size is not zero, since it exceeds the current length.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            return Err(memory("out of memory"));
        }
        self.release();
        (self.start, self.len) = (start, len);
        Ok(())
    }

    /// The first byte; null while nothing was asked for.
    pub fn start(&self) -> *mut u8 {
        self.start
    }

    /// Returns the length in bytes.
    pub fn bytes(&self) -> usize {
        self.len
    }

    fn release(&mut self) {
        if self.len > 0 {
            // SAFETY: allocated by `grow` with this size and alignment.
            unsafe { dealloc(self.start, Layout::from_size_align_unchecked(self.len, ALIGN)) };
        }
        (self.start, self.len) = (std::ptr::null_mut(), 0);
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.release();
    }
}

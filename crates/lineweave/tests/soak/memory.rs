//! What a process holds: an allocator that counts, what the kernel says, and whether it grows.

use lineweave::sync::{AtomicU64, Ordering};
use std::alloc::{GlobalAlloc, Layout, System};

/// The system's allocator, with a count of the bytes that are in use.
pub struct Counting;

static LIVE: AtomicU64 = AtomicU64::new(0);

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Relaxed: a count.
        LIVE.fetch_add(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // Relaxed: a count.
        LIVE.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Relaxed: a count.
        LIVE.fetch_add((size as u64).wrapping_sub(layout.size() as u64), Ordering::Relaxed);
        // SAFETY: passed on.
        unsafe { System.realloc(start, layout, size) }
    }
}

/// What a process holds at one moment.
#[derive(Clone, Copy, Default, Debug)]
pub struct Held {
    /// Bytes that its program has allocated.
    pub heap: u64,
    /// Bytes of memory of its own, without what it shares.
    pub private: u64,
    /// Bytes of the team's memory, without what freed communicators left for others.
    pub shared: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Stretches of its address space.
    pub mappings: u64,
}

/// Gives the kernel back what the allocator keeps for reuse, which goes by the largest team so far. What is then held is in use.
pub fn trim() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it may be called at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

impl Held {
    pub fn now(shared: u64) -> Held {
        let lines = |file: &str| std::fs::read_to_string(file).map_or(0, |text| text.lines().count() as u64);
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: Vec<u64> = statm.split(' ').filter_map(|w| w.parse().ok()).collect();
        let resident = pages.get(1).copied().unwrap_or(0).saturating_sub(pages.get(2).copied().unwrap_or(0));
        Held {
            // Relaxed: a count.
            heap: LIVE.load(Ordering::Relaxed),
            private: resident * rustix::param::page_size() as u64,
            shared,
            descriptors: std::fs::read_dir("/proc/self/fd").map_or(0, |d| d.count() as u64),
            mappings: lines("/proc/self/maps"),
        }
    }

    fn parts(&self) -> [(&'static str, u64, u64); 5] {
        // What each may vary by. The heap is exact, but for what the kernel's files are read into; resident memory depends
        // on how the allocator reuses holes, and mappings on where it finds them.
        [
            ("allocated bytes", self.heap, 32 << 10),
            ("private resident bytes", self.private, 12 << 20),
            ("bytes of shared memory", self.shared, 0),
            ("descriptors", self.descriptors, 0),
            ("mappings", self.mappings, 64),
        ]
    }
}

/// What has grown from the second quarter of `laps` to the last. Before, plans are still made.
pub fn growth(laps: &[Held]) -> Result<(), String> {
    if laps.len() < 8 {
        return Ok(());
    }
    let (early, late) = (&laps[laps.len() / 4..laps.len() / 2], &laps[laps.len() * 3 / 4..]);
    for part in 0..Held::default().parts().len() {
        let (name, _, slack) = Held::default().parts()[part];
        let of = |held: &Held| held.parts()[part].1;
        let most = early.iter().map(of).max().unwrap_or(0);
        let least = late.iter().map(of).min().unwrap_or(0);
        if least > most + slack {
            return Err(format!("{name} grew from {most} to {least} over {} laps", laps.len()));
        }
    }
    Ok(())
}

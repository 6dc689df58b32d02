//! Cache of a core: the private lines that it touched last, as many as fit.

use crate::simulate::program::{Address, Buffer};

/// One core's cache.
#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    /// Count of misses at the last touch of each line of each buffer; 0 for never.
    touched: [Vec<u32>; 3],
    misses: u32,
}

impl Cache {
    /// Forgets all cached lines, which are of no use from here on. `lines` is the size of the cache.
    pub fn forget(&mut self, lines: u32) {
        self.misses += lines + 1;
    }

    /// Touches `len` bytes at `place`; how many lines of them were not there.
    pub fn touch(&mut self, place: Address, len: usize, line: usize, lines: u32) -> u64 {
        let Address::Private { buffer, offset, .. } = place else { return 0 };
        if len == 0 {
            return 0;
        }
        let touched = &mut self.touched[match buffer {
            Buffer::In => 0,
            Buffer::Out => 1,
            Buffer::Acc => 2,
        }];
        let (first, last) = (offset / line, (offset + len - 1) / line);
        if touched.len() <= last {
            touched.resize(last + 1, 0);
        }
        let mut missed = 0;
        for stamp in &mut touched[first..=last] {
            if *stamp == 0 || self.misses - *stamp >= lines {
                self.misses += 1;
                missed += 1;
            }
            *stamp = self.misses;
        }
        // Bytes that straddle lines are transferred as if they did not: the next piece has the rest.
        missed.min(len.div_ceil(line) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_there() {
        let mut cache = Cache::default();
        cache.forget(4);
        let at = |offset| Address::Private { owner: 0, buffer: Buffer::In, offset };
        assert_eq!(cache.touch(at(0), 128, 32, 4), 4);
        assert_eq!(cache.touch(at(0), 128, 32, 4), 0);
        assert_eq!(cache.touch(at(128), 32, 32, 4), 1);
        // The oldest went.
        assert_eq!(cache.touch(at(128), 32, 32, 4), 0);
        assert_eq!(cache.touch(at(256), 128, 32, 4), 4);
        assert_eq!(cache.touch(at(0), 32, 32, 4), 1);
        cache.forget(4);
        assert_eq!(cache.touch(at(0), 32, 32, 4), 1);
    }

    #[test]
    fn straddling_bytes_count_each_line_once() {
        let mut cache = Cache::default();
        cache.forget(64);
        let at = |offset| Address::Private { owner: 0, buffer: Buffer::Out, offset };
        let missed: u64 = (0..4).map(|i| cache.touch(at(8 + 32 * i), 32, 32, 64)).sum();
        assert_eq!(missed, 4);
    }
}

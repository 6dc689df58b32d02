//! Whose caches have the bytes of a buffer: what [`crate::lines`] says of one line, for stretches of them with one history.

/// A set of caches; those beyond 512 share a place with others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Caches([u64; 8]);

impl Caches {
    fn only(cache: u32) -> Caches {
        let mut set = Caches::default();
        set.add(cache);
        set
    }

    fn add(&mut self, cache: u32) {
        self.0[cache as usize / 64 % 8] |= 1 << (cache % 64);
    }

    fn has(&self, cache: u32) -> bool {
        self.0[cache as usize / 64 % 8] >> (cache % 64) & 1 == 1
    }

    /// One of them, other than `cache`.
    fn other(&self, cache: u32) -> Option<u32> {
        let without = |(i, &word): (usize, &u64)| {
            let mine = if cache as usize / 64 % 8 == i { 1 << (cache % 64) } else { 0 };
            let rest = word & !mine;
            (rest != 0).then(|| i as u32 * 64 + rest.trailing_zeros())
        };
        self.0.iter().enumerate().find_map(without)
    }
}

/// Bytes with one history.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    end: usize,
    /// Caches that have them.
    holders: Caches,
    /// Whose rank wrote them last.
    writer: Option<u32>,
    /// When the last read of them by another cache was served.
    served: f64,
    /// Bytes that its writer had put anywhere before it wrote these.
    stamp: u64,
}

/// A buffer in stretches, in order; they cover it.
#[derive(Clone, Debug)]
pub struct Buffer {
    stretches: Vec<Stretch>,
}

/// What an access meets.
#[derive(Clone, Copy, Debug)]
pub struct Met {
    /// A cache that had bytes which this one did not, or had to give them up.
    pub from: Option<u32>,
    /// How many bytes.
    pub bytes: usize,
    /// When the last read of any of them was served.
    pub served: f64,
    /// The least that the writer has put elsewhere since it wrote here last; `None` when it never did.
    pub reuse: Option<u64>,
}

impl Met {
    fn nothing() -> Met {
        Met { from: None, bytes: 0, served: f64::MIN, reuse: None }
    }
}

impl Buffer {
    /// A buffer that one cache has.
    pub fn new(size: usize, cache: u32) -> Buffer {
        let holders = Caches::only(cache);
        Buffer { stretches: vec![Stretch { end: size, holders, writer: None, served: f64::MIN, stamp: 0 }] }
    }

    /// Splits so that `start` and `end` are boundaries; the indices of the stretches between.
    fn cut(&mut self, start: usize, end: usize) -> std::ops::Range<usize> {
        let first = self.boundary(start);
        let last = self.boundary(end);
        first..last
    }

    /// The index of the stretch that starts at `at`, split off when needed.
    fn boundary(&mut self, at: usize) -> usize {
        if at == 0 {
            return 0;
        }
        let i = self.stretches.partition_point(|s| s.end < at);
        match self.stretches.get(i) {
            None => self.stretches.len(),
            Some(s) if s.end == at => i + 1,
            Some(&s) => {
                self.stretches.insert(i, Stretch { end: at, ..s });
                i + 1
            }
        }
    }

    /// What `cache` meets when it reads `len` bytes at `start`.
    pub fn look(&mut self, cache: u32, start: usize, len: usize) -> Met {
        let range = self.cut(start, start + len);
        let mut met = Met::nothing();
        let mut at = start;
        for s in &self.stretches[range] {
            if !s.holders.has(cache) {
                met.from = s.writer.filter(|&w| s.holders.has(w)).or_else(|| s.holders.other(cache));
                met.bytes += s.end - at;
                met.served = met.served.max(s.served);
            }
            at = s.end;
        }
        met
    }

    /// `cache` has read `len` bytes at `start`, until `done`.
    pub fn read(&mut self, cache: u32, start: usize, len: usize, done: f64) {
        let range = self.cut(start, start + len);
        for s in &mut self.stretches[range] {
            if !s.holders.has(cache) {
                s.holders.add(cache);
                s.served = done;
            }
        }
    }

    /// `cache` writes `len` bytes at `start`; returns who must give them up. `stamp` is how many bytes its rank has put before.
    pub fn write(&mut self, cache: u32, start: usize, len: usize, stamp: u64) -> Met {
        let range = self.cut(start, start + len);
        let mut met = Met::nothing();
        let mut at = start;
        let alone = Caches::only(cache);
        for s in &mut self.stretches[range] {
            if s.holders != alone {
                met.from = s.holders.other(cache);
                met.bytes += s.end - at;
            }
            if s.writer == Some(cache) {
                let reuse = stamp.saturating_sub(s.stamp);
                met.reuse = Some(met.reuse.map_or(reuse, |least| least.min(reuse)));
            }
            at = s.end;
            *s = Stretch { end: s.end, holders: alone, writer: Some(cache), served: f64::MIN, stamp };
        }
        met
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(b: &mut Buffer, cache: u32, start: usize, len: usize) -> (Option<u32>, usize) {
        let met = b.look(cache, start, len);
        b.read(cache, start, len, 0.0);
        (met.from, met.bytes)
    }

    #[test]
    fn bytes_are_fetched_once_and_taken_back_once() {
        let mut b = Buffer::new(100, 1);
        assert_eq!(b.write(0, 0, 100, 0).bytes, 100);
        assert_eq!(b.write(0, 0, 100, 0).bytes, 0);
        assert_eq!(read(&mut b, 2, 20, 30), (Some(0), 30));
        assert_eq!(read(&mut b, 2, 20, 30), (None, 0));
        assert_eq!(read(&mut b, 3, 20, 30), (Some(0), 30));
        assert_eq!(read(&mut b, 2, 20, 30), (None, 0));
        assert_eq!(read(&mut b, 0, 0, 100), (None, 0));
        let met = b.write(0, 0, 100, 0);
        assert_eq!((met.from, met.bytes), (Some(2), 30));
    }

    #[test]
    fn a_writer_comes_back_after_what_it_put_elsewhere() {
        let mut b = Buffer::new(64, 1);
        assert_eq!(b.write(0, 0, 64, 0).reuse, None);
        assert_eq!(b.write(0, 0, 32, 500).reuse, Some(500));
        assert_eq!(b.write(0, 0, 64, 800).reuse, Some(300));
        assert_eq!(b.write(1, 0, 64, 0).reuse, None);
    }

    #[test]
    fn pieces_keep_their_own_writers() {
        let mut b = Buffer::new(600, 9);
        b.write(0, 0, 32, 0);
        b.write(513, 32, 32, 0);
        assert_eq!(read(&mut b, 0, 0, 64).1, 32);
        assert_eq!(read(&mut b, 2, 0, 64).1, 64);
        assert_eq!(read(&mut b, 130, 64, 536), (Some(9), 536));
    }
}

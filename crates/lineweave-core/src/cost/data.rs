//! Whose caches have the bytes of a buffer: what [`crate::lines`] says of one line, for stretches of them with one history.

use std::ops::Range;

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

/// What became of a piece.
#[derive(Clone, Copy, Debug)]
struct History {
    bytes: usize,
    /// Caches that have it.
    holders: Caches,
    /// Whose rank wrote it last.
    writer: Option<u32>,
    /// When the last read of it by another cache was served.
    served: f64,
    /// Bytes that its writer had put anywhere before it wrote this.
    stamp: u64,
}

/// A buffer in pieces that no access cuts, so that the bytes of one have one history.
#[derive(Clone, Debug)]
pub struct Buffer(Vec<History>);

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
    /// A buffer that one cache has, whose pieces end at `ends`.
    pub fn new(ends: &[usize], cache: u32) -> Buffer {
        let holders = Caches::only(cache);
        let starts = std::iter::once(&0).chain(ends);
        let piece = |(start, end): (&usize, &usize)| History {
            bytes: end - start,
            holders,
            writer: None,
            served: f64::MIN,
            stamp: 0,
        };
        Buffer(starts.zip(ends).map(piece).collect())
    }

    /// What `cache` meets when it reads these pieces.
    pub fn look(&self, cache: u32, pieces: Range<usize>) -> Met {
        let mut met = Met::nothing();
        for piece in self.0[pieces].iter().filter(|piece| !piece.holders.has(cache)) {
            let writer = piece.writer.filter(|&w| piece.holders.has(w));
            met.from = writer.or_else(|| piece.holders.other(cache));
            met.bytes += piece.bytes;
            met.served = met.served.max(piece.served);
        }
        met
    }

    /// Whether another cache has any of these pieces.
    pub fn is_elsewhere(&self, cache: u32, pieces: Range<usize>) -> bool {
        let alone = Caches::only(cache);
        self.0[pieces].iter().any(|piece| piece.holders != alone)
    }

    /// `cache` has read these pieces, until `done`.
    pub fn read(&mut self, cache: u32, pieces: Range<usize>, done: f64) {
        for piece in self.0[pieces].iter_mut().filter(|piece| !piece.holders.has(cache)) {
            piece.holders.add(cache);
            piece.served = done;
        }
    }

    /// `cache` writes these pieces; returns who must give them up. `stamp` is how many bytes its rank has put before.
    pub fn write(&mut self, cache: u32, pieces: Range<usize>, stamp: u64) -> Met {
        let mut met = Met::nothing();
        let alone = Caches::only(cache);
        for piece in &mut self.0[pieces] {
            if piece.holders != alone {
                met.from = piece.holders.other(cache);
                met.bytes += piece.bytes;
            }
            if piece.writer == Some(cache) {
                let reuse = stamp.saturating_sub(piece.stamp);
                met.reuse = Some(met.reuse.map_or(reuse, |least| least.min(reuse)));
            }
            *piece = History { holders: alone, writer: Some(cache), served: f64::MIN, stamp, ..*piece };
        }
        met
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(b: &mut Buffer, cache: u32, pieces: Range<usize>) -> (Option<u32>, usize) {
        let met = b.look(cache, pieces.clone());
        b.read(cache, pieces, 0.0);
        (met.from, met.bytes)
    }

    #[test]
    fn bytes_are_fetched_once_and_taken_back_once() {
        let mut b = Buffer::new(&[20, 50, 100], 1);
        assert_eq!(b.write(0, 0..3, 0).bytes, 100);
        assert_eq!(b.write(0, 0..3, 0).bytes, 0);
        assert_eq!(read(&mut b, 2, 1..2), (Some(0), 30));
        assert_eq!(read(&mut b, 2, 1..2), (None, 0));
        assert_eq!(read(&mut b, 3, 1..2), (Some(0), 30));
        assert_eq!(read(&mut b, 2, 1..2), (None, 0));
        assert_eq!(read(&mut b, 0, 0..3), (None, 0));
        let met = b.write(0, 0..3, 0);
        assert_eq!((met.from, met.bytes), (Some(2), 30));
    }

    #[test]
    fn a_writer_comes_back_after_what_it_put_elsewhere() {
        let mut b = Buffer::new(&[32, 64], 1);
        assert_eq!(b.write(0, 0..2, 0).reuse, None);
        assert_eq!(b.write(0, 0..1, 500).reuse, Some(500));
        assert_eq!(b.write(0, 0..2, 800).reuse, Some(300));
        assert_eq!(b.write(1, 0..2, 0).reuse, None);
    }

    #[test]
    fn pieces_keep_their_own_writers() {
        let mut b = Buffer::new(&[32, 64, 600], 9);
        b.write(0, 0..1, 0);
        b.write(513, 1..2, 0);
        assert_eq!(read(&mut b, 0, 0..2).1, 32);
        assert_eq!(read(&mut b, 2, 0..2).1, 64);
        assert_eq!(read(&mut b, 130, 2..3), (Some(9), 536));
    }
}

//! Who wrote and who read the bytes of shared buffers last.

use super::compile::NOBODY;

/// Bytes with one history.
#[derive(Clone, Copy, Debug)]
struct Segment {
    end: usize,
    writer: u32,
    reader: u32,
    /// When the last read of them by a peer was served.
    served: f64,
    /// Bytes that its writer had put anywhere before it wrote these.
    stamp: u64,
}

/// A shared buffer in pieces, in order; they cover it.
#[derive(Clone, Debug)]
pub struct Buffer {
    segments: Vec<Segment>,
}

/// What an access meets.
#[derive(Clone, Copy, Debug)]
pub struct Met {
    /// The peer with whom most of the bytes were, or [`NOBODY`].
    pub peer: u32,
    /// How many bytes were with peers.
    pub bytes: usize,
    /// When the last read of any of them was served.
    pub served: f64,
    /// The least that the writer has put elsewhere since it wrote here last; `None` when it never did.
    pub reuse: Option<u64>,
}

impl Buffer {
    /// A buffer nobody has touched in the runs that are played: peers have, in the runs before.
    pub fn new(size: usize) -> Buffer {
        Buffer {
            segments: vec![Segment { end: size, writer: NOBODY, reader: NOBODY, served: f64::MIN, stamp: 0 }],
        }
    }

    /// Splits so that `start` and `end` are boundaries; the indices of the segments between.
    fn cut(&mut self, start: usize, end: usize) -> std::ops::Range<usize> {
        let first = self.boundary(start);
        let last = self.boundary(end);
        first..last
    }

    /// The index of the segment that starts at `at`, split off when needed.
    fn boundary(&mut self, at: usize) -> usize {
        if at == 0 {
            return 0;
        }
        let i = self.segments.partition_point(|s| s.end < at);
        match self.segments.get(i) {
            None => self.segments.len(),
            Some(s) if s.end == at => i + 1,
            Some(&s) => {
                self.segments.insert(i, Segment { end: at, ..s });
                i + 1
            }
        }
    }

    /// What `rank` meets when it reads `len` bytes at `start`.
    pub fn look(&mut self, rank: u32, start: usize, len: usize) -> Met {
        let range = self.cut(start, start + len);
        let mut met = Met { peer: NOBODY, bytes: 0, served: f64::MIN, reuse: None };
        let mut at = start;
        for s in &self.segments[range] {
            if s.writer != rank && s.reader != rank && s.writer != NOBODY {
                met.peer = s.writer;
                met.bytes += s.end - at;
                met.served = met.served.max(s.served);
            }
            at = s.end;
        }
        met
    }

    /// `rank` has read `len` bytes at `start`, until `done`.
    pub fn read(&mut self, rank: u32, start: usize, len: usize, done: f64) {
        let range = self.cut(start, start + len);
        for s in &mut self.segments[range] {
            if s.writer != rank && s.reader != rank {
                s.reader = rank;
                s.served = done;
            }
        }
    }

    /// `rank` writes `len` bytes at `start`; returns who must give them up. `stranger` stands for the peer of
    /// the runs before; `stamp` is how many bytes `rank` has put before.
    pub fn write(&mut self, rank: u32, start: usize, len: usize, stranger: u32, stamp: u64) -> Met {
        let range = self.cut(start, start + len);
        let mut met = Met { peer: NOBODY, bytes: 0, served: f64::MIN, reuse: None };
        let mut at = start;
        for s in &mut self.segments[range] {
            let holder = match (s.writer, s.reader) {
                (NOBODY, _) => stranger,
                (writer, NOBODY) => writer,
                (_, reader) => reader,
            };
            if holder != rank && holder != NOBODY {
                met.peer = holder;
                met.bytes += s.end - at;
            }
            if s.writer == rank {
                let reuse = stamp.saturating_sub(s.stamp);
                met.reuse = Some(met.reuse.map_or(reuse, |least| least.min(reuse)));
            }
            at = s.end;
            *s = Segment { end: s.end, writer: rank, reader: NOBODY, served: f64::MIN, stamp };
        }
        met
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(b: &mut Buffer, rank: u32, start: usize, len: usize) -> (u32, usize) {
        let met = b.look(rank, start, len);
        b.read(rank, start, len, 0.0);
        (met.peer, met.bytes)
    }

    #[test]
    fn bytes_are_fetched_once_and_taken_back_once() {
        let mut b = Buffer::new(100);
        assert_eq!(b.write(0, 0, 100, 1, 0).bytes, 100);
        assert_eq!(b.write(0, 0, 100, 1, 0).bytes, 0);
        assert_eq!(read(&mut b, 2, 20, 30), (0, 30));
        assert_eq!(read(&mut b, 2, 20, 30), (NOBODY, 0));
        assert_eq!(read(&mut b, 0, 0, 100), (NOBODY, 0));
        let met = b.write(0, 0, 100, 1, 0);
        assert_eq!((met.peer, met.bytes), (2, 30));
    }

    #[test]
    fn a_writer_comes_back_after_what_it_put_elsewhere() {
        let mut b = Buffer::new(64);
        assert_eq!(b.write(0, 0, 64, 1, 0).reuse, None);
        assert_eq!(b.write(0, 0, 32, 1, 500).reuse, Some(500));
        assert_eq!(b.write(0, 0, 64, 1, 800).reuse, Some(300));
        assert_eq!(b.write(1, 0, 64, 1, 0).reuse, None);
    }

    #[test]
    fn pieces_keep_their_own_writers() {
        let mut b = Buffer::new(64);
        b.write(0, 0, 32, 9, 0);
        b.write(1, 32, 32, 9, 0);
        assert_eq!(read(&mut b, 0, 0, 64), (1, 32));
        assert_eq!(read(&mut b, 2, 0, 64).1, 64);
    }
}

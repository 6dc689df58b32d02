//! Caches that have the bytes of buffers: as [`crate::lines`] does for one line, for stretches of bytes with one history.
//!
//! Plans have up to a million such stretches and ranks come to them by turns, so what is kept of one fits half of a cache line.

use std::ops::Range;

/// Caches that are told apart; those beyond share a place with others.
const CACHES: usize = 512;
/// Nobody.
const NONE: u32 = u32::MAX;

/// A set of caches.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Caches([u64; CACHES / 64]);

impl Caches {
    fn add(&mut self, cache: u32) {
        self.0[cache as usize / 64] |= 1 << (cache % 64);
    }

    fn has(&self, cache: u32) -> bool {
        self.0[cache as usize / 64] >> (cache % 64) & 1 == 1
    }

    /// The first of them other than `cache`.
    fn other(&self, cache: u32) -> Option<u32> {
        let without = |(i, &word): (usize, &u64)| {
            let mine = if cache as usize / 64 == i { 1 << (cache % 64) } else { 0 };
            let rest = word & !mine;
            (rest != 0).then(|| i as u32 * 64 + rest.trailing_zeros())
        };
        self.0.iter().enumerate().find_map(without)
    }
}

/// Caches that have a piece, by their places: mostly one, or who wrote it and one who read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Held {
    One(u16),
    /// Alone, and has written it since it came.
    Modified(u16),
    Two(u16, u16),
    /// The set with this number.
    More(u32),
}

/// Caches that have a piece, in one word: places in its halves, or the number of a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Holders(u32);

impl Holders {
    /// In the upper half: there is no second one.
    const ALONE: u32 = 0x7fff;
    const MODIFIED: u32 = 0x7ffe;
    const SET: u32 = 1 << 31;

    fn of(held: Held) -> Holders {
        match held {
            Held::One(a) => Holders(Holders::ALONE << 16 | u32::from(a)),
            Held::Modified(a) => Holders(Holders::MODIFIED << 16 | u32::from(a)),
            Held::Two(a, b) => Holders(u32::from(b) << 16 | u32::from(a)),
            Held::More(set) => Holders(Holders::SET | set),
        }
    }

    fn held(self) -> Held {
        match (self.0 & Holders::SET, self.0 >> 16) {
            (0, Holders::ALONE) => Held::One(self.0 as u16),
            (0, Holders::MODIFIED) => Held::Modified(self.0 as u16),
            (0, b) => Held::Two(self.0 as u16, b as u16),
            _ => Held::More(self.0 & !Holders::SET),
        }
    }

    fn has(self, sets: &[Caches], place: u16) -> bool {
        match self.held() {
            Held::One(a) | Held::Modified(a) => a == place,
            Held::Two(a, b) => a == place || b == place,
            Held::More(set) => sets[set as usize].has(u32::from(place)),
        }
    }

    /// The first of them in another place.
    fn other(self, sets: &[Caches], place: u16) -> Option<u32> {
        let found = match self.held() {
            Held::One(a) | Held::Modified(a) => (a != place).then_some(a),
            Held::Two(a, b) => [a.min(b), a.max(b)].into_iter().find(|&held| held != place),
            Held::More(set) => return sets[set as usize].other(u32::from(place)),
        };
        found.map(u32::from)
    }
}

/// History of a piece.
#[derive(Clone, Copy, Debug)]
struct History {
    bytes: usize,
    /// Time at which the last read of the piece by another cache was served.
    served: f64,
    /// Bytes that its writer had put anywhere before it wrote this.
    stamp: u64,
    /// Cache whose rank wrote the piece last.
    writer: u32,
    /// Caches that have it.
    holders: Holders,
}

const _: () = assert!(size_of::<History>() <= 32);

/// Buffers in pieces that no access cuts, so that the bytes of one have one history.
#[derive(Clone, Debug)]
pub struct Memory {
    pieces: Vec<History>,
    /// Sets of more than two caches, and which of them nobody uses.
    sets: Vec<Caches>,
    free: Vec<u32>,
    /// True if a read of what another cache modified takes it over, so that only the reader has it then.
    takes_over: bool,
}

/// State of the bytes that an access meets.
#[derive(Clone, Copy, Debug)]
pub struct Met {
    /// A cache that had bytes which this one did not, or had to give them up.
    pub from: Option<u32>,
    /// Number of these bytes.
    pub bytes: usize,
    /// Of a write: as many of them as another cache alone had, modified.
    pub modified: usize,
    /// Time at which the last read of any of them was served.
    pub served: f64,
    /// The least that the writer has put elsewhere since it wrote here last; `None` when it never did.
    pub reuse: Option<u64>,
}

impl Met {
    fn nothing() -> Met {
        Met { from: None, bytes: 0, modified: 0, served: f64::MIN, reuse: None }
    }
}

fn place(cache: u32) -> u16 {
    (cache % CACHES as u32) as u16
}

/// The holders of what only this place has: as it came, and modified.
fn alone(place: u16) -> [Holders; 2] {
    [Held::One(place), Held::Modified(place)].map(Holders::of)
}

impl Memory {
    /// These pieces, each with its length and the cache that has it.
    pub fn of(pieces: impl Iterator<Item = (usize, u32)>, takes_over: bool) -> Memory {
        let new = |(bytes, cache)| {
            let holders = Holders::of(Held::One(place(cache)));
            History { bytes, served: f64::MIN, stamp: 0, writer: NONE, holders }
        };
        Memory { pieces: pieces.map(new).collect(), sets: Vec::new(), free: Vec::new(), takes_over }
    }

    /// As many banks that are like this one.
    pub fn banks(mut self, banks: usize) -> Memory {
        let bank = self.pieces.clone();
        for _ in 1..banks {
            let sets = &mut self.sets;
            self.pieces.extend(bank.iter().map(|&piece| match piece.holders.held() {
                Held::One(_) | Held::Modified(_) | Held::Two(..) => piece,
                Held::More(set) => {
                    sets.push(sets[set as usize]);
                    let own = Held::More(sets.len() as u32 - 1);
                    History { holders: Holders::of(own), ..piece }
                }
            }));
        }
        self
    }

    /// Returns the state that `cache` meets when it reads these pieces.
    pub fn look(&self, cache: u32, pieces: Range<usize>) -> Met {
        let mut met = Met::nothing();
        let own = place(cache);
        for piece in self.pieces[pieces].iter().filter(|piece| !piece.holders.has(&self.sets, own)) {
            let written = piece.writer != NONE && piece.holders.has(&self.sets, place(piece.writer));
            met.from = if written { Some(piece.writer) } else { piece.holders.other(&self.sets, own) };
            met.bytes += piece.bytes;
            met.served = met.served.max(piece.served);
        }
        met
    }

    /// Returns whether another cache has any of these pieces.
    pub fn is_elsewhere(&self, cache: u32, pieces: Range<usize>) -> bool {
        let alone = alone(place(cache));
        self.pieces[pieces].iter().any(|piece| !alone.contains(&piece.holders))
    }

    /// Before any time `cache` read these pieces: what it had written itself before peers took that over.
    pub fn was_read(&mut self, cache: u32, pieces: Range<usize>) {
        for piece in pieces {
            if self.pieces[piece].writer != cache {
                self.read(cache, piece..piece + 1, f64::MIN);
            }
        }
    }

    /// `cache` has read these pieces, until `done`.
    pub fn read(&mut self, cache: u32, pieces: Range<usize>, done: f64) {
        let own = place(cache);
        let Memory { pieces: all, sets, free, takes_over } = self;
        for piece in &mut all[pieces] {
            if piece.holders.has(sets, own) {
                continue;
            }
            piece.served = done;
            match piece.holders.held() {
                Held::Modified(_) if *takes_over => piece.holders = Holders::of(Held::One(own)),
                Held::One(a) | Held::Modified(a) => piece.holders = Holders::of(Held::Two(a, own)),
                Held::Two(a, b) => {
                    let mut set = Caches::default();
                    [a, b, own].into_iter().for_each(|held| set.add(u32::from(held)));
                    let number = free.pop().unwrap_or(sets.len() as u32);
                    match sets.get_mut(number as usize) {
                        Some(unused) => *unused = set,
                        None => sets.push(set),
                    }
                    piece.holders = Holders::of(Held::More(number));
                }
                Held::More(set) => sets[set as usize].add(u32::from(own)),
            }
        }
    }

    /// `cache` writes these pieces; returns who must give them up. `stamp` is how many bytes its rank has put before.
    pub fn write(&mut self, cache: u32, pieces: Range<usize>, stamp: u64) -> Met {
        let mut met = Met::nothing();
        let own = place(cache);
        let [alone, modified] = alone(own);
        for piece in &mut self.pieces[pieces] {
            if ![alone, modified].contains(&piece.holders) {
                met.from = piece.holders.other(&self.sets, own);
                met.bytes += piece.bytes;
                match piece.holders.held() {
                    Held::Modified(_) => met.modified += piece.bytes,
                    Held::More(set) => self.free.push(set),
                    Held::One(_) | Held::Two(..) => {}
                }
            }
            if piece.writer == cache {
                let reuse = stamp.saturating_sub(piece.stamp);
                met.reuse = Some(met.reuse.map_or(reuse, |least| least.min(reuse)));
            }
            *piece = History { holders: modified, writer: cache, served: f64::MIN, stamp, ..*piece };
        }
        met
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(ends: &[usize], cache: u32, takes_over: bool) -> Memory {
        let starts = std::iter::once(&0).chain(ends);
        Memory::of(starts.zip(ends).map(|(start, end)| (end - start, cache)), takes_over)
    }

    fn read(b: &mut Memory, cache: u32, pieces: Range<usize>) -> (Option<u32>, usize) {
        let met = b.look(cache, pieces.clone());
        b.read(cache, pieces, 0.0);
        (met.from, met.bytes)
    }

    #[test]
    fn bytes_are_fetched_once_and_taken_back_once() {
        let mut b = buffer(&[20, 50, 100], 1, false);
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
    fn what_was_modified_is_taken_over_by_its_first_reader_where_machines_do_that() {
        for takes_over in [false, true] {
            let mut b = buffer(&[64, 100], 1, takes_over);
            b.write(0, 0..2, 0);
            assert_eq!(read(&mut b, 1, 0..1), (Some(0), 64));
            // The reader may write it at once, and who wrote it has to fetch it; then both have it.
            let both = if takes_over { (Some(1), 64) } else { (None, 0) };
            assert_eq!(read(&mut b, 0, 0..1), both);
            assert_eq!(read(&mut b, 1, 0..1), (None, 0));
            let met = b.write(1, 0..2, 0);
            assert_eq!(
                (met.from, met.bytes, met.modified),
                (Some(0), 100, 36),
                "what nobody read was modified"
            );
            assert_eq!(read(&mut b, 0, 0..2), (Some(1), 100));
            let met = b.write(0, 0..2, 0);
            assert_eq!((met.bytes, met.modified), (if takes_over { 0 } else { 100 }, 0));
        }
    }

    #[test]
    fn a_writer_comes_back_after_what_it_put_elsewhere() {
        let mut b = buffer(&[32, 64], 1, false);
        assert_eq!(b.write(0, 0..2, 0).reuse, None);
        assert_eq!(b.write(0, 0..1, 500).reuse, Some(500));
        assert_eq!(b.write(0, 0..2, 800).reuse, Some(300));
        assert_eq!(b.write(1, 0..2, 0).reuse, None);
    }

    #[test]
    fn pieces_keep_their_own_writers() {
        let mut b = buffer(&[32, 64, 600], 9, false);
        b.write(0, 0..1, 0);
        b.write(513, 1..2, 0);
        assert_eq!(read(&mut b, 0, 0..2).1, 32);
        assert_eq!(read(&mut b, 2, 0..2).1, 64);
        assert_eq!(read(&mut b, 130, 2..3), (Some(9), 536));
    }
}

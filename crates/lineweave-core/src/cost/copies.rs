//! Copies that are under way at once, which slow each other by L(m, tau).

use super::compile::Instruction;
use crate::model::Surface;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Copies below this size come and go too quickly to slow each other, where what they move is near.
pub const FROM: usize = 4096;
/// Two copies of so many times what one takes slow each other by much.
const MUCH: f64 = 1.1;
/// Of more copies at once than these, each counts for several.
const COUNTED: usize = 64;

/// A copy under way.
#[derive(Clone, Copy, Debug)]
struct Copy {
    rank: u32,
    op: u32,
    began: f64,
    end: f64,
    /// Time that others ran beside it, added up.
    beside: f64,
}

/// All of them. A copy that begins cannot know what begins while it lasts; runs are alike, so it takes what was beside the same op of the
/// run before.
#[derive(Debug)]
pub struct Copies {
    /// Those under way have places here.
    places: Vec<Copy>,
    free: Vec<u32>,
    /// In the order in which they began, each with its number and place.
    active: Vec<(u64, u32)>,
    /// End and number of the copies, the one that ends next first.
    ends: BinaryHeap<Reverse<(u64, u64)>>,
    count: u64,
    /// For each rank and op, how many ran at once in the last run that is over, that one included.
    last: Vec<Vec<f32>>,
    counts: bool,
    /// For each rank, the shortest that count.
    from: Vec<usize>,
}

impl Copies {
    /// None yet. Where copies of all that a rank touches (`reach`) slow each other by much, short ones do so too: they share what is beyond
    /// the caches.
    pub fn new(ops: &[Vec<Instruction>], counts: bool, reach: &[usize], copy: &Surface) -> Copies {
        let slowed = |&reach: &usize| copy.at(reach, 2).nanos > MUCH * copy.at(reach, 1).nanos;
        let from = reach.iter().map(|reach| if slowed(reach) { 1 } else { FROM }).collect();
        let last = if counts { ops.iter().map(|ops| vec![0.0; ops.len()]).collect() } else { Vec::new() };
        let (places, free, active, ends) = (Vec::new(), Vec::new(), Vec::new(), BinaryHeap::new());
        Copies { places, free, active, ends, count: 0, last, counts, from }
    }

    /// Returns the number of copies that run during one of `len` bytes that begins at `now`, this one included.
    pub fn at_once(&mut self, rank: u32, op: usize, now: f64, len: usize) -> usize {
        if !self.counts || len < self.from[rank as usize] {
            return 1;
        }
        while let Some(&Reverse((end, number))) = self.ends.peek() {
            if f64::from_bits(end) > now {
                break;
            }
            self.ends.pop();
            let Ok(at) = self.active.binary_search_by_key(&number, |active| active.0) else { continue };
            let (_, place) = self.active.remove(at);
            let copy = self.places[place as usize];
            let beside = copy.beside / (copy.end - copy.began).max(1e-9);
            self.last[copy.rank as usize][copy.op as usize] = 1.0 + beside as f32;
            self.free.push(place);
        }
        match self.last[rank as usize][op] {
            0.0 => self.active.len() + 1,
            known => known.round() as usize,
        }
    }

    /// One began, and runs until `end`.
    pub fn began(&mut self, rank: u32, op: usize, now: f64, end: f64, len: usize) {
        if !self.counts || len < self.from[rank as usize] || end <= now {
            return;
        }
        let mut beside = 0.0;
        let step = self.active.len().div_ceil(COUNTED).max(1);
        for &(_, place) in self.active.iter().step_by(step) {
            let copy = &mut self.places[place as usize];
            let both = (end.min(copy.end) - now).max(0.0) * step as f64;
            copy.beside += both;
            beside += both;
        }
        let copy = Copy { rank, op: op as u32, began: now, end, beside };
        let place = match self.free.pop() {
            Some(place) => {
                self.places[place as usize] = copy;
                place
            }
            None => {
                self.places.push(copy);
                self.places.len() as u32 - 1
            }
        };
        self.count += 1;
        self.active.push((self.count, place));
        // Times are not negative, so their bits are in their order.
        self.ends.push(Reverse((end.to_bits(), self.count)));
    }
}

//! Chunks and slots of a message that goes down a tree piece by piece.
//!
//! A rank inside the tree takes a chunk from its parent's box, tells its children, and copies it out: one stage. The
//! message is through after as many stages as there are chunks, and one more for each further level.

use super::{less, Optimum};
use lineweave_core::model::Model;
use lineweave_core::topology::Level;

/// Costs of the parts of a stage, in ns.
#[derive(Clone, Debug)]
pub struct Stages<'m> {
    model: &'m Model,
    level: Level,
    /// Ranks that copy from one box at the same time: children of a rank.
    degree: usize,
    /// Levels of the tree below the root.
    depth: usize,
}

/// Chunk size and slots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunks {
    /// Bytes of a chunk.
    pub chunk: usize,
    /// Slots that chunks take turns in.
    pub slots: usize,
}

impl<'m> Stages<'m> {
    /// Returns the stages of a tree of so many children a rank and so many levels, at one distance.
    pub fn of(model: &'m Model, level: Level, degree: usize, depth: usize) -> Stages<'m> {
        Stages { model, level, degree: degree.max(1), depth: depth.max(1) }
    }

    fn signal(&self) -> f64 {
        super::costs::Steps::of(self.model, self.level).shared(self.degree)
    }

    /// Taking a chunk out of the parent's box: L(m, tau) with all siblings at it, or each line served to one after the
    /// other, whichever is longer.
    fn fetch(&self, bytes: usize) -> f64 {
        let get = &self.model.level(self.level).0.get;
        let alone = get.at(bytes, 1).nanos;
        let together = get.at(bytes, self.degree).nanos;
        let lines = bytes.div_ceil(self.model.line_bytes.max(1)) as f64;
        let queue = self.model.contention.c.value * lines * (self.degree - 1) as f64;
        self.model.overhead.mov.value + together.max(alone + queue)
    }

    fn copy(&self, bytes: usize) -> f64 {
        self.model.overhead.mov.value + self.model.copy.at(bytes, 1).nanos
    }

    /// One stage of a rank inside the tree.
    pub fn stage(&self, chunk: usize) -> f64 {
        let out = if self.depth > 1 { self.copy(chunk) } else { 0.0 };
        // The root fills its box as fast as others empty theirs, or holds them up.
        (self.signal() + self.fetch(chunk) + out).max(self.copy(chunk))
    }

    /// Returns the time from one chunk to the next: a slot is free again once the children have copied it and said so.
    pub fn period(&self, chunks: Chunks) -> f64 {
        let turn = self.copy(chunks.chunk) + self.signal() + self.fetch(chunks.chunk) + self.signal();
        self.stage(chunks.chunk).max(turn / chunks.slots.max(1) as f64)
    }

    /// The whole broadcast of `bytes` bytes: filling the first slot, the first chunk down the tree, the others behind
    /// it. Everybody starts at once; memory bandwidth beyond L(m, tau) is outside.
    pub fn cost(&self, bytes: usize, chunks: Chunks) -> f64 {
        let n = bytes.div_ceil(chunks.chunk.max(1)).max(1) as f64;
        let down = self.depth as f64 * self.stage(chunks.chunk.min(bytes));
        self.copy(chunks.chunk.min(bytes)) + down + (n - 1.0) * self.period(chunks)
    }

    /// A rank inside the tree, or the only level's, touches each byte once at least, after one line came down.
    fn bound(&self, bytes: usize) -> f64 {
        let line = self.model.line_bytes.min(bytes.max(1));
        let levels = (self.depth - 1) as f64 * self.stage(line);
        let alone = Stages { degree: 1, ..self.clone() };
        levels.max(alone.fetch(bytes)) + alone.signal()
    }
}

/// The chunk size (whole lines) and the number of slots, at most `most_slots`, of least cost; of equal costs the one
/// that takes least room. Every number of chunks is tried.
pub fn chunks(stages: &Stages<'_>, bytes: usize, most_slots: usize) -> Optimum<Chunks> {
    let line = stages.model.line_bytes.max(1);
    let lines = bytes.div_ceil(line).max(1);
    let whole = Chunks { chunk: lines * line, slots: 1 };
    let mut best = (whole, stages.cost(bytes, whole));
    let mut last = usize::MAX;
    let mut n = 1;
    while n <= lines {
        let chunk = lines.div_ceil(n) * line;
        // Many numbers of chunks round to one size.
        if chunk != last {
            last = chunk;
            let free = (1..=most_slots.max(1)).map(|slots| Chunks { chunk, slots });
            for candidate in free {
                let cost = stages.cost(bytes, candidate);
                let room = |c: Chunks| c.chunk * c.slots;
                if less(cost, best.1) || !less(best.1, cost) && room(candidate) < room(best.0) {
                    best = (candidate, cost);
                }
            }
        }
        // The next number of chunks that makes them smaller.
        let size = chunk / line;
        n = if size > 1 { lines.div_ceil(size - 1) } else { lines + 1 };
    }
    Optimum { choice: best.0, cost_ns: best.1, bound_ns: stages.bound(bytes), exact: true }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::model::Values;

    #[test]
    fn no_chunk_size_is_missed() {
        let model = Values::default().model();
        for (degree, depth) in [(1, 1), (1, 7), (3, 2), (7, 2)] {
            let stages = Stages::of(&model, Level::L3, degree, depth);
            for bytes in [64, 640, 6400, 100_000] {
                let found = chunks(&stages, bytes, 4);
                for lines in 1..=bytes.div_ceil(64) {
                    for slots in 1..=4 {
                        let cost = stages.cost(bytes, Chunks { chunk: lines * 64, slots });
                        assert!(cost >= found.cost_ns * (1.0 - 1e-9), "{bytes} {lines} {slots}: {found:?}");
                    }
                }
                assert!(found.ratio() >= 1.0, "{bytes}: {found:?}");
            }
        }
    }

    #[test]
    fn deep_trees_want_smaller_chunks() {
        let model = Values::default().model();
        let of = |depth| chunks(&Stages::of(&model, Level::L3, 1, depth), 1 << 20, 2).choice.chunk;
        assert!(of(32) < of(4), "{} {}", of(32), of(4));
    }
}

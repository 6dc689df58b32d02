//! The time of moves and folds.

use super::compile::{Place, NOBODY};
use super::data::Met;
use super::play::Player;
use super::rates::{distance, Near};
use super::term::Term;
use crate::model::Surface;
use crate::topology::Level;

/// Copies below this size come and go too quickly to slow each other.
const CONCURRENT_FROM: usize = 4096;

/// What fetching operands, or taking back a destination, adds to the time in private memory.
#[derive(Clone, Copy, Default)]
struct Extra {
    nanos: f64,
    /// Not before this time: readers of the same bytes are served one after the other.
    not_before: f64,
    level: Option<Level>,
}

impl Player<'_> {
    /// When a move that starts at `now` is done.
    pub(super) fn transfer(
        &mut self,
        rank: u32,
        bank: usize,
        now: f64,
        src: Place,
        dst: Place,
        len: usize,
    ) -> (f64, Term) {
        let tau = self.concurrency(now, len);
        if matches!((src, dst), (Place::Attached, _) | (_, Place::Attached)) {
            let at = now + self.rates.mov + self.attached(len, tau);
            self.began(at, len);
            return (at, Term::Attach);
        }
        let base = self.in_private(len, tau);
        let source = self.fetch(rank, bank, now, src, len, tau, base);
        let target = self.take_back(rank, bank, dst, len, tau, base);
        let cold = self.cold(rank, src, len, base) + self.cold(rank, dst, len, base);
        let spent = now + self.rates.mov + base + cold + source.nanos + target.nanos;
        let at = spent.max(source.not_before);
        self.served(rank, bank, src, len, at);
        self.began(at, len);
        (at, source.level.or(target.level).map_or(Term::Copy, Term::Transfer))
    }

    /// When a fold that starts at `now` is done.
    pub(super) fn combine(
        &mut self,
        rank: u32,
        bank: usize,
        now: f64,
        operands: [Place; 2],
        dst: Place,
        len: usize,
    ) -> f64 {
        let tau = self.concurrency(now, len);
        let copied = self.in_private(len, tau);
        let model = self.rates.model;
        let costs = model.fold(self.grain);
        let base = costs.map_or(copied, |f| f.private.at(len, tau).nanos);
        let mut at = now + self.rates.fold + base + self.cold(rank, dst, len, copied);
        let mut not_before = f64::MIN;
        let calls = operands.iter().chain([&dst]).filter(|p| matches!(p, Place::Attached)).count();
        at += calls as f64 * if calls > 0 { self.attached(len, tau) } else { 0.0 };
        for place in operands {
            let mut extra = self.fetch(rank, bank, now, place, len, tau, copied);
            // A fold out of a slot was measured as such: the prefetcher hides part of the transfer.
            if let (Some(slot), true) = (costs.and_then(|f| f.slot.as_ref()), extra.nanos > 0.0) {
                let near = self.rates.model.levels.first().map(|l| l.level);
                if near == extra.level {
                    extra.nanos = (slot.at(len, tau).nanos - base).max(0.0);
                }
            }
            at += extra.nanos + self.cold(rank, place, len, copied);
            not_before = not_before.max(extra.not_before);
        }
        // Lines that a sum goes back to have just come for its operand.
        if operands.contains(&dst) {
            self.served(rank, bank, dst, len, at);
        }
        at += self.take_back(rank, bank, dst, len, tau, copied).nanos;
        let at = at.max(not_before);
        operands.into_iter().for_each(|p| self.served(rank, bank, p, len, at));
        self.began(at, len);
        at
    }

    /// A copy by the kernel; as long as one within private memory where it was not measured.
    fn attached(&mut self, len: usize, tau: usize) -> f64 {
        let model = self.rates.model;
        let reading = model.attach.as_ref().unwrap_or(&model.copy).at(len, tau);
        self.extrapolated |= reading.extrapolated;
        reading.nanos
    }

    /// A copy within private memory.
    fn in_private(&mut self, len: usize, tau: usize) -> f64 {
        let reading = self.rates.model.copy.at(len, tau);
        self.extrapolated |= reading.extrapolated;
        reading.nanos
    }

    /// Copies under way at `now`, this one included.
    fn concurrency(&mut self, now: f64, len: usize) -> usize {
        if !self.options.concurrent || len < CONCURRENT_FROM {
            return 1;
        }
        self.active.retain(|&end| end > now);
        self.active.len() + 1
    }

    fn began(&mut self, until: f64, len: usize) {
        if self.options.concurrent && len >= CONCURRENT_FROM {
            self.active.push(until);
        }
    }

    /// A user's buffer is as far away as all of it is: half of a copy's two sides.
    fn cold(&self, rank: u32, place: Place, len: usize, base: f64) -> f64 {
        let owner = match place {
            Place::User => rank,
            Place::Fresh(q) => q,
            Place::Near | Place::Attached | Place::Shared { .. } => return 0.0,
        };
        let reach = self.reach[owner as usize];
        if reach <= len {
            return 0.0;
        }
        let whole = self.rates.model.copy.at(reach, 1).nanos;
        (0.5 * (whole * len as f64 / reach as f64 - base)).max(0.0)
    }

    #[allow(clippy::too_many_arguments)] // the parts of one access; a struct for them would be used here only
    fn fetch(
        &mut self,
        rank: u32,
        bank: usize,
        now: f64,
        src: Place,
        len: usize,
        tau: usize,
        base: f64,
    ) -> Extra {
        let met = match src {
            Place::Near | Place::User | Place::Attached => return Extra::default(),
            Place::Fresh(q) => Met { peer: q, bytes: len, served: f64::MIN, reuse: None },
            Place::Shared { buffer, start } => self.buffers[bank + buffer as usize].look(rank, start, len),
        };
        let mut extra = self.surplus(rank, met, len, tau, base, |near| near.get);
        if extra.level.is_some() && met.served > now {
            let lines = met.bytes.div_ceil(self.rates.model.line_bytes.max(1));
            extra.not_before = met.served + self.rates.contention * lines as f64;
        }
        extra
    }

    fn take_back(&mut self, rank: u32, bank: usize, dst: Place, len: usize, tau: usize, base: f64) -> Extra {
        match dst {
            Place::Near | Place::User | Place::Attached => Extra::default(),
            // A peer's buffer, which its owner has read since it was written last.
            Place::Fresh(q) => {
                let met = Met { peer: q, bytes: len, served: f64::MIN, reuse: None };
                self.surplus(rank, met, len, tau, base, |near| near.put)
            }
            Place::Shared { buffer, start } => {
                let ranks = self.shape.ranks() as u32;
                let stranger = if ranks > 1 { (rank + 1) % ranks } else { NOBODY };
                let stamp = self.put[rank as usize];
                self.put[rank as usize] += len as u64;
                let met = self.buffers[bank + buffer as usize].write(rank, start, len, stranger, stamp);
                let mut extra = self.surplus(rank, met, len, tau, base, |near| near.put);
                // Long writes flow while the peer reads what went before; that was measured as a whole.
                let reuse = match self.options.walk {
                    0 => met.reuse,
                    walk => Some(met.reuse.map_or(walk, |reuse| reuse.max(walk))),
                };
                if let (Some(level), Some(reuse), true) = (extra.level, reuse, len >= CONCURRENT_FROM) {
                    if let Some(per_byte) = self.rates.at(level).stream(reuse) {
                        let share = met.bytes as f64 / len as f64;
                        extra.nanos = (per_byte * met.bytes as f64 - base * share).max(0.0);
                    }
                }
                extra
            }
        }
    }

    fn served(&mut self, rank: u32, bank: usize, src: Place, len: usize, at: f64) {
        if let Place::Shared { buffer, start } = src {
            self.buffers[bank + buffer as usize].read(rank, start, len, at);
        }
    }

    fn surplus<'s>(
        &'s mut self,
        rank: u32,
        met: Met,
        len: usize,
        tau: usize,
        base: f64,
        surface: impl Fn(&Near<'s>) -> &'s Surface,
    ) -> Extra {
        let level = (met.peer != NOBODY).then(|| distance(self.shape, rank, met.peer)).flatten();
        let (Some(level), true) = (level, len > 0) else { return Extra::default() };
        let reading = surface(self.rates.at(level)).at(len, tau);
        self.extrapolated |= reading.extrapolated;
        let share = met.bytes as f64 / len as f64;
        let nanos = (reading.nanos - base).max(0.0) * share;
        Extra { nanos, not_before: f64::MIN, level: Some(level) }
    }
}

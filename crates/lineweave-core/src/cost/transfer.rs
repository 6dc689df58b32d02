//! The time of moves and folds.

use super::compile::Operand;
use super::data::Met;
use super::play::Player;
use super::rates::{Near, Sitting};
use super::term::Term;
use super::Options;
use crate::model::{Model, Reading, Surface, LEAST_STREAMED, PAGE};
use crate::plan::Plan;
use crate::topology::Level;

/// Least length, in bytes, of writes that cost a flow: shorter ones cost the wait for their first lines, wherever those are.
const FLOWS: usize = 16 << 10;

/// Returns whether the engine moves bytes into users' buffers past the caches.
pub(super) fn streams(model: &Model, plan: &Plan, options: &Options) -> bool {
    let half = plan.half_of_all(options.message.max(plan.bytes)) as u64;
    model.nt_from.is_some_and(|from| half >= from) && !plan.rereads()
}

/// Returns the extra cost of a page that a system call copies, where so many ranks copy from or to one rank's buffers at once: as
/// measured, or else as known of the kernel. It adds to the page's counter before it copies and takes that back after it (Linux,
/// mm/process_vm_access.c): two atomic operations on a line that another of these ranks has had in between. The lock of the address
/// space is taken once for up to 1,024 pages.
pub(super) fn pinning(sitting: &Sitting<'_>, attachers: usize) -> Reading {
    let known = |nanos: f64| Reading { nanos, extrapolated: false };
    let last = sitting.cache.last().copied().unwrap_or(0);
    let costs = sitting.rates.model.level(sitting.level(0, last)).0;
    let own = costs.own_modified.unwrap_or(costs.own).value;
    match (attachers, &sitting.rates.model.pinning) {
        (0 | 1, _) => known(0.0),
        (_, Some(measured)) => measured.at(PAGE, attachers),
        (_, None) => known(2.0 * own),
    }
}

/// Time that fetching operands, or taking back a destination, adds to the time in private memory.
#[derive(Clone, Copy, Default)]
struct Extra {
    nanos: f64,
    /// Not before this time: readers of the same bytes are served one after the other.
    not_before: f64,
    level: Option<Level>,
}

impl Player<'_> {
    /// Returns the time at which a move that starts at `now` is done, and the term on which it was spent.
    pub(super) fn transfer(
        &mut self,
        rank: u32,
        bank: usize,
        now: f64,
        src: Operand,
        dst: Operand,
        len: usize,
    ) -> (f64, Term) {
        let op = self.runners[rank as usize].pc;
        let tau = self.copies.at_once(rank, op, now, len);
        if matches!((src, dst), (Operand::Attached, _) | (_, Operand::Attached)) {
            let at = now + self.wires.sitting.rates.mov + self.attached(rank, len, tau);
            self.copies.began(rank, op, now, at, len);
            return (at, Term::Attach);
        }
        let now = self.behind_flags(rank, bank, dst, now);
        let base = self.in_private(len, tau);
        let source = self.fetch(rank, bank, now, src, len, tau, base);
        let source = self.in_row(rank, source);
        let target = self.take_back(rank, bank, dst, len, tau, base);
        let cold = self.cold(rank, src, len, tau, base) + self.written(rank, dst, len, tau, base);
        let spent = now + self.wires.sitting.rates.mov + base + cold + source.nanos + target.nanos;
        let at = spent.max(source.not_before);
        self.served(rank, bank, src, at);
        self.copies.began(rank, op, now, at, len);
        (at, source.level.or(target.level).map_or(Term::Copy, Term::Transfer))
    }

    /// Returns the time at which a fold that starts at `now` is done.
    pub(super) fn combine(
        &mut self,
        rank: u32,
        bank: usize,
        now: f64,
        operands: [Operand; 2],
        dst: Operand,
        len: usize,
    ) -> f64 {
        let op = self.runners[rank as usize].pc;
        let tau = self.copies.at_once(rank, op, now, len);
        let copied = self.in_private(len, tau);
        let model = self.wires.sitting.rates.model;
        let costs = model.fold(self.grain);
        // Folds were measured alone; others slow them as they slow copies.
        let alone = self.in_private(len, 1).max(1e-9);
        let base = costs.map_or(copied, |f| self.readings.at(&f.private, len, 1).nanos * copied / alone);
        let now = self.behind_flags(rank, bank, dst, now);
        let mut at = now + self.wires.sitting.rates.fold + base + self.cold(rank, dst, len, tau, copied);
        let mut not_before = f64::MIN;
        let calls = operands.iter().chain([&dst]).filter(|p| matches!(p, Operand::Attached)).count();
        at += calls as f64 * if calls > 0 { self.attached(rank, len, tau) } else { 0.0 };
        for place in operands {
            let mut extra = self.fetch(rank, bank, now, place, len, tau, copied);
            // A fold out of a slot was measured as such. Its lines come as a copy's do, and what disturbs a measurement makes it
            // longer only: the shorter of both is nearer to what they take.
            if let (Some(slot), true) = (costs.and_then(|f| f.slot.as_ref()), extra.nanos > 0.0) {
                let near = self.wires.sitting.rates.model.levels.first().map(|l| l.level);
                if near == extra.level {
                    // Where nobody folded beside others, those slow a fold as they slow copies.
                    let get = &self.wires.sitting.rates.model.levels[0].get;
                    let [beside, alone] = [tau, 1].map(|tau| self.readings.at(get, len, tau).nanos);
                    let slower = beside / alone.max(1e-9);
                    let (tau, slower) = if slot.taus.len() > 1 { (tau, 1.0) } else { (1, slower) };
                    let folded = (self.readings.at(slot, len, tau).nanos * slower - base).max(0.0);
                    extra.nanos = extra.nanos.min(folded);
                }
            }
            at += self.in_row(rank, extra).nanos + self.cold(rank, place, len, tau, copied);
            not_before = not_before.max(extra.not_before);
        }
        // Lines that a sum goes back to have just come for its operand, to be written.
        let taken = self.take_back(rank, bank, dst, len, tau, copied).nanos;
        if !operands.contains(&dst) {
            at += taken;
        }
        let at = at.max(not_before);
        operands.into_iter().for_each(|p| self.served(rank, bank, p, at));
        self.copies.began(rank, op, now, at, len);
        at
    }

    /// Loads that follow others without a wait between them begin while those are under way: they cost what one more line does.
    fn in_row(&mut self, rank: u32, extra: Extra) -> Extra {
        let Some(level) = extra.level else { return extra };
        let rates = &self.wires.sitting.rates;
        let row = rates.in_row(level);
        let hidden = (rates.model.level(level).0.read.value - row).max(0.0);
        let nanos = match std::mem::replace(&mut self.runners[rank as usize].in_row, true) {
            true => (extra.nanos - hidden).max(row.min(extra.nanos)),
            false => extra.nanos,
        };
        Extra { nanos, ..extra }
    }

    /// Returns the time at which bytes that others have can be written: stores leave in order, so those of flags go first.
    fn behind_flags(&self, rank: u32, bank: usize, dst: Operand, now: f64) -> f64 {
        let cache = self.wires.sitting.cache[rank as usize];
        let elsewhere = match dst {
            Operand::Near | Operand::User | Operand::Attached => false,
            Operand::Slot(a) => self.slots.is_elsewhere(cache, a.range(bank)),
            Operand::Reached(a) => self.reached.is_elsewhere(cache, a.range(0)),
        };
        if elsewhere {
            self.wires.behind_flags(now, rank)
        } else {
            now
        }
    }

    /// A copy by the kernel, at least as long as its share of one of all that its rank touches; as long as one within private memory
    /// where it was not measured. With what its pages cost if others copy from the same buffers.
    fn attached(&mut self, rank: u32, len: usize, tau: usize) -> f64 {
        let model = self.wires.sitting.rates.model;
        let surface = model.attach.as_ref().unwrap_or(&model.copy);
        let reading = self.readings.at(surface, len, tau);
        self.extrapolated |= reading.extrapolated;
        reading.nanos.max(self.share(surface, rank, len, tau)) + self.pinning * len.div_ceil(PAGE) as f64
    }

    /// The share that `len` bytes have in an access to all that a rank touches.
    fn share(&mut self, surface: &Surface, rank: u32, len: usize, tau: usize) -> f64 {
        let reach = self.reach[rank as usize].max(len).max(1);
        self.readings.at(surface, reach, tau).nanos * len as f64 / reach as f64
    }

    /// A copy within private memory.
    fn in_private(&mut self, len: usize, tau: usize) -> f64 {
        let reading = self.readings.at(&self.wires.sitting.rates.model.copy, len, tau);
        self.extrapolated |= reading.extrapolated;
        reading.nanos
    }

    /// Returns the price of a buffer at the cache level that holds its rank's working set: half of a copy's two sides for a user's buffer.
    fn cold(&mut self, rank: u32, place: Operand, len: usize, tau: usize, base: f64) -> f64 {
        match place {
            Operand::User | Operand::Reached(_) => {
                (0.5 * (self.share(&self.wires.sitting.rates.model.copy, rank, len, tau) - base)).max(0.0)
            }
            Operand::Near | Operand::Attached | Operand::Slot(_) => 0.0,
        }
    }

    /// As `cold`, for the destination of a move. Into an own buffer of a message that goes past the caches, its share of such a copy is the
    /// part beyond the half that reads.
    fn written(&mut self, rank: u32, place: Operand, len: usize, tau: usize, base: f64) -> f64 {
        let own = match place {
            Operand::User => true,
            Operand::Reached(a) => self.program.reached.home(a).index() == rank as usize,
            Operand::Near | Operand::Attached | Operand::Slot(_) => false,
        };
        let model = self.wires.sitting.rates.model;
        match &model.streamed {
            Some(streamed) if own && self.streams && len >= LEAST_STREAMED => {
                let read = 0.5 * self.share(&model.copy, rank, len, tau);
                self.share(streamed, rank, len, tau) - read - 0.5 * base
            }
            Some(_) | None => self.cold(rank, place, len, tau, base),
        }
    }

    #[allow(clippy::too_many_arguments)] // the parts of one access; a struct for them would be used here only
    fn fetch(
        &mut self,
        rank: u32,
        bank: usize,
        now: f64,
        src: Operand,
        len: usize,
        tau: usize,
        base: f64,
    ) -> Extra {
        let cache = self.wires.sitting.cache[rank as usize];
        let met = match src {
            Operand::Near | Operand::User | Operand::Attached => return Extra::default(),
            Operand::Slot(a) => self.slots.look(cache, a.range(bank)),
            Operand::Reached(a) => self.reached.look(cache, a.range(0)),
        };
        let mut extra = self.surplus(rank, src, met, len, tau, base, |near| near.get);
        if extra.level.is_some() && met.served > now {
            let lines = met.bytes.div_ceil(self.wires.sitting.rates.model.line_bytes.max(1));
            extra.not_before = met.served + self.wires.sitting.rates.contention * lines as f64;
        }
        extra
    }

    fn take_back(
        &mut self,
        rank: u32,
        bank: usize,
        dst: Operand,
        len: usize,
        tau: usize,
        base: f64,
    ) -> Extra {
        let cache = self.wires.sitting.cache[rank as usize];
        let (memory, pieces) = match dst {
            Operand::Near | Operand::User | Operand::Attached => return Extra::default(),
            Operand::Slot(a) => (&mut self.slots, a.range(bank)),
            Operand::Reached(a) => (&mut self.reached, a.range(0)),
        };
        let stamp = self.put[rank as usize];
        self.put[rank as usize] += len as u64;
        let met = memory.write(cache, pieces, stamp);
        // Lines that a peer modified come to be written as they come to be read. Those that it read, or took over by reading, it has clean:
        // these are what puts were measured with.
        let modified = Met { bytes: met.modified, ..met };
        let modified = self.surplus(rank, dst, modified, len, tau, base, |near| near.get);
        let met = Met { bytes: met.bytes - met.modified, ..met };
        let mut extra = self.surplus(rank, dst, met, len, tau, base, |near| near.put);
        // Where a rank comes back to after many bytes is as near as that much memory: peers' caches gave it up meanwhile. Nor does it
        // take longer than the whole flow through a ring of so many bytes, where that was measured.
        let reuse = match self.walked[rank as usize] {
            0 => met.reuse,
            walked => Some(met.reuse.map_or(walked, |reuse| reuse.max(walked))),
        };
        if let (Some(level), Some(reuse), true) = (extra.level, reuse, len >= FLOWS) {
            let far = (reuse as usize).max(len);
            let near = self.wires.sitting.rates.at(level);
            let [mut put, alone] =
                [tau, 1].map(|tau| self.readings.at(near.put, far, tau).nanos / far as f64);
            if let Some(stream) = near.stream {
                // A longer ring than was measured takes what the longest did, or what so many bytes more of puts in a row do: peers' caches
                // hold the last of a row only, so they gave up what comes then.
                let ring = far.min(stream.bytes.last().map_or(far, |&most| most as usize));
                let mut flow = self.readings.at(stream, ring, 1).nanos / ring as f64;
                if far > ring {
                    let more = self.readings.at(near.put, 2 * far, 1).nanos
                        - self.readings.at(near.put, far, 1).nanos;
                    flow = flow.min(more / far as f64);
                }
                put = put.min(flow * put / alone.max(1e-9));
            }
            let share = met.bytes as f64 / len as f64;
            extra.nanos = extra.nanos.min((put * met.bytes as f64 - base * share).max(0.0));
        }
        extra.nanos += modified.nanos;
        extra
    }

    fn served(&mut self, rank: u32, bank: usize, src: Operand, at: f64) {
        let cache = self.wires.sitting.cache[rank as usize];
        match src {
            Operand::Slot(a) => self.slots.read(cache, a.range(bank), at),
            Operand::Reached(a) => self.reached.read(cache, a.range(0), at),
            Operand::Near | Operand::User | Operand::Attached => {}
        }
    }

    #[allow(clippy::too_many_arguments)] // as above
    fn surplus<'s>(
        &'s mut self,
        rank: u32,
        place: Operand,
        met: Met,
        len: usize,
        tau: usize,
        base: f64,
        surface: impl Fn(&Near<'s>) -> &'s Surface,
    ) -> Extra {
        let sitting = &self.wires.sitting;
        let (Some(from), true) = (met.from, len > 0) else { return Extra::default() };
        let cache = sitting.cache[rank as usize];
        let level = sitting.level(cache, from);
        let home = match place {
            Operand::Slot(a) => Some(self.program.slots.home(a)),
            Operand::Reached(a) => Some(self.program.reached.home(a)),
            Operand::Near | Operand::User | Operand::Attached => None,
        };
        let farther = home.map_or(1.0, |home| sitting.farther_away(cache, from, home.0));
        let reading = self.readings.at(surface(sitting.rates.at(level)), len, tau);
        self.extrapolated |= reading.extrapolated;
        let share = met.bytes as f64 / len as f64;
        let nanos = (reading.nanos * farther - base).max(0.0) * share;
        Extra { nanos, not_before: f64::MIN, level: Some(level) }
    }
}

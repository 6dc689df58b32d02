//! Ranks that look at flags, and wait for them: who has their lines meanwhile.

use super::{Event, Seen, Want, Wires};
use crate::cost::hand::Watch;
use crate::cost::rates::picos;
use crate::trace::Picos;

impl Wires<'_> {
    /// Returns whether a flag has its value at `now` for a rank that looks and then does something else: when it has read it.
    pub fn glance(&mut self, now: f64, rank: u32, line: u32, flag: u32, wanted: i64) -> Option<f64> {
        if self.flags[flag as usize].value < wanted {
            return None;
        }
        let cache = self.cache(rank);
        let it = &mut self.wires[line as usize].line;
        let start = if it.held_by(cache) { picos(now) } else { picos(now).max(it.serves(false)) };
        let at = it.read(start, cache, 1, &mut self.sitting);
        self.taken_over(start, line);
        Some(at.nanos())
    }

    /// A rank begins to wait at `now`; when it has seen the value already, or else it will be among the [seen](Wires::take_seen).
    pub fn wait(
        &mut self,
        now: f64,
        rank: u32,
        line: u32,
        flag: u32,
        wanted: i64,
        in_row: bool,
    ) -> Option<f64> {
        let at = picos(now);
        let cache = self.cache(rank);
        let mut watch = Watch { flag, line, wanted, asked: false };
        match self.wires[line as usize].line.arrives_at(cache, &self.sitting) {
            Some(arrived) if arrived <= at => {
                if self.flags[flag as usize].value >= wanted {
                    return Some(now);
                }
            }
            Some(arrives) => {
                watch.asked = true;
                self.at(arrives, Event::Arrive { rank, line });
            }
            // Somebody asked for it, but it is still here.
            None if self.wires[line as usize].line.still_there(cache, at) && self.is_raised(flag, wanted) => {
                return Some(now);
            }
            // A load behind a store of the same core to the same line gets it with that store.
            None if self.stores_to(rank, line) => {}
            // Raised already: a load like any other, and one that follows others is under way with them.
            None if in_row && self.flags[flag as usize].value >= wanted && self.free(at, line) => {
                self.wires[line as usize].line.read(at, cache, 1, &mut self.sitting);
                self.taken_over(at, line);
                let level = self.raised(rank, flag).0;
                return Some(now + self.sitting.rates.in_row(level));
            }
            None => {
                watch.asked = true;
                self.wires[line as usize].wants.push_back(Want::Poll(rank));
            }
        }
        let hand = &mut self.hands[rank as usize];
        hand.watch = Some(watch);
        if hand.listed != Some(line) {
            hand.listed = Some(line);
            self.wires[line as usize].watchers.push(rank);
        }
        if watch.asked {
            self.serve(at, line);
        }
        None
    }

    /// Returns whether a line answers a load at once.
    fn free(&self, now: Picos, line: u32) -> bool {
        self.wires[line as usize].wants.is_empty() && self.wires[line as usize].line.serves(false) <= now
    }

    pub(super) fn stores_to(&self, rank: u32, line: u32) -> bool {
        let waits = self.hands[rank as usize].stores.waiting().any(|s| s.line == line);
        let queued = |want: &Want| matches!(want, Want::Store(by, _) if *by == rank);
        waits || self.wires[line as usize].wants.iter().any(queued)
    }

    /// A read may have taken the line over from ranks that poll it.
    pub(super) fn taken_over(&mut self, now: Picos, line: u32) {
        let it = &self.wires[line as usize].line;
        if let (Some(owner), false) = (it.owner(), self.wires[line as usize].watchers.is_empty()) {
            self.invalidated(now, line, owner);
        }
    }

    /// Only `cache` has the line now: whoever else polls it asks again.
    pub(super) fn invalidated(&mut self, now: Picos, line: u32, cache: u32) {
        let mut watchers = std::mem::take(&mut self.wires[line as usize].watchers);
        let mut asks = false;
        watchers.retain(|&rank| {
            let other = self.sitting.cache[rank as usize] != cache;
            let hand = &mut self.hands[rank as usize];
            match &mut hand.watch {
                Some(watch) if watch.line == line => {
                    if other && !watch.asked {
                        watch.asked = true;
                        asks = true;
                        self.wires[line as usize].wants.push_back(Want::Poll(rank));
                    }
                    true
                }
                _ => {
                    if hand.listed == Some(line) {
                        hand.listed = None;
                    }
                    false
                }
            }
        });
        self.wires[line as usize].watchers = watchers;
        if asks {
            let at = self.wires[line as usize].line.serves(false).max(now);
            let queue = &mut self.wires[line as usize];
            if queue.alarm.is_none_or(|alarm| alarm > at || alarm <= now) {
                queue.alarm = Some(at);
                self.at(at, Event::Serve(line));
            }
        }
    }

    /// A line that a rank asked for is there.
    pub(super) fn arrive(&mut self, now: Picos, rank: u32, line: u32) {
        match &mut self.hands[rank as usize].watch {
            Some(watch) if watch.line == line && watch.asked => watch.asked = false,
            _ => return,
        }
        if self.arrive_if(now, rank, line) {
            return;
        }
        // Taken away while it was on its way.
        let cache = self.cache(rank);
        if !self.wires[line as usize].line.held_by(cache) && !self.stores_to(rank, line) {
            if let Some(watch) = &mut self.hands[rank as usize].watch {
                watch.asked = true;
            }
            self.wires[line as usize].wants.push_back(Want::Poll(rank));
            self.serve(now, line);
        }
    }

    /// A rank looks at the line that it polls; whether it saw what it waits for.
    pub(super) fn arrive_if(&mut self, now: Picos, rank: u32, line: u32) -> bool {
        match self.hands[rank as usize].watch {
            Some(watch) if watch.line == line && self.flags[watch.flag as usize].value >= watch.wanted => {
                self.hands[rank as usize].watch = None;
                self.seen.push(Seen { rank, at: now.nanos() });
                true
            }
            _ => false,
        }
    }
}

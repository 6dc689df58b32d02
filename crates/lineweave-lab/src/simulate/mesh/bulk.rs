//! Chunks of lines, and private lines: accesses that are over in one step.

use super::MeshFabric;
use crate::simulate::fabric::Step;
use crate::simulate::program::Address;
use lineweave_core::trace::Picos;

impl MeshFabric {
    /// A chunk of lines from or to the box of `home`: as long as the slowest of core, port and links.
    pub(super) fn chunk(&mut self, now: Picos, rank: u32, home: u32, lines: u64, packets: [u64; 2]) -> Step {
        let back = self.distance(rank, home) * self.v.hop;
        let each = self.v.on_box + 2 * back;
        let mut at = now.0 + lines.div_ceil(self.in_flight) * each;
        let (from, to) = (self.tiles[rank as usize], self.tiles[home as usize]);
        if !self.settings.ideal {
            at = at.max(self.chunk_ports[to as usize].drain(now, lines * self.v.port).0 + back);
            if self.settings.distance.is_none() {
                let links = &mut self.links;
                let mut pass = |from, to, busy: u64| {
                    self.v.grid.walk(from, to, |link| at = at.max(links[link].drain(now, busy).0));
                };
                pass(from, to, lines * packets[0]);
                pass(to, from, lines * packets[1]);
            }
        }
        Step::Done { at: Picos(at), visible: Picos(at - back) }
    }

    /// Returns the step of an access to private lines.
    pub(super) fn private(
        &mut self,
        now: Picos,
        rank: u32,
        place: Address,
        len: usize,
        overhead: u64,
    ) -> Step {
        let lines = self.caches[rank as usize].touch(place, len, self.v.line, self.v.cache_lines);
        let (routers, controller) = self.memory[rank as usize];
        let each = overhead + 2 * routers * self.v.hop;
        let mut at = now.0 + lines.div_ceil(if self.chunked { self.in_flight } else { 1 }) * each;
        if lines > 0 && !self.settings.ideal {
            let work = lines * self.v.controller;
            let bucket = &mut self.controllers[controller as usize];
            // As on the way of a packet: all is asked now, and the longest wait counts.
            let mut late = 0;
            match self.chunked {
                true => at = at.max(bucket.drain(now, work).0),
                false => late = bucket.add(now, work),
            }
            if self.settings.distance.is_none() {
                // A line and a request, one each way.
                let (x, y) = self.v.controllers[controller as usize];
                let (from, to) = (self.tiles[rank as usize], self.v.grid.tile(x, y));
                let packets = lines * (self.v.long + self.v.short) / 2;
                let links = &mut self.links;
                let (grid, chunked) = (self.v.grid, self.chunked);
                let mut pass = |from, to| {
                    grid.walk(from, to, |link| match chunked {
                        true => at = at.max(links[link].drain(now, packets).0),
                        false => late = links[link].add(now, packets).max(late),
                    });
                };
                pass(from, to);
                pass(to, from);
            }
            at += late;
        }
        Step::Done { at: Picos(at), visible: Picos(at) }
    }
}

//! The port of a tile's message buffers: one line at a time, and polled flags take their share.

use super::route::Grid;
use crate::machine::Arbiter;
use crate::simulate::agenda::Agent;
use crate::trace::Picos;

/// A request that waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    agent: Agent,
    stage: u8,
    tile: u32,
}

/// A core that looks at a flag again and again.
#[derive(Clone, Copy, Debug)]
struct Poller {
    rank: u32,
    /// When it saw the flag last before it began to wait.
    since: u64,
    /// From look to look.
    period: u64,
}

/// The port of one tile.
#[derive(Clone, Debug, Default)]
pub(super) struct Port {
    free: u64,
    queue: Vec<Waiting>,
    alarmed: bool,
    pollers: Vec<Poller>,
    /// For each tile on a way to here, the input that was served last; empty until somebody waits.
    last: Vec<u8>,
    /// Time spent serving.
    pub busy: u64,
    /// Longest queue.
    pub longest: usize,
}

/// What became of a request.
pub(super) enum Service {
    /// Served until then.
    Until(Picos),
    /// It waits. An alarm is wanted at the time given, if any.
    Queued(Option<Picos>),
}

impl Port {
    /// A request arrives at `now`.
    pub fn request(
        &mut self,
        now: Picos,
        service: u64,
        arbiter: Arbiter,
        agent: Agent,
        stage: u8,
        tile: u32,
    ) -> Service {
        match arbiter {
            Arbiter::Fifo => Service::Until(self.serve(now.0.max(self.free), service)),
            Arbiter::Inputs if self.free <= now.0 && self.queue.is_empty() => {
                Service::Until(self.serve(now.0, service))
            }
            Arbiter::Inputs => {
                self.queue.push(Waiting { agent, stage, tile });
                self.longest = self.longest.max(self.queue.len());
                let alarm = (!self.alarmed).then_some(Picos(self.free.max(now.0)));
                self.alarmed = true;
                Service::Queued(alarm)
            }
        }
    }

    /// The port is free: whose request is served, in which stage it goes on and when, and when the next
    /// alarm is wanted.
    pub fn alarm(
        &mut self,
        now: Picos,
        service: u64,
        grid: Grid,
        here: u32,
    ) -> Option<(Agent, u8, Picos, Option<Picos>)> {
        self.alarmed = false;
        if self.queue.is_empty() {
            return None;
        }
        let chosen = self.choose(grid, here);
        let waiting = self.queue.remove(chosen);
        let until = self.serve(now.0, service);
        self.alarmed = !self.queue.is_empty();
        Some((waiting.agent, waiting.stage, until, self.alarmed.then_some(until)))
    }

    /// From the port back along the ways: at each router the next input in turn that has a request.
    fn choose(&mut self, grid: Grid, here: u32) -> usize {
        if self.queue.len() == 1 {
            return 0;
        }
        if self.last.is_empty() {
            self.last = vec![0; grid.tiles()];
        }
        let mut candidates: Vec<(usize, Vec<u32>)> =
            self.queue.iter().enumerate().map(|(i, w)| (i, grid.path(w.tile, here))).collect();
        let mut at = here;
        loop {
            // Inputs are numbered by the tile that they come from; the router's own cores are one input.
            let input = |path: &[u32]| match path.len() {
                1 => LOCAL,
                n => side(grid, at, path[n - 2]),
            };
            let last = self.last[at as usize];
            let next = candidates
                .iter()
                .map(|(_, path)| input(path))
                .min_by_key(|&i| (i + INPUTS - last - 1) % INPUTS)
                .unwrap_or(LOCAL);
            self.last[at as usize] = next;
            candidates.retain(|(_, path)| input(path) == next);
            if next == LOCAL {
                return candidates.first().map_or(0, |c| c.0);
            }
            for (_, path) in &mut candidates {
                path.pop();
            }
            at = candidates[0].1.last().copied().unwrap_or(here);
        }
    }

    /// Serves one line from `start` on, or from the end of the look that a poller has just then.
    fn serve(&mut self, start: u64, service: u64) -> Picos {
        let start = self.after_polls(start, service);
        self.free = start + service;
        self.busy += service;
        Picos(self.free)
    }

    fn after_polls(&self, at: u64, service: u64) -> u64 {
        if self.pollers.is_empty() {
            return at;
        }
        let work = self.pollers.len() as u64 * service;
        let shortest = self.pollers.iter().map(|p| p.period).min().unwrap_or(u64::MAX);
        if work >= shortest {
            // More looks than the port can serve: each waits for all others, and so does this request.
            return at + (work - shortest).max(service);
        }
        let ends = self.pollers.iter().filter_map(|p| {
            let look = p.since + at.saturating_sub(p.since).div_ceil(p.period).max(1) * p.period;
            // The port serves a look for the time before its end.
            (look - at < service).then_some(look)
        });
        ends.max().map_or(at, |end| end.max(at))
    }

    /// A core looks from now on.
    pub fn poll(&mut self, rank: u32, since: Picos, period: u64) {
        self.pollers.push(Poller { rank, since: since.0, period });
    }

    /// The core sees what became visible at `visible`: when it looked.
    pub fn seen(&mut self, rank: u32, visible: Picos, service: u64) -> Picos {
        let all = self.pollers.len() as u64 * service;
        let Some(at) = self.pollers.iter().position(|p| p.rank == rank) else { return visible };
        let poller = self.pollers.swap_remove(at);
        let period = poller.period.max(all);
        let looks = visible.0.saturating_sub(poller.since).div_ceil(period).max(1);
        self.busy += looks * service;
        Picos(poller.since + looks * period)
    }
}

/// Inputs of a router: its cores, and four sides.
const INPUTS: u8 = 5;
const LOCAL: u8 = 0;

/// The input of `at` that leads from its neighbour `from`.
fn side(grid: Grid, at: u32, from: u32) -> u8 {
    use super::route::Side;
    [Side::East, Side::West, Side::South, Side::North]
        .into_iter()
        .position(|side| grid.neighbour(at, side) == from)
        .map_or(LOCAL, |i| i as u8 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Routing;

    const S: u64 = 10;

    fn grid() -> Grid {
        Grid { columns: 3, rows: 1, routing: Routing::Xy }
    }

    #[test]
    fn first_come_is_first_served() {
        let mut port = Port::default();
        let mut ends = Vec::new();
        for at in [0, 3, 50] {
            let Service::Until(end) = port.request(Picos(at), S, Arbiter::Fifo, 0, 0, 0) else { panic!() };
            ends.push(end.0);
        }
        assert_eq!(ends, [10, 20, 60]);
        assert_eq!(port.busy, 30);
    }

    /// One request from the tile itself, and four that come through one input: it is served after one of them.
    #[test]
    fn inputs_take_turns() {
        let mut port = Port::default();
        let Service::Until(end) = port.request(Picos(0), S, Arbiter::Inputs, 9, 0, 0) else { panic!() };
        assert_eq!(end, Picos(10));
        for (agent, tile) in [(1, 1), (2, 1), (3, 2), (4, 2), (0, 0)] {
            let Service::Queued(alarm) = port.request(Picos(1), S, Arbiter::Inputs, agent, 7, tile) else {
                panic!()
            };
            assert_eq!(alarm.is_some(), agent == 1, "one alarm is enough");
        }
        let mut order = Vec::new();
        let mut now = Picos(10);
        while let Some((agent, stage, until, alarm)) = port.alarm(now, S, grid(), 0) {
            assert_eq!(stage, 7);
            order.push(agent);
            now = until;
            if alarm.is_none() {
                break;
            }
        }
        // East first, then the own core; among the eastern ones, tiles 1 and 2 in turn.
        assert_eq!(order, [3, 0, 1, 4, 2]);
        assert_eq!(port.longest, 5);
    }

    #[test]
    fn a_poller_is_seen_at_its_next_look_and_delays_others() {
        let mut port = Port::default();
        port.poll(5, Picos(100), 50);
        // Its looks end at 150, 200, ...; each takes the port for 10 before.
        assert_eq!(port.after_polls(141, S), 150);
        assert_eq!(port.after_polls(130, S), 130);
        assert_eq!(port.seen(5, Picos(201), S), Picos(250));
        assert_eq!(port.after_polls(241, S), 241);
        assert_eq!(port.busy, 30);
    }

    #[test]
    fn many_pollers_saturate_the_port() {
        let mut port = Port::default();
        for rank in 0..10 {
            port.poll(rank, Picos(0), 50);
        }
        assert_eq!(port.after_polls(7, S), 57);
        // A look of each takes 100 then.
        assert_eq!(port.seen(3, Picos(120), S), Picos(200));
    }
}

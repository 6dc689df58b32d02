//! The port of a tile's message buffers: one line at a time, and polled flags take their share.

use super::queue::{Queue, Waiting};
use crate::route::Grid;
use lineweave_core::machine::Arbiter;
use lineweave_core::trace::Picos;

/// A core that looks at a flag again and again.
#[derive(Clone, Copy, Debug)]
struct Poller {
    rank: u32,
    /// Time of its last look at the flag before it began to wait.
    since: u64,
    /// Time from one look at the flag to the next.
    period: u64,
}

/// The port of one tile.
#[derive(Clone, Debug, Default)]
pub(super) struct Port {
    free: u64,
    queue: Queue,
    alarmed: bool,
    pollers: Vec<Poller>,
    /// Time spent serving.
    pub busy: u64,
    /// Longest queue.
    pub longest: usize,
}

/// Result of a request.
pub(super) enum Service {
    /// Served until then.
    Until(Picos),
    /// It waits. An alarm is wanted at the time given, if any.
    Queued(Option<Picos>),
}

/// Constants of all ports of a mesh, and the place of this one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Site {
    pub grid: Grid,
    pub here: u32,
    /// Time for a line.
    pub service: u64,
    /// Flits that a router's buffer holds.
    pub room: u32,
    pub arbiter: Arbiter,
}

impl Port {
    /// A request arrives at `now`.
    pub fn request(&mut self, now: Picos, site: Site, waiting: Waiting) -> Service {
        match site.arbiter {
            Arbiter::Fifo => Service::Until(self.serve(now.0.max(self.free), site.service)),
            Arbiter::Inputs if self.free <= now.0 && self.queue.len() == 0 => {
                Service::Until(self.serve(now.0, site.service))
            }
            Arbiter::Inputs => {
                self.queue.push(waiting, site.grid, site.here, site.room);
                self.longest = self.longest.max(self.queue.len());
                let alarm = (!self.alarmed).then_some(Picos(self.free.max(now.0)));
                self.alarmed = true;
                Service::Queued(alarm)
            }
        }
    }

    /// The port is free: whose request is served until when, and when the next alarm is wanted.
    pub fn alarm(&mut self, now: Picos, site: Site) -> Option<(Waiting, Picos, Option<Picos>)> {
        self.alarmed = false;
        let waiting = self.queue.pop(site.grid, site.here, site.room)?;
        let until = self.serve(now.0, site.service);
        self.alarmed = self.queue.len() > 0;
        Some((waiting, until, self.alarmed.then_some(until)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::machine::Routing;

    const S: u64 = 10;

    fn site(arbiter: Arbiter) -> Site {
        let grid = Grid { columns: 3, rows: 1, routing: Routing::Xy };
        Site { grid, here: 0, service: S, room: 1, arbiter }
    }

    fn from(agent: u32, tile: u32) -> Waiting {
        Waiting { agent, stage: 7, tile, flits: 1 }
    }

    #[test]
    fn first_come_is_first_served() {
        let mut port = Port::default();
        let mut ends = Vec::new();
        for at in [0, 3, 50] {
            let Service::Until(end) = port.request(Picos(at), site(Arbiter::Fifo), from(0, 0)) else {
                panic!()
            };
            ends.push(end.0);
        }
        assert_eq!(ends, [10, 20, 60]);
        assert_eq!(port.busy, 30);
    }

    #[test]
    fn who_waits_is_called_when_the_port_is_free() {
        let site = site(Arbiter::Inputs);
        let mut port = Port::default();
        let Service::Until(end) = port.request(Picos(0), site, from(9, 0)) else { panic!() };
        assert_eq!(end, Picos(10));
        for agent in 1..4 {
            let Service::Queued(alarm) = port.request(Picos(1), site, from(agent, agent - 1)) else {
                panic!()
            };
            assert_eq!(alarm, (agent == 1).then_some(Picos(10)), "one alarm is enough");
        }
        let mut now = Picos(10);
        let mut served = Vec::new();
        while let Some((waiting, until, alarm)) = port.alarm(now, site) {
            assert_eq!((until.0, waiting.stage), (now.0 + S, 7));
            served.push(waiting.agent);
            now = until;
            assert_eq!(alarm.is_some(), served.len() < 3);
        }
        served.sort_unstable();
        assert_eq!((served, port.longest), (vec![1, 2, 3], 3));
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

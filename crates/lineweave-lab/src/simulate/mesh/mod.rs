//! The family of message-passing meshes: cores with message buffers on a mesh of tiles, without coherent caches.
//!
//! Petrovic et al. 2012, section 3, describe the Intel SCC so, and its constants are theirs. A slot is in its
//! owner's message buffer; `in`, `out` and `acc` are in a core's private memory behind a memory controller.
//! Rank r is core r; cores are numbered tile by tile, row by row.
//!
//! # What is played
//!
//! 1. A line from or to a buffer at distance d takes o^mpb + 2 d L^hop, of which the last d L^hop are the way
//!    back (Eq. 1-3); from or to memory the same with the controller's distance (Eq. 4-6). A core has one
//!    access under way, or as many as the machine says.
//! 2. A move pays the overhead of a put or a get, as its source and destination say (Eq. 7-12).
//! 3. A tile's port serves one line at a time; requests wait as the arbiter says. A link is busy for the flits
//!    of a packet, a controller for a line.
//! 4. A flag is a line, a byte or a bit of a message buffer ([`FlagCost`]). Reading it is a get that ends in a
//!    register: o_get^mpb + C_r^mpb(d), or, as in RCCE, a load: C_r^mpb(d). A core that waits reads again and
//!    again, which keeps the polled port busy.
//! 5. Private lines that a core touched last are in its cache and cost nothing (section 5.2.2), the first time
//!    in a run excepted: a collective's buffers are not those of the last one.
//!
//! Per chunk, a resource is as busy as with lines, but delays a chunk only by more work than the chunk takes
//! time; flags do not queue there, and arbiter and polling have no part.

mod bound;
pub(super) mod bucket;
mod bulk;
mod cache;
mod fit;
mod load;
mod overlap;
mod port;
mod queue;
pub(super) mod values;

pub use fit::FlagCost;
pub use load::{Load, PortLoad};
pub use overlap::{all_pairs, overlaps, Overlaps, Shared};

use self::bucket::Bucket;
use self::cache::Cache;
use self::port::{Port, Service, Site};
use self::queue::Waiting;
use self::values::Values;
use super::agenda::{Agenda, Agent};
use super::fabric::{Access, Call, Fabric, Lanes, Step};
use super::program::{Address, FlagAt, Playable};
use super::{play, Fidelity, Options, Outcome, SimulateError};
use lineweave_core::machine::{Arbiter, Machine, Mesh};
use lineweave_core::plan::Plan;
use lineweave_core::trace::{Kind, Picos};

/// Settings of the simulation of a mesh.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Settings {
    /// Kind of the flags.
    pub flags: FlagCost,
    /// Every distance, in routers, instead of the real ones: the papers' models assume 1.
    pub distance: Option<u32>,
    /// True if nothing ever waits for a resource.
    pub ideal: bool,
    /// Accesses that a core has under way, instead of the machine's.
    pub in_flight: Option<u32>,
    /// Arbiter of the ports, instead of the machine's.
    pub arbiter: Option<Arbiter>,
}

/// Parts of an access.
const START: u8 = 0;
/// Stage at the port that is read before the flag is written.
const AT_FIRST: u8 = 1;
const FIRST_SERVED: u8 = 2;
const AT_HOME: u8 = 3;
const SERVED: u8 = 4;

/// Access under way: its rank and agent, the time, and its stage.
#[derive(Clone, Copy, Debug)]
struct Turn {
    now: Picos,
    agent: Agent,
    rank: u32,
    stage: u8,
}

/// A mesh at work.
#[derive(Debug)]
pub(super) struct MeshFabric {
    v: Values,
    settings: Settings,
    chunked: bool,
    in_flight: u64,
    arbiter: Arbiter,
    /// Tile of each rank; in `memory`, the routers to each rank's memory controller and the index of the controller.
    tiles: Vec<u32>,
    memory: Vec<(u64, u32)>,
    caches: Vec<Cache>,
    ports: Vec<Port>,
    /// Ports as chunks load them.
    chunk_ports: Vec<Bucket>,
    links: Vec<Bucket>,
    controllers: Vec<Bucket>,
}

/// Plays `plan` on `machine`, whose `[mesh]` is `mesh`.
pub(super) fn simulate(
    machine: &Machine,
    mesh: &Mesh,
    plan: &Plan,
    options: &Options,
) -> Result<Outcome, SimulateError> {
    let settings = options.mesh;
    let values = Values::of(machine, mesh, settings.in_flight)?;
    let footprint = fit::check(machine, &values, plan, options)?;
    let bound = bound::bound(&values, settings, plan);
    let program =
        Playable::compile(plan, &footprint, options.banks.min(options.runs))?.together(options.together);
    let mut fabric = MeshFabric::new(values, settings, options.fidelity, plan.ranks);
    let played = play(&mut fabric, &program, options.runs.max(1), options.fidelity, options.trace)?;
    let load = fabric.load(&played);
    Ok(Outcome { load: Some(load), bound: Some(bound), ..Outcome::of(plan, played, options.trace) })
}

impl MeshFabric {
    fn new(v: Values, settings: Settings, fidelity: Fidelity, ranks: usize) -> MeshFabric {
        let tiles: Vec<u32> = (0..ranks as u32).map(|rank| rank / v.cores_per_tile).collect();
        let nearest = |&tile: &u32| {
            let way = |i: usize| v.grid.distance(tile, v.grid.tile(v.controllers[i].0, v.controllers[i].1));
            let at = (0..v.controllers.len()).min_by_key(|&i| way(i)).unwrap_or(0);
            (u64::from(settings.distance.unwrap_or_else(|| way(at))), at as u32)
        };
        MeshFabric {
            memory: tiles.iter().map(nearest).collect(),
            tiles,
            chunked: fidelity == Fidelity::Chunk,
            in_flight: u64::from(v.in_flight),
            arbiter: settings.arbiter.unwrap_or(v.arbiter),
            caches: vec![Cache::default(); ranks],
            ports: vec![Port::default(); v.grid.tiles()],
            chunk_ports: vec![Bucket::default(); v.grid.tiles()],
            links: vec![Bucket::default(); v.grid.tiles() * 4],
            controllers: vec![Bucket::default(); v.controllers.len()],
            settings,
            v,
        }
    }

    /// Routers between two cores.
    fn distance(&self, rank: u32, home: u32) -> u64 {
        let apart = || self.v.grid.distance(self.tiles[rank as usize], self.tiles[home as usize]);
        u64::from(self.settings.distance.unwrap_or_else(apart))
    }

    /// A packet enters the links from tile to tile: how long it waits on its way. What each link has to do is asked now,
    /// and gets less while the packet waits elsewhere: the longest wait counts, not their sum.
    fn travel(&mut self, at: Picos, from: u32, to: u32, busy: u64) -> u64 {
        if from == to || self.settings.ideal || self.settings.distance.is_some() {
            return 0;
        }
        let links = &mut self.links;
        let mut late = 0;
        self.v.grid.walk(from, to, |link| late = links[link].add(at, busy).max(late));
        late
    }

    /// A request of `rank` goes to the port of `home`: it arrives there so that the port serves it at the end of
    /// o^mpb + d L^hop.
    fn request(&mut self, now: Picos, rank: u32, home: u32, packet: u64, stage: u8) -> Step {
        let (from, to) = (self.tiles[rank as usize], self.tiles[home as usize]);
        let late = self.travel(now, from, to, packet);
        let way = self.v.on_box + self.distance(rank, home) * self.v.hop;
        Step::Later { at: Picos(now.0 + way.saturating_sub(self.v.port) + late), stage }
    }

    /// A request stands before the port of `home`: until when it is served, or that it has to wait.
    fn serve(
        &mut self,
        turn: Turn,
        home: u32,
        (stage, packet): (u8, u64),
        agenda: &mut Agenda,
    ) -> Option<Picos> {
        let Turn { now, agent, rank, .. } = turn;
        let tile = self.tiles[home as usize];
        if self.settings.ideal || self.chunked {
            self.chunk_ports[tile as usize].busy += self.v.port;
            return Some(Picos(now.0 + self.v.port));
        }
        let flits = (packet / self.v.flit.max(1)).max(1) as u32;
        let waiting = Waiting { agent, stage, tile: self.tiles[rank as usize], flits };
        let site = self.site(tile);
        match self.ports[tile as usize].request(now, site, waiting) {
            Service::Until(at) => Some(at),
            Service::Queued(alarm) => {
                if let Some(at) = alarm {
                    agenda.alarm(at, tile);
                }
                None
            }
        }
    }

    fn site(&self, tile: u32) -> Site {
        let v = &self.v;
        Site { grid: v.grid, here: tile, service: v.port, room: v.buffer, arbiter: self.arbiter }
    }

    /// The way back of an access that was served at `served`.
    fn done(&mut self, served: Picos, rank: u32, home: u32, packet: u64) -> Step {
        let (from, to) = (self.tiles[home as usize], self.tiles[rank as usize]);
        let late = self.travel(served, from, to, packet);
        let back = self.distance(rank, home) * self.v.hop;
        Step::Done { at: Picos(served.0 + back + late), visible: served }
    }

    /// A line from or to the box of `home`.
    fn line(&mut self, turn: Turn, home: u32, packets: [u64; 2], agenda: &mut Agenda) -> Step {
        let Turn { now, rank, .. } = turn;
        match turn.stage {
            START => self.request(now, rank, home, packets[0], AT_HOME),
            AT_HOME => match self.serve(turn, home, (SERVED, packets[0]), agenda) {
                Some(served) => self.done(served, rank, home, packets[1]),
                None => Step::Parked,
            },
            _ => self.done(now, rank, home, packets[1]),
        }
    }

    fn call(&self, rank: u32, call: Call) -> u64 {
        match (call.kind, call.from, call.to) {
            (Kind::Move, Some(from), Some(to)) => match (from, to) {
                (Address::Private { .. }, Address::Slot { .. }) => self.v.put_memory,
                (Address::Slot { owner, .. }, Address::Slot { .. }) if owner == rank => self.v.put_box,
                (Address::Slot { .. }, Address::Slot { .. }) => self.v.get_box,
                (Address::Slot { .. }, Address::Private { .. }) => self.v.get_memory,
                // A copy loop between two private buffers is no call.
                (Address::Private { .. }, Address::Private { .. }) => 0,
            },
            // A flag's costs are counted where it is read or written; a fold is a loop over loads and stores.
            (Kind::Move | Kind::Fold | Kind::Set | Kind::Wait | Kind::Add, _, _) => 0,
        }
    }

    /// Bytes at a place, read or written.
    fn bytes(&mut self, turn: Turn, place: Address, len: usize, write: bool, agenda: &mut Agenda) -> Step {
        let Turn { now, rank, .. } = turn;
        let packets = if write { [self.v.long, self.v.short] } else { [self.v.short, self.v.long] };
        match place {
            Address::Private { .. } => {
                let overhead = if write { self.v.memory_write } else { self.v.memory_read };
                self.private(now, rank, place, len, overhead)
            }
            Address::Slot { owner, .. } if self.chunked => {
                self.chunk(now, rank, owner, len.div_ceil(self.v.line) as u64, packets)
            }
            Address::Slot { owner, .. } => self.line(turn, owner, packets, agenda),
        }
    }

    /// Returns the cost of looking at a flag before its line is read.
    fn look(&self) -> u64 {
        match self.settings.flags {
            FlagCost::Line | FlagCost::Byte | FlagCost::Bit => self.v.get_box,
            FlagCost::Rcce => 0,
        }
    }

    /// A flag is raised: see [`FlagCost`].
    fn set(&mut self, turn: Turn, home: u32, cost: FlagCost, agenda: &mut Agenda) -> Step {
        let Turn { now, rank, stage, .. } = turn;
        // What is read first: the line to write, at home, or the line to change, at the flag's.
        let first = match cost {
            FlagCost::Line => rank,
            FlagCost::Byte | FlagCost::Bit | FlagCost::Rcce => home,
        };
        let lock = match cost {
            FlagCost::Bit => self.v.on_box + 2 * self.distance(rank, home) * self.v.hop,
            FlagCost::Line | FlagCost::Byte | FlagCost::Rcce => 0,
        };
        let after = match cost {
            FlagCost::Rcce => self.v.on_box + 2 * self.v.hop,
            FlagCost::Line | FlagCost::Byte | FlagCost::Bit => lock,
        };
        match stage {
            START => {
                let begun = Picos(now.0 + self.v.put_box + lock);
                match cost {
                    FlagCost::Byte | FlagCost::Rcce => self.request(begun, rank, home, self.v.long, AT_HOME),
                    FlagCost::Line | FlagCost::Bit => {
                        self.request(begun, rank, first, self.v.short, AT_FIRST)
                    }
                }
            }
            AT_FIRST | FIRST_SERVED => {
                let served = match stage {
                    AT_FIRST => self.serve(turn, first, (FIRST_SERVED, self.v.short), agenda),
                    _ => Some(now),
                };
                let Some(served) = served else { return Step::Parked };
                let Step::Done { at, .. } = self.done(served, rank, first, self.v.long) else {
                    return Step::Parked;
                };
                self.request(at, rank, home, self.v.long, AT_HOME)
            }
            _ => match self.line(turn, home, [self.v.long, self.v.short], agenda) {
                Step::Done { at, visible } => Step::Done { at: Picos(at.0 + after), visible },
                other => other,
            },
        }
    }
}

impl Fabric for MeshFabric {
    fn line_bytes(&self) -> usize {
        self.v.line
    }

    fn lanes(&self) -> Lanes {
        Lanes { count: self.in_flight as u32, gap: Picos(self.v.issue) }
    }

    fn step(
        &mut self,
        now: Picos,
        agent: Agent,
        rank: u32,
        access: &Access,
        stage: u8,
        agenda: &mut Agenda,
    ) -> Step {
        let turn = Turn { now, agent, rank, stage };
        let after = |time: u64| Step::Done { at: Picos(now.0 + time), visible: Picos(now.0 + time) };
        match *access {
            Access::Call(call) => after(self.call(rank, call)),
            Access::Read { from, len } => self.bytes(turn, from, len, false, agenda),
            Access::Write { to, len } => self.bytes(turn, to, len, true, agenda),
            Access::Combine { len } => after(len as u64 * self.v.fold_fs.unwrap_or(0) / 1000),
            Access::Set { flag, .. } => self.set(turn, flag.home, self.settings.flags, agenda),
            // One more than it was: read and written under a lock, whatever flags are.
            Access::Add { flag } => self.set(turn, flag.home, FlagCost::Bit, agenda),
            Access::Poll { flag } => {
                let begun = if stage == START { Picos(now.0 + self.look()) } else { now };
                let packets = [self.v.short, self.v.long];
                self.line(Turn { now: begun, ..turn }, flag.home, packets, agenda)
            }
        }
    }

    fn alarm(&mut self, now: Picos, resource: u32, agenda: &mut Agenda) {
        let site = self.site(resource);
        let Some((served, at, next)) = self.ports[resource as usize].alarm(now, site) else { return };
        agenda.resume(at, served.agent, served.stage);
        if let Some(next) = next {
            agenda.alarm(next, resource);
        }
    }

    fn wait(&mut self, _: Picos, sampled: Picos, rank: u32, flag: FlagAt, _: &mut Agenda) {
        let period = self.look() + self.v.on_box + 2 * self.distance(rank, flag.home) * self.v.hop;
        let tile = self.tiles[flag.home as usize];
        self.ports[tile as usize].poll(rank, sampled, period);
    }

    fn wake(&mut self, visible: Picos, rank: u32, flag: FlagAt) -> Option<Picos> {
        let tile = self.tiles[flag.home as usize];
        let service = if self.settings.ideal || self.chunked { 0 } else { self.v.port };
        let seen = self.ports[tile as usize].seen(rank, visible, service);
        Some(Picos(seen.0 + self.distance(rank, flag.home) * self.v.hop))
    }

    fn begin(&mut self, rank: u32, _: usize) {
        self.caches[rank as usize].forget(self.v.cache_lines);
    }
}

#[cfg(test)]
mod tests;

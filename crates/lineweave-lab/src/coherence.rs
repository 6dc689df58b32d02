//! Coherence against put/get: the same plans on two machines that differ in nothing else.
//!
//! Ramos & Hoefler 2013 conjecture that messages cost less if cores address each other directly than through caches that agree.
//! [`Twins`] have the same tiles, links and ports, and a line takes the same time L between any two cores; a core's own memory
//! costs nothing, and neither does a call. On one of them caches agree: who has a line reads it for nothing, who writes it takes
//! it from everybody, and who waits for a flag keeps its line until it is written. On the other a line is put into or got from a
//! message buffer, which no cache holds (Petrovic et al. 2012, section 3; Patil 2014): each access takes L again, and who waits
//! for a flag looks again and again.
//!
//! So without contention a line that is read once costs both the same, one that is read m times L and m L. A flag costs a
//! coherent machine two transfers, the writer's and then the reader's. The other takes one and what is left of a look. Of cores that
//! have W lines under way, a coherent one takes L / W for each line after the first, one with buffers has its first W lines together.

use crate::simulate::mesh::{self, FlagCost};
use crate::simulate::{moves, simulate, slot, Options, SimulateError};
use lineweave_core::algorithm::{self, Problem};
use lineweave_core::collective::Collective;
use lineweave_core::machine::{
    Access, Arbiter, Coherent, Contention, Controllers, Machine, Mesh, Network, Protocol, Rates, State,
    Status, Transfer, Value,
};
use lineweave_core::plan::{Params, Plan, PlanError, Space};
use lineweave_core::trace::Picos;

/// Two machines with the same constants.
#[derive(Clone, Debug)]
pub struct Twins {
    /// The one whose caches agree.
    pub caches: Machine,
    /// The one whose cores put into and get from message buffers.
    pub buffers: Machine,
    /// L: a line from one core to another.
    pub line_ns: f64,
    /// Cores of each.
    pub cores: usize,
    /// Bytes of a line.
    pub line_bytes: usize,
}

/// Times of one plan on both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Times {
    /// Time of the machine whose caches agree.
    pub caches: Picos,
    /// Time of the machine with message buffers.
    pub buffers: Picos,
}

impl Times {
    /// Returns how many times as long it takes with message buffers: above 1 coherence pays, below 1 it costs.
    pub fn ratio(self) -> f64 {
        self.buffers.0 as f64 / self.caches.0.max(1) as f64
    }
}

fn set<T>(value: T) -> Value<T> {
    let source = "one of two machines that differ in coherence alone".to_owned();
    Value { value: Some(value), low: None, high: None, status: Status::Inferred, source }
}

fn unset() -> Value {
    Value { value: None, low: None, high: None, status: Status::Unknown, source: "of no use here".to_owned() }
}

impl Twins {
    /// Returns two machines with the constants of `machine`, a mesh of either family.
    ///
    /// # Errors
    /// A [`SimulateError`] when it is no mesh, or does not know its size, a line's latency or how many are under way.
    pub fn of(machine: &Machine) -> Result<Twins, SimulateError> {
        let known = || {
            let network = machine.network()?;
            let [columns, rows, a_tile] =
                [&network.columns, &network.rows, &network.cores_per_tile].map(|v| v.value);
            let (columns, rows) = (columns?, rows?);
            // The mean distance of two tiles.
            let apart = |n: f64| (n * n - 1.0) / (3.0 * n);
            let (line_ns, in_flight) = match &machine.mesh {
                Some(mesh) => {
                    let routers = 1.0 + apart(columns) + apart(rows);
                    (mesh.box_ns.value? + 2.0 * routers * mesh.hop_ns.value?, mesh.in_flight.value?)
                }
                None => {
                    let transfer = machine.transfer.numa_ns.value.or(machine.transfer.l3_ns.value)?;
                    (transfer, machine.coherent.as_ref()?.accesses_in_flight.value?)
                }
            };
            let line = machine.line_bytes.value?;
            let flits = network.header_flits.value? + (line / network.link_bytes.value?).ceil();
            let link_ns = flits * 1e3 / network.mesh_mhz.value?;
            Some((
                network.clone(),
                (columns * rows * a_tile?) as usize,
                line_ns,
                in_flight,
                link_ns,
                line as usize,
            ))
        };
        let lacks =
            "it is no mesh of [mesh] or [coherent.mesh] whose size, latency and accesses in flight are known";
        let found = known().ok_or_else(|| SimulateError::lacks(machine, lacks))?;
        let (network, cores, line_ns, in_flight, link_ns, line_bytes) = found;
        let twin = Machine {
            topology: set(format!("pack:1 numa:1 l3:{cores} core:1")),
            transfer: Transfer {
                core_ns: set(line_ns),
                l3_ns: set(line_ns),
                numa_ns: set(line_ns),
                package_ns: set(line_ns),
                machine_ns: set(line_ns),
            },
            access: Access { local_ns: set(0.0), memory_ns: set(line_ns) },
            // Memory serves all at once, and adding costs nothing.
            rates: Rates {
                copy_bytes_per_ns: unset(),
                memory_bytes_per_ns: unset(),
                fold_bytes_per_ns: set(f64::INFINITY),
            },
            multi_line: Vec::new(),
            contention: [State::E, State::I].map(|send| contention(send, &network)).to_vec(),
            numa_transfer: Vec::new(),
            away: Vec::new(),
            reads: Vec::new(),
            coherent: None,
            mesh: None,
            matrix: None,
            measured: None,
            ..machine.clone()
        };
        let coherent = Coherent {
            protocol: set(Protocol::Mesi),
            accesses_in_flight: set(in_flight),
            prefetch_lines: set(0.0),
            network: Some(network.clone()),
        };
        let mesh = Mesh {
            network,
            hop_ns: set(0.0),
            in_flight: set(in_flight),
            issue_ns: set(link_ns),
            box_lines: set(65_536.0),
            buffer_flits: set(4.0),
            arbiter: set(Arbiter::Fifo),
            box_ns: set(line_ns),
            memory_read_ns: set(0.0),
            memory_write_ns: set(0.0),
            put_box_ns: set(0.0),
            put_memory_ns: set(0.0),
            get_box_ns: set(0.0),
            get_memory_ns: set(0.0),
            controllers: set(Controllers(vec![(0, 0)])),
            controller_ns: set(0.0),
            cache_bytes: set(line_bytes as f64),
        };
        Ok(Twins {
            caches: Machine { coherent: Some(coherent), ..twin.clone() },
            buffers: Machine { mesh: Some(mesh), ..twin },
            line_ns,
            cores,
            line_bytes,
        })
    }

    /// Plays a plan on both, each run when the one before has ended, and takes the mean of all runs but the first.
    ///
    /// # Errors
    /// A [`SimulateError`] when a twin cannot play it.
    pub fn play(&self, plan: &Plan, runs: usize) -> Result<Times, SimulateError> {
        // A flag is one access: a byte is written where it is.
        let mesh = mesh::Settings { flags: FlagCost::Byte, ..mesh::Settings::default() };
        let options = Options { runs, together: true, mesh, ..Options::default() };
        let on = |machine: &Machine| Ok(simulate(machine, plan, &options)?.each);
        Ok(Times { caches: on(&self.caches)?, buffers: on(&self.buffers)? })
    }
}

/// A line's home serves one request after the other, as a port does.
fn contention(send: State, network: &Network) -> Contention {
    let c_ns = set(network.port_ns.value.unwrap_or(0.0));
    Contention { send, recv: State::E, c_ns, b_ns: set(0.0), a_ns: set(0.0) }
}

/// Ranks 1 to `readers` read `lines` lines of rank 0's box, `again` times one after the other.
pub fn readers(readers: usize, lines: usize, again: usize, line_bytes: usize) -> Plan {
    let reads = (1..=readers).flat_map(|rank| (0..again).map(move |_| (rank, slot(0, 0), Space::Out)));
    moves(readers + 1, lines * line_bytes, 1, reads)
}

/// The algorithms that are compared.
pub const ALGORITHMS: [(Collective, &str); 7] = [
    (Collective::Barrier, "dissemination"),
    (Collective::Barrier, "all-to-all"),
    (Collective::Bcast, "flat"),
    (Collective::Bcast, "binomial"),
    (Collective::Bcast, "oc-bcast"),
    (Collective::Allreduce, "recursive-doubling"),
    (Collective::Allgather, "ring"),
];

/// Returns the plan of one of [`ALGORITHMS`]; no bytes travel in lines of flags, where a byte is a flag.
///
/// # Errors
/// A [`PlanError`] when the algorithm has none for these ranks and bytes.
pub fn plan(collective: Collective, name: &str, ranks: usize, bytes: usize) -> Result<Plan, PlanError> {
    let algorithm = algorithm::find_to_look_at(collective, name)?;
    let carries = algorithm.params.iter().any(|p| p.name == "carry");
    let params = if carries { Params::new().with("carry", 0) } else { Params::new() };
    let mut problem = Problem::flat(collective, ranks, if collective.moves_data() { bytes } else { 0 });
    problem.grain = if collective.folds() { 8 } else { 1 };
    algorithm.plan(&problem, &params)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::machine::shipped;
    use lineweave_core::plan::{Builder, Layout};

    fn twins(name: &str) -> Twins {
        Twins::of(shipped().iter().find(|m| m.name == name).unwrap()).unwrap()
    }

    /// A line that is read m times costs L where caches agree and m L where they do not: coherence pays by reuse, and by nothing else.
    #[test]
    fn coherence_pays_for_lines_that_are_read_again() {
        let twins = twins("intel-scc");
        for (lines, again) in [(1, 1), (8, 1), (1, 3), (8, 5)] {
            let times = twins.play(&readers(1, lines, again, twins.line_bytes), 1).unwrap();
            let once = lines as f64 * twins.line_ns;
            assert!((times.caches.nanos() - once).abs() < 0.01, "{lines} x {again}: {times:?}");
            assert!((times.buffers.nanos() - again as f64 * once).abs() < 0.01 * again as f64, "{times:?}");
        }
        // Readers of one line wait for its port, and those that its home does not space wait for links as well: 5 ns for each request and line.
        let port = twins.buffers.network().unwrap().port_ns.value.unwrap();
        let many = twins.play(&readers(20, 1, 1, twins.line_bytes), 1).unwrap();
        let served = twins.line_ns + 19.0 * port;
        assert!((many.caches.nanos() - served).abs() < 0.01, "{many:?} {served}");
        assert!((served - 0.01..served + 20.0 * 5.0).contains(&many.buffers.nanos()), "{many:?} {served}");
    }

    /// A flag that somebody waits for costs two transfers where caches agree: the writer takes the line, and the reader asks for it again. Without
    /// caches it costs the way of the write and what is left of a look, at least one transfer and less than two and a half.
    #[test]
    fn coherence_costs_a_transfer_for_each_flag() {
        let twins = twins("intel-scc");
        let mut b = Builder::new(Collective::Barrier, "flags", &Params::new(), 2, 0, 0, 1);
        let passed = b.flags("passed", Layout::Alone, 1);
        let times = 40;
        for n in 1..=times {
            for (rank, peer) in [(0, 1), (1, 0)] {
                if rank == 0 {
                    b.set(0, passed.at(peer, 0), n);
                }
                b.wait(rank, passed.at(rank, 0), n);
                if rank == 1 {
                    b.set(1, passed.at(peer, 0), n);
                }
            }
        }
        let took = twins.play(&b.finish(), 1).unwrap();
        let a_flag = |picos: Picos| picos.nanos() / f64::from(2 * times) / twins.line_ns;
        assert!((a_flag(took.caches) - 2.0).abs() < 0.05, "{took:?}");
        assert!((1.0..2.0).contains(&a_flag(took.buffers)), "{took:?}");
    }

    /// Both twins keep ports and links busy, and every algorithm that is compared is played to its end on both.
    #[test]
    fn every_algorithm_is_played_on_both() {
        for name in ["intel-scc", "knights-landing-7210"] {
            let twins = twins(name);
            for (collective, algorithm) in ALGORITHMS {
                for (ranks, bytes) in [(2, 64), (13, 1 << 10)] {
                    let plan = plan(collective, algorithm, ranks, bytes).unwrap();
                    match twins.play(&plan, 3) {
                        Ok(times) => assert!(times.caches.0 > 0 && times.buffers.0 > 0, "{algorithm}"),
                        Err(SimulateError::Payload { .. }) => assert!(bytes < 100, "{algorithm}"),
                        Err(other) => panic!("{algorithm}: {other}"),
                    }
                }
            }
        }
        let phi = shipped().iter().find(|m| m.name == "xeon-phi-5110p").unwrap();
        assert!(Twins::of(phi).unwrap_err().to_string().contains("[coherent.mesh]"));
    }
}

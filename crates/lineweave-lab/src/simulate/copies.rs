//! Shared memory by transfers: a machine of which only the speed of copies is known.
//!
//! The view of Rico-Gallego & Diaz-Martin 2015: what costs time are copies between user buffers and intermediate ones, and
//! copies that go on at once share the memory of a node. Synchronisation costs nothing ("messages that are large enough
//! to ignore synchronization costs").
//!
//! 1. A user buffer is in the memory of its rank's node, a box in a cache ("a transfer between main memory (user buffer)
//!    and L3 cache (intermediate segments)", section 5).
//! 2. A copy alone takes its bytes at the speed of a core; one that writes memory `write` times as long as one that reads it.
//! 3. Copies that use the memory of one node at once share it evenly, as soon as they are more than it bears at full
//!    speed. A copy from box to box uses none.

use super::{play, SimulateError, Step};
use super::{
    Access, Address, Agenda, Agent, Buffer, Fabric, Fidelity, FlagAt, Lanes, Options, Outcome, Playable,
};
use lineweave_core::plan::{Footprint, Plan};
use lineweave_core::trace::Picos;
use lineweave_core::units::LINE;

/// Rates of a machine of which only the speed of copies is known.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rates {
    /// Bytes per ns of a copy alone that reads memory.
    pub copy: f64,
    /// Number of such copies that a node's memory bears at full speed.
    pub bears: f64,
    /// Work of writing memory, as a multiple of the work of reading it.
    pub write: f64,
}

/// Plays `plan` where the ranks' nodes are `homes`, one a rank.
///
/// # Errors
/// A [`SimulateError`] when the plan cannot be played, or there are fewer homes than ranks.
pub fn simulate(
    rates: Rates,
    homes: &[usize],
    plan: &Plan,
    options: &Options,
) -> Result<Outcome, SimulateError> {
    super::within_memory(plan, options)?;
    if homes.len() < plan.ranks {
        return Err(SimulateError::TooManyRanks {
            machine: "of which only copies are known".to_owned(),
            ranks: plan.ranks,
            cores: homes.len(),
        });
    }
    let program =
        Playable::compile(plan, &Footprint::of(plan, LINE), options.banks)?.together(options.together);
    let nodes = homes.iter().max().map_or(0, |n| n + 1);
    let mut copies = Copies {
        rates,
        homes: homes.to_vec(),
        sources: vec![None; plan.ranks],
        nodes: vec![Node::default(); nodes],
    };
    // Copies are played as a whole: what they share is looked at whenever one begins or ends.
    let played = play(&mut copies, &program, options.runs.max(1), Fidelity::Chunk, options.trace)?;
    Ok(Outcome::of(plan, played, options.trace))
}

/// A copy under way.
#[derive(Clone, Copy, Debug)]
struct Flow {
    agent: Agent,
    /// Bytes still to go, weighted.
    left: f64,
}

/// A node's memory.
#[derive(Clone, Debug, Default)]
struct Node {
    flows: Vec<Flow>,
    /// Until when the flows have been followed.
    at: Picos,
    /// Time at which the next flow ends.
    alarm: Option<Picos>,
}

#[derive(Debug)]
struct Copies {
    rates: Rates,
    homes: Vec<usize>,
    /// Address that each rank's copy reads from.
    sources: Vec<Option<Address>>,
    nodes: Vec<Node>,
}

/// The copy is over.
const OVER: u8 = 1;

impl Copies {
    /// Weighted bytes per ps of each of `n` copies.
    fn speed(&self, n: usize) -> f64 {
        self.rates.copy / 1e3 * (self.rates.bears / n as f64).min(1.0)
    }

    /// Follows the copies of a node up to now.
    fn follow(&mut self, node: usize, now: Picos) {
        let speed = self.speed(self.nodes[node].flows.len().max(1));
        let it = &mut self.nodes[node];
        let done = now.0.saturating_sub(it.at.0) as f64 * speed;
        it.flows.iter_mut().for_each(|f| f.left -= done);
        it.at = now;
    }

    /// Asks to be called when the next copy of a node ends.
    fn plan_ahead(&mut self, node: usize, now: Picos, agenda: &mut Agenda) {
        let speed = self.speed(self.nodes[node].flows.len().max(1));
        let it = &mut self.nodes[node];
        let least = it.flows.iter().map(|f| f.left).fold(f64::INFINITY, f64::min);
        it.alarm = least.is_finite().then(|| Picos(now.0 + (least.max(0.0) / speed).ceil() as u64));
        if let Some(at) = it.alarm {
            agenda.alarm(at, node as u32);
        }
    }

    /// The node whose memory a place uses.
    fn memory(&self, place: Address) -> Option<usize> {
        match place {
            Address::Slot { .. } | Address::Private { buffer: Buffer::Acc, .. } => None,
            Address::Private { owner, buffer: Buffer::In | Buffer::Out, .. } => {
                Some(self.homes[owner as usize])
            }
        }
    }
}

impl Fabric for Copies {
    fn line_bytes(&self) -> usize {
        LINE
    }

    fn lanes(&self) -> Lanes {
        Lanes { count: 1, gap: Picos(0) }
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
        let here = Step::Done { at: now, visible: now };
        if stage == OVER {
            return here;
        }
        match *access {
            Access::Read { from, .. } => {
                self.sources[rank as usize] = Some(from);
                here
            }
            Access::Write { to, len } => {
                let reads = self.sources[rank as usize].and_then(|from| self.memory(from));
                let (node, work) = match (self.memory(to), reads) {
                    (Some(node), _) => (node, len as f64 * self.rates.write),
                    (None, Some(node)) => (node, len as f64),
                    // From cache to cache.
                    (None, None) => {
                        let at = Picos(now.0 + (len as f64 / self.speed(1)).ceil() as u64);
                        return Step::Done { at, visible: at };
                    }
                };
                self.follow(node, now);
                self.nodes[node].flows.push(Flow { agent, left: work });
                self.plan_ahead(node, now, agenda);
                Step::Parked
            }
            Access::Call(_)
            | Access::Combine { .. }
            | Access::Set { .. }
            | Access::Poll { .. }
            | Access::Add { .. } => here,
        }
    }

    fn alarm(&mut self, now: Picos, resource: u32, agenda: &mut Agenda) {
        let node = resource as usize;
        if self.nodes[node].alarm != Some(now) {
            return; // Another copy has begun since.
        }
        self.follow(node, now);
        // What is less than a picosecond of work is over: times are whole picoseconds.
        let least = self.speed(self.nodes[node].flows.len().max(1)) / 2.0;
        let (over, on): (Vec<Flow>, Vec<Flow>) = self.nodes[node].flows.iter().partition(|f| f.left <= least);
        self.nodes[node].flows = on;
        over.iter().for_each(|f| agenda.resume(now, f.agent, OVER));
        self.plan_ahead(node, now, agenda);
    }

    fn wait(&mut self, _: Picos, _: Picos, _: u32, _: FlagAt, _: &mut Agenda) {}

    fn wake(&mut self, visible: Picos, _: u32, _: FlagAt) -> Option<Picos> {
        Some(visible)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lineweave_core::collective::Collective;
    use lineweave_core::plan::{Builder, Params, Region, Space};
    use lineweave_core::units::Rank;

    const RATES: Rates = Rates { copy: 2.0, bears: 2.0, write: 1.5 };

    /// `n` ranks of one node copy 1,000 bytes into their boxes and out of them again.
    fn both_ways(n: usize, homes: &[usize]) -> Outcome {
        let mut b = Builder::new(Collective::Bcast, "copies", &Params::new(), n, 0, 1000, 1);
        let slot = b.slot(1000);
        for rank in 0..n {
            let own = Region::new(Space::Slot { rank: Rank::from(rank), slot }, 0..1000);
            b.mov(rank, Region::new(Space::In, 0..1000), own);
            b.mov(rank, own, Region::new(Space::Out, 0..1000));
        }
        simulate(RATES, homes, &b.finish(), &Options::default()).unwrap()
    }

    #[test]
    fn copies_share_a_node_once_there_are_too_many() {
        // 500 ns to read, 750 to write; with four copies of which two go at full speed, twice as long.
        for (n, homes, ns) in [
            (1, &[0][..], 1250.0),
            (2, &[0, 0], 1250.0),
            (4, &[0, 0, 0, 0], 2500.0),
            (4, &[0, 0, 1, 1], 1250.0),
        ] {
            assert_eq!(both_ways(n, homes).first.nanos(), ns, "{n} {homes:?}");
        }
        assert_eq!(both_ways(4, &[0, 0, 0, 1]).first.nanos(), 1875.0);
    }

    #[test]
    fn ranks_without_a_node_are_refused() {
        let plan = Builder::new(Collective::Barrier, "none", &Params::new(), 3, 0, 0, 1).finish();
        let refused = simulate(RATES, &[0, 0], &plan, &Options::default());
        assert!(
            matches!(refused, Err(SimulateError::TooManyRanks { ranks: 3, cores: 2, .. })),
            "{refused:?}"
        );
    }
}

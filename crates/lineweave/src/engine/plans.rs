//! Plans that an engine can run, and the memory that their runs need.

use crate::compile::{Compiled, PlanId, Steps, PEERS};
use crate::scratch::Scratch;
use crate::segment::Setup;
use std::ops::{Index, IndexMut};
use std::time::Duration;

/// A call that plans keep waiting so long counts as held up. Compiling a plan that is chosen takes less.
pub(super) const HELD_UP: Duration = Duration::from_micros(100);

/// One rank's plans.
pub(super) struct Plans {
    compiled: Vec<Compiled>,
    /// Ids of plans that were given up.
    vacant: Vec<PlanId>,
    /// Time that it took to choose, prove and compile the plans.
    pub took: Duration,
    /// Calls that this held up for [`HELD_UP`] or longer.
    pub held_up: usize,
    /// Bytes of counters that they use.
    pub counter_bytes: usize,
    bases: Vec<*mut u8>,
    pub scratch: Scratch,
    /// Scratch memory for operands that come from another process's memory.
    pub reach_room: Scratch,
    /// A copy of `in`, when a plan cannot run in place and the caller does.
    pub shadow: Scratch,
}

impl Plans {
    pub fn new() -> Plans {
        Plans {
            compiled: Vec::new(),
            vacant: Vec::new(),
            took: Duration::ZERO,
            held_up: 0,
            counter_bytes: 0,
            bases: vec![std::ptr::null_mut(); PEERS as usize],
            scratch: Scratch::default(),
            reach_room: Scratch::default(),
            shadow: Scratch::default(),
        }
    }

    /// Takes one in, and makes room for the buffers of its runs.
    pub fn add(&mut self, plan: Compiled) -> PlanId {
        if self.bases.len() < plan.bases {
            self.bases.resize(plan.bases, std::ptr::null_mut());
        }
        if let Some(id) = self.vacant.pop() {
            self[id] = plan;
            return id;
        }
        self.compiled.push(plan);
        PlanId(self.compiled.len() as u32 - 1)
    }

    /// Gives one up that will not be run again.
    pub fn remove(&mut self, id: PlanId) {
        self[id].steps = Steps::default();
        self.vacant.push(id);
    }

    /// One that is about to run, and where it finds its buffers.
    #[inline(always)]
    pub fn at_work(&mut self, id: PlanId) -> (&Compiled, &mut [*mut u8]) {
        (&self.compiled[id.0 as usize], &mut self.bases)
    }

    /// Returns the costs of the plans so far.
    pub fn setup(&self) -> Setup {
        Setup {
            plans: self.compiled.len() - self.vacant.len(),
            plan_bytes: self.compiled.iter().map(Compiled::bytes).sum(),
            took: self.took,
            held_up: self.held_up,
        }
    }

    /// Bytes of this rank's own memory.
    pub fn private_bytes(&self) -> usize {
        self.scratch.bytes() + self.reach_room.bytes() + self.shadow.bytes() + self.setup().plan_bytes
    }
}

impl Index<PlanId> for Plans {
    type Output = Compiled;

    #[inline(always)]
    fn index(&self, id: PlanId) -> &Compiled {
        &self.compiled[id.0 as usize]
    }
}

impl IndexMut<PlanId> for Plans {
    #[inline(always)]
    fn index_mut(&mut self, id: PlanId) -> &mut Compiled {
        &mut self.compiled[id.0 as usize]
    }
}

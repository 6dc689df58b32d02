//! Interface of a family of machines: how long one elementary access takes, and what it keeps busy.

use super::agenda::{Agenda, Agent};
use super::names::Names;
use super::program::{Address, FlagAt};
use lineweave_core::trace::{Kind, Picos};

/// One elementary access of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// An op begins: its cost before its first byte.
    Call(Call),
    /// Bytes are brought into the core's registers: one line, or a chunk of lines.
    Read {
        /// First byte.
        from: Address,
        /// Number of bytes.
        len: usize,
    },
    /// Bytes leave the core's registers: one line, or a chunk of lines.
    Write {
        /// First byte.
        to: Address,
        /// Number of bytes.
        len: usize,
    },
    /// The core combines two operands of this many bytes, both in its registers.
    Combine {
        /// Bytes of the result.
        len: usize,
    },
    /// A flag is raised.
    Set {
        /// Flag that is raised.
        flag: FlagAt,
        /// Bytes that travel with it.
        payload: usize,
    },
    /// A flag is read.
    Poll {
        /// Flag that is read.
        flag: FlagAt,
    },
    /// One is added to a counter.
    Add {
        /// Counter that is added to.
        flag: FlagAt,
    },
}

/// An op that begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// Kind of the op.
    pub kind: Kind,
    /// Source of a move; first operand of a fold. `None` for ops on flags.
    pub from: Option<Address>,
    /// Destination of a move or fold. `None` for ops on flags.
    pub to: Option<Address>,
}

/// Next step of an access.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// [`Fabric::step`] is to be called again at this time, with this stage.
    Later {
        /// Time of the next step; not before now.
        at: Picos,
        /// Part of the access that comes next.
        stage: u8,
    },
    /// The access is over.
    Done {
        /// Time at which the core that issued it goes on.
        at: Picos,
        /// Time from which others see what was written; for a read, the time at which it was sampled.
        visible: Picos,
    },
    /// It waits for a resource, whose [`Fabric::alarm`] will [resume](Agenda::resume) it.
    Parked,
    /// A set that the core has handed to its store buffer: the core goes on, and the fabric says with
    /// [`Agenda::land`] from when others see it. Sets of one flag land in order.
    Posted {
        /// Time at which the core goes on.
        at: Picos,
    },
}

/// Number of accesses that one core has under way, and the gap between them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lanes {
    /// The most accesses that one core has under way at once.
    pub count: u32,
    /// Time between two accesses that a core issues at the beginning of an op.
    pub gap: Picos,
}

/// A machine: resources with the times from which they are free.
///
/// [`Fabric::step`] is called in the order of (time, agent), so resources can be reserved as they are asked for.
pub trait Fabric {
    /// Length of a line, in bytes.
    fn line_bytes(&self) -> usize;

    /// Returns the number of accesses that a core has under way.
    fn lanes(&self) -> Lanes;

    /// Begins (`stage` 0) an access of `agent`'s rank, or goes on with it.
    fn step(
        &mut self,
        now: Picos,
        agent: Agent,
        rank: u32,
        access: &Access,
        stage: u8,
        agenda: &mut Agenda,
    ) -> Step;

    /// A resource asked to be called now.
    fn alarm(&mut self, now: Picos, resource: u32, agenda: &mut Agenda) {
        let _ = (now, resource, agenda);
    }

    /// Returns the number of flags that a rank polls at once, where its program waits for several in a row.
    fn polls_at_once(&self) -> usize {
        1
    }

    /// A rank begins to wait for a flag, and polls these too, which are the next ones it waits for.
    fn ahead(&mut self, now: Picos, rank: u32, flags: &[FlagAt], agenda: &mut Agenda) {
        let _ = (now, rank, flags, agenda);
    }

    /// A rank read a flag at `sampled`, in vain, knows that at `now`, and keeps looking at it.
    fn wait(&mut self, now: Picos, sampled: Picos, rank: u32, flag: FlagAt, agenda: &mut Agenda);

    /// Returns the time at which a waiting rank goes on, its flag becoming visible at `visible`, after [`Fabric::wait`] was called;
    /// `None` when the fabric will [resume](Agenda::resume) its lane 0, which is then past the wait.
    fn wake(&mut self, visible: Picos, rank: u32, flag: FlagAt) -> Option<Picos>;

    /// A rank begins a run. What earlier runs left in its cache is of no use: a collective's buffers are
    /// others than the last one's.
    fn begin(&mut self, rank: u32, run: usize) {
        let _ = (rank, run);
    }

    /// Adds the state of all resources to a key, as [`bounds`](super::bounds) compares states.
    fn key(&self, now: Picos, names: &Names, key: &mut Vec<u64>) {
        let _ = (now, names, key);
    }
}

//! Behaviour of a cache line: the caches that have it, the cost of a load or a store of it, and the cores that this makes wait.
//!
//! One automaton with two drivers. [`crate::cost`] plays plans on a model, fast, to choose among them; the laboratory's `simulate` plays
//! them on a described machine, line by line, with a trace. Both ask the same [`Line`] and send stores through the same
//! [`Stores`]; what differs is where [`Prices`] come from.
//!
//! 1. A line is in no cache, in one cache that may write it, or shared by several (Ramos & Hoefler 2013, section 1.2).
//! 2. Its home serves requests one after the other, in the order of their arrival. A read keeps it busy for the slope of
//!    T_C (Eq. 3.2); a read of a modified line until it has arrived, since until then nobody else can supply it.
//! 3. A store takes the line from everybody who has it, at the price of the farthest, after all that was served before
//!    has arrived. Several writers of one line follow each other: each pays for ownership.
//! 4. Whoever polls a line keeps a copy. When a store takes it away, the poller asks again at that moment and queues, so that pollers
//!    delay the next writer.
//! 5. A read of a line that one other cache has modified may take it over whole ([`Prices::upgrade`]): the store
//!    that follows finds it there. Such a read takes half of the transfer to get to the owner, who still writes meanwhile. That is
//!    why two ranks that exchange over one line pay one transfer a run, and why a third rank, or a partner that changes, ends it.
//! 6. Stores leave a core in order, and those to lines of others some time apart ([`Stores`]). A driver that plays bytes as a whole lets them
//!    wait until the flags set before them have landed ([`Stores::have_landed`]).
//! 7. A line has a home, where its memory is. Caches ask there who has the line, so a transfer depends on the home as well as on the
//!    two cores: [`Prices`] are told it. A driver names homes as it likes: by NUMA nodes, or by the ranks in whose boxes lines lie.
//!
//! 8. A request may wait on its way to the home and to the caches that have the line ([`Prices::sent`]); then all of it is that much later.
//!
//! Not here: capacity and eviction (copies of measured sizes have them), and the links between caches, which a driver may know.

mod line;
mod stores;

pub use line::{Found, Line};
pub use stores::{Leave, Stores};

use crate::machine::{Protocol, State};
use crate::trace::Picos;

/// Number of groups of cores that a core is in: see [`Prices::groups`].
pub const GROUPS: usize = 6;

/// Prices of the transfers of a line, in picoseconds.
pub trait Prices {
    /// Protocol, which names the core that answers for a line that several caches share.
    fn protocol(&self) -> Protocol;

    /// A line that the core has.
    fn hit(&self) -> u64;

    /// Reading a line that `from` has in this state.
    fn read(&self, core: u32, from: u32, home: u32, state: State) -> u64;

    /// The groups of cores that a core is in, if the price of a read depends on the core, the home and the smallest group that both cores are in,
    /// and on nothing else: the core alone, larger and larger groups, each within the next, and all cores. No two groups have the same number, and numbers
    /// begin at 0. A line that hundreds share is then priced without asking for each of them.
    fn groups(&self, _core: u32) -> Option<[u32; GROUPS]> {
        None
    }

    /// Reading a line from a core with which this is the smallest group in common, as [`Prices::groups`] counts them.
    fn read_within(&self, _core: u32, _group: usize, _home: u32) -> u64 {
        0
    }

    /// Taking a line away from `from`, which has it in this state.
    fn own(&self, core: u32, from: u32, home: u32, state: State) -> u64;

    /// `core` asks the home, which asks the caches `from` that have the line; the first of them answers with the line if `fetches`, the others
    /// that they have given it up. Returns from when the request that is made at `now` counts: later where messages wait.
    fn sent(
        &mut self,
        now: Picos,
        _core: u32,
        _home: u32,
        _from: impl Iterator<Item = u32>,
        _fetches: bool,
    ) -> Picos {
        now
    }

    /// A line that no cache has, from memory: from when it is served when it is asked for at `now`, and how long it takes.
    fn memory(&mut self, now: Picos, core: u32, home: u32) -> (Picos, u64);

    /// Time for which a line that was asked for keeps others waiting, when the transfer takes this long.
    fn service(&self, found: Found, transfer: u64) -> u64;

    /// The `nth` line in a row, from 1, when one alone takes `first`.
    fn nth(&self, found: Found, nth: u64, first: u64) -> u64;

    /// Cost of a store to a line that was just read out of the one cache that had modified it, where such a read takes
    /// the line over; `None` where both caches share it then.
    fn upgrade(&self) -> Option<u64>;
}

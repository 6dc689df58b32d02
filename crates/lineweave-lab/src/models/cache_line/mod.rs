//! The cache-line model of Ramos & Hoefler 2013: what reading a line costs by its state and place, and what
//! collectives cost that are made of such reads.
//!
//! - here: R by location and state, T_C (Eq. 3.2 and 3.3) and T_N (Eq. 3.1) of a described machine;
//! - `clusters`: which states cost the same (Tables 1.5b and 1.8);
//! - `ping_pong`: one line there and back, with Welch's test (Eq. 2.1 to 2.20);
//! - `collectives`: min-max models of broadcast, barrier and reduction (Eq. 4.1 to 4.14);
//! - `bandwidth`: many lines between buffers in memory (Eq. A.1).
//!
//! All of it takes numbers of one [`Machine`] and fails with [`CacheLineError`] where that machine's
//! were never measured. Valid for one thread a core, other cores idle, and lines of the machine's length.

mod bandwidth;
mod clusters;
mod collectives;
mod ping_pong;
mod published;

pub use bandwidth::{bandwidth, CopyRate};
pub use clusters::{cells, clusters, Cell, Cluster, NOISE};
pub use collectives::{
    barrier, flat_broadcast, notify_back, notify_forward, notify_level, pipelined_broadcast, reduction,
    reduction_level, small_broadcast, small_broadcast_level, Folding, MinMax,
};
pub use ping_pong::{estimate, Comparison, Sample};
pub(crate) use published::deepest;
pub use published::{MinMaxModel, BEST, WORST};

use lineweave_core::machine::{Location, Machine, State, Value};
use lineweave_core::model::{known, one_line, several_lines, Contention, Fitted, MultiLine};
use lineweave_core::topology::Level;

/// A number of the model that nobody measured on this machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is unknown for {machine}: {why}; take a machine that describes it, such as xeon-phi-5110p")]
pub struct CacheLineError {
    /// The symbol: `R_N,E`.
    pub what: String,
    /// The machine.
    pub machine: String,
    /// Remark of the machine's description in place of the number.
    pub why: String,
}

impl CacheLineError {
    fn unknown(what: impl Into<String>, machine: &Machine, why: impl Into<String>) -> CacheLineError {
        CacheLineError { what: what.into(), machine: machine.name.clone(), why: why.into() }
    }
}

/// The paper's symbol for reading a line: `R_N,M`.
pub fn symbol(location: Location, state: State) -> String {
    format!("R_{},{}", location.letter(), state.name())
}

/// R by location and state, in ns: from the machine's table of states, or from its transfers of modified lines and
/// its access times, which know no deviation.
///
/// # Errors
/// [`CacheLineError`].
pub fn read(machine: &Machine, location: Location, state: State) -> Result<Fitted, CacheLineError> {
    let cell = machine.reads.iter().find(|r| r.location == location && r.state == state);
    if let Some(found) = cell.and_then(|c| known(&c.mean_ns)) {
        return Ok(found);
    }
    let unknown = |why: &str| CacheLineError::unknown(symbol(location, state), machine, why);
    let or = |value: &Value| known(value).ok_or_else(|| unknown(&value.source));
    match (location, state) {
        (Location::Core, State::M | State::E) => or(&machine.access.local_ns),
        (Location::Machine, State::I) => Err(unknown("memory of another package was not measured")),
        (_, State::I) => or(&machine.access.memory_ns),
        (Location::Machine, State::M) => or(&machine.transfer.machine_ns),
        (_, State::M) => {
            let near = known(&machine.transfer.l3_ns).or_else(|| known(&machine.transfer.numa_ns));
            near.ok_or_else(|| unknown(&machine.transfer.numa_ns.source))
        }
        (_, State::E | State::S | State::F) => Err(unknown("measured only for modified lines")),
    }
}

/// R_L, R_R and R_I, in ns: the simplified model (Table 1.5b), where only place matters for a cached line.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Reads {
    /// R_L: the line is in the own cache.
    pub local: f64,
    /// R_R: it is in another core's.
    pub remote: f64,
    /// R_I: it is in none.
    pub invalid: f64,
}

impl Reads {
    /// Returns the reads of a machine whose ranks are at most `level` apart. Where distance matters, R_R is that of the
    /// farthest pair, so that closed forms with one R_R are on the safe side.
    ///
    /// # Errors
    /// [`CacheLineError`].
    pub fn of(machine: &Machine, level: Level) -> Result<Reads, CacheLineError> {
        let within = Level::ALL.iter().rev().filter(|&&l| l <= level);
        let remote = within.filter_map(|&l| machine.transfer(l).value).next();
        let get = |value: &Value, what: &str| {
            value.value.ok_or_else(|| CacheLineError::unknown(what, machine, &value.source))
        };
        Ok(Reads {
            local: get(&machine.access.local_ns, "R_L")?,
            remote: remote
                .ok_or_else(|| CacheLineError::unknown("R_R", machine, &machine.transfer(level).source))?,
            invalid: get(&machine.access.memory_ns, "R_I")?,
        })
    }
}

/// T_C(n) = c n + b - a / n: `n` threads copying one line at once (Eq. 3.2; with `a`, Eq. 3.3). The `a` is zero where
/// the line is in a cache.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SameLine {
    /// c and b.
    pub linear: Contention,
    /// The coefficient a of Eq. 3.3, in ns.
    pub a: Fitted,
}

impl SameLine {
    /// T_C for buffers in these states at the owner and at the readers.
    ///
    /// # Errors
    /// [`CacheLineError`].
    pub fn of(machine: &Machine, send: State, recv: State) -> Result<SameLine, CacheLineError> {
        let (linear, a) = one_line(machine, send, recv).ok_or_else(|| {
            let what = format!("T_C for states {}-{}", send.name(), recv.name());
            CacheLineError::unknown(what, machine, "contention for one line was not measured")
        })?;
        Ok(SameLine { linear, a })
    }

    /// ns until `n` threads have the line, as fitted. Valid for one thread or more, as many as were measured.
    pub fn fitted(&self, n: f64) -> f64 {
        self.linear.at(n) - self.a.value / n
    }

    /// ns until `n` threads have the line, the first as if it were alone: R_R + R_L + c (n - 1), the second form
    /// of Eq. 4.5. The paper's tables of parameters follow from this form.
    pub fn from_reads(&self, reads: &Reads, n: f64) -> f64 {
        reads.remote + reads.local + self.linear.c.value * (n - 1.0)
    }
}

/// T_N for buffers in these states at sender and receiver (Eq. 3.1, Table 3.1), fitted to 1 to 128 lines.
///
/// # Errors
/// [`CacheLineError`].
pub fn multi_line(machine: &Machine, send: State, recv: State) -> Result<MultiLine, CacheLineError> {
    several_lines(machine, send, recv).ok_or_else(|| {
        let what = format!("T_N for states {}-{}", send.name(), recv.name());
        CacheLineError::unknown(what, machine, "transfers of several lines were not measured")
    })
}

#[cfg(test)]
mod tests;

//! Why a plan is wrong, as a counter-example that a person can follow.

use crate::units::Rank;
use std::fmt;

/// A step of one rank: where it is and what it does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// Whose.
    pub rank: Rank,
    /// Number of the run, of several back to back, from 0.
    pub run: usize,
    /// Step of the rank's program.
    pub step: Step,
    /// The op as text, or what happens as a rank enters or leaves.
    pub text: String,
}

/// Position of a rank in its program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Step {
    /// Its caller has filled `in` and enters.
    Enter,
    /// The op with this index, from 0.
    Op(usize),
    /// It returns: its caller may read `out` and change both buffers.
    Leave,
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {}", self.rank)?;
        if let Step::Op(i) = self.step {
            write!(f, " op {i}")?;
        }
        if self.run > 0 {
            write!(f, " of run {}", self.run)?;
        }
        write!(f, " `{}`", self.text)
    }
}

/// Two accesses to the same bytes that nothing orders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Race {
    /// The bytes, as `slot 0 of rank 2 [0..64]`.
    pub place: String,
    /// The access that was seen first.
    pub first: Site,
    /// True if it writes.
    pub first_writes: bool,
    /// The other one.
    pub second: Site,
    /// True if it writes.
    pub second_writes: bool,
    /// The last step of `first`'s rank that is known to come before `second`; `None` when not even its entry.
    pub known: Option<Site>,
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verb = |writes| if writes { "writes" } else { "reads" };
        write!(
            f,
            "race on {}: {} {} it, {} {} it, and no flag orders the one before the other: ",
            self.place,
            self.first,
            verb(self.first_writes),
            self.second,
            verb(self.second_writes)
        )?;
        match &self.known {
            Some(site) => write!(
                f,
                "the last step of rank {} known to precede rank {}'s is {site}",
                self.first.rank, self.second.rank
            ),
            None => write!(
                f,
                "nothing of rank {} is known to precede rank {}'s",
                self.first.rank, self.second.rank
            ),
        }
    }
}

/// Why ranks wait for ever.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cause {
    /// A wait that no op of the plan satisfies.
    NothingSets {
        /// The wait.
        wait: Site,
        /// The largest value that is set there in a run, or the number of adds.
        reached: Option<i32>,
    },
    /// Waits each of which needs an op behind the next one.
    Cycle(Vec<Site>),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::NothingSets { wait, reached: None } => {
                write!(f, "{wait}: no op of the plan sets this flag")
            }
            Cause::NothingSets { wait, reached: Some(n) } => {
                write!(f, "{wait}: the plan raises this flag to {n} only")
            }
            Cause::Cycle(sites) => {
                for site in sites {
                    write!(f, "{site}, which needs ")?;
                }
                match sites.first() {
                    Some(first) => write!(f, "rank {} to go on", first.rank),
                    None => Ok(()),
                }
            }
        }
    }
}

/// Why a plan is not correct.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The plan as a whole does not add up.
    #[error("malformed plan: {0}")]
    Malformed(String),
    /// One op is malformed.
    #[error("{site}: {fault}")]
    Shape {
        /// The op.
        site: Box<Site>,
        /// Fault of the op.
        fault: String,
    },
    /// Two ranks set one signal flag.
    #[error("{second} sets a flag that {first} sets too: a signal flag has one writer")]
    SecondWriter {
        /// One.
        first: Box<Site>,
        /// The other.
        second: Box<Site>,
    },
    /// An op reads what nobody wrote in this run.
    #[error("{site} reads {place}, which nothing has written")]
    Undefined {
        /// The op.
        site: Box<Site>,
        /// Bytes that the op reads.
        place: String,
    },
    /// A peer's buffer is used before its address was taken in this run.
    #[error("{site} uses {space}, but rank {} has not taken that address in this run", site.rank)]
    NoAddress {
        /// The op.
        site: Box<Site>,
        /// The buffer.
        space: String,
    },
    /// A fold combines different positions of the message, or splits an element.
    #[error("{site} combines {left} with {right}: operands must be the same whole elements of the message")]
    Misaligned {
        /// The fold.
        site: Box<Site>,
        /// Left operand as found.
        left: String,
        /// Right operand as found.
        right: String,
    },
    /// Bytes of `out` are not what the collective promises.
    #[error("{site}: out@{}[{}..{}] should hold {expected}, but holds {found}", site.rank, bytes.start, bytes.end)]
    WrongResult {
        /// Site at which the rank returns.
        site: Box<Site>,
        /// Range of `out` with a wrong result.
        bytes: std::ops::Range<usize>,
        /// Expected content.
        expected: String,
        /// Content that was found.
        found: String,
    },
    /// Two ranks of an allreduce combine the contributions differently, so that their bits may differ.
    #[error(
        "bytes {}..{} are combined as {first_tree} at rank {first}, but as {second_tree} at rank {second}: \
         every rank must have the same bits",
        bytes.start, bytes.end
    )]
    TreesDiffer {
        /// Range of `out` that the two ranks combine differently.
        bytes: std::ops::Range<usize>,
        /// One rank.
        first: Rank,
        /// Its tree.
        first_tree: String,
        /// Another rank.
        second: Rank,
        /// Its tree.
        second_tree: String,
    },
    /// A barrier that lets a rank go too early.
    #[error("rank {early} can leave the barrier before rank {late} has entered")]
    NotSynchronized {
        /// Leaves.
        early: Rank,
        /// Has not entered.
        late: Rank,
    },
    /// Two unordered accesses, one of which writes.
    #[error("{0}")]
    Race(Box<Race>),
    /// Adds of one run may be counted for another.
    #[error("{late} adds to a counter, and nothing orders it after {early}: waits of run {} may count it", early.run)]
    CounterOverlap {
        /// An add of the earlier run.
        early: Box<Site>,
        /// An add of the later run.
        late: Box<Site>,
    },
    /// Adds to come may hide from a wait what it waits for.
    #[error("{wait} may still look at the counter when run {} adds to it: no add of run {} follows that wait", wait.run + 2, wait.run + 1)]
    CounterUnread {
        /// The wait.
        wait: Box<Site>,
    },
    /// Ranks wait for ever.
    #[error("deadlock of {} ranks: {cause}", stuck.len())]
    Deadlock {
        /// Site at which each of them waits.
        stuck: Vec<Site>,
        /// Why.
        cause: Cause,
    },
}

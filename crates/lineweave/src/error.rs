//! Everything that can go wrong at run time, in words a person can act on.

use lineweave_core::collective::Collective;
use lineweave_core::names::shortened;
use lineweave_core::plan::PlanError;
use lineweave_core::verify::Violation;

/// Way in which a rank was lost to its team.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Loss {
    /// The process ended without leaving the team.
    Died,
    /// The rank left before a call that others made.
    Left,
    /// The rank gave up within a call, panicked, or could not join.
    Failed,
    /// The process is stopped (`SIGSTOP`, `SIGTSTP`) while others wait.
    Stopped,
}

impl std::fmt::Display for Loss {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Loss::Died => "died",
            Loss::Left => "left",
            Loss::Failed => "failed",
            Loss::Stopped => "is stopped",
        })
    }
}

/// An error of the runtime.
///
/// ```
/// use lineweave::Error;
/// let error = lineweave::team::threads(2, |mut comm| comm.bcast(&mut [0u8], 5)).unwrap_err();
/// assert!(matches!(error, Error::Root { root: 5, ranks: 2, .. }));
/// assert_eq!(error.to_string(), "bcast: root 5 is out of range; ranks are 0 to 1");
/// ```
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A plan could not be made.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A plan was refuted before it could run.
    #[error("plan {plan} is refused: {violation}")]
    Refuted {
        /// Name of the plan: `collective/algorithm`.
        plan: String,
        /// The counter-example.
        violation: Box<Violation>,
    },
    /// No plan fits.
    #[error("no plan for {collective} of {bytes} bytes among {ranks} ranks: {why}")]
    NoPlan {
        /// The collective.
        collective: Collective,
        /// The message length in bytes.
        bytes: usize,
        /// The number of ranks.
        ranks: usize,
        /// The reason, in words.
        why: String,
    },
    /// A team needs at least one rank.
    #[error("a team needs 1 to {most} ranks, and {ranks} were asked for")]
    TeamSize {
        /// The number of ranks that was asked for.
        ranks: usize,
        /// The largest team.
        most: usize,
    },
    /// A rank that cannot be taken in a team of threads.
    #[error("rank {rank} cannot be joined: {why}; each of the ranks 0 to {} is joined once", ranks - 1)]
    Rank {
        /// The rank that was asked for.
        rank: usize,
        /// The number of ranks of the team.
        ranks: usize,
        /// The reason, in words.
        why: &'static str,
    },
    /// A request that cannot be started or used so.
    #[error("the request cannot be used: {0}")]
    Request(&'static str),
    /// A list of ranks, or a colour, that makes no communicator.
    #[error("{what}: {why}")]
    Group {
        /// Name of the operation, or of the object to be made.
        what: &'static str,
        /// The reason, in words.
        why: String,
    },
    /// A communicator that another rank of it could not join.
    #[error("{what}: rank {rank} of the new communicator could not join it; its own error says why")]
    NotMade {
        /// Name of the operation, or of the object to be made.
        what: &'static str,
        /// The rank, as numbered in the new communicator.
        rank: usize,
    },
    /// A root that is not a rank.
    #[error("{collective}: root {root} is out of range; ranks are 0 to {}", ranks - 1)]
    Root {
        /// The collective that was called.
        collective: Collective,
        /// The root that was given.
        root: usize,
        /// The number of ranks.
        ranks: usize,
    },
    /// A buffer that a rank must give is missing or has another length.
    #[error("{collective}: {what} is {found} bytes long and {expected} were expected")]
    Length {
        /// The collective that was called.
        collective: Collective,
        /// Name of the buffer.
        what: &'static str,
        /// Expected length in bytes.
        expected: usize,
        /// Found length in bytes.
        found: usize,
    },
    /// Counts of blocks that are not one for each rank, or beyond what memory can hold.
    #[error("{collective}: {found} counts of blocks were given and {expected} expected, together less than 2^63 bytes")]
    Counts {
        /// The collective that was called.
        collective: Collective,
        /// Number of counts that were expected.
        expected: usize,
        /// Number of counts that were given.
        found: usize,
    },
    /// Input and output overlap without being the same buffer.
    #[error(
        "{collective}: input and output overlap by part; give two separate buffers, or one buffer in place"
    )]
    Overlap {
        /// The collective that was called.
        collective: Collective,
    },
    /// A rank that a message cannot go to or come from.
    #[error("{what}: there is no rank {rank}; ranks are 0 to {}", ranks - 1)]
    NoRank {
        /// Name of the operation that was called, such as `send` or `recv`.
        what: &'static str,
        /// The rank that was given.
        rank: usize,
        /// The number of ranks of the team.
        ranks: usize,
    },
    /// A message is longer than the buffer for it. It is lost; the communicator can be used on.
    #[error("recv: the message of rank {source_rank} with tag {tag} has {sent} bytes and the buffer {room}; give a buffer of at least that length")]
    Truncated {
        /// The sender's rank.
        source_rank: usize,
        /// The message's tag.
        tag: u32,
        /// The message's length in bytes.
        sent: usize,
        /// The buffer's length in bytes.
        room: usize,
    },
    /// Messages with other tags came before the one that is awaited, more than are kept.
    #[error("recv: {kept} bytes of messages of rank {source_rank} with other tags than {tag} came first, and no more than {most} are kept; receive them in the order in which they are sent, or send less at once")]
    Unexpected {
        /// The sender's rank.
        source_rank: usize,
        /// The tag that is awaited.
        tag: u32,
        /// Bytes that are kept, with the next message.
        kept: usize,
        /// The most bytes that are kept.
        most: usize,
    },
    /// A message that a rank sends to itself does not fit the ring, which nobody else empties.
    #[error("send: a message of {bytes} bytes to oneself does not fit the ring between two ranks; use sendrecv, or receive what was sent before")]
    ToItself {
        /// The message's length in bytes.
        bytes: usize,
    },
    /// Something outside of a window.
    #[error("{what}: {from} to {to} is outside of the window, which has {have}; make a larger one with window_create")]
    Window {
        /// Name of the operation that was called.
        what: &'static str,
        /// Start of the range: bytes, or the number of a flag.
        from: usize,
        /// End of the range.
        to: usize,
        /// The extent of the window.
        have: usize,
    },
    /// An operator that the element type does not have.
    #[error("{0}")]
    Operator(String),
    /// Ranks called different things: found by those that wait for each other, and before data moves with `LINEWEAVE_CHECK=1`.
    #[error("call {sequence} differs between ranks: rank {rank} called {call}, rank {other} called {other_call}; every rank must call the same collective with the same count, type, operator and root")]
    Mismatch {
        /// Sequence number of the call on this communicator.
        sequence: u64,
        /// This rank.
        rank: usize,
        /// Call that this rank made.
        call: String,
        /// The first rank that differs.
        other: usize,
        /// Call that rank `other` made.
        other_call: String,
    },
    /// Another rank died or left before it finished its part.
    #[error("rank {rank} ({}pid {pid}) {} in {operation} (call {sequence}); the communicator cannot be used any more", of_team(*rank, *in_team), while_waiting(*rank, *how, *waiting))]
    PeerLost {
        /// The lost rank.
        rank: usize,
        /// Number of the lost rank in the team, where this communicator was made from another one.
        in_team: usize,
        /// The process id of the lost rank.
        pid: u32,
        /// Way in which the rank was lost: it died, left or failed.
        how: Loss,
        /// The rank that waited.
        waiting: usize,
        /// The call in which it waited.
        operation: String,
        /// Sequence number of the call.
        sequence: u64,
    },
    /// A wait took longer than `LINEWEAVE_TIMEOUT`.
    #[error("rank {waiting} waited {seconds:.1} s in {operation} (call {sequence}) for {missing}; the timeout is that of LINEWEAVE_TIMEOUT or set_timeout")]
    Timeout {
        /// The rank that waited.
        waiting: usize,
        /// The call in which it waited.
        operation: String,
        /// Sequence number of the call.
        sequence: u64,
        /// Ranks that had not entered this call.
        missing: String,
        /// The time waited, in seconds.
        seconds: f64,
    },
    /// The host program called the wait off.
    #[error("rank {waiting} gave up waiting in {operation} (call {sequence}): {why}; the communicator cannot be used any more")]
    CalledOff {
        /// The rank that waited.
        waiting: usize,
        /// The call in which it waited.
        operation: String,
        /// Sequence number of the call.
        sequence: u64,
        /// The reason that the host program gave.
        why: String,
    },
    /// The communicator belongs to the process that this one was forked from.
    #[error("this communicator was made before the process was forked, and belongs to the parent; let the child make or join a team of its own")]
    Forked,
    /// The communicator failed before.
    #[error("this communicator failed earlier ({0}); make a new one")]
    Failed(String),
    /// Not enough memory for the shared segment.
    #[error("the team's shared memory needs {need} bytes and {available} are available ({source_of_limit}); use fewer ranks, a smaller LINEWEAVE_BOX_BYTES, or raise the limit")]
    Memory {
        /// Bytes that are needed.
        need: u64,
        /// Bytes that are available.
        available: u64,
        /// Source of the limit, in words.
        source_of_limit: String,
    },
    /// Not enough memory for buffers that ranks share.
    #[error("shared buffers need {need} bytes and {available} are available ({source_of_limit}); ask for less, drop buffers that are not needed, or raise the limit")]
    Heap {
        /// Bytes that are needed, by all ranks together where all asked for some.
        need: u64,
        /// Bytes that are available.
        available: u64,
        /// Source of the limit, in words.
        source_of_limit: String,
    },
    /// The operating system refused something.
    #[error("{what}: {reason}{advice}")]
    System {
        /// Operation that was attempted.
        what: String,
        /// The system's words.
        reason: String,
        /// Advice for the user, starting with `; `, or nothing.
        advice: &'static str,
    },
    /// A profile or a file of choices cannot be used.
    #[error("{}: {why}", shortened(&file.display().to_string()))]
    Profile {
        /// Path of the profile or the file of choices.
        file: std::path::PathBuf,
        /// Line and reason, and what to do.
        why: String,
    },
    /// A setting of the environment is malformed.
    #[error(transparent)]
    Setting(#[from] crate::settings::SettingError),
    /// A topology cannot be read.
    #[error("{0}")]
    Topology(String),
    /// Another lineweave, or something else, is on the other side.
    #[error("the other side is not this lineweave: expected {expected}, found {found}; use one version for all ranks")]
    Foreign {
        /// Text that says what was expected.
        expected: String,
        /// Text that says what was found.
        found: String,
    },
    /// A peer runs as another user.
    #[error("the peer runs as user {found} and this rank as {expected}; ranks of one team must belong to one user")]
    OtherUser {
        /// The id of the user who runs this process.
        expected: u32,
        /// The id of the user who runs the peer.
        found: u32,
    },
    /// The ranks of a team did not all come to where they were to meet.
    #[error("meeting at `{name}`: {why}; start exactly as many ranks as the team has, all on this node, with the same name and number of ranks")]
    Meeting {
        /// Name of the meeting place.
        name: String,
        /// The missing ranks, or what does not fit.
        why: String,
    },
    /// The environment of a rank that was started by a launcher is incomplete.
    #[error("{name} is {found}, expected {expected}: start ranks with `lineweave run`, or give each its rank and the team's descriptor")]
    Environment {
        /// Name of the variable.
        name: &'static str,
        /// Text that says what was expected.
        expected: &'static str,
        /// Text that says what was found.
        found: String,
    },
    /// A thread of a team panicked.
    #[error("rank {rank} panicked: {message}")]
    Panicked {
        /// The rank.
        rank: usize,
        /// The message of the panic.
        message: String,
    },
}

/// The number of a rank in the team, in front of its process, where that is another one.
pub(crate) fn of_team(rank: usize, in_team: usize) -> String {
    match rank == in_team {
        true => String::new(),
        false => format!("rank {in_team} of the team, "),
    }
}

/// Describes the loss of a rank while another one waited for it, or because the others gave it up.
fn while_waiting(rank: usize, how: Loss, waiting: usize) -> String {
    match rank == waiting {
        true => format!("was given up by the other ranks ({how})"),
        false => format!("{how} while rank {waiting} waited for it"),
    }
}

impl Error {
    /// Returns the same error with `what` as the operation, where a wait was part of something else.
    pub(crate) fn during(mut self, what: &str) -> Error {
        if let Error::PeerLost { operation, .. } | Error::Timeout { operation, .. } = &mut self {
            what.clone_into(operation);
        }
        self
    }

    /// The system's refusal, with what was attempted.
    pub(crate) fn system(
        what: impl Into<String>,
        reason: impl std::fmt::Display,
        advice: &'static str,
    ) -> Error {
        Error::System { what: what.into(), reason: reason.to_string(), advice }
    }
}

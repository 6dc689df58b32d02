//! Every environment variable that lineweave reads, in one table.
//!
//! Nothing else in the project looks at the environment: what is not in [`VARIABLES`] has no effect, and a
//! variable of ours that has none is warned about.

mod values;

pub use values::{Attach, Bind, Forced, Wait};

use crate::topology::Source;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// What every variable's name begins with.
pub const PREFIX: &str = "LINEWEAVE_";

/// Set by whoever starts a rank, not by a person: see `team::from_environment`.
pub const LAUNCHERS: [&str; 4] =
    ["LINEWEAVE_TEAM_FD", "LINEWEAVE_RANK", "LINEWEAVE_MPI_REPORT", "LINEWEAVE_MPI_LINK"];

/// One environment variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Name.
    pub name: &'static str,
    /// What it takes, for errors and listings.
    pub values: &'static str,
    /// What holds without it.
    pub default: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Reads a value, which is neither empty nor padded.
    set: fn(&mut Settings, &str) -> Result<(), String>,
}

/// Capacity of a large bank, by default: windows of this size keep a two-slot pipeline's slots within
/// second-level caches of 1 MiB and more, and 64 ranks' banks within 128 MiB.
pub const BOX_BYTES: usize = 1 << 20;

/// Checks are on where assertions are.
const CHECK: &str = if cfg!(debug_assertions) { "1" } else { "0" };

/// The table.
pub const VARIABLES: [Variable; 19] = [
    Variable {
        name: "LINEWEAVE_WAIT",
        values: "spin, yield, sleep or auto",
        default: "auto",
        about: "how a rank waits: auto spins, then yields, then sleeps",
        set: |s, text| values::wait(text).map(|v| s.wait = v),
    },
    Variable {
        name: "LINEWEAVE_PROFILE",
        values: "the path of a profile",
        default: "the cache, by machine fingerprint",
        about: "measured machine to choose algorithms by",
        set: |s, text| {
            s.profile = Some(PathBuf::from(text));
            Ok(())
        },
    },
    Variable {
        name: "LINEWEAVE_TOPOLOGY",
        values: "machine, a synthetic string such as `pack:2 l3:2 core:8 pu:2`, or an hwloc XML file's path",
        default: "machine",
        about: "what stands in place of the machine's topology",
        set: |s, text| {
            s.topology = Source::parse(text);
            Ok(())
        },
    },
    Variable {
        name: "LINEWEAVE_BOX_BYTES",
        values: "a size from 4 KiB to 1 TiB: bytes, or with KiB, MiB or GiB",
        default: "1 MiB",
        about: "capacity of a large bank of a rank; longer messages go in windows",
        set: |s, text| values::size(text, 4 << 10, 1 << 40).map(|v| s.box_bytes = v),
    },
    Variable {
        name: "LINEWEAVE_CHECK",
        values: "0 or 1",
        default: CHECK,
        about: "compare counts, roots and operators between ranks in each collective",
        set: |s, text| values::switch(text).map(|v| s.check = v),
    },
    Variable {
        name: "LINEWEAVE_BIND",
        values: "auto, none, or a list of CPUs such as 0-3,8 that takes ranks in order",
        default: "auto",
        about: "where ranks are pinned: auto gives each a CPU, or neighbours one together when ranks outnumber CPUs",
        set: |s, text| values::bind(text).map(|v| s.bind = v),
    },
    Variable {
        name: "LINEWEAVE_TIMEOUT",
        values: "seconds above 0, or none",
        default: "none",
        about: "a wait longer than this is an error that names the rank waited for",
        set: |s, text| values::timeout(text).map(|v| s.timeout = v),
    },
    Variable {
        name: "LINEWEAVE_STOP_TIMEOUT",
        values: "seconds above 0, or none",
        default: "none",
        about: "a rank that is stopped (SIGSTOP, Ctrl-Z) for longer while others wait for it is lost",
        set: |s, text| values::timeout(text).map(|v| s.stop_timeout = v),
    },
    Variable {
        name: "LINEWEAVE_CMA",
        values: "auto, on or off",
        default: "auto",
        about: "cross-memory attach for large messages between processes: auto where the profile says that it wins",
        set: |s, text| values::attach(text).map(|v| s.attach = v),
    },
    Variable {
        name: "LINEWEAVE_REPRODUCIBLE",
        values: "0 or 1",
        default: "0",
        about: "combine with brackets that depend on the number of ranks alone, so that bits do too",
        set: |s, text| values::switch(text).map(|v| s.reproducible = v),
    },
    Variable {
        name: "LINEWEAVE_PROGRESS_THREAD",
        values: "0 or 1",
        default: "0",
        about: "a helper thread carries started calls on while ranks do something else",
        set: |s, text| values::switch(text).map(|v| s.progress_thread = v),
    },
    Variable {
        name: "LINEWEAVE_ALGORITHM",
        values: "collective=algorithm parameter=value ... by SIZE, or algorithm(parameter=value,...), as it is printed; several \
                 separated by `;`, such as `barrier=exchange(layout=paired);bcast=tree degrees=2,2,1 by 4 KiB`",
        default: "chosen by the model",
        about: "algorithms to use whatever the model says",
        set: |s, text| values::forced(text).map(|v| s.algorithms = v),
    },
    Variable {
        name: "LINEWEAVE_QUIET",
        values: "0 or 1",
        default: "0",
        about: "under MPI and OpenMP: say nothing, also at the end",
        set: |s, text| values::switch(text).map(|v| s.quiet = v),
    },
    Variable {
        name: "LINEWEAVE_OPENMP",
        values: "0 or 1",
        default: "1",
        about: "`lineweave run` takes over barriers of OpenMP",
        set: |s, text| values::switch(text).map(|v| s.openmp = v),
    },
    // The next ones are read by the libraries that are preloaded; here they are checked and listed.
    Variable {
        name: "LINEWEAVE_OPENMP_RACE",
        values: "0 or 1",
        default: "1",
        about: "under OpenMP: compare with the runtime first, and keep the runtime's barrier where it is faster",
        set: |_, text| values::switch(text).map(|_| ()),
    },
    Variable {
        name: "LINEWEAVE_RANKS_PER_NODE",
        values: "a number of ranks, or 0",
        default: "0",
        about: "under MPI: ranks that count as a node, to try several nodes on one; 0 for nodes as they are",
        set: |_, text| values::number(text).map(|_| ()),
    },
    Variable {
        name: "LINEWEAVE_MPI_LEADERS",
        values: "a number of ranks",
        default: "4",
        about: "under MPI: ranks of a node that talk to other nodes, for long messages",
        set: |_, text| values::number(text).map(|_| ()),
    },
    Variable {
        name: "LINEWEAVE_MPI_AFTER",
        values: "a number of calls",
        default: "4",
        about: "under MPI: collectives on a communicator that pass before it gets a team",
        set: |_, text| values::number(text).map(|_| ()),
    },
    Variable {
        name: "LINEWEAVE_MPI_RACE",
        values: "0 or 1",
        default: "1",
        about: "under MPI: compare with the host first, and keep the host where it is faster",
        set: |_, text| values::switch(text).map(|_| ()),
    },
];

/// Where a value came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// The environment.
    Environment,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Origin::Default => "default",
            Origin::Environment => "environment",
        })
    }
}

/// One line of the listing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Row {
    /// The variable.
    pub name: &'static str,
    /// Its value, as given.
    pub value: String,
    /// Where the value came from.
    pub origin: Origin,
    /// What the variable takes.
    pub values: &'static str,
    /// What it does.
    pub about: &'static str,
}

/// Every setting.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// How ranks wait.
    pub wait: Wait,
    /// A profile to use instead of the cached one.
    pub profile: Option<PathBuf>,
    /// What stands in place of the machine's topology.
    pub topology: Source,
    /// Capacity of a large bank of a rank, in bytes.
    pub box_bytes: usize,
    /// Whether ranks compare what they were called with.
    pub check: bool,
    /// Whether results have the same bits whatever algorithm, box size and placement.
    pub reproducible: bool,
    /// Where ranks are pinned.
    pub bind: Bind,
    /// The longest wait that is not an error.
    pub timeout: Option<Duration>,
    /// How long a rank may be stopped while others wait for it.
    pub stop_timeout: Option<Duration>,
    /// Whether processes copy out of each other's memory.
    pub attach: Attach,
    /// Whether a helper thread carries started calls on.
    pub progress_thread: bool,
    /// Algorithms to use whatever the model says.
    pub algorithms: Vec<Forced>,
    /// Whether nothing is to be said under MPI.
    pub quiet: bool,
    /// Whether `lineweave run` takes over barriers of OpenMP.
    pub openmp: bool,
    /// The whole table as it stands, for `lineweave info`.
    pub rows: Vec<Row>,
}

impl Default for Settings {
    /// What holds in an empty environment.
    fn default() -> Settings {
        let row = |v: &Variable| Row {
            name: v.name,
            value: v.default.to_owned(),
            origin: Origin::Default,
            values: v.values,
            about: v.about,
        };
        Settings {
            wait: Wait::Auto,
            profile: None,
            topology: Source::Machine,
            box_bytes: BOX_BYTES,
            check: cfg!(debug_assertions),
            reproducible: false,
            bind: Bind::Auto,
            timeout: None,
            stop_timeout: None,
            attach: Attach::Auto,
            progress_thread: false,
            algorithms: Vec::new(),
            quiet: false,
            openmp: true,
            rows: VARIABLES.iter().map(row).collect(),
        }
    }
}

/// A variable whose value cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{name}=`{value}`: expected {expected}; found {found}. Correct it, or unset {name} for `{default}`")]
pub struct SettingError {
    /// The variable.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// What it takes.
    pub expected: &'static str,
    /// What is wrong with the value.
    pub found: String,
    /// What holds without it.
    pub default: &'static str,
}

/// Something in the environment that has no effect.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "warning", rename_all = "snake_case")]
pub enum Warning {
    /// No variable of this name exists.
    Unknown {
        /// The name in the environment.
        name: String,
        /// The known name nearest to it.
        nearest: &'static str,
    },
    /// The variable is set to nothing, which counts as not set.
    Empty {
        /// The variable.
        name: &'static str,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Warning::Unknown { name, nearest } => {
                write!(f, "{name} has no effect: no such setting; the nearest is {nearest}")
            }
            Warning::Empty { name } => write!(f, "{name} is set to nothing, which has no effect"),
        }
    }
}

impl Settings {
    /// The settings of this process's environment.
    ///
    /// # Errors
    /// A [`SettingError`] for the first variable, in the table's order, whose value cannot be used.
    pub fn from_environment() -> Result<(Settings, Vec<Warning>), SettingError> {
        // What is not Unicode keeps its readable part, and fails as a value with it quoted.
        let text = |t: std::ffi::OsString| t.to_string_lossy().into_owned();
        Settings::read(std::env::vars_os().map(|(name, value)| (text(name), text(value))))
    }

    /// The settings of an environment given as pairs of name and value; names without [`PREFIX`] are passed
    /// over.
    ///
    /// # Errors
    /// A [`SettingError`] for the first variable, in the table's order, whose value cannot be used.
    pub fn read(
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(Settings, Vec<Warning>), SettingError> {
        let mine = |name: &str| name.starts_with(PREFIX) && !LAUNCHERS.contains(&name);
        let mut ours: Vec<(String, String)> =
            environment.into_iter().filter(|(name, _)| mine(name)).collect();
        ours.sort();
        let mut settings = Settings::default();
        let mut warnings = Vec::new();
        for (index, variable) in VARIABLES.iter().enumerate() {
            let Some(at) = ours.iter().position(|(name, _)| name == variable.name) else { continue };
            let (_, value) = ours.remove(at);
            let trimmed = value.trim();
            if trimmed.is_empty() {
                warnings.push(Warning::Empty { name: variable.name });
                continue;
            }
            (variable.set)(&mut settings, trimmed).map_err(|found| SettingError {
                name: variable.name,
                value: value.clone(),
                expected: variable.values,
                found,
                default: variable.default,
            })?;
            settings.rows[index].value = trimmed.to_owned();
            settings.rows[index].origin = Origin::Environment;
        }
        warnings.extend(ours.into_iter().map(|(name, _)| {
            let nearest = nearest(&name);
            Warning::Unknown { name, nearest }
        }));
        Ok((settings, warnings))
    }
}

/// The known name with the fewest letters to change.
fn nearest(name: &str) -> &'static str {
    let nearest = VARIABLES.iter().min_by_key(|v| edits(name, v.name));
    nearest.map_or(PREFIX, |v| v.name)
}

/// Levenshtein's distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;

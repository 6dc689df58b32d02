//! Every environment variable that lineweave reads, in one table.
//!
//! Nothing else in the project looks at the environment: what is not in [`VARIABLES`] has no effect, and a
//! variable of ours that has none is warned about.

mod table;
mod values;

pub use table::VARIABLES;
pub use values::{Attach, Bind, Forced, HelperThreads, Wait};

use crate::topology::Source;
use lineweave_core::names::{nearest, shortened};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// Prefix of every variable's name.
pub const PREFIX: &str = "LINEWEAVE_";

/// Set by an environment module, for scripts: see `packaging/lmod`. Nothing reads it here, and nothing is said of it.
const ROOT: &str = "LINEWEAVE_ROOT";

/// Set by whoever starts a rank, not by a person: see `team::from_environment`; `LINEWEAVE_RUN_*` are for `mpi/chooser` and the command that it starts.
pub const LAUNCHERS: [&str; 12] = [
    "LINEWEAVE_TEAM_FD",
    "LINEWEAVE_RANK",
    "LINEWEAVE_MPI_REPORT",
    "LINEWEAVE_MPI_LINK",
    "LINEWEAVE_MPI_TRACE",
    "LINEWEAVE_MPI_SPAWN",
    "LINEWEAVE_RUN_COMMAND",
    "LINEWEAVE_RUN_SAID",
    "LINEWEAVE_RUN_SEEN",
    "LINEWEAVE_RUN_TOOLS",
    "LINEWEAVE_RUN_OPENMP",
    "LINEWEAVE_NODE",
];

/// One environment variable.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Variable {
    /// Name.
    pub name: &'static str,
    /// Values that the variable takes, for errors and listings.
    pub values: &'static str,
    /// Value that holds where the variable is not set.
    pub default: &'static str,
    /// Effect of the variable, in one line.
    pub about: &'static str,
    /// Reads a value, which is neither empty nor padded.
    set: fn(&mut Settings, &str) -> Result<(), String>,
}

/// Capacity of a large bank, by default: windows of this size keep a two-slot pipeline's slots within
/// second-level caches of 1 MiB and more, and 64 ranks' banks within 128 MiB.
pub const BOX_BYTES: usize = 1 << 20;

/// Origin of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
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
#[non_exhaustive]
pub struct Row {
    /// The variable.
    pub name: &'static str,
    /// The value, as given.
    pub value: String,
    /// Origin of the value.
    pub origin: Origin,
    /// Values that the variable takes.
    pub values: &'static str,
    /// Effect of the variable.
    pub about: &'static str,
}

/// Every setting. Make one by `Settings { wait: Wait::Sleep, ..Settings::default() }`, which later fields do not break.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// Way in which ranks wait.
    pub wait: Wait,
    /// A profile to use instead of the cached one.
    pub profile: Option<PathBuf>,
    /// Source of the topology, which may stand in place of the machine's.
    pub topology: Source,
    /// Capacity of a large bank of a rank, in bytes.
    pub box_bytes: usize,
    /// True if ranks compare what they were called with.
    pub check: bool,
    /// True if results have the same bits whatever algorithm, box size and placement.
    pub reproducible: bool,
    /// Binding of ranks to CPUs.
    pub bind: Bind,
    /// The longest wait that is not an error.
    pub timeout: Option<Duration>,
    /// Longest time that a rank may be stopped while others wait for it.
    pub stop_timeout: Option<Duration>,
    /// Condition under which processes copy out of each other's memory.
    pub attach: Attach,
    /// True if choices, proofs and what the profile says are kept for later programs.
    pub keep_plans: bool,
    /// Threads that may work beside the program.
    pub threads: HelperThreads,
    /// Algorithms to use whatever the model says.
    pub algorithms: Vec<Forced>,
    /// Settings of `lineweave run`.
    pub run: Run,
    /// The whole table as it stands, for `lineweave info`.
    pub rows: Vec<Row>,
}

/// Settings that hold for programs that `lineweave run` starts, and for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Run {
    /// True if nothing is to be said under MPI.
    pub quiet: bool,
    /// True if it takes over barriers of OpenMP.
    pub openmp: bool,
    /// True if a profile that a setting names is set aside where it cannot be used, as one of the cache is.
    pub profile_optional: bool,
}

impl Default for Settings {
    /// Returns the settings of an empty environment.
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
            keep_plans: true,
            threads: HelperThreads { progress: false, choose: true },
            algorithms: Vec::new(),
            run: Run { quiet: false, openmp: true, profile_optional: false },
            rows: VARIABLES.iter().map(row).collect(),
        }
    }
}

/// A variable whose value cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{name}=`{value}`: expected {expected}; found {found}. Correct it, or unset {name} for `{default}`")]
#[non_exhaustive]
pub struct SettingError {
    /// The variable.
    pub name: &'static str,
    /// The value.
    pub value: String,
    /// Values that the variable takes.
    pub expected: &'static str,
    /// Fault found in the value.
    pub found: String,
    /// Value that holds where the variable is not set.
    pub default: &'static str,
}

/// Something in the environment that has no effect.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(tag = "warning", rename_all = "snake_case")]
#[non_exhaustive]
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

    /// Writes what in the environment has no effect, such as misspelt names, to standard error: once a process, and not where `LINEWEAVE_QUIET`
    /// says so.
    pub fn say_ineffective() {
        let Ok((settings, warnings)) = Settings::from_environment() else { return };
        let said = warnings.iter().filter(|_| !settings.run.quiet);
        said.for_each(|warning| crate::cache::say(&warning.to_string()));
    }

    /// The settings of an environment given as pairs of name and value; names without [`PREFIX`] are passed
    /// over.
    ///
    /// # Errors
    /// A [`SettingError`] for the first variable, in the table's order, whose value cannot be used.
    ///
    /// ```
    /// use lineweave::settings::{Settings, Wait};
    /// let environment = [("LINEWEAVE_WAIT", "sleep"), ("LINEWEAVE_WIAT", "spin")];
    /// let (settings, warnings) = Settings::read(environment.map(|(name, value)| (name.into(), value.into())))?;
    /// assert_eq!(settings.wait, Wait::Sleep);
    /// assert!(warnings[0].to_string().contains("LINEWEAVE_WAIT")); // Which was meant.
    /// # Ok::<(), lineweave::settings::SettingError>(())
    /// ```
    pub fn read(
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(Settings, Vec<Warning>), SettingError> {
        let mine = |name: &str| name.starts_with(PREFIX) && name != ROOT && !LAUNCHERS.contains(&name);
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
                value: shortened(&value),
                expected: variable.values,
                found: shortened(&found),
                default: variable.default,
            })?;
            settings.rows[index].value = trimmed.to_owned();
            settings.rows[index].origin = Origin::Environment;
        }
        warnings.extend(ours.into_iter().map(|(name, _)| {
            let nearest =
                nearest(&name, VARIABLES.iter().map(|v| v.name)).map_or(PREFIX, |(nearest, _)| nearest);
            Warning::Unknown { name: shortened(&name), nearest }
        }));
        Ok((settings, warnings))
    }
}

#[cfg(test)]
mod tests;

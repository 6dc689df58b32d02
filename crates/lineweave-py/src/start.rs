//! Making and joining teams.

use crate::raise;
use crate::rank::{duration, Seat};
use lineweave::cpus::UsableCpus;
use lineweave::settings::{Bind, Settings};
use lineweave::team::{self, Meeting, Members, Team};
use lineweave::Error;
use pyo3::prelude::*;
use std::ffi::OsString;
use std::io::Write;
use std::process::Command;

/// Returns the binding of ranks, unless the environment sets it: without a rank for each CPU, ranks are not pinned, so that threads
/// that a rank starts (for linear algebra) need not share its CPU.
fn binding(ranks: usize) -> Option<Bind> {
    let said = std::env::var_os("LINEWEAVE_BIND").is_some();
    let usable = UsableCpus::of_this_thread().effective;
    (!said && ranks < usable).then_some(Bind::None)
}

/// Meets the other `ranks - 1` ranks at a name.
#[pyfunction]
pub(crate) fn meet(
    py: Python<'_>,
    name: &str,
    ranks: usize,
    rank: Option<usize>,
    patience: f64,
) -> PyResult<Seat> {
    let Some(patience) = duration(py, Some(patience))? else { unreachable!("given") };
    let bind = binding(ranks);
    let meeting = Meeting { name, ranks, rank, patience, bind: bind.as_ref() };
    let mut raised: Option<PyErr> = None;
    let raised_ref = &mut raised;
    let met = py.detach(|| {
        team::meet(&meeting, &mut || {
            Python::attach(|py| py.check_signals()).map_err(|error| {
                let text = error.to_string();
                *raised_ref = Some(error);
                Error::Meeting { name: name.to_owned(), why: text }
            })
        })
    });
    match (met, raised) {
        (Ok(comm), _) => Ok(Seat::new(comm, false)),
        (Err(_), Some(raised)) => Err(raised),
        (Err(error), None) => Err(raise::error(py, &error, rank)),
    }
}

/// Joins the team whose descriptor this process inherited from `lineweave run`.
#[pyfunction]
pub(crate) fn from_environment(py: Python<'_>) -> PyResult<Seat> {
    match py.detach(team::from_environment) {
        Ok(comm) => Ok(Seat::new(comm, false)),
        Err(error) => Err(raise::error(py, &error, None)),
    }
}

/// Returns the number of CPUs that this process can use, by its affinity and its cgroup's limit.
///
///     >>> lineweave.usable_cpus() >= 1
///     True
#[pyfunction]
pub(crate) fn usable_cpus() -> usize {
    UsableCpus::of_this_thread().effective
}

/// Returns the settings in the environment that have no effect, such as misspelt ones.
#[pyfunction]
pub(crate) fn ineffective_settings() -> Vec<String> {
    let read = Settings::from_environment();
    read.map_or(Vec::new(), |(_, warnings)| warnings.iter().map(ToString::to_string).collect())
}

/// A team whose ranks are threads of this process.
#[pyclass(frozen, module = "lineweave._lineweave")]
pub(crate) struct Threads(Members);

#[pymethods]
impl Threads {
    #[new]
    fn new(py: Python<'_>, ranks: usize) -> PyResult<Threads> {
        let team = py.detach(|| Team::new(ranks)).map_err(|error| raise::error(py, &error, None))?;
        Ok(Threads(team.members()))
    }

    /// Makes the calling thread `rank`, and returns when all ranks have joined.
    fn join(&self, py: Python<'_>, rank: usize) -> PyResult<Seat> {
        match py.detach(|| self.0.join(rank)) {
            Ok(comm) => Ok(Seat::new(comm, true)),
            Err(error) => Err(raise::error(py, &error, Some(rank))),
        }
    }
}

/// Starts a command once for each rank and waits for all. Returns the exit status, and a sentence about the first rank that failed,
/// if one did.
#[pyfunction]
pub(crate) fn launch(
    py: Python<'_>,
    ranks: usize,
    program: OsString,
    arguments: Vec<OsString>,
) -> PyResult<(u8, Option<String>)> {
    let command = |_rank| {
        let mut command = Command::new(&program);
        command.args(&arguments);
        command
    };
    // If standard error is closed, the remark is dropped.
    let remark = |text: &str| drop(writeln!(std::io::stderr(), "lineweave.run: {text}"));
    let ended = py.detach(|| Team::new(ranks)?.launch(command, remark));
    let failed = ended.map_err(|error| raise::error(py, &error, None))?;
    Ok(failed.map_or((0, None), |failed| (failed.code(), Some(failed.to_string()))))
}

/// Makes the kernel kill this process when the thread that started it ends.
#[pyfunction]
pub(crate) fn end_with_parent() -> PyResult<()> {
    Ok(lineweave::process::end_with_parent()?)
}

//! Making and joining teams.

use crate::raise;
use crate::rank::{duration, Seat};
use lineweave::cpus::UsableCpus;
use lineweave::settings::Bind;
use lineweave::team::{self, Meeting, Members, Team};
use lineweave::Error;
use pyo3::prelude::*;
use std::os::fd::AsRawFd;

/// Where ranks are pinned: by the environment's word, else only if there are as many as CPUs, so that threads that a rank
/// starts (for linear algebra) are not crowded on the one it is on.
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

/// How many CPUs this process can use.
#[pyfunction]
pub(crate) fn usable_cpus() -> usize {
    UsableCpus::of_this_thread().effective
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

    /// Makes the calling thread `rank`, and returns when all have come.
    fn join(&self, py: Python<'_>, rank: usize) -> PyResult<Seat> {
        match py.detach(|| self.0.join(rank)) {
            Ok(comm) => Ok(Seat::new(comm, true)),
            Err(error) => Err(raise::error(py, &error, Some(rank))),
        }
    }
}

/// A team whose ranks are processes that inherit its descriptor.
#[pyclass(frozen, module = "lineweave._lineweave")]
pub(crate) struct Launch(Team);

#[pymethods]
impl Launch {
    #[new]
    fn new(py: Python<'_>, ranks: usize) -> PyResult<Launch> {
        let made = Team::new(ranks).map_err(|error| raise::error(py, &error, None))?;
        Ok(Launch(made))
    }

    /// The descriptor.
    #[getter]
    fn fd(&self) -> i32 {
        self.0.descriptor().as_raw_fd()
    }
}

//! Collectives whose blocks differ in length. Every rank passes the number of elements of every block.

use crate::array::Array;
use crate::prepare::{helper, Given, Made};
use crate::raise;
use crate::rank::Communicator;
use crate::requests::{collective, Request};
use lineweave::{Blocks, CallSpec, ElementType, Operator, Places};
use lineweave_core::collective::Collective;
use pyo3::prelude::*;
use std::ops::Range;

/// A call with the arguments that Python passed.
struct Uneven<'a, 'py> {
    collective: Collective,
    x: Given<'a, 'py>,
    out: Given<'a, 'py>,
    operator: Option<Given<'a, 'py>>,
    root: usize,
    counts: Vec<usize>,
    /// For an alltoall, the counts that arrive; `counts` are those that are sent.
    taken: Option<Vec<usize>>,
}

/// A call whose buffers are known. They stay in place as long as this value lives.
struct Laid<'py> {
    spec: CallSpec,
    input: *const u8,
    output: *mut u8,
    /// Bytes of the longer buffer.
    whole: usize,
    kept: [Option<Array<'py>>; 2],
    /// The array that the call returns.
    result: Option<Bound<'py, PyAny>>,
}

impl<'a, 'py> Uneven<'a, 'py> {
    /// Makes a call without operator, of root 0.
    fn of(collective: Collective, x: Given<'a, 'py>, out: Given<'a, 'py>, counts: Vec<usize>) -> Self {
        Uneven { collective, x, out, operator: None, root: 0, counts, taken: None }
    }

    /// Makes the call, and returns the result.
    fn run(self, comm: &Communicator, py: Python<'py>) -> Made<'py> {
        let mut entered = comm.enter(py)?;
        let operator = self.operator.map(|given| entered.operator(py, given)).transpose()?;
        let gathered = match &self.taken {
            None => None,
            Some(taken) => {
                let size = self.model(py)?.size();
                Some(entered.run(py, 0, |comm| comm.counts_of_pairs(&self.counts, taken, size))?)
            }
        };
        let counts = gathered.as_ref().unwrap_or(&self.counts);
        let spec = self.spec(py, operator)?;
        let places = entered.run(py, 0, |comm| comm.places(&spec, Some(counts)))?;
        let Laid { input, output, whole, kept, result, .. } = self.lay(comm, py, spec, places)?;
        // SAFETY: both are as long as the places say, aligned, and kept by the arrays for the call; that nobody else uses them is
        // the caller's part.
        entered.run(py, whole, |comm| unsafe { comm.call_uneven(&spec, counts, input, output) })?;
        drop(kept);
        Ok(result)
    }

    /// Starts the call.
    fn start(self, slf: &Bound<'py, Communicator>) -> PyResult<Request> {
        let (py, comm) = (slf.py(), slf.get());
        let mut entered = comm.enter(py)?;
        let operator = self.operator.map(|given| entered.operator(py, given)).transpose()?;
        let spec = self.spec(py, operator)?;
        let places = match &self.taken {
            None => entered.run(py, 0, |comm| comm.places(&spec, Some(&self.counts)))?,
            // The counts of other ranks are not known yet, but the length of both buffers does not depend on them.
            Some(taken) => [&self.counts, taken].map(|counts| {
                let elements = counts.iter().fold(0usize, |sum, &n| sum.saturating_add(n));
                Some(0..elements.saturating_mul(spec.element.size()))
            }),
        };
        let Laid { spec, input, output, whole, kept, result } = self.lay(comm, py, spec, places)?;
        let (mut request, mut idle) = (None, false);
        entered.run(py, 0, |comm| {
            idle = !comm.has_started();
            let blocks = match &self.taken {
                None => Blocks::Ranks(&self.counts),
                Some(taken) => Blocks::Pairs { given: &self.counts, taken },
            };
            // SAFETY: both are as long as the places say, aligned, and kept until the call is over.
            request = Some(unsafe { comm.start_call(&spec, blocks, input, output) }?);
            Ok(())
        })?;
        drop(entered);
        let objects = [self.x.cloned(), self.out.cloned(), result.clone()].into_iter().flatten();
        let objects = objects.map(Bound::unbind).collect();
        Request::of(slf, request, spec.collective, whole, (kept, objects, idle), result)
    }

    /// Returns the element type.
    fn model(&self, py: Python<'py>) -> PyResult<ElementType> {
        let Some(given) = self.x.or(self.out) else {
            return Err(raise::argument(
                py,
                format!("{}: this rank must give `x` or `out`", self.collective),
            ));
        };
        Ok(Array::of(given, "x")?.layout.element)
    }

    fn spec(&self, py: Python<'py>, operator: Option<Operator>) -> PyResult<CallSpec> {
        let (collective, root) = (self.collective, self.root);
        Ok(CallSpec { collective, element: self.model(py)?, count: 0, operator, root })
    }

    /// Finds the buffers for the lengths that the counts give.
    fn lay(
        &self,
        comm: &Communicator,
        py: Python<'py>,
        spec: CallSpec,
        [input, output]: Places,
    ) -> PyResult<Laid<'py>> {
        let CallSpec { collective, element, .. } = spec;
        let x = self.x.map(|x| Array::of(x, "x")).transpose()?;
        let made = match (&output, self.out, self.x) {
            (Some(place), None, Some(x)) => {
                Some(helper(py, "flat")?.call1((x, place.len() / element.size()))?)
            }
            (Some(_), None, None) => {
                return Err(raise::argument(py, format!("{collective}: this rank must give `out`")))
            }
            _ => None,
        };
        let out = made.as_ref().or(self.out).map(|out| Array::of(out, "out")).transpose()?;
        if x.is_none() && input.is_some() && output.is_none() {
            let rank = comm.rank();
            return Err(raise::argument(py, format!("{collective}: rank {rank} must give `x`")));
        }
        let in_place = x.is_none();
        let start = |array: Option<&Array<'_>>, place: &Option<Range<usize>>, whose: &str| {
            let (Some(array), Some(place)) = (array, place) else { return Ok(std::ptr::null_mut()) };
            let (layout, offset) = (array.layout, if in_place { place.start } else { 0 });
            if layout.element != element {
                return Err(raise::kind(
                    py,
                    format!(
                        "{collective}: `{whose}` has elements of type {} and {element} were expected",
                        layout.element
                    ),
                ));
            }
            if !layout.dense || (whose == "out" && !layout.writable) {
                return Err(raise::argument(
                    py,
                    format!("{collective}: `{whose}` is not contiguous or may not be written"),
                ));
            }
            let fits =
                if in_place { layout.bytes() >= offset + place.len() } else { layout.bytes() == place.len() };
            if !fits {
                let (found, size) = (layout.count, element.size());
                return Err(raise::argument(
                    py,
                    format!(
                        "{collective}: `{whose}` has {found} elements and {} were expected by the counts",
                        (offset + place.len()) / size
                    ),
                ));
            }
            Ok(layout.data.wrapping_add(offset))
        };
        let source =
            if in_place { start(out.as_ref(), &input, "out") } else { start(x.as_ref(), &input, "x") }?;
        let target = start(out.as_ref(), &output, "out")?;
        let bytes = [&input, &output].map(|place| place.as_ref().map_or(0, |p| p.len()));
        let result = output.and_then(|_| made.or_else(|| self.out.cloned()));
        let whole = bytes[0].max(bytes[1]);
        Ok(Laid { spec, input: source.cast_const(), output: target, whole, kept: [x, out], result })
    }
}

/// Replaces the error for a function as operator: a call with counts does not accept operators that the package would have to call.
fn counted(py: Python<'_>, error: PyErr) -> PyErr {
    match raise::is_callable_operator(py, &error) {
        true => {
            raise::argument(py, "a call with counts takes operators by name or numpy's functions for them")
        }
        false => error,
    }
}

#[pymethods]
impl Communicator {
    /// As `gather`, with `counts[r]` elements from rank `r`.
    ///
    /// - `x`: an array of `counts[team.rank]` elements. `None` at the root: its block lies in its place in `out`.
    /// - `counts`: the elements of each rank's block, equal lists at all ranks.
    /// - `root`, `out`: as for `gather`; blocks lie one after the other.
    ///
    /// Returns `out` or a new array of one dimension at the root, `None` elsewhere. Raises `BadArgument` for counts and lengths that do not fit,
    /// and what every call raises.
    ///
    ///     >>> team.gatherv(np.full(team.rank + 1, team.rank), [1, 2], root=0)
    ///     array([0, 1, 1])
    #[pyo3(signature = (x, counts, root=0, out=None))]
    fn gatherv<'py>(
        &self,
        py: Python<'py>,
        x: Given<'_, 'py>,
        counts: Vec<usize>,
        root: usize,
        out: Given<'_, 'py>,
    ) -> Made<'py> {
        Uneven { root, ..Uneven::of(Collective::Gather, x, out, counts) }.run(self, py)
    }

    /// As `scatter`, with `counts[r]` elements for rank `r`.
    ///
    /// - `x`: an array of `sum(counts)` elements; used at the root only.
    /// - `counts`: the elements of each rank's block, equal lists at all ranks.
    /// - `root`, `out`: as for `scatter`; `out` has `counts[team.rank]` elements.
    ///
    /// Returns `out`, or a new array of one dimension at the root. Raises `BadArgument` for counts and lengths that do not fit, and what every
    /// call raises.
    ///
    ///     >>> x = np.array([5, 6, 7]) if team.rank == 0 else None
    ///     >>> team.scatterv(x, [1, 2], 0, out=np.empty(team.rank + 1, int))    # [6, 7] at rank 1
    ///     array([5])
    #[pyo3(signature = (x, counts, root=0, out=None))]
    fn scatterv<'py>(
        &self,
        py: Python<'py>,
        x: Given<'_, 'py>,
        counts: Vec<usize>,
        root: usize,
        out: Given<'_, 'py>,
    ) -> Made<'py> {
        let x = x.filter(|_| self.rank() == root);
        Uneven { root, ..Uneven::of(Collective::Scatter, x, out, counts) }.run(self, py)
    }

    /// As `allgather`, with `counts[r]` elements from rank `r`.
    ///
    /// - `x`: an array of `counts[team.rank]` elements. `None`: this rank's block lies in its place in `out`.
    /// - `counts`: the elements of each rank's block, equal lists at all ranks.
    /// - `out`: an array of `sum(counts)` elements, blocks one after the other.
    ///
    /// Returns `out`, or a new array of one dimension. Raises `BadArgument` for counts and lengths that do not fit, and what every call raises.
    ///
    ///     >>> team.allgatherv(np.full(team.rank + 1, team.rank), [1, 2])
    ///     array([0, 1, 1])
    #[pyo3(signature = (x, counts, out=None))]
    fn allgatherv<'py>(
        &self,
        py: Python<'py>,
        x: Given<'_, 'py>,
        counts: Vec<usize>,
        out: Given<'_, 'py>,
    ) -> Made<'py> {
        Uneven::of(Collective::Allgather, x, out, counts).run(self, py)
    }

    /// Combines the `x` of all ranks elementwise and gives `counts[r]` elements of the result to rank `r` (`MPI_Reduce_scatter`);
    /// `reduce_scatter_block` is for blocks of one length.
    ///
    /// - `x`: an array of `sum(counts)` elements. `None` for a call in place: it is in `out`, where the result then is at the start.
    /// - `counts`: the elements of each rank's block, equal lists at all ranks.
    /// - `op`: an operator's name, or numpy's function for one. Other functions of two arrays are for calls without counts.
    /// - `out`: an array of `counts[team.rank]` elements.
    ///
    /// Returns `out`, or a new array of one dimension. Raises `BadArgument` for counts and lengths that do not fit, and what `allreduce` does.
    ///
    ///     >>> team.reduce_scatter(np.array([1, 2, 3]), [1, 2])         # [4, 6] at rank 1
    ///     array([2])
    #[pyo3(signature = (x, counts, op=None, out=None))]
    fn reduce_scatter<'py>(
        &self,
        py: Python<'py>,
        x: Given<'_, 'py>,
        counts: Vec<usize>,
        op: Given<'_, 'py>,
        out: Given<'_, 'py>,
    ) -> Made<'py> {
        let call = Uneven { operator: Some(op), ..Uneven::of(Collective::ReduceScatter, x, out, counts) };
        call.run(self, py).map_err(|error| counted(py, error))
    }

    /// As `alltoall`, with a length for each block.
    ///
    /// - `x`: an array of `sum(given)` elements.
    /// - `given`: how many elements go to each rank.
    /// - `taken`: how many come from each rank: what that rank gives this one.
    /// - `out`: an array of `sum(taken)` elements.
    ///
    /// Returns `out`, or a new array of one dimension. Raises `Mismatch` or `BadArgument` for counts that do not fit together, and what every call
    /// raises.
    ///
    ///     >>> x = np.full(3, team.rank)                    # one element for rank 0, two for rank 1
    ///     >>> team.alltoallv(x, [1, 2], [team.rank + 1] * 2)           # [0, 0, 1, 1] at rank 1
    ///     array([0, 1])
    #[pyo3(signature = (x, given, taken, out=None))]
    fn alltoallv<'py>(
        &self,
        py: Python<'py>,
        x: Given<'_, 'py>,
        given: Vec<usize>,
        taken: Vec<usize>,
        out: Given<'_, 'py>,
    ) -> Made<'py> {
        Uneven { taken: Some(taken), ..Uneven::of(Collective::Alltoall, x, out, given) }.run(self, py)
    }

    /// Starts a collective with counts by its name.
    #[pyo3(signature = (name, x, counts, taken=None, out=None, op=None, root=0))]
    #[expect(clippy::too_many_arguments, reason = "those of all of them")]
    fn _start_uneven<'py>(
        slf: &Bound<'py, Communicator>,
        name: &str,
        x: Given<'_, 'py>,
        counts: Vec<usize>,
        taken: Option<Vec<usize>>,
        out: Given<'_, 'py>,
        op: Given<'_, 'py>,
        root: usize,
    ) -> PyResult<Request> {
        let py = slf.py();
        let collective = collective(py, name, true)?;
        let x = x.filter(|_| collective != Collective::Scatter || slf.get().rank() == root);
        let operator = collective.folds().then_some(op);
        let call = Uneven { collective, x, out, operator, root, counts, taken };
        call.start(slf).map_err(|error| counted(py, error))
    }
}

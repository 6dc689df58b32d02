//! Collectives whose blocks differ in length. Every rank gives the number of elements of every block.

use crate::array::Array;
use crate::prepare::{helper, Given};
use crate::raise;
use crate::rank::Communicator;
use lineweave::{CallSpec, Place};
use lineweave_core::collective::Collective;
use pyo3::prelude::*;

/// A call as Python made it.
struct Uneven<'a, 'py> {
    collective: Collective,
    x: Given<'a, 'py>,
    out: Given<'a, 'py>,
    operator: Option<Given<'a, 'py>>,
    root: usize,
    counts: Vec<usize>,
    /// For an alltoall: what arrives, `counts` being what is given.
    taken: Option<Vec<usize>>,
}

impl<'py> Uneven<'_, 'py> {
    fn run(self, comm: &Communicator, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut entered = comm.enter(py)?;
        let operator = self.operator.map(|given| entered.operator(py, given)).transpose()?;
        let (collective, rank) = (self.collective, comm.rank());
        let x = self.x.map(|x| Array::of(x, "x")).transpose()?;
        let given_out = self.out.map(|out| Array::of(out, "out")).transpose()?;
        let Some(model) = x.as_ref().or(given_out.as_ref()).map(|a| a.layout) else {
            return Err(raise::argument(py, format!("{collective}: this rank must give `x` or `out`")));
        };
        let element = model.element;
        let counts = match &self.taken {
            None => self.counts,
            Some(taken) => {
                entered.run(py, 0, |comm| comm.counts_of_pairs(&self.counts, taken, element.size()))?
            }
        };
        let spec = CallSpec { collective, element, count: 0, operator, root: self.root };
        let [input, output] = entered.run(py, 0, |comm| comm.uneven_places(&spec, &counts))?;
        let made = match (output, &given_out, self.x) {
            (Some(place), None, Some(x)) => {
                Some(helper(py, "flat")?.call1((x, place.bytes / element.size()))?)
            }
            (Some(_), None, None) => {
                return Err(raise::argument(py, format!("{collective}: this rank must give `out`")))
            }
            _ => None,
        };
        let made_out = made.as_ref().map(|out| Array::of(out, "out")).transpose()?;
        let out = made_out.as_ref().or(given_out.as_ref());
        let in_place = x.is_none();
        let start = |array: Option<&Array<'_>>, place: Option<Place>, whose: &str| {
            let (Some(array), Some(place)) = (array, place) else { return Ok(std::ptr::null_mut()) };
            let (layout, offset) = (array.layout, if in_place { place.offset } else { 0 });
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
                if in_place { layout.bytes() >= offset + place.bytes } else { layout.bytes() == place.bytes };
            if !fits {
                let (found, size) = (layout.count, element.size());
                return Err(raise::argument(
                    py,
                    format!(
                        "{collective}: `{whose}` has {found} elements and {} were expected by the counts",
                        (offset + place.bytes) / size
                    ),
                ));
            }
            Ok(layout.data.wrapping_add(offset))
        };
        let source = if in_place { start(out, input, "out") } else { start(x.as_ref(), input, "x") }?;
        let target = start(out, output, "out")?;
        let bytes = [input, output].map(|place| place.map_or(0, |p| p.bytes));
        if x.is_none() && input.is_some() && output.is_none() {
            return Err(raise::argument(py, format!("{collective}: rank {rank} must give `x`")));
        }
        // SAFETY: both are as long as the places say, aligned, and kept by the arrays for the call; that nobody else uses them is
        // the caller's part.
        entered.run(py, bytes[0].max(bytes[1]), |comm| unsafe {
            comm.call_uneven(&spec, &counts, source, target)
        })?;
        drop((made_out, given_out, x));
        Ok(match output {
            Some(_) => made.or_else(|| self.out.cloned()),
            None => None,
        })
    }
}

#[pymethods]
impl Communicator {
    #[pyo3(signature = (x, counts, root=0, out=None))]
    fn gatherv<'py>(
        &self,
        py: Python<'py>,
        x: Given<'_, 'py>,
        counts: Vec<usize>,
        root: usize,
        out: Given<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let collective = Collective::Gather;
        Uneven { collective, x, out, operator: None, root, counts, taken: None }.run(self, py)
    }

    #[pyo3(signature = (x, counts, root=0, out=None))]
    fn scatterv<'py>(
        &self,
        py: Python<'py>,
        x: Given<'_, 'py>,
        counts: Vec<usize>,
        root: usize,
        out: Given<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let collective = Collective::Scatter;
        let x = x.filter(|_| self.rank() == root);
        Uneven { collective, x, out, operator: None, root, counts, taken: None }.run(self, py)
    }

    #[pyo3(signature = (x, counts, out=None))]
    fn allgatherv<'py>(
        &self,
        py: Python<'py>,
        x: Given<'_, 'py>,
        counts: Vec<usize>,
        out: Given<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let collective = Collective::Allgather;
        Uneven { collective, x, out, operator: None, root: 0, counts, taken: None }.run(self, py)
    }

    #[pyo3(signature = (x, counts, op=None, out=None))]
    fn reduce_scatterv<'py>(
        &self,
        py: Python<'py>,
        x: Given<'_, 'py>,
        counts: Vec<usize>,
        op: Given<'_, 'py>,
        out: Given<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let collective = Collective::ReduceScatter;
        Uneven { collective, x, out, operator: Some(op), root: 0, counts, taken: None }.run(self, py)
    }

    #[pyo3(signature = (x, given, taken, out=None))]
    fn alltoallv<'py>(
        &self,
        py: Python<'py>,
        x: Given<'_, 'py>,
        given: Vec<usize>,
        taken: Vec<usize>,
        out: Given<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let collective = Collective::Alltoall;
        Uneven { collective, x, out, operator: None, root: 0, counts: given, taken: Some(taken) }
            .run(self, py)
    }
}

//! The collectives on arrays.
//!
//! Every call says which buffer it reads and which it writes. `out` is the array that the result goes to: `x` itself for a
//! call in place, another one, or nothing for a new array of the kind that `x` is. Where a rank's own block may already lie in
//! its place, `x` is nothing.

use crate::array::Array;
use crate::rank::Communicator;
use crate::{numpy, raise};
use lineweave::{CallSpec, Operator};
use lineweave_core::collective::{Collective, Extent};
use pyo3::prelude::*;

/// Arrays that are not dense are packed up to this many bytes, beyond which the copy should be the caller's decision.
const PACKED: usize = 1 << 20;

/// A call as Python made it.
pub(crate) struct Call<'a, 'py> {
    pub collective: Collective,
    pub x: Option<&'a Bound<'py, PyAny>>,
    pub out: Option<&'a Bound<'py, PyAny>>,
    /// For collectives that fold: what stands for the operator.
    pub operator: Option<Given<'a, 'py>>,
    pub root: usize,
}

/// An argument that may be missing.
pub(crate) type Given<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// A function of `lineweave._arrays`, for what need not be quick.
#[cold]
pub(crate) fn helper<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("lineweave._arrays")?.getattr(name)
}

/// Packs an array that is not dense, if it is small.
#[cold]
fn pack<'py>(x: &Bound<'py, PyAny>, bytes: usize, whose: &str) -> PyResult<Bound<'py, PyAny>> {
    let py = x.py();
    if bytes > PACKED {
        return Err(raise::argument(py, format!("{whose} is not contiguous and has {bytes} bytes; beyond {PACKED} give a contiguous array, in numpy np.ascontiguousarray(x), for torch x.contiguous()")));
    }
    helper(py, "pack")?.call1((x,))
}

/// Whether a call without input is one in place.
fn in_place(extents: [Extent; 2]) -> bool {
    match extents {
        [Extent::Message | Extent::Blocks, Extent::Blocks] | [Extent::Message, Extent::Message] => true,
        [Extent::Blocks, Extent::Message] | [Extent::Nothing, _] | [_, Extent::Nothing] => false,
    }
}

impl Call<'_, '_> {
    #[cold]
    fn missing(&self, py: Python<'_>, what: &str) -> PyErr {
        raise::argument(py, format!("{}: this rank must give `{what}`", self.collective))
    }
}

impl<'py> Call<'_, 'py> {
    /// Makes the call; returns the array with the result, where there is one.
    pub(crate) fn run(self, comm: &Communicator, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut entered = comm.enter(py)?;
        let operator = self.operator.map(|given| entered.operator(py, given)).transpose()?;
        let (rank, ranks) = (comm.rank(), comm.ranks());
        let (collective, root) = (self.collective, self.root);
        if root >= ranks {
            let error = lineweave::Error::Root { collective, root, ranks };
            return Err(raise::error(py, &error, Some(rank)));
        }
        let extents = [collective.input(rank, root), collective.output(rank, root)];
        let reads = extents[0] != Extent::Nothing;
        let writes = extents[1] != Extent::Nothing;

        // What is read.
        let mut packed_input = None;
        let mut x = None;
        if let (true, Some(given)) = (reads, self.x) {
            let array = Array::of(given, "x")?;
            x = Some(match array.layout.dense {
                true => array,
                false => {
                    let packed = packed_input.insert(pack(given, array.layout.bytes(), "x")?);
                    Array::of(packed, "x")?
                }
            });
        } else if reads && !in_place(extents) {
            return Err(self.missing(py, "x"));
        }

        // What is written.
        let made = match (writes, self.out, self.x) {
            (true, None, Some(given)) => {
                let blocks = match extents {
                    [Extent::Message, Extent::Blocks] => 1,
                    [Extent::Blocks, Extent::Message] => -1,
                    _ => 0,
                };
                Some(helper(py, "like")?.call1((given, blocks, ranks))?)
            }
            (true, None, None) => return Err(self.missing(py, "out")),
            _ => None,
        };
        let target = made.as_ref().or(self.out);
        let mut packed_output = None;
        let mut out = None;
        if let (true, Some(target)) = (writes, target) {
            let array = Array::of(target, "out")?;
            if !array.layout.writable {
                return Err(raise::argument(
                    py,
                    format!("{collective}: `out` is read-only; give an array that may be written"),
                ));
            }
            out = Some(match array.layout.dense {
                true => array,
                false => {
                    let packed = packed_output.insert(pack(target, array.layout.bytes(), "out")?);
                    Array::of(packed, "out")?
                }
            });
        }
        let (input, output) = (x.as_ref().map(|a| a.layout), out.as_ref().map(|a| a.layout));
        if let (Some(a), Some(b)) = (input, output) {
            if a.element != b.element || a.truth != b.truth {
                return Err(differ(py, collective, a.element.name(), b.element.name()));
            }
        }
        let Some(model) = input.or(output) else { return Err(self.missing(py, "x")) };
        if let (true, Some(operator)) = (model.truth, operator) {
            of_truth(py, operator)?;
        }
        // Elements of the message or of one block, by the buffer that tells.
        let of = |extent: Extent, count: usize| match extent {
            Extent::Nothing => None,
            Extent::Message => Some(count),
            Extent::Blocks if count % ranks == 0 => Some(count / ranks),
            Extent::Blocks => None,
        };
        let counts = [(extents[0], input), (extents[1], output)].map(|(e, l)| l.and_then(|l| of(e, l.count)));
        let count = match (counts, input, output) {
            ([Some(a), Some(b)], ..) if a == b => a,
            ([Some(a), None], _, None) => a,
            ([None, Some(b)], None, _) => b,
            _ => {
                return Err(self.lengths(
                    py,
                    extents,
                    ranks,
                    [input.map(|l| l.count), output.map(|l| l.count)],
                ))
            }
        };
        let spec = CallSpec { collective, element: model.element, count, operator, root };
        let bytes = spec.bytes();
        let output_start = output.map_or(std::ptr::null_mut(), |l| l.data);
        let input_start = match input {
            Some(layout) => layout.data.cast_const(),
            // In place: where the own block lies in the output.
            None if extents == [Extent::Message, Extent::Blocks] => {
                output_start.wrapping_add(rank * bytes).cast_const()
            }
            None => output_start.cast_const(),
        };
        let whole = spec.input_bytes(rank, ranks).max(spec.output_bytes(rank, ranks));
        // SAFETY: both are as long as the call says where it uses them, by the counts above, aligned for their elements, and kept
        // by `x` and `out`; that nobody else uses them meanwhile is the caller's part.
        entered.run(py, whole, |comm| unsafe { comm.call(&spec, input_start, output_start) })?;
        drop((entered, x, out));
        if let (Some(packed), Some(target)) = (packed_output, target) {
            helper(py, "unpack")?.call1((packed, target))?;
        }
        Ok(match writes {
            true => made.or_else(|| self.out.cloned()),
            false => None,
        })
    }

    #[cold]
    fn lengths(
        &self,
        py: Python<'_>,
        extents: [Extent; 2],
        ranks: usize,
        counts: [Option<usize>; 2],
    ) -> PyErr {
        let say = |name: &str, extent: Extent, count: Option<usize>| {
            let count = count?;
            let what = match extent {
                Extent::Nothing => return None,
                Extent::Message => "one block or message",
                Extent::Blocks => "a block for each rank",
            };
            Some(format!("`{name}` has {count} elements and holds {what}"))
        };
        let both: Vec<String> = [say("x", extents[0], counts[0]), say("out", extents[1], counts[1])]
            .into_iter()
            .flatten()
            .collect();
        raise::argument(
            py,
            format!("{}: lengths do not fit: {}, among {ranks} ranks", self.collective, both.join(", ")),
        )
    }
}

#[cold]
fn differ(py: Python<'_>, collective: Collective, x: &str, out: &str) -> PyErr {
    raise::kind(
        py,
        format!("{collective}: `x` has elements of type {x} and `out` of type {out}; give both the same"),
    )
}

/// Truth values are combined by logical operators only, which for them are what the bitwise ones are.
fn of_truth(py: Python<'_>, operator: Operator) -> PyResult<()> {
    match operator {
        Operator::Sum
        | Operator::Prod
        | Operator::Avg
        | Operator::MinLoc
        | Operator::MaxLoc
        | Operator::User(_) => Err(raise::kind(
            py,
            format!("`{operator}` is not defined on bool; use 'lor' or 'land', or convert, in numpy by x.astype(np.uint8)"),
        )),
        Operator::Min
        | Operator::Max
        | Operator::BitAnd
        | Operator::BitOr
        | Operator::BitXor
        | Operator::LogicalAnd
        | Operator::LogicalOr
        | Operator::LogicalXor => Ok(()),
    }
}

/// The allreduce of two arrays that need nothing made, packed, unpacked or explained, if it is one.
#[inline(always)]
fn direct<'py>(
    comm: &Communicator,
    x: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
    op: Given<'_, 'py>,
) -> Option<PyResult<()>> {
    if !numpy::is_array(x) || !numpy::is_array(out) {
        return None;
    }
    let py = x.py();
    let (a, b) = (numpy::read(x, "x").ok()?, numpy::read(out, "out").ok()?);
    let alike = a.element == b.element && a.count == b.count && !a.truth && !b.truth;
    if !(alike && a.dense && b.dense && b.writable) {
        return None;
    }
    let mut entered = comm.enter(py).ok()?;
    let operator = Some(entered.operator(py, op).ok()?);
    let (collective, root) = (Collective::Allreduce, 0);
    let spec = CallSpec { collective, element: a.element, count: a.count, operator, root };
    // SAFETY: both arrays are dense and equally long, and the caller has them.
    Some(entered.run(py, spec.bytes(), |comm| unsafe { comm.call(&spec, a.data, b.data) }))
}

impl Communicator {
    fn plain<'py>(
        &self,
        py: Python<'py>,
        collective: Collective,
        [x, out]: [Given<'_, 'py>; 2],
        root: usize,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Call { collective, x, out, operator: None, root }.run(self, py)
    }
}

/// A call that folds. Where the operator is a function, the package calls it (`lineweave._functions`).
fn folding<'py>(
    slf: &Bound<'py, Communicator>,
    collective: Collective,
    [x, out, op]: [Given<'_, 'py>; 3],
    root: usize,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let done = Call { collective, x, out, operator: Some(op), root }.run(slf.get(), slf.py());
    match done {
        Err(error) if op.is_some() && raise::is_callable_operator(slf.py(), &error) => {
            let name = collective.name().replace('-', "_");
            let function = slf.py().import("lineweave._functions")?.getattr(name)?;
            let result = function.call1((slf, x, op, root, out))?;
            Ok((!result.is_none()).then_some(result))
        }
        done => done,
    }
}

#[pymethods]
impl Communicator {
    #[pyo3(signature = (x, op=None, out=None))]
    #[inline]
    fn allreduce<'py>(
        slf: &Bound<'py, Communicator>,
        x: &Bound<'py, PyAny>,
        op: Given<'_, 'py>,
        out: Given<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Some(out) = out {
            if let Some(done) = direct(slf.get(), x, out, op) {
                return done.map(|()| Some(out.clone()));
            }
        }
        folding(slf, Collective::Allreduce, [Some(x), out, op], 0)
    }

    #[pyo3(signature = (x, root=0))]
    fn bcast<'py>(&self, py: Python<'py>, x: &Bound<'py, PyAny>, root: usize) -> PyResult<Bound<'py, PyAny>> {
        let collective = Collective::Bcast;
        let given = [(self.rank() == root).then_some(x), (self.rank() != root).then_some(x)];
        self.plain(py, collective, given, root)?;
        Ok(x.clone())
    }

    #[pyo3(signature = (x, op=None, root=0, out=None))]
    fn reduce<'py>(
        slf: &Bound<'py, Communicator>,
        x: Given<'_, 'py>,
        op: Given<'_, 'py>,
        root: usize,
        out: Given<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        folding(slf, Collective::Reduce, [x, out, op], root)
    }

    #[pyo3(signature = (x, root=0, out=None))]
    fn gather<'py>(
        &self,
        py: Python<'py>,
        x: Given<'_, 'py>,
        root: usize,
        out: Given<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.plain(py, Collective::Gather, [x, out], root)
    }

    #[pyo3(signature = (x, root=0, out=None))]
    fn scatter<'py>(
        &self,
        py: Python<'py>,
        x: Given<'_, 'py>,
        root: usize,
        out: Given<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let x = x.filter(|_| self.rank() == root);
        self.plain(py, Collective::Scatter, [x, out], root)
    }

    #[pyo3(signature = (x, out=None))]
    fn allgather<'py>(
        &self,
        py: Python<'py>,
        x: Given<'_, 'py>,
        out: Given<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.plain(py, Collective::Allgather, [x, out], 0)
    }

    #[pyo3(signature = (x, op=None, out=None))]
    fn reduce_scatter<'py>(
        slf: &Bound<'py, Communicator>,
        x: &Bound<'py, PyAny>,
        op: Given<'_, 'py>,
        out: Given<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        folding(slf, Collective::ReduceScatter, [Some(x), out, op], 0)
    }

    #[pyo3(signature = (x, op=None, out=None))]
    fn scan<'py>(
        slf: &Bound<'py, Communicator>,
        x: &Bound<'py, PyAny>,
        op: Given<'_, 'py>,
        out: Given<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        folding(slf, Collective::Scan, [Some(x), out, op], 0)
    }

    #[pyo3(signature = (x, op=None, out=None))]
    fn exscan<'py>(
        slf: &Bound<'py, Communicator>,
        x: &Bound<'py, PyAny>,
        op: Given<'_, 'py>,
        out: Given<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        folding(slf, Collective::Exscan, [Some(x), out, op], 0)
    }

    #[pyo3(signature = (x, out=None))]
    fn alltoall<'py>(
        &self,
        py: Python<'py>,
        x: Given<'_, 'py>,
        out: Given<'_, 'py>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.plain(py, Collective::Alltoall, [x, out], 0)
    }

    /// A call by addresses, for who has looked everything up: the number of the collective, element type and operator (-1 for
    /// none) in the order of the runtime's lists, the root, elements of the message or of one block, and where input and output
    /// are. The caller vouches for all of them.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "one number each")]
    fn _raw(
        &self,
        py: Python<'_>,
        collective: usize,
        element: usize,
        operator: isize,
        root: usize,
        count: usize,
        input: usize,
        output: usize,
    ) -> PyResult<()> {
        let unknown = |what: &str| raise::argument(py, format!("the number of the {what} is out of range"));
        let spec = CallSpec {
            collective: *Collective::ALL.get(collective).ok_or_else(|| unknown("collective"))?,
            element: *lineweave::ElementType::ALL.get(element).ok_or_else(|| unknown("element type"))?,
            count,
            operator: match usize::try_from(operator) {
                Ok(n) => Some(*Operator::ALL.get(n).ok_or_else(|| unknown("operator"))?),
                Err(_) => None,
            },
            root,
        };
        let (input, output) =
            (std::ptr::with_exposed_provenance(input), std::ptr::with_exposed_provenance_mut(output));
        let bytes = spec.bytes();
        // SAFETY: the caller's, within the package: `lineweave.torch`, which keeps the tensors during the call.
        self.enter(py)?.run(py, bytes, |comm| unsafe { comm.call(&spec, input, output) })
    }
}

//! Preparation of calls that Python makes: it finds their buffers.
//!
//! Every call defines the buffer that it reads and the one that it writes. `out` is the array for the result: `x` itself for a
//! call in place, another array, or `None` for a new array of the kind of `x`. Where a rank's own block may already lie in its
//! place, `x` is `None`.

use crate::array::Array;
use crate::raise;
use crate::rank::Communicator;
use lineweave::{CallSpec, Operator};
use lineweave_core::collective::{Collective, Extent};
use pyo3::prelude::*;

/// Most bytes of an array that is packed if it is not dense; beyond them, the copy should be the caller's decision.
const PACKED: usize = 1 << 20;

/// A call whose buffers are known. They stay in place as long as this value lives.
pub(crate) struct Ready<'py> {
    pub spec: CallSpec,
    pub input: *const u8,
    pub output: *mut u8,
    /// Bytes of the longer buffer.
    pub whole: usize,
    pub kept: [Option<Array<'py>>; 2],
    /// The array that the input was packed into.
    pub packed_input: Option<Bound<'py, PyAny>>,
    /// The array that receives the output, and the array to unpack it to.
    pub unpack: Option<(Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    /// The array that the call returns.
    pub result: Option<Bound<'py, PyAny>>,
}

impl<'py> Ready<'py> {
    /// Makes a call of buffers that somebody else keeps.
    pub(crate) fn of(spec: CallSpec, input: *const u8, output: *mut u8) -> Ready<'py> {
        let (whole, kept) = (spec.bytes(), [None, None]);
        Ready { spec, input, output, whole, kept, packed_input: None, unpack: None, result: None }
    }

    /// Unpacks the output after the call, and returns the result.
    pub(crate) fn finish(self, py: Python<'py>) -> Made<'py> {
        drop(self.kept);
        if let Some((packed, target)) = self.unpack {
            helper(py, "unpack")?.call1((packed, target))?;
        }
        Ok(self.result)
    }
}

/// A call with the arguments that Python passed.
pub(crate) struct Call<'a, 'py> {
    pub collective: Collective,
    pub x: Given<'a, 'py>,
    pub out: Given<'a, 'py>,
    /// The object that Python passed for the operator, for collectives that fold.
    pub operator: Option<Given<'a, 'py>>,
    pub root: usize,
}

/// An argument that may be missing.
pub(crate) type Given<'a, 'py> = Option<&'a Bound<'py, PyAny>>;

/// The result of a call: the array with the data, where there is one.
pub(crate) type Made<'py> = PyResult<Option<Bound<'py, PyAny>>>;

/// Returns a function of `lineweave._arrays`, for work that need not be fast.
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

/// Returns the array itself if it is dense, and else the one that it is `packed` into.
fn dense<'py>(
    x: &Bound<'py, PyAny>,
    array: Array<'py>,
    packed: &mut Option<Bound<'py, PyAny>>,
    whose: &'static str,
) -> PyResult<Array<'py>> {
    match array.layout.dense {
        true => Ok(array),
        false => Array::of(packed.insert(pack(x, array.layout.bytes(), whose)?), whose),
    }
}

/// Returns whether a call without input is one in place.
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
    /// Finds the buffers, and makes those that are missing. `operator` is the operator of the call.
    pub(crate) fn prepare(
        &self,
        comm: &Communicator,
        py: Python<'py>,
        operator: Option<Operator>,
    ) -> PyResult<Ready<'py>> {
        let (rank, ranks) = (comm.rank(), comm.ranks());
        let (collective, root) = (self.collective, self.root);
        if root >= ranks {
            let error = lineweave::Error::Root { collective, root, ranks };
            return Err(raise::error(py, &error, Some(rank)));
        }
        let extents = [collective.input(rank, root), collective.output(rank, root)];
        let reads = extents[0] != Extent::Nothing;
        let writes = extents[1] != Extent::Nothing;

        // The input is prepared.
        let mut packed_input = None;
        let mut x = None;
        if let (true, Some(given)) = (reads, self.x) {
            x = Some(dense(given, Array::of(given, "x")?, &mut packed_input, "x")?);
        } else if reads && !in_place(extents) {
            return Err(self.missing(py, "x"));
        }

        // The output is prepared.
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
            out = Some(dense(target, array, &mut packed_output, "out")?);
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
        // The number of elements of the message or of one block follows from the buffer that has them.
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
        let output_start = output.map_or(std::ptr::null_mut(), |l| l.data);
        let input_start = match input {
            Some(layout) => layout.data,
            // In a call in place, the own block lies in the output.
            None => {
                let [given, _] =
                    spec.places(None, rank, ranks).map_err(|error| raise::error(py, &error, Some(rank)))?;
                output_start.wrapping_add(given.map_or(0, |given| given.start))
            }
        };
        let whole = spec.input_bytes(rank, ranks).max(spec.output_bytes(rank, ranks));
        let result = if writes { made.or_else(|| self.out.cloned()) } else { None };
        let unpack = packed_output.zip(result.clone());
        Ok(Ready {
            spec,
            input: input_start.cast_const(),
            output: output_start,
            whole,
            kept: [x, out],
            packed_input,
            unpack,
            result,
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

/// Checks the operator for truth values: only logical operators combine them, which are the same as the bitwise ones here.
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

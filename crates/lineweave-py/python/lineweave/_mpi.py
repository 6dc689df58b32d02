"""Types, operators and buffers as mpi4py writes them (`lineweave.MPI`)."""

from __future__ import annotations

import operator as _operator_module
from typing import TYPE_CHECKING, Any, Callable, Union

from lineweave._errors import BadArgument

if TYPE_CHECKING:
    from typing_extensions import TypeAlias

    from lineweave._typing import Buf, Operator

    # A buffer to send; IN_PLACE may stand for it.
    SendBuf: TypeAlias = Union[Buf, "_InPlace"]

ANY_SOURCE, ANY_TAG = -2, -1
PROC_NULL = -1
UNDEFINED = -32766


class _InPlace:
    def __repr__(self) -> str:
        return "lineweave.MPI.IN_PLACE"


IN_PLACE = _InPlace()


class Datatype:
    """The type of elements. Buffers say theirs themselves; a type beside a buffer is compared with that."""

    def __init__(self, name: str, code: str) -> None:
        self.name, self.code = name, code

    def __repr__(self) -> str:
        return f"<lineweave.MPI.Datatype {self.name}>"

    def Get_size(self) -> int:
        """The bytes of an element."""
        return int(_numpy().dtype(self.code).itemsize)


BYTE = Datatype("BYTE", "u1")
CHAR = Datatype("CHAR", "i1")
SIGNED_CHAR = Datatype("SIGNED_CHAR", "i1")
SHORT, INT, LONG, LONG_LONG = (Datatype(n, c) for n, c in (("SHORT", "i2"), ("INT", "i4"), ("LONG", "i8"), ("LONG_LONG", "i8")))
INT8_T, INT16_T, INT32_T, INT64_T = (Datatype(f"INT{8 * n}_T", f"i{n}") for n in (1, 2, 4, 8))
UINT8_T, UINT16_T, UINT32_T, UINT64_T = (Datatype(f"UINT{8 * n}_T", f"u{n}") for n in (1, 2, 4, 8))
UNSIGNED, UNSIGNED_LONG = Datatype("UNSIGNED", "u4"), Datatype("UNSIGNED_LONG", "u8")
FLOAT, DOUBLE = Datatype("FLOAT", "f4"), Datatype("DOUBLE", "f8")
BOOL = C_BOOL = Datatype("C_BOOL", "?")


class Op:
    """An operator: called by name on arrays, as a function on objects."""

    def __init__(self, name: str, function: Callable[[Any, Any], Any], own: bool = False) -> None:
        self.name, self.function, self._own = name, function, own

    def __repr__(self) -> str:
        return f"<lineweave.MPI.Op {self.name}>"

    def __call__(self, a: Any, b: Any) -> Any:
        return self.function(a, b)

    @classmethod
    def Create(cls, function: Callable[[Any, Any, Any], None], commute: bool = False) -> Op:
        """An operator of the program's: `function(a, b, type)` combines array `a` into array `b`."""

        def combine(a: Any, b: Any) -> Any:
            result = b.copy()
            function(a, result, None)
            return result

        return cls("user", combine, own=True)

    def Free(self) -> None:
        """Nothing to give back."""

    @property
    def _engine(self) -> Operator:
        return self.function if self._own else self.name  # type: ignore[return-value]  # A name of one of ours.


SUM, PROD = Op("sum", _operator_module.add), Op("prod", _operator_module.mul)
MIN, MAX = Op("min", min), Op("max", max)
BAND, BOR, BXOR = (
    Op("band", _operator_module.and_),
    Op("bor", _operator_module.or_),
    Op("bxor", _operator_module.xor),
)
LAND = Op("land", lambda a, b: bool(a) and bool(b))
LOR = Op("lor", lambda a, b: bool(a) or bool(b))
LXOR = Op("lxor", lambda a, b: bool(a) != bool(b))


def _numpy() -> Any:
    import numpy

    return numpy


def _buffer(given: SendBuf) -> tuple[Any, list[int] | None]:
    """Returns the array of a buffer as mpi4py takes it (`x`, `[x, TYPE]`, `[x, count]`, `[x, counts, TYPE]`), and counts of blocks."""
    if not isinstance(given, (list, tuple)):
        return given, None
    array, *rest = given
    counts: list[int] | None = None
    for part in rest:
        if isinstance(part, (Datatype, str)) or part is None:
            code = part.code if isinstance(part, Datatype) else part
            if code is not None and array is not None and _numpy().asarray(array).dtype != _numpy().dtype(code):
                raise BadArgument(f"the buffer has elements of type {_numpy().asarray(array).dtype} and not {part!r}")
        elif isinstance(part, int):
            array = _numpy().asarray(array).reshape(-1)[:part]
        else:
            if len(part) == 2 and not isinstance(part[0], int) and hasattr(part[0], "__len__"):
                part, displacements = part
                _dense(list(part), list(displacements))
            counts = [int(n) for n in part]
    return array, counts


def _dense(counts: list[int], displacements: list[int]) -> None:
    at = 0
    for count, displacement in zip(counts, displacements):
        if displacement != at:
            raise BadArgument("blocks with gaps between them are not offered; let displacements be the sums of the counts")
        at += count


def _one(given: SendBuf) -> Any:
    array, counts = _buffer(given)
    if counts is not None:
        raise BadArgument("counts belong to the calls for blocks of different lengths, such as Allgatherv")
    return array


def _tag(tag: int) -> int:
    if tag == ANY_TAG:
        raise BadArgument("a message is received under one tag; ANY_TAG is not offered")
    return tag


def _named(source: int, tag: int) -> int:
    _tag(tag)
    if source == ANY_SOURCE:
        raise BadArgument("what is begun is received from one rank; ANY_SOURCE is for calls that block, such as Recv and Probe")
    return source


def _flat(array: Any) -> Any:
    return None if array is None else _numpy().asarray(array).reshape(-1)


def _pairs(sendbuf: SendBuf, recvbuf: Buf) -> tuple[Any, list[int], list[int], Any]:
    (send, given), (out, taken) = _buffer(sendbuf), _buffer(recvbuf)
    if given is None or taken is None:
        raise BadArgument("Alltoallv: give counts with both buffers: [x, counts]")
    return send, given, taken, out


def _counted(given: Buf, what: str) -> tuple[Any, list[int]]:
    array, counts = _buffer(given)
    if counts is None:
        raise BadArgument(f"{what}: give the counts of all ranks at every rank, [x, counts], where x may be None if it is not used")
    return array, counts

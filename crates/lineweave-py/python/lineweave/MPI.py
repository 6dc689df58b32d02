"""Communicators as mpi4py has them, among the ranks of one node: `from lineweave import MPI` in place of `from mpi4py import MPI`.

Upper-case methods are for arrays, lower-case ones for Python objects. What lineweave does not do (other nodes, windows,
files, derived types, dynamic processes) is not here, and asking for it is an `AttributeError`. Without a launcher
`COMM_WORLD` is this process alone, as with MPI.
"""

from __future__ import annotations

import atexit
import operator as _operator_module
import os
import platform
import time
from typing import Any, Callable, Sequence

import lineweave
from lineweave import _launch, _lineweave
from lineweave._errors import BadArgument, Error, NoTeam
from lineweave._team import Team, fresh_name

Exception = Error  # noqa: A001  (the name that mpi4py gives it)

UNDEFINED = -32766
PROC_NULL = -1
ROOT = -3
THREAD_SINGLE, THREAD_FUNNELED, THREAD_SERIALIZED, THREAD_MULTIPLE = range(4)


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
    def _engine(self) -> Any:
        return self.function if self._own else self.name


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


def _buffer(given: Any) -> tuple[Any, list[int] | None]:
    """The array of a buffer as mpi4py takes it (`x`, `[x, TYPE]`, `[x, count]`, `[x, counts, TYPE]`), and counts of blocks."""
    if not isinstance(given, (list, tuple)):
        return given, None
    array, *rest = given
    counts: list[int] | None = None
    for part in rest:
        if isinstance(part, (Datatype, str)) or part is None:
            code = part.code if isinstance(part, Datatype) else part
            if code is not None and _numpy().asarray(array).dtype != _numpy().dtype(code):
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


def _one(given: Any) -> Any:
    array, counts = _buffer(given)
    if counts is not None:
        raise BadArgument("counts belong to the calls for blocks of different lengths, such as Allgatherv")
    return array


def _flat(array: Any) -> Any:
    return None if array is None else _numpy().asarray(array).reshape(-1)


class Request:
    """A call that was begun. Calls here are over when they return, so it is always complete."""

    def __init__(self, result: Any = None) -> None:
        self._result = result

    def Wait(self, status: Any = None) -> bool:
        return True

    def Test(self, status: Any = None) -> bool:
        return True

    def wait(self, status: Any = None) -> Any:
        return self._result

    def test(self, status: Any = None) -> tuple[bool, Any]:
        return True, self._result

    def __await__(self) -> Any:
        return self._result
        yield

    @staticmethod
    def Waitall(requests: Sequence[Request], statuses: Any = None) -> bool:
        return True

    @staticmethod
    def waitall(requests: Sequence[Request], statuses: Any = None) -> list[Any]:
        return [request.wait() for request in requests]


class Comm:
    """A communicator: ranks that call together."""

    def __init__(self, team: Team | None) -> None:
        self._team = team

    def _get(self) -> Team:
        if self._team is None:
            raise Error("this is the null communicator")
        return self._team

    @property
    def rank(self) -> int:
        return self._get().rank

    @property
    def size(self) -> int:
        return self._get().size

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.size

    def Get_name(self) -> str:
        return "lineweave"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Comm) and self._team is other._team

    def __hash__(self) -> int:
        return id(self._team)

    def __bool__(self) -> bool:
        return self._team is not None

    def Dup(self) -> Comm:
        return Comm(self._get().dup())

    Clone = Dup

    def Split(self, color: int = 0, key: int = 0) -> Comm:
        made = self._get().split(None if color == UNDEFINED else color, key)
        return COMM_NULL if made is None else Comm(made)

    def Split_type(self, split_type: int, key: int = 0, info: Any = None) -> Comm:
        return self.Split(0, key)

    def Free(self) -> None:
        self._get().close()
        self._team = None

    def Abort(self, errorcode: int = 0) -> None:
        self._get().abandon(f"Abort({errorcode})")
        os._exit(errorcode or 1)

    # Arrays.

    def Barrier(self) -> None:
        self._get().barrier()

    def Bcast(self, buf: Any, root: int = 0) -> None:
        self._get().bcast(_one(buf), root)

    def Reduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> None:
        team = self._get()
        if sendbuf is IN_PLACE:
            out = _one(recvbuf)
            team.reduce(out, op._engine, root, out)
        else:
            team.reduce(_one(sendbuf), op._engine, root, _one(recvbuf) if team.rank == root else None)

    def Allreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        if type(recvbuf) is list or type(recvbuf) is tuple:
            recvbuf = _one(recvbuf)
        if sendbuf is IN_PLACE:
            sendbuf = recvbuf
        elif type(sendbuf) is list or type(sendbuf) is tuple:
            sendbuf = _one(sendbuf)
        self._get().allreduce(sendbuf, op._engine, recvbuf)

    def Gather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        team = self._get()
        send = None if sendbuf is IN_PLACE else _one(sendbuf)
        team.gather(send, root, _one(recvbuf) if team.rank == root else None)

    def Scatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        team = self._get()
        if recvbuf is IN_PLACE:
            send = _flat(_one(sendbuf))
            recvbuf = _numpy().empty(send.size // team.size, send.dtype)
        team.scatter(_one(sendbuf) if team.rank == root else None, root, _one(recvbuf))

    def Allgather(self, sendbuf: Any, recvbuf: Any) -> None:
        self._get().allgather(None if sendbuf is IN_PLACE else _one(sendbuf), _one(recvbuf))

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:
        self._get().alltoall(None if sendbuf is IN_PLACE else _one(sendbuf), _one(recvbuf))

    def Scan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        out = _one(recvbuf)
        self._get().scan(out if sendbuf is IN_PLACE else _one(sendbuf), op._engine, out)

    def Exscan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        out = _one(recvbuf)
        self._get().exscan(out if sendbuf is IN_PLACE else _one(sendbuf), op._engine, out)

    def Reduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> None:
        self._get().reduce_scatter(_one(sendbuf), op._engine, _one(recvbuf))

    def Reduce_scatter(self, sendbuf: Any, recvbuf: Any, recvcounts: Sequence[int] | None = None, op: Op = SUM) -> None:
        team = self._get()
        if recvcounts is None:
            recvcounts = team.allgather_object(int(_numpy().asarray(_one(recvbuf)).size))
        team.reduce_scatterv(_one(sendbuf), list(recvcounts), op._engine, _one(recvbuf))

    def Allgatherv(self, sendbuf: Any, recvbuf: Any) -> None:
        team = self._get()
        out, counts = _buffer(recvbuf)
        send = None if sendbuf is IN_PLACE else _one(sendbuf)
        if counts is None:
            counts = team.allgather_object(int(_numpy().asarray(send).size))
        team.allgatherv(send, counts, out)

    def Gatherv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        team = self._get()
        send = _one(sendbuf)
        # Every rank needs all counts, and MPI gives them to the root only.
        counts = team.allgather_object(int(_numpy().asarray(send).size))
        team.gatherv(send, counts, root, _buffer(recvbuf)[0] if team.rank == root else None)

    def Scatterv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> None:
        team = self._get()
        out = _one(recvbuf)
        counts = team.allgather_object(int(_numpy().asarray(out).size))
        team.scatterv(_buffer(sendbuf)[0] if team.rank == root else None, counts, root, out)

    def Alltoallv(self, sendbuf: Any, recvbuf: Any) -> None:
        (send, given), (out, taken) = _buffer(sendbuf), _buffer(recvbuf)
        if given is None or taken is None:
            raise BadArgument("Alltoallv: give counts with both buffers: [x, counts]")
        self._get().alltoallv(send, given, taken, out)

    # The same, begun: they are over when they return.

    def Ibarrier(self) -> Request:
        self.Barrier()
        return Request()

    def Ibcast(self, buf: Any, root: int = 0) -> Request:
        self.Bcast(buf, root)
        return Request()

    def Iallreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        self.Allreduce(sendbuf, recvbuf, op)
        return Request()

    def Iallgather(self, sendbuf: Any, recvbuf: Any) -> Request:
        self.Allgather(sendbuf, recvbuf)
        return Request()

    def Ireduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> Request:
        self.Reduce(sendbuf, recvbuf, op, root)
        return Request()

    # Objects.

    def barrier(self) -> None:
        self._get().barrier()

    def bcast(self, obj: Any, root: int = 0) -> Any:
        return self._get().bcast_object(obj, root)

    def gather(self, sendobj: Any, root: int = 0) -> list[Any] | None:
        return self._get().gather_object(sendobj, root)

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        return self._get().scatter_object(sendobj, root)

    def allgather(self, sendobj: Any) -> list[Any]:
        return self._get().allgather_object(sendobj)

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        return self._get().alltoall_object(sendobj)

    def reduce(self, sendobj: Any, op: Callable[[Any, Any], Any] = SUM, root: int = 0) -> Any:
        return self._get().reduce_object(sendobj, op, root)

    def allreduce(self, sendobj: Any, op: Callable[[Any, Any], Any] = SUM) -> Any:
        return self._get().allreduce_object(sendobj, op)

    def scan(self, sendobj: Any, op: Callable[[Any, Any], Any] = SUM) -> Any:
        return self._get().scan_object(sendobj, op)

    def exscan(self, sendobj: Any, op: Callable[[Any, Any], Any] = SUM) -> Any:
        return self._get().exscan_object(sendobj, op)


Intracomm = Comm
COMM_TYPE_SHARED = 1
COMM_NULL = Comm(None)


def _world() -> Team:
    try:
        return lineweave.team()
    except NoTeam:
        if any(rank in os.environ for _, rank, _, _, _ in _launch._LAUNCHERS):
            raise
        return Team(_lineweave.meet(fresh_name(), 1, 0, 60.0))


COMM_WORLD = Comm(_world())
COMM_SELF = Comm(Team(_lineweave.meet(fresh_name(), 1, 0, 60.0)))


@atexit.register
def _finalize() -> None:
    # As MPI_Finalize: nobody leaves while others may still need it. One that failed has told them.
    team = COMM_WORLD._team
    if team is not None and not team.closed:
        team.close()


def Is_initialized() -> bool:
    return True


def Is_finalized() -> bool:
    return False


def Query_thread() -> int:
    return THREAD_SERIALIZED


def Wtime() -> float:
    return time.perf_counter()


def Get_processor_name() -> str:
    return platform.node()


def Get_library_version() -> str:
    return f"lineweave {lineweave.__version__}"

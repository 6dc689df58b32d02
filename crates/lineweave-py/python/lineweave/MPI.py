"""Communicators as mpi4py has them, among the ranks of one node: `from lineweave import MPI` in place of `from mpi4py import MPI`.

Upper-case methods are for arrays, lower-case ones for Python objects. What lineweave does not do (other nodes, windows,
files, derived types, dynamic processes) is not here, and asking for it is an `AttributeError`. Without a launcher
`COMM_WORLD` is this process alone, as with MPI.
"""

from __future__ import annotations

import atexit
import os
import platform
import time
from typing import TYPE_CHECKING, Any, Callable, Sequence

import lineweave
from lineweave import _launch, _lineweave
from lineweave._errors import Error, NoTeam
from lineweave._mpi import (
    ANY_SOURCE,
    ANY_TAG,
    BAND,
    BOOL,
    BOR,
    BXOR,
    BYTE,
    C_BOOL,
    CHAR,
    DOUBLE,
    FLOAT,
    IN_PLACE,
    INT,
    INT8_T,
    INT16_T,
    INT32_T,
    INT64_T,
    LAND,
    LONG,
    LONG_LONG,
    LOR,
    LXOR,
    MAX,
    MIN,
    PROC_NULL,
    PROD,
    SHORT,
    SIGNED_CHAR,
    SUM,
    UINT8_T,
    UINT16_T,
    UINT32_T,
    UINT64_T,
    UNDEFINED,
    UNSIGNED,
    UNSIGNED_LONG,
    Datatype,
    Op,
    _buffer,
    _flat,
    _numpy,
    _one,
    _pairs,
)
from lineweave._mpi_begun import Begun
from lineweave._mpi_requests import Prequest, Request, Status
from lineweave._team import Team, fresh_name

if TYPE_CHECKING:
    from lineweave._mpi import SendBuf
    from lineweave._typing import Buf

Exception = Error  # noqa: A001  (the name that mpi4py gives it)

ROOT = -3
THREAD_SINGLE, THREAD_FUNNELED, THREAD_SERIALIZED, THREAD_MULTIPLE = range(4)


class Comm(Begun):
    """A communicator: ranks that call together.

        >>> comm = MPI.COMM_WORLD
        >>> x, total = np.array([1.0, 2.0]), np.empty(2)
        >>> comm.Allreduce(x, total, op=MPI.SUM)
        >>> total.tolist() == [comm.size, 2 * comm.size]
        True
        >>> comm.allgather(comm.rank) == list(range(comm.size))
        True
    """

    def Get_name(self) -> str:
        """What the communicator is called."""
        return "lineweave"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Comm) and self._team is other._team

    def __hash__(self) -> int:
        return id(self._team)

    def __bool__(self) -> bool:
        return self._team is not None

    def Dup(self) -> Comm:
        """Another communicator of the same ranks, whose calls do not meet those of this one."""
        return Comm(self._get().dup())

    Clone = Dup

    def Split(self, color: int = 0, key: int = 0) -> Comm:
        """Communicators of the ranks that give one color, in the order of key and rank; `COMM_NULL` for `UNDEFINED`."""
        made = self._get().split(None if color == UNDEFINED else color, key)
        return COMM_NULL if made is None else Comm(made)

    def Split_type(self, split_type: int, key: int = 0, info: object = None) -> Comm:
        """A communicator of the ranks of one node: all of them."""
        return self.Split(0, key)

    def Free(self) -> None:
        """Leaves the communicator."""
        self._get().close()
        self._team = None

    def Abort(self, errorcode: int = 0) -> None:
        """Tells the other ranks that this one failed, and ends the process."""
        self._get().abandon(f"Abort({errorcode})")
        os._exit(errorcode or 1)

    # Arrays.

    def Barrier(self) -> None:
        """Returns when every rank has called it."""
        self._get().barrier()

    def Bcast(self, buf: Buf, root: int = 0) -> None:
        """Copies the root's `buf` into everybody's."""
        self._get().bcast(_one(buf), root)

    def Reduce(self, sendbuf: SendBuf, recvbuf: Buf, op: Op = SUM, root: int = 0) -> None:
        """Combines every rank's `sendbuf` in the root's `recvbuf`."""
        team = self._get()
        if sendbuf is IN_PLACE:
            out = _one(recvbuf)
            team.reduce(out, op._engine, root, out)
        else:
            team.reduce(_one(sendbuf), op._engine, root, _one(recvbuf) if team.rank == root else None)

    def Allreduce(self, sendbuf: SendBuf, recvbuf: Buf, op: Op = SUM) -> None:
        """Combines every rank's `sendbuf` in every rank's `recvbuf`."""
        if type(recvbuf) is list or type(recvbuf) is tuple:
            recvbuf = _one(recvbuf)
        if sendbuf is IN_PLACE:
            sendbuf = recvbuf
        elif type(sendbuf) is list or type(sendbuf) is tuple:
            sendbuf = _one(sendbuf)
        # Arrays by now, which a type checker cannot see.
        self._get().allreduce(sendbuf, op._engine, recvbuf)  # type: ignore[type-var,arg-type]

    def Gather(self, sendbuf: SendBuf, recvbuf: Buf, root: int = 0) -> None:
        """Gathers equally long blocks in the root's `recvbuf`."""
        team = self._get()
        send: Any = None if sendbuf is IN_PLACE else _one(sendbuf)
        team.gather(send, root, _one(recvbuf) if team.rank == root else None)

    def Scatter(self, sendbuf: Buf, recvbuf: SendBuf, root: int = 0) -> None:
        """Gives each rank its block of the root's `sendbuf`."""
        team = self._get()
        if recvbuf is IN_PLACE:
            send = _flat(_one(sendbuf))
            recvbuf = _numpy().empty(send.size // team.size, send.dtype)
        team.scatter(_one(sendbuf) if team.rank == root else None, root, _one(recvbuf))

    def Allgather(self, sendbuf: SendBuf, recvbuf: Buf) -> None:
        """Gathers equally long blocks in every rank's `recvbuf`."""
        self._get().allgather(None if sendbuf is IN_PLACE else _one(sendbuf), _one(recvbuf))

    def Alltoall(self, sendbuf: SendBuf, recvbuf: Buf) -> None:
        """Gives block `j` of `sendbuf` to rank `j`."""
        self._get().alltoall(None if sendbuf is IN_PLACE else _one(sendbuf), _one(recvbuf))

    def Scan(self, sendbuf: SendBuf, recvbuf: Buf, op: Op = SUM) -> None:
        """Combines the `sendbuf` of the ranks up to this one."""
        out = _one(recvbuf)
        self._get().scan(out if sendbuf is IN_PLACE else _one(sendbuf), op._engine, out)

    def Exscan(self, sendbuf: SendBuf, recvbuf: Buf, op: Op = SUM) -> None:
        """Combines the `sendbuf` of the ranks before this one; rank 0 gets nothing."""
        out = _one(recvbuf)
        self._get().exscan(out if sendbuf is IN_PLACE else _one(sendbuf), op._engine, out)

    def Reduce_scatter_block(self, sendbuf: SendBuf, recvbuf: Buf, op: Op = SUM) -> None:
        """Combines, and gives each rank its block of the result; blocks are equally long."""
        self._get().reduce_scatter_block(_one(sendbuf), op._engine, _one(recvbuf))

    def Reduce_scatter(self, sendbuf: SendBuf, recvbuf: Buf, recvcounts: Sequence[int] | None = None, op: Op = SUM) -> None:
        """Combines, and gives `recvcounts[r]` elements of the result to rank `r`; if not given, as many as it has room for."""
        team = self._get()
        if recvcounts is None:
            recvcounts = team.allgather_object(int(_numpy().asarray(_one(recvbuf)).size))
        team.reduce_scatter(_one(sendbuf), list(recvcounts), op._engine, _one(recvbuf))

    def Allgatherv(self, sendbuf: SendBuf, recvbuf: Buf) -> None:
        """`Allgather` with a length for each block: `[x, counts]`."""
        team = self._get()
        out, counts = _buffer(recvbuf)
        send = None if sendbuf is IN_PLACE else _one(sendbuf)
        if counts is None:
            counts = team.allgather_object(int(_numpy().asarray(send).size))
        team.allgatherv(send, counts, out)

    def Gatherv(self, sendbuf: SendBuf, recvbuf: Buf, root: int = 0) -> None:
        """`Gather` with a length for each block: `[x, counts]` at the root."""
        team = self._get()
        send = _one(sendbuf)
        # Every rank needs all counts, and MPI gives them to the root only.
        counts = team.allgather_object(int(_numpy().asarray(send).size))
        team.gatherv(send, counts, root, _buffer(recvbuf)[0] if team.rank == root else None)

    def Scatterv(self, sendbuf: SendBuf, recvbuf: Buf, root: int = 0) -> None:
        """`Scatter` with a length for each block: `[x, counts]` at the root."""
        team = self._get()
        out = _one(recvbuf)
        counts = team.allgather_object(int(_numpy().asarray(out).size))
        team.scatterv(_buffer(sendbuf)[0] if team.rank == root else None, counts, root, out)

    def Alltoallv(self, sendbuf: SendBuf, recvbuf: Buf) -> None:
        """`Alltoall` with a length for each block: `[x, counts]` twice."""
        self._get().alltoallv(*_pairs(sendbuf, recvbuf))

    # Objects.

    def barrier(self) -> None:
        """Returns when every rank has called it."""
        self._get().barrier()

    def bcast(self, obj: object, root: int = 0) -> Any:
        """The root's object, at every rank."""
        return self._get().bcast_object(obj, root)

    def gather(self, sendobj: object, root: int = 0) -> list[Any] | None:
        """The objects of all ranks at the root, `None` elsewhere."""
        return self._get().gather_object(sendobj, root)

    def scatter(self, sendobj: Sequence[Any] | None, root: int = 0) -> Any:
        """Each rank's object of the root's list."""
        return self._get().scatter_object(sendobj, root)

    def allgather(self, sendobj: object) -> list[Any]:
        """The objects of all ranks, at every rank."""
        return self._get().allgather_object(sendobj)

    def alltoall(self, sendobj: Sequence[Any]) -> list[Any]:
        """Object `j` of the list goes to rank `j`."""
        return self._get().alltoall_object(sendobj)

    def reduce(self, sendobj: object, op: Callable[[Any, Any], Any] = SUM, root: int = 0) -> Any:
        """The objects of all ranks, combined at the root."""
        return self._get().reduce_object(sendobj, op, root)

    def allreduce(self, sendobj: object, op: Callable[[Any, Any], Any] = SUM) -> Any:
        """The objects of all ranks, combined at every rank."""
        return self._get().allreduce_object(sendobj, op)

    def scan(self, sendobj: object, op: Callable[[Any, Any], Any] = SUM) -> Any:
        """The objects of the ranks up to this one, combined."""
        return self._get().scan_object(sendobj, op)

    def exscan(self, sendobj: object, op: Callable[[Any, Any], Any] = SUM) -> Any:
        """The objects of the ranks before this one, combined; `None` at rank 0."""
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
    """Yes."""
    return True


def Is_finalized() -> bool:
    """No: that happens when the interpreter ends."""
    return False


def Query_thread() -> int:
    """One thread at a time makes calls."""
    return THREAD_SERIALIZED


def Wtime() -> float:
    """Seconds of a clock that only goes on."""
    return time.perf_counter()


def Get_processor_name() -> str:
    """The node's name."""
    return platform.node()


def Get_library_version() -> str:
    """lineweave and its version."""
    return f"lineweave {lineweave.__version__}"

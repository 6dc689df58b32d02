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
from typing import Any, Callable, Sequence

import lineweave
from lineweave import _launch, _lineweave
from lineweave._errors import BadArgument, Error, NoTeam
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
    PROD,
    SHORT,
    SIGNED_CHAR,
    SUM,
    UINT8_T,
    UINT16_T,
    UINT32_T,
    UINT64_T,
    UNSIGNED,
    UNSIGNED_LONG,
    Datatype,
    Op,
    _buffer,
    _flat,
    _named,
    _numpy,
    _one,
)
from lineweave._team import Team, fresh_name

Exception = Error  # noqa: A001  (the name that mpi4py gives it)

UNDEFINED = -32766
PROC_NULL = -1
ROOT = -3
THREAD_SINGLE, THREAD_FUNNELED, THREAD_SERIALIZED, THREAD_MULTIPLE = range(4)


class Request:
    """A call that was begun."""

    def __init__(self, begun: lineweave.Request | None = None, keep: Any = None) -> None:
        self._begun, self._keep = begun, keep

    def Wait(self, status: Any = None) -> bool:
        if self._begun is not None:
            self._begun.wait()
        return True

    def Test(self, status: Any = None) -> bool:
        return self._begun is None or self._begun.test()

    def wait(self, status: Any = None) -> Any:
        self.Wait()

    def test(self, status: Any = None) -> tuple[bool, Any]:
        return self.Test(), None

    def __await__(self) -> Any:
        if self._begun is not None:
            yield from self._begun.__await__()

    @staticmethod
    def Waitall(requests: Sequence[Request], statuses: Any = None) -> bool:
        for request in requests:
            request.Wait()
        return True

    @staticmethod
    def waitall(requests: Sequence[Request], statuses: Any = None) -> list[Any]:
        return [request.wait() for request in requests]

    @staticmethod
    def Testall(requests: Sequence[Request], statuses: Any = None) -> bool:
        return all([request.Test() for request in requests])


class Prequest(Request):
    """A call that is begun again and again."""

    def __init__(self, handle: lineweave.Handle) -> None:
        super().__init__()
        self._handle = handle

    def Start(self) -> None:
        self._begun = self._handle.start()

    def Free(self) -> None:
        """Nothing to give back."""

    @staticmethod
    def Startall(requests: Sequence[Prequest]) -> None:
        for request in requests:
            request.Start()


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

    # The same, begun.

    def Ibarrier(self) -> Request:
        return Request(self._get().ibarrier())

    def Ibcast(self, buf: Any, root: int = 0) -> Request:
        return Request(self._get().ibcast(_one(buf), root))

    def Iallreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        out = _one(recvbuf)
        return Request(self._get().iallreduce(out if sendbuf is IN_PLACE else _one(sendbuf), op._engine, out))

    def Ireduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> Request:
        team = self._get()
        out = _one(recvbuf) if team.rank == root else None
        return Request(team.ireduce(out if sendbuf is IN_PLACE else _one(sendbuf), op._engine, root, out))

    def Iallgather(self, sendbuf: Any, recvbuf: Any) -> Request:
        return Request(self._get().iallgather(None if sendbuf is IN_PLACE else _one(sendbuf), _one(recvbuf)))

    def Igather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        team = self._get()
        send = None if sendbuf is IN_PLACE else _one(sendbuf)
        return Request(team.igather(send, root, _one(recvbuf) if team.rank == root else None))

    def Iscatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        team = self._get()
        return Request(team.iscatter(_one(sendbuf) if team.rank == root else None, root, _one(recvbuf)))

    def Ialltoall(self, sendbuf: Any, recvbuf: Any) -> Request:
        return Request(self._get().ialltoall(None if sendbuf is IN_PLACE else _one(sendbuf), _one(recvbuf)))

    def Allreduce_init(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, info: Any = None) -> Prequest:
        out = _one(recvbuf)
        x = out if sendbuf is IN_PLACE else _one(sendbuf)
        return Prequest(self._get().handle("allreduce", x, out=out, op=op._engine))

    def Bcast_init(self, buf: Any, root: int = 0, info: Any = None) -> Prequest:
        return Prequest(self._get().handle("bcast", _one(buf), root=root))

    # Messages between two ranks.

    def Send(self, buf: Any, dest: int, tag: int = 0) -> None:
        if dest != PROC_NULL:
            self._get().send(_one(buf), dest, tag)

    def Recv(self, buf: Any, source: int = ANY_SOURCE, tag: int = 0, status: Any = None) -> None:
        if source != PROC_NULL:
            self._get().recv(_one(buf), _named(source, tag), tag)

    def Sendrecv(
        self,
        sendbuf: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = 0,
        status: Any = None,
    ) -> None:
        if dest == PROC_NULL or source == PROC_NULL:
            self.Send(sendbuf, dest, sendtag)
            self.Recv(recvbuf, source, recvtag)
        else:
            self._get().sendrecv(_one(sendbuf), dest, _one(recvbuf), _named(source, recvtag), sendtag, recvtag)

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        self._get().send_object(obj, dest, tag)

    def recv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = 0, status: Any = None) -> Any:
        return self._get().recv_object(_named(source, tag), tag)

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

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
    UNDEFINED,
    UNSIGNED,
    UNSIGNED_LONG,
    Datatype,
    Op,
    _buffer,
    _counted,
    _flat,
    _named,
    _numpy,
    _one,
    _pairs,
    _tag,
)
from lineweave._mpi_requests import Prequest, Request, Status, _arrived, _begun
from lineweave._team import Team, fresh_name

Exception = Error  # noqa: A001  (the name that mpi4py gives it)

PROC_NULL = -1
ROOT = -3
THREAD_SINGLE, THREAD_FUNNELED, THREAD_SERIALIZED, THREAD_MULTIPLE = range(4)


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
        self._get().alltoallv(*_pairs(sendbuf, recvbuf))

    # The same, begun.

    def Ibarrier(self) -> Request:
        return _begun(self._get().ibarrier())

    def Ibcast(self, buf: Any, root: int = 0) -> Request:
        return _begun(self._get().ibcast(_one(buf), root))

    def Iallreduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        out = _one(recvbuf)
        return _begun(self._get().iallreduce(out if sendbuf is IN_PLACE else _one(sendbuf), op._engine, out))

    def Ireduce(self, sendbuf: Any, recvbuf: Any, op: Op = SUM, root: int = 0) -> Request:
        team = self._get()
        out = _one(recvbuf) if team.rank == root else None
        return _begun(team.ireduce(out if sendbuf is IN_PLACE else _one(sendbuf), op._engine, root, out))

    def Iallgather(self, sendbuf: Any, recvbuf: Any) -> Request:
        return _begun(self._get().iallgather(None if sendbuf is IN_PLACE else _one(sendbuf), _one(recvbuf)))

    def Igather(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        team = self._get()
        send = None if sendbuf is IN_PLACE else _one(sendbuf)
        return _begun(team.igather(send, root, _one(recvbuf) if team.rank == root else None))

    def Iscatter(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        team = self._get()
        return _begun(team.iscatter(_one(sendbuf) if team.rank == root else None, root, _one(recvbuf)))

    def Ialltoall(self, sendbuf: Any, recvbuf: Any) -> Request:
        return _begun(self._get().ialltoall(None if sendbuf is IN_PLACE else _one(sendbuf), _one(recvbuf)))

    def Iscan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        out = _one(recvbuf)
        return _begun(self._get().iscan(out if sendbuf is IN_PLACE else _one(sendbuf), op._engine, out))

    def Iexscan(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        out = _one(recvbuf)
        return _begun(self._get().iexscan(out if sendbuf is IN_PLACE else _one(sendbuf), op._engine, out))

    def Ireduce_scatter_block(self, sendbuf: Any, recvbuf: Any, op: Op = SUM) -> Request:
        return _begun(self._get().ireduce_scatter(_one(sendbuf), op._engine, _one(recvbuf)))

    # Every rank has to give all counts here, also where MPI asks the root only: who begins a call does not wait for others.

    def Iallgatherv(self, sendbuf: Any, recvbuf: Any) -> Request:
        out, counts = _counted(recvbuf, "Iallgatherv")
        return _begun(self._get().iallgatherv(None if sendbuf is IN_PLACE else _one(sendbuf), counts, out))

    def Igatherv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        team = self._get()
        out, counts = _counted(recvbuf, "Igatherv")
        return _begun(team.igatherv(_one(sendbuf), counts, root, out if team.rank == root else None))

    def Iscatterv(self, sendbuf: Any, recvbuf: Any, root: int = 0) -> Request:
        team = self._get()
        send, counts = _counted(sendbuf, "Iscatterv")
        return _begun(team.iscatterv(send if team.rank == root else None, counts, root, _one(recvbuf)))

    def Ialltoallv(self, sendbuf: Any, recvbuf: Any) -> Request:
        return _begun(self._get().ialltoallv(*_pairs(sendbuf, recvbuf)))

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

    def Recv(self, buf: Any, source: int = ANY_SOURCE, tag: int = 0, status: Status | None = None) -> None:
        if source != PROC_NULL:
            out = _one(buf)
            source = self._found(source, tag)
            _arrived(out, source, tag)(self._get().recv(out, source, tag), status or Status())

    def Sendrecv(
        self,
        sendbuf: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = 0,
        status: Status | None = None,
    ) -> None:
        sent = self.Isend(sendbuf, dest, sendtag)
        self.Recv(recvbuf, source, recvtag, status)
        sent.Wait()

    def Isend(self, buf: Any, dest: int, tag: int = 0) -> Request:
        return Request() if dest == PROC_NULL else _begun(self._get().isend(_one(buf), dest, tag))

    def Irecv(self, buf: Any, source: int = ANY_SOURCE, tag: int = 0) -> Request:
        if source == PROC_NULL:
            return Request()
        out = _one(buf)
        return Request(self._get().irecv(out, _named(source, tag), tag), _arrived(out, source, tag))

    def Probe(self, source: int = ANY_SOURCE, tag: int = 0, status: Status | None = None) -> bool:
        return self._probe(source, tag, status, True)

    def Iprobe(self, source: int = ANY_SOURCE, tag: int = 0, status: Status | None = None) -> bool:
        return self._probe(source, tag, status, False)

    def _probe(self, source: int, tag: int, status: Status | None, wait: bool) -> bool:
        found = self._get().probe(None if source == ANY_SOURCE else source, _tag(tag), wait)
        if found is not None and status is not None:
            status._set(found[0], tag, found[1])
        return found is not None

    def _found(self, source: int, tag: int) -> int:
        """The rank to receive from."""
        if source != ANY_SOURCE:
            return _named(source, tag)
        found = self._get().probe(None, _tag(tag))
        assert found is not None
        return found[0]

    def send(self, obj: Any, dest: int, tag: int = 0) -> None:
        if dest != PROC_NULL:
            self._get().send_object(obj, dest, tag)

    def recv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = 0, status: Status | None = None) -> Any:
        if source == PROC_NULL:
            return None
        source = self._found(source, tag)
        if status is not None:
            status._set(source, tag, 0)
        return self._get().recv_object(source, tag)

    def isend(self, obj: Any, dest: int, tag: int = 0) -> Request:
        return Request() if dest == PROC_NULL else _begun(self._get().isend_object(obj, dest, tag))

    def irecv(self, buf: Any = None, source: int = ANY_SOURCE, tag: int = 0) -> Request:
        return Request() if source == PROC_NULL else Request(self._get().irecv_object(_named(source, tag), tag))

    def sendrecv(
        self,
        sendobj: Any,
        dest: int,
        sendtag: int = 0,
        recvbuf: Any = None,
        source: int = ANY_SOURCE,
        recvtag: int = 0,
        status: Status | None = None,
    ) -> Any:
        sent = self.isend(sendobj, dest, sendtag)
        found = self.recv(recvbuf, source, recvtag, status)
        sent.wait()
        return found

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

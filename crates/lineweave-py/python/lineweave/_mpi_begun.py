"""Collectives that are begun and waited for later, as mpi4py has them (`lineweave.MPI`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Sequence

from lineweave._mpi import IN_PLACE, SUM, Op, _counted, _one, _pairs
from lineweave._mpi_messages import Messages
from lineweave._mpi_requests import Prequest, Request, _begun

if TYPE_CHECKING:
    from lineweave._mpi import SendBuf
    from lineweave._typing import Buf


class Begun(Messages):
    """Collectives that are begun, of a class that has messages."""

    def Ibarrier(self) -> Request:
        """Begins `Barrier`."""
        return _begun(self._get().ibarrier())

    def Ibcast(self, buf: Buf, root: int = 0) -> Request:
        """Begins `Bcast`."""
        return _begun(self._get().ibcast(_one(buf), root))

    def Iallreduce(self, sendbuf: SendBuf, recvbuf: Buf, op: Op = SUM) -> Request:
        """Begins `Allreduce`."""
        out = _one(recvbuf)
        return _begun(self._get().iallreduce(out if sendbuf is IN_PLACE else _one(sendbuf), op._engine, out))

    def Ireduce(self, sendbuf: SendBuf, recvbuf: Buf, op: Op = SUM, root: int = 0) -> Request:
        """Begins `Reduce`."""
        team = self._get()
        out = _one(recvbuf) if team.rank == root else None
        return _begun(team.ireduce(out if sendbuf is IN_PLACE else _one(sendbuf), op._engine, root, out))

    def Iallgather(self, sendbuf: SendBuf, recvbuf: Buf) -> Request:
        """Begins `Allgather`."""
        return _begun(self._get().iallgather(None if sendbuf is IN_PLACE else _one(sendbuf), _one(recvbuf)))

    def Igather(self, sendbuf: SendBuf, recvbuf: Buf, root: int = 0) -> Request:
        """Begins `Gather`."""
        team = self._get()
        send = None if sendbuf is IN_PLACE else _one(sendbuf)
        return _begun(team.igather(send, root, _one(recvbuf) if team.rank == root else None))

    def Iscatter(self, sendbuf: SendBuf, recvbuf: Buf, root: int = 0) -> Request:
        """Begins `Scatter`."""
        team = self._get()
        return _begun(team.iscatter(_one(sendbuf) if team.rank == root else None, root, _one(recvbuf)))

    def Ialltoall(self, sendbuf: SendBuf, recvbuf: Buf) -> Request:
        """Begins `Alltoall`."""
        return _begun(self._get().ialltoall(None if sendbuf is IN_PLACE else _one(sendbuf), _one(recvbuf)))

    def Iscan(self, sendbuf: SendBuf, recvbuf: Buf, op: Op = SUM) -> Request:
        """Begins `Scan`."""
        out = _one(recvbuf)
        return _begun(self._get().iscan(out if sendbuf is IN_PLACE else _one(sendbuf), op._engine, out))

    def Iexscan(self, sendbuf: SendBuf, recvbuf: Buf, op: Op = SUM) -> Request:
        """Begins `Exscan`."""
        out = _one(recvbuf)
        return _begun(self._get().iexscan(out if sendbuf is IN_PLACE else _one(sendbuf), op._engine, out))

    def Ireduce_scatter_block(self, sendbuf: SendBuf, recvbuf: Buf, op: Op = SUM) -> Request:
        """Begins `Reduce_scatter_block`."""
        return _begun(self._get().ireduce_scatter_block(_one(sendbuf), op._engine, _one(recvbuf)))

    def Ireduce_scatter(self, sendbuf: SendBuf, recvbuf: Buf, recvcounts: Sequence[int], op: Op = SUM) -> Request:
        """Begins `Reduce_scatter`; `recvcounts` is needed."""
        return _begun(self._get().ireduce_scatter(_one(sendbuf), list(recvcounts), op._engine, _one(recvbuf)))

    # Every rank has to give all counts here, also where MPI asks the root only: who begins a call does not wait for others.

    def Iallgatherv(self, sendbuf: SendBuf, recvbuf: Buf) -> Request:
        """Begins `Allgatherv`."""
        out, counts = _counted(recvbuf, "Iallgatherv")
        return _begun(self._get().iallgatherv(None if sendbuf is IN_PLACE else _one(sendbuf), counts, out))

    def Igatherv(self, sendbuf: SendBuf, recvbuf: Buf, root: int = 0) -> Request:
        """Begins `Gatherv`."""
        team = self._get()
        out, counts = _counted(recvbuf, "Igatherv")
        return _begun(team.igatherv(_one(sendbuf), counts, root, out if team.rank == root else None))

    def Iscatterv(self, sendbuf: Buf, recvbuf: Buf, root: int = 0) -> Request:
        """Begins `Scatterv`."""
        team = self._get()
        send, counts = _counted(sendbuf, "Iscatterv")
        return _begun(team.iscatterv(send if team.rank == root else None, counts, root, _one(recvbuf)))

    def Ialltoallv(self, sendbuf: SendBuf, recvbuf: Buf) -> Request:
        """Begins `Alltoallv`."""
        return _begun(self._get().ialltoallv(*_pairs(sendbuf, recvbuf)))

    def Allreduce_init(self, sendbuf: SendBuf, recvbuf: Buf, op: Op = SUM, info: object = None) -> Prequest:
        """Prepares `Allreduce`, to be begun by `Start`."""
        out = _one(recvbuf)
        x = out if sendbuf is IN_PLACE else _one(sendbuf)
        return Prequest(self._get().handle("allreduce", x, out=out, op=op._engine))

    def Bcast_init(self, buf: Buf, root: int = 0, info: object = None) -> Prequest:
        """Prepares `Bcast`, to be begun by `Start`."""
        return Prequest(self._get().handle("bcast", _one(buf), root=root))

"""Messages between two ranks as mpi4py has them (`lineweave.MPI`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lineweave._errors import Error
from lineweave._mpi import ANY_SOURCE, PROC_NULL, _named, _one, _tag
from lineweave._mpi_requests import Request, Status, _arrived, _begun
from lineweave._team import Team

if TYPE_CHECKING:
    from lineweave._typing import Buf


class Messages:
    """Ranks, and messages between two of them."""

    def __init__(self, team: Team | None) -> None:
        self._team = team

    def _get(self) -> Team:
        if self._team is None:
            raise Error("this is the null communicator")
        return self._team

    @property
    def rank(self) -> int:
        """This rank, from 0."""
        return self._get().rank

    @property
    def size(self) -> int:
        """The number of ranks."""
        return self._get().size

    def Get_rank(self) -> int:
        """This rank, from 0."""
        return self.rank

    def Get_size(self) -> int:
        """The number of ranks."""
        return self.size

    def Send(self, buf: Buf, dest: int, tag: int = 0) -> None:
        """Sends an array to a rank."""
        if dest != PROC_NULL:
            self._get().send(_one(buf), dest, tag)

    def Recv(self, buf: Buf, source: int = ANY_SOURCE, tag: int = 0, status: Status | None = None) -> None:
        """Receives an array of a rank, or of `ANY_SOURCE`."""
        if source != PROC_NULL:
            out = _one(buf)
            source = self._found(source, tag)
            _arrived(out, source, tag)(self._get().recv(out, source, tag), status or Status())

    def Sendrecv(
        self,
        sendbuf: Buf,
        dest: int,
        sendtag: int = 0,
        recvbuf: Buf = None,
        source: int = ANY_SOURCE,
        recvtag: int = 0,
        status: Status | None = None,
    ) -> None:
        """Sends one array and receives another."""
        sent = self.Isend(sendbuf, dest, sendtag)
        self.Recv(recvbuf, source, recvtag, status)
        sent.Wait()

    def Isend(self, buf: Buf, dest: int, tag: int = 0) -> Request:
        """Begins `Send`."""
        return Request() if dest == PROC_NULL else _begun(self._get().isend(_one(buf), dest, tag))

    def Irecv(self, buf: Buf, source: int = ANY_SOURCE, tag: int = 0) -> Request:
        """Begins `Recv`, of a rank that is named."""
        if source == PROC_NULL:
            return Request()
        out = _one(buf)
        return Request(self._get().irecv(out, _named(source, tag), tag), _arrived(out, source, tag))

    def Probe(self, source: int = ANY_SOURCE, tag: int = 0, status: Status | None = None) -> bool:
        """Waits for a message, without receiving it; `status` says of whom, and how long."""
        return self._probe(source, tag, status, True)

    def Iprobe(self, source: int = ANY_SOURCE, tag: int = 0, status: Status | None = None) -> bool:
        """Whether a message has come."""
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

    def send(self, obj: object, dest: int, tag: int = 0) -> None:
        """Sends an object to a rank."""
        if dest != PROC_NULL:
            self._get().send_object(obj, dest, tag)

    def recv(self, buf: Buf = None, source: int = ANY_SOURCE, tag: int = 0, status: Status | None = None) -> Any:
        """Receives an object."""
        if source == PROC_NULL:
            return None
        source = self._found(source, tag)
        if status is not None:
            status._set(source, tag, 0)
        return self._get().recv_object(source, tag)

    def isend(self, obj: object, dest: int, tag: int = 0) -> Request:
        """Begins `send`."""
        return Request() if dest == PROC_NULL else _begun(self._get().isend_object(obj, dest, tag))

    def irecv(self, buf: Buf = None, source: int = ANY_SOURCE, tag: int = 0) -> Request:
        """Begins `recv`; the request gives the object."""
        return Request() if source == PROC_NULL else Request(self._get().irecv_object(_named(source, tag), tag))

    def sendrecv(
        self,
        sendobj: object,
        dest: int,
        sendtag: int = 0,
        recvbuf: Buf = None,
        source: int = ANY_SOURCE,
        recvtag: int = 0,
        status: Status | None = None,
    ) -> Any:
        """Sends one object and receives another."""
        sent = self.isend(sendobj, dest, sendtag)
        found = self.recv(recvbuf, source, recvtag, status)
        sent.wait()
        return found

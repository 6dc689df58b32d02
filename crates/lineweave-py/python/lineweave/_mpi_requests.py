"""Requests and statuses in the form of mpi4py (`lineweave.MPI`)."""

from __future__ import annotations

import time
from typing import Any, Callable, Sequence

import lineweave
from lineweave._mpi import ANY_SOURCE, ANY_TAG, BYTE, UNDEFINED, Datatype, _numpy


class Status:
    """Who sent a message, under which tag, and how long it was."""

    def __init__(self) -> None:
        self._source, self._tag, self._bytes = ANY_SOURCE, ANY_TAG, 0

    def _set(self, source: int, tag: int, size: int) -> None:
        self._source, self._tag, self._bytes = source, tag, size

    def Get_source(self) -> int:
        """The rank that the message came from."""
        return self._source

    def Get_tag(self) -> int:
        """The tag of the message."""
        return self._tag

    def Get_count(self, datatype: Datatype = BYTE) -> int:
        """How many elements of this type the message has."""
        size = datatype.Get_size()
        return self._bytes // size if self._bytes % size == 0 else UNDEFINED

    @property
    def source(self) -> int:
        """The rank that the message came from."""
        return self._source

    @property
    def tag(self) -> int:
        """The tag of the message."""
        return self._tag


class Request:
    """A call or a message that was begun."""

    def __init__(self, begun: lineweave.Request[Any] | None = None, told: Callable[[Any, Status], None] | None = None) -> None:
        self._begun, self._told = begun, told

    def _tell(self, status: Status | None) -> Any:
        found = None if self._begun is None else self._begun.wait()
        if status is not None and self._told is not None:
            self._told(found, status)
        return found

    def Wait(self, status: Status | None = None) -> bool:
        """Waits until it is over."""
        self._tell(status)
        return True

    def Test(self, status: Status | None = None) -> bool:
        """Whether it is over."""
        return (self._begun is None or self._begun.test()) and self.Wait(status)

    def wait(self, status: Status | None = None) -> Any:
        """Waits until it is over; the object, where one is received."""
        found = self._tell(status)
        return None if self._told is not None else found

    def test(self, status: Status | None = None) -> tuple[bool, Any]:
        """Whether it is over, and the object, where one is received."""
        over = self.Test(status)
        return over, self.wait() if over else None

    def Free(self) -> None:
        """Nothing to give back: what was begun goes on."""

    def __await__(self) -> Any:
        if self._begun is not None:
            yield from self._begun.__await__()
        return self.wait()

    @staticmethod
    def Waitall(requests: Sequence[Request], statuses: Sequence[Status] | None = None) -> bool:
        """Waits for all of them."""
        Request.waitall(requests, statuses)
        return True

    @staticmethod
    def waitall(requests: Sequence[Request], statuses: Sequence[Status] | None = None) -> list[Any]:
        """Waits for all of them; the objects that were received."""
        return [request.wait(None if statuses is None else statuses[i]) for i, request in enumerate(requests)]

    @staticmethod
    def Waitany(requests: Sequence[Request], status: Status | None = None) -> int:
        """Waits until one is over; which one."""
        polls = 0
        while True:
            for i, request in enumerate(requests):
                if request.Test(status):
                    return i
            polls += 1
            time.sleep(0 if polls < 1000 else 1e-4)

    @staticmethod
    def Testall(requests: Sequence[Request], statuses: Sequence[Status] | None = None) -> bool:
        """Whether all are over."""
        return all([request.Test() for request in requests]) and Request.Waitall(requests, statuses)


class Prequest(Request):
    """A call that is begun again and again."""

    def __init__(self, handle: lineweave.Handle[Any]) -> None:
        super().__init__(None, lambda found, status: None)
        self._handle = handle

    def Start(self) -> None:
        """Begins the call."""
        self._begun = self._handle.start()

    def Free(self) -> None:
        """Nothing to give back."""

    @staticmethod
    def Startall(requests: Sequence[Prequest]) -> None:
        """Begins all of them."""
        for request in requests:
            request.Start()


def _begun(request: lineweave.Request[Any]) -> Request:
    """One whose `wait` returns nothing, as mpi4py has it for arrays."""
    return Request(request, lambda found, status: None)


def _arrived(out: Any, source: int, tag: int) -> Callable[[Any, Status], None]:
    def tell(count: Any, status: Status) -> None:
        status._set(source, tag, int(count) * int(_numpy().asarray(out).itemsize))

    return tell

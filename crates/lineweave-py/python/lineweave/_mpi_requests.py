"""What mpi4py calls requests and statuses (`lineweave.MPI`)."""

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
        return self._source

    def Get_tag(self) -> int:
        return self._tag

    def Get_count(self, datatype: Datatype = BYTE) -> int:
        size = datatype.Get_size()
        return self._bytes // size if self._bytes % size == 0 else UNDEFINED

    @property
    def source(self) -> int:
        return self._source

    @property
    def tag(self) -> int:
        return self._tag


class Request:
    """A call or a message that was begun."""

    def __init__(self, begun: lineweave.Request | None = None, told: Callable[[Any, Status], None] | None = None) -> None:
        self._begun, self._told = begun, told

    def _tell(self, status: Status | None) -> Any:
        found = None if self._begun is None else self._begun.wait()
        if status is not None and self._told is not None:
            self._told(found, status)
        return found

    def Wait(self, status: Status | None = None) -> bool:
        self._tell(status)
        return True

    def Test(self, status: Status | None = None) -> bool:
        return (self._begun is None or self._begun.test()) and self.Wait(status)

    def wait(self, status: Status | None = None) -> Any:
        found = self._tell(status)
        return None if self._told is not None else found

    def test(self, status: Status | None = None) -> tuple[bool, Any]:
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
        Request.waitall(requests, statuses)
        return True

    @staticmethod
    def waitall(requests: Sequence[Request], statuses: Sequence[Status] | None = None) -> list[Any]:
        return [request.wait(None if statuses is None else statuses[i]) for i, request in enumerate(requests)]

    @staticmethod
    def Waitany(requests: Sequence[Request], status: Status | None = None) -> int:
        polls = 0
        while True:
            for i, request in enumerate(requests):
                if request.Test(status):
                    return i
            polls += 1
            time.sleep(0 if polls < 1000 else 1e-4)

    @staticmethod
    def Testall(requests: Sequence[Request], statuses: Sequence[Status] | None = None) -> bool:
        return all([request.Test() for request in requests]) and Request.Waitall(requests, statuses)


class Prequest(Request):
    """A call that is begun again and again."""

    def __init__(self, handle: lineweave.Handle) -> None:
        super().__init__(None, lambda found, status: None)
        self._handle = handle

    def Start(self) -> None:
        self._begun = self._handle.start()

    def Free(self) -> None:
        """Nothing to give back."""

    @staticmethod
    def Startall(requests: Sequence[Prequest]) -> None:
        for request in requests:
            request.Start()


def _begun(request: lineweave.Request) -> Request:
    """One whose `wait` returns nothing, as mpi4py has it for arrays."""
    return Request(request, lambda found, status: None)


def _arrived(out: Any, source: int, tag: int) -> Callable[[Any, Status], None]:
    def tell(count: Any, status: Status) -> None:
        status._set(source, tag, int(count) * int(_numpy().asarray(out).itemsize))

    return tell

"""Calls that are started and waited for later, with `wait`, `test` or `await`."""

from __future__ import annotations

import sys
from typing import Any, Generator, Iterable


class Request:
    """A call that was started. Its arrays are not to be touched until it is over; all ranks start calls in the same order.

    It is carried on whenever this rank waits, tests or awaits, in whatever team, and by a helper thread where one was asked for
    (`team.set_progress_thread`). A request that is dropped goes on.
    """

    __slots__ = ("_raw",)

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def wait(self) -> Any:
        """Waits until the call is over, and returns what the blocking one returns."""
        return self._raw.wait()

    def test(self) -> bool:
        """Whether the call is over."""
        return bool(self._raw.test())

    def __await__(self) -> Generator[Any, None, Any]:
        polls = 0
        while not self._raw.test():
            polls += 1
            asyncio = sys.modules.get("asyncio")
            if polls <= 200 or asyncio is None:
                # Everything else that is ready runs, and then this again.
                yield
            else:
                # Another rank takes its time: no need to burn a CPU.
                yield from asyncio.sleep(1e-4).__await__()
        return self._raw.wait()

    def __repr__(self) -> str:
        return repr(self._raw)


class Handle:
    """A collective on the same arrays, to be made again and again: `handle()`, or `handle.start()` and a wait later."""

    __slots__ = ("_raw",)

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def __call__(self) -> Any:
        return self._raw()

    def start(self) -> Request:
        """Starts the call."""
        return Request(self._raw.start())

    def __repr__(self) -> str:
        return repr(self._raw)


def wait_all(requests: Iterable[Request]) -> list[Any]:
    """Waits for all of them; what each of them returns."""
    return [request.wait() for request in requests]


class Started:
    """The calls that are started, of a class that has those of the extension. Arguments are those of the blocking calls."""

    _start: Any
    _init: Any

    def ibarrier(self) -> Request:
        """Starts a barrier."""
        return Request(self._start("barrier"))

    def ibcast(self, x: Any, root: int = 0) -> Request:
        """Starts a broadcast of `x`, in place at all but the root."""
        return Request(self._start("bcast", x, root=root))

    def ireduce(self, x: Any, op: Any = None, root: int = 0, out: Any = None) -> Request:
        """Starts a reduction to the root."""
        return Request(self._start("reduce", x, out, op, root))

    def iallreduce(self, x: Any, op: Any = None, out: Any = None) -> Request:
        """Starts a reduction to all ranks."""
        return Request(self._start("allreduce", x, out, op))

    def igather(self, x: Any, root: int = 0, out: Any = None) -> Request:
        """Starts a gathering of blocks at the root."""
        return Request(self._start("gather", x, out, root=root))

    def iscatter(self, x: Any, root: int = 0, out: Any = None) -> Request:
        """Starts giving out the root's blocks."""
        return Request(self._start("scatter", x, out, root=root))

    def iallgather(self, x: Any, out: Any = None) -> Request:
        """Starts a gathering of blocks at all ranks."""
        return Request(self._start("allgather", x, out))

    def ireduce_scatter(self, x: Any, op: Any = None, out: Any = None) -> Request:
        """Starts a reduction of which each rank gets one block."""
        return Request(self._start("reduce_scatter", x, out, op))

    def iscan(self, x: Any, op: Any = None, out: Any = None) -> Request:
        """Starts a reduction over the ranks up to each."""
        return Request(self._start("scan", x, out, op))

    def iexscan(self, x: Any, op: Any = None, out: Any = None) -> Request:
        """Starts a reduction over the ranks before each."""
        return Request(self._start("exscan", x, out, op))

    def ialltoall(self, x: Any, out: Any = None) -> Request:
        """Starts an exchange of blocks."""
        return Request(self._start("alltoall", x, out))

    def handle(self, collective: str, x: Any = None, *, out: Any = None, op: Any = None, root: int = 0) -> Handle:
        """The collective of this name on these arrays, to be made again and again. They must be contiguous and not resized."""
        return Handle(self._init(collective, x, out, op, root))

"""Calls that are started and waited for later, with `wait`, `test` or `await`."""

from __future__ import annotations

import sys
from typing import Any, Callable, Generator, Iterable, Sequence

from lineweave import _functions
from lineweave._errors import CallableOperator


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


class _Finished:
    """What was started, and what is to be done with its result when it is over."""

    def __init__(self, raw: Any, finish: Callable[[Any], Any]) -> None:
        self._raw, self._finish, self._result = raw, finish, None
        self._over = False

    def wait(self) -> Any:
        if not self._over:
            got = self._raw.wait()
            self._over = True
            self._result = self._finish(got)
        return self._result

    def test(self) -> bool:
        if not self._over and self._raw.test():
            self.wait()
        return self._over

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

    rank: Any
    size: Any
    _start: Any
    _start_uneven: Any
    _init: Any
    _isend: Any
    _irecv: Any

    def _fold(self, name: str, x: Any, op: Any, out: Any, root: int = 0) -> Request:
        try:
            return Request(self._start(name, x, out, op, root))
        except CallableOperator:
            # A function of the program's: arrays are exchanged, and combined when they have come.
            exchange, finish = getattr(_functions, "i" + name)(self, x, op, root, out)
            return Request(_Finished(exchange._raw, finish))

    def ibarrier(self) -> Request:
        """Starts a barrier."""
        return Request(self._start("barrier"))

    def ibcast(self, x: Any, root: int = 0) -> Request:
        """Starts a broadcast of `x`, in place at all but the root."""
        return Request(self._start("bcast", x, root=root))

    def ireduce(self, x: Any, op: Any = None, root: int = 0, out: Any = None) -> Request:
        """Starts a reduction to the root."""
        return self._fold("reduce", x, op, out, root)

    def iallreduce(self, x: Any, op: Any = None, out: Any = None) -> Request:
        """Starts a reduction to all ranks."""
        return self._fold("allreduce", x, op, out)

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
        return self._fold("reduce_scatter", x, op, out)

    def iscan(self, x: Any, op: Any = None, out: Any = None) -> Request:
        """Starts a reduction over the ranks up to each."""
        return self._fold("scan", x, op, out)

    def iexscan(self, x: Any, op: Any = None, out: Any = None) -> Request:
        """Starts a reduction over the ranks before each."""
        return self._fold("exscan", x, op, out)

    def ialltoall(self, x: Any, out: Any = None) -> Request:
        """Starts an exchange of blocks."""
        return Request(self._start("alltoall", x, out))

    def igatherv(self, x: Any, counts: Sequence[int], root: int = 0, out: Any = None) -> Request:
        """Starts a gathering of blocks of different lengths at the root."""
        return Request(self._start_uneven("gather", x, counts, None, out, root=root))

    def iscatterv(self, x: Any, counts: Sequence[int], root: int = 0, out: Any = None) -> Request:
        """Starts giving out the root's blocks of different lengths."""
        return Request(self._start_uneven("scatter", x, counts, None, out, root=root))

    def iallgatherv(self, x: Any, counts: Sequence[int], out: Any = None) -> Request:
        """Starts a gathering of blocks of different lengths at all ranks."""
        return Request(self._start_uneven("allgather", x, counts, None, out))

    def ireduce_scatterv(self, x: Any, counts: Sequence[int], op: Any = None, out: Any = None) -> Request:
        """Starts a reduction of which each rank gets a block, of different lengths."""
        return Request(self._start_uneven("reduce_scatter", x, counts, None, out, op))

    def ialltoallv(self, x: Any, given: Sequence[int], taken: Sequence[int], out: Any = None) -> Request:
        """Starts an exchange of blocks of different lengths."""
        return Request(self._start_uneven("alltoall", x, given, taken, out))

    def isend(self, x: Any, to: int, tag: int = 0) -> Request:
        """Starts sending an array to a rank, which is not to be changed until that is over."""
        return Request(self._isend(x, to, tag))

    def irecv(self, out: Any, source: int, tag: int = 0) -> Request:
        """Starts receiving a message into an array; what its `wait` returns is how many elements came."""
        return Request(self._irecv(out, source, tag))

    def handle(self, collective: str, x: Any = None, *, out: Any = None, op: Any = None, root: int = 0) -> Handle:
        """The collective of this name on these arrays, to be made again and again. They must be contiguous and not resized."""
        return Handle(self._init(collective, x, out, op, root))

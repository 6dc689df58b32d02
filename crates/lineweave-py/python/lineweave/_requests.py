"""Requests, which are waited for, and handles, which make a call again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable, Generator, Generic, Iterable, TypeVar

if TYPE_CHECKING:
    from lineweave import _lineweave
    from lineweave._typing import Waited

T = TypeVar("T")


class Request(Generic[T]):
    """A call that was started. Its arrays are not to be touched until it is over; all ranks start calls in the same order.

    It is carried on whenever this rank waits, tests or awaits, in whatever team, and by a helper thread where one was asked for
    (`team.set_progress_thread`). A request that is dropped goes on. `await request` is for programs with asyncio.

        >>> request = team.iallreduce(np.array([1.0, 2.0]))
        >>> y = 6 * 7                     # something else
        >>> request.wait()
        array([2., 4.])
    """

    __slots__ = ("_raw",)

    def __init__(self, raw: Waited) -> None:
        self._raw = raw

    def wait(self) -> T:
        """Waits until the call is over, and returns what the blocking one returns; raises what that one raises.

            >>> team.iallgather(np.array([team.rank])).wait().tolist()
            [[0], [1]]
        """
        found: T = self._raw.wait()
        return found

    def test(self) -> bool:
        """Whether the call is over, after carrying it on a little. Raises what `wait` does.

            >>> request = team.ibarrier()
            >>> while not request.test():
            ...     pass                  # something else
        """
        return bool(self._raw.test())

    def __await__(self) -> Generator[Any, None, T]:
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
        return self.wait()

    def __repr__(self) -> str:
        return repr(self._raw)


class Finished:
    """A started operation, and the function that is called with its result when it is over."""

    def __init__(self, raw: Waited, finish: Callable[[Any], Any]) -> None:
        self._raw, self._finish = raw, finish
        self._result: Any = None
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


class Handle(Generic[T]):
    """A collective on the same arrays, to be made again and again: `handle()`, or `handle.start()` and a wait later.

        >>> x, y = np.array([1.0]), np.empty(1)
        >>> sum_up = team.handle("allreduce", x, out=y)
        >>> sum_up()
        array([2.])
    """

    __slots__ = ("_raw",)

    def __init__(self, raw: _lineweave.Persistent[T]) -> None:
        self._raw = raw

    def __call__(self) -> T:
        return self._raw()

    def start(self) -> Request[T]:
        """Starts the call. It must be over before it is started again.

            >>> x, y = np.array([1.0]), np.empty(1)
            >>> request = team.handle("allreduce", x, out=y).start()
            >>> request.wait()
            array([2.])
        """
        return Request(self._raw.start())

    def __repr__(self) -> str:
        return repr(self._raw)


def wait_all(requests: Iterable[Request[T]]) -> list[T]:
    """Waits for all of them, and returns what each of them returns. Raises what the first that failed raises.

        >>> requests = [team.iallreduce(np.array([n])) for n in (1, 2)]
        >>> lineweave.wait_all(requests)
        [array([2]), array([4])]
    """
    return [request.wait() for request in requests]

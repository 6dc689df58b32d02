"""Teams as a program uses them."""

from __future__ import annotations

import atexit
import os
import time
import weakref
from types import TracebackType
from typing import Any

from lineweave import _arrays, _lineweave
from lineweave._objects import Objects
from lineweave._requests import Started

os.register_at_fork(after_in_child=_lineweave.forked)

_open: weakref.WeakSet[Team] = weakref.WeakSet()


class Team(_lineweave.Communicator, Objects, Started):
    """One rank's end of a team of ranks that share a node.

    Use it in a `with` statement: leaving that by an exception tells the other ranks that this one failed, so that none
    waits for it; leaving it otherwise closes the team. A team belongs to one thread at a time.
    """

    def __init__(self, seat: Any) -> None:
        super().__init__()
        _open.add(self)

    def __repr__(self) -> str:
        state = ", closed" if self.closed else ""
        return f"<lineweave.Team: rank {self.rank} of {self.size}{state}>"

    def __enter__(self) -> Team:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not self.closed:
            self.abandon(f"{type(error).__name__}: {error}")
        self.close()

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a team cannot be pickled: let every process join by lineweave.connect")

    def empty(self, shape: Any, dtype: Any = float) -> Any:
        """An array of this rank in memory that all ranks share, zero at first: numpy's, or a tensor if `dtype` is torch's.

        Every rank calls it, each with the shape that it wants. Where every rank gives such arrays to a call, long messages are read,
        combined and written where they lie: copied once. The memory lives as long as the array or anything made of it without a
        copy, also when the team is closed. Raises `OutOfMemory` on all ranks when there is not so much.
        """
        extents, size = _arrays.extent(shape, dtype)
        return _arrays.in_memory(self._alloc(size), extents, dtype)

    def split(self, color: int | None, key: int = 0) -> Team | None:
        """Teams of the ranks that give one color, in the order of key and rank; `None` for ranks that give none. Every rank
        calls it."""
        seat = self._split(color, key)
        return None if seat is None else Team(seat)

    def dup(self) -> Team:
        """Another team of the same ranks, whose calls do not meet those of this one."""
        made = self.split(0, self.rank)
        assert made is not None
        return made


def fresh_name() -> str:
    """A name to meet at that nobody else has."""
    return f"@lineweave-{os.getuid()}-{os.getpid()}-{os.urandom(8).hex()}"


def socket_name(name: str) -> str:
    """Where ranks meet that were told `name`: a path as it is, everything else as this user's abstract name."""
    if "/" in name or name.startswith("@"):
        return name
    return f"@lineweave-{os.getuid()}-{name}"


@atexit.register
def _close_all() -> None:
    # Threads that wait in a call have to end it while there is an interpreter whose lock they can take.
    _lineweave.closing()
    end = time.monotonic() + 2.0
    while _lineweave.waiting() > 0 and time.monotonic() < end:
        time.sleep(0.005)
    for team in list(_open):
        try:
            team.close()
        except Exception:  # In a call in another thread: its peers notice by the end of this process.
            pass

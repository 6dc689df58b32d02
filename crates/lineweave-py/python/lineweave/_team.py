"""Teams as a program uses them."""

from __future__ import annotations

import atexit
import functools
import os
import time
import warnings
import weakref
from types import TracebackType
from typing import TYPE_CHECKING, overload

from lineweave import _arrays, _lineweave
from lineweave._objects import Objects

if TYPE_CHECKING:
    import torch
    from numpy.typing import DTypeLike

    from lineweave._typing import NDArray, Shape

os.register_at_fork(after_in_child=_lineweave.forked)

_open: weakref.WeakSet[Team] = weakref.WeakSet()


@functools.cache
def _warn_once() -> None:
    """Warns once of settings in the environment that have no effect, such as misspelt ones."""
    for text in _lineweave.ineffective_settings():
        warnings.warn(text, stacklevel=4)


class Team(Objects):
    """One rank's end of a team of ranks that share a node. `spawn`, `connect` and `team` give one.

    Every rank makes the same calls in the same order. A team belongs to one thread at a time. Use it in a `with` statement: leaving that by
    an exception tells the other ranks that this one failed, so that none waits for it; leaving it otherwise closes the team.

    An array is anything with the buffer protocol or DLPack: numpy's, CPU tensors, `bytearray`, `array.array`. Elements are integers of 8 to 64
    bits, float16, bfloat16, float32, float64, complex64, complex128, and bool with logical operators. Shapes may differ between ranks where
    numbers of elements agree. Arrays that are not contiguous are packed up to 1 MiB.

    Every call raises `RankLost` when another rank died, failed or left, `Timeout` when it waited longer than the limit, `Mismatch` when ranks
    called different things, `BadArgument` (a `ValueError`) and `BadType` (a `TypeError`) for what it cannot use, and `Error`, their base,
    when the team was closed or is in a call in another thread.

    Examples here and in the methods show what rank 0 of two ranks sees, as in

        >>> team.rank, team.size
        (0, 2)
        >>> team.allreduce(np.array([1.0, 2.0]))
        array([2., 4.])
    """

    def __init__(self, seat: _lineweave.Seat) -> None:
        super().__init__()
        _open.add(self)
        if self.rank == 0:
            _warn_once()

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

    @overload
    def empty(self, shape: Shape, dtype: DTypeLike = float) -> NDArray: ...

    @overload
    def empty(self, shape: Shape, dtype: torch.dtype) -> torch.Tensor: ...

    def empty(self, shape: Shape, dtype: DTypeLike | torch.dtype = float) -> NDArray | torch.Tensor:
        """An array of this rank in memory that all ranks share, zero at first: numpy's, or a tensor if `dtype` is torch's.

        - `shape`: a number or several; ranks may give different ones.
        - `dtype`: the type of elements, numpy's or torch's.

        Every rank calls it. Where every rank gives such arrays to a call, long messages are read, combined and written where they lie:
        copied once. The memory lives as long as the array or anything made of it without a copy, also when the team is closed. Raises
        `OutOfMemory` on all ranks when there is not so much, `BadArgument` and `BadType` for shapes and dtypes that cannot be.

            >>> x = team.empty((2, 3), np.float32)
            >>> x[:] = team.rank + 1
            >>> team.allreduce(x, out=x)[0]
            array([3., 3., 3.], dtype=float32)
        """
        extents, size = _arrays.extent(shape, dtype)
        return _arrays.in_memory(self._alloc(size), extents, dtype)

    def split(self, color: int | None, key: int = 0) -> Team | None:
        """Teams of the ranks that give one color; `None` for a rank that gives none. Every rank calls it.

        - `color`: a number that is equal at the ranks of one new team, or `None`.
        - `key`: ranks are numbered in the order of key, and of rank where keys are equal.

        New teams live on when this one is closed. Raises what every call raises.

            >>> alone = team.split(color=team.rank)
            >>> alone.rank, alone.size
            (0, 1)
            >>> turned = team.split(color=0, key=-team.rank)
            >>> turned.rank
            1
        """
        seat = self._split(color, key)
        return None if seat is None else Team(seat)

    def dup(self) -> Team:
        """Another team of the same ranks, whose calls do not meet those of this one. Every rank calls it. Raises what every call raises.

            >>> other = team.dup()
            >>> request = team.ibarrier()
            >>> other.barrier()           # not after the one that was started
            >>> request.wait()
        """
        made = self.split(0, self.rank)
        assert made is not None
        return made


def fresh_name() -> str:
    """Returns a name to meet at that no other team has."""
    return f"@lineweave-{os.getuid()}-{os.getpid()}-{os.urandom(8).hex()}"


def socket_name(name: str) -> str:
    """Returns the socket for a meeting at `name`: a path as it is, any other text as this user's abstract name."""
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

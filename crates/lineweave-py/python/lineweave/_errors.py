"""What can go wrong, as exceptions.

Those of a call have the attributes `rank` (this rank), `operation`, `peer` (the rank that is the cause) and `call` (its
number on this team), as far as they are known.
"""

from __future__ import annotations


class Error(RuntimeError):
    """Any error of lineweave."""

    def __init__(
        self,
        message: str,
        rank: int | None = None,
        operation: str | None = None,
        peer: int | None = None,
        call: int | None = None,
    ) -> None:
        super().__init__(message)
        self.rank = rank
        self.operation = operation
        self.peer = peer
        self.call = call

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.rank, self.operation, self.peer, self.call)


class RankLost(Error):
    """Another rank died, failed or left while this one waited for it: `peer` says which."""


class Timeout(Error, TimeoutError):
    """A wait took longer than the limit."""


class Mismatch(Error, ValueError):
    """Ranks called different things (found with LINEWEAVE_CHECK=1)."""


class BadArgument(Error, ValueError):
    """A value that cannot be used."""


class BadType(Error, TypeError):
    """A type of object or element that cannot be used."""


class OutOfMemory(Error, MemoryError):
    """Memory that all ranks share cannot be had."""


class MeetingFailed(Error, TimeoutError):
    """The ranks of a team did not come to where they were to meet."""


class NoTeam(Error):
    """Nothing says which team this process belongs to."""


class CallableOperator(Error):
    """Internal: the operator is a function, which the engine cannot call."""


class RankFailed(Error):
    """A rank that `spawn` started raised an exception or died: `peer` says which, `reports` what each failed rank said."""

    def __init__(self, message: str, peer: int | None = None, reports: dict[int, str] | None = None) -> None:
        super().__init__(message, peer=peer)
        self.reports = dict(reports or {})

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.peer, self.reports)

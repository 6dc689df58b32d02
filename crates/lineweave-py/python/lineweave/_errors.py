"""The exceptions of the package.

Those of a call have the attributes `rank` (this rank), `operation`, `peer` (the rank that is the cause) and `call` (its
number on this team), as far as they are known.
"""

from __future__ import annotations


class Error(RuntimeError):
    """Any error of lineweave; the others are made from it.

        >>> other = team.dup()
        >>> other.close()
        >>> try:
        ...     other.barrier()
        ... except lineweave.Error as error:
        ...     print(error)
        this team was closed
    """

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
    """Another rank died, failed or left while this one waited for it: `peer` says which.

        >>> other = team.dup()
        >>> if other.rank == 1:
        ...     other.close()
        ... else:
        ...     try:
        ...         other.barrier()
        ...     except lineweave.RankLost as lost:
        ...         print(lost.peer, lost.operation)
        1 barrier
    """


class Timeout(Error, TimeoutError):
    """A wait took longer than the limit (`team.set_timeout`, LINEWEAVE_TIMEOUT).

        >>> other = team.dup()
        >>> other.set_timeout(0.2)
        >>> if other.rank == 0:
        ...     try:
        ...         other.barrier()       # rank 1 does not come
        ...     except lineweave.Timeout as error:
        ...         print(isinstance(error, TimeoutError))
        True
        >>> team.barrier()
    """


class Mismatch(Error, ValueError):
    """Ranks called different things: before data moves with LINEWEAVE_CHECK=1, else when one waits too long for another.

        >>> other = team.dup()
        >>> try:
        ...     other.allreduce(np.ones(1)) if other.rank == 0 else other.barrier()
        ... except lineweave.Mismatch as error:
        ...     print(error.peer)
        1
    """


class BadArgument(Error, ValueError):
    """A value that cannot be used.

        >>> try:
        ...     team.bcast(np.zeros(1), root=7)
        ... except lineweave.BadArgument as error:
        ...     print(error.operation, isinstance(error, ValueError))
        bcast True
    """


class BadType(Error, TypeError):
    """A type of object or element that cannot be used.

        >>> try:
        ...     team.allreduce(["a", "list"])
        ... except lineweave.BadType as error:
        ...     print(isinstance(error, TypeError))
        True
    """


class OutOfMemory(Error, MemoryError):
    """Memory that all ranks share cannot be had.

        >>> try:
        ...     team.empty(1 << 60, np.int8)
        ... except lineweave.OutOfMemory as error:
        ...     print(isinstance(error, MemoryError))
        True
    """


class MeetingFailed(Error, TimeoutError):
    """The ranks of a team did not come to where they were to meet.

        >>> if team.rank == 0:
        ...     try:
        ...         lineweave.connect("./nobody-else", size=2, timeout=0.2)
        ...     except lineweave.MeetingFailed as error:
        ...         print(isinstance(error, TimeoutError))
        True
    """


class NoTeam(Error):
    """Nothing says which team this process belongs to.

        >>> try:
        ...     lineweave.team()
        ... except lineweave.NoTeam:
        ...     print("start it by `lineweave run -n 4 script.py`")
        start it by `lineweave run -n 4 script.py`
    """


class CallableOperator(Error):
    """Internal: the operator is a function, which the engine cannot call."""


class RankFailed(Error):
    """A rank that `spawn` started raised an exception or died: `peer` says which, `reports` what each failed rank said.

        >>> def fails(team):
        ...     raise KeyError("no data")
        >>> try:
        ...     lineweave.spawn(fails, 1, method="thread")
        ... except lineweave.RankFailed as failed:
        ...     print(failed.peer, "no data" in failed.reports[0])
        0 True
    """

    def __init__(self, message: str, peer: int | None = None, reports: dict[int, str] | None = None) -> None:
        super().__init__(message, peer=peer)
        self.reports = dict(reports or {})

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.peer, self.reports)

"""The calls that start collectives, for a class that has the blocking ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Literal, Sequence, TypeVar, overload

from lineweave import _functions, _lineweave
from lineweave._errors import CallableOperator
from lineweave._requests import Finished, Handle, Request

if TYPE_CHECKING:
    from typing import Concatenate, ParamSpec

    from lineweave._typing import Array, Operator, Out

    # The collectives that a handle can make.
    Collective = Literal[
        "barrier", "bcast", "reduce", "allreduce", "gather", "scatter", "allgather", "reduce_scatter_block", "scan", "exscan", "alltoall"
    ]

    Arguments = ParamSpec("Arguments")
    Result = TypeVar("Result")


def ireduce(self: Started, x: Array | None, op: Operator = None, root: int = 0, out: Array | None = None) -> Request[Any]:
    """Starts `reduce`: everything is as there, but that the request returns the result.

        >>> request = team.ireduce(np.array([1, 2]), "max", root=0)
        >>> request.wait()
        array([1, 2])
    """
    return self._fold("reduce", x, op, out, root)


def iallreduce(self: Started, x: Array | None, op: Operator = None, out: Array | None = None) -> Request[Any]:
    """Starts `allreduce`: everything is as there, but that the request returns the result.

        >>> request = team.iallreduce(np.array([1.0, 2.0]))
        >>> request.wait()
        array([2., 4.])
    """
    return self._fold("allreduce", x, op, out)


def igather(self: Started, x: Array | None, root: int = 0, out: Array | None = None) -> Request[Any]:
    """Starts `gather`.

        >>> team.igather(np.array([team.rank]), root=0).wait()
        array([[0],
               [1]])
    """
    return Request(self._start("gather", x, out, root=root))


def iscatter(self: Started, x: Array | None, root: int = 0, out: Array | None = None) -> Request[Any]:
    """Starts `scatter`.

        >>> rows = np.array([[1, 2], [3, 4]]) if team.rank == 0 else None
        >>> team.iscatter(rows, 0, out=np.empty(2, int)).wait()
        array([1, 2])
    """
    return Request(self._start("scatter", x, out, root=root))


def iallgather(self: Started, x: Array | None, out: Array | None = None) -> Request[Any]:
    """Starts `allgather`.

        >>> team.iallgather(np.array([team.rank])).wait()
        array([[0],
               [1]])
    """
    return Request(self._start("allgather", x, out))


def ireduce_scatter_block(self: Started, x: Array | None, op: Operator = None, out: Array | None = None) -> Request[Any]:
    """Starts `reduce_scatter_block`.

        >>> team.ireduce_scatter_block(np.array([[1, 2], [3, 4]])).wait()
        array([2, 4])
    """
    return self._fold("reduce_scatter_block", x, op, out)


def iscan(self: Started, x: Array | None, op: Operator = None, out: Array | None = None) -> Request[Any]:
    """Starts `scan`.

        >>> team.iscan(np.array([team.rank + 1.0])).wait()       # [3.] at rank 1
        array([1.])
    """
    return self._fold("scan", x, op, out)


def iexscan(self: Started, x: Array | None, op: Operator = None, out: Array | None = None) -> Request[Any]:
    """Starts `exscan`.

        >>> request = team.iexscan(np.array([5]))               # array([5]) at rank 1
        >>> before = request.wait()
        >>> team.rank, None if team.rank == 0 else int(before[0])
        (0, None)
    """
    return self._fold("exscan", x, op, out)


def ialltoall(self: Started, x: Array | None, out: Array | None = None) -> Request[Any]:
    """Starts `alltoall`.

        >>> team.ialltoall(np.array([10 * team.rank, 10 * team.rank + 1])).wait()
        array([ 0, 10])
    """
    return Request(self._start("alltoall", x, out))


def igatherv(self: Started, x: Array | None, counts: Sequence[int], root: int = 0, out: Array | None = None) -> Request[Any]:
    """Starts `gatherv`.

        >>> team.igatherv(np.full(team.rank + 1, team.rank), [1, 2], root=0).wait()
        array([0, 1, 1])
    """
    return Request(self._start_uneven("gatherv", x, counts, None, out, root=root))


def iscatterv(self: Started, x: Array | None, counts: Sequence[int], root: int = 0, out: Array | None = None) -> Request[Any]:
    """Starts `scatterv`.

        >>> x = np.array([5, 6, 7]) if team.rank == 0 else None
        >>> team.iscatterv(x, [1, 2], 0, out=np.empty(team.rank + 1, int)).wait()
        array([5])
    """
    return Request(self._start_uneven("scatterv", x, counts, None, out, root=root))


def iallgatherv(self: Started, x: Array | None, counts: Sequence[int], out: Array | None = None) -> Request[Any]:
    """Starts `allgatherv`.

        >>> team.iallgatherv(np.full(team.rank + 1, team.rank), [1, 2]).wait()
        array([0, 1, 1])
    """
    return Request(self._start_uneven("allgatherv", x, counts, None, out))


def ireduce_scatter(self: Started, x: Array | None, counts: Sequence[int], op: Operator = None, out: Array | None = None) -> Request[Any]:
    """Starts `reduce_scatter`.

        >>> team.ireduce_scatter(np.array([1, 2, 3]), [1, 2]).wait()   # [4, 6] at rank 1
        array([2])
    """
    return Request(self._start_uneven("reduce_scatter", x, counts, None, out, op))


def ialltoallv(self: Started, x: Array | None, given: Sequence[int], taken: Sequence[int], out: Array | None = None) -> Request[Any]:
    """Starts `alltoallv`.

        >>> x = np.full(3, team.rank)
        >>> team.ialltoallv(x, [1, 2], [team.rank + 1] * 2).wait()     # [0, 0, 1, 1] at rank 1
        array([0, 1])
    """
    return Request(self._start_uneven("alltoallv", x, given, taken, out))


def _started(
    blocking: Callable[Concatenate[_lineweave.Communicator, Arguments], Result],
) -> Callable[Concatenate[_lineweave.Communicator, Arguments], Request[Result]]:
    """The function above that starts a call, typed by the call: it takes what that takes, and returns a request of what that returns."""
    start: Callable[..., Request[Any]] = globals()["i" + blocking.__name__]
    start.__qualname__ = "Started." + start.__name__
    return start


class Started(_lineweave.Communicator):
    """The calls that are started. Arguments, shapes and errors are those of the blocking calls of the same names without `i`; what those
    return, the request's `wait` does."""

    def _fold(self, name: str, x: Array | None, op: Operator, out: Array | None, root: int = 0) -> Request[Any]:
        try:
            return Request(self._start(name, x, out, op, root))
        except CallableOperator:
            # A function of the program's: arrays are exchanged, and combined when they have come.
            exchange, finish = getattr(_functions, "i" + name)(self, x, op, root, out)
            return Request(Finished(exchange._raw, finish))

    def ibarrier(self) -> Request[None]:
        """Starts `barrier`: the request is over when every rank has started it.

            >>> request = team.ibarrier()
            >>> request.wait()
        """
        return Request(self._start("barrier"))

    def ibcast(self, x: Out, root: int = 0) -> Request[Out]:
        """Starts `bcast`.

            >>> x = np.array([3, 4]) if team.rank == 0 else np.zeros(2, int)
            >>> team.ibcast(x, root=0).wait()
            array([3, 4])
        """
        return Request(self._start("bcast", x, root=root))

    ireduce = _started(_lineweave.Communicator.reduce)
    iallreduce = _started(_lineweave.Communicator.allreduce)
    igather = _started(_lineweave.Communicator.gather)
    iscatter = _started(_lineweave.Communicator.scatter)
    iallgather = _started(_lineweave.Communicator.allgather)
    ireduce_scatter_block = _started(_lineweave.Communicator.reduce_scatter_block)
    iscan = _started(_lineweave.Communicator.scan)
    iexscan = _started(_lineweave.Communicator.exscan)
    ialltoall = _started(_lineweave.Communicator.alltoall)
    igatherv = _started(_lineweave.Communicator.gatherv)
    iscatterv = _started(_lineweave.Communicator.scatterv)
    iallgatherv = _started(_lineweave.Communicator.allgatherv)
    ireduce_scatter = _started(_lineweave.Communicator.reduce_scatter)
    ialltoallv = _started(_lineweave.Communicator.alltoallv)

    def isend(self, x: Array, to: int, tag: int = 0) -> Request[None]:
        """Starts `send`: `x` is not to be changed until the request is over.

            >>> x, out = np.array([1.5]), np.empty(1)
            >>> sent = team.isend(x, to=1 - team.rank)
            >>> team.recv(out, source=1 - team.rank), sent.wait()
            (1, None)
        """
        return Request(self._isend(x, to, tag))

    def irecv(self, out: Array, source: int, tag: int = 0) -> Request[int]:
        """Starts `recv`: the request returns how many elements came.

            >>> out = np.empty(4)
            >>> came = team.irecv(out, source=1 - team.rank)
            >>> team.send(np.ones(3), to=1 - team.rank)
            >>> came.wait()
            3
        """
        return Request(self._irecv(out, source, tag))

    @overload
    def handle(
        self, collective: Collective, x: Array | None = None, *, out: Out, op: Operator = None, root: int = 0
    ) -> Handle[Out]: ...

    @overload
    def handle(
        self, collective: Collective, x: Array | None = None, *, out: None = None, op: Operator = None, root: int = 0
    ) -> Handle[Any]: ...

    def handle(
        self,
        collective: Collective,
        x: Array | None = None,
        *,
        out: Array | None = None,
        op: Operator = None,
        root: int = 0,
    ) -> Handle[Any]:
        """The collective of this name on these arrays, to be made again and again: everything about it is looked up once.

        - `collective`: a call's name, such as "allgather"; blocks are equally long.
        - `x`, `out`, `op`, `root`: as for that call. The arrays must be contiguous and not resized.

        Raises `BadArgument` for arrays that are not contiguous and for operators that are functions of the program's.

            >>> x, y = np.array([team.rank]), np.empty((2, 1), int)
            >>> gather_all = team.handle("allgather", x, out=y)
            >>> gather_all()
            array([[0],
                   [1]])
        """
        return Handle(self._init(collective, x, out, op, root))

"""Folds whose operator is a Python function of two arrays: ranks exchange their arrays, and each that needs the result combines
them in rank order. All ranks get the same bits, if the function is deterministic. For operators that the engine has, give
their names or numpy's functions: much faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable, Tuple

if TYPE_CHECKING:
    from lineweave._team import Team

# Of two arrays. What they are is the program's: numpy's, tensors, or what else has their methods.
Operator = Callable[[Any, Any], Any]
Begun = Tuple[Any, Callable[[Any], Any]]


def _fold(op: Operator, parts: Iterable[Any]) -> Any:
    parts = iter(parts)
    total = next(parts)
    for part in parts:
        total = op(total, part)
    return total


def _deliver(total: Any, out: Any) -> Any:
    if out is None:
        return total.clone() if hasattr(total, "clone") else total.copy()
    out[...] = total
    return out


# Each says what is exchanged, and what makes the result of that. Calls that block wait for it at once.


def iallreduce(team: Team, x: Any, op: Operator, root: int, out: Any) -> Begun:
    return team.iallgather(out if x is None else x), lambda parts: _deliver(_fold(op, parts), out)


def ireduce(team: Team, x: Any, op: Operator, root: int, out: Any) -> Begun:
    def finish(parts: Any) -> Any:
        return _deliver(_fold(op, parts), out) if team.rank == root else None

    return team.igather(out if x is None else x, root), finish


def ireduce_scatter_block(team: Team, x: Any, op: Operator, root: int, out: Any) -> Begun:
    def finish(parts: Any) -> Any:
        rows = parts.reshape((team.size, parts.shape[0] // team.size, *parts.shape[1:]))
        total = _fold(op, rows)
        if parts.shape[0] == team.size and parts.ndim > 1:
            total = total[0]
        return _deliver(total, out)

    return team.ialltoall(x), finish


def iscan(team: Team, x: Any, op: Operator, root: int, out: Any) -> Begun:
    def finish(parts: Any) -> Any:
        return _deliver(_fold(op, parts[: team.rank + 1]), out)

    return team.iallgather(out if x is None else x), finish


def iexscan(team: Team, x: Any, op: Operator, root: int, out: Any) -> Begun:
    def finish(parts: Any) -> Any:
        return _deliver(_fold(op, parts[: team.rank]), out) if team.rank > 0 else None

    return team.iallgather(out if x is None else x), finish


def _blocking(begin: Callable[..., Any]) -> Callable[..., Any]:
    def call(team: Team, x: Any, op: Operator, root: int, out: Any) -> Any:
        exchange, finish = begin(team, x, op, root, out)
        return finish(exchange.wait())

    return call


allreduce, reduce, scan, exscan = map(_blocking, (iallreduce, ireduce, iscan, iexscan))
reduce_scatter_block = _blocking(ireduce_scatter_block)

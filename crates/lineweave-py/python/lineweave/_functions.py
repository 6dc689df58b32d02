"""Folds whose operator is a Python function of two arrays: ranks exchange their arrays, and each that needs the result combines
them in rank order. All ranks get the same bits, if the function is deterministic. For operators that the engine has, give
their names or numpy's functions: much faster."""

from __future__ import annotations

from typing import Any, Callable, Iterable

Operator = Callable[[Any, Any], Any]


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


def _gathered(team: Any, x: Any, out: Any) -> Any:
    return team.allgather(out if x is None else x)


def allreduce(team: Any, x: Any, op: Operator, root: int, out: Any) -> Any:
    return _deliver(_fold(op, _gathered(team, x, out)), out)


def reduce(team: Any, x: Any, op: Operator, root: int, out: Any) -> Any:
    parts = team.gather(out if x is None else x, root)
    return _deliver(_fold(op, parts), out) if team.rank == root else None


def reduce_scatter(team: Any, x: Any, op: Operator, root: int, out: Any) -> Any:
    parts = team.alltoall(x)
    rows = parts.reshape((team.size, parts.shape[0] // team.size, *parts.shape[1:]))
    total = _fold(op, rows)
    if parts.shape[0] == team.size and parts.ndim > 1:
        total = total[0]
    return _deliver(total, out)


def scan(team: Any, x: Any, op: Operator, root: int, out: Any) -> Any:
    return _deliver(_fold(op, _gathered(team, x, out)[: team.rank + 1]), out)


def exscan(team: Any, x: Any, op: Operator, root: int, out: Any) -> Any:
    parts = _gathered(team, x, out)[: team.rank]
    return _deliver(_fold(op, parts), out) if team.rank > 0 else None

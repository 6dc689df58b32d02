"""The reductions of torch.distributed in the form of the runtime: types, operators, and the call itself (`lineweave.torch`)."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any, Sequence

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future

from lineweave import _lineweave
from lineweave._errors import BadArgument, BadType
from lineweave._team import Team

# Numbers in the order of the runtime's lists.
ALLREDUCE = 3
_U8 = 4
ELEMENTS = {
    torch.int8: 0,
    torch.int16: 1,
    torch.int32: 2,
    torch.int64: 3,
    torch.uint8: 4,
    torch.float16: 8,
    torch.bfloat16: 9,
    torch.float32: 10,
    torch.float64: 11,
}
for _name, _number in (("uint16", 5), ("uint32", 6), ("uint64", 7)):
    if hasattr(torch, _name):
        ELEMENTS[getattr(torch, _name)] = _number
# The names that calls of a team take, by number.
OPERATOR_NAMES: Any = ("sum", "prod", "min", "max", "avg", "band", "bor", "bxor", "land", "lor", "lxor")
OPERATORS = {"SUM": 0, "PRODUCT": 1, "MIN": 2, "MAX": 3, "AVG": 4, "BAND": 5, "BOR": 6, "BXOR": 7}
# On bool.
_LOGICAL = {"SUM": 9, "PRODUCT": 8, "MIN": 8, "MAX": 9, "BAND": 8, "BOR": 9, "BXOR": 10}

# By hash, which is the number of the operator: taking that out of the options and comparing costs several times as much.
NAMES = {hash(getattr(dist.ReduceOp, name)): name for name in (*OPERATORS, "PREMUL_SUM")}
_BY_HASH = {number: OPERATORS[name] for number, name in NAMES.items() if name in OPERATORS}
assert len(_BY_HASH) == len(OPERATORS), "operators of torch.distributed have hashes of their own"

_lineweave.learn_tensors(torch.Tensor)


class Done(dist.Work):
    """Work that is over."""

    def __init__(self, tensors: Sequence[Any]) -> None:
        super().__init__()
        self._tensors = list(tensors)

    def wait(self, timeout: timedelta | None = None) -> bool:
        return True

    def is_completed(self) -> bool:
        return True

    def is_success(self) -> bool:
        return True

    def exception(self) -> None:
        return None

    def synchronize(self) -> None:
        return None

    def result(self) -> list[Any]:
        return self._tensors

    def get_future(self) -> Any:
        future: torch.futures.Future[Any] = torch.futures.Future()
        future.set_result(self._tensors)
        return future


# Since the options of every call say if work is asked for, distributed_c10d accepts `None` where it is not. Earlier (torch 2.6) it calls `wait` on it,
# and torch's C++ keeps no work whose object is Python's: `wait` would wait for ever.
_IS_RECENT = hasattr(dist.AllreduceOptions(), "asyncOp")


def _future_done(tensors: Sequence[Any]) -> Any:
    """Returns work in C++ that is over."""
    future: torch.futures.Future[Any] = torch.futures.Future()
    future.set_result(list(tensors))
    return _create_work_from_future(future)


over = Done if _IS_RECENT else _future_done


def done(opts: Any, tensors: Sequence[Any]) -> Any:
    # Making it costs more than a small collective.
    if _IS_RECENT and opts is not None and not getattr(opts, "asyncOp", True):
        return None
    return over(tensors)


def _refuse(tensor: torch.Tensor) -> BadType:
    if not tensor.is_cpu:
        return BadType(f"lineweave's backend is for CPU tensors, and this one is on {tensor.device}; give it tensor.cpu()")
    if tensor.layout is not torch.strided:
        return BadType(f"this call is for dense tensors, and this one is {tensor.layout}; give it tensor.to_dense()")
    return BadType(f"{tensor.dtype} cannot be reduced; expected one of {', '.join(map(str, ELEMENTS))}, or bool")


def flat_of(tensor: torch.Tensor) -> torch.Tensor:
    """Returns the tensor, if it is dense on the CPU and its elements lie one after the other; else such a copy."""
    if not tensor.is_cpu or tensor.layout is not torch.strided:
        raise _refuse(tensor)
    return tensor.contiguous()


def numbers(tensor: torch.Tensor, op: Any) -> tuple[int, int]:
    """Returns the runtime's numbers for the elements of a tensor, and for an operator on them: a sum where none is given."""
    truth = tensor.dtype is torch.bool
    element = _U8 if truth else ELEMENTS.get(tensor.dtype)
    if element is None:
        raise _refuse(tensor)
    name = "SUM" if op is None else NAMES.get(hash(op), "of this number")
    table, kind = (_LOGICAL, "bool") if truth else (OPERATORS, "tensors")
    if name not in table:
        raise BadArgument(f"the operator {name} is not offered on {kind}; expected {', '.join(table)}")
    return element, table[name]


def add_sparse(team: Team, tensor: torch.Tensor, op: Any) -> None:
    """Adds up sparse tensors of one shape, in place: each rank gets the elements of all, and adds them in the order of ranks."""
    name = "SUM" if op is None else NAMES.get(hash(op), "of this number")
    if name not in ("SUM", "AVG"):
        raise BadArgument(f"the operator {name} is not offered on sparse tensors; expected SUM or AVG")
    mine = tensor.coalesce()
    indices, values = mine.indices().t().contiguous(), mine.values().contiguous()
    # Ranks whose tensors have other numbers of dimensions make another call than this, which the team finds out.
    form = torch.tensor([mine.sparse_dim(), *mine.shape, values.shape[0]])
    forms = team.allgather(form)
    if not (forms[:, :-1] == form[:-1]).all():
        raise BadArgument(f"sparse tensors of one shape are expected; ranks give {[tuple(f[1:-1].tolist()) for f in forms]}")
    counts = forms[:, -1].tolist()
    found = team.allgatherv(indices.view(-1), [n * mine.sparse_dim() for n in counts])
    each = values.shape[1:].numel()
    flat = team.allgatherv(values.view(-1), [n * each for n in counts])
    total = torch.sparse_coo_tensor(found.view(-1, mine.sparse_dim()).t(), flat.view(-1, *values.shape[1:]), mine.shape).coalesce()
    if name == "AVG":
        # As of dense tensors.
        total = total.div(team.size, rounding_mode=None if total.is_floating_point() or total.is_complex() else "trunc")
    tensor.copy_(total)


def fold(team: Team, collective: int, tensor: torch.Tensor, op: Any, root: int) -> None:
    """Carries out an allreduce or a reduce in place."""
    if collective == ALLREDUCE and tensor.layout is torch.sparse_coo and tensor.is_cpu:
        add_sparse(team, tensor, op)
        return
    flat = flat_of(tensor)
    element, operator = numbers(tensor, op)
    start = flat.data_ptr()
    team._raw(collective, element, operator, root, flat.numel(), start, start)
    if start != tensor.data_ptr() and (collective == ALLREDUCE or root == team.rank):
        tensor.copy_(flat)


def reduction(team: Team) -> Any:
    """`allreduce` of a process group on a team: by the extension, but for tensors about which it would have to ask in Python."""
    return _lineweave.TensorReduction(team, list(_BY_HASH.items()), partial(_asked, team), over)


def _asked(team: Team, tensors: list[torch.Tensor], opts: Any) -> Any:
    (tensor,) = tensors
    fold(team, ALLREDUCE, tensor, None if opts is None else opts.reduceOp, 0)
    return done(opts, tensors)

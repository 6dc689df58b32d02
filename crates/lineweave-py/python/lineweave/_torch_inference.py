"""The shared-memory operators of DeepSpeed, sglang and vLLM for inference on CPUs, by their names and arguments (`lineweave.torch`).

| theirs | here, in place of |
|---|---|
| DeepSpeed | `initialize(size, rank)`, `inference_all_reduce(tensor)` (`deepspeed.comm`, `torch.ops.deepspeed.inference_all_reduce_`) |
| sglang | `initialize(size, rank)`, `shm_allreduce(tensor, op)`, `shm_allgather(tensor, dim)` (`torch.ops.sgl_kernel`) |
| vLLM | `init_shm_manager`, `join_shm_manager`, `shm_allreduce(handle, tensor)`, `shm_gather`, `shm_all_gather` (`torch.ops._C`) |

Tensors are dense, on the CPU, and of any type that torch's backend takes. All ranks get the same bits. What a sum of n ranks is off by
at most, is in docs/how-to/inference.md.
"""

from __future__ import annotations

import hashlib
import os
from typing import Any, Sequence, overload

import torch
import torch.distributed as dist

from lineweave import _lineweave
from lineweave._errors import BadArgument, BadType, NoTeam
from lineweave._team import Team, fresh_name, socket_name
from lineweave._torch_nodes import nodes
from lineweave._torch_reductions import ALLREDUCE, flat_of, fold
from lineweave._torch_team import meet

# A rank waits for the others of a group as long as torch.distributed does.
_PATIENCE = dist.distributed_c10d.default_pg_timeout.total_seconds()
_SUM = dist.ReduceOp.SUM


class _Group:
    """The team and the sum that the operators of one group of ranks use."""

    def __init__(self, team: Team) -> None:
        self.team = team
        self.sum = _lineweave.TensorSum(team, self._asked)

    def _asked(self, tensor: torch.Tensor) -> None:
        """Makes or refuses the sum where the extension cannot tell that a tensor is suitable."""
        _check(tensor, "tensor")
        fold(self.team, ALLREDUCE, tensor, None, 0)


def _check(tensor: Any, called: str) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise BadType(f"{called} is {type(tensor).__name__}; expected a tensor")
    if flat_of(tensor) is not tensor and not tensor.is_contiguous():
        raise BadArgument(
            f"{called} of shape {tuple(tensor.shape)} has strides {tensor.stride()}; expected elements that lie one after the"
            " other: give tensor.contiguous()"
        )


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().reshape(-1).view(torch.uint8)


def _rank_of(rank: int, size: int) -> None:
    if not 0 <= rank < size:
        raise BadArgument(f"rank {rank} of {size} was given; expected 0 to {size - 1}, and at least one rank")


# DeepSpeed's and sglang's: one group of all ranks.

_everybody: _Group | None = None


def initialize(size: int, rank: int) -> None:
    """Meets the other ranks, once; called again with the same numbers it does nothing. Every rank calls it.

    A process group of all ranks on lineweave lends its team. With another process group ranks find each other by it, and without any
    by MASTER_ADDR and MASTER_PORT, as torch.distributed would. Raises `BadArgument` where the numbers are not those of the process
    group, differ from those given before, or ranks are on several nodes.
    """
    global _everybody
    _rank_of(rank, size)
    if _everybody is not None and not _everybody.team.closed:
        team = _everybody.team
        if (team.size, team.rank) != (size, rank):
            raise BadArgument(
                f"initialize({size}, {rank}) after initialize({team.size}, {team.rank}); expected the same numbers each time"
            )
        return
    _everybody = _Group(_team_of_all(size, rank))


def _team_of_all(size: int, rank: int) -> Team:
    if not dist.is_initialized():
        place = [os.environ.get(name) for name in ("MASTER_ADDR", "MASTER_PORT")]
        if None in place:
            raise BadArgument(
                "nothing says where ranks meet: call torch.distributed.init_process_group first, or set MASTER_ADDR and MASTER_PORT"
            )
        return meet(_meeting("initialize", *map(str, place)), size, rank, _PATIENCE)
    if (size, rank) != (dist.get_world_size(), dist.get_rank()):
        raise BadArgument(
            f"initialize({size}, {rank}) in a process group of {dist.get_world_size()} ranks, of which this is rank"
            f" {dist.get_rank()}; expected these"
        )
    team = getattr(dist.group.WORLD, "_team", None)
    if isinstance(team, Team) and team.size == size:
        return team
    store = dist.PrefixStore("lineweave/inference", dist.distributed_c10d._get_default_store())
    if len(nodes(store, rank, size)) > 1:
        raise BadArgument(
            "ranks are on several nodes, and these operators are for those of one; expected torch.distributed.all_reduce, which the"
            ' backend "lineweave" composes with gloo'
        )
    if rank == 0:
        store.set("name", fresh_name())
    return meet(store.get("name").decode(), size, rank, _PATIENCE)


def _meeting(*parts: str) -> str:
    """Returns the name at which ranks with the same parts meet; a socket's name has at most 107 bytes."""
    return socket_name("inference-" + hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32])


def _all() -> _Group:
    if _everybody is None:
        raise NoTeam("this operator was called before initialize(size, rank); let every rank call that first")
    return _everybody


def _only_sums(op: Any) -> None:
    # DeepSpeed and sglang have numbers and classes of their own for torch's.
    if not (op == _SUM or op == 0 or getattr(op, "name", None) == "SUM"):
        raise BadArgument(f"the operator {op} was given; expected ReduceOp.SUM: torch.distributed.all_reduce has the others")


def inference_all_reduce(tensor: torch.Tensor, op: Any = _SUM, group: Any = None, async_op: bool = False) -> torch.Tensor:
    """Adds up a tensor over all ranks, in place, and returns it: DeepSpeed's `inference_all_reduce`.

    With a `group` of other ranks than all, that group's own allreduce is called. `async_op` changes nothing: the sum is there when
    the call returns.
    """
    if op is not _SUM:
        _only_sums(op)
    if group is not None and group is not dist.group.WORLD:
        dist.all_reduce(tensor, group=group)
    else:
        (_everybody or _all()).sum(tensor)
    return tensor


def shm_allgather(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    """The tensors of all ranks in their order, joined along a dimension: sglang's `shm_allgather`."""
    team = _all().team
    _check(tensor, "tensor")
    if not -tensor.dim() <= dim < tensor.dim():
        raise BadArgument(f"dim {dim} of a tensor with {tensor.dim()} dimensions; expected one of its dimensions")
    everything = tensor.new_empty((team.size, *tensor.shape))
    team.allgather(_bytes_of(tensor), _bytes_of(everything))
    return torch.cat(everything.unbind(0), dim) if dim % tensor.dim() != 0 else everything.flatten(0, 1)


# vLLM's: groups by handles.

_groups: list[tuple[str, int, int] | _Group] = []


def init_shm_manager(name: str, group_size: int, rank: int, thread_num: int = 1) -> int:
    """A handle for a group of ranks that all give this name; it can be used after `join_shm_manager`.

    `thread_num`, with how many threads a rank computes, changes nothing: the thread that calls an operator carries it out.
    """
    _rank_of(rank, group_size)
    _groups.append((name, group_size, rank))
    return len(_groups) - 1


def join_shm_manager(handle: int, name: str) -> str:
    """Meets the other ranks of a group, and says who is in it. Every rank of the group calls it."""
    begun = _groups[handle] if 0 <= handle < len(_groups) else None
    if not isinstance(begun, tuple) or begun[0] != name:
        why = "there is no such handle" if begun is None else "it was joined" if isinstance(begun, _Group) else f"its name is {begun[0]!r}"
        raise BadArgument(f"join_shm_manager({handle}, {name!r}): {why}; expected one of init_shm_manager, with its name, once")
    _, size, rank = begun
    _groups[handle] = _Group(meet(_meeting("manager", name), size, rank, _PATIENCE))
    return f"lineweave: {name!r}, rank {rank} of {size}"


def _group(handle: int) -> _Group:
    found = _groups[handle] if 0 <= handle < len(_groups) else None
    if not isinstance(found, _Group):
        why = "there is no such handle" if found is None else "it was not joined"
        raise BadArgument(f"handle {handle}: {why}; expected one of init_shm_manager, after join_shm_manager")
    return found


@overload
def shm_allreduce(first: int, second: torch.Tensor) -> None: ...


@overload
def shm_allreduce(first: torch.Tensor, second: Any = 0) -> None: ...


def shm_allreduce(first: Any, second: Any = 0) -> None:
    """Adds up a tensor over a group, in place: `shm_allreduce(handle, tensor)` as vLLM has it, or over all ranks
    `shm_allreduce(tensor, op)` as sglang has it, of which `op` can be the sum only."""
    if isinstance(first, int):
        _group(first).sum(second)
    else:
        _only_sums(second)
        _all().sum(first)


def shm_gather(handle: int, data: torch.Tensor, outputs: Sequence[torch.Tensor] | None, dst: int) -> None:
    """Copies the tensor of each rank of a group to `outputs`, a list with one for each, at the group's rank `dst`."""
    team = _group(handle).team
    _check(data, "data")
    _rank_of(dst, team.size)
    if team.rank != dst:
        team.gather(_bytes_of(data), dst)
        return
    if outputs is None or [(t.shape, t.dtype) for t in outputs] != [(data.shape, data.dtype)] * team.size:
        found = None if outputs is None else [(tuple(t.shape), t.dtype) for t in outputs]
        raise BadArgument(
            f"outputs at rank {dst}: {found}; expected {team.size} tensors of shape {tuple(data.shape)} and {data.dtype}"
        )
    everything = data.new_empty((team.size, *data.shape))
    team.gather(_bytes_of(data), dst, _bytes_of(everything))
    for output, row in zip(outputs, everything):
        output.copy_(row)


def shm_all_gather(handle: int, data: torch.Tensor, output: torch.Tensor) -> None:
    """Copies the tensors of all ranks of a group into `output`, one after the other, at every rank."""
    team = _group(handle).team
    _check(data, "data")
    _check(output, "output")
    if output.dtype is not data.dtype or output.numel() != team.size * data.numel():
        raise BadArgument(
            f"output has {output.numel()} elements of {output.dtype}; expected {team.size} times {data.numel()} of {data.dtype}"
        )
    team.allgather(_bytes_of(data), _bytes_of(output))

"""Process groups over several nodes: lineweave among the ranks of each node, gloo between their first ranks, the leaders.

1. allreduce, reduce: the node's ranks reduce to their leader; leaders reduce by gloo; the leader broadcasts on its node.
2. broadcast: by gloo from the root's node's leader to the others, once the root has broadcast on its own node.
3. barrier: the node's, the leaders', the node's again.
4. all_gather: the node's ranks gather at their leader, leaders gather by gloo, the leader broadcasts on its node. Where nodes have
   different numbers of ranks, gloo does it.

Everything else is gloo's among all ranks: such calls cross the network for most of what they move anyway.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from lineweave._team import fresh_name
from lineweave._torch_reductions import ELEMENTS, NAMES, OPERATORS, done
from lineweave._torch_team import Group, meet

# The methods of gloo that are used as they are.
_GLOO = (
    "allgather_coalesced", "all_gather_single_coalesced", "gather", "gather_single", "scatter", "reduce_scatter",
    "reduce_scatter_single", "reduce_scatter_single_coalesced", "_reduce_scatter_base", "alltoall", "alltoall_base",
    "all_to_all_single", "send", "recv", "recv_anysource", "monitored_barrier",
)  # fmt: skip
_WIDER = {torch.int16: torch.int32}
for _narrow, _wide in (("uint16", torch.int32), ("uint32", torch.int64)):
    if hasattr(torch, _narrow):
        _WIDER[getattr(torch, _narrow)] = _wide
# By which node a rank says that it is on, where the kernel shall not be asked: to try this on one machine.
_VARIABLE = "LINEWEAVE_NODE"


def node() -> str:
    """Returns an id of this process's node: no two running kernels have one boot id."""
    said = os.environ.get(_VARIABLE)
    if said:
        return said
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return "unknown"


def nodes(store: Any, rank: int, size: int) -> list[list[int]]:
    """Returns the ranks of each node, in the order of their first ones."""
    store.set(f"lineweave/node/{rank}", node())
    found: dict[bytes, list[int]] = {}
    for r in range(size):
        found.setdefault(bytes(store.get(f"lineweave/node/{r}")), []).append(r)
    return list(found.values())


class ProcessGroupNodes(Group):
    """Collectives of torch.distributed among the ranks of several nodes."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta, members: list[list[int]]) -> None:
        super().__init__(rank, size)
        seconds = max(timeout.total_seconds(), 1.0)
        self._members = members
        self._node = next(i for i, ranks in enumerate(members) if rank in ranks)
        here = members[self._node]
        if rank == here[0]:
            store.set(f"lineweave/name/{self._node}", fresh_name())
        name = store.get(f"lineweave/name/{self._node}").decode()
        self._team = meet(name, len(here), here.index(rank), seconds)
        self._gloo = dist.ProcessGroupGloo(dist.PrefixStore("lineweave/all", store), rank, size, timeout)
        self._leaders = None
        if rank == here[0]:
            leaders = dist.PrefixStore("lineweave/leaders", store)
            self._leaders = dist.ProcessGroupGloo(leaders, self._node, len(members), timeout)

    def __repr__(self) -> str:
        return f"<ProcessGroupNodes: rank {self._place} of {self._ranks}, on node {self._node} of {len(self._members)}>"

    def _where(self, rank: int) -> tuple[int, int]:
        """Returns the node of a rank, and its place there."""
        return next((i, ranks.index(rank)) for i, ranks in enumerate(self._members) if rank in ranks)

    # Calls that use both levels.

    def _reduce(self, tensor: torch.Tensor, op: Any, root: int | None) -> bool:
        """Reduces the tensor; returns false, without doing so, for types and operators that only gloo has, or no backend."""
        name = NAMES.get(hash(op))
        if tensor.dtype not in ELEMENTS or name not in OPERATORS or tensor.layout is not torch.strided:
            return False
        average = name == "AVG"
        total = tensor.detach().clone(memory_format=torch.contiguous_format)
        inner = OPERATORS["SUM"] if average else OPERATORS[name]
        start, element, count = total.data_ptr(), ELEMENTS[tensor.dtype], total.numel()
        # 2 is reduce and 1 is bcast, in the order of the runtime's list.
        self._team._raw(2, element, inner, 0, count, start, start)
        if self._leaders is not None:
            options = dist.AllreduceOptions()
            options.reduceOp = dist.ReduceOp.SUM if average else op
            # Types that gloo does not have are added up in a wider type; overflows have the same result.
            wide = total.to(_WIDER[total.dtype]) if total.dtype in _WIDER else total
            self._leaders.allreduce([wide], options).wait()
            if wide is not total:
                total.copy_(wide)
        self._team._raw(1, element, -1, 0, count, start, start)
        if average:
            total = total.div_(self._ranks) if total.is_floating_point() else total.div_(self._ranks, rounding_mode="trunc")
        if root is None or root == self._place:
            tensor.copy_(total)
        return True

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        if opts is None:
            opts = dist.AllreduceOptions()
        for tensor in tensors:
            if not self._reduce(tensor, opts.reduceOp, None):
                self._gloo.allreduce([tensor], opts).wait()
        return done(opts, tensors)

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        return self.allreduce(tensors, opts)

    def reduce(self, tensors: list[torch.Tensor], opts: Any) -> Any:
        if not self._reduce(tensors[0], opts.reduceOp, opts.rootRank):
            self._gloo.reduce(tensors, opts).wait()
        return done(opts, tensors)

    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> Any:
        (tensor,) = tensors
        flat = tensor.detach().contiguous()
        raw = flat.reshape(-1).view(torch.uint8)
        start, count = raw.data_ptr(), raw.numel()
        at, place = self._where(opts.rootRank)
        if at == self._node:
            self._team._raw(1, 4, -1, place, count, start, start)
        if self._leaders is not None and count > 0:
            options = dist.BroadcastOptions()
            options.rootRank, options.rootTensor = at, 0
            self._leaders.broadcast([raw], options).wait()
        if at != self._node:
            self._team._raw(1, 4, -1, 0, count, start, start)
        if flat.data_ptr() != tensor.data_ptr():
            tensor.copy_(flat)
        return done(opts, tensors)

    def all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        parts = [torch.empty_like(tensor, memory_format=torch.contiguous_format) for _ in range(self._ranks)]
        self.allgather([parts], [tensor])
        output.copy_(torch.cat([part.reshape(-1) for part in parts]).view(output.shape))
        return done(opts, [output])

    _allgather_base = all_gather_single

    def allgather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        (tensor,), (parts,) = inputs, outputs
        sizes = {len(ranks) for ranks in self._members}
        if len(sizes) > 1 or tensor.numel() == 0 or any(part.numel() != tensor.numel() for part in parts):
            self._gloo.allgather(outputs, inputs).wait()
            return done(opts, outputs)
        mine = tensor.detach().contiguous().reshape(-1).view(torch.uint8)
        here = torch.empty((sizes.pop(), mine.numel()), dtype=torch.uint8)
        leads = self._leaders is not None
        # 4 is gather.
        self._team._raw(4, 4, -1, 0, mine.numel(), mine.data_ptr(), here.data_ptr() if leads else 0)
        everything = torch.empty((len(self._members), *here.shape), dtype=torch.uint8)
        if self._leaders is not None:
            self._leaders.allgather([list(everything.unbind(0))], [here]).wait()
        self._team._raw(1, 4, -1, 0, everything.numel(), everything.data_ptr(), everything.data_ptr())
        for i, ranks in enumerate(self._members):
            for j, rank in enumerate(ranks):
                part = parts[rank]
                part.copy_(everything[i, j].view(part.dtype).view(part.shape))
        return done(opts, outputs)

    def barrier(self, opts: Any = None) -> Any:
        self._team.barrier()
        if self._leaders is not None:
            self._leaders.barrier().wait()
        self._team.barrier()
        return done(opts, [])


def _by_gloo(name: str) -> Any:
    def call(self: ProcessGroupNodes, *arguments: Any, **named: Any) -> Any:
        return getattr(self._gloo, name)(*arguments, **named)

    call.__name__ = name
    return call


for _name in _GLOO:
    if hasattr(dist.ProcessGroupGloo, _name):
        setattr(ProcessGroupNodes, _name, _by_gloo(_name))

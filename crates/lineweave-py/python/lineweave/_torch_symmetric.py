"""torch's symmetric memory (`torch.distributed._symmetric_memory`) for CPU tensors, in memory that all ranks share.

torch takes allocators for a kind of device from C++ only. So `serve` puts functions in the place of those of torch's class that make
and find such tensors: they serve CPU tensors, and hand all others on. What torch offers as operators (`torch.ops.symm_mem`) is carried out by
the group's team, which reads tensors of this memory where they lie.
"""

from __future__ import annotations

import ctypes
import math
import weakref
from contextlib import contextmanager
from typing import Any, Iterator, Sequence

import torch
import torch.distributed as dist

from lineweave import _arrays
from lineweave._errors import BadArgument
from lineweave._torch_reductions import ALLREDUCE, flat_of, numbers
from lineweave._torch_team import Group

# torch's class, where this torch has it.
_TORCHS: Any = None
try:
    from torch._C._distributed_c10d import _SymmetricMemory

    _TORCHS = _SymmetricMemory
except ImportError:
    pass

_NAME = "lineweave"
_CPU = torch.device("cpu")
_REDUCE_SCATTER = 7
_PAGE = 4096
# Bytes of a signal pad where torch does not let them be set.
_PAD = 2048


def _group_of(name: Any) -> Group:
    """Returns the group of this name, or the default group, if symmetric memory can be had among its ranks."""
    c10d: Any = dist.distributed_c10d
    group = c10d._resolve_process_group(name) if name is not None else c10d._get_default_group()
    if not isinstance(group, Group) or group._team.size != group.size():
        kind = "several nodes" if isinstance(group, Group) else group.name()
        raise BadArgument(f"symmetric memory of CPU tensors needs a group of the backend lineweave on one node; this one is {kind}")
    return group


class _Part:
    """The memory of one rank of an allocation, as it lies in this process."""

    def __init__(self, kept: Any, address: int, size: int) -> None:
        self.kept, self.address, self.bytes = kept, address, size

    def tensor(self, sizes: Sequence[int], dtype: torch.dtype, offset: int, what: str) -> torch.Tensor:
        """A tensor of this shape at an offset in bytes."""
        length = math.prod(sizes) * dtype.itemsize
        if offset < 0 or offset + length > self.bytes:
            raise BadArgument(f"{what}: {tuple(sizes)} of {dtype} at byte {offset} ends behind the {self.bytes} bytes there are")
        found: torch.Tensor = _arrays.in_memory(_Part(self.kept, self.address + offset, length), tuple(sizes), dtype)
        return found


class _Allocation:
    """What all ranks of a group got by one call of `empty`: a buffer each, and a signal pad behind it."""

    living: weakref.WeakValueDictionary[int, _Allocation] = weakref.WeakValueDictionary()
    made: weakref.WeakKeyDictionary[Group, int] = weakref.WeakKeyDictionary()

    def __init__(self, group: Group, size: int) -> None:
        self.group, self.bytes = group, size
        self.pad_at = -(-max(size, 1) // _PAGE) * _PAGE
        self.pad_bytes = _PAD if isinstance(_TORCHS.signal_pad_size, property) else int(_TORCHS.signal_pad_size)
        self.memory = group._team._alloc(self.pad_at + self.pad_bytes)
        self.address = self.memory.address
        self.number = self.made[group] = self.made.get(group, 0) + 1
        self.handles: dict[str, SymmetricMemory] = {}
        # The tensor's storage, while there is one: it keeps this object.
        self.used: Any = lambda: None
        self.living[self.address] = self

    def buffer(self) -> Any:
        mapped = _arrays._mapped(self)
        self.used = weakref.ref(mapped)
        return mapped


class SymmetricMemory:
    """The buffers that all ranks of a group got by one allocation. `torch.distributed._symmetric_memory.rendezvous` makes it.

    It offers what torch's own class does. Signals are messages of the group's ranks, which a lost rank ends with an error. As every team, it
    is used by one thread at a time.
    """

    device = _CPU
    multicast_ptr = 0

    def __init__(self, allocation: _Allocation, group: Group, places: Sequence[int], offset: int) -> None:
        # The allocation keeps its handles.
        memory, self._kept = allocation.memory, group
        self._team = group._team.dup()
        self.rank, self.world_size = group.rank(), group.size()
        self.buffer_size, self.offset = allocation.bytes, offset
        addresses = [memory.addresses[place] for place in places]
        self._buffers = [_Part(memory, address, allocation.bytes) for address in addresses]
        self._pads = [_Part(memory, address + allocation.pad_at, allocation.pad_bytes) for address in addresses]
        self.buffer_ptrs = [part.address for part in self._buffers]
        self.signal_pad_ptrs = [part.address for part in self._pads]
        self._tables = [(ctypes.c_void_p * self.world_size)(*row) for row in (self.buffer_ptrs, self.signal_pad_ptrs)]
        self.buffer_ptrs_dev, self.signal_pad_ptrs_dev = map(ctypes.addressof, self._tables)
        self.signal_pad_size = allocation.pad_bytes

    def __repr__(self) -> str:
        return f"<lineweave symmetric memory: rank {self.rank} of {self.world_size}, {self.buffer_size} bytes>"

    def _of(self, rank: int, parts: list[_Part]) -> _Part:
        if not 0 <= rank < self.world_size:
            raise BadArgument(f"rank is {rank}; expected 0 to {self.world_size - 1}")
        return parts[rank]

    def get_buffer(self, rank: int, sizes: Sequence[int], dtype: torch.dtype, storage_offset: int | None = 0) -> torch.Tensor:
        """Returns a tensor on the buffer of `rank`, `storage_offset` elements behind its beginning."""
        return self._of(rank, self._buffers).tensor(sizes, dtype, (storage_offset or 0) * dtype.itemsize, "get_buffer")

    def get_remote_tensor(self, peer: int, sizes: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """Returns the tensor of `peer` that lies where this rank's tensor does."""
        return self._of(peer, self._buffers).tensor(sizes, dtype, self.offset, "get_remote_tensor")

    def get_signal_pad(
        self, rank: int, sizes: Sequence[int] = (), dtype: torch.dtype | None = None, storage_offset: int | None = 0
    ) -> torch.Tensor:
        """Returns a tensor on the signal pad of `rank`: numbers of 32 bits, zero at first, for a program's own use."""
        dtype = dtype or torch.uint32
        start = (storage_offset or 0) * dtype.itemsize
        shape = sizes or (max(self.signal_pad_size - start, 0) // dtype.itemsize,)
        return self._of(rank, self._pads).tensor(shape, dtype, start, "get_signal_pad")

    @contextmanager
    def _within(self, timeout_ms: int) -> Iterator[Any]:
        if timeout_ms > 0:
            self._team.set_timeout(timeout_ms / 1000)
        try:
            yield self._team
        finally:
            if timeout_ms > 0:
                self._team.set_timeout(max(self._kept._timeout.total_seconds(), 1.0))

    def barrier(self, channel: int = 0, timeout_ms: int = 0) -> None:
        """Waits for all ranks. There is one order for all channels."""
        with self._within(timeout_ms) as team:
            team.barrier()

    def put_signal(self, dst_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Tells `dst_rank`, which may wait for it, that what this rank wrote before can be read."""
        with self._within(timeout_ms) as team:
            team.send(b"", dst_rank, channel)

    def wait_signal(self, src_rank: int, channel: int = 0, timeout_ms: int = 0) -> None:
        """Waits for a signal of `src_rank` by this channel."""
        with self._within(timeout_ms) as team:
            team.recv(bytearray(), src_rank, channel)


_persistent: dict[int, tuple[tuple[Any, ...], _Allocation]] = {}


def _allocation(size: int, group_name: Any, alloc_id: int | None) -> _Allocation:
    if alloc_id is None:
        return _Allocation(_group_of(group_name), size)
    asked = (size, group_name)
    known, allocation = _persistent.get(alloc_id) or (asked, None)
    if known != asked:
        raise BadArgument(f"allocation {alloc_id} has {known[0]} bytes in group {known[1]}; {size} bytes in group {group_name} are asked for")
    if allocation is None:
        allocation = _Allocation(_group_of(group_name), size)
        _persistent[alloc_id] = (asked, allocation)
    if allocation.used() is not None:
        raise BadArgument(f"allocation {alloc_id} is still used by a tensor; drop that first, or give another alloc_id")
    return allocation


def empty_strided_p2p(
    size: Sequence[int], stride: Sequence[int], dtype: torch.dtype, group_name: Any = None, alloc_id: int | None = None
) -> torch.Tensor:
    """A tensor, zero at first, in memory that all ranks of the group (the default group if none is named) share; each of them calls it."""
    last = 1 + sum((extent - 1) * step for extent, step in zip(size, stride)) if math.prod(size) else 0
    allocation = _allocation(last * dtype.itemsize, group_name, alloc_id)
    if last == 0:
        return torch.empty_strided(size, stride, dtype=dtype)
    return torch.frombuffer(allocation.buffer(), dtype=dtype).as_strided(tuple(size), tuple(stride))


def _find(tensor: torch.Tensor) -> _Allocation | None:
    return _Allocation.living.get(tensor.untyped_storage().data_ptr())


def rendezvous(tensor: torch.Tensor, group_name: Any = None) -> SymmetricMemory:
    """Returns the buffers of all ranks of the group that belong to this tensor. Every rank of the group calls it."""
    allocation = _find(tensor)
    if allocation is None:
        raise BadArgument("rendezvous: this tensor is in memory of this process alone; make it by torch.distributed._symmetric_memory.empty")
    group = allocation.group if group_name is None else _group_of(group_name)
    handle = allocation.handles.get(group.group_name)
    if handle is not None:
        return handle
    whole, ranks = (dist.get_process_group_ranks(g) for g in (allocation.group, group))
    offset = tensor.data_ptr() - allocation.address
    mine = torch.tensor([allocation.number, allocation.bytes, offset, all(rank in whole for rank in ranks)])
    told = group._team.allgather(mine)
    if not (told == mine).all() or not mine[3]:
        raise BadArgument(
            "rendezvous: expected the same tensor of every rank, allocated in a group in which all of them are; by rank, allocation, bytes,"
            f" offset in bytes and whether all are in it: {told.tolist()}"
        )
    handle = SymmetricMemory(allocation, group, [whole.index(rank) for rank in ranks], offset)
    allocation.handles[group.group_name] = handle
    return handle


# The operators of `torch.ops.symm_mem`.


def _one_shot_out(tensor: torch.Tensor, reduce_op: str, group_name: str, out: torch.Tensor) -> torch.Tensor:
    given, taken = flat_of(tensor), flat_of(out)
    if given.numel() != taken.numel() or given.dtype is not taken.dtype:
        raise BadArgument(f"all_reduce: {tuple(given.shape)} of {given.dtype} is given, and out is {tuple(taken.shape)} of {taken.dtype}")
    element, operator = numbers(given, _operator(reduce_op))
    _group_of(group_name)._team._raw(ALLREDUCE, element, operator, 0, given.numel(), given.data_ptr(), taken.data_ptr())
    return out if taken is out else out.copy_(taken)


def _operator(name: str) -> Any:
    found = getattr(dist.ReduceOp, name.upper(), None)
    if found is None:
        raise BadArgument(f"the operator is {name!r}; expected sum, avg, min, max, product, band, bor or bxor")
    return found


def _one_shot(tensor: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:
    out = torch.empty_like(tensor, memory_format=torch.contiguous_format)
    return _one_shot_out(tensor, reduce_op, group_name, out)


def _one_shot_copy(buffer: torch.Tensor, local: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:
    return _one_shot(local, reduce_op, group_name)


def _one_shot_copy_out(
    buffer: torch.Tensor, local: torch.Tensor, reduce_op: str, group_name: str, out: torch.Tensor
) -> torch.Tensor:
    return _one_shot_out(local, reduce_op, group_name, out)


def _two_shot(tensor: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:
    return _one_shot_out(tensor, reduce_op, group_name, tensor)


def _reduce_scatter_out(
    tensor: torch.Tensor, group_name: str, split_last_dim: bool, output: torch.Tensor, reduce_op: str = "sum"
) -> torch.Tensor:
    group = _group_of(group_name)
    parts = tensor.chunk(group.size(), -1 if split_last_dim else 0)
    if len(parts) != group.size() or any(part.shape != output.shape for part in parts) or tensor.dtype is not output.dtype:
        raise BadArgument(
            f"reduce_scatter: {tuple(tensor.shape)} of {tensor.dtype} in {group.size()} parts is given, and the output is"
            f" {tuple(output.shape)} of {output.dtype}"
        )
    given, taken = torch.stack(parts) if split_last_dim else flat_of(tensor), flat_of(output)
    element, operator = numbers(given, _operator(reduce_op))
    group._team._raw(_REDUCE_SCATTER, element, operator, 0, taken.numel(), given.data_ptr(), taken.data_ptr())
    return output if taken is output else output.copy_(taken)


def _all_gather(tensor: torch.Tensor, group_name: str) -> torch.Tensor:
    group = _group_of(group_name)
    out = tensor.new_empty((tensor.shape[0] * group.size(), *tensor.shape[1:]))
    dist.all_gather_into_tensor(out, tensor, group=group)
    return out


def _reduce_scatter(tensor: torch.Tensor, reduce_op: str, group_name: str) -> torch.Tensor:
    parts = _group_of(group_name).size()
    out = tensor.new_empty((tensor.shape[0] // parts, *tensor.shape[1:]))
    return _reduce_scatter_out(tensor, group_name, False, out, reduce_op)


def _remote_tensors(tensor: torch.Tensor, group_name: str) -> list[torch.Tensor]:
    handle = rendezvous(tensor, group_name)
    return [handle.get_remote_tensor(rank, tensor.shape, tensor.dtype) for rank in range(handle.world_size)]


def _fallback(name: str) -> Any:
    """Returns torch's own composition of an operator that multiplies beside a collective."""

    def call(*arguments: Any, **named: Any) -> Any:
        import torch.distributed._symmetric_memory as module

        return getattr(module, f"_{name}_fallback")(*arguments, **named)

    return call


_OPERATORS = {
    "one_shot_all_reduce": _one_shot,
    "one_shot_all_reduce_out": _one_shot_out,
    "one_shot_all_reduce_copy": _one_shot_copy,
    "one_shot_all_reduce_copy_out": _one_shot_copy_out,
    "two_shot_all_reduce_": _two_shot,
    "two_shot_all_reduce_out": _one_shot_out,
    "reduce_scatter_out": _reduce_scatter_out,
    "get_remote_tensors": _remote_tensors,
    "_low_contention_all_gather": _all_gather,
    "_low_contention_reduce_scatter": _reduce_scatter,
    **{
        name: _fallback(name)
        for name in ("fused_all_gather_matmul", "fused_matmul_reduce_scatter")
        for name in (name, name.replace("matmul", "scaled_matmul"))
    },
}
_library: Any = None


def serve() -> None:
    """Has torch's symmetric memory serve CPU tensors, where this torch has it."""
    global _library
    if _TORCHS is None or _library is not None:
        return
    theirs = {name: getattr(_TORCHS, name) for name in ("empty_strided_p2p", "rendezvous")}

    def empty(size: Any, stride: Any, dtype: Any, device: Any, group_name: Any = None, alloc_id: Any = None) -> Any:
        if torch.device(device).type != "cpu":
            return theirs["empty_strided_p2p"](size, stride, dtype, device, group_name, alloc_id)
        return empty_strided_p2p(size, stride, dtype, group_name, alloc_id)

    def meet(tensor: torch.Tensor, group_name: Any = None) -> Any:
        return rendezvous(tensor, group_name) if tensor.is_cpu else theirs["rendezvous"](tensor, group_name)

    _TORCHS.empty_strided_p2p, _TORCHS.rendezvous = staticmethod(empty), staticmethod(meet)
    if hasattr(_TORCHS, "get_backend"):
        backend = _TORCHS.get_backend
        _TORCHS.get_backend = staticmethod(lambda device: _NAME if torch.device(device).type == "cpu" else backend(device))
    if hasattr(_TORCHS, "is_symm_mem_tensor"):
        known = _TORCHS.is_symm_mem_tensor
        _TORCHS.is_symm_mem_tensor = staticmethod(lambda tensor: _find(tensor) is not None if tensor.is_cpu else known(tensor))
    library: Any = torch.library.Library
    _library = library("symm_mem", "IMPL")
    for name, function in _OPERATORS.items():
        _library.impl(name, function, "CPU")

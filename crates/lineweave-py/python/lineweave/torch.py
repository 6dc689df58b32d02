"""A backend for torch.distributed: `import lineweave.torch`, then `init_process_group("lineweave")`.

Collectives on CPU tensors run on lineweave, and are over when the call returns; with `async_op=True` what is returned is a
finished `Work`. `isend` and `irecv` are carried on whenever this rank waits for something of its team. Groups with ranks on several
nodes are composed with gloo (`lineweave._torch_nodes`).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Sequence

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    raise ImportError(
        f"lineweave.torch needs torch with torch.distributed, which cannot be imported: {error}; pip install torch"
    ) from error

from lineweave import _torch_symmetric
from lineweave._errors import BadArgument
from lineweave._team import fresh_name
from lineweave._torch_inference import (
    inference_all_reduce,
    init_shm_manager,
    initialize,
    join_shm_manager,
    shm_all_gather,
    shm_allgather,
    shm_allreduce,
    shm_gather,
)
from lineweave._torch_messages import FromAnyone, Message
from lineweave._torch_nodes import ProcessGroupNodes, nodes
from lineweave._torch_reductions import ALLREDUCE, OPERATOR_NAMES, done, flat_of, fold, numbers, reduction
from lineweave._torch_team import Group, meet

__all__ = [
    "ProcessGroupLineweave",
    "inference_all_reduce",
    "init_shm_manager",
    "initialize",
    "join_shm_manager",
    "shm_all_gather",
    "shm_allgather",
    "shm_allreduce",
    "shm_gather",
]

# Numbers in the order of the runtime's lists.
_BCAST, _REDUCE, _GATHER, _SCATTER, _ALLGATHER, _REDUCE_SCATTER = 1, 2, 4, 5, 6, 7
_ALLTOALL = 10
_U8 = 4


def _bytes(tensor: torch.Tensor) -> int:
    return int(tensor.numel() * tensor.element_size())


def _raw_bytes(flat: torch.Tensor) -> torch.Tensor:
    return flat.detach().reshape(-1).view(torch.uint8)


class ProcessGroupLineweave(Group):
    """Collectives of torch.distributed on a team. Made by `init_process_group` and `new_group`."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        seconds = max(timeout.total_seconds(), 1.0)
        if rank == 0:
            store.set("lineweave/name", fresh_name())
        name = store.get("lineweave/name").decode()
        self._team = meet(name, size, rank, seconds)
        self._raw = self._team._raw
        self.allreduce = reduction(self._team)

    def __repr__(self) -> str:
        return f"<ProcessGroupLineweave: rank {self._place} of {self._ranks}>"

    # Reductions.

    # allreduce: what `__init__` puts there. torch takes it from the object, from C++ too.

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        for tensor in tensors:
            fold(self._team, ALLREDUCE, tensor, None if opts is None else opts.reduceOp, 0)
        return done(opts, tensors)

    def reduce(self, tensors: list[torch.Tensor], opts: Any) -> Any:
        fold(self._team, _REDUCE, tensors[0], opts.reduceOp, opts.rootRank)
        return done(opts, tensors)

    def reduce_scatter_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        if tensor.numel() != output.numel() * self._ranks or tensor.dtype is not output.dtype:
            raise BadArgument(
                f"reduce_scatter: the input has {tensor.numel()} elements of {tensor.dtype} and the output"
                f" {output.numel()} of {output.dtype}, among {self._ranks} ranks"
            )
        given, taken = flat_of(tensor), flat_of(output)
        element, operator = numbers(tensor, None if opts is None else opts.reduceOp)
        self._raw(_REDUCE_SCATTER, element, operator, 0, taken.numel(), given.data_ptr(), taken.data_ptr())
        if taken.data_ptr() != output.data_ptr():
            output.copy_(taken)
        return done(opts, [output])

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None) -> Any:
        (output,), (parts,) = outputs, inputs
        sizes = [part.numel() for part in parts]
        if len(parts) != self._ranks or sizes[self._place] != output.numel():
            raise BadArgument(
                f"reduce_scatter: tensors of {sizes} elements are given and rank {self._place} takes {output.numel()}; expected a tensor"
                f" for each of the {self._ranks} ranks, each as long as that rank's output"
            )
        given = torch.cat([part.reshape(-1) for part in parts])
        if len(set(sizes)) == 1:
            self.reduce_scatter_single(output, given, opts)
        else:
            taken = flat_of(output)
            _, operator = numbers(given, None if opts is None else opts.reduceOp)
            self._team.reduce_scatter(given, sizes, op=OPERATOR_NAMES[operator], out=taken.view(-1))
            if taken.data_ptr() != output.data_ptr():
                output.copy_(taken)
        return done(opts, outputs)

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        for output, tensor in zip(outputs, inputs):
            self.reduce_scatter_single(output, tensor, opts)
        return done(opts, outputs)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # Moving data: any type, as bytes.

    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> Any:
        (tensor,) = tensors
        flat = flat_of(tensor)
        start = flat.data_ptr()
        self._raw(_BCAST, _U8, -1, opts.rootRank, _bytes(flat), start, start)
        if start != tensor.data_ptr():
            tensor.copy_(flat)
        return done(opts, tensors)

    def all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        if _bytes(output) != _bytes(tensor) * self._ranks:
            raise BadArgument(
                f"all_gather: the output has {output.numel()} elements; expected {tensor.numel()} from each of the"
                f" {self._ranks} ranks"
            )
        given, taken = flat_of(tensor), flat_of(output)
        self._raw(_ALLGATHER, _U8, -1, 0, _bytes(given), given.data_ptr(), taken.data_ptr())
        if taken.data_ptr() != output.data_ptr():
            output.copy_(taken)
        return done(opts, [output])

    _allgather_base = all_gather_single

    def allgather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        (tensor,), (parts,) = inputs, outputs
        if any(part.numel() != tensor.numel() for part in parts):
            return self._allgather_uneven(parts, tensor, outputs, opts)
        everything = tensor.new_empty((self._ranks, tensor.numel()))
        self.all_gather_single(everything, tensor)
        for part, row in zip(parts, everything):
            part.copy_(row.view(part.shape))
        return done(opts, outputs)

    def _allgather_uneven(self, parts: list[torch.Tensor], tensor: torch.Tensor, outputs: Any, opts: Any) -> Any:
        for root, part in enumerate(parts):
            flat = flat_of(tensor if root == self._place else part)
            start = flat.data_ptr()
            self._raw(_BCAST, _U8, -1, root, _bytes(part), start, start)
            if root == self._place or start != part.data_ptr():
                part.copy_(flat.view(part.shape))
        return done(opts, outputs)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        for output, tensor in zip(outputs, inputs):
            self.all_gather_single(output, tensor)
        return done(opts, outputs)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather_coalesced(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        for i, tensor in enumerate(inputs):
            self.allgather([[row[i] for row in outputs]], [tensor])
        return done(opts, outputs)

    def gather_single(self, output: torch.Tensor | None, tensor: torch.Tensor, opts: Any) -> Any:
        given = flat_of(tensor)
        taken = flat_of(output) if self._place == opts.rootRank and output is not None else None
        start = 0 if taken is None else taken.data_ptr()
        self._raw(_GATHER, _U8, -1, opts.rootRank, _bytes(given), given.data_ptr(), start)
        if taken is not None and output is not None and start != output.data_ptr():
            output.copy_(taken)
        return done(opts, [] if output is None else [output])

    def gather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any) -> Any:
        (tensor,) = inputs
        here = self._place == opts.rootRank
        everything = tensor.new_empty((self._ranks, tensor.numel())) if here else None
        self.gather_single(everything, tensor, opts)
        if here and everything is not None:
            for part, row in zip(outputs[0], everything):
                part.copy_(row.view(part.shape))
        return done(opts, outputs)

    def scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any) -> Any:
        (output,) = outputs
        taken = flat_of(output)
        given = None
        if self._place == opts.rootRank:
            given = torch.cat([tensor.reshape(-1) for tensor in inputs[0]])
            if _bytes(given) != _bytes(output) * self._ranks:
                raise BadArgument("scatter: tensors of one size and type are expected, one for each rank")
        start = 0 if given is None else given.data_ptr()
        self._raw(_SCATTER, _U8, -1, opts.rootRank, _bytes(taken), start, taken.data_ptr())
        if taken.data_ptr() != output.data_ptr():
            output.copy_(taken)
        return done(opts, outputs)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_splits: Sequence[int] | None = None,
        input_splits: Sequence[int] | None = None,
        opts: Any = None,
    ) -> Any:
        given, taken = flat_of(tensor), flat_of(output)
        if not output_splits and not input_splits:
            if _bytes(given) != _bytes(taken) or given.numel() % self._ranks != 0:
                raise BadArgument(
                    f"all_to_all: {given.numel()} elements are given and {taken.numel()} taken; expected as many, a"
                    f" multiple of the {self._ranks} ranks, or sizes of the splits"
                )
            self._raw(_ALLTOALL, _U8, -1, 0, _bytes(given) // self._ranks, given.data_ptr(), taken.data_ptr())
        else:
            row_in = _bytes(given) // max(given.shape[0], 1) if given.dim() else 0
            row_out = _bytes(taken) // max(taken.shape[0], 1) if taken.dim() else 0
            row = row_in or row_out
            sizes_in = [n * row for n in input_splits or [given.shape[0] // self._ranks] * self._ranks]
            sizes_out = [n * row for n in output_splits or [taken.shape[0] // self._ranks] * self._ranks]
            view_in, view_out = given.view(-1).view(torch.uint8), taken.view(-1).view(torch.uint8)
            self._team.alltoallv(view_in, sizes_in, sizes_out, view_out)
        if taken.data_ptr() != output.data_ptr():
            output.copy_(taken)
        return done(opts, [output])

    alltoall_base = all_to_all_single

    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        given = torch.cat([tensor.reshape(-1).view(torch.uint8) for tensor in inputs])
        sizes_in, sizes_out = [_bytes(t) for t in inputs], [_bytes(t) for t in outputs]
        taken = torch.empty(sum(sizes_out), dtype=torch.uint8)
        self._team.alltoallv(given, sizes_in, sizes_out, taken)
        for output, part in zip(outputs, taken.split(sizes_out)):
            output.copy_(part.view(output.dtype).view(output.shape))
        return done(opts, outputs)

    def barrier(self, opts: Any = None) -> Any:
        self._team.barrier()
        return done(opts, [])

    # Point to point.

    def send(self, tensors: list[torch.Tensor], destination: int, tag: int = 0) -> Message:
        (tensor,) = tensors
        flat = flat_of(tensor)
        return Message(tensors, flat, self._team.isend(_raw_bytes(flat), destination, tag), -1)

    def recv(self, tensors: list[torch.Tensor], source: int, tag: int = 0) -> Message:
        (tensor,) = tensors
        flat = flat_of(tensor)
        return Message(tensors, flat, self._team.irecv(_raw_bytes(flat), source, tag), source)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> Message:
        return FromAnyone(self, tensors, tag)


def _create(store: Any, rank: int, size: int, timeout: timedelta) -> Group:
    members = nodes(store, rank, size)
    group: Group
    if len(members) > 1:
        group = ProcessGroupNodes(store, rank, size, timeout, members)
    else:
        group = ProcessGroupLineweave(store, rank, size, timeout)
    group._store, group._timeout, group._create = store, timeout, _create
    return group


dist.Backend.register_backend("lineweave", _create, devices=["cpu"])
_torch_symmetric.serve()

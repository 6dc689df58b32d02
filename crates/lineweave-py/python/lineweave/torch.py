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

from lineweave import _lineweave
from lineweave._errors import BadArgument, BadType
from lineweave._team import Team, fresh_name
from lineweave._torch_messages import FromAnyone, Message
from lineweave._torch_nodes import ProcessGroupNodes, nodes

# Numbers in the order of the runtime's lists.
_BCAST, _REDUCE, _ALLREDUCE, _GATHER, _SCATTER, _ALLGATHER, _REDUCE_SCATTER = 1, 2, 3, 4, 5, 6, 7
_ALLTOALL = 10
_U8 = 4
_ELEMENTS = {
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
        _ELEMENTS[getattr(torch, _name)] = _number
_SUM, _AVG = 0, 4
_OPERATORS = {"SUM": 0, "PRODUCT": 1, "MIN": 2, "MAX": 3, "AVG": 4, "BAND": 5, "BOR": 6, "BXOR": 7}
# On bool.
_LOGICAL = {"SUM": 9, "PRODUCT": 8, "MIN": 8, "MAX": 9, "BAND": 8, "BOR": 9, "BXOR": 10}

# By hash, which is the number of the operator: taking that out of the options and comparing costs several times as much.
_NAMES = {hash(getattr(dist.ReduceOp, name)): name for name in (*_OPERATORS, "PREMUL_SUM")}
_BY_HASH = {number: _OPERATORS[name] for number, name in _NAMES.items() if name in _OPERATORS}
assert len(_BY_HASH) == len(_OPERATORS), "operators of torch.distributed have hashes of their own"


# Whether tensors can be described to the extension without questions in Python.
_QUICK = _lineweave.learn_tensors(torch.Tensor)


def _operator(op: Any, tensor: torch.Tensor) -> int:
    name = _NAMES.get(hash(op), "of this number")
    table, kind = (_LOGICAL, "bool") if tensor.dtype is torch.bool else (_OPERATORS, "tensors")
    if name not in table:
        raise BadArgument(f"the operator {name} is not offered on {kind}; expected {', '.join(table)}")
    return table[name]


def _refuse(tensor: torch.Tensor) -> BadType:
    if tensor.device.type != "cpu":
        return BadType(f"lineweave's backend is for CPU tensors, and this one is on {tensor.device}; give it tensor.cpu()")
    if tensor.layout is not torch.strided:
        return BadType(f"lineweave's backend is for dense tensors, and this one is {tensor.layout}; give it tensor.to_dense()")
    return BadType(f"{tensor.dtype} cannot be reduced; expected one of {', '.join(map(str, _ELEMENTS))}, or bool")


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, if it is dense on the CPU and its elements lie one after the other; else a copy that does."""
    if tensor.device.type != "cpu" or tensor.layout is not torch.strided:
        raise _refuse(tensor)
    return tensor.contiguous()


def _bytes(tensor: torch.Tensor) -> int:
    return int(tensor.numel() * tensor.element_size())


def _raw_bytes(flat: torch.Tensor) -> torch.Tensor:
    return flat.detach().reshape(-1).view(torch.uint8)


class _Done(dist.Work):
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


def _done(opts: Any, tensors: Sequence[Any]) -> _Done | None:
    # Who does not ask for work takes none for done (distributed_c10d), and making it costs more than a small collective.
    if opts is not None and not getattr(opts, "asyncOp", True):
        return None
    return _Done(tensors)


class ProcessGroupLineweave(dist.ProcessGroup):
    """Collectives of torch.distributed on a team. Made by `init_process_group` and `new_group`."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        seconds = max(timeout.total_seconds(), 1.0)
        if rank == 0:
            store.set("lineweave/name", fresh_name())
        name = store.get("lineweave/name").decode()
        self._team = Team(_lineweave.meet(name, size, rank, seconds))
        self._team.set_timeout(seconds)
        self._raw, self._quick = self._team._raw, self._team._allreduce_tensor
        self._place, self._ranks = rank, size

    def name(self) -> str:
        return "lineweave"

    # torch keeps a group's name in a backend of its own making, which these groups do not have.

    def _set_group_name(self, name: str) -> None:
        self._called = name

    def getGroupName(self) -> str:
        return self._called

    group_name = property(getGroupName)

    def getBackendName(self) -> str:
        return "lineweave"

    def size(self) -> int:
        return self._ranks

    def rank(self) -> int:
        return self._place

    def _get_backend(self, device: torch.device) -> ProcessGroupLineweave:
        # There is one, for CPUs, and nothing that it is wrapped in.
        return self

    def __repr__(self) -> str:
        return f"<ProcessGroupLineweave: rank {self._place} of {self._ranks}>"

    def shutdown(self) -> None:
        self._team.close()

    def abort(self) -> None:
        self._team.abandon("the process group was aborted")
        self._team.close()

    def set_timeout(self, timeout: timedelta) -> None:
        self._team.set_timeout(timeout.total_seconds())

    # Reductions.

    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        if _QUICK and opts is not None:
            operator = _BY_HASH.get(hash(opts.reduceOp))
            if operator is not None and self._quick(tensors, operator):
                return _Done(tensors) if opts.asyncOp else None
        (tensor,) = tensors
        element = _ELEMENTS.get(tensor.dtype)
        if element is not None and tensor.is_contiguous() and tensor.is_cpu:
            # The common case, without anything that is not needed.
            start = tensor.data_ptr()
            operator = _SUM if opts is None else _BY_HASH.get(hash(opts.reduceOp))
            if operator is not None:
                self._raw(_ALLREDUCE, element, operator, 0, tensor.numel(), start, start)
                return None if opts is not None and not opts.asyncOp else _Done(tensors)
        self._fold(_ALLREDUCE, tensor, None if opts is None else opts.reduceOp, 0)
        return _done(opts, tensors)

    def _fold(self, collective: int, tensor: torch.Tensor, op: Any, root: int) -> None:
        flat = _flat(tensor)
        element = _U8 if tensor.dtype is torch.bool else _ELEMENTS.get(tensor.dtype)
        if element is None:
            raise _refuse(tensor)
        operator = _operator(op if op is not None else dist.ReduceOp.SUM, tensor)
        start = flat.data_ptr()
        self._raw(collective, element, operator, root, flat.numel(), start, start)
        if flat.data_ptr() != tensor.data_ptr() and (collective == _ALLREDUCE or root == self._place):
            tensor.copy_(flat)

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Any:
        for tensor in tensors:
            self._fold(_ALLREDUCE, tensor, None if opts is None else opts.reduceOp, 0)
        return _done(opts, tensors)

    def reduce(self, tensors: list[torch.Tensor], opts: Any) -> Any:
        self._fold(_REDUCE, tensors[0], opts.reduceOp, opts.rootRank)
        return _done(opts, tensors)

    def reduce_scatter_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        if tensor.numel() != output.numel() * self._ranks or tensor.dtype is not output.dtype:
            raise BadArgument(
                f"reduce_scatter: the input has {tensor.numel()} elements of {tensor.dtype} and the output"
                f" {output.numel()} of {output.dtype}, among {self._ranks} ranks"
            )
        given, taken = _flat(tensor), _flat(output)
        element = _U8 if tensor.dtype is torch.bool else _ELEMENTS.get(tensor.dtype)
        if element is None:
            raise _refuse(tensor)
        operator = _operator(dist.ReduceOp.SUM if opts is None else opts.reduceOp, tensor)
        self._raw(_REDUCE_SCATTER, element, operator, 0, taken.numel(), given.data_ptr(), taken.data_ptr())
        if taken.data_ptr() != output.data_ptr():
            output.copy_(taken)
        return _done(opts, [output])

    _reduce_scatter_base = reduce_scatter_single

    def reduce_scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any = None) -> Any:
        sizes = {tensor.numel() for tensor in inputs[0]}
        if sizes != {outputs[0].numel()}:
            raise BadArgument("reduce_scatter: tensors of one size are expected; give tensors as long as the output")
        given = torch.cat([tensor.reshape(-1) for tensor in inputs[0]])
        self.reduce_scatter_single(outputs[0], given, opts)
        return _done(opts, outputs)

    def reduce_scatter_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        for output, tensor in zip(outputs, inputs):
            self.reduce_scatter_single(output, tensor, opts)
        return _done(opts, outputs)

    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # Moving data: any type, as bytes.

    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> Any:
        (tensor,) = tensors
        flat = _flat(tensor)
        start = flat.data_ptr()
        self._raw(_BCAST, _U8, -1, opts.rootRank, _bytes(flat), start, start)
        if start != tensor.data_ptr():
            tensor.copy_(flat)
        return _done(opts, tensors)

    def all_gather_single(self, output: torch.Tensor, tensor: torch.Tensor, opts: Any = None) -> Any:
        if _bytes(output) != _bytes(tensor) * self._ranks:
            raise BadArgument(
                f"all_gather: the output has {output.numel()} elements; expected {tensor.numel()} from each of the"
                f" {self._ranks} ranks"
            )
        given, taken = _flat(tensor), _flat(output)
        self._raw(_ALLGATHER, _U8, -1, 0, _bytes(given), given.data_ptr(), taken.data_ptr())
        if taken.data_ptr() != output.data_ptr():
            output.copy_(taken)
        return _done(opts, [output])

    _allgather_base = all_gather_single

    def allgather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        (tensor,), (parts,) = inputs, outputs
        if any(part.numel() != tensor.numel() for part in parts):
            return self._allgather_uneven(parts, tensor, outputs, opts)
        everything = tensor.new_empty((self._ranks, tensor.numel()))
        self.all_gather_single(everything, tensor)
        for part, row in zip(parts, everything):
            part.copy_(row.view(part.shape))
        return _done(opts, outputs)

    def _allgather_uneven(self, parts: list[torch.Tensor], tensor: torch.Tensor, outputs: Any, opts: Any) -> Any:
        for root, part in enumerate(parts):
            flat = _flat(tensor if root == self._place else part)
            start = flat.data_ptr()
            self._raw(_BCAST, _U8, -1, root, _bytes(part), start, start)
            if root == self._place or start != part.data_ptr():
                part.copy_(flat.view(part.shape))
        return _done(opts, outputs)

    def all_gather_single_coalesced(self, outputs: Any, inputs: Any, opts: Any = None) -> Any:
        for output, tensor in zip(outputs, inputs):
            self.all_gather_single(output, tensor)
        return _done(opts, outputs)

    allgather_into_tensor_coalesced = all_gather_single_coalesced

    def allgather_coalesced(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        for i, tensor in enumerate(inputs):
            self.allgather([[row[i] for row in outputs]], [tensor])
        return _done(opts, outputs)

    def gather_single(self, output: torch.Tensor | None, tensor: torch.Tensor, opts: Any) -> Any:
        given = _flat(tensor)
        taken = _flat(output) if self._place == opts.rootRank and output is not None else None
        start = 0 if taken is None else taken.data_ptr()
        self._raw(_GATHER, _U8, -1, opts.rootRank, _bytes(given), given.data_ptr(), start)
        if taken is not None and output is not None and start != output.data_ptr():
            output.copy_(taken)
        return _done(opts, [] if output is None else [output])

    def gather(self, outputs: list[list[torch.Tensor]], inputs: list[torch.Tensor], opts: Any) -> Any:
        (tensor,) = inputs
        here = self._place == opts.rootRank
        everything = tensor.new_empty((self._ranks, tensor.numel())) if here else None
        self.gather_single(everything, tensor, opts)
        if here and everything is not None:
            for part, row in zip(outputs[0], everything):
                part.copy_(row.view(part.shape))
        return _done(opts, outputs)

    def scatter(self, outputs: list[torch.Tensor], inputs: list[list[torch.Tensor]], opts: Any) -> Any:
        (output,) = outputs
        taken = _flat(output)
        given = None
        if self._place == opts.rootRank:
            given = torch.cat([tensor.reshape(-1) for tensor in inputs[0]])
            if _bytes(given) != _bytes(output) * self._ranks:
                raise BadArgument("scatter: tensors of one size and type are expected, one for each rank")
        start = 0 if given is None else given.data_ptr()
        self._raw(_SCATTER, _U8, -1, opts.rootRank, _bytes(taken), start, taken.data_ptr())
        if taken.data_ptr() != output.data_ptr():
            output.copy_(taken)
        return _done(opts, outputs)

    def all_to_all_single(
        self,
        output: torch.Tensor,
        tensor: torch.Tensor,
        output_splits: Sequence[int] | None = None,
        input_splits: Sequence[int] | None = None,
        opts: Any = None,
    ) -> Any:
        given, taken = _flat(tensor), _flat(output)
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
        return _done(opts, [output])

    alltoall_base = all_to_all_single

    def alltoall(self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None) -> Any:
        given = torch.cat([tensor.reshape(-1).view(torch.uint8) for tensor in inputs])
        sizes_in, sizes_out = [_bytes(t) for t in inputs], [_bytes(t) for t in outputs]
        taken = torch.empty(sum(sizes_out), dtype=torch.uint8)
        self._team.alltoallv(given, sizes_in, sizes_out, taken)
        for output, part in zip(outputs, taken.split(sizes_out)):
            output.copy_(part.view(output.dtype).view(output.shape))
        return _done(opts, outputs)

    def barrier(self, opts: Any = None) -> Any:
        self._team.barrier()
        return None if opts is not None and not opts.asyncOp else _Done([])

    # Point to point.

    def send(self, tensors: list[torch.Tensor], destination: int, tag: int = 0) -> Message:
        (tensor,) = tensors
        flat = _flat(tensor)
        return Message(tensors, flat, self._team.isend(_raw_bytes(flat), destination, tag), -1)

    def recv(self, tensors: list[torch.Tensor], source: int, tag: int = 0) -> Message:
        (tensor,) = tensors
        flat = _flat(tensor)
        return Message(tensors, flat, self._team.irecv(_raw_bytes(flat), source, tag), source)

    def recv_anysource(self, tensors: list[torch.Tensor], tag: int = 0) -> Message:
        return FromAnyone(self, tensors, tag)


def _create(store: Any, rank: int, size: int, timeout: timedelta) -> dist.ProcessGroup:
    members = nodes(store, rank, size)
    if len(members) > 1:
        return ProcessGroupNodes(store, rank, size, timeout, members)
    return ProcessGroupLineweave(store, rank, size, timeout)


dist.Backend.register_backend("lineweave", _create, devices=["cpu"])

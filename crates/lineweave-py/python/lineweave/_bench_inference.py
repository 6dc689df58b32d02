"""Sums by operators for inference, lineweave's beside DeepSpeed's and vLLM's (`lineweave.bench`)."""

from __future__ import annotations

import importlib.util
import os
from functools import partial
from pathlib import Path
from typing import Any, Callable

from lineweave._bench_peers import DEEPSPEED, Missing, deepspeed, vllm

LIBRARIES = ("lineweave", "deepspeed", "vllm", "gloo")
# The hidden state of a token or a few, and of a prompt.
_SIZES = (8 << 10, 16 << 10, 32 << 10, 64 << 10, 256 << 10, 1 << 20)

Reducer = Callable[[Any], object]
# A collective, its elements, its bytes, the call, and what checks its first answer.
Case = tuple[str, str, int, Callable[[], object], Callable[[], None]]


def _bind(rank: int, size: int) -> None:
    """Returns an equal share of the CPUs, as DeepSpeed's launcher does by `--bind_cores_to_rank`; none where ranks outnumber them."""
    cpus = sorted(os.sched_getaffinity(0))
    each = len(cpus) // size
    if each > 0:
        os.sched_setaffinity(0, cpus[rank * each : (rank + 1) * each])


def reducer(library: str) -> Reducer:
    """Returns a library's function for sums in place; the process group is gloo's, as where these libraries decode on CPUs."""
    import torch.distributed as dist

    rank, size = dist.get_rank(), dist.get_world_size()
    if library == "lineweave":
        # It binds ranks by itself.
        from lineweave.torch import inference_all_reduce, initialize

        initialize(size, rank)
        return inference_all_reduce
    _bind(rank, size)
    return {"gloo": lambda *_: dist.all_reduce, "deepspeed": _deepspeed, "vllm": _vllm}[library](rank, size)


def _deepspeed(rank: int, size: int) -> Reducer:
    import torch

    # DeepSpeed's launcher says so that all ranks are on one node.
    os.environ["LOCAL_SIZE"] = str(size)
    spec = importlib.util.spec_from_file_location(DEEPSPEED, deepspeed())
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    if module.vector_kernel_level() < 2:
        raise Missing("this CPU does not have AVX-512BW, for which DeepSpeed's operator is compiled")
    module.initialize(size, rank)
    # 66 MiB.
    _unname("deepspeed_allreduce_buffer", os.getuid(), os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"], rank)
    return torch.ops.deepspeed.inference_all_reduce_.default  # type: ignore[no-any-return]


def _vllm(rank: int, size: int) -> Reducer:
    import torch
    import torch.distributed as dist

    # As its platform for CPUs chooses.
    bf16, avx512 = torch.cpu._is_avx512_bf16_supported(), torch.cpu._is_avx512_supported()
    kind = "_C" if bf16 else "_C_AVX512" if avx512 else "_C_AVX2"
    torch.ops.load_library(str(vllm() / f"{kind}.abi3.so"))
    name = f"lineweave-bench-{os.environ['MASTER_PORT']}"
    handle = torch.ops._C.init_shm_manager(name, size, rank, torch.get_num_threads())
    dist.barrier()
    torch.ops._C.join_shm_manager(handle, name)
    _unname(name, rank)
    return partial(torch.ops._C.shm_allreduce.default, handle)


def _unname(*parts: object) -> None:
    """Removes the name of shared memory that a killed rank would leave behind: once all have mapped it, no rank needs the name."""
    import torch.distributed as dist

    dist.barrier()
    Path("/dev/shm", "_".join(map(str, parts))).unlink(missing_ok=True)


def _lengths() -> list[tuple[str, Any, int]]:
    import torch

    types = (("bf16", torch.bfloat16), ("f32", torch.float32))
    return [(element, dtype, size) for element, dtype in types for size in _SIZES]


def same_bits(reduce: Reducer) -> bool:
    """Returns whether every rank gets the same bits of sums that have to be rounded, for each length that is measured."""
    import torch
    import torch.distributed as dist

    generator = torch.Generator().manual_seed(dist.get_rank())
    alike = True
    for _, dtype, size in _lengths():
        x = torch.randn(size // dtype.itemsize, generator=generator).to(dtype)
        reduce(x)
        bits = x.view(torch.uint8)
        rows = [torch.empty_like(bits) for _ in range(dist.get_world_size())]
        dist.all_gather(rows, bits)
        alike &= all(torch.equal(row, bits) for row in rows)
    return alike


def cases(library: str, reduce: Reducer) -> list[Case]:
    """Sums of the lengths that are measured."""
    import torch
    import torch.distributed as dist

    rank, ranks = dist.get_rank(), dist.get_world_size()
    found: list[Case] = []
    for element, dtype, size in _lengths():
        # Small whole numbers, whose sums are exact.
        x = torch.arange(size // dtype.itemsize).remainder_(7).add_(rank).to(dtype)

        def check(x: Any = x) -> None:
            expected = torch.arange(len(x)).remainder_(7).mul_(ranks).add_(ranks * (ranks - 1) // 2)
            if not torch.equal(x.to(torch.int64), expected):
                raise AssertionError(f"a wrong answer by {library}: {x[:8].tolist()}, expected {expected[:8].tolist()}")
            # It is added up over and over from here on.
            x.zero_()

        found.append(("allreduce", element, size, lambda x=x: reduce(x), check))
    return found

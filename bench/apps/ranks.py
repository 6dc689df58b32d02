"""What the programs of torch here share: a rank's group, and the time of a step."""

from __future__ import annotations

import json
import os
import time
from typing import Callable

import torch
import torch.distributed as dist


def join(backend: str) -> None:
    """Joins the others: the launcher's variables say where."""
    if backend == "lineweave":
        import lineweave.torch  # noqa: F401
    torch.manual_seed(0)
    # As torchrun sets it for several ranks on one machine.
    torch.set_num_threads(1)
    dist.init_process_group(backend)


def seconds_a_step(step: Callable[[], object], seconds: float) -> float:
    """The median time of a step at the slowest rank, after some that warm it."""
    for _ in range(5):
        step()
    started = time.perf_counter()
    for _ in range(5):
        step()
    steps = torch.tensor([max(5.0, 5 * seconds / (time.perf_counter() - started))])
    # All ranks make as many.
    dist.broadcast(steps, 0)
    times = []
    for _ in range(int(steps.item())):
        started = time.perf_counter()
        step()
        times.append(time.perf_counter() - started)
    slowest = torch.tensor([sorted(times)[len(times) // 2]], dtype=torch.float64)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return float(slowest.item())


def tell(what: str, seconds: float, alone: float) -> None:
    """Rank 0 prints the figure; `alone` is the same step without what the others have to do with it."""
    if dist.get_rank() == 0:
        share = max(0.0, 1.0 - alone / seconds)
        print(json.dumps({"figure": what, "seconds": seconds, "communication": round(share, 3)}), flush=True)


def leave() -> None:
    """Ends the group when all have come here."""
    dist.barrier()
    dist.destroy_process_group()
    # torch's threads have nothing to do any more, and some versions wait for them.
    os._exit(0)

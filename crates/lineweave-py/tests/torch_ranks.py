"""Starts ranks of torch.distributed for tests."""

import os
import socket
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.multiprocessing


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def enter(rank, function, size, backend, port, folder):
    import lineweave.torch  # noqa: F401

    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group(backend, rank=rank, world_size=size, timeout=timedelta(seconds=60))
    result = function(rank, size)
    if folder is not None:
        torch.save(result, os.path.join(folder, f"{backend}-{rank}"))
    dist.barrier()
    dist.destroy_process_group()


def ranks(function, size, backend="lineweave", folder=None):
    torch.multiprocessing.spawn(enter, (function, size, backend, free_port(), folder), nprocs=size)

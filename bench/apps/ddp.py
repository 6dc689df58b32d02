"""Trains a small network by DistributedDataParallel on CPUs: `ddp.py BACKEND SECONDS`, once a rank.

Prints the time of a step, and the share of it that is communication: what a step takes longer than one that keeps its gradients to
itself (`no_sync`).
"""

from __future__ import annotations

import sys

import torch
from torch.nn.parallel import DistributedDataParallel

from ranks import join, leave, seconds_a_step, tell


def main(backend: str, seconds: float) -> None:
    join(backend)
    # A digit classifier's size: 28 x 28 pixels, 235,146 parameters.
    model = torch.nn.Sequential(
        torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)
    )
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.01)
    images, digits = torch.randn(32, 784), torch.randint(10, (32,))
    judge = torch.nn.CrossEntropyLoss()

    def step() -> None:
        optimizer.zero_grad()
        judge(parallel(images), digits).backward()
        optimizer.step()

    def alone() -> None:
        with parallel.no_sync():
            step()

    together = seconds_a_step(step, seconds)
    tell("step", together, seconds_a_step(alone, seconds / 2))
    # Every rank has trained the same model: that is what communication is for. Steps of `alone` had other gradients nowhere, as
    # all ranks have the same images.
    first = next(model.parameters()).detach().clone()
    torch.distributed.broadcast(first, 0)
    if not torch.equal(first, next(model.parameters()).detach()):
        raise AssertionError("ranks have different models")
    leave()


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))

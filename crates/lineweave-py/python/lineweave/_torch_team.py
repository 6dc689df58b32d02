"""The team of a group of torch.distributed, and how many threads its ranks compute with."""

from __future__ import annotations

import os

import torch

from lineweave import _lineweave
from lineweave._team import Team


def meet(name: str, size: int, rank: int, seconds: float) -> Team:
    """Meets the other ranks. A rank that is bound to one CPU computes with one thread from then on.

    torch's threads begin where the one is that starts them, so all of them would share that CPU, and each looks for more work for some
    milliseconds after an operation before it sleeps, while the rank that needs the CPU waits for its peers.
    """
    free = len(os.sched_getaffinity(0))
    team = Team(_lineweave.meet(name, size, rank, seconds))
    team.set_timeout(seconds)
    if len(os.sched_getaffinity(0)) == 1 < free and torch.get_num_threads() > 1:
        torch.set_num_threads(1)
    return team

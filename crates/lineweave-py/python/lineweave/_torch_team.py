"""The common parts of both kinds of process groups of torch.distributed, and the number of threads that ranks compute with."""

from __future__ import annotations

import os
from datetime import timedelta

import torch
import torch.distributed as dist

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


class Group(dist.ProcessGroup):
    """A process group with a team in which this rank is: all ranks of the group, or those of this rank's node."""

    _team: Team

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)
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

    def _get_backend(self, device: torch.device) -> Group:
        # There is one, for CPUs, and nothing that it is wrapped in.
        return self

    def shutdown(self) -> None:
        self._team.close()

    def abort(self) -> None:
        self._team.abandon("the process group was aborted")
        self._team.close()

    def set_timeout(self, timeout: timedelta) -> None:
        self._team.set_timeout(timeout.total_seconds())

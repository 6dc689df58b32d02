"""The common parts of both kinds of process groups of torch.distributed, and the number of threads that ranks compute with."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any, Callable, Sequence

import torch
import torch.distributed as dist

from lineweave import _lineweave
from lineweave._errors import BadArgument
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


# torch's flight recorder asks for a backend in C++, of all groups but of those that it takes to record themselves.
_RECORDING: Any = getattr(dist.distributed_c10d, "_FR_SELF_RECORDING_BACKENDS", set())
_RECORDING.add("lineweave")


class Group(dist.ProcessGroup):
    """A process group with a team in which this rank is: all ranks of the group, or those of this rank's node."""

    _team: Team
    _store: Any
    _timeout: timedelta
    _create: Callable[[Any, int, int, timedelta], Group]

    # torch asks these of a backend before it calls `split_group`.
    supports_splitting = True
    _device_types = [torch.device("cpu")]

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self._place, self._ranks, self._splits = rank, size, 0

    def split_group(
        self,
        ranks: Sequence[int],
        timeout: timedelta | None = None,
        opts: Any = None,
        group_name: str | None = None,
        group_desc: str | None = None,
        device_types: Any = None,
    ) -> Group | None:
        """Makes a group of these ranks, in their order; `None` for a rank that is not among them. `torch.distributed.split_group` calls it."""
        if not ranks or len(set(ranks)) != len(ranks) or not all(0 <= rank < self._ranks for rank in ranks):
            raise BadArgument(f"split_group: the ranks are {list(ranks)}; expected different ones, each from 0 to {self._ranks - 1}")
        # torch's names of groups count those that this rank is in, so ranks of one new group may be given different ones.
        self._splits += 1
        if self._place not in ranks:
            return None
        name = f"lineweave/split/{self._splits}/{'-'.join(map(str, ranks))}"
        store = dist.PrefixStore(name, self._store)
        group = self._create(store, list(ranks).index(self._place), len(ranks), timeout or self._timeout)
        group._set_group_name(group_name or name)
        group._set_group_desc(group_desc or f"{self.group_desc}:split")
        return group

    def get_group_store(self) -> Any:
        return self._store

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

    def get_backend(self, device: torch.device) -> Group:
        # There is one, for CPUs, and nothing that it is wrapped in.
        return self

    _get_backend = get_backend

    def shutdown(self) -> None:
        self._team.close()

    def abort(self) -> None:
        self._team.abandon("the process group was aborted")
        self._team.close()

    def set_timeout(self, timeout: timedelta) -> None:
        self._timeout = timeout
        self._team.set_timeout(timeout.total_seconds())

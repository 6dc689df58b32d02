"""Collectives shaped to the machine they run on, among processes and threads of one node.

    import lineweave, numpy as np

    def work(team):
        x = np.full(4, float(team.rank))
        team.allreduce(x, out=x)
        return x.tolist()

    print(lineweave.spawn(work, 4))
"""

from __future__ import annotations

try:
    from lineweave import _lineweave
except ImportError as _error:
    from lineweave import _machine

    raise ImportError(_machine.advice(_error)) from _error

from lineweave import _launch
from lineweave._errors import (
    BadArgument,
    BadType,
    Error,
    MeetingFailed,
    Mismatch,
    NoTeam,
    OutOfMemory,
    RankFailed,
    RankLost,
    Timeout,
)
from lineweave._requests import Handle, Request, wait_all
from lineweave._spawn import spawn
from lineweave._team import Team, socket_name as _socket_name
from lineweave._lineweave import __version__, usable_cpus

__all__ = [
    "BadArgument",
    "BadType",
    "Error",
    "Handle",
    "MeetingFailed",
    "Mismatch",
    "NoTeam",
    "OutOfMemory",
    "RankFailed",
    "RankLost",
    "Request",
    "Team",
    "Timeout",
    "__version__",
    "connect",
    "spawn",
    "team",
    "usable_cpus",
    "wait_all",
]

_world: Team | None = None


def connect(name: str, size: int, rank: int | None = None, timeout: float = 60.0) -> Team:
    """Meets the other ranks of a team at `name`, and returns this one's end of it.

    - `name`: equal at all ranks. One with a slash is the path of a Unix socket; any other one is known on this node only, to this user.
    - `size`: the number of ranks, equal at all.
    - `rank`: this one's, from 0. All give theirs or none does: then ranks are given out as they come.
    - `timeout`: the seconds until all must have come.

    Raises `MeetingFailed` when not all came in time, `BadArgument` for a size or rank that cannot be.

        >>> with lineweave.connect("./here", size=2) as other:     # in each of two processes
        ...     other.size
        2
    """
    return Team(_lineweave.meet(_socket_name(name), size, rank, timeout))


def team(timeout: float = 60.0) -> Team:
    """The team of all ranks that a launcher started: `lineweave run`, mpirun, srun or torchrun. Every call returns the same.

    - `timeout`: the seconds until all must have come.

    Raises `NoTeam` when there was no launcher, or when it started ranks on other nodes as well, and `MeetingFailed` when not all came.

        >>> try:
        ...     world = lineweave.team()
        ... except lineweave.NoTeam:
        ...     print("start it by `lineweave run -n 4 script.py`")
        start it by `lineweave run -n 4 script.py`
    """
    global _world
    if _world is None or _world.closed:
        import os

        if "LINEWEAVE_TEAM_FD" in os.environ:
            _world = Team(_lineweave.from_environment())
        else:
            place = _launch.place()
            _world = connect("job-" + place.job, place.size, place.rank, timeout)
    return _world

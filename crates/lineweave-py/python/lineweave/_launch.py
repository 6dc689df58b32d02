"""Reading this process's rank from the environment that its launcher made."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Mapping

from lineweave._errors import BadArgument, NoTeam


@dataclass(frozen=True)
class Place:
    """A rank, the number of ranks, and the name by which ranks of one job find each other."""

    launcher: str
    rank: int
    size: int
    job: str


# Launcher, variable of the rank, of the number of ranks, of the ranks on this node (where the launcher says), of the job.
_LAUNCHERS = (
    ("torchrun", "RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", ("TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RESTART_COUNT")),
    ("Open MPI's mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", ("PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri")),
    ("Hydra (MPICH's or Intel's mpirun)", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", ()),
    ("srun", "SLURM_PROCID", "SLURM_NTASKS", "", ("SLURM_JOB_ID", "SLURM_STEP_ID")),
)


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment[name]
    if not text.isascii() or not text.isdigit():
        raise BadArgument(f"{name} is `{text}`; expected a number, as its launcher sets it")
    return int(text)


def place(environment: Mapping[str, str] | None = None) -> Place:
    """Returns rank and size as the launcher gives them. Raises `NoTeam` when there is none, or when it started ranks on other nodes too."""
    env = os.environ if environment is None else environment
    for launcher, rank, size, local, job in _LAUNCHERS:
        if rank not in env or size not in env:
            continue
        if launcher == "srun" and "SLURM_STEP_ID" not in env:
            # A batch script's environment, not a step's.
            continue
        place = Place(launcher, _number(env, rank), _number(env, size), _job(env, launcher, job))
        if place.rank >= place.size:
            raise BadArgument(f"{rank} is {place.rank} and {size} is {place.size}; expected a rank below it")
        here = _number(env, local) if local and local in env else _tasks_here(env, launcher, place.size)
        if here != place.size:
            raise NoTeam(
                f"{launcher} started {place.size} ranks, {here} of them on this node; a team is of ranks on one node."
                " Start them on one node, or give each node's ranks a team: lineweave.connect(name, size=..., rank=...)"
            )
        return place
    raise NoTeam(
        "nobody says which rank this process is: start it by `lineweave run -n 4 script.py`, mpirun, srun or torchrun,"
        " use lineweave.spawn(function, 4), or name the team: lineweave.connect('name', size=4)"
    )


def _tasks_here(env: Mapping[str, str], launcher: str, size: int) -> int:
    if launcher != "srun":
        return size
    nodes = env.get("SLURM_STEP_NUM_NODES", env.get("SLURM_NNODES", "1"))
    if nodes == "1":
        return size
    # "2(x3),1": tasks on each node, in the order of nodes.
    tasks: list[int] = []
    for part in env.get("SLURM_STEP_TASKS_PER_NODE", "0").split(","):
        count, _, times = part.rstrip(")").partition("(x")
        tasks += [int(count)] * int(times or 1)
    node = int(env.get("SLURM_NODEID", "0"))
    return tasks[node] if node < len(tasks) else 0


def _job(env: Mapping[str, str], launcher: str, names: tuple[str, ...]) -> str:
    parts = [env[name] for name in names if name in env]
    if not parts:
        # Hydra numbers no jobs; the ranks of one on a node have one proxy as parent.
        parts = [str(os.getppid()), _started(os.getppid())]
    # A socket's name has at most 107 bytes.
    text = "-".join([launcher.split()[0], *parts])
    if len(text) > 60:
        import hashlib

        text = hashlib.sha256(text.encode()).hexdigest()[:32]
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in text)


def _started(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
            return stat.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return "0"

"""Teams that lose a rank at a random point of random calls: the others name it. LINEWEAVE_TEST_FAULTS says how many teams,
LINEWEAVE_TEST_SEED repeats a run."""

import multiprocessing
import os
import random
import signal
import threading

import lineweave
import numpy as np
import pytest

LENGTHS = [1, 3000, 60_000]


def call(team, kind, root, x):
    """One of the calls, with what numpy would say of it."""
    if kind == 0:
        team.barrier()
    elif kind == 1:
        assert team.bcast(x, root=root)[0] == x[0]
    elif kind == 2:
        assert (team.allreduce(x) == team.size * x).all()
    elif kind == 3:
        team.reduce(x, root=root)
    elif kind == 4:
        assert team.allgather(x).size == x.size * team.size
    elif kind == 5:
        team.alltoall(np.ones(x.size * team.size, dtype=x.dtype))
    else:
        started = team.iallreduce(x)
        while not started.test():
            os.sched_yield()


def loses_one(team, seed, victim, how, after, lost):
    """Makes the same calls as the others until one fails; `victim` is lost by itself."""
    draw = random.Random(seed)
    for kind in range(7):
        for length in LENGTHS:
            call(team, kind, 0, np.ones(length))
    team.barrier()
    if team.rank == victim:
        if how == "raise":
            raise ValueError("on purpose")
        act = (lambda: os.kill(os.getpid(), signal.SIGKILL)) if how == "kill" else lambda: os._exit(3)
        threading.Timer(after, act).start()
    try:
        while True:
            call(team, draw.randrange(7), draw.choice([0, team.size - 1]), np.ones(draw.choice(LENGTHS)))
    except lineweave.RankLost as error:
        if team.rank != victim:
            lost.put((team.rank, error.peer))
        raise


def test_survivors_name_the_rank_that_is_lost(fork):
    seed = int(os.environ.get("LINEWEAVE_TEST_SEED", os.getpid()))
    for seed in range(seed, seed + int(os.environ.get("LINEWEAVE_TEST_FAULTS", 12))):
        draw = random.Random(-seed)
        n = draw.randint(2, 5)
        victim, how, after = draw.randrange(n), draw.choice(["kill", "exit", "raise"]), draw.uniform(0, 0.03)
        lost = multiprocessing.get_context(fork).SimpleQueue()
        with pytest.raises(lineweave.RankFailed) as caught:
            lineweave.spawn(loses_one, n, args=(seed, victim, how, after, lost), method=fork, timeout=60)
        case = f"seed {seed}: {n} ranks, {victim} is lost by {how} after {after:.3f} s: {caught.value}"
        assert caught.value.peer == victim, case
        said = [lost.get() for _ in range(n - 1)]
        assert sorted(rank for rank, _ in said) == [r for r in range(n) if r != victim], case
        assert {peer for _, peer in said} == {victim}, case

#!/usr/bin/env python3
"""Random programs (present.c) with lineweave at some of their ranks, at all or at none, under one MPI.

    present.py LINEWEAVE PROGRAM WATCH COUNT SEED LAUNCHER...

LAUNCHER is what starts a job, as `mpirun --oversubscribe`; what it needs of the environment is set. Each job has 1 to 4 ranks, some spawn more,
with or without it, and settings differ by rank in some. A job must end in time and get right results; where a rank lacks lineweave, lineweave must
have called nothing of the MPI's on a communicator that has that rank (watch.c). Ends with "N passed, N failed"; a failed job's line repeats it.
"""
import os
import random
import re
import shlex
import subprocess
import sys

LIMIT_S = 120
# Intel MPI over shared memory cannot spawn by itself.
SPAWNS = 0 if "I_MPI_ROOT" in os.environ else 1
# Of rank 0, or of one rank alone.
SETTINGS = ["LINEWEAVE_MPI_AFTER=%d", "LINEWEAVE_MPI_RACE=0", "LINEWEAVE_MPI_LEADERS=2", "LINEWEAVE_QUIET=1", "LINEWEAVE_RANKS_PER_NODE=2",
            "LINEWEAVE_WAIT=sleep", "LINEWEAVE_ALGORITHM=barrier=counter", "LINEWEAVE_CHECK=1"]


def setting(drawn):
    """A setting drawn at random, as NAME=VALUE."""
    text = drawn.choice(SETTINGS)
    return text % drawn.randrange(200) if "%d" in text else text


def job(drawn, lineweave, program, watch, launcher):
    """The command of one job, whether all of its ranks have lineweave, and whether their children do."""
    ranks = drawn.randint(1, 4)
    have = [True] * ranks if drawn.random() < 0.5 else [drawn.random() < 0.5 for _ in range(ranks)]
    children = drawn.choice([0, 0, 1, 2, 3]) * SPAWNS
    bare = drawn.random() < 0.25
    work = [program, str(drawn.randrange(1 << 30)), str(drawn.choice([60, 200, 600])), str(children)]
    common = [setting(drawn) for _ in range(drawn.randrange(3))] + ["PRESENT_BARE=1"] * bare
    if drawn.random() < 0.7:
        common.append("LINEWEAVE_MPI_AFTER=%d" % drawn.randrange(200))
    odd = drawn.randrange(ranks) if drawn.random() < 0.3 else -1
    line = [launcher[0]]
    for rank in range(ranks):
        own = common + ([setting(drawn)] if rank == odd else [])
        line += ([":"] if rank else []) + launcher[1:] + ["-n", "1", "env", "LD_PRELOAD=" + watch, *own]
        line += ([lineweave, "run", "--"] if have[rank] else []) + work
    return line, all(have), not bare


def outcome(line, complete, inherited, ours):
    """Returns the faults of a job; empty when there were none."""
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=ours)
    except subprocess.TimeoutExpired:
        return "did not end"
    said = done.stdout + done.stderr
    if done.returncode != 0 or "present: 0 wrong" not in said:
        return f"status {done.returncode}: {said[-1500:]}"
    seen = [tuple(map(int, found)) for found in re.findall(r"watch: (\d+) calls, (\d+) foreign, spawned (\d)", said)]
    # The children of a rank with lineweave all have it, unless they are bare, and form an MPI_COMM_WORLD of their own.
    lacking = not complete and any(foreign if spawned else calls for calls, foreign, spawned in seen)
    bare = not inherited and any(foreign for _, foreign, _ in seen)
    if lacking or bare:
        return f"lineweave called the MPI although a rank lacks it: {seen}"
    return ""


def main():
    """Runs the jobs."""
    lineweave, program, watch, count, seed, *launcher = sys.argv[1:]
    print(f"seed {seed}", flush=True)
    drawn, failed = random.Random(int(seed)), 0
    ours = dict(os.environ, TMPDIR=os.environ.get("TMPDIR", "/tmp"))
    for _ in range(int(count)):
        line, complete, inherited = job(drawn, lineweave, program, watch, launcher)
        why = outcome(line, complete, inherited, ours)
        if why:
            failed += 1
            print(f"{shlex.join(line)}\n    {why}", flush=True)
    print(f"{int(count) - failed} passed, {failed} failed")
    sys.exit(failed > 0)


main()
